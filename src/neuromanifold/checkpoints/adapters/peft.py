"""PEFT's layout: a folder with adapter_config.json and adapter_model.safetensors (or .bin).

The factors of a module are `base_model.model.<module>.lora_A.weight` (r, in) and `lora_B.weight`
(out, r); convolutions have more axes, embeddings `lora_embedding_A` and `lora_embedding_B`. The
update of the linear map is s B A whatever `fan_in_fan_out` says: that is about how the base keeps
its own weight, (in, out) when it is set.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from neuromanifold.checkpoints.adapters.adapter import Adapter, Module
from neuromanifold.checkpoints.adapters.low_rank import LowRank, Scale, widest
from neuromanifold.checkpoints.readers.contents import FLOATS
from neuromanifold.checkpoints.readers.json_object import read_json
from neuromanifold.checkpoints.reading import Model, open_model
from neuromanifold.checkpoints.writing import write_safetensors
from neuromanifold.errors import FileFormatError
from neuromanifold.files import check_writable, write_file

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
_FACTOR = re.compile(
    r"(?:base_model\.model\.)?(?P<module>.+)\.lora_(?P<embedding>embedding_)?(?P<factor>[AB])"
    r"(?:\.(?P<adapter>[^.]+))??(?:\.weight)?"
)
_REFUSED = {
    "use_dora": "DoRA, whose update depends on the base weights",
    "lora_bias": "biases on lora_B",
    "use_qalora": "QALoRA, which averages inputs before lora_A",
    "use_bdlora": "BD-LoRA, whose factors are blocks",
    "kasa_config": "KaSA, which has a diagonal between the factors and changes the base weights",
    "monteclora_config": "MonteCLoRA, whose factors are drawn at random",
    "arrow_config": "Arrow, whose update depends on the input",
    "alora_invocation_tokens": "Activated LoRA, whose update depends on the input",
    "layer_replication": "layers of the base that are used in another order, or again",
    "target_parameters": "factors of several matrices in one",
    "trainable_token_indices": "single rows of a table besides",
}
_MOVES_BASE = ("pissa", "olora", "corda", "loftq", "lora_ga")
"""Initialisations that subtract the first update from the base weights, each time one is loaded."""


def load_adapter(path: str | Path) -> Adapter:
    """Read an adapter: a folder, or a weights file with its configuration beside it."""
    path = Path(path)
    if not path.exists():
        raise FileFormatError(
            f"{path} does not exist; give the folder of an adapter in PEFT's layout"
        )
    folder = path if path.is_dir() else path.parent
    if not (folder / CONFIG).is_file():
        raise FileFormatError(
            f"{folder} has no {CONFIG}; give the folder of an adapter in PEFT's layout"
        )
    config = read_json(folder / CONFIG)
    settings = _settings(folder / CONFIG, config)
    if path.is_dir():
        names = (WEIGHTS, "adapter_model.bin")
        found = next((path / name for name in names if (path / name).is_file()), None)
        if found is None:
            raise FileFormatError(f"{path} has no {' or '.join(names)}")
        model = open_model(found, config)
    else:
        model = open_model(path, config)
    return _assemble(path, model, config, settings)


adapter = load_adapter
"""The name in the public face: `nm.adapter(path)`."""


def save_adapter(adapter: Adapter, folder: str | Path, *, force: bool = False) -> None:
    """Write the folder: first the factors, one module at a time, then the configuration."""
    folder = Path(folder)
    made = not folder.exists()
    if made:
        check_writable(folder)
    elif not folder.is_dir():
        raise FileFormatError(f"{folder} is not a folder; give the name of a new one")
    else:
        for name in (CONFIG, WEIGHTS):
            check_writable(folder / name, force=force)
    try:
        folder.mkdir(exist_ok=True)
        _write_factors(adapter, folder / WEIGHTS, force)
        text = json.dumps(dict(adapter.config), indent=2, ensure_ascii=False, sort_keys=True)
        write_file(folder / CONFIG, text.encode() + b"\n", force=force)
    except OSError as error:
        raise FileFormatError(f"{folder} cannot be written: {error.strerror}") from None
    except BaseException:
        if made and folder.is_dir():
            (folder / WEIGHTS).unlink(missing_ok=True)
            folder.rmdir()
        raise


def _write_factors(adapter: Adapter, path: Path, force: bool) -> None:
    layout: dict[str, tuple[np.dtype, tuple[int, ...]]] = {}
    places: dict[str, tuple[str, str]] = {}
    for name, module in adapter.modules.items():
        dtype = module.read().dtype
        for factor in ("A", "B"):
            key = getattr(module, f"{factor}_name")
            layout[key] = dtype, getattr(module, f"{factor}_shape")
            places[key] = name, factor
    others = {name: read() for name, read in adapter.others.items()}
    layout |= {name: (array.dtype, array.shape) for name, array in others.items()}

    def tensor(key: str) -> np.ndarray:
        if key in others:
            return others[key]
        name, factor = places[key]
        array = getattr(adapter.update(name), factor)
        dtype, shape = layout[key]
        return array.astype(dtype).reshape(shape)

    write_safetensors(path, layout, tensor, {"format": "pt"}, force=force)


@dataclass(frozen=True)
class _Settings:
    """What a configuration says about ranks and scales."""

    r: int
    alpha: Fraction
    rank_pattern: Mapping[str, int]
    alpha_pattern: Mapping[str, Fraction]
    stabilised: bool

    def rank(self, module: str) -> int:
        """The inner size that a module should have."""
        key = _first_match(self.rank_pattern, module)
        return self.r if key is None else self.rank_pattern[key]

    def scale(self, module: str) -> Scale:
        """The factor of a module's update."""
        key = _first_match(self.alpha_pattern, module)
        alpha = self.alpha if key is None else self.alpha_pattern[key]
        return Scale(alpha, self.rank(module), self.stabilised)


