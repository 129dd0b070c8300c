"""Who may ask the explorer, how much, and what its pages may do.

Three checks keep other web pages out, each enough by itself. The `Host` must be the explorer's own
address, so a foreign name that resolves to this machine gets nothing. An `Origin`, which browsers
send with every request of another page, must be the explorer's. And every question carries the
token of this run in a header, which no other page knows and which a form cannot send.
"""

import secrets
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",  # plotly sets the styles of its own elements
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TOKEN_HEADER = "x-explorer-token"

QUESTION_BYTES = 256 * 1024
"""The largest question: an architecture and a few options."""
UPLOAD_BYTES = 256 * 1024 * 1024
"""The largest file that is taken from the page."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Who may ask.

    Attributes:
        hosts: the values of `Host` that are the explorer's own, with the port.
        token: what every question must carry.
    """

    hosts: frozenset[str]
    token: str

    @property
    def origins(self) -> frozenset[str]:
        """The origins of the explorer's own pages."""
        return frozenset(f"http://{host}" for host in self.hosts)

    def refusal(self, path: str, headers: Headers) -> tuple[int, str] | None:
        """The status and the sentence with which a request is refused, or None."""
        if headers.get("host", "") not in self.hosts:
            return 421, "This explorer answers at its own address only; use the one it printed."
        origin = headers.get("origin")
        if (origin is not None and origin not in self.origins) or (
            headers.get("sec-fetch-site") == "cross-site"
        ):
            return 403, "Another web page may not ask the explorer."
        if path.startswith("/api/") and not secrets.compare_digest(
            headers.get(TOKEN_HEADER, "").encode(), self.token.encode()
        ):
            return 401, (
                "The token is missing or of another run; open the address that "
                "`neuromanifold explore` printed, or start it with --token to keep one."
            )
        return None


class _TooLargeError(Exception):
    """The body is larger than the limit."""


class Guard:
    """Applies the rules to every request, and the content policy to every answer."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets: the server closes the connection

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        limit = UPLOAD_BYTES if scope["path"] == "/api/files" else QUESTION_BYTES
        too_large = JSONResponse(
            {"error": f"At most {limit // 1024} KiB are taken here; send less."}, 413
        )
        headers = Headers(scope=scope)
        refusal = self._rules.refusal(scope["path"], headers)
        if refusal is not None:
            status, sentence = refusal
            await JSONResponse({"error": sentence}, status)(scope, receive, guarded)
            return
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > limit:
            await too_large(scope, receive, guarded)
            return
        try:
            await self._app(scope, _counted(receive, limit), guarded)
        except _TooLargeError:
            await too_large(scope, receive, guarded)
        except ClientDisconnect:
            return  # whoever asked has left in the middle of the question


def _counted(receive: Receive, limit: int) -> Receive:
    """`receive`, stopped when the body grows beyond the limit: a length is only a promise."""
    taken = 0

    async def counted() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise _TooLargeError
        return message

    return counted
