"""The dimension with several heads (head-mixing).

One lightning layer is Σ_h V_h X Xᵀ A_h X, the sum of H functions of one head. With α = min(a, d)
and ν the largest rank of a value map, one head has D = 2αd − α² + ν(d + d' − ν) − 1 dimensions,
and H heads would have H D. But heads mix: Σ_h V_h ⊗ A_h is unchanged by g ∈ GL_H acting on the A_h
and inversely on the V_h, and as far as the mixed A's and V's can keep their ranks this costs
max(0, H(H−1) − H(d−α)² − H(d−ν)(d'−ν)) dimensions beyond the H scalings already in D. Since D =
dd' + d² − 1 − (d−α)² − (d−ν)(d'−ν), what remains is H · min(D, dd' + d² − H).

It cannot exceed the space of all Σ_j (x_jᵀ B x_i) C x_j, the d'-tuples of d-tuples of quadratic
forms, of dimension dd' · d(d+1)/2. More heads never have fewer functions, so the count is believed
only as long as it grows with H, and once it has reached that space it stays there.
"""

from neuromanifold.architecture import Architecture
from neuromanifold.dimension.all_widths import matrices_of_rank


def several_heads_dimension(architecture: Architecture) -> int | None:
    """The dimension of a network that meets the hypotheses of head-mixing; None beyond its count.

    In deep networks of equal width d the layers' dimensions add up, less d² for every inter-layer
    symmetry.
    """
    layers = [_layer(architecture, i) for i in range(architecture.depth)]
    known = [layer for layer in layers if layer is not None]
    if len(known) < len(layers):
        return None
    return sum(known) - (architecture.depth - 1) * architecture.widths[0] ** 2


def head_dimension(architecture: Architecture, layer: int) -> int:
    """The dimension of the pairs (A, V) of one head of this layer, counted from 0 (lemma-3.1)."""
    d, d_out = architecture.widths[layer : layer + 2]
    alpha, nu = min(architecture.ranks[layer], d), min(d, d_out)
    if architecture.value_ranks is not None:
        nu = min(nu, architecture.value_ranks[layer])
    return matrices_of_rank(alpha, d, d) + matrices_of_rank(nu, d_out, d)


def _layer(architecture: Architecture, layer: int) -> int | None:
    H = architecture.heads
    pairs = head_dimension(architecture, layer)
    if architecture.attention == "softmax":
        return H * pairs
    d, d_out = architecture.widths[layer : layer + 2]
    D = pairs - 1
    # H · min(D, s − H), s = d d' + d², grows as H D up to H = s − D; from there on it grows below
    # H = s/2 and falls above. So its largest value for at most H heads is found at one of three.
    s = d * d_out + d * d
    space = d * d_out * d * (d + 1) // 2
    counts = [h * min(D, s - h) for h in (min(H, s - D), min(H, s // 2), H)]
    if max(counts) >= space:
        return space
    return counts[-1] if counts[-1] == max(counts) else None
