"""A certificate survives its file, and a damaged one is refused with the reason."""

import json

import pytest

from neuromanifold.architecture import Architecture
from neuromanifold.certificates.certificate import Certificate, load_certificate
from neuromanifold.certificates.exact import certify
from neuromanifold.errors import FileFormatError

SMALL = Architecture((2, 2), (1,), 2)


def test_a_certificate_survives_its_file(tmp_path):
    certificate = certify(Architecture((3, 3), (2,), 3, "softmax"), seed=4)
    certificate.save(tmp_path / "c.json")
    assert load_certificate(tmp_path / "c.json") == certificate


def broken(text, change):
    data = json.loads(text)
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda text: text[: len(text) // 2], "not valid JSON .* cut short"),
        (lambda text: broken(text, lambda d: d.update(lower=99)), "was edited"),
        (lambda text: broken(text, lambda d: d.update(version=2)), "format version 2"),
        (lambda text: broken(text, lambda d: d.pop("format")), "no certificate"),
        (lambda _: "[]", "no certificate"),
    ],
)
def test_damaged_certificates_are_refused_with_the_reason(tmp_path, damage, sentence):
    path = tmp_path / "c.json"
    certify(SMALL).save(path)
    path.write_text(damage(path.read_text()))
    with pytest.raises(FileFormatError, match=sentence):
        load_certificate(path)


def test_a_certificate_without_a_field_is_refused(tmp_path):
    from neuromanifold.certificates.certificate import _checksum

    data = certify(SMALL).to_dict()
    del data["inputs"], data["checksum"]
    with pytest.raises(FileFormatError, match="lacks a field"):
        Certificate.from_dict({**data, "checksum": _checksum(data)})