def _settings(path: Path, config: Mapping[str, object]) -> _Settings:
    """The settings, refused where the adapter is not a plain low-rank one."""
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        raise FileFormatError(
            f"{path}: only adapters of the kind LORA are read; got {str(kind)[:40]}"
        )
    for key, what in _REFUSED.items():
        if config.get(key):
            raise FileFormatError(f"{path}: {key} is set: {what}; that is not read here")
    start, stabilised = config.get("init_lora_weights"), config.get("use_rslora")
    if isinstance(start, str) and start.lower().startswith(_MOVES_BASE):
        raise FileFormatError(
            f"{path}: init_lora_weights is {start[:40]}, which changes the base weights as well; "
            "save the adapter with path_initial_model_for_weight_conversion"
        )
    if stabilised not in (None, True, False):
        raise FileFormatError(f"{path}: use_rslora must be true or false; got {stabilised!r}")
    return _Settings(
        _rank(path, "r", config.get("r")),
        _alpha(path, "lora_alpha", config.get("lora_alpha")),
        {key: _rank(path, key, value) for key, value in _pattern(path, "rank", config)},
        {key: _alpha(path, key, value) for key, value in _pattern(path, "alpha", config)},
        bool(stabilised),
    )


def _pattern(path: Path, what: str, config: Mapping[str, object]) -> list[tuple[str, object]]:
    """The items of rank_pattern or alpha_pattern: regular expressions that are soon decided.

    Without a repeated group matching takes a time polynomial in the name, of degree the number of
    repetitions; so three of them are allowed and repeated groups are not.
    """
    pattern = config.get(f"{what}_pattern")
    if pattern is None:
        return []
    if not isinstance(pattern, dict):
        raise FileFormatError(f"{path}: {what}_pattern must map modules to numbers")
    for key in pattern:
        try:
            re.compile(key)
        except re.error:
            raise FileFormatError(f"{path}: {what}_pattern has {key!r}, no pattern") from None
        if re.search(r"\)[*+{]", key) or len(re.findall(r"(?<!\\)[*+{]", key)) > 3:
            raise FileFormatError(f"{path}: the {what}_pattern {key[:80]!r} is too complicated")
    return list(pattern.items())


def _rank(path: Path, key: str, value: object) -> int:
    if type(value) is not int or value < 1:
        raise FileFormatError(f"{path}: {key} must be a whole number from 1 on; got {value}")
    return value


def _alpha(path: Path, key: str, value: object) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e100:
        raise FileFormatError(f"{path}: {key} must be a finite number; got {str(value)[:80]}")
    return Fraction(value)


def _first_match(patterns: Iterable[str], module: str) -> str | None:
    """The first pattern that matches the end of a name, as PEFT has it."""
    return next((key for key in patterns if re.fullmatch(rf"(?:.*\.)?(?:{key})", module)), None)


def _assemble(
    path: Path, model: Model, config: Mapping[str, object], settings: _Settings
) -> Adapter:
    """Pair the factors of each module and check them against the configuration."""
    factors: dict[str, dict[str, str]] = {}
    others: list[str] = []
    for name in model.names:
        match = _FACTOR.fullmatch(name)
        if match is None:
            if "lora_" in name:
                raise FileFormatError(f"{path}: {name} is no factor of a plain adapter")
            others.append(name)
            continue
        pair = factors.setdefault(match["module"], {})
        if match["factor"] in pair:
            raise FileFormatError(f"{path}: {name} and {pair[match['factor']]} are both there")
        pair[match["factor"]] = name
    if not factors:
        raise FileFormatError(f"{path} holds no lora_A and lora_B; is it an adapter?")
    modules = {name: _module(path, name, pair, model, settings) for name, pair in factors.items()}
    notes = model.notes
    if others:
        notes = (*notes, f"{len(others)} full tensors besides the factors, kept: {others[0]} …")
    return Adapter(
        path,
        modules,
        config,
        {name: model.stored(name).read for name in others},
        notes,
    )


def _module(
    path: Path, name: str, pair: Mapping[str, str], model: Model, settings: _Settings
) -> Module:
    """One module, its shapes checked; the factors are read when they are asked for."""
    if len(pair) < 2:
        raise FileFormatError(f"{path}: {name} has lora_{next(iter(pair))} alone; both are needed")
    A_name, B_name = pair["A"], pair["B"]
    A_shape, B_shape = model.shape(A_name), model.shape(B_name)
    r = settings.rank(name)
    if len(A_shape) < 2 or len(B_shape) < 2 or not A_shape[0] == B_shape[1] == r:
        raise FileFormatError(
            f"{path}: {name} has lora_A of shape {A_shape} and lora_B of shape {B_shape}; its "
            f"configuration says r = {r}, so (r, in) and (out, r) were due"
        )
    if any(size != 1 for size in B_shape[2:]):
        raise FileFormatError(f"{path}: {B_name} of shape {B_shape} is not a 1 × 1 convolution")
    for factor in (A_name, B_name):
        if model.dtype(factor) not in FLOATS:
            raise FileFormatError(f"{path}: {factor} is {model.dtype(factor)}; floats were due")

    def read() -> LowRank:
        return LowRank(
            model.tensor(B_name, np.float64).reshape(B_shape[0], A_shape[0]),
            model.tensor(A_name, np.float64).reshape(A_shape[0], -1),
            settings.scale(name),
            widest(model.dtype(A_name), model.dtype(B_name)),
        )

    return Module(A_name, B_name, A_shape, B_shape, read)
