"""An audit as a figure (layers × heads) and as a page."""

import html
import io
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes

from neuromanifold.checkpoints.audits.audit import Audit, HeadRecord
from neuromanifold.checkpoints.distance.heatmap import draw_heads, two_panels
from neuromanifold.style import figure_of


def audit_figure(audit: Audit, ax: Sequence[Axes] | None = None) -> Sequence[Axes]:
    """Effective rank of every head's query–key and value–output product.

    The effective rank is (Σσ)² / Σσ², between 1 and the head size.

    Args:
        audit: what to draw.
        ax: two axes to draw into; by default those of a new figure.
    """
    maps: dict[str, Callable[[HeadRecord], float]] = {
        "query–key": lambda h: effective_rank(h.query_key.values),
        "value–output": lambda h: effective_rank(h.value_output.values),
    }
    ax = two_panels(audit.block.stored_layers) if ax is None else ax
    for axes, (title, value) in zip(ax, maps.items(), strict=True):
        image = draw_heads(axes, _grid(audit, value), f"effective rank, {title}", vmin=1)
        figure_of(axes).colorbar(image, ax=axes)
    return ax


def effective_rank(values: tuple[float, ...]) -> float:
    """(Σσ)² / Σσ²: how many singular values count."""
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / squares if squares > 0 else 0.0


def _grid(audit: Audit, value: Callable[[HeadRecord], float]) -> np.ndarray:
    grid = np.zeros((audit.block.stored_layers, audit.block.attention.heads))
    for head in audit.heads:
        grid[head.layer, head.head] = value(head)
    return grid


def audit_page(audit: Audit) -> str:
    """One self-contained HTML page."""
    drawn = io.StringIO()
    figure_of(audit_figure(audit)[0]).savefig(drawn, format="svg", metadata={"Date": None})
    picture = drawn.getvalue()[drawn.getvalue().index("<svg") :]
    rows = "".join(
        f"<tr><td>{html.escape(p.name)}</td><td><code>{p.statement}</code></td>"
        f"<td>{html.escape(p.formula)}</td><td class=n>{p.dimension:,}</td></tr>"
        for p in audit.parts
    )
    remarks = "".join(f"<li>{html.escape(text)}</li>" for text in notes(audit))
    title = html.escape(audit.model)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8>"
        f"<title>audit of {title}</title><style>body{{font:16px/1.5 system-ui;max-width:60rem;"
        "margin:2rem auto;padding:0 1rem}table{border-collapse:collapse}td,th{padding:.2rem .8rem;"
        "border-bottom:1px solid #ddd;text-align:left}.n{text-align:right}svg{max-width:100%;"
        "height:auto;margin-top:1rem}@media(max-width:40rem){table{font-size:.8rem}td,th{padding:"
        f".2rem}}}}</style><h1>{title}</h1><p>{html.escape(str(audit))}</p>"
        "<table><tr><th>part<th>statement<th>formula<th class=n>dimension</tr>"
        f"{rows}</table>{picture}<ul>{remarks}</ul></html>\n"
    )


def notes(audit: Audit) -> list[str]:
    """What the counts do not say, in sentences."""
    found = [f"The counts are for generic weights; {audit.known}."]
    if audit.proof is not None:
        found.append(str(audit.proof))
    extra = sum(part.dimension for part in audit.eps_parts)
    if extra:
        found.append(f"With eps = 0 in the norms {extra:,} more would be redundant.")
    found += [f"{d.what}: {d.evidence} ({d.statement})." for d in audit.dead]
    found += [
        f"Layer {layer}: heads {first} and {second} are equal up to gauge ({distance:.1e})."
        for layer, first, second, distance in audit.equal_heads
    ]
    if audit.deficient:
        named = ", ".join(f"{h.layer}.{h.head}" for h in audit.deficient[:20])
        found.append(f"Rank-deficient heads: {named}.")
    if audit.slow_planes:
        found.append(f"{audit.slow_planes} rotary planes turn less than half a radian in all.")
    return [*found, *audit.remarks]
