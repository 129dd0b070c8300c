import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from neuromanifold.checkpoints.reading import open_model
from neuromanifold.checkpoints.writing import write_model, write_safetensors
from neuromanifold.errors import FileFormatError, WeightsError

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
RANDOM = np.random.default_rng(0)
ARRAYS = {
    "a": RANDOM.normal(size=(3, 4)).astype(np.float32),
    "b": RANDOM.normal(size=(5,)).astype(np.float16),
    "c": RANDOM.normal(size=(2, 3)).astype(BFLOAT16),
    "d": np.arange(6).reshape(2, 3),
    "e": np.array(2.5),
    "f": np.zeros((0, 3), np.float32),
    "g": np.array([True, False]),
}


def file_of(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def refusal(path):
    with pytest.raises(FileFormatError) as error:
        open_model(path)
    sentence = str(error.value)
    assert "\n" not in sentence
    assert len(sentence) < 400
    return sentence


def write(path, arrays, metadata=None):
    layout = {name: (array.dtype, array.shape) for name, array in arrays.items()}
    write_safetensors(path, layout, arrays.__getitem__, metadata)


def test_what_is_written_is_read_here_and_by_the_reference_library(tmp_path):
    path = tmp_path / "model.safetensors"
    write(path, ARRAYS, {"format": "pt"})
    model = open_model(path)
    reference = safetensors.numpy.load_file(path)
    assert set(model.names) == set(ARRAYS) == set(reference)
    assert model.metadata == {"format": "pt"}
    assert model.parameters == 12 + 5 + 6 + 1
    for name, array in ARRAYS.items():
        assert model.dtype(name) == array.dtype
        np.testing.assert_array_equal(model.tensor(name), array)
        np.testing.assert_array_equal(reference[name], array)
    assert model.tensor("c", np.float64).dtype == np.float64


def test_what_the_reference_library_writes_is_read(tmp_path):
    safetensors.numpy.save_file(ARRAYS, tmp_path / "model.safetensors", {"key": "value"})
    model = open_model(tmp_path)
    assert model.metadata == {"key": "value"}
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(model.tensor(name), array)


FORGED = {
    "not a safetensors file": b"12345678",
    "or it is cut short": (1 << 60).to_bytes(8, "little") + b"{}",
    "does not hold JSON": file_of(b"{nonsense"),
    "must hold a JSON object": file_of(b"[1]"),
    "names a twice": file_of(b'{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{}}'),
    "needs a dtype": file_of({"a": {"dtype": "F32"}}),
    "the dtype F8_E4M3": file_of({"a": entry("F8_E4M3", (8,))}, bytes(8)),
    "the dtype ['F32']": file_of({"a": entry(["F32"])}, bytes(8)),
    "must be a list of sizes": file_of({"a": entry(shape=(-1, -2))}, bytes(8)),
    "is cut short": file_of({"a": entry()}, bytes(7)),
    "to 4951760157141521099596496994": file_of({"a": entry(shape=(1 << 45, 1 << 45))}, bytes(8)),
    "does not fill its bytes": file_of({"a": entry(offsets=(0, 4))}, bytes(8)),
    "overlap or leave a hole": file_of({"a": entry(), "b": entry()}, bytes(8)),
    "leave a hole": file_of({"a": entry(offsets=(4, 12))}, bytes(12)),
    "something was appended": file_of({"a": entry()}, bytes(9)),
    "__metadata__": file_of({"__metadata__": {"a": 1}}),
    "holds no tensors": file_of({}),
    "is empty": b"",
}


@pytest.mark.parametrize("reason", FORGED)
def test_forged_files_are_refused(tmp_path, reason):
    (tmp_path / "model.safetensors").write_bytes(FORGED[reason])
    assert reason in refusal(tmp_path)


def test_not_finite_values_are_refused_when_read(tmp_path):
    for dtype in (np.float64, np.float32, np.float16, BFLOAT16):
        for value in (np.nan, np.inf, -np.inf):
            path = tmp_path / f"{np.dtype(dtype)}{value}.safetensors"
            array = np.ones((3, 3), dtype)
            array[1, 2] = value
            write(path, {"w": array})
            with pytest.raises(FileFormatError, match="w has entries that are NaN or infinite"):
                open_model(path).tensor("w")


@pytest.fixture
def sharded(tmp_path):
    write(tmp_path / "model-00001-of-00002.safetensors", {"a": ARRAYS["a"], "b": ARRAYS["b"]})
    write(tmp_path / "model-00002-of-00002.safetensors", {"c": ARRAYS["c"]})
    where = {"a": 1, "b": 1, "c": 2}
    index = {"weight_map": {k: f"model-0000{i}-of-00002.safetensors" for k, i in where.items()}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    return tmp_path


def test_shards_are_one_model(sharded):
    for path in (sharded, sharded / "model.safetensors.index.json"):
        model = open_model(path)
        assert model.names == ("a", "b", "c")
        assert model.config == {"model_type": "llama"}
        np.testing.assert_array_equal(model.tensor("c"), ARRAYS["c"])
    assert open_model(sharded, config={"x": 1}).config == {"x": 1}
    with pytest.raises(FileFormatError, match="has no tensor q"):
        model.tensor("q")


def test_shards_that_do_not_fit_their_index_are_refused(sharded):
    second = sharded / "model-00002-of-00002.safetensors"
    index = sharded / "model.safetensors.index.json"
    text, whole = index.read_text(), second.read_bytes()
    second.write_bytes(whole[:-3])
    assert "cut short" in refusal(sharded)
    second.unlink()
    assert "model-00002-of-00002.safetensors that" in refusal(sharded)
    write(second, {"c": ARRAYS["c"], "a": ARRAYS["a"]})
    assert "the tensor a is in" in refusal(sharded)
    second.unlink()
    write(second, {"c": ARRAYS["c"], "x": ARRAYS["a"]})
    assert "does not name" in refusal(sharded)
    second.write_bytes(whole)
    index.write_text(text.replace('"c":', '"a":'))
    assert "names a twice" in refusal(sharded)
    index.write_text(text.replace('"c":', f'"x": "{second.name}", "c":'))
    assert "lacks the tensor x" in refusal(sharded)
    index.write_text(text.replace("model-00002", "../model-00002"))
    assert "not beside it" in refusal(sharded)
    for wrong in ("{}", '{"weight_map": 3}', "[]", "nonsense", '{"weight_map": {}}'):
        index.write_text(wrong)
        refusal(sharded)
    index.write_text(text)
    (sharded / "config.json").write_text("[")
    assert "does not hold JSON" in refusal(sharded)


def test_folders_without_a_clear_model_are_refused(tmp_path):
    assert "has no weights" in refusal(tmp_path)
    assert "does not exist" in refusal(tmp_path / "model")
    for name in ("a.safetensors", "b.safetensors"):
        write(tmp_path / name, ARRAYS)
    assert "2 weights files and no index" in refusal(tmp_path)
    (tmp_path / "text.txt").write_text("some text")
    assert "none of the formats" in refusal(tmp_path / "text.txt")


def test_a_model_is_written_with_some_tensors_changed(tmp_path):
    write(tmp_path / "old.safetensors", ARRAYS, {"format": "pt"})
    model = open_model(tmp_path / "old.safetensors")
    changed = {"b": lambda: np.full(5, 1 / 3), "c": lambda: np.full((2, 3), 1 / 3)}
    write_model(model, tmp_path / "new.safetensors", changed)
    new = open_model(tmp_path / "new.safetensors")
    assert new.metadata == model.metadata
    for name in model.names:
        assert new.dtype(name) == model.dtype(name)
        array = changed[name]().astype(model.dtype(name)) if name in changed else ARRAYS[name]
        np.testing.assert_array_equal(new.tensor(name), array)
    write_model(model, tmp_path / "half.safetensors", {}, dtype=BFLOAT16)
    half = open_model(tmp_path / "half.safetensors")
    assert half.dtype("a") == BFLOAT16
    assert half.dtype("d") == np.int64


def test_a_failing_write_leaves_nothing(tmp_path):
    write(tmp_path / "old.safetensors", ARRAYS)
    model = open_model(tmp_path / "old.safetensors")
    new = tmp_path / "new.safetensors"
    with pytest.raises(WeightsError, match="too large for float16"):
        write_model(model, new, {"b": lambda: np.full(5, 1e6)})
    with pytest.raises(WeightsError, match="as announced"):
        write_model(model, new, {"b": lambda: np.zeros(4)})
    with pytest.raises(ZeroDivisionError):
        write_model(model, new, {"b": lambda: np.zeros(1 // 0)})
    with pytest.raises(FileFormatError, match="no tensor x"):
        write_model(model, new, {"x": lambda: np.zeros(4)})
    with pytest.raises(FileFormatError, match="exists"):
        write_model(model, tmp_path / "old.safetensors", {})
    with pytest.raises(WeightsError, match="no dtype complex64"):
        write(new, {"a": np.zeros(3, np.complex64)})
    assert [file.name for file in tmp_path.iterdir()] == ["old.safetensors"]


def test_seven_billion_parameters_are_opened_and_read_one_tensor_at_a_time(tmp_path):
    layers, d = 32, 4096
    shapes = {f"layers.{i}": (d, 13 * d) for i in range(layers)}
    offsets = [2 * d * 13 * d * i for i in range(layers + 1)]
    header = {
        name: entry("BF16", shape, offsets[i : i + 2])
        for i, (name, shape) in enumerate(shapes.items())
    }
    path = tmp_path / "model.safetensors"
    with path.open("wb") as file:
        file.write(file_of(header))
        file.truncate(file.tell() + offsets[-1])
    model = open_model(path)
    assert model.parameters == layers * 13 * d * d
    assert not model.stored("layers.31").read()[-1, -5:].any()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for its pages")
def test_reading_a_file_leaves_none_of_it_in_memory(tmp_path):
    def mapped():
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))

    tensors = {f"t{i}": np.full((1024, 1024), i, np.float32) for i in range(16)}
    safetensors.numpy.save_file(tensors, tmp_path / "m.safetensors")
    model = open_model(tmp_path / "m.safetensors")
    before = mapped()
    assert [float(model.tensor(name)[5, 5]) for name in tensors] == list(range(16))
    assert mapped() - before < 16 * 1024  # kB, of 64 MB that were read
