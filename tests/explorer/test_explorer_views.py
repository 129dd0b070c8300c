"""What the views answer is what the library answers, and so is the code they show."""

import io
import json
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from explorers import Explorer

import neuromanifold as nm
from checkpoints.models import make_model
from neuromanifold.atlas.grid import Grid
from neuromanifold.atlas.record import Record
from neuromanifold.atlas.shipped import shipped
from neuromanifold.atlas.store import open_for_writing
from neuromanifold.atlas.tasks import Task
from neuromanifold.checkpoints.audits.audit import audit
from neuromanifold.checkpoints.checkpoint import open_checkpoint
from neuromanifold.cli import main
from neuromanifold.explorer.code import architecture_options, architecture_python
from neuromanifold.statements import STATEMENTS

SMALL = nm.Architecture(widths=(3, 2), ranks=(2,), tokens=3)
SOFTMAX = nm.Architecture((3, 2), (2,), 4, "softmax", heads=2, value_ranks=(2,))


def record(architecture, rank, **fields):
    return Record(
        Task(architecture, "logits", 0, 8388593),
        rank,
        rank,
        "symmetries",
        True,
        "exact",
        **fields,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two weights of one function, another, and a certificate."""
    folder = tmp_path_factory.mktemp("explorer")
    weights = nm.random_weights(SOFTMAX, 0)
    nm.save_weights(weights, folder / "a.safetensors")
    nm.save_weights(nm.sample_fiber(weights, 1).points[0], folder / "b.safetensors")
    nm.save_weights(nm.random_weights(SOFTMAX, 1), folder / "c.safetensors")
    nm.certify(SMALL).save(folder / "certificate.json")
    return folder


@pytest.fixture(scope="module")
def explorer(folder):
    with Explorer(*sorted(folder.iterdir())) as client:
        yield client


def files(explorer, **names):
    known = {file["name"]: file["id"] for file in explorer.get("/api/session").json()["files"]}
    return {key: known[name] for key, name in names.items()}


def printed(python):
    """What the Python that a view shows prints."""
    output = io.StringIO()
    with redirect_stdout(output):
        exec(compile(python, "shown", "exec"), {})
    return output.getvalue()


def commanded(command, capsys):
    """What the commands that a view shows print, all of them."""
    capsys.readouterr()
    for line in command.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "neuromanifold"
        main(arguments)
    return capsys.readouterr().out


def test_the_network_is_described_as_the_library_does(explorer, capsys):
    for architecture in (SMALL, SOFTMAX, nm.Architecture((2, 2, 2), (1, 2), 2, skip="residual")):
        for readout in ("logits", "probabilities"):
            body = {"architecture": architecture.to_dict(), "readout": readout}
            answer = explorer.post("/api/network", json=body).json()
            formula = nm.dimension_formula(architecture, readout)
            assert answer["formula"]["dimension"] == formula.dimension
            assert printed(answer["code"]["python"]) == f"{formula}\n"
            assert str(formula) in commanded(answer["code"]["command"], capsys)
            if formula.dimension is not None:
                shares = sum(share["dimension"] for share in answer["shares"])
                assert shares + formula.dimension == architecture.parameters


@pytest.mark.parametrize("architecture", [SMALL, SOFTMAX], ids=str)
def test_the_words_of_an_architecture_give_it_back(architecture):
    assert eval(architecture_python(architecture), {"nm": nm}) == architecture
    assert architecture_options(architecture).startswith("--widths 3,2 --ranks 2")


def test_the_diagram_is_that_of_the_network_and_its_symmetries_are_the_shares(explorer):
    net = nm.Architecture((4, 2, 3), (2, 2), 3, value_ranks=(2, 2), heads=2)
    found = explorer.result("diagram", architecture=net.to_dict())
    assert found["svg"] == net.network.diagram.svg() != ""
    answer = explorer.post("/api/network", json={"architecture": net.to_dict()}).json()
    shares = {share["name"] for share in answer["shares"]}
    assert shares <= {one["name"] for one in found["symmetries"]}
    between = next(one for one in found["symmetries"] if one["name"] == "inter-layer")
    wanted = {f"layers.{name}" for name in ("0.output", "1.query", "1.key", "1.value")}
    assert set(between["tensors"]) == wanted
    deep = nm.Architecture((2,) * 41, (2,) * 40, 3)
    assert explorer.result("diagram", architecture=deep.to_dict())["svg"] == ""
    huge = nm.Architecture((10**9, 10**9), (10**9,), 3)
    assert explorer.work("diagram", architecture=huge.to_dict())["state"] == "refused"


MODULE = """
import jax.numpy as jnp, neuromanifold as nm
hidden, x = nm.Space("hidden", 2, nm.GL(2)), nm.Space("input <b>", 3)
block = nm.network(
    lambda w, X: w["second"] @ (w["first"] @ X),
    {"first": jnp.zeros((2, 3)), "second": jnp.zeros((3, 2))},
    jnp.zeros((3, 1)),
    spaces={"first": (hidden, x.dual), "second": (x, hidden.dual)},
    name="bottleneck",
)
broken = None
"""


def test_a_network_of_a_named_module_is_drawn_and_proved(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    with Explorer(Path("mine.py:block"), Path("mine.py:broken")) as explorer:
        mine = {"files": files(explorer, network="mine.py:block")}
        drawn = explorer.result("diagram-module", **mine)
        assert (drawn["name"], drawn["parameters"]) == ("bottleneck", 12)
        assert "data-space='input &lt;b&gt;'" in drawn["svg"]
        assert drawn["proof"]["offered"]
        found = explorer.result("prove-module", **mine)
        assert (found["certificate"]["lower"], found["certificate"]["upper"]) == (8, 8)
        assert printed(found["code"]["python"]) == found["sentence"] + "\n"
        (tmp_path / "certificate.json").unlink()
        assert found["sentence"] in commanded(found["code"]["command"], capsys)
        broken = {"files": files(explorer, network="mine.py:broken")}
        assert explorer.work("diagram-module", **broken)["state"] == "refused"


def test_a_proof_gives_the_certificate_and_its_verification(
    explorer, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    found = explorer.result("prove", architecture=SMALL.to_dict(), seed=3)
    expected = nm.certify(SMALL, seed=3)
    assert found["sentence"] == str(expected)
    assert found["certificate"]["seed"] == 3
    assert printed(found["code"]["python"]) == f"{expected}\n"
    (tmp_path / "certificate.json").unlink()
    assert str(expected) in commanded(found["code"]["command"], capsys)
    kept = explorer.upload("mine.json", found["file"]).json()
    verified = explorer.result("verify", files={"certificate": kept["id"]})
    assert verified["agrees"]
    assert verified["sentence"] == str(nm.verify(expected))


def test_a_forged_certificate_is_refused(explorer, folder):
    forged = json.loads((folder / "certificate.json").read_text()) | {"lower": 1}
    kept = explorer.upload("forged.json", json.dumps(forged)).json()
    job = explorer.work("verify", files={"certificate": kept["id"]})
    assert job["state"] == "refused"
    assert job["message"].startswith("forged.json: the certificate was edited")


def test_a_network_that_is_too_large_is_not_proved(explorer):
    large = nm.Architecture((640,) * 5, (640,) * 4, 3)
    job = explorer.work("prove", architecture=large.to_dict())
    assert job["state"] == "refused"
    assert "more than is started from this page" in job["message"]
    described = explorer.post("/api/network", json={"architecture": large.to_dict()}).json()
    assert not described["proof"]["offered"]


def test_along_a_walk_the_weights_change_and_the_function_does_not(
    explorer, capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    found = explorer.result("walk", architecture=SOFTMAX.to_dict(), steps=6, condition=4)
    assert len(found["deviations"]) == 7
    assert max(found["deviations"]) < 1e-12
    moved = {panel["title"]: panel for panel in found["panels"]}
    for name in ("A = KᵀQ · layer 0, head 0", "attention pattern · layer 0, head 1"):
        assert moved[name]["stays"]
    for letter in "QKVO":
        assert not moved[f"{letter} · layer 0, head 0"]["stays"]
        assert moved[f"{letter} · layer 0, head 0"]["change"] > 0.05
    assert moved["outputs at one input"]["stays"]
    assert printed(found["code"]["python"]) == found["sentence"] + "\n"
    assert found["sentence"] in commanded(found["code"]["command"], capsys)


def test_a_lightning_layer_keeps_its_attention_matrix_up_to_scale(explorer):
    found = explorer.result("walk", architecture=SMALL.to_dict(), steps=4, seed=1)
    panel = next(one for one in found["panels"] if one["title"].startswith("A = "))
    assert panel["stays_up_to_scale"]
    assert not panel["stays"]


def test_two_files_are_compared_as_the_library_does(explorer, folder, monkeypatch):
    monkeypatch.chdir(folder)
    same = explorer.result(
        "same", files=files(explorer, first="a.safetensors", second="b.safetensors")
    )
    assert same["verdict"] == "same"
    assert same["transport"] is not None
    assert printed(same["code"]["python"]) == same["sentence"] + "\n"
    other = explorer.result(
        "same", files=files(explorer, first="a.safetensors", second="c.safetensors")
    )
    assert other["verdict"] == "different"
    witness, weights = other["witness"], nm.load_weights("a.safetensors")
    X = np.array(witness["input"])
    np.testing.assert_allclose(
        nm.attention(weights, X), witness["outputs"][0], rtol=1e-4, atol=1e-5
    )
    walked = explorer.result(
        "walk-files", files=files(explorer, first="a.safetensors", second="c.safetensors")
    )
    assert not walked["found"]
    assert "no symmetry" in walked["sentence"]


def test_a_point_of_the_umbrella_says_what_it_is(explorer):
    surface = explorer.result("surface", slice="umbrella")
    assert surface["equation"] == "-s*b^2 + c^2"
    assert surface["equation_error"] < 1e-12
    (pinch,) = surface["points"]
    cases = {
        "boundary": pinch["at"],
        "singular": [0.5, 0, 0],
        "closure": [-0.5, 0, 0],
        "outside": [0.5, 0.5, 0.9],
        "smooth": [0.25, 0.5, 0.25],
    }
    for kind, point in cases.items():
        found = explorer.result("point", slice="umbrella", point=point)
        assert found["kind"] == kind, (kind, found["sentence"])
        assert printed(found["code"]["python"]).startswith("-s*b^2 + c^2\n")
    bad = explorer.work("point", slice="umbrella", point=[0, "x", 0])
    assert bad["state"] == "refused"


def test_an_atlas_is_shown_cell_by_cell(tmp_path):
    path = tmp_path / "small.sqlite"
    fields = {"widths": [[2, 2]], "ranks": [[1], [2]], "tokens": 2}
    grid = Grid.from_dict({"architecture": fields})
    networks = [
        nm.Architecture((2, 2), (rank,), 2, heads=heads) for rank in (1, 2) for heads in (1, 2)
    ]
    with open_for_writing(path) as store:
        store.begin_sweep(grid, 4, 0)
        store.add([record(net, 5 + i, formula=5) for i, net in enumerate(networks)], grid, 1.0)
    with Explorer(path) as explorer:
        asked = {"files": {"atlas": explorer.file("atlas")}, "x": "ranks", "y": "heads"}
        found = explorer.result("atlas", **asked)
        assert found["count"] == found["done"] == 4
        cells = {(cell["x"], cell["y"]): cell["low"] for cell in found["cells"]}
        assert cells == {("1", "1"): 5, ("1", "2"): 6, ("2", "1"): 7, ("2", "2"): 8}
        chosen = explorer.result("atlas", **asked, cell=["2", "1"], value="difference")
        (row,) = chosen["rows"]
        assert row["network"] == networks[2].name
        assert nm.Architecture.from_dict(row["architecture"]) == networks[2]
        assert explorer.result("atlas", **asked, where="heads > 1")["count"] == 2
        bad = explorer.work("atlas", **asked, where="__import__('os')")
        assert bad["state"] == "refused"


def test_a_model_is_audited_as_the_library_does(tmp_path, monkeypatch):
    model = make_model(tmp_path / "model", "llama")
    monkeypatch.chdir(tmp_path)
    with Explorer(tmp_path / "model") as explorer:
        found = explorer.result("audit", files={"model": explorer.file("checkpoint")})
        assert printed(found["code"]["python"]) == found["sentence"] + "\n"
    expected = audit(open_checkpoint(model))
    assert found["redundant"] == expected.redundant
    assert sum(part["dimension"] for part in found["parts"]) == expected.redundant
    assert len(found["heads"]) == len(expected.heads) == 8
    assert found["heads"][3]["query_key"]["rank"] == expected.heads[3].query_key.rank


def test_two_models_are_compared_head_by_head(tmp_path, monkeypatch):
    for seed, name in enumerate(("a", "b")):
        make_model(tmp_path / name, "gpt2", seed)
    monkeypatch.chdir(tmp_path)
    with Explorer(Path("a"), Path("b")) as explorer:
        found = explorer.result("compare", files=files(explorer, first="a", second="b"))
        same = explorer.result("compare", files=files(explorer, first="a", second="a"))
        assert printed(found["code"]["python"]) == found["sentence"] + "\n"
    expected = nm.compare("a", "b")
    assert [layer["scores"] for layer in found["layers"]] == [
        list(layer.scores) for layer in expected.layers
    ]
    assert all(layer["unchanged"] for layer in same["layers"])


def test_a_shipped_table_is_there_and_can_be_named(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Explorer(Path("heads")) as explorer:
        listed = explorer.get("/api/session").json()["files"]
        assert [(one["name"], one["origin"]) for one in listed][-1] == ("heads", "named")
        assert {one["name"] for one in listed if one["origin"] == "shipped"} == set(
            shipped("tables")
        )
        asked = {"files": {"atlas": explorer.file("atlas")}, "where": "attention == 'softmax'"}
        found = explorer.result("atlas", **asked)
        assert found["count"] == 510
        assert printed(found["code"]["python"]) == "510\n"
        assert "510 records drawn" in commanded(found["code"]["command"], capsys)
        for cell in (3, "ab", [1, 2], ["1"]):
            assert explorer.work("atlas", **asked, cell=cell)["state"] == "refused"
        kept = explorer.upload("mine.csv", shipped("tables")["paper"].read_bytes()).json()
        assert explorer.result("atlas", files={"atlas": kept["id"]})["count"] == 784


def test_every_statement_is_listed_with_the_verdict_of_a_report(explorer):
    listed = explorer.get("/api/statements").json()["statements"]
    assert [one["id"] for one in listed] == [one.id for one in STATEMENTS]
    results = {"statements": [{"id": "thm-3.2", "verdict": "holds", "checked": "<b>all</b>"}]}
    kept = explorer.upload("results.json", json.dumps(results)).json()
    listed = explorer.get("/api/statements", params={"file": kept["id"]}).json()["statements"]
    verdicts = {one["id"]: one["report"] for one in listed}
    assert verdicts["thm-3.2"] == {"verdict": "holds", "checked": "<b>all</b>"}
    assert verdicts["thm-3.7"] is None
    for broken in (
        {"statements": [3]},
        {"statements": [{"id": "x", "verdict": "y", "checked": ""}]},
    ):
        kept = explorer.upload("results.json", json.dumps(broken)).json()
        assert explorer.get("/api/statements", params={"file": kept["id"]}).status_code == 400


def test_a_statement_is_checked_by_computation(explorer):
    found = explorer.result("check", id="lemma-3.1")
    assert found["verdict"] == "holds"
    assert found["evidence"]["cases"] > 0
