"""What commands take against what `neuromanifold.cost` expects, as ratios.

    python benchmarks/costs.py [NAME …]

Each case runs in a process of its own with one thread; the time is that of the processor, which
others on the machine do not lengthen much, and the memory the largest that the process held. The
constants of `cost` are set so that the ratios stay between a third and three; where a computation
is over in a second the fixed parts dominate and nothing is concluded.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from neuromanifold import cost
from neuromanifold.architecture import Architecture

SQUARE = Architecture((16,) * 5, (16,) * 4, 3)
LARGER = Architecture((24,) * 5, (24,) * 4, 3)
SOFTMAX = Architecture((12, 12, 12), (6, 6), 6, "softmax")
HEADS = Architecture((10, 10), (4,), 3, heads=6, value_ranks=(4,))
RESIDUAL = Architecture((12, 12, 12), (6, 6), 3, skip="residual")
SMALL = Architecture((6, 6, 6), (3, 3), 3)
MODEL = {
    "model_type": "gpt2",
    "n_embd": 384,
    "n_layer": 4,
    "n_head": 6,
    "vocab_size": 5000,
    "n_positions": 128,
}

Case = tuple[cost.Cost, Callable[[], object]]


def certifying(architecture: Architecture) -> Case:
    """A certificate."""
    from neuromanifold.certificates.exact import certify

    return cost.certifying(cost.sizes_of(architecture)), lambda: certify(architecture)


def verifying(architecture: Architecture) -> Case:
    """A certificate verified; it is made before."""
    from neuromanifold.certificates.exact import certify
    from neuromanifold.certificates.verify import verify

    certificate = certify(architecture)
    expected = cost.verifying(cost.sizes_of(architecture), certificate.inputs)
    return expected, lambda: (certify(architecture), verify(certificate))


def estimating(architecture: Architecture) -> Case:
    """An estimate in floating point."""
    from neuromanifold.certificates.numeric import estimate

    return cost.estimating(cost.sizes_of(architecture)), lambda: estimate(architecture)


def discovering(architecture: Architecture) -> Case:
    """All symmetries."""
    from neuromanifold.certificates.discovery.discover import discover

    return cost.discovering(cost.sizes_of(architecture)), lambda: discover(architecture)


def sensing(architecture: Architecture) -> Case:
    """The singular values of every tensor."""
    from neuromanifold.certificates.sensitivity import sensitivity

    return cost.sensing(cost.sizes_of(architecture), 32), lambda: sensitivity(architecture)


def looking() -> Case:
    """The audit of a random model."""
    from checkpoints import make
    from neuromanifold.checkpoints.audits.audit import audit
    from neuromanifold.checkpoints.checkpoint import open_checkpoint
    from neuromanifold.cli.checkpoint import cost_of

    model = open_checkpoint(make(Path(tempfile.mkdtemp()) / "model", MODEL))
    return cost_of(model), lambda: audit(model)


CASES: dict[str, Callable[[], Case]] = {
    "certify, four layers of 16": lambda: certifying(SQUARE),
    "certify, four layers of 24": lambda: certifying(LARGER),
    "certify, softmax": lambda: certifying(SOFTMAX),
    "certify, six heads": lambda: certifying(HEADS),
    "certify, residual": lambda: certifying(RESIDUAL),
    "verify": lambda: verifying(RESIDUAL),
    "estimate": lambda: estimating(RESIDUAL),
    "discover": lambda: discovering(SMALL),
    "sensitivity": lambda: sensing(SMALL),
    "checkpoint audit": looking,
}


def one(name: str) -> None:
    """Run one case in this process and print its line."""
    expected, action = CASES[name]()
    started = time.process_time()
    action()
    taken = time.process_time() - started
    held = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
    print(
        f"{name:28} {taken:8.2f} {taken / expected.seconds:8.2f}"
        f" {cost.memory_text(held):>9} {held / expected.bytes:8.2f}"
    )


def main() -> None:
    """Print the table."""
    print(f"{'':28} {'seconds':>8} {'ratio':>8} {'memory':>9} {'ratio':>8}", flush=True)
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for name in sys.argv[1:] or CASES:
        subprocess.run([sys.executable, __file__, "--one", name], env=alone, check=True)


if __name__ == "__main__":
    one(sys.argv[2]) if sys.argv[1:2] == ["--one"] else main()
