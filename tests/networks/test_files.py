"""Weights files: a round trip, and one sentence for each way to be wrong."""

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from neuromanifold.architecture import Architecture
from neuromanifold.errors import FileFormatError
from neuromanifold.files import check_writable, write_file
from neuromanifold.networks.files import load_weights, save_weights
from neuromanifold.networks.weights import random_weights, unflatten

NETWORK = Architecture((3, 2), (2,), 3)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "weights.safetensors"
    save_weights(random_weights(NETWORK, 0), path)
    return path


def rewrite(path, change, header):
    tensors = change(dict(random_weights(NETWORK, 0).named_tensors()))
    metadata = None if header is None else {"architecture": header}
    path.write_bytes(safetensors.numpy.save(tensors, metadata=metadata))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_round_trip_keeps_every_bit(architecture, tmp_path, dtype):
    weights = random_weights(architecture, 1, dtype=dtype)
    path = tmp_path / "w.safetensors"
    save_weights(weights, path)
    again = load_weights(path)
    assert again.architecture == architecture
    for (name, tensor), (_, other) in zip(
        weights.named_tensors(), again.named_tensors(), strict=True
    ):
        assert tensor.dtype == other.dtype == dtype, name
        np.testing.assert_array_equal(tensor, other)
    assert [p.name for p in tmp_path.iterdir()] == ["w.safetensors"]


def test_tensors_have_the_agreed_names(file):
    assert sorted(safetensors.numpy.load_file(file)) == [
        "layers.0.key",
        "layers.0.query",
        "layers.0.value",
    ]


def test_an_existing_file_is_kept_unless_forced(file):
    before = file.read_bytes()
    with pytest.raises(FileFormatError, match="exists; give another name, or --force"):
        save_weights(random_weights(NETWORK, 1), file)
    assert file.read_bytes() == before
    save_weights(random_weights(NETWORK, 1), file, force=True)
    assert file.read_bytes() != before


def test_nothing_is_written_when_the_folder_is_missing(tmp_path):
    with pytest.raises(FileFormatError, match="does not exist; make it first"):
        write_file(tmp_path / "no" / "file", b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", [".", "/dev/null"])
def test_what_is_no_file_is_never_replaced(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "replace", pytest.fail)
    with pytest.raises(FileFormatError, match="is a folder or a device; give the name of a file"):
        write_file(path, b"x", force=True)


def test_a_folder_without_permission_is_found_before_the_computation(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere
    with pytest.raises(FileFormatError, match="cannot be written to; give another one"):
        check_writable(tmp_path / "file")


def test_weights_with_a_nan_are_not_saved(tmp_path):
    bad = unflatten(NETWORK, np.full(NETWORK.parameters, np.nan))
    with pytest.raises(FileFormatError, match="NaN or infinite"):
        save_weights(bad, tmp_path / "w")
    assert list(tmp_path.iterdir()) == []


def test_a_truncated_file_is_refused(file):
    file.write_bytes(file.read_bytes()[:-7])
    with pytest.raises(FileFormatError, match="not a readable safetensors file"):
        load_weights(file)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x04pickle", bytes(1000)])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="not a readable safetensors file"):
        load_weights(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(FileFormatError, match="is not a file"):
            load_weights(path)


def with_value(tensors, value):
    return {**tensors, "layers.0.value": value}


@pytest.mark.parametrize(
    ("change", "header", "sentence"),
    [
        (lambda t: t, None, "has no 'architecture' in its header"),
        (lambda t: t, "{", "not valid JSON"),
        (lambda t: t, json.dumps({"widths": [3, 2], "ranks": [2]}), "lacks its field 'tokens'"),
        (lambda t: t, Architecture((3, 3), (2,), 3).to_json(), r"must have shape \(1, 3, 3\)"),
        (lambda t: t, Architecture((3, 2, 2), (2, 1), 3).to_json(), "lacks the tensor layers.1"),
        (lambda t: {**t, "extra": np.zeros(1)}, NETWORK.to_json(), "holds the tensor extra"),
        (
            lambda t: with_value(t, np.full((1, 2, 3), np.inf)),
            NETWORK.to_json(),
            "layers.0.value has entries that are NaN or infinite",
        ),
        (
            lambda t: with_value(t, np.zeros((1, 2, 3), dtype=np.int64)),
            NETWORK.to_json(),
            "must be float32 or float64; got int64",
        ),
    ],
)
def test_each_kind_of_damage_is_named(tmp_path, change, header, sentence):
    path = tmp_path / "w"
    rewrite(path, change, header)
    with pytest.raises(FileFormatError, match=sentence):
        load_weights(path)
