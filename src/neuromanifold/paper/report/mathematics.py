"""Mathematics in plain text, set as HTML: italics, subscripts and superscripts."""

import html
import re

_SCRIPT = re.compile(r"([_^])(?:\{([^{}]*)\}|\(([^()]*\^?\([^()]*\)|[^()]*)\)|([A-Za-z0-9α-ω']))")
_NO_NOUN = "of|with|is|in|has|and|or|to|for|are|stay|dimensions"
_LETTER = re.compile(
    r"(?<![A-Za-zα-ωé&'’.])"
    rf"(dd'|ad|xy|l̃|M̃|[B-HJ-Zb-df-zα-ω]|(?<!\d)e|[aA](?! \d)(?! (?!(?:{_NO_NOUN})\b)[A-Za-z]{{2}}))"
    r"(?![A-Za-zα-ωé]|['’]\w|\.\w)"
)
"""Variables: single letters that are no word, and the paper's products of two.

An "a" is the article when a number or a word follows, unless it is a word that no article precedes.
"""


def typeset(text: str) -> str:
    """The text as HTML, with its formulas set.

    >>> typeset("M_i has rank 2")
    '<i>M</i><sub><i>i</i></sub> has rank 2'
    """
    pieces = []
    start = 0
    for match in _SCRIPT.finditer(text):
        pieces.append(_letters(text[start : match.start()]))
        kind = "sub" if match[1] == "_" else "sup"
        inside = next(group for group in match.groups()[1:] if group is not None)
        pieces.append(f"<{kind}>{typeset(inside.replace('-', '−'))}</{kind}>")
        start = match.end()
    pieces.append(_letters(text[start:]))
    return "".join(pieces)


def _letters(text: str) -> str:
    """Single letters in italics; everything else escaped."""
    return _LETTER.sub(r"<i>\1</i>", html.escape(text, quote=False))
