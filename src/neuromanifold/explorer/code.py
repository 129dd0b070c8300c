"""What a view answers: a result, and the Python and the command that give the same."""

import shlex
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from neuromanifold.architecture import Architecture, Readout

IMPORT = "import neuromanifold as nm"


def shown(python: str, command: str) -> dict[str, str]:
    """What a view shows below its answer."""
    return {"python": python, "command": command}


def printed(result: Any, expression: str, command: str) -> dict[str, Any]:
    """A result, its sentence, and the code that prints it."""
    code = shown(f"{IMPORT}\nprint({expression})", command)
    return {**result.to_dict(), "sentence": str(result), "code": code}


def architecture_python(architecture: Architecture) -> str:
    """The call that makes the network, its defaults left out.

    >>> architecture_python(Architecture((4, 3), (2,), 3, "softmax"))
    "nm.Architecture(widths=(4, 3), ranks=(2,), tokens=3, attention='softmax')"
    """
    given = ", ".join(f"{name}={value!r}" for name, value in _given(architecture).items())
    return f"nm.Architecture({given})"


def architecture_options(architecture: Architecture) -> str:
    """The options of the command line that name the network.

    >>> architecture_options(Architecture((4, 3), (2,), 3, "softmax"))
    '--widths 4,3 --ranks 2 --tokens 3 --attention softmax'
    """
    return " ".join(
        f"--{name.replace('_', '-')} {_option(value)}"
        for name, value in _given(architecture).items()
    )


def readout_python(readout: Readout) -> str:
    """The argument for a readout, nothing for the usual one."""
    return "" if readout == "logits" else f", readout={readout!r}"


def readout_option(readout: Readout) -> str:
    """The option for a readout, nothing for the usual one."""
    return "" if readout == "logits" else f" --readout {readout}"


def file_word(name: str) -> str:
    """A name or a condition as one word of the shell.

    >>> print(file_word("attention == 'softmax'"))
    "attention == 'softmax'"
    """
    if "'" in name and not set('"$`\\!').intersection(name):
        return f'"{name}"'
    return shlex.quote(name)


def _given(architecture: Architecture) -> Mapping[str, object]:
    return {
        field.name: getattr(architecture, field.name)
        for field in fields(architecture)
        if getattr(architecture, field.name) != field.default
    }


def _option(value: object) -> str:
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
