"""The network that a question is about: its sizes or its weights, the readout, seed and prime."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from neuromanifold.architecture import Architecture, Readout
from neuromanifold.cli.limits import LimitOptions
from neuromanifold.cli.options import DEFAULT_NETWORK, NetworkOptions, Prime, Seed, weights_given

if TYPE_CHECKING:
    from neuromanifold.networks.weights import Weights


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RankOptions:
    """What a rank over a prime field depends on besides the network."""

    readout: Annotated[Readout, Parameter(help="what is finally looked at")] = "logits"
    seed: Seed = 0
    prime: Prime = None

    @property
    def chosen(self) -> dict[str, Any]:
        """The options by name, with the default prime in place of none."""
        from neuromanifold.algebra.prime_field import DEFAULT_PRIME

        prime = DEFAULT_PRIME if self.prime is None else self.prime
        return {"readout": self.readout, "seed": self.seed, "prime": prime}


RANKS = RankOptions()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SubjectOptions:
    """A network given by its sizes, at generic weights, or by a weights file, at these weights."""

    network: NetworkOptions = DEFAULT_NETWORK
    weights: Annotated[Path | None, Parameter(help="a weights file: answer at these weights")] = (
        None
    )
    ranks: RankOptions = RANKS

    def read(self, limits: LimitOptions) -> "tuple[Architecture, Weights | None]":
        """The network, and the weights if a file was given."""
        if self.weights is None:
            return self.network.architecture(), None
        given = weights_given(self.weights, self.network, limits)
        return given.architecture, given


SUBJECT = SubjectOptions()
