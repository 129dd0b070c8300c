"""The core works without the packages of the extras, and says in a sentence what is missing."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from neuromanifold.extras import _EXTRAS, missing_extra

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]

HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
"""


def run(code, names=tuple(_EXTRAS)):
    """A Python without the packages of all extras."""
    code = HIDE.format(names=set(names)) + code
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_core_needs_none_of_them():
    found = run(
        "import neuromanifold as nm\n"
        "net = nm.Architecture((3, 2), (2,), 3)\n"
        "print(nm.certify(net))\n"
        "print(nm.same_function(*[nm.random_weights(net, 0)] * 2).verdict)\n"
        "from neuromanifold.cli import main\n"
        "sys.exit(main(['explain', '--widths', '3,2', '--ranks', '2', '--tokens', '3']))"
    )
    assert found.returncode == 0, found.stderr
    assert "the dimension is 13 (exact" in found.stdout


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (["paper", "--quick", "--only", "fig-1"], "matplotlib", "figures"),
        (["explore", "--no-browser"], "starlette", "explorer"),
    ],
)
def test_a_command_without_its_extra_ends_with_one_sentence(arguments, package, extra, tmp_path):
    arguments = [*arguments, *(["--out", str(tmp_path / "out")] if arguments[0] == "paper" else [])]
    found = run(f"from neuromanifold.cli import main\nsys.exit(main({arguments!r}))")
    assert found.returncode == 2
    assert found.stderr == (
        f"neuromanifold: this needs the package {package}, which is not installed: "
        f"pip install 'neuromanifold[{extra}]'\n"
    )


def test_every_extra_that_is_named_brings_its_package():
    extras = PROJECT["optional-dependencies"]

    def packages(extra):
        for line in extras[extra]:
            if line.startswith("neuromanifold["):
                for inner in line.removeprefix("neuromanifold[").rstrip("]").split(","):
                    yield from packages(inner)
            else:
                yield line.partition(">")[0].partition("[")[0]

    for package, extra in _EXTRAS.items():
        brought = "dask" if package == "distributed" else package
        assert brought in set(packages(extra)), (package, extra)
        assert brought in set(packages("all")), package
    core = {line.partition(">")[0].partition("[")[0] for line in PROJECT["dependencies"]}
    assert not core & set(_EXTRAS)


def test_another_missing_module_is_no_missing_extra():
    assert missing_extra(ModuleNotFoundError("No module named 'x'", name="x")) is None
