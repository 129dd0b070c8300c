"""Edits that keep the function: the other rotary layout, and norms folded into what reads them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.block.parts import Layout
from neuromanifold.checkpoints.checkpoint import Checkpoint
from neuromanifold.checkpoints.normal_form.canonical import Canonical, Steps
from neuromanifold.checkpoints.normal_form.fold import untied
from neuromanifold.display import Recorded
from neuromanifold.errors import ArgumentError, FileFormatError, NotCoveredError

_FOLD = Steps(fold=True, drop_dead=False, balance=False, order=False)


@dataclass(frozen=True, slots=True)
class Edit(Recorded):
    """What an edit wrote: the folder, in words what was done, and what to know."""

    folder: str
    done: str
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.done} Written to {self.folder}." + "".join(
            f" Note: {remark}." for remark in self.remarks
        )


def convert_rope(checkpoint: Checkpoint, out: str | Path, to: Layout) -> Edit:
    """Permute the rows of queries and keys, biases and norms included, to the other layout.

    The permutation together with the layout is a symmetry (gauge-rope); the new configuration says
    `rope_layout`.
    """
    folder, block = _new_folder(out), checkpoint.block
    rotary = block.attention.rotary
    if rotary is None:
        raise ArgumentError(f"{checkpoint.path} has no rotary positions to convert")
    if block.family == "gguf":
        raise NotCoveredError(
            "GGUF says the layout by its architecture; write another layout from the original files"
        )
    target = replace(block, attention=replace(block.attention, rotary=replace(rotary, layout=to)))
    _write(checkpoint, folder, checkpoint.as_block(target).tensor, {"rope_layout": to})
    return Edit(str(out), f"Rotary positions {rotary.layout} → {to}.")


def fold_norms(checkpoint: Checkpoint, out: str | Path, *, untie: bool = False) -> Edit:
    """Gains and shifts of norms into what reads them (norm-absorption)."""
    folder, block = _new_folder(out), checkpoint.block
    remarks: list[str] = []
    if block.family == "gguf":
        remarks.append("names and configuration are still GGUF's, which few read in safetensors")
    if block.placement == "post":
        remarks.append("norms follow the sum: only shifts could be folded")
    if block.head.kind == "tied" and not untie:
        remarks.append("the head is tied: the final norm was left alone; --untie folds it too")
    if untie and block.head.kind != "tied":
        raise ArgumentError(f"{checkpoint.path} has no tied head to untie")
    if untie and block.family not in ("gpt2", "gptj", "llama", "gemma2", "phi3", "phi"):
        raise NotCoveredError(f"a head of its own has no name in files of {block.family}")
    target = untied(block) if untie else block
    form = Canonical(checkpoint.as_block(target).whole, _FOLD)
    config: dict[str, object] = {"tie_word_embeddings": False} if untie else {}
    _write(checkpoint, folder, form.tensor, config, "lm_head.weight" if untie else None)
    done = "Norms folded, the head untied." if untie else "Norms folded."
    return Edit(str(out), done, tuple(remarks))


def _new_folder(out: str | Path) -> Path:
    """The path of a folder that can be made."""
    folder = Path(out)
    if folder.exists():
        raise FileFormatError(f"{folder} exists; give the name of a folder to make")
    if not folder.parent.is_dir():
        raise FileFormatError(f"the folder {folder.parent} does not exist; make it first")
    return folder


def _write(
    checkpoint: Checkpoint,
    folder: Path,
    tensor: Callable[[str], np.ndarray],
    config: dict[str, object],
    head: str | None = None,
) -> None:
    """A new folder with config.json and model.safetensors, in the original names and dtypes."""
    folder.mkdir()
    try:
        checkpoint.write(folder / "model.safetensors", tensor, head=head)
        text = json.dumps({**checkpoint.model.config, **config}, indent=2)
        (folder / "config.json").write_text(text + "\n", encoding="utf-8")
    except BaseException:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        raise
