"""The server: routes from the page's questions to views and jobs."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from neuromanifold import __version__
from neuromanifold.errors import ArgumentError, NeuromanifoldError
from neuromanifold.explorer import tasks
from neuromanifold.explorer.guard import UPLOAD_BYTES, Guard, Rules
from neuromanifold.explorer.jobs import Jobs
from neuromanifold.explorer.session import Session
from neuromanifold.explorer.views import network, paper
from neuromanifold.files import LARGEST_EXACT, as_json

_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
}
_LONGEST_WAIT = 10.0
"""Seconds that a question about a job is held open until there is something new."""

Handler = Callable[[Request], Awaitable[Response]]


def explorer_app(session: Session, rules: Rules, *, time_limit: float = 300.0) -> Starlette:
    """The application.

    Args:
        session: the files it may read.
        rules: who may ask.
        time_limit: seconds for each piece of work.
    """
    jobs = Jobs(tasks.run, time_limit=time_limit)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> Any:
        yield
        jobs.close()
        session.close()

    handlers = _Handlers(session, jobs, time_limit)
    routes = [
        Route("/", _static_file),
        Route("/static/{path:path}", _static_file),
        Route("/plotly.js", _plotly),
        Route("/api/session", _plain(handlers.session)),
        Route("/api/network", _plain(handlers.network), methods=["POST"]),
        Route("/api/statements", _plain(handlers.statements)),
        Route("/api/files", _plain(handlers.upload), methods=["POST"]),
        Route("/api/jobs", _plain(handlers.submit), methods=["POST"]),
        Route("/api/jobs/{id}", _plain(handlers.job), methods=["GET"]),
        Route("/api/jobs/{id}", _plain(handlers.cancel), methods=["DELETE"]),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, rules=rules)], lifespan=lifespan)


class _Handlers:
    """What each question is answered with."""

    def __init__(self, session: Session, jobs: Jobs, time_limit: float) -> None:
        self._session = session
        self._jobs = jobs
        self._time_limit = time_limit

    async def session(self, request: Request) -> Any:
        return {
            "version": __version__,
            "files": [file.to_dict() for file in self._session.files()],
            "largest_upload": UPLOAD_BYTES,
        }

    async def network(self, request: Request) -> Any:
        return network.describe({**await _question(request), "time_limit": self._time_limit})

    async def statements(self, request: Request) -> Any:
        id_ = request.query_params.get("file")
        file = None if id_ is None else self._session.get(id_)
        if file is not None and file.kind != "evidence":
            raise ArgumentError(f"the results of a report were wanted; {file.name} is {file.kind}")
        return paper.statements(None if file is None else file.path)

    async def upload(self, request: Request) -> Any:
        name = request.query_params.get("name", "unnamed")
        return self._session.receive(name, await request.body()).to_dict()

    async def submit(self, request: Request) -> Any:
        asked = await _question(request)
        name = asked.get("task")
        task = tasks.task_named(name)
        arguments = asked.get("arguments") or {}
        if not isinstance(arguments, dict):
            raise ArgumentError("arguments must be an object")
        arguments["time_limit"] = self._time_limit
        arguments["files"] = self._files(task, arguments.get("files"))
        return self._jobs.submit(str(name), arguments, long=task.long).to_dict()

    def _files(self, task: tasks.Task, asked: object) -> dict[str, dict[str, str]]:
        """The files that a task needs, from their ids: the only way to a path."""
        found = {}
        for name, kind in (task.files or {}).items():
            file = self._session.get(asked.get(name) if isinstance(asked, dict) else None)
            if file.kind != kind:
                raise ArgumentError(
                    f"a file of the kind {kind} was wanted; {file.name} is {file.kind}"
                )
            found[name] = {"path": str(file.path), "name": file.name}
        return found

    async def job(self, request: Request) -> Any:
        job = self._jobs.get(request.path_params["id"])
        seen = request.query_params.get("seen")
        for _ in range(int(_LONGEST_WAIT / 0.05)):
            if job.finished.is_set() or job.message != seen:
                break
            await asyncio.sleep(0.05)
        return job.to_dict()

    async def cancel(self, request: Request) -> Any:
        return self._jobs.cancel(request.path_params["id"]).to_dict()


async def _question(request: Request) -> dict[str, Any]:
    try:
        asked = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise ArgumentError("a question is a JSON object; this is no valid JSON") from None
    if not isinstance(asked, dict):
        raise ArgumentError("a question is a JSON object")
    return asked


def _plain(answer: Callable[[Request], Awaitable[Any]]) -> Handler:
    """A handler that answers with JSON; what a caller can put right is one sentence."""

    async def handler(request: Request) -> Response:
        try:
            return JSONResponse(as_json(await answer(request), largest=LARGEST_EXACT))
        except NeuromanifoldError as error:
            return JSONResponse({"error": " ".join(str(error).split())}, 400)

    return handler


async def _static_file(request: Request) -> Response:
    """A file of the page: only those that the package holds."""
    path = request.path_params.get("path", "index.html")
    known = {str(item.relative_to(_static())): item for item in _static().rglob("*.*")}
    if path not in known:
        return JSONResponse({"error": "there is no such page"}, 404)
    return FileResponse(known[path], media_type=_TYPES.get(known[path].suffix))


async def _plotly(_: Request) -> Response:
    """plotly.js, from the wheel of the Python package."""
    return FileResponse(plotly_file(), media_type="text/javascript")


def plotly_file() -> Path:
    """Where the installed plotly keeps its JavaScript."""
    return Path(str(files("plotly") / "package_data" / "plotly.min.js"))


def _static() -> Path:
    return Path(str(files("neuromanifold.explorer") / "static"))
