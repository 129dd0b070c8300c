"""What may depend on the arguments of a function, from the tables of rules themselves."""

from neuromanifold.algebra.modular.rules.arithmetic import ARITHMETIC
from neuromanifold.algebra.modular.rules.complex_parts import OF_COMPLEX
from neuromanifold.algebra.modular.rules.control import CONTROL
from neuromanifold.algebra.modular.rules.elementary import OPENINGS
from neuromanifold.algebra.modular.rules.indexing import INDEXING
from neuromanifold.algebra.modular.rules.linear_systems import LINEAR_SYSTEMS
from neuromanifold.algebra.modular.rules.masks import MASKS
from neuromanifold.algebra.modular.rules.structural import ARRANGEMENTS, UNTOUCHED
from neuromanifold.algebra.modular.rules.windows import WINDOWS

COVERED: dict[str, frozenset[str]] = {
    "field operations": frozenset(ARITHMETIC),
    "formal functions, and what is rational in them": frozenset(OPENINGS)
    - {"formal", "convert_element_type", "integer_pow", "reduce_max", "square"},
    "rearrangements": frozenset(ARRANGEMENTS) | UNTOUCHED | {"iota"},
    "positions that are constants": frozenset(INDEXING),
    "windows": frozenset(WINDOWS),
    "linear systems": frozenset(LINEAR_SYSTEMS),
    "masks and maxima": frozenset(MASKS),
    "of complex values": OF_COMPLEX,
    "calls and loops": frozenset(CONTROL),
}
"""The primitives that are covered, by the kind of rule; of constants every primitive is."""

SUPPORTED = frozenset().union(*COVERED.values())
