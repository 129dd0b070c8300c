"""The exact geometry of attention networks: fibers, dimensions, singularities, recovery.

The names below load on first use, so that importing the package imports neither JAX nor NumPy.
"""

from importlib import import_module

__version__ = "0.1.0"

_HOME = {
    "Architecture": "neuromanifold.architecture",
    "NeuromanifoldError": "neuromanifold.errors",
    "Weights": "neuromanifold.networks.weights",
    "random_weights": "neuromanifold.networks.weights",
    "load_weights": "neuromanifold.networks.files",
    "save_weights": "neuromanifold.networks.files",
    "attention": "neuromanifold.networks.attention",
    "dimension_formula": "neuromanifold.formula.formula",
    "redundancy": "neuromanifold.formula.redundancy",
    "network": "neuromanifold.symmetry.families",
    "Network": "neuromanifold.networks.network",
    "Space": "neuromanifold.networks.space",
    "Tensor": "neuromanifold.networks.space",
    "GL": "neuromanifold.symmetry.groups",
    "Orthogonal": "neuromanifold.symmetry.groups",
    "RotationCommutant": "neuromanifold.symmetry.groups",
    "Monomial": "neuromanifold.symmetry.groups",
    "WithTranslations": "neuromanifold.symmetry.groups",
    "certify": "neuromanifold.certificates.exact",
    "from_torch": "neuromanifold.networks.frontends.pytorch",
    "certify_function": "neuromanifold.certificates.exact",
    "verify": "neuromanifold.certificates.verify",
    "estimate": "neuromanifold.certificates.numeric",
    "explain": "neuromanifold.certificates.ledger",
    "discover": "neuromanifold.certificates.discovery.discover",
    "identifiable": "neuromanifold.certificates.identifiable",
    "sensitivity": "neuromanifold.certificates.sensitivity",
    "same_function": "neuromanifold.fibers.same",
    "describe_fiber": "neuromanifold.fibers.describe",
    "count_fiber": "neuromanifold.fibers.count",
    "sample_fiber": "neuromanifold.fibers.sample",
    "walk": "neuromanifold.fibers.walk",
    "transport": "neuromanifold.fibers.transport.transport",
    "canonical_form": "neuromanifold.fibers.normal_form.canonical",
    "classify": "neuromanifold.geometry.classify",
    "plot_ledger": "neuromanifold.plots",
    "plot_spectrum": "neuromanifold.plots",
    "progress": "neuromanifold.waiting",
    "plot_sensitivity": "neuromanifold.plots",
    "recover": "neuromanifold.recovery.recover",
    "open_model": "neuromanifold.checkpoints.reading",
    "compare": "neuromanifold.checkpoints.distance.compare",
    "align": "neuromanifold.checkpoints.distance.align",
    "model_fingerprint": "neuromanifold.checkpoints.distance.fingerprint",
    "checkpoint": "neuromanifold.checkpoints.face",
    "adapter": "neuromanifold.checkpoints.adapters.peft",
    "merge_adapters": "neuromanifold.checkpoints.adapters.reduce",
    "adapter_distance": "neuromanifold.checkpoints.adapters.compare",
    "network_oracle": "neuromanifold.recovery.oracle",
    "load_certificate": "neuromanifold.certificates.certificate",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> object:
    if name in _HOME:
        try:
            return getattr(import_module(_HOME[name]), name)
        except ModuleNotFoundError as error:
            from neuromanifold.extras import missing_extra

            raise missing_extra(error) or error from None
    raise AttributeError(f"module 'neuromanifold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
