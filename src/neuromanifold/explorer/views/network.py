"""The network view: formula at once, certificate on request, verification of a dropped one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuromanifold.architecture import Architecture, Readout
from neuromanifold.cost import certifying, sizes_of, verifying
from neuromanifold.errors import ArgumentError
from neuromanifold.explorer import code, question
from neuromanifold.explorer.diagram import diagram_of
from neuromanifold.explorer.jobs import Report


def describe(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What theory says about a network: no arrays, so it is there at once."""
    from neuromanifold.formula.formula import dimension_formula
    from neuromanifold.formula.redundancy import redundancy

    architecture, readout = question.architecture_of(asked), question.readout_of(asked)
    formula, found = dimension_formula(architecture, readout), redundancy(architecture)
    shares = [
        {"name": share.name, "dimension": share.dimension, "meaning": share.meaning}
        for share in found.shares
    ]
    if readout != "logits" and formula.dimension is not None and found.formula.dimension:
        lost = found.formula.dimension - formula.dimension
        shares.append(
            {"name": f"not seen by {readout}", "dimension": lost, "meaning": "lost by the readout"}
        )
    described = {
        "name": architecture.name,
        "architecture": architecture.to_dict(),
        "readout": readout,
        "parameters": architecture.parameters,
        "formula": {**formula.to_dict(), "sentence": str(formula)},
        "statement": None if formula.statement is None else _statement(formula.statement),
        "shares": shares if formula.dimension is not None else [],
        "diagram": diagram_of(found),
        "proof": _proof_cost(asked, architecture),
        "code": code.shown(
            f"{code.IMPORT}\nnet = {code.architecture_python(architecture)}\n"
            f"print(nm.dimension_formula(net{code.readout_python(readout)}))",
            f"neuromanifold dim {code.architecture_options(architecture)}"
            f"{code.readout_option(readout)}",
        ),
    }
    return question.answer(described)


def _statement(id_: str) -> dict[str, Any]:
    from neuromanifold.statements import get

    statement = get(id_)
    return {
        "id": statement.id,
        "title": statement.title,
        "claim": statement.claim,
        "status": statement.status,
        "hypotheses": [hypothesis.text for hypothesis in statement.hypotheses],
    }


def prove(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """A certificate of the dimension, with the ledger of where the parameters go."""
    architecture, readout = question.architecture_of(asked), question.readout_of(asked)
    seed = question.whole(asked, "seed", 0, 0, 2**31)
    question.afford(asked, certifying(sizes_of(architecture)), "the proof")
    report("loading JAX")
    from neuromanifold.certificates.exact import certify
    from neuromanifold.certificates.ledger import Ledger, ledger_lines
    from neuromanifold.symmetry.families import network

    report("computing ranks over the prime field")
    net = network(architecture, readout=readout)
    certificate = certify(net, seed=seed)
    ledger = Ledger(certificate, ledger_lines(certificate, net), None)
    return {
        "sentence": str(certificate),
        "certificate": certificate.to_dict(),
        "file": json.dumps(certificate.to_dict(), indent=2, ensure_ascii=False) + "\n",
        "ledger": [
            {"name": line.name, "dimension": line.dimension, "statement": line.statement}
            for line in ledger.lines
        ],
        "code": _proof_code(architecture, readout, seed),
    }


def _proof_cost(asked: Mapping[str, Any], architecture: Architecture) -> dict[str, Any]:
    """What a proof would cost, and whether it is started from the page."""
    cost = certifying(sizes_of(architecture))
    try:
        question.afford(asked, cost, "the proof")
    except ArgumentError as error:
        return {"offered": False, "sentence": str(error)}
    return {"offered": True, "sentence": f"exact ranks over a prime field: {cost}"}


def _proof_code(architecture: Architecture, readout: Readout, seed: int) -> dict[str, str]:
    return code.shown(
        f"{code.IMPORT}\nnet = {code.architecture_python(architecture)}\n"
        f"certificate = nm.certify(net, seed={seed}{code.readout_python(readout)})\n"
        'print(certificate)\ncertificate.save("certificate.json")',
        f"neuromanifold certify {code.architecture_options(architecture)}"
        f"{code.readout_option(readout)} --seed {seed} --out certificate.json",
    )


def verify(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """A dropped certificate, recomputed by other means."""
    report("reading the certificate")
    from neuromanifold.certificates.certificate import load_certificate
    from neuromanifold.certificates.verify import verify as recompute

    file = asked["files"]["certificate"]
    certificate = load_certificate(Path(file["path"]))
    if certificate.architecture is not None:
        question.afford(asked, verifying(sizes_of(certificate.architecture)), "the verification")
    report("recomputing with python-flint and plain integers")
    found = recompute(certificate)
    name = file["name"]
    return {
        **found.to_dict(),
        "sentence": str(found),
        "certificate_sentence": str(certificate),
        "code": code.shown(
            f"{code.IMPORT}\nfrom neuromanifold.certificates.certificate import load_certificate\n"
            f"print(nm.verify(load_certificate({name!r})))",
            f"neuromanifold verify {code.file_word(name)}",
        ),
    }
