"""The page: one self-contained HTML file, statement by statement."""

import base64
import html
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from neuromanifold import __version__
from neuromanifold.paper.checks.evidence import Evidence, Verdict
from neuromanifold.paper.checks.redundancy import redundancy_table
from neuromanifold.paper.report.drawing import Drawing
from neuromanifold.paper.report.mathematics import typeset
from neuromanifold.statements import GROUPS, STATEMENTS, Statement, get

_MEANINGS: Mapping[Verdict, str] = {
    "holds": "as claimed",
    "corrected": "our version holds, the printed one has a counterexample",
    "conjecture": "agrees everywhere, not proved",
    "fails": "a check disagrees",
}
_LARGEST_INLINE = 600_000
"""Bytes up to which a picture is embedded as SVG; a larger one as PNG."""


def page(
    evidence: Sequence[Evidence],
    drawings: Sequence[Drawing],
    seconds: Mapping[str, float],
    *,
    quick: bool,
    seed: int,
) -> str:
    """The whole page as text.

    Args:
        evidence: of every statement that was checked, in the order of the registry.
        drawings: the figures.
        seconds: how long each part took, by name.
        quick: whether the smaller grids were taken.
        seed: of everything drawn.
    """
    style = files("neuromanifold.paper.report").joinpath("page.css").read_text(encoding="utf-8")
    body = [
        _opening(evidence, quick, seed),
        *_sections(evidence),
        _figures(drawings),
        _redundancy(),
        _timings(evidence, seconds),
        f"<footer>Made by neuromanifold {__version__}, seed {seed}. Every number is in "
        "results.json.</footer>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<title>Attention networks: every statement checked</title>"
        f"<style>{style}</style></head><body><main>{''.join(body)}</main></body></html>\n"
    )


def _opening(evidence: Sequence[Evidence], quick: bool, seed: int) -> str:
    counts = Counter(one.verdict for one in evidence)
    tiles = "".join(
        f'<li class="{verdict}"><b>{counts[verdict]}</b>{verdict}<br>'
        f"<span>{_MEANINGS[verdict]}</span></li>"
        for verdict in _MEANINGS
    )
    comparisons = sum(int(one.evidence.get("cases", 0)) for one in evidence)
    grid = " with the smaller grids of --quick" if quick else ""
    return (
        "<h1>Geometry of lightning self-attention, every statement checked</h1>"
        '<p class="lead">Each definition, equation, lemma, theorem and conjecture on the fibers '
        "and dimensions of attention networks, and each result of this project, was checked by "
        f"computation{grid}: {len(evidence)} statements, {comparisons:,} comparisons, seed {seed}. "
        "Exact means ranks over a prime field, integers or rational numbers: no tolerance. Claims "
        "are in our own words.</p>"
        f'<ul class="tally sans">{tiles}</ul>'
        '<nav><a href="#figures">Figures</a><a href="#redundancy">Redundancy</a>'
        '<a href="#timings">Timings</a></nav>'
    )


def _sections(evidence: Sequence[Evidence]) -> Iterable[str]:
    """The statements in the groups of the registry, the figures apart."""
    found = {one.id: one for one in evidence}
    groups = {
        title: [one for one in group if one.kind != "figure"] for title, group in GROUPS.items()
    }
    groups["What the figures show"] = [one for one in STATEMENTS if one.kind == "figure"]
    for title, statements in groups.items():
        articles = [_article(one, found[one.id]) for one in statements if one.id in found]
        if articles:
            yield f"<h2>{title}</h2>{''.join(articles)}"


