"""The options that say which network or weights a question is about, and what it depends on."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from neuromanifold.architecture import Architecture, Attention, Mask, Readout, Skip
from neuromanifold.cli.run import RunOptions
from neuromanifold.cost import Cost, Sizes, sizes_of
from neuromanifold.errors import ArchitectureError, ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from neuromanifold.networks.network import Network
    from neuromanifold.networks.weights import Weights

ONE_OR_MORE = Number(gte=1)
Seed = Annotated[int, Parameter(help="seed of everything that is drawn", validator=Number(gte=0))]
Seconds = Annotated[float, Parameter(help="seconds for each piece of work", validator=Number(gt=0))]
Force = Annotated[bool, Parameter(negative="", help="replace an existing file")]
Dtype = Annotated[
    Literal["float64", "float32", "float16", "bfloat16"] | None,
    Parameter(help="of the tensors written; by default that of the tensors read"),
]
Function = Annotated[
    str | None, Parameter(help="module.py:function, a network of your own, not a built-in one")
]


def dtype_of(word: str | None) -> "np.dtype | None":
    """The dtype of a word of `Dtype`."""
    if word is None:
        return None
    import ml_dtypes
    import numpy as np

    return np.dtype(ml_dtypes.bfloat16 if word == "bfloat16" else word)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """The fields of an architecture, as words of the command line."""

    widths: Annotated[str | None, Parameter(help="widths d_0,…,d_l, e.g. 4,2,3")] = None
    ranks: Annotated[str | None, Parameter(help="query/key ranks a_1,…,a_l, e.g. 2,2")] = None
    tokens: Annotated[int | None, Parameter(help="the number t of tokens")] = None
    attention: Annotated[Attention, Parameter(help="how scores become weights")] = "lightning"
    heads: Annotated[int, Parameter(help="heads in every layer")] = 1
    value_ranks: Annotated[
        str | None, Parameter(help="ranks v_1,…,v_l: factor the value maps as O V")
    ] = None
    skip: Annotated[Skip, Parameter(help="X + φ(X), or Σ V (X + X P)")] = "none"
    mask: Annotated[Mask, Parameter(help="which tokens a token sees")] = "none"
    temperature: Annotated[float, Parameter(help="softmax temperature")] = 1.0

    @property
    def given(self) -> bool:
        """Whether anything was said of a network."""
        return self != DEFAULT_NETWORK

    def architecture(self) -> Architecture:
        """The network these options describe."""
        for name in ("widths", "ranks", "tokens"):
            if getattr(self, name) is None:
                raise ArchitectureError(
                    f"--{name} is missing; a network is given by --widths, --ranks and --tokens, "
                    "for instance --widths 4,2,3 --ranks 2,2 --tokens 3"
                )
        lists = {
            name: _sizes(name, vars(self)[name]) for name in ("widths", "ranks", "value_ranks")
        }
        return Architecture.from_dict(vars(self) | lists)


DEFAULT_NETWORK = NetworkOptions()


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class RankOptions:
    """What a rank over a prime field depends on besides the network."""

    readout: Annotated[Readout, Parameter(help="what is finally looked at")] = "logits"
    seed: Seed = 0
    prime: Annotated[
        int | None, Parameter(help="the prime, 2^20 < p < 2^23; default the largest")
    ] = None

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

    def read(self, run: RunOptions) -> "tuple[Architecture, Weights | None, Sizes]":
        """The network, the weights if a file was given, and the sizes on which costs depend."""
        if self.weights is None:
            network = self.network.architecture()
            return network, None, sizes_of(network)
        if self.network.given:
            raise ArchitectureError(
                "--weights brings its own architecture; leave out --widths and all else that "
                "describes one"
            )
        given = read_weights(self.weights, run)
        return given.architecture, given, sizes_of(given.architecture)


SUBJECT = SubjectOptions()


def read_subject(
    function: str | None, options: SubjectOptions, run: RunOptions
) -> "tuple[Network | Architecture, Any, Sizes]":
    """The network of `module.py:function`, or of the options, its weights there, and its sizes."""
    if function is None:
        return options.read(run)
    if ".py:" not in function and options.network.given:
        raise ArgumentError(
            f"{function!r} is left over: a built-in network is described by options alone, with "
            "commas and no spaces in lists, like --widths 4,2,3; your own is module.py:function"
        )
    if options.weights is not None or options.network.given:
        raise ArgumentError(
            f"{function} is a network with weights of its own; leave out --weights, --widths and "
            "all else that describes a built-in network"
        )
    from neuromanifold.symmetry.user_function import network_and_weights, network_sizes

    network, weights = network_and_weights(function)
    return network, weights, network_sizes(network)


def read_weights(file: Path, run: RunOptions) -> "Weights":
    """The weights in a file, which may be too large to hold."""
    size = file.stat().st_size if file.is_file() else 0
    Cost(4 * size, 1e-8 * size).check(run.limits, f"reading {file}")
    from neuromanifold.networks.files import load_weights

    return load_weights(file)


def _sizes(name: str, text: str | None) -> tuple[int, ...] | None:
    """The numbers of a list, if one was given."""
    try:
        return None if text is None else tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ArchitectureError(
            f"--{name.replace('_', '-')} must be whole numbers with commas between them, like "
            f"4,2,3; got {text!r}"
        ) from None
