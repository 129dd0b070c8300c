"""`Certificate`: what was proved about a dimension, with everything needed to recompute it."""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, Literal

from neuromanifold.algebra.modular import Obligation
from neuromanifold.architecture import Architecture, Readout
from neuromanifold.certificates.decode import decoded
from neuromanifold.certificates.floats import FLOATS
from neuromanifold.certificates.jacobian import Readings
from neuromanifold.certificates.low_constants import MASKS
from neuromanifold.certificates.probable import Probable
from neuromanifold.certificates.real_values import REAL_VALUES
from neuromanifold.certificates.symmetry_bound import FamilyRank
from neuromanifold.display import Displayed
from neuromanifold.errors import FileFormatError
from neuromanifold.files import read_json_file, write_file

FORMAT = "neuromanifold certificate"
FORMAT_VERSION = 5

Verdict = Literal["exact", "exact given symmetries", "probable", "bounds"]
Reading = Literal["residues", "balls"]


@dataclass(frozen=True, slots=True)
class Function:
    """A user's function, as far as a certificate can name it.

    Attributes:
        name: what the user called it.
        fingerprint: the hash of its traced program.
    """

    name: str
    fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate(Displayed):
    """Bounds for a dimension, proved over a prime field (field-rank, softmax-exact).

    Attributes:
        architecture: the network, or None for a user's function.
        function: the user's function, or None for a network.
        readout: what is looked at of the network's output.
        weights: the hash of the weights given to take the rank at, or None for generic ones.
        prime: the prime p.
        seed: the seed of everything drawn.
        attempt: how many points were passed over because a denominator was zero there.
        inputs: the number of inputs, one Jacobian row each.
        parameters: the number of parameters.
        rank: the rank of the Jacobian: dim ≥ rank, if all obligations are met.
        upper: the smallest upper bound.
        upper_source: what proves it: the symmetries, or the name of a bound of theory.
        symmetries: what each family of symmetries adds to the kernel, in the order counted.
        kernel_checks: known kernel vectors that were multiplied with every row and gave zero.
        obligations: what has to be shown for formal elements, with the ranks that show it.
        user_symmetries: whether the upper bound rests on symmetries or a bound of the user.
        readings: how constants of the function were read.
        probable: the same rank at further points, where the bounds do not meet; else None.
        reading: what the program was evaluated in: residues mod p, or balls of real numbers, where
            p serves the symmetries alone.
        versions: of this package, JAX and NumPy.
        seconds: how long it took.
    """

    architecture: Architecture | None
    function: Function | None
    readout: Readout
    weights: str | None
    prime: int
    seed: int
    attempt: int = 0
    inputs: int
    parameters: int
    rank: int
    upper: int
    upper_source: str
    symmetries: tuple[FamilyRank, ...]
    kernel_checks: int = 0
    obligations: tuple[Obligation, ...] = ()
    user_symmetries: bool = False
    readings: Readings = field(default_factory=Readings)
    probable: Probable | None = None
    reading: Reading = "residues"
    versions: dict[str, str]
    seconds: float

    @property
    def lower_is_proved(self) -> bool:
        """Whether the rank is a proved lower bound: whether every obligation is met."""
        return all(obligation.met for obligation in self.obligations)

    @property
    def lower(self) -> int:
        """The proved lower bound: the rank, or 0 when an obligation is not met."""
        return self.rank if self.lower_is_proved else 0

    @property
    def independence(self) -> Obligation | None:
        """The obligation of exponentials and logarithms, or None without any."""
        named = (o for o in self.obligations if o.name.startswith("exponentials"))
        return next(named, None)

    @property
    def verdict(self) -> Verdict:
        """`exact` when the bounds meet and both are proved; `probable` by further points."""
        if self.rank != self.upper or not self.lower_is_proved:
            return "bounds" if self.probable is None else "probable"
        return "exact given symmetries" if self.user_symmetries else "exact"

    @property
    def unexplained(self) -> int:
        """How many kernel dimensions no known bound accounts for."""
        return self.upper - self.rank

    @property
    def subject(self) -> str:
        """What the certificate is about, in words."""
        if self.architecture is None:
            return self.function.name if self.function else "a function"
        seen = "" if self.readout == "logits" else f", {self.readout}"
        return f"{self.architecture.name}{seen}"

    def __str__(self) -> str:
        kind = "dimension" if self.weights is None else "local dimension at the given weights"
        over = "in balls" if self.reading == "balls" else f"prime {self.prime}"
        how = f"{over}, seed {self.seed}, {self.inputs} input{'s' * (self.inputs != 1)}"
        if not self.lower_is_proved:
            failed = [o for o in self.obligations if not o.met]
            unmet = "; ".join(f"{o.name}: rank {o.rank} of {o.columns}" for o in failed)
            why = "what stands for formal functions was not shown to be independent"
            if {o.name for o in failed} == {MASKS}:
                why = "the large negative constants in it do not hide what they are added to"
            if {o.name for o in failed} == {FLOATS}:
                why = (
                    "floats have 0 or infinity for exponentials in it that were read as numbers: "
                    "select minus infinity where something is masked"
                )
            if any(o.name == REAL_VALUES for o in failed):
                why = "no real point was found at which it has a value"
            return (
                f"{self.subject}: the {kind} is at most {self.upper}; the rank found is "
                f"{self.rank}, which proves nothing, because {why} ({unmet}; {how})."
            )
        if self.verdict == "probable":
            cells = " on these cells" if self.readings.patterns else ""
            if self.readings.whole < self.readings.possible:
                cells += " at these inputs"
            return (
                f"{self.subject}: the {kind}{cells} is {self.rank} ({self.probable}); it is proved "
                f"to be at least {self.lower} and at most {self.upper} ({how}).{self.notes}"
            )
        if self.verdict == "bounds":
            local = self.weights is not None and self.reading == "residues"
            surer = " A second prime makes the rank all but certain." if local else ""
            surer += self.notes
            return (
                f"{self.subject}: the {kind} is at least {self.lower} and at most {self.upper} "
                f"(bounds; {how}); {self.unexplained} of the kernel's dimensions "
                f"{'is' if self.unexplained == 1 else 'are'} unexplained.{surer}"
            )
        return f"{self.subject}: the {kind} is {self.lower} ({self.verdict}; {how}).{self.notes}"

    @property
    def notes(self) -> str:
        """How the function was read, as sentences."""
        said = ""
        if self.readings.patterns:
            where = "the seed" if self.weights is None else "these weights and the seed's inputs"
            count = self.readings.patterns
            said += (
                f" The function is piecewise, and this is about its cells at real points of {where}"
                f" ({count} pattern{'s' * (count != 1)} of branches)."
            )
        if self.readings.passed:
            count = len(self.readings.passed)
            points = "1 point was" if count == 1 else f"{count} points were"
            said += f" {points} passed over, in whose cells nothing is shown."
        if self.readings.possible:
            used, possible = self.readings.whole, self.readings.possible
            drawn = f"all {possible}" if used == possible else f"{used} of {possible}"
            said += f" It takes whole numbers, and {drawn} possible inputs of those were used."
        if self.readings.dyadic:
            count = len(self.readings.dyadic)
            taken = "constant was taken as the exact value of its float"
            taken = (
                taken if count == 1 else "constants were taken as the exact value of their floats"
            )
            said += f" {count} {taken}."
        if self.readings.suspects:
            listed = ", ".join(f"{x:.1e}" for x in self.readings.suspects[:3])
            said += f" Some may be rounding noise: {listed}."
        if self.readings.masks:
            listed = ", ".join(f"{x:g}" for x in self.readings.masks[:3])
            said += f" Masks of {listed} were taken as minus infinity."
        return said

    def summary(self) -> dict[str, Any]:
        """The certificate as it stands in the JSON of `dim`."""
        check = self.independence
        return {
            "lower": self.lower,
            "rank": self.rank,
            "upper": self.upper,
            "verdict": self.verdict,
            "exact": self.verdict == "exact",
            "unexplained": self.unexplained,
            "prime": self.prime,
            "seed": self.seed,
            "inputs": self.inputs,
            "symmetries": [asdict(family) for family in self.symmetries],
            "independence": check and {"columns": check.columns, "rank": check.rank},
            "obligations": [{**asdict(o), "met": o.met} for o in self.obligations],
        }

    def to_dict(self) -> dict[str, Any]:
        """The whole certificate as JSON values, with its format and a checksum."""
        content = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            **asdict(self),
            "architecture": self.architecture.to_dict() if self.architecture else None,
            "lower": self.lower,
            "verdict": self.verdict,
            "unexplained": self.unexplained,
        }
        content = json.loads(json.dumps(content))
        return {**content, "checksum": _checksum(content)}

    @classmethod
    def from_dict(cls, data: object) -> "Certificate":
        """The certificate with this JSON form; anything else is refused with the reason."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise FileFormatError(f"this is no certificate: its 'format' is not {FORMAT!r}")
        if data.get("version") != FORMAT_VERSION:
            raise FileFormatError(
                f"the certificate has format version {data.get('version')!r}, and this program "
                f"reads version {FORMAT_VERSION}: make it again with `neuromanifold certify`"
            )
        content = {key: value for key, value in data.items() if key != "checksum"}
        if data.get("checksum") != _checksum(content):
            raise FileFormatError(
                "the certificate was edited: its checksum does not fit its content; make it again"
            )
        derived = ("format", "version", "lower", "verdict", "unexplained")
        own = {key: value for key, value in content.items() if key not in derived}
        certificate = decoded(cls, own)
        for key, value in certificate.to_dict().items():
            if key not in data or data[key] != value or type(data[key]) is not type(value):
                raise FileFormatError(
                    f"the certificate contradicts itself: its {key} is "
                    f"{shortened(data.get(key))}, and the rest of it says {shortened(value)}"
                )
        return certificate

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the certificate as JSON, whole or not at all."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"
        write_file(path, text.encode(), force=force)


def load_certificate(path: str | Path) -> Certificate:
    """Read a certificate from a file."""
    path = Path(path)
    if not path.is_file():
        raise FileFormatError(f"{path} is not a file; give a certificate (JSON)")
    data = read_json_file(path)
    try:
        return Certificate.from_dict(data)
    except FileFormatError as error:
        raise FileFormatError(f"{path}: {error}") from None


def _checksum(content: dict[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
