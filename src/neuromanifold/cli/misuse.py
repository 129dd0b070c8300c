"""Words that fit no command: what was wanted, what came, and where it is described."""

from typing import get_args

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnusedCliTokensError,
)


def misuse(error: CycloptsError) -> str:
    """The sentence of an error of the parser."""
    command = " ".join(("neuromanifold", *(error.command_chain or ())))
    said = _what(error, command.removeprefix("neuromanifold "))
    return f"{said} (`{command} --help` lists what there is)"


def _what(error: CycloptsError, command: str) -> str:
    """What was wanted, and what came; in the parser's own words where these say it."""
    argument = error.argument
    match error:
        case MissingArgumentError(keyword=str(option)):
            words = error.unused_tokens or []
            after = words[words.index(option) + 1 :] if option in words else []
            hyphened = [word for word in after[:1] if not word.startswith("--")]
            hints = (f"one that begins with a hyphen is written {option}={w}" for w in hyphened)
            return "; ".join([f"{option} needs a value", *hints])
        case MissingArgumentError() if argument is not None:
            name = argument.name
            place = argument.field_info.is_positional
            return f"{command} needs {name.lstrip('-').upper() if place else name}"
        case UnknownCommandError(unused_tokens=[str(word), *_]) if word.startswith("-"):
            return f"options come after the command; {word!r} came before it"
        case UnusedCliTokensError():
            left = " ".join(error.unused_tokens or [])
            return f"{command} takes fewer words; {left!r} is left over"
        case CoercionError() if argument is not None and argument.tokens:
            kinds = (argument.hint, *get_args(argument.hint))
            if int in kinds or float in kinds:
                wanted = "a whole number" if int in kinds else "a number"
                return f"{argument.name} must be {wanted}; got {argument.tokens[-1].value!r}"
    text = str(error).strip()
    return text if text.endswith("...") else text.removesuffix(".")
