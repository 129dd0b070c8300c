"""The checkpoint view: a real model, what of it its function does not see, and every head."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuromanifold.explorer import code, question
from neuromanifold.explorer.jobs import Report

if TYPE_CHECKING:
    from neuromanifold.checkpoints.audit import HeadRecord
    from neuromanifold.checkpoints.spectra import Spectrum

READOUTS = ("logits", "probabilities")
_VALUES = 160
"""Singular values of a head that are sent to the page, the largest."""


def audit(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """The redundancy of a model part by part, its heads, its dead parameters."""
    report("opening the model")
    from neuromanifold.checkpoints.audit import audit as look
    from neuromanifold.checkpoints.checkpoint import open_checkpoint

    file = asked["files"]["model"]
    readout = question.word(asked, "readout", READOUTS, "logits")
    checkpoint = open_checkpoint(Path(file["path"]))
    report(f"reading {checkpoint.block.stored_layers} layers")
    found = look(checkpoint, readout)
    options = "" if readout == "logits" else f" --readout {readout}"
    return {
        "name": file["name"],
        "sentence": str(found),
        "parameters": found.parameters,
        "redundant": found.redundant,
        "readout": found.readout,
        "parts": [asdict(part) for part in found.parts if part.dimension],
        "eps_parts": [asdict(part) for part in found.eps_parts if part.dimension],
        "unmet": found.unmet,
        "heads": [_head(head) for head in found.heads],
        "equal_heads": found.equal_heads,
        "dead": [asdict(dead) for dead in found.dead],
        "slow_planes": found.slow_planes,
        "outside": found.outside,
        "remarks": found.remarks,
        "code": code.shown(
            f"{code.IMPORT}\nprint(nm.checkpoint({file['name']!r}).audit(readout={readout!r}))",
            f"neuromanifold checkpoint audit {code.file_word(file['name'])}{options}",
        ),
    }


def compare(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """How far two models are from each other, head by head, whatever the bases."""
    report("opening both models")
    from neuromanifold.checkpoints.checkpoint import open_checkpoint
    from neuromanifold.checkpoints.compare import UNRELATED
    from neuromanifold.checkpoints.compare import compare as look

    files = [asked["files"][key] for key in ("first", "second")]
    models = [open_checkpoint(Path(file["path"])) for file in files]
    report(f"matching the heads of {models[0].block.stored_layers} layers")
    found = look(*models)
    names = [file["name"] for file in files]
    return {
        "names": names,
        "sentence": str(found),
        "unrelated": UNRELATED,
        "layers": [layer.to_dict() for layer in found.layers],
        "outer": found.outer,
        "stream": found.stream,
        "code": code.shown(
            f"{code.IMPORT}\nprint(nm.compare({names[0]!r}, {names[1]!r}))",
            f"neuromanifold checkpoint compare {' '.join(map(code.file_word, names))}",
        ),
    }


def _head(head: "HeadRecord") -> dict[str, Any]:
    return {
        "layer": head.layer,
        "head": head.head,
        "group": head.group,
        "query_key": _spectrum(head.query_key),
        "value_output": _spectrum(head.value_output),
        "balance": max(head.balance_query_key, head.balance_value_output),
    }


def _spectrum(spectrum: "Spectrum") -> dict[str, Any]:
    return {
        "values": [float(f"{value:.4g}") for value in spectrum.values[:_VALUES]],
        "size": len(spectrum.values),
        "rank": spectrum.rank,
        "threshold": spectrum.threshold,
        "verdict": spectrum.verdict,
    }
