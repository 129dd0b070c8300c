"""A certificate survives its file, and one that says something strange is refused in a sentence."""

import json

import numpy as np
import pytest

import neuromanifold as nm
from neuromanifold.architecture import Architecture
from neuromanifold.certificates.certificate import Certificate, _checksum, load_certificate
from neuromanifold.certificates.exact import certify
from neuromanifold.cost import Cost, TooLargeError
from neuromanifold.errors import ArgumentError, FileFormatError

SMALL = Architecture((2, 2), (1,), 2)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("certificate") / "c.json"
    certify(SMALL).save(path)
    return path.read_text()


def test_a_certificate_survives_its_file(tmp_path):
    certificate = certify(Architecture((3, 3), (2,), 3, "softmax"), seed=4)
    certificate.save(tmp_path / "c.json")
    assert load_certificate(tmp_path / "c.json") == certificate


def signed(text, **changes):
    """The certificate with other fields and a checksum that fits them."""
    data = {**json.loads(text), **changes}
    del data["checksum"]
    return {**data, "checksum": _checksum(data)}


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda text: text[: len(text) // 2], "not valid JSON .* cut short"),
        (lambda text: text.replace('"upper": 6', '"upper": 9'), "was edited"),
        (lambda text: text.replace('"version": ', '"version": 9'), "format version 9"),
        (lambda text: text.replace("neuromanifold certificate", "x"), "no certificate"),
        (lambda _: "[]", "no certificate"),
        (lambda _: "[" * 100_000, "nested more than 32 deep"),
        (lambda _: '{"a": ' * 40 + "1" + "}" * 40, "nested more than 32 deep"),
        (lambda _: "9" * 6000, "a number of 6000 digits"),
        (lambda _: '{"seed": ' + "9" * 6000 + "}", "a number of 6000 digits"),
        (lambda _: '{"seconds": 1e999}', "not finite"),
        (lambda _: '{"seconds": NaN}', "not finite"),
        (lambda _: r'{"format": "\ud800"}', "lone surrogate"),
        (lambda _: '{"format": 1, "format": 2}', "has the field 'format' twice"),
        (lambda text: text.encode().replace(b"lightning", b"\xff"), "not valid JSON"),
        (lambda _: b"", "not valid JSON"),
        (lambda _: b" " * (2**24 + 1), "more than 16777216 bytes"),
    ],
)
def test_a_file_that_is_no_certificate_is_refused_with_the_reason(text, tmp_path, damage, sentence):
    path = tmp_path / "c.json"
    content = damage(text)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(FileFormatError, match=sentence) as caught:
        load_certificate(path)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"verdict": "bounds"}, "contradicts itself: its verdict is 'bounds'"),
        ({"unexplained": 1}, "contradicts itself: its unexplained is 1"),
        ({"unexplained": False}, "contradicts itself: its unexplained is False"),
        ({"note": "trust me"}, "unknown field 'note'"),
        ({"symmetries": [{"name": "x", "dimension": 1, "why": 2}]}, "unknown field 'why'"),
        ({"symmetries": [{"name": "x"}]}, r"lacks the field 'dimension' of symmetries\[0\]"),
        ({"symmetries": 3}, "symmetries must be a list"),
        ({"symmetries": [[]]}, r"symmetries\[0\] must be an object"),
        ({"upper": "6"}, "upper must be a whole number; got '6'"),
        ({"upper": True}, "upper must be a whole number; got True"),
        ({"upper": -1}, "upper must be a number between 0 and 2"),
        ({"inputs": 2**63}, "inputs must be a number between 0 and 2"),
        ({"user_symmetries": 0}, "user_symmetries must be true or false"),
        ({"readout": "loss"}, "readout must be one of logits"),
        ({"architecture": {"widths": [2], "ranks": [], "tokens": 1}}, "at least two sizes"),
        ({"architecture": {"widths": [10**13, 2], "ranks": [1], "tokens": 1}}, "at most"),
        ({"architecture": 5}, "its architecture is none"),
        ({"versions": {"jax": 1}}, "versions.jax must be a text"),
        ({"seconds": "long"}, "seconds must be a number"),
        ({"function": {"name": "f"}}, "lacks the field 'fingerprint'"),
        ({"upper_source": "x" * 20_000}, "at most 10000 characters"),
    ],
)
def test_a_field_of_another_kind_is_refused_by_name(text, changes, sentence):
    with pytest.raises(FileFormatError, match=sentence) as caught:
        Certificate.from_dict(signed(text, **changes))
    assert len(str(caught.value)) < 400


def test_a_certificate_without_a_field_is_refused(text):
    data = json.loads(text)
    for key in set(data) - {"format", "version", "checksum"}:
        rest = {name: value for name, value in data.items() if name not in (key, "checksum")}
        with pytest.raises(FileFormatError, match=f"{key}"):
            Certificate.from_dict({**rest, "checksum": _checksum(rest)})


def plain(w, x):
    return w["second"] @ w["first"] @ x


PLAIN = nm.network(plain, {"first": np.zeros((2, 3)), "second": np.zeros((1, 2))}, np.zeros(3))


@pytest.mark.parametrize(
    ("changes", "option"),
    [
        ({"readout": "probabilities"}, None),
        ({"probable": {"points": 3, "primes": 2, "error": 1e-300}}, None),
        ({"probable": {"points": 3, "primes": 2, "error": 1e-300}}, 8388587),
        ({"upper": 3, "unexplained": 0, "verdict": "exact", "probable": None}, None),
        ({"symmetries": [{"name": "hidden", "dimension": 5}]}, None),
        ({"obligations": [{"name": "roots", "columns": 1, "rank": 1, "relations": 0}]}, None),
    ],
)
def test_a_forged_certificate_is_refuted(changes, option):
    text = json.dumps(certify(PLAIN).to_dict())
    assert nm.verify(Certificate.from_dict(json.loads(text)), PLAIN, prime=option).agrees
    forged = Certificate.from_dict(signed(text, **changes))
    assert not nm.verify(forged, PLAIN, prime=option).agrees


@pytest.mark.usefixtures("wrong_types")
def test_what_no_certificate_is_about_is_refused():
    with pytest.raises(ArgumentError, match="a certificate was wanted; got str: certify makes"):
        nm.verify("dimension.json")
    own = certify(Architecture((3, 2), (2,), 3))
    with pytest.raises(ArgumentError, match="another network was given"):
        nm.verify(own, PLAIN)
    many = signed(json.dumps(own.to_dict()), inputs=2**60)
    with pytest.raises(ArgumentError, match="claims 1152921504606846976 inputs"):
        nm.verify(Certificate.from_dict(many))


@pytest.mark.parametrize(
    "sizes",
    [
        {"widths": [2**31, 2**31], "ranks": [2**31]},
        {"tokens": 2**31, "attention": "softmax"},
        {"heads": 2**31},
        {"heads": 1000},
        {"tokens": 500, "attention": "softmax"},
    ],
    ids=str,
)
def test_sizes_that_no_machine_holds_are_refused_before_anything_is_made(text, sizes):
    architecture = {**json.loads(text)["architecture"], **sizes}
    forged = Certificate.from_dict(signed(text, architecture=architecture))
    with pytest.raises(TooLargeError, match="verifying would take about"):
        nm.verify(forged)


def test_a_verification_may_be_allowed_less(text):
    certificate = Certificate.from_dict(json.loads(text))
    with pytest.raises(TooLargeError, match="are allowed"):
        nm.verify(certificate, limits=Cost(2**40, 1e-3))
    assert nm.verify(certificate, limits=Cost(2**40, 3600)).agrees
