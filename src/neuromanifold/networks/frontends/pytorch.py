"""PyTorch modules as JAX functions of their named parameters."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.interpreters import partial_eval

from neuromanifold.algebra.modular.tracing import reason
from neuromanifold.errors import ArgumentError
from neuromanifold.networks.frontends.torchax_import import torch_and_environment
from neuromanifold.networks.function import function_network
from neuromanifold.networks.network import Network

_NEAR = 0.3
"""How far from a module's own weights, which may be zeros, its translation is compared."""
_AGREE = 1e-3
"""What two translations differ by where a module computes in half precision."""


@dataclass(frozen=True, eq=False)
class TorchFunction:
    """A PyTorch module as a JAX function.

    Attributes:
        name: the class of the module.
        apply: the function of a dictionary of weights and of one input, a dictionary too. Its value
            is a tuple of arrays: all real tensors that the module returns.
        weights: the parameters that reach the output and require a gradient, by their names in the
            module, in float64.
        inputs: what varies among the inputs, by position or keyword, real tensors in float64; in
            nested arguments by all positions and keywords on the way, as in `1.0`.
    """

    name: str
    apply: Callable[[Mapping[str, Any], Mapping[str, Any]], tuple[Any, ...]]
    weights: dict[str, np.ndarray]
    inputs: dict[str, np.ndarray]


def from_torch(module: Any, inputs: Any, *, output: Callable[[Any], Any] | None = None) -> Network:
    """The network of a PyTorch module, for `certify`, `explain`, `discover` and all the others.

    Args:
        module: a `torch.nn.Module` in evaluation mode.
        inputs: one input: a tensor, a tuple of positional arguments, or a dictionary of keyword
            arguments.
        output: what to look at of the module's result; by default all its real tensors.
    """
    found = torch_function(module, inputs, output=output)
    return function_network(found.apply, found.weights, found.inputs, name=found.name)


def torch_function(
    module: Any, inputs: Any, *, output: Callable[[Any], Any] | None = None
) -> TorchFunction:
    """A PyTorch module as a JAX function of its parameters, by way of torchax.

    Parameters that require a gradient are weights; others and all buffers are constants. Real
    tensors among the inputs vary, but for masks with infinite entries, and everything else is a
    constant. Without any, tensors of integers vary, from 0 to their largest entry: the tokens of a
    language model. Beside some with an entry above 1, those without are masks, and constants.
    Every call is the first one: what a module keeps of a call is forgotten.

    Args:
        module: a `torch.nn.Module` in evaluation mode.
        inputs: one input: a tensor, a tuple of positional arguments, or a dictionary of keyword
            arguments; arguments may be tuples, lists and dictionaries of tensors.
        output: what to look at of the module's result; by default all its real tensors.
    """
    torch, environment = torch_and_environment()
    if not isinstance(module, torch.nn.Module):
        raise ArgumentError(
            f"a torch.nn.Module was wanted; got {type(module).__name__}: give the module itself"
        )
    _check_mode(module, torch)
    if any(map(torch.nn.parameter.is_lazy, (*module.parameters(), *module.buffers()))):
        raise ArgumentError(
            f"{type(module).__name__} has parameters without a shape yet; call it once first"
        )
    module = _copied(module, torch)
    named, structure = _named(inputs, torch)
    varying = _varying(named, torch)
    parameters = dict(module.named_parameters())
    still = [x for x in _tensors(module, torch) if not isinstance(x, torch.nn.Parameter)]
    key = jax.random.key(0)

    def apply(weights: Mapping[str, Any], X: Mapping[str, Any]) -> tuple[Any, ...]:
        drawn, arguments = environment.j2t_iso((dict(weights), dict(X)))
        constants = [*still, *(p for n, p in parameters.items() if n not in drawn)]
        held = {id(x): _constant(x, torch, environment) for x in constants}
        fresh = copy.deepcopy(module, {**held, **{id(parameters[n]): w for n, w in drawn.items()}})
        leaves = [
            arguments[n] if n in arguments else _constant(value, torch, environment)
            for n, value in named.items()
        ]
        with (
            environment,
            environment.override_property(prng=key),
            torch.device("jax"),  # also of tensors that the module makes itself
        ):
            result = called(fresh, structure.unflatten(leaves))
        return _real_leaves(environment.t2j_iso(_leaves(result, torch)))

    def called(fresh: Any, found: Any) -> Any:
        positional, keywords = ((), found) if isinstance(found, dict) else (found, {})
        result = fresh(*positional, **keywords)
        return result if output is None else output(result)

    def in_torch(
        weights: Mapping[str, Any], X: Mapping[str, Any], precision: Any
    ) -> list[np.ndarray]:
        drawn = {n: _cast(torch.from_numpy(x), precision) for n, x in X.items()}
        leaves = [drawn.get(n, value) for n, value in named.items()]
        held = {id(x): _cast(x, precision) for x in _tensors(module, torch)}
        held |= {id(parameters[n]): torch.from_numpy(w).to(precision) for n, w in weights.items()}
        with _default_precision(torch, precision):
            result = called(copy.deepcopy(module, held), structure.unflatten(leaves))
        reals = [x for x in _leaves(result, torch) if x.is_floating_point()]
        return [x.detach().double().numpy() for x in reals]

    trained = {n: p.detach().numpy() for n, p in parameters.items() if p.requires_grad}
    try:
        used = _used(apply, trained, varying)
    except ArgumentError:
        raise
    except Exception as error:
        raise ArgumentError(
            f"{type(module).__name__} cannot be traced for these inputs: "
            f"{type(error).__name__}: {reason(error)}"
        ) from None
    if not used:
        raise ArgumentError(
            f"no parameter of {type(module).__name__} that requires a gradient reaches its output, "
            "so there are no weights; set requires_grad on those to vary"
        )
    with _default_precision(torch, torch.double):
        _check_translation(type(module).__name__, apply, in_torch, trained, varying, torch)
    return TorchFunction(
        type(module).__name__, apply, {n: x for n, x in trained.items() if n in used}, varying
    )


