"""The geometry view: slices of the neuromanifold of one layer, and what kind of point one is."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from neuromanifold.explorer import code, question
from neuromanifold.explorer.jobs import Report

SLICES = {
    "umbrella": ("WHITNEY_UMBRELLA", "f = x² − s y²,  g = b xy + c y²"),
    "two-umbrellas": ("TWO_UMBRELLAS", "f = x² + u xy + v y²,  g = x² + 2w xy + y²"),
    "crossing": ("CROSSING_SHEETS", "f = x² + u xy + v y²,  g = x² + 2w xy − y²"),
}
"""The slices: their names in the library, and their forms."""
_SECTION = 61
"""Points along each side of a cross-section."""
_SINGULAR = "Two sheets cross along this line: f and g are proportional, with two real factors"
_CLOSURE = (
    "On this line f and g are proportional with complex factors: in the Zariski closure, not in "
    "the neuromanifold"
)
_PINCH = "A pinch: f and g are multiples of one square, a boundary point of the neuromanifold"


def surface(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """A slice as a mesh, with its singular lines and boundary points."""
    name = question.word(asked, "slice", tuple(SLICES), "umbrella")
    report("loading the geometry")
    return _surface(name)


@lru_cache
def _surface(name: str) -> dict[str, Any]:
    from neuromanifold.geometry import slices
    from neuromanifold.geometry.surfaces import slice_surface

    constant, forms = SLICES[name]
    found = slice_surface(getattr(slices, constant), lines=120, points=20)
    mesh = found.mesh
    lines = [
        {"kind": "singular", "text": f"{_SINGULAR} (cor-a.4).", "ends": ends}
        for ends in found.singular
    ]
    lines += [
        {"kind": "closure", "text": f"{_CLOSURE} (prop-a.5).", "ends": ends}
        for ends in found.closure_only
    ]
    return {
        "name": name,
        "title": found.slice.name,
        "forms": forms,
        "equation": found.slice.polynomial,
        "coordinates": found.slice.coordinates,
        "box": found.box,
        "vertices": mesh.vertices.T,
        "faces": mesh.faces.T,
        "lines": lines,
        "points": [
            {"kind": "boundary", "text": f"{_PINCH} (cor-a.6).", "at": at}
            for at in found.boundary_points
        ],
        "equation_error": mesh.equation_error,
    }


def point(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """What a point of a slice is: outside, smooth, singular, boundary, or in the closure only."""
    report("loading the geometry")
    import numpy as np

    from neuromanifold.geometry import slices
    from neuromanifold.geometry.classify import classify
    from neuromanifold.geometry.membership import weights_of_pair

    name = question.word(asked, "slice", tuple(SLICES), "umbrella")
    place = asked.get("point")
    numbers = place if isinstance(place, list) and len(place) == 3 else [None] * 3
    at = [question.real({"point": x}, "point", 0.0, -100.0, 100.0) for x in numbers]
    chosen = getattr(slices, SLICES[name][0])
    member = chosen.membership(np.array(at))
    kind, sentence = ("closure" if member.in_closure else "outside"), member.reason
    pair = None
    if member.form is not None and member.value is not None:
        weights = weights_of_pair(member.form, member.value, slices.PAIRS)
        found = classify(weights, tolerance=1e-7)
        kind = "boundary" if found.boundary else "singular" if found.singular else "smooth"
        sentence = str(found)
        pair = {"A": member.form, "V": member.value}
    return {
        "kind": kind,
        "sentence": sentence,
        "equation": chosen.equation(np.array(at)),
        "forms": chosen.forms(np.array(at)),
        "weights": pair,
        "section": _section(chosen, at),
        "code": code.shown(
            "import numpy as np\nfrom neuromanifold.geometry import slices\n"
            "from neuromanifold.geometry.surfaces import slice_surface\n"
            f"surface = slice_surface(slices.{SLICES[name][0]})\n"
            "print(surface.slice.polynomial)\n"
            f"print(surface.slice.membership(np.array({at!r})))",
            "neuromanifold paper --only fig-1 --out report",
        ),
    }


def _section(chosen: Any, at: list[float]) -> dict[str, Any]:
    """Where the first coordinate is the point's, the surface's equation over the other two."""
    import numpy as np

    first, second = (np.linspace(low, high, _SECTION) for low, high in chosen.box[1:])
    grid = np.stack(
        np.broadcast_arrays(at[0], first[None, :], second[:, None]), axis=-1, dtype=np.float64
    )
    return {"x": first, "y": second, "values": np.round(chosen.equation(grid), 9)}
