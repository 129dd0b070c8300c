"""The fiber view: a walk along weights with the same function, and a comparison of two files."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuromanifold.architecture import Architecture
from neuromanifold.cost import sizes_of, transforming
from neuromanifold.errors import ArgumentError
from neuromanifold.explorer import code, question
from neuromanifold.explorer.jobs import Report

if TYPE_CHECKING:
    import numpy as np

    from neuromanifold.fibers.walk import Walk
    from neuromanifold.networks.weights import Weights

LARGEST_WALK = 4_000
"""Entries of all matrices up to which every step's heat maps are sent to the page."""
_STAYS = 1e-8
"""Relative change below which a matrix is listed with what stays: rounding along a walk."""
_TRIES = 12
"""Random points that are tried for one that a path reaches."""


def walk(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """A path between two weights with one function, every matrix at every step."""
    steps = question.whole(asked, "steps", 24, 1, 60)
    report("loading JAX")
    if asked.get("files"):
        (first, second), loaded, command = _two_files(asked, "walk")
        shown = code.shown(
            f"{code.IMPORT}\nprint(nm.walk({loaded}, steps={steps}))", f"{command} --steps {steps}"
        )
    else:
        first, second, shown = _drawn(asked, steps)
    _check_size(first.architecture)
    from neuromanifold.fibers.outputs import function_deviation
    from neuromanifold.fibers.walk import walk as find

    report("walking along the fiber")
    path = find(first, second, steps=steps)
    points = path.points
    deviations = [function_deviation(points[0], point, seed=path.seed) for point in points]
    return {
        "name": first.architecture.name,
        "sentence": str(path),
        "found": bool(points),
        "deviations": deviations,
        "panels": _panels(path) if points else [],
        "code": shown,
    }


def _drawn(asked: Mapping[str, Any], steps: int) -> tuple["Weights", "Weights", dict[str, str]]:
    """Random weights and a random point of their fiber that a path reaches, if one was found."""
    from neuromanifold.fibers.sample import sample_fiber
    from neuromanifold.fibers.walk import walk as find
    from neuromanifold.networks.weights import random_weights

    architecture = question.architecture_of(asked)
    seed = question.whole(asked, "seed", 0, 0, 2**31)
    condition = question.real(asked, "condition", 5.0, 1.0, 1e6)
    _check_size(architecture)
    first = random_weights(architecture, seed)
    points = sample_fiber(first, _TRIES, seed=seed, condition=condition).points
    chosen = next((i for i, point in enumerate(points) if find(first, point, steps=1).points), 0)
    options = code.architecture_options(architecture)
    shown = code.shown(
        f"{code.IMPORT}\nnet = {code.architecture_python(architecture)}\n"
        f"start = nm.random_weights(net, {seed})\n"
        f"end = nm.sample_fiber(start, {_TRIES}, seed={seed}, condition={condition!r})"
        f".points[{chosen}]\nprint(nm.walk(start, end, steps={steps}))",
        f"neuromanifold weights init {options} --seed {seed} --out start.safetensors\n"
        f"neuromanifold fiber sample start.safetensors --count {_TRIES} --seed {seed} "
        f"--condition {condition:g} --out-dir points\n"
        f"neuromanifold fiber walk start.safetensors points/point-{chosen:03d}.safetensors "
        f"--steps {steps}",
    )
    return first, points[chosen], shown


def _two_files(asked: Mapping[str, Any], word: str) -> tuple[list["Weights"], str, str]:
    """The weights in two files, the Python that loads them, and the command about them."""
    from neuromanifold.networks.files import load_weights

    files = [asked["files"][key] for key in ("first", "second")]
    names = [file["name"] for file in files]
    return (
        [load_weights(Path(file["path"])) for file in files],
        ", ".join(f"nm.load_weights({name!r})" for name in names),
        f"neuromanifold fiber {word} {' '.join(map(code.file_word, names))}",
    )


def _check_size(architecture: Architecture) -> None:
    size = architecture.parameters + architecture.depth * architecture.heads * (
        architecture.tokens**2 + max(architecture.widths) ** 2
    )
    if size > LARGEST_WALK:
        raise ArgumentError(
            f"a walk is drawn for at most {LARGEST_WALK} entries of weights, products and "
            f"patterns; this network has {size}: use `neuromanifold fiber walk`"
        )


def _panels(path: "Walk") -> list[dict[str, Any]]:
    """Every matrix with its values along the path, and how far it moved."""
    import numpy as np

    frames = [dict(_matrices(point, path.seed)) for point in path.points]
    panels = []
    for (kind, title), start in frames[0].items():
        values = np.stack([frame[kind, title] for frame in frames])
        moved, moved_shape = _change(values), _change(_directions(values))
        panels.append(
            {
                "kind": kind,
                "title": title,
                "rows": start.shape[0],
                "columns": start.shape[1],
                "frames": [[float(f"{x:.5g}") for x in frame.ravel()] for frame in values],
                "change": moved,
                "stays": moved <= _STAYS,
                "stays_up_to_scale": moved > _STAYS >= moved_shape,
            }
        )
    return panels


def _directions(values: "np.ndarray") -> "np.ndarray":
    """The matrices scaled to norm one: a lightning layer's A is known up to a constant."""
    import numpy as np

    sizes = np.linalg.norm(values, axis=(1, 2), keepdims=True)
    return values / np.where(sizes > 0, sizes, 1.0)


def _change(values: "np.ndarray") -> float:
    """The largest distance from the first matrix along the path, relative to its norm."""
    import numpy as np

    size = np.linalg.norm(values[0]) or 1.0
    return float(np.linalg.norm(values - values[0], axis=(1, 2)).max() / size)


def _matrices(point: "Weights", seed: int) -> Iterator[tuple[tuple[str, str], "np.ndarray"]]:
    """Weights, products, attention patterns and outputs of one point, each with its title."""
    import jax
    import numpy as np

    from neuromanifold.certificates.input_scale import scaled_inputs
    from neuromanifold.networks.attention import attention_layer, attention_pattern

    architecture = point.architecture
    shape = (1, architecture.widths[0], architecture.tokens)
    X = scaled_inputs(point, np.random.default_rng(seed).standard_normal(shape))[0]
    several = not architecture.has_one_head
    with jax.enable_x64(True):
        for i, layer in enumerate(point.layers):
            named = {
                **{("weight", name): tensor for name, tensor in layer.tensors().items()},
                ("product", "A = KᵀQ"): layer.attention_matrices(),
                ("pattern", "attention pattern"): attention_pattern(layer, X, architecture),
            }
            for (kind, name), tensor in named.items():
                for h, matrix in enumerate(np.asarray(tensor)):
                    place = f"layer {i}" + f", head {h}" * several
                    yield (kind, f"{_LETTERS.get(name, name)} · {place}"), matrix
            X = np.asarray(attention_layer(layer, X, architecture))
    yield ("output", "outputs at one input"), X


_LETTERS = {"query": "Q", "key": "K", "value": "V", "output": "O"}


def same(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """Whether two weights files have the same function, with the symmetry or the witness."""
    report("loading JAX")
    from neuromanifold.fibers.same import same_function

    seed = question.whole(asked, "seed", 0, 0, 2**31)
    weights, loaded, command = _two_files(asked, "same")
    for one in weights:
        question.afford(asked, transforming(sizes_of(one.architecture)), "the comparison")
    report("comparing the functions")
    found = same_function(*weights, seed=seed)
    answer = code.printed(
        found, f"nm.same_function({loaded}, seed={seed})", f"{command} --seed {seed}"
    )
    element = None if found.transport is None else found.transport.element.to_dict()
    return {**answer, "element": element}
