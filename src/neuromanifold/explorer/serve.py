"""Starting the explorer: an address, a token, a browser."""

import ipaddress
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from neuromanifold.errors import ArgumentError
from neuromanifold.explorer.guard import Rules
from neuromanifold.explorer.server import explorer_app, plotly_file
from neuromanifold.explorer.session import Session

DEFAULT_PORT = 8642
_PORTS_TRIED = 20


@dataclass(frozen=True, slots=True)
class Address:
    """Where the explorer answers, and the token it wants."""

    host: str
    port: int
    token: str

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def url(self) -> str:
        """What to open; the view comes after a `#`."""
        return f"http://{self._bracketed}:{self.port}/?token={self.token}"

    @property
    def rules(self) -> Rules:
        """The explorer's own names: the address itself and, on this machine, `localhost`."""
        names = {self._bracketed} | (
            {"localhost", "127.0.0.1"} if self.host == "127.0.0.1" else set()
        )
        return Rules(frozenset(f"{name}:{self.port}" for name in names), self.token)


def serve(
    paths: tuple[Path, ...],
    *,
    host: str,
    port: int | None,
    token: str | None,
    time_limit: float,
    browser: bool,
    announce: Callable[[str], None],
) -> None:
    """Run the explorer until it is interrupted.

    Args:
        paths: files that the page may read.
        host: the address to bind to.
        port: the port; None takes the first free one from the usual one on.
        token: the token; None draws one.
        time_limit: seconds for each piece of work.
        browser: whether to open the page.
        announce: is told the address.
    """
    import uvicorn

    check_host(host)
    if token is not None and (len(token) < 16 or not token.isascii() or not token.isalnum()):
        raise ArgumentError(
            "a token has at least 16 letters and digits; leave it out for a new one"
        )
    plotly_file()  # without plotly the page could not draw: say so now
    session = Session(paths)
    bound = _bind(host, port)
    address = Address(host, bound.getsockname()[1], token or secrets.token_hex(16))
    app = explorer_app(session, address.rules, time_limit=time_limit)
    announce(address.url)
    if browser:
        threading.Timer(0.7, webbrowser.open, (address.url,)).start()
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[bound])


def check_host(host: str) -> None:
    """Raise unless the address is one that people type: not all addresses at once."""
    try:
        anywhere = ipaddress.ip_address(host).is_unspecified
    except ValueError:
        anywhere = not host
    if anywhere:
        raise ArgumentError(
            f"--host {host} stands for every address; give the one that is typed into the browser"
        )


def _bind(host: str, port: int | None) -> socket.socket:
    """A socket on the port, or on the first free one."""
    candidates = [port] if port is not None else range(DEFAULT_PORT, DEFAULT_PORT + _PORTS_TRIED)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    why = ""
    for candidate in candidates:
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, candidate))
            bound.listen()  # from here on the port is ours, and who comes early waits
        except (OSError, OverflowError) as error:
            bound.close()
            why = str(error).removesuffix(".")
        else:
            return bound
    raise ArgumentError(
        f"{host} port {candidates[-1]} cannot be taken: {why}; give another --port or --host"
    )
