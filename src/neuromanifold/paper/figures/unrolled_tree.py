"""Figure 2: the unrolled network as a tree (fig-2, eq-12).

The tree is read off the base-3 rule alone: in a run of places the forms of the highest layer stand
apart, and what lies between two of them is a run of lower layers, a block D_i of the recursion.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from neuromanifold.style import INK, LAYERS, MUTED, write

Factor = tuple[int, bool]


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree.

    Attributes:
        name: what is written on it.
        height: its height above the forms.
        children: its nodes, left to right.
        place: for a form its place j, otherwise None.
    """

    name: str
    height: int
    children: tuple["Node", ...] = ()
    place: int | None = None

    @property
    def x(self) -> float:
        """Its place, or the middle of its outer children."""
        if self.place is not None:
            return float(self.place)
        return (self.children[0].x + self.children[-1].x) / 2


def tree(factors: Sequence[Factor]) -> Node:
    """The tree over the forms in order (eq-12): φ over D_{l-1}, M_l, …, D_1, M_2, M_1."""
    depth = max(layer for layer, _ in factors)
    return Node(r"\varphi", depth, _split(factors, 1, depth))


def _split(factors: Sequence[Factor], first: int, height: int) -> tuple[Node, ...]:
    """The forms of a run that no lower form separates, and the blocks between them.

    Inside a block these are the forms of its highest layer; at the top of the tree each form that
    is the highest of all to its right stands alone.
    """
    nodes: list[Node] = []
    start = 0
    for k, (layer, _) in enumerate(factors):
        rest = max((other for other, _ in factors[k + 1 :]), default=0)
        whole = max(other for other, _ in factors)
        separates = layer == whole if height < 0 else layer > rest
        if not separates:
            continue
        nodes.extend(_block(factors[start:k], first + start))
        nodes.append(_form(factors[k], first + k))
        start = k + 1
    nodes.extend(_block(factors[start:], first + start))
    return tuple(nodes)


def _block(factors: Sequence[Factor], first: int) -> tuple[Node, ...]:
    """A block D_i, i the highest layer in it; nothing for an empty one, D_0 = 1."""
    if not factors:
        return ()
    i = max(layer for layer, _ in factors)
    return (Node(f"D_{i}", i, _split(factors, first, -1)),)


def _form(factor: Factor, place: int) -> Node:
    layer, transposed = factor
    return Node(f"M_{layer}" + (r"^{\!\top}" if transposed else ""), 0, (), place)


def tree_figure(
    trees: Sequence[Sequence[Factor]], ax: Sequence[Axes] | None = None
) -> Sequence[Axes]:
    """One tree for each list of forms, each form labelled with its place in base 3.

    Args:
        trees: the lists of forms.
        ax: axes for each of them; by default those of a new figure.
    """
    widths = [len(factors) for factors in trees]
    if ax is None:
        figure = Figure(figsize=(12, 8.4), layout="constrained")
        heights = [max(layer for layer, _ in factors) + 2.3 for factors in trees]
        ax = figure.subplots(len(trees), 1, height_ratios=heights, squeeze=False).ravel().tolist()
    for axes, factors in zip(ax, trees, strict=True):
        root = tree(factors)
        _edges(axes, root)
        _nodes(axes, root, factors)
        _digits(axes, factors)
        middle, half = (len(factors) + 1) / 2, max(widths) / 2
        axes.set(xlim=(middle - half - 2.1, middle + half + 0.6), ylim=(-2.0, root.height + 0.5))
        axes.set_title(f"$l={root.height}$", fontsize=16, color=INK, loc="left")
        axes.axis("off")
    return ax


def _edges(axes: Axes, node: Node) -> None:
    """Down from the node to a bar over its children, and from the bar down to each of them."""
    if not node.children:
        return
    look = {"color": MUTED, "linewidth": 1.4, "zorder": 1, "solid_capstyle": "round"}
    bar = node.height - 0.45
    axes.plot([node.x, node.x], [node.height, bar], **look)
    axes.plot([node.children[0].x, node.children[-1].x], [bar, bar], **look)
    for child in node.children:
        axes.plot([child.x, child.x], [bar, child.height], **look)
        _edges(axes, child)


def _nodes(axes: Axes, node: Node, factors: Sequence[Factor]) -> None:
    colour = "white" if node.place is None else LAYERS[factors[node.place - 1][0] - 1]
    box = FancyBboxPatch(
        (node.x - 0.36, node.height - 0.24),
        0.72,
        0.48,
        boxstyle="round,pad=0,rounding_size=0.16",
        facecolor=colour,
        edgecolor=MUTED if node.place is None else colour,
        zorder=2,
    )
    axes.add_patch(box)
    ink = INK if node.place is None else "white"
    write(axes, node.x, node.height, f"${node.name}$", fontsize=14, color=ink, zorder=3)
    for child in node.children:
        _nodes(axes, child, factors)


def _digits(axes: Axes, factors: Sequence[Factor]) -> None:
    """Under each form M̃_j, and j in base 3 with the first non-zero digit from the right in bold."""
    middle = (len(factors) + 1) / 2
    left = middle - max(len(factors), 13) / 2 - 0.2
    for row, name in ((-0.72, "form"), (-1.45, "$j$ in base 3")):
        write(axes, left, row, name, ha="right", fontsize=11, color=MUTED)
    for j, (layer, _) in enumerate(factors, start=1):
        colour = LAYERS[layer - 1]
        last = j == len(factors)
        name = r"$A_1$" if last else rf"$\widetilde{{M}}_{{{j}}}$"
        write(axes, j, -0.72, name)
        digits = _base_three(j)
        split = len(digits) - layer
        before, deciding, after = digits[:split], digits[split], digits[split + 1 :]
        text = rf"$\mathrm{{{before}}}\mathbf{{{deciding}}}\mathrm{{{after}}}$"
        write(axes, j, -1.45, text, color=colour)


def _base_three(j: int) -> str:
    return (_base_three(j // 3) if j >= 3 else "") + str(j % 3)
