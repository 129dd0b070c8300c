"""`neuromanifold weights`: make and look at weights files."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from neuromanifold.cli.limits import DEFAULT_LIMITS, LimitOptions
from neuromanifold.cli.options import (
    DEFAULT_NETWORK,
    Force,
    Json,
    NetworkOptions,
    Seed,
    read_weights,
)
from neuromanifold.cli.output import columns, print_json, print_lines
from neuromanifold.cost import holding, sizes_of, transforming


def init(
    network: NetworkOptions = DEFAULT_NETWORK,
    *,
    out: Annotated[Path, Parameter(help="the file to write (safetensors)")],
    seed: Seed = 0,
    conditioned: Annotated[
        bool, Parameter(negative="", help="every matrix of condition number 2, not normal")
    ] = False,
    force: Force = False,
    limits: LimitOptions = DEFAULT_LIMITS,
    json: Json = False,
) -> None:
    """Draw random weights of a network and save them.

    Example: neuromanifold weights init --widths 4,3 --ranks 2 --tokens 3 --out w.safetensors
    """
    from neuromanifold.files import check_writable

    check_writable(out, force=force)
    architecture = network.architecture()
    sizes = sizes_of(architecture)
    with limits.spend(transforming(sizes) if conditioned else holding(sizes), "drawing weights"):
        from neuromanifold.networks.files import save_weights
        from neuromanifold.networks.weights import conditioned_weights, random_weights

        weights = (conditioned_weights if conditioned else random_weights)(architecture, seed)
        save_weights(weights, out, force=force)
    if json:
        print_json({"file": str(out), "architecture": architecture.to_dict(), "seed": seed})
    else:
        print_lines(f"{out}: {architecture.parameters} parameters of {architecture}, seed {seed}")


def show(
    file: Annotated[Path, Parameter(help="a weights file")],
    *,
    limits: LimitOptions = DEFAULT_LIMITS,
    json: Json = False,
) -> None:
    """Show what a weights file holds: its network, and each tensor with its singular values.

    Example: neuromanifold weights show w.safetensors
    """
    import numpy as np

    weights = read_weights(file, limits)
    architecture = weights.architecture
    with limits.spend(transforming(sizes_of(architecture)), "computing singular values"):
        tensors = [
            {
                "name": name,
                "shape": list(tensor.shape),
                "dtype": str(tensor.dtype),
                "norm": float(np.linalg.norm(tensor)),
                "singular_values": np.linalg.svd(np.asarray(tensor), compute_uv=False).tolist(),
            }
            for name, tensor in weights.named_tensors()
        ]
    if json:
        print_json(
            {
                "file": str(file),
                "architecture": architecture.to_dict(),
                "parameters": architecture.parameters,
                "tensors": tensors,
            }
        )
        return
    rows = [("tensor", "shape", "dtype", "norm", "singular values, largest and smallest")]
    for tensor in tensors:
        values = np.ravel(tensor["singular_values"])
        shape = "×".join(map(str, tensor["shape"]))
        extremes = f"{values.max():.3g} … {values.min():.3g}"
        rows.append((tensor["name"], shape, tensor["dtype"], f"{tensor['norm']:.4g}", extremes))
    print_lines(f"{file}: {architecture}, {architecture.parameters} parameters", *columns(rows))
