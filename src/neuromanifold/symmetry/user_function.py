"""A user's function, named on the command line as `module.py:function`.

The module is code, and it is executed. What it raises is shown as its own; it is neither an error
of this program nor a way to end it.
"""

import functools
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from neuromanifold.cost import Sizes, function_sizes
from neuromanifold.errors import ArgumentError, NeuromanifoldError

if TYPE_CHECKING:
    from neuromanifold.networks.network import Network


def network_sizes(network: "Network") -> Sizes:
    """The sizes on which the cost of a question depends."""
    import jax
    import numpy as np

    def count(tree: Any) -> int:
        return sum(int(np.prod(np.shape(leaf))) for leaf in jax.tree.leaves(tree))

    unknowns = 0
    for tensor in network.tensors:
        rows, columns = (1, 1, *tensor.shape)[-2:]
        copies = int(np.prod(tensor.shape[:-2]))
        unknowns += copies * (rows * rows + columns * columns + rows * columns)
    return function_sizes(
        network.parameters, count(network.sample), count(network.output), unknowns
    )


def user_network(text: str) -> "Network":
    """The network of `module.py:function`, once the module is executed."""
    return network_and_weights(text)[0]


def network_and_weights(text: str) -> tuple["Network", Any]:
    """Execute `module.py` and take the network from it: a `Network`, or a function f(weights, X).

    For a function the module's `weights` and `inputs` give the shapes, and `symmetries` may list
    one-parameter actions. The weights that come with it are those of the module, or None.
    """
    from neuromanifold.networks.network import Network
    from neuromanifold.symmetry.families import network

    file, separator, function = text.rpartition(":")
    path = Path(file)
    if not separator or not function or not path.is_file():
        raise ArgumentError(
            f"a function is named as module.py:function, with an existing file; got {text!r}"
        )
    specification = importlib.util.spec_from_file_location(path.stem, path)
    if specification is None or specification.loader is None:
        raise ArgumentError(f"{path} is not a Python file; give one that ends in .py")
    module = importlib.util.module_from_spec(specification)
    sys.modules.setdefault(path.stem, module)
    with _theirs(path):
        specification.loader.exec_module(module)
    found = getattr(module, function, None)
    if isinstance(found, Network):
        return found, getattr(module, "weights", None)
    if isinstance(found, type):
        raise ArgumentError(
            f"{path}: {function!r} is a class; make one of it there, and name that instead"
        )
    if any(base.__module__.startswith("torch.nn") for base in type(found).__mro__):
        from neuromanifold.networks.frontends.pytorch import from_torch

        if not hasattr(module, "inputs"):
            raise ArgumentError(f"{path} has no 'inputs'; define one input of {function} there")
        made = from_torch(found, module.inputs, output=getattr(module, "output", None))
        parameters = dict(module.__dict__[function].named_parameters())
        return made, {n: p.detach().cpu().double().numpy() for n, p in parameters.items()}
    for name in (function, "weights", "inputs"):
        if not hasattr(module, name):
            raise ArgumentError(
                f"{path} has no {name!r}; it must define {function}(weights, X), and `weights` and "
                "`inputs` as arrays of the shapes to use, or make the network itself"
            )
    symmetries = getattr(module, "symmetries", ())
    listed = isinstance(symmetries, Sequence) and not isinstance(symmetries, str)
    called = [getattr(module, function), *(symmetries if listed else [None])]
    if not all(map(callable, called)):
        raise ArgumentError(
            f"{path}: {function!r} must be a function, and `symmetries` a list of functions"
        )
    f, *actions = (_shown_as_theirs(one, path) for one in called)
    weights, inputs = _arrays(path, "weights", module), _arrays(path, "inputs", module)
    name = f"{path.name}:{function}"
    return network(f, weights, inputs, symmetries=actions, name=name), weights


def _arrays(path: Path, name: str, module: ModuleType) -> Any:
    """A pytree of the module with numbers made into arrays."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    tree = getattr(module, name)
    with _theirs(path):  # keys that cannot be compared, say
        leaves = jax.tree.leaves(tree)
        dtypes = [np.asarray(leaf).dtype for leaf in leaves]
    for leaf, dtype in zip(leaves, dtypes, strict=True):
        if not jnp.issubdtype(dtype, np.number) and (dtype.kind != "b" or name != "inputs"):
            raise ArgumentError(
                f"{path}: `{name}` must be arrays of real numbers; it has a {type(leaf).__name__}"
            )
    return jax.tree.map(np.asarray, tree)


def _shown_as_theirs(function: Callable[..., Any], path: Path) -> Callable[..., Any]:
    @functools.wraps(function)
    def called(*arguments: Any) -> Any:
        with _theirs(path, is_traced=True):
            return function(*arguments)

    return called


@contextmanager
def _theirs(path: Path, *, is_traced: bool = False) -> Iterator[None]:
    """Whatever the user's code raises becomes one sentence with its place; prints go to stderr.

    What is raised about the way in which a function is traced is left to those who trace it.
    """
    from neuromanifold.algebra.modular.tracing import is_of_tracing, reason

    try:
        with redirect_stdout(sys.stderr):
            yield
    except (NeuromanifoldError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if is_traced and is_of_tracing(error):
            raise
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if Path(frame.filename).resolve() == path.resolve()
        ]
        where = f"{path}, line {lines[-1]}" if lines else str(path)
        raise ArgumentError(
            f"{where} raised {type(error).__name__}: {reason(error)}; this is an error of that "
            "module"
        ) from error
