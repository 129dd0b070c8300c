"""Figure 4: the reflection that makes two monomials cancel (fig-4)."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from neuromanifold.paper.checks.pictures import Reflection
from neuromanifold.style import BLUE, INK, MUTED, ORANGE, RED, axes_for, write

_TOKENS = {1: MUTED, 2: BLUE, 3: ORANGE}
_TOP, _BOTTOM = 1.75, 0.0
_WINDOW = "#fdf3d8"


def reflection_figure(reflection: Reflection, ax: Axes | None = None) -> Axes:
    """The two chains of tokens, mirror images around the skew form, with their values.

    Args:
        reflection: the two chains.
        ax: the axes to draw into; new ones by default.
    """
    axes = axes_for(ax, 12.5, 5.4)
    j, m = reflection.place, reflection.reach
    _window(axes, j, m)
    _chain(axes, reflection, reflection.chain, _TOP)
    _chain(axes, reflection, reflection.mirrored, _BOTTOM)
    for k in range(j - m, j + m + 2):
        _arrow(axes, k, 2 * j + 1 - k)
    _values(axes, reflection)
    axes.set(xlim=(0.3, len(reflection.chain) + 2.9), ylim=(_BOTTOM - 0.85, _TOP + 0.95))
    axes.axis("off")
    return axes


def _window(axes: Axes, j: int, m: int) -> None:
    """The part that is reflected, and the mirror."""
    corner, height = (j - m - 0.42, _BOTTOM - 0.75), _TOP - _BOTTOM + 1.35
    axes.add_patch(Rectangle(corner, 2 * m + 1.84, height, facecolor=_WINDOW, edgecolor="none"))
    mirror, dashes = [_BOTTOM - 0.75, _TOP + 0.6], (0, (4, 3))
    axes.plot([j + 0.5, j + 0.5], mirror, color=RED, linewidth=1.4, linestyle=dashes, zorder=1)
    axes.text(j + 0.5, _TOP + 0.72, "mirror", ha="center", color=RED, fontsize=12)


def _values(axes: Axes, reflection: Reflection) -> None:
    """The two monomials, and their sum."""
    x = len(reflection.chain) + 0.6
    look = {"fontsize": 15, "va": "center"}
    for y, value in ((_TOP, reflection.value), (_BOTTOM, reflection.mirrored_value)):
        axes.text(x, y, f"{value:+,}".replace("-", "−"), color=INK, **look)
    total = reflection.value + reflection.mirrored_value
    axes.text(x, (_TOP + _BOTTOM) / 2, f"sum  {total}", color=RED, fontweight="bold", **look)


def _chain(axes: Axes, reflection: Reflection, chain: Sequence[int], y: float) -> None:
    j, m = reflection.place, reflection.reach
    for place, token in enumerate(chain, start=1):
        inside = j - m <= place <= j + m + 1
        axes.scatter(place, y, s=520, color=_TOKENS[token], zorder=3, alpha=1 if inside else 0.55)
        write(axes, place, y, f"$x_{token}$", color="white", zorder=4)
    for place, (layer, transposed) in enumerate(reflection.factors, start=1):
        centre = place == j
        colour, width = (RED, 3) if centre else (INK, 1.2)
        axes.plot([place + 0.27, place + 0.73], [y, y], color=colour, linewidth=width, zorder=2)
        letter = r"\Sigma" if centre else "M"
        name = f"${letter}_{layer}" + (r"^{\!\top}$" if transposed else "$")
        background = {"facecolor": _WINDOW, "edgecolor": "none", "pad": 2.5} if centre else None
        write(axes, place + 0.5, y - 0.36, name, color=colour, bbox=background)


def _arrow(axes: Axes, source: int, target: int) -> None:
    look = {"arrowstyle": "-|>", "mutation_scale": 13, "color": MUTED, "linewidth": 1.2}
    ends = (source, _TOP - 0.5), (target, _BOTTOM + 0.24)
    axes.add_patch(FancyArrowPatch(*ends, **look, zorder=1))