def _article(statement: Statement, evidence: Evidence) -> str:
    known = {"theorem": "proved", "conjecture": "conjectured", "none": ""}[statement.status]
    source = " · ".join(filter(None, [statement.id, statement.source, known]))
    parts = [
        f'<article id="{statement.id}" class="{evidence.verdict}"><div class="head">'
        f"<h3>{typeset(_capital(statement.title))}</h3>"
        f'<span class="chip">{evidence.verdict}</span></div>'
        f'<div class="source sans">{html.escape(source)}</div>'
        f"<p>{typeset(statement.claim)}</p>"
        f'<p class="checked"><span class="label">Checked</span>{typeset(evidence.checked)}.</p>'
    ]
    if statement.correction:
        parts.append(_correction(statement.correction, evidence))
    if statement.prior:
        label = '<span class="label">Prior work</span>'
        parts.append(f'<p class="checked">{label}{typeset(statement.prior)}</p>')
    parts.extend(
        f'<p class="failure"><span class="label">Fails</span>{html.escape(failure)}</p>'
        for failure in evidence.evidence.get("failures", [])[:5]
    )
    parts.append(_numbers(evidence))
    return "".join([*parts, "</article>"])


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _correction(correction: str, evidence: Evidence) -> str:
    counterexample = evidence.evidence.get("counterexample")
    example = ""
    if counterexample:
        example = f'<br><span class="label">Counterexample</span>{typeset(counterexample["text"])}'
    return (
        f'<p class="correction"><span class="label">In print</span>{typeset(correction)}'
        f"{example}</p>"
    )


def _numbers(evidence: Evidence) -> str:
    """The numbers of the evidence, folded away."""
    hidden = ("failures", "counterexample")
    rows = [(key, value) for key, value in evidence.evidence.items() if key not in hidden]
    entries = "".join(
        f"<dt>{html.escape(_capital(key))}</dt><dd>{_value(value)}</dd>" for key, value in rows
    )
    took = f"{evidence.seconds:.1f} s"
    return f"<details><summary>Numbers ({took})</summary><dl>{entries}</dl></details>"


def _value(value: Any) -> str:
    """A number, a list or a table of evidence as text."""
    if isinstance(value, Mapping):
        return "; ".join(f"{html.escape(str(key))}: {_value(part)}" for key, part in value.items())
    if isinstance(value, list):
        return ", ".join(_value(part) for part in value)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else html.escape(str(value))


def _figures(drawings: Sequence[Drawing]) -> str:
    if not drawings:
        return ""
    figures = "".join(
        f'<figure id="{drawing.id}-picture"><img src="{_embedded(drawing)}" '
        f'alt="{html.escape(drawing.caption)}"><figcaption><b>{get(drawing.id).source}.</b> '
        f"{typeset(drawing.caption)}</figcaption></figure>"
        for drawing in drawings
    )
    return f'<h2 id="figures">Figures</h2>{figures}'


def _embedded(drawing: Drawing) -> str:
    """The picture inside the page."""
    vector = drawing.svg.read_bytes()
    if len(vector) <= _LARGEST_INLINE:
        return f"data:image/svg+xml;base64,{base64.b64encode(vector).decode()}"
    return f"data:image/png;base64,{base64.b64encode(drawing.png.read_bytes()).decode()}"


def _table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """Rows of cells that are HTML."""
    titles = "".join(f"<th>{title}</th>" for title in head)
    lines = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    thead = f"<thead><tr>{titles}</tr></thead>" if head else ""
    return f'<div class="scroll"><table>{thead}<tbody>{body}</tbody></table></div>'


def _redundancy() -> str:
    """Parameters against dimension for common shapes (redundancy)."""
    head = ("Shape", "Ratio", "Parameters", "Dimension", "Status")
    rows = (
        (typeset(shape), f"{ratio:.4g}", f"{parameters:,}", f"{dimension:,}", status)
        for shape, parameters, dimension, ratio, status in map(dict.values, redundancy_table())
    )
    text = (
        "With all widths and ranks d there are 3d^2 l parameters and (l + 1)d^2 − l dimensions. "
        "For one layer the ratio is 3/2; with depth it tends to 3."
    )
    title = '<h2 id="redundancy">How many parameters are too many</h2>'
    return f"{title}<p>{typeset(text)}</p>{_table(rows, head)}"


def _timings(evidence: Sequence[Evidence], seconds: Mapping[str, float]) -> str:
    slowest = sorted(evidence, key=lambda one: -one.seconds)[:12]
    rows = [(html.escape(name), f"{value:.1f} s") for name, value in seconds.items()]
    rows += [(f'<a href="#{one.id}">{one.id}</a>', f"{one.seconds:.1f} s") for one in slowest]
    return (
        '<h2 id="timings">How long it took</h2><p>The slowest checks, and the other parts; the '
        f"time of every check is with its numbers.</p>{_table(rows)}"
    )
