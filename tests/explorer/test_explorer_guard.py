"""Nobody but the explorer's own page can ask it anything, and never much at once."""

import asyncio
import json
import socket
from pathlib import Path

import pytest
from explorers import HOST, TOKEN, Explorer

from neuromanifold.architecture import Architecture
from neuromanifold.errors import ArgumentError, FileFormatError
from neuromanifold.explorer.guard import QUESTION_BYTES
from neuromanifold.explorer.serve import Address, _bind, check_host
from neuromanifold.explorer.session import Session


@pytest.fixture(scope="module")
def explorer():
    with Explorer() as client:
        yield client


NETWORK = {"architecture": {"widths": [4, 2, 3], "ranks": [2, 2], "tokens": 3}}


def test_a_question_needs_the_token(explorer):
    assert explorer.get("/api/session").status_code == 200
    for token in ("", "another", TOKEN[:-1], "ü"):
        header = {"X-Explorer-Token": token.encode()}
        refused = explorer.get("/api/session", headers=header)
        assert refused.status_code == 401
        assert "neuromanifold explore" in refused.json()["error"]
    assert explorer.get(f"/api/session?token={TOKEN}", headers={"X-Explorer-Token": ""}).is_error


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:1"},
        {"host": f"{HOST}.evil.example"},
        {"host": ""},
    ],
)
def test_a_foreign_host_gets_nothing_not_even_the_page(explorer, headers):
    for path in ("/", "/api/session", "/static/js/main.js"):
        assert explorer.get(path, headers=headers).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": f"https://{HOST}"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_another_page_cannot_drive_it(explorer, headers):
    assert explorer.post("/api/network", json=NETWORK, headers=headers).status_code == 403


def test_its_own_page_can(explorer):
    headers = {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}
    answer = explorer.post("/api/network", json=NETWORK, headers=headers)
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


def test_every_answer_carries_the_content_policy(explorer):
    answers = [
        explorer.get("/"),
        explorer.get("/api/session"),
        explorer.get("/", headers={"host": "evil.example"}),
        explorer.get("/nowhere"),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "script-src 'self';" in policy
        assert "unsafe-eval" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_has_no_inline_script_and_names_no_other_machine(explorer):
    page = explorer.get("/").text
    assert page.count("<script") == page.count('<script type="module" src="/static/') == 1
    assert " on" not in page.replace(" on-", "")
    for name in ("style.css", "icon.svg", "js/main.js", "js/network.js", "js/parts.js"):
        content = explorer.get(f"/static/{name}")
        assert content.status_code == 200
        assert "https://" not in content.text
        assert "http://" not in content.text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize(
    "path", ["../server.py", "..%2Fserver.py", "/etc/passwd", "js", "", "js/../../guard.py"]
)
def test_only_files_of_the_page_are_served(explorer, path):
    assert explorer.get(f"/static/{path}").status_code == 404


def test_a_question_is_bounded_also_without_a_length(explorer):
    large = b" " * (QUESTION_BYTES + 1)
    assert explorer.post("/api/network", content=large).status_code == 413
    stream = (large[:4096] for _ in range(QUESTION_BYTES // 4096 + 2))
    assert explorer.post("/api/network", content=stream).status_code == 413


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "no valid JSON"),
        (b"[" * 100_000, "no valid JSON"),
        (b"[]", "a question is a JSON object"),
        (b"{}", "an architecture is a JSON object"),
        (b'{"architecture": {"widths": [4]}}', "lacks its field"),
        (b'{"architecture": {"widths": "4", "ranks": [1], "tokens": 1}}', "list of whole numbers"),
    ],
)
def test_a_wrong_question_gets_one_sentence(explorer, body, sentence):
    answer = explorer.post("/api/network", content=body)
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]


