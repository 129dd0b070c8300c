"""`neuromanifold weights`: make and look at weights files."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from neuromanifold.cli.options import DEFAULT_NETWORK, Force, NetworkOptions, Seed, read_weights
from neuromanifold.cli.output import columns, print_answer
from neuromanifold.cli.run import RUN, RunOptions
from neuromanifold.cost import holding, sizes_of, transforming
from neuromanifold.files import check_writable

weights = App(name="weights", help="Make and look at weights files.")


@weights.command
def init(
    network: NetworkOptions = DEFAULT_NETWORK,
    *,
    out: Annotated[Path, Parameter(help="the file to write (safetensors)")],
    seed: Seed = 0,
    conditioned: Annotated[
        bool, Parameter(negative="", help="every matrix of condition number 2, not normal")
    ] = False,
    force: Force = False,
    run: RunOptions = RUN,
) -> None:
    """Draw random weights of a network and save them.

    Example: neuromanifold weights init --widths 4,3 --ranks 2 --tokens 3 --out w.safetensors
    """
    check_writable(out, force=force)
    architecture = network.architecture()
    sizes = sizes_of(architecture)
    with run.spend(transforming(sizes) if conditioned else holding(sizes), "drawing weights"):
        from neuromanifold.networks.files import save_weights
        from neuromanifold.networks.weights import conditioned_weights, random_weights

        draw = conditioned_weights if conditioned else random_weights
        save_weights(draw(architecture, seed), out, force=force)
    print_answer(
        run.json,
        {"file": str(out), "architecture": architecture.to_dict(), "seed": seed},
        f"{out}: {architecture.parameters} parameters of {architecture}, seed {seed}",
    )


@weights.command
def show(
    file: Annotated[Path, Parameter(help="a weights file")],
    *,
    run: RunOptions = RUN,
) -> None:
    """Show what a weights file holds: its network, and each tensor with its singular values.

    Example: neuromanifold weights show w.safetensors
    """
    import numpy as np

    read = read_weights(file, run)
    architecture = read.architecture
    with run.spend(transforming(sizes_of(architecture)), "computing singular values"):
        tensors = [
            {
                "name": name,
                "shape": list(tensor.shape),
                "dtype": str(tensor.dtype),
                "norm": float(np.linalg.norm(tensor)),
                "singular_values": np.linalg.svd(np.asarray(tensor), compute_uv=False).tolist(),
            }
            for name, tensor in read.named_tensors()
        ]
    answer = {
        "file": str(file),
        "architecture": architecture.to_dict(),
        "parameters": architecture.parameters,
        "tensors": tensors,
    }
    rows = [("tensor", "shape", "dtype", "norm", "singular values, largest and smallest")]
    for tensor in tensors:
        values = np.ravel(tensor["singular_values"])
        shape = "×".join(map(str, tensor["shape"]))
        extremes = f"{values.max():.3g} … {values.min():.3g}"
        rows.append((tensor["name"], shape, tensor["dtype"], f"{tensor['norm']:.4g}", extremes))
    title = f"{file}: {architecture}, {architecture.parameters} parameters"
    print_answer(run.json, answer, title, *columns(rows))
