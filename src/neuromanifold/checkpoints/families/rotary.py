"""The frequencies of rotary positions, from what a configuration says about them."""

import math
from typing import cast

from neuromanifold.checkpoints.block.parts import Layout, Rotary
from neuromanifold.checkpoints.families.settings import Settings
from neuromanifold.errors import FileFormatError, NotCoveredError

LARGEST = 2**16
"""More coordinates of a head than any model rotates: each has a frequency."""
_WHOLE = "partial_rotary_factor", 1.0


def rotary(
    settings: Settings, size: int, layout: Layout = "half", share: tuple[str, float] = _WHOLE
) -> Rotary:
    """Rotary positions on heads of a size, or a share of it, scaled as the configuration says.

    The share stands in the configuration under the given key, and has the given default.

    The layout is the configuration's `rope_layout`, which is our own key, or that of the family.
    """
    written = settings.word("rope_layout", default=layout)
    scaling = settings.section("rope_parameters", "rope_scaling")
    theta = scaling.real(
        "rope_theta", default=settings.real("rope_theta", "rotary_emb_base", default=10000.0)
    )
    part = settings.real(share[0], default=share[1])
    size = int(size * scaling.real(_WHOLE[0], default=part))
    if size > LARGEST:
        raise NotCoveredError(f"rotary positions on {size} coordinates are not covered")
    frequencies = [theta ** (-2 * i / size) for i in range(size // 2)]
    kind, factor = scaling.word("rope_type", "type", default="default"), 1.0
    if kind == "linear":
        frequencies = [f / scaling.real("factor") for f in frequencies]
    elif kind == "llama3":
        frequencies = [_llama3(f, scaling) for f in frequencies]
    elif kind == "yarn":
        frequencies, factor = _yarn(frequencies, settings, scaling, theta, size)
    elif kind != "default":
        raise NotCoveredError(
            f"rotary positions of type {kind!r} depend on the length of the text and are not one "
            "function of the weights; default, linear, llama3 and yarn are covered"
        )
    if scaling.unread:
        raise NotCoveredError(
            f"rotary positions of type {kind!r} with {', '.join(scaling.unread)} are not covered; "
            "remove what means nothing from the configuration"
        )
    return Rotary(
        size=size, layout=cast("Layout", written), frequencies=tuple(frequencies), factor=factor
    )


def _llama3(frequency: float, scaling: Settings) -> float:
    """High frequencies stay, low ones are divided, those between are interpolated."""
    factor = scaling.real("factor")
    low, high = scaling.real("low_freq_factor"), scaling.real("high_freq_factor")
    context = scaling.real("original_max_position_embeddings")
    if low >= high:
        raise FileFormatError(
            f"the configuration's low_freq_factor must be below its high_freq_factor; got {low:g} "
            f"and {high:g}"
        )
    length = 2 * math.pi / frequency
    if length < context / high:
        return frequency
    if length > context / low:
        return frequency / factor
    smooth = (context / length - low) / (high - low)
    return (1 - smooth) * frequency / factor + smooth * frequency


def _yarn(
    frequencies: list[float], settings: Settings, scaling: Settings, theta: float, size: int
) -> tuple[list[float], float]:
    """YaRN: a ramp between divided and kept frequencies, and a factor on cosine and sine."""
    if theta <= 1:
        raise FileFormatError(
            f"rotary positions of type yarn need a rope_theta above 1; got {theta:g}"
        )
    factor = scaling.real("factor")
    context = scaling.real(
        "original_max_position_embeddings",
        default=settings.real("max_position_embeddings"),
    )

    def plane(turns: float) -> float:
        return size * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(theta))

    first = max(math.floor(plane(scaling.real("beta_fast", default=32.0))), 0)
    last = min(math.ceil(plane(scaling.real("beta_slow", default=1.0))), size - 1)
    width = max(last - first, 0.001)
    ramp = [min(max((i - first) / width, 0.0), 1.0) for i in range(len(frequencies))]
    scaled = [f / factor * r + f * (1 - r) for f, r in zip(frequencies, ramp, strict=True)]
    plain = 0.1 * math.log(factor) + 1 if factor > 1 else 1.0
    return scaled, scaling.real("attention_factor", default=plain)