def test_a_path_from_the_page_is_never_opened(explorer, tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text("{}")
    for id_ in (str(secret), "../secret.json", None, {"path": str(secret)}, ["x"]):
        question = {"task": "verify", "arguments": {"files": {"certificate": id_}}}
        answer = explorer.post("/api/jobs", json=question)
        assert answer.status_code == 400
        assert "not part of the session" in answer.json()["error"]


def test_a_file_must_be_of_the_kind_that_a_task_needs(explorer):
    kept = explorer.upload("c.json", json.dumps({"format": "neuromanifold certificate"})).json()
    assert kept["kind"] == "certificate"
    assert "path" not in kept
    question = {"task": "atlas", "arguments": {"files": {"atlas": kept["id"]}}}
    answer = explorer.post("/api/jobs", json=question)
    assert "a file of the kind atlas was wanted" in answer.json()["error"]


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", b"{", b'{"a": 1}', b"[" * 50_000, b"\xff" * 40, (9**8).to_bytes(8, "little")],
)
def test_an_unknown_file_is_refused_and_not_kept(explorer, content):
    before = explorer.get("/api/session").json()["files"]
    answer = explorer.upload("x", content)
    assert answer.status_code == 400
    assert explorer.get("/api/session").json()["files"] == before


def test_unknown_tasks_and_jobs_are_refused(explorer):
    for task in ("os.system", "", None, 3):
        assert explorer.post("/api/jobs", json={"task": task}).status_code == 400
    assert explorer.get("/api/jobs/none").status_code == 400


def test_dropped_files_go_when_the_explorer_stops():
    session = Session()
    kept = session.receive("../../w.json", b'{"format": "x"}')
    assert kept.name == "w.json"
    assert kept.path.exists()
    session.close()
    assert not kept.path.exists()


def test_a_full_disk_is_a_sentence_and_keeps_no_half_of_a_file(monkeypatch):
    def full(path, content):
        with path.open("xb") as file:
            file.write(content[:1])
        raise OSError(28, "No space left on device", str(path))

    session = Session()
    with monkeypatch.context() as disk:
        disk.setattr(Path, "write_bytes", full)
        with pytest.raises(ArgumentError, match=r"^c.json cannot be kept: No space left on device"):
            session.receive("c.json", b'{"format": 1}')
    assert list(Path(session._folder.name).iterdir()) == []
    assert session.receive("c.json", b'{"format": 1}').kind == "certificate"
    session.close()


def test_who_leaves_in_the_middle_of_a_question_is_no_error(explorer):
    async def left():
        return {"type": "http.disconnect"}

    async def send(message):
        pytest.fail(f"nobody is there for {message}")

    headers = [(b"host", HOST.encode()), (b"x-explorer-token", TOKEN.encode())]
    place = {"path": "/api/network", "query_string": b"", "root_path": ""}
    scope = {"type": "http", "method": "POST", "headers": headers, **place}
    asyncio.run(explorer.app(scope, left, send))


def test_dropped_files_are_bounded_all_together(monkeypatch):
    monkeypatch.setattr("neuromanifold.explorer.session.LARGEST_TOTAL", 20)
    session = Session()
    session.receive("a", b'{"format": "x"}')
    with pytest.raises(ArgumentError, match="of files; name large ones"):
        session.receive("b", b'{"format": "x"}')
    session.close()


@pytest.mark.parametrize("name", ["nothing", "nothing.py:f", ":", "x:"])
def test_a_file_that_does_not_exist_is_refused(tmp_path, name):
    with pytest.raises(FileFormatError, match="does not exist"):
        Session((tmp_path / name,))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_it_does_not_bind_to_every_address(host):
    with pytest.raises(ArgumentError, match="stands for every address"):
        check_host(host)


def test_the_address_says_who_may_ask():
    address = Address("127.0.0.1", 8642, "t" * 16)
    assert address.rules.hosts == {"127.0.0.1:8642", "localhost:8642"}
    assert address.url.startswith("http://127.0.0.1:8642/?token=tttt")
    assert Address("::1", 8642, "t").rules.hosts == {"[::1]:8642"}


def test_an_architecture_of_any_size_is_described_without_arrays(explorer):
    wide = Architecture((10**9, 10**9), (10**9,), 3).to_dict()
    answer = explorer.post("/api/network", json={"architecture": wide})
    assert answer.json()["parameters"] == str(3 * 10**18)
    assert not answer.json()["proof"]["offered"]
    deep = Architecture((2,) * 401, (2,) * 400, 3).to_dict()
    assert explorer.post("/api/network", json={"architecture": deep}).status_code == 200


def test_a_port_that_is_announced_is_open_and_taken():
    first = _bind("127.0.0.1", None)
    port = first.getsockname()[1]
    with first, socket.create_connection(("127.0.0.1", port), timeout=5):
        with pytest.raises(ArgumentError, match="cannot be taken"):
            _bind("127.0.0.1", port)
        with _bind("127.0.0.1", None) as second:
            assert second.getsockname()[1] != port
