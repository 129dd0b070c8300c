import pickle
import time
import tracemalloc
import zipfile

import numpy as np
import pytest

from checkpoints.torch_files import (
    BFLOAT16,
    MAGIC,
    legacy,
    memory,
    number,
    programs,
    state_dict,
    tensor,
    word,
    zipped,
)
from neuromanifold.checkpoints.reading import open_model
from neuromanifold.errors import FileFormatError

RANDOM = np.random.default_rng(0)
ARRAYS = {
    "a": RANDOM.normal(size=(3, 4)).astype(np.float32),
    "b": RANDOM.normal(size=(5,)),
    "c": RANDOM.normal(size=(2, 3)).astype(BFLOAT16),
    "d": RANDOM.normal(size=(4, 2)).astype(np.float16).T,
    "e": np.arange(6).reshape(2, 3),
    "f": np.array(2.5),
    "g": np.array([True, False]),
    "h": np.zeros((0, 3), np.float32),
}
STORAGES = [memory(array) for array in ARRAYS.values()]
COUNTS = [array.size for array in ARRAYS.values()]


def refusal(tmp_path, content, name="model.bin"):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileFormatError) as error:
        open_model(tmp_path / name)
    sentence = str(error.value)
    assert "\n" not in sentence
    assert len(sentence) < 400
    return sentence


@pytest.mark.parametrize("form", ["zip", "legacy", "checkpoint"])
def test_every_value_is_read_as_it_was_written(tmp_path, form):
    body = state_dict(programs(ARRAYS, legacy=form == "legacy"))
    if form == "checkpoint":
        body = b"}(" + word("epoch") + number(3) + word("state_dict") + body + b"u"
    content = legacy(body, STORAGES, COUNTS) if form == "legacy" else zipped(body, STORAGES)
    (tmp_path / "model.bin").write_bytes(content)
    model = open_model(tmp_path / "model.bin")
    assert model.names == tuple(ARRAYS)
    for name, array in ARRAYS.items():
        assert model.dtype(name) == array.dtype
        assert model.shape(name) == array.shape
        np.testing.assert_array_equal(model.tensor(name), array)
    assert bool(model.notes) == (form == "checkpoint")


class Evil:
    def __reduce__(self):
        return eval, ("1 + 1",)


def test_code_in_a_pickle_is_refused_by_name_and_not_run(tmp_path):
    for protocol in range(6):
        content = pickle.dumps({"weight": Evil()}, protocol)[2 if protocol > 1 else 0 :]
        assert ".eval, which is code" in refusal(tmp_path, zipped(content[:-1]))
    marker = tmp_path / "marker"
    calls = {
        "INST": b"(" + word(f"touch {marker}") + b"ios\nsystem\n",
        "os.system": b"(cos\nsystem\n" + word(f"touch {marker}") + b"o",
        "OBJ": b"(ccollections\nOrderedDict\no",
        "posix.system": b"cposix\nsystem\n(" + word(f"touch {marker}") + b"tR",
        "torch.storage._load_from_bytes": b"ctorch.storage\n_load_from_bytes\n(C\x01.tR",
        "NEWOBJ": b"ccollections\nOrderedDict\n)\x81",
        "EXT1": b"\x82\x01",
        "a str where a Allowed": word("print") + b")R",
    }
    for named, body in calls.items():
        assert named in refusal(tmp_path, zipped(body)), named
    assert not marker.exists()


def test_attributes_cannot_be_set_on_functions(tmp_path):
    body = b"ctorch._utils\n_rebuild_tensor_v2\n}" + word("x") + number(1) + b"sb"
    assert "where a dict was due" in refusal(tmp_path, zipped(body))


def test_forged_sizes_are_refused(tmp_path):
    storage = np.arange(4, dtype=np.float32)
    forged = {
        "reaches element 7": tensor("0", "float32", 4, (8,), (1,)),
        "reaches element 4": tensor("0", "float32", 4, (4,), (1,), offset=1),
        "negative": tensor("0", "float32", 4, (4,), (-1,)),
        "that repeats them": tensor("0", "float32", 4, (1 << 40, 1 << 40), (0, 0)),
        "16 bytes and the pickle says 1099511627776": tensor("0", "float32", 1 << 40, (4,), (1,)),
        "do not fit each other": tensor("0", "float32", 4, (4,), (1, 1)),
        "lacks the storage": tensor("7", "float32", 4, (4,), (1,)),
    }
    for reason, program in forged.items():
        content = zipped(state_dict({"w": program}), [memory(storage)])
        assert reason in refusal(tmp_path, content), reason


