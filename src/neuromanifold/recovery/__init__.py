"""Recovery: from a black box X ↦ φ(X) back to weights.

The theorems on fibers say how many weights give one function; each of their proofs picks out terms
of the function that determine the weights. Here those terms are computed from evaluations:

    one lightning layer    the terms linear in x_1 and quadratic in x_2     (thm-3.2)
    deep lightning         symmetric parts on lines, skew parts by layers   (thm-3.7)
    softmax                equal tokens give L, ratios of weights the forms (thm-3.9, conj-3.10)
    deep softmax           layer after layer near equal tokens, to many digits (softmax-fibers)
    skips, masks, heads    least squares from random starts

Every answer is compared with the black box on fresh inputs, and refused when it does not fit.
"""

from neuromanifold.recovery.oracle import (
    ExactOracle,
    PreciseOracle,
    exact_network_oracle,
    network_oracle,
    precise_network_oracle,
)
from neuromanifold.recovery.recover import recover
from neuromanifold.recovery.result import Recovery

__all__ = [
    "recover",
    "Recovery",
    "ExactOracle",
    "PreciseOracle",
    "network_oracle",
    "exact_network_oracle",
    "precise_network_oracle",
]