@contextmanager
def _default_precision(torch: Any, precision: Any) -> Iterator[None]:
    """Tensors that a module makes itself have the precision of its parameters."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(precision)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _check_translation(
    name: str,
    apply: Callable[..., Any],
    in_torch: Callable[..., list[np.ndarray]],
    weights: dict[str, np.ndarray],
    inputs: dict[str, np.ndarray],
    torch: Any,
) -> None:
    """Refuse a function that is not the module's at random weights and a random input.

    torchax may read an operator otherwise than PyTorch does: `torch.linalg.solve` of two matrices,
    for one. What draws random numbers differs too. A module with parts of single precision only has
    no value in double precision; both are compared in single precision then.
    """
    generator = np.random.default_rng(0)
    at = {n: x + _NEAR * generator.standard_normal(x.shape) for n, x in weights.items()}
    X = {
        n: generator.standard_normal(x.shape) if x.dtype.kind == "f" else x
        for n, x in inputs.items()
    }
    try:
        expected = in_torch(at, X, torch.double)
    except Exception:
        try:
            expected = in_torch(at, X, torch.float)
        except Exception as error:
            raise ArgumentError(
                f"{name} has no value in PyTorch at random weights in double or single precision "
                f"to compare with: {type(error).__name__}: {reason(error)}"
            ) from None
    with jax.enable_x64(True):
        found = [np.asarray(x) for x in jax.jit(apply)(at, X)]
    same = [x.shape for x in found] == [x.shape for x in expected]
    if not (same and all(map(_agree, found, expected))):
        raise ArgumentError(
            f"{name} is another function in JAX than in PyTorch: it draws random numbers, or "
            "torchax translates one of its operators wrongly; write it with other ones"
        )


def _agree(mine: np.ndarray, theirs: np.ndarray) -> bool:
    size = np.max(np.abs(theirs), initial=0, where=np.isfinite(theirs))
    return np.allclose(mine, theirs, rtol=_AGREE, atol=_AGREE * size, equal_nan=True)


def _copied(module: Any, torch: Any) -> Any:
    """The module in evaluation mode and double precision.

    Tensors that it keeps of parameters, such as the weight of `weight_norm`, are copied as values:
    what copies modules takes no others.
    """
    kept = [x for x in _tensors(module, torch) if not isinstance(x, torch.nn.Parameter)]
    try:
        memo = {id(x): _cast(x, torch.double) for x in kept}
        return copy.deepcopy(module, memo).eval().cpu().double()
    except Exception as error:
        raise ArgumentError(
            f"{type(module).__name__} cannot be copied: {type(error).__name__}: {reason(error)}"
        ) from None


def _tensors(module: Any, torch: Any) -> list[Any]:
    """All tensors that a module holds, whether it registers them or not."""
    return [x for part in module.modules() for x in _leaves(vars(part), torch)]


def _cast(tensor: Any, precision: Any) -> Any:
    """The tensor as a value of its own, in some precision if it is real."""
    value = tensor.detach().cpu().clone()
    return value.to(precision) if value.is_floating_point() else value


def _used(apply: Callable[..., Any], weights: dict[str, Any], inputs: Any) -> set[str]:
    """The names of the weights that reach the output (of embedded tokens no embedding does)."""
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(apply)(weights, inputs).jaxpr
    _, needed = partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    return {name for name, is_needed in zip(sorted(weights), needed, strict=False) if is_needed}


def _check_mode(module: Any, torch: Any) -> None:
    """Refuse a module whose value in training mode is not that in evaluation mode."""
    normalisations = torch.nn.modules.batchnorm._NormBase
    for part in module.modules():
        rates = [getattr(part, name, 0.0) for name in ("p", "dropout", "attention_dropout")]
        random = any(isinstance(rate, float) and rate > 0 for rate in rates)
        if part.training and (random or isinstance(part, normalisations)):
            raise ArgumentError(
                f"the module is in training mode, in which {type(part).__name__} is no function of "
                "weights and input; call module.eval() first"
            )


def _named(inputs: Any, torch: Any) -> tuple[dict[str, Any], jax.tree_util.PyTreeDef]:
    """All leaves of the arguments by position or keyword, and what they are the leaves of."""
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    elif isinstance(inputs, Mapping):
        inputs = {str(name): value for name, value in inputs.items()}
    elif isinstance(inputs, Sequence) and not isinstance(inputs, str):
        inputs = tuple(inputs)
    else:
        raise ArgumentError(
            "inputs must be a tensor, a tuple of arguments or a dictionary of keyword arguments; "
            f"got {type(inputs).__name__}"
        )
    try:
        paths, structure = jax.tree_util.tree_flatten_with_path(inputs)
    except ValueError as error:
        raise ArgumentError(f"the inputs have no order: {reason(error)}") from None
    name = partial(jax.tree_util.keystr, simple=True, separator=".")
    return {name(path): value for path, value in paths}, structure


def _varying(named: Mapping[str, Any], torch: Any) -> dict[str, np.ndarray]:
    """The real tensors; without any, those of integers, which say more than yes or no."""
    tensors = {n: x for n, x in named.items() if isinstance(x, torch.Tensor)}
    real = {n: x for n, x in tensors.items() if x.is_floating_point() and _is_finite(x)}
    whole = {n: x for n, x in tensors.items() if x.dtype in (torch.int32, torch.int64)}
    tokens = {n: x for n, x in whole.items() if torch.any(x > 1)}
    found = real or tokens or whole
    if not found:
        raise ArgumentError(
            "no input is a tensor of real numbers or of integers, so nothing varies; give one (of "
            "a language model the embedded tokens, inputs_embeds, or tokens)"
        )
    try:
        return {n: (x.double() if real else x).detach().cpu().numpy() for n, x in found.items()}
    except Exception as error:
        raise ArgumentError(
            f"an input has no values to read: {type(error).__name__}: {reason(error)}"
        ) from None


def _is_finite(tensor: Any) -> bool:
    """Whether no entry hides something, as those of a mask do."""
    return tensor.is_meta or bool(tensor.isfinite().all())


def _constant(value: Any, torch: Any, environment: Any) -> Any:
    """A tensor as a constant of JAX; everything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    return environment.j2t_iso(jax.numpy.asarray(value.detach().cpu().numpy()))


def _leaves(result: Any, torch: Any) -> list[Any]:
    """The tensors in something, which may be nested in tuples, dictionaries and dataclasses."""
    if isinstance(result, torch.Tensor):
        return [result]
    if isinstance(result, Mapping):
        result = tuple(result.values())
    elif is_dataclass(result) and not isinstance(result, (type, torch.nn.Module)):
        result = tuple(getattr(result, field.name) for field in fields(result))
    if isinstance(result, (tuple, list)):
        return [leaf for value in result for leaf in _leaves(value, torch)]
    return []


def _real_leaves(arrays: Sequence[Any]) -> tuple[Any, ...]:
    real = tuple(x for x in arrays if jax.numpy.issubdtype(x.dtype, np.floating))
    if not real:
        raise ArgumentError("the module returns no tensor of real numbers; choose one by `output`")
    return real
