"""What two files say beside their blocks."""

import numpy as np

from neuromanifold.checkpoints.checkpoint import Checkpoint
from neuromanifold.checkpoints.equality.agreement import Rounding


def unexplained(
    a: Checkpoint, b: Checkpoint, R: np.ndarray | None, rounding: Rounding
) -> tuple[str, ...]:
    """What the block does not explain, may change the function, and is not equal to rounding.

    Parts outside the block see the hidden states, and some the token table: where there are such
    parts no symmetry of those is one of the whole.
    """

    def differ(x: np.ndarray, y: np.ndarray) -> bool:
        if x.shape != y.shape:
            return True
        x, y = x.astype(np.float64), y.astype(np.float64)
        explained = rounding.first * np.abs(x) + rounding.second * np.abs(y)
        return not np.all(np.abs(x - y) <= explained)

    said = a.found.unexplained, b.found.unexplained
    keys = [k for k in sorted({*said[0], *said[1]}) if said[0].get(k) != said[1].get(k)]
    mine, theirs = set(a.found.outside), set(b.found.outside)
    common = (mine & theirs) | (set(a.found.buffers) & set(b.found.buffers))
    unequal = {n for n in common if differ(a.model.tensor(n), b.model.tensor(n))} | (mine ^ theirs)
    seen = ["final_norm", "final_norm_shift"] if a.block.head.kind != "none" and mine else []
    seen += ["tokens"] if a.found.shows_tokens else []
    seen = [
        name
        for name in seen
        if name in a.block.shapes and (R is not None or differ(a.tensor(name), b.tensor(name)))
    ]
    return tuple(
        [f"the configuration's {key}" for key in keys]
        + [f"{name} outside it" for name in sorted(unequal)]
        + [f"{name}, which parts outside it see," for name in seen]
    )
