"""`certify_block`: that the gauge group is all there is, proved for a small block of the kind.

The formulas of the gauge group are upper bounds for any size. That nothing else is redundant is
shown by an exact rank of the Jacobian, for a block with the same parts and small sizes.
"""

from dataclasses import asdict, dataclass, replace
from math import atan2
from typing import Any

from neuromanifold.certificates.certificate import Certificate
from neuromanifold.certificates.exact import certify
from neuromanifold.checkpoints.block.block import Block
from neuromanifold.checkpoints.block.diagram import block_network
from neuromanifold.checkpoints.block.parts import Attention, Head, Patch, Relative, Rotary
from neuromanifold.checkpoints.gauge.group import redundancy, unmet, unseen
from neuromanifold.checkpoints.gauge.part import Readout
from neuromanifold.errors import NotCoveredError

TOKENS = 2
"""The tokens of an input: one that sees another, and one that is seen."""
_TURN = atan2(4, 3)
"""An angle whose cosine and sine are rational: the exact engine reads them as they are meant."""


@dataclass(frozen=True, slots=True)
class SmallProof:
    """What is proved about a small block with the parts of a large one.

    Attributes:
        block: the small block.
        redundant: the dimension of its gauge group, by the formulas.
        certificate: the exact ranks; None where the engine refuses the function.
        refusal: why nothing is proved; None when there is a certificate.
    """

    block: Block
    redundant: int
    certificate: Certificate | None
    refusal: str | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the gauge group is proved to be all there is."""
        return self.certificate is not None and self.certificate.verdict == "exact"

    def __str__(self) -> str:
        a, count = self.block.attention, self.block.parameters
        kind = f"a small block of this kind ({count} parameters, {a.heads} heads on {a.groups})"
        if self.certificate is None:
            return f"Not proved that nothing else is redundant in {kind}: {self.refusal}."
        if self.is_exact:
            return (
                f"In {kind} exactly {self.redundant} are redundant, those of the gauge group, on "
                f"mixtures of tokens (exact; prime {self.certificate.prime}, seed "
                f"{self.certificate.seed})."
            )
        return (
            f"Not proved that nothing else is redundant in {kind}: {self.redundant} are, and "
            f"{self.certificate.unexplained} more dimensions are unexplained."
        )

    def to_dict(self) -> dict[str, Any]:
        """The proof as JSON."""
        found = self.certificate
        return {
            "verdict": "not proved" if found is None else found.verdict,
            "parameters": self.block.parameters,
            "redundant": self.redundant,
            "dimension": None if found is None else found.lower,
            "unexplained": None if found is None else found.unexplained,
            "parts": None if found is None else {s.name: s.dimension for s in found.symmetries},
            "sentence": str(self),
            "block": asdict(self.block),
        }


def certify_block(block: Block, readout: Readout = "logits", seed: int = 0) -> SmallProof:
    """Certify the gauge group of a block in a small configuration of its kind."""
    small = small_block(block)
    redundant = sum(redundancy(small, readout).values())
    for reasons in (unmet(block), unseen(block, readout), unmet(small)):
        if reasons:
            return SmallProof(small, redundant, None, f"the count is not covered: {reasons[0]}")
    try:
        certificate = certify(block_network(small, readout, TOKENS), seed=seed)
    except NotCoveredError as error:
        return SmallProof(small, redundant, None, str(error).split(";")[0])
    return SmallProof(small, redundant, certificate)


def small_block(block: Block) -> Block:
    """A block with the same parts, one layer (two where layers are shared) and small sizes."""
    a, width = block.attention, 4 if block.centred else 3
    positions = TOKENS if block.patch is None else TOKENS + 1  # the class token is no input
    rows = {"tokens": width + 1, "positions": positions, "types": 2}
    tables = tuple((name, min(rows[name], n)) for name, n in block.tables)
    head = block.head
    if head.kind != "none":
        scale = 1.0 if head.scale == 1 else 0.5
        head = Head(**{**asdict(head), "rows": width + 1, "scale": scale})
    return replace(
        block,
        width=width,
        layers=2 if block.shared else 1,
        attention=_small_attention(a),
        mlp=None if block.mlp is None else replace(block.mlp, size=2),
        embed_width=None if block.embed_width is None else width,
        embed_scale=1.0 if block.embed_scale == 1 else 2.0,
        tables=tables,
        position_offset=0,
        patch=None if block.patch is None else Patch(channels=1, height=1, width=2),
        head=head,
    )


def _small_attention(a: Attention) -> Attention:
    """Two heads, on one key head where heads share."""
    heads, groups = (2, 1) if a.sharing > 1 else (2, 2)
    rotary = a.rotary
    partly = rotary is not None and a.rotated < a.key_size
    if rotary is not None:
        rotary = Rotary(size=2, layout=rotary.layout, frequencies=(_TURN,))
    relative = a.relative and Relative(buckets=4, distance=3, both=a.relative.both)
    return replace(
        a,
        heads=heads,
        groups=groups,
        key_size=3 if partly else 2,
        value_size=2,
        rotary=rotary,
        relative=relative,
        scale=1.0,
        windows=(),
    )
