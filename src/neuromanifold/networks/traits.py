"""What the kind of an attention network means for its symmetries.

Everything above asks these questions instead of comparing the words of an `Architecture`, so that a
new kind of network is answered for in one place.
"""

from neuromanifold.architecture import Architecture


def is_homogeneous(architecture: Architecture) -> bool:
    """Whether φ(sX) = s^(3^l) φ(X): lightning without skip (def-2)."""
    return architecture.attention == "lightning" and architecture.skip == "none"


def is_linear_in_scores(architecture: Architecture) -> bool:
    """Whether a layer depends on Σ_h V_h ⊗ A_h alone: lightning attention (eq-3)."""
    return architecture.attention == "lightning"


def sees_value_maps(architecture: Architecture) -> bool:
    """Whether Σ_h V_h is seen by itself, as by the inner skip (inner-skip)."""
    return architecture.skip == "inner"


def fixes_widths(architecture: Architecture) -> bool:
    """Whether the coordinates between layers are fixed: a residual skip adds X itself (eq-9)."""
    return architecture.skip == "residual"
