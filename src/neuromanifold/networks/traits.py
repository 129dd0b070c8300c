"""What the kind of an attention network means, in the words of the theorems.

Everything above asks these questions instead of comparing the words of an `Architecture`, so that a
new kind of network is answered for in one place. Each is true of the kinds that it names and of no
other: a kind that is not known here has none of these properties until someone says so.
"""

from neuromanifold.architecture import Architecture


def is_linear_in_scores(architecture: Architecture) -> bool:
    """Whether a layer depends on Σ_h V_h ⊗ A_h alone: lightning attention (eq-3)."""
    return architecture.attention == "lightning"


def averages_tokens(architecture: Architecture) -> bool:
    """Whether the attention weights of a token are positive with sum one: softmax (eq-15)."""
    return architecture.attention == "softmax"


def adds_nothing(architecture: Architecture) -> bool:
    """Whether a layer is its heads and nothing else: no skip (def-1)."""
    return architecture.skip == "none"


def adds_input(architecture: Architecture) -> bool:
    """Whether a layer adds X itself, which fixes the coordinates of all widths (residual-skip)."""
    return architecture.skip == "residual"


def adds_values(architecture: Architecture) -> bool:
    """Whether a layer adds Σ_h V_h X, so that Σ_h V_h is seen by itself (inner-skip)."""
    return architecture.skip == "inner"


def adds_alike(first: Architecture, second: Architecture) -> bool:
    """Whether the layers of two networks add the same to their heads."""
    return first.skip == second.skip


def attends_to_all(architecture: Architecture) -> bool:
    """Whether a token attends to all tokens, so that their order does not matter: no mask."""
    return architecture.mask == "none"


def attends_to_past(architecture: Architecture) -> bool:
    """Whether token i attends to the tokens j ≤ i: the causal mask."""
    return architecture.mask == "causal"


def has_one_head(architecture: Architecture) -> bool:
    """Whether no two heads can mix or change places."""
    return architecture.heads == 1


def is_plain(architecture: Architecture) -> bool:
    """Whether a layer is Σ_h V_h X P_h over all tokens: neither skip nor mask."""
    return adds_nothing(architecture) and attends_to_all(architecture)


def is_homogeneous(architecture: Architecture) -> bool:
    """Whether φ(sX) = s^(3^l) φ(X): lightning without skip (def-2)."""
    return is_linear_in_scores(architecture) and adds_nothing(architecture)


def trades_scale(architecture: Architecture) -> bool:
    """Whether (λ A, V/λ) has the function of (A, V): V occurs in products with A only (eq-13)."""
    return is_linear_in_scores(architecture) and (
        adds_nothing(architecture) or adds_input(architecture)
    )


def has_virtual_weights(architecture: Architecture) -> bool:
    """Whether weights are seen through (M, L) only: one head, nothing but V X P and V X (eq-8)."""
    return has_one_head(architecture) and (adds_nothing(architecture) or adds_values(architecture))
