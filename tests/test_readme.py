"""The examples in the README print what it shows."""

import doctest
import re
import shlex
from pathlib import Path

from neuromanifold.cli import main

README = Path(__file__).parents[1] / "README.md"


def test_the_python_example_prints_what_it_shows():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    example = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "README", None, None)
    assert len(example.examples) >= 8
    result = doctest.DocTestRunner().run(example)
    assert result.failed == 0


def test_the_commands_print_what_it_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    console = "".join(re.findall(r"```console\n(\$.*?)```", README.read_text(), re.DOTALL))
    sessions = re.findall(r"^\$ neuromanifold (.*)\n((?:(?!\$).*\n)*)", console, re.MULTILINE)
    assert len(sessions) >= 3
    for command, shown in sessions:
        assert main(shlex.split(command)) == 0
        assert capsys.readouterr().out == shown, command
