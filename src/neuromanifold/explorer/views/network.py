"""The network view: formula at once, certificate on request, verification of a dropped one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuromanifold.cost import Cost, certifying, sizes_of, verifying
from neuromanifold.errors import ArgumentError
from neuromanifold.explorer import code, question
from neuromanifold.explorer.jobs import Report

if TYPE_CHECKING:
    from neuromanifold.networks.network import Network

LARGEST_NETWORK = 10_000_000
"""Parameters up to which a network is made for its diagram."""


def describe(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What theory says about a network: no arrays, so it is there at once."""
    from neuromanifold.formula.formula import dimension_formula
    from neuromanifold.formula.redundancy import redundancy
    from neuromanifold.statements import get

    architecture, readout = question.architecture_of(asked), question.readout_of(asked)
    formula, found = dimension_formula(architecture, readout), redundancy(architecture)
    shares = found.to_dict()["shares"]
    if readout != "logits" and formula.dimension is not None and found.formula.dimension:
        lost = found.formula.dimension - formula.dimension
        shares.append(
            {"name": f"not seen by {readout}", "dimension": lost, "meaning": "lost by the readout"}
        )
    return {
        "name": architecture.name,
        "architecture": architecture.to_dict(),
        "readout": readout,
        "parameters": architecture.parameters,
        "formula": {**formula.to_dict(), "sentence": str(formula)},
        "statement": None if formula.statement is None else get(formula.statement).to_dict(),
        "shares": shares if formula.dimension is not None else [],
        "proof": _offer(asked, certifying(sizes_of(architecture))),
        "code": code.shown(
            f"{code.IMPORT}\nnet = {code.architecture_python(architecture)}\n"
            f"print(nm.dimension_formula(net{code.readout_python(readout)}))",
            f"neuromanifold dim {code.architecture_options(architecture)}"
            f"{code.readout_option(readout)}",
        ),
    }


def diagram(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """The spaces of a network, its tensors between them, and what each symmetry moves."""
    report("loading JAX")
    net, cost, shown = _asked_network(asked)
    return {
        "name": net.name,
        "sentence": str(net),
        "parameters": net.parameters,
        "svg": net.diagram.svg(),
        "symmetries": net.diagram.to_dict()["symmetries"],
        "proof": _offer(asked, cost),
        "code": shown,
    }


def _asked_network(
    asked: Mapping[str, Any], seed: int = 0
) -> "tuple[Network, Cost, dict[str, str]]":
    """The network, made of its fields or by a named module, with what a proof costs."""
    if file := asked["files"].get("network"):
        from neuromanifold.symmetry.user_function import network_sizes, user_network

        net = user_network(f"{file['path']}:{file['name'].rpartition(':')[2]}")
        shown = _proof_code(
            "from neuromanifold.symmetry.user_function import user_network\n"
            f"net = user_network({file['name']!r})",
            f"seed={seed}",
            f"{code.file_word(file['name'])} --seed {seed}",
        )
        return net, certifying(network_sizes(net)), shown
    architecture, readout = question.architecture_of(asked), question.readout_of(asked)
    if architecture.parameters > LARGEST_NETWORK:
        raise ArgumentError(f"a network of more than {LARGEST_NETWORK} parameters is not drawn")
    from neuromanifold.symmetry.families import network

    shown = _proof_code(
        f"net = {code.architecture_python(architecture)}",
        f"seed={seed}{code.readout_python(readout)}",
        f"{code.architecture_options(architecture)}{code.readout_option(readout)} --seed {seed}",
    )
    return network(architecture, readout=readout), certifying(sizes_of(architecture)), shown


def prove(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """A certificate of the dimension, with the ledger of where the parameters go."""
    seed = question.whole(asked, "seed", 0, 0, 2**31)
    report("loading JAX")
    from neuromanifold.certificates.exact import certify
    from neuromanifold.certificates.ledger import Ledger, ledger_lines

    net, cost, shown = _asked_network(asked, seed)
    question.afford(asked, cost, "the proof")
    report("computing ranks over the prime field")
    certificate = certify(net, seed=seed)
    ledger = Ledger(certificate, ledger_lines(certificate, net), None)
    return {
        "sentence": str(certificate),
        "certificate": certificate.to_dict(),
        "file": json.dumps(certificate.to_dict(), indent=2, ensure_ascii=False) + "\n",
        "ledger": ledger.to_dict()["lines"],
        "code": shown,
    }


def _offer(asked: Mapping[str, Any], cost: Cost) -> dict[str, Any]:
    """What a proof would cost, and whether it is started from the page."""
    try:
        question.afford(asked, cost, "the proof")
    except ArgumentError as error:
        return {"offered": False, "sentence": str(error)}
    return {"offered": True, "sentence": f"exact ranks over a prime field: {cost}"}


def _proof_code(made: str, arguments: str, options: str) -> dict[str, str]:
    """How the network that `made` makes is proved elsewhere."""
    return code.shown(
        f"{code.IMPORT}\n{made}\ncertificate = nm.certify(net, {arguments})\n"
        'print(certificate)\ncertificate.save("certificate.json")',
        f"neuromanifold certify {options} --out certificate.json",
    )


def verify(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """A dropped certificate, recomputed by other means."""
    report("reading the certificate")
    from neuromanifold.certificates.certificate import load_certificate
    from neuromanifold.certificates.verify import verify as recompute

    file = asked["files"]["certificate"]
    certificate = load_certificate(Path(file["path"]))
    if certificate.architecture is not None:
        cost = verifying(sizes_of(certificate.architecture), certificate.inputs)
        question.afford(asked, cost, "the verification")
    report("recomputing with python-flint and plain integers")
    answer = code.printed(
        recompute(certificate),
        f"nm.verify(nm.load_certificate({file['name']!r}))",
        f"neuromanifold verify {code.file_word(file['name'])}",
    )
    return {**answer, "certificate_sentence": str(certificate)}