def test_damaged_containers_are_refused(tmp_path):
    body = state_dict(programs(ARRAYS))
    whole = zipped(body, STORAGES)
    assert "damaged zip" in refusal(tmp_path, whole[: len(whole) // 2])
    assert "compressed" in refusal(tmp_path, zipped(body, STORAGES, zipfile.ZIP_DEFLATED))
    bomb = zipped(b"}", [bytes(10_000_000)], zipfile.ZIP_DEFLATED)
    assert "compressed" in refusal(tmp_path, bomb)
    script = zipped(body, STORAGES, extra=[("archive/constants.pkl", b"")])
    assert "TorchScript" in refusal(tmp_path, script)
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = zipped(body, STORAGES, extra=[("archive/data/0", b"")])
    assert "twice" in refusal(tmp_path, twice)
    old = legacy(state_dict(programs(ARRAYS, legacy=True)), STORAGES, COUNTS)
    for length in (5, 20, 100, len(old) // 2, len(old) - 1):
        refusal(tmp_path, old[:length])
    assert "no tensor uses" in refusal(tmp_path, legacy(b"}", [b""], [0]))
    nested = legacy(b"}", [], []).removesuffix(b"(e.") + b"(]e."  # a list among the keys
    assert "no tensor uses" in refusal(tmp_path, nested)
    huge = legacy(state_dict(programs(ARRAYS, legacy=True)), STORAGES, [1 << 62, *COUNTS[1:]])
    assert "cut short" in refusal(tmp_path, huge)


def test_hostile_pickles_end(tmp_path):
    deep = b"(" * 100_000 + b"t" * 100_000
    assert "does not hold a dictionary" in refusal(tmp_path, zipped(deep))
    nested_key = b"}" + b")" + b"\x85" * 100_000 + b"Ns"
    assert "neither words nor numbers" in refusal(tmp_path, zipped(nested_key))
    far = b"}r\xff\xff\xff\xff"
    assert "does not hold a dictionary" in refusal(tmp_path, zipped(far))
    cycle = b"]q\x00h\x00a"
    assert "does not hold a dictionary" in refusal(tmp_path, zipped(cycle))
    for body in (b"0", b"t", b"(", b"\x87R", b"a", b"s", b"Q", b"h\x05", b"X\xff\xff\xff\xff"):
        refusal(tmp_path, zipped(body))


def test_forged_lengths_take_no_memory_and_forged_calls_no_time(tmp_path):
    tracemalloc.start()
    for body in (
        b"\x8d" + (1 << 62).to_bytes(8, "little"),
        b"X\xff\xff\xff\xff",
        b"\x8e" + b"\0" * 5 + b"\1\0\0",
    ):
        assert "damaged" in refusal(tmp_path, MAGIC + b"\x80\x04" + body)
    assert tracemalloc.get_traced_memory()[1] < 1e7
    tracemalloc.stop()
    # a list of n pairs that a pickle of length n makes a dictionary of n times
    n = 20_000
    pairs = b"(" + (b"(" + word("a") + b"Nt") * n + b"l"
    body = b"ccollections\nOrderedDict\nq\x010" + pairs + b"q\x000" + b"h\x01(h\x00tR0" * n + b"}"
    start = time.process_time()
    assert "does not hold a dictionary" in refusal(tmp_path, zipped(body))
    assert time.process_time() - start < 5


def test_random_damage_gives_a_sentence_or_a_model(tmp_path):
    random = np.random.default_rng(1)
    contents = [
        zipped(state_dict(programs(ARRAYS)), STORAGES),
        legacy(state_dict(programs(ARRAYS, legacy=True)), STORAGES, COUNTS),
    ]
    refused = 0
    for turn in range(300):
        damaged = bytearray(contents[turn % 2])
        for _ in range(3):
            damaged[random.integers(len(damaged))] = random.integers(256)
        (tmp_path / "model.pt").write_bytes(damaged)
        try:
            model = open_model(tmp_path / "model.pt")
            for name in model.names:
                model.stored(name).read().sum()
        except FileFormatError as error:
            assert "\n" not in str(error)  # noqa: PT017
            refused += 1
    assert 50 < refused < 300
