"""The checkpoint view: a real model, what of it its function does not see, and every head."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from neuromanifold.explorer import code, question
from neuromanifold.explorer.jobs import Report

READOUTS = ("logits", "probabilities")


def audit(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """The redundancy of a model part by part, its heads, its dead parameters."""
    report("opening the model")
    from neuromanifold.checkpoints.audits.audit import audit as look
    from neuromanifold.checkpoints.checkpoint import open_checkpoint

    file = asked["files"]["model"]
    readout = question.word(asked, "readout", READOUTS, "logits")
    checkpoint = open_checkpoint(Path(file["path"]))
    report(f"reading {checkpoint.block.stored_layers} layers")
    answer = code.printed(
        look(checkpoint, readout),
        f"nm.checkpoint({file['name']!r}).audit(readout={readout!r})",
        f"neuromanifold checkpoint audit {code.file_word(file['name'])}"
        f"{code.readout_option(readout)}",
    )
    return {**answer, "name": file["name"]}


def compare(asked: Mapping[str, Any], report: Report) -> dict[str, Any]:
    """How far two models are from each other, head by head, whatever the bases."""
    report("opening both models")
    from neuromanifold.checkpoints.checkpoint import open_checkpoint
    from neuromanifold.checkpoints.distance.compare import compare as look

    files = [asked["files"][key] for key in ("first", "second")]
    models = [open_checkpoint(Path(file["path"])) for file in files]
    report(f"matching the heads of {models[0].block.stored_layers} layers")
    names = [file["name"] for file in files]
    answer = code.printed(
        look(*models),
        f"nm.compare({names[0]!r}, {names[1]!r})",
        f"neuromanifold checkpoint compare {' '.join(map(code.file_word, names))}",
    )
    return {**answer, "names": names}
