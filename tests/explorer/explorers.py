"""An explorer to ask in tests, as the page asks it."""

from starlette.testclient import TestClient

from neuromanifold.explorer.guard import Rules
from neuromanifold.explorer.server import explorer_app
from neuromanifold.explorer.session import Session

HOST = "127.0.0.1:8642"
TOKEN = "a-token-of-the-tests"


class Explorer(TestClient):
    """A client with the token of its explorer."""

    def __init__(self, *paths, time_limit=120.0, token=TOKEN):
        app = explorer_app(Session(paths), Rules(frozenset({HOST}), TOKEN), time_limit=time_limit)
        super().__init__(app, base_url=f"http://{HOST}", headers={"X-Explorer-Token": token})

    def file(self, kind):
        """The id of the last file of a kind."""
        files = self.get("/api/session").json()["files"]
        return [file["id"] for file in files if file["kind"] == kind][-1]

    def upload(self, name, content):
        return self.post(f"/api/files?name={name}", content=content)

    def work(self, task, **arguments):
        """Do a task and return the job when it has ended."""
        answer = self.post("/api/jobs", json={"task": task, "arguments": arguments})
        assert answer.status_code == 200, answer.text
        job = answer.json()
        while job["state"] in ("waiting", "running"):
            job = self.get(f"/api/jobs/{job['id']}", params={"seen": job["message"]}).json()
        return job

    def result(self, task, **arguments):
        job = self.work(task, **arguments)
        assert job["state"] == "done", job
        return job["result"]
