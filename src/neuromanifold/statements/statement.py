"""`Statement` and `Hypothesis`: the two kinds of value that the registry is made of."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal

from neuromanifold.statements.facts import Facts

Kind = Literal[
    "definition",
    "equation",
    "lemma",
    "theorem",
    "corollary",
    "proposition",
    "conjecture",
    "figure",
    "result",
]
Status = Literal["theorem", "conjecture", "none"]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A condition of a statement.

    Attributes:
        text: the condition in words, as part of the statement.
        failures: from facts to the ways in which the condition is unmet, empty when it holds;
            each is a short text such as "tokens = 2 < 3".
    """

    text: str
    failures: Callable[[Facts], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Statement:
    """A numbered item of the paper, or a result of this project.

    Attributes:
        id: how code, tests and documentation cite it.
        title: a few words.
        claim: what it says, in our own words.
        kind: what it is called.
        status: how it is known: `theorem` (proved), `conjecture` (supported by computation, not
            proved), or `none` (nothing is claimed: definitions, figures).
        source: the item of the paper, or "this project".
        correction: None, or what is wrong or missing in the paper's version.
        hypotheses: the conditions under which the claim is made.
        prior: None, or who proved or conjectured how much of it elsewhere.
    """

    id: str
    title: str
    claim: str
    kind: Kind
    status: Status
    source: str
    correction: str | None = None
    hypotheses: tuple[Hypothesis, ...] = ()
    prior: str | None = None

    def __str__(self) -> str:
        return f"{self.id} ({self.title}): {self.claim}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "hypotheses": [hypothesis.text for hypothesis in self.hypotheses]}


_KINDS: dict[str, Kind] = {
    "def": "definition",
    "eq": "equation",
    "lemma": "lemma",
    "thm": "theorem",
    "cor": "corollary",
    "prop": "proposition",
    "conj": "conjecture",
    "fig": "figure",
}


def numbered(id: str, title: str, claim: str, **given: Any) -> Statement:  # noqa: A002
    """A numbered item of the paper: its id says what it is called and where it stands.

    Definitions and figures claim nothing; everything else is proved unless `given` says otherwise.
    """
    word, _, number = id.partition("-")
    kind = _KINDS[word]
    usual: dict[str, Any] = {
        "kind": kind,
        "status": "none" if kind in ("definition", "figure") else "theorem",
        "source": f"{kind.capitalize()} {number.upper()}",
    }
    return Statement(id, title, claim, **usual | given)


def ours(id: str, title: str, claim: str, **given: Any) -> Statement:  # noqa: A002
    """A result of this project, proved unless `given` says otherwise."""
    usual: dict[str, Any] = {"kind": "result", "status": "theorem", "source": "this project"}
    return Statement(id, title, claim, **usual | given)
