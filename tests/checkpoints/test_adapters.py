import json
from fractions import Fraction

import numpy as np
import pytest

import neuromanifold as nm
from checkpoints.peft_files import PREFIX, factors, regauged, write_adapter
from neuromanifold.algebra.prime_field import PrimeField
from neuromanifold.checkpoints.adapters.compare import adapter_distance, duplicate_groups
from neuromanifold.checkpoints.adapters.low_rank import LowRank, Scale, exact_rank, spectrum
from neuromanifold.checkpoints.adapters.peft import load_adapter
from neuromanifold.checkpoints.adapters.reduce import (
    canonical_adapter,
    merge_adapters,
    shrink_adapter,
)
from neuromanifold.checkpoints.readers.contents import BFLOAT16
from neuromanifold.checkpoints.writing import write_safetensors
from neuromanifold.errors import ArgumentError, FileFormatError

FIELD = PrimeField()


def dense(adapter):
    return {name: adapter.update(name).dense for name in adapter.modules}


def rank_two_of_four(dtype=np.float64):
    """Products of rank 2 with inner size 4, in small whole numbers, so exactly in any dtype."""
    random = np.random.default_rng(3)
    pairs = {}
    for name, (B, A) in factors(dtype=dtype).items():
        B, A = (random.integers(-3, 4, size=array.shape) for array in (B, A))
        B[:, 2:] = B[:, :2] @ random.integers(-2, 3, size=(2, 2))
        pairs[name] = (B.astype(dtype), A.astype(dtype))
    return pairs


def test_residues_are_those_of_the_rationals_that_floats_are():
    random = np.random.default_rng(0)
    values = random.normal(size=(3, 7)) * 10.0 ** random.integers(-300, 300, size=(3, 7))
    values[0, 0], values[1, 1], values[2, 2] = 0.0, 5e-324, -1.5
    for array in (values, values[:, :0], random.normal(size=5)):
        expected = [FIELD.from_fraction(Fraction(float(x))) for x in array.ravel()]
        np.testing.assert_array_equal(FIELD.from_floats(array).ravel(), expected)


def test_the_spectrum_is_that_of_the_dense_update():
    random = np.random.default_rng(0)
    for out, size, r in ((12, 10, 4), (3, 10, 5), (10, 3, 5), (6, 6, 1)):
        for imbalance in (1, 1e-8, 1e8):
            B, A = random.normal(size=(out, r)) * imbalance, random.normal(size=(r, size))
            update = LowRank(B, A, Scale(Fraction(3), r), np.dtype(np.float64))
            found = spectrum(update, update, weights=(1.0, -0.25))
            full = np.zeros(len(found.values))
            values = np.linalg.svd(0.75 * update.dense, compute_uv=False)[: len(full)]
            full[: len(values)] = values
            np.testing.assert_allclose(found.values, full, atol=1e-13 * full[0])
            product = found.left * found.values @ found.right
            np.testing.assert_allclose(product, 0.75 * update.dense, atol=1e-13 * full[0])


def test_scales_follow_the_configuration(tmp_path):
    pairs = factors()
    name = next(iter(pairs))
    B, A = pairs[name]
    module = name.removeprefix("base_model.model.")
    for i, (config, scale) in enumerate(
        [
            ({"lora_alpha": 8}, 2.0),
            ({"lora_alpha": 8, "use_rslora": True}, 4.0),
            ({"lora_alpha": 8, "alpha_pattern": {"q_proj": 3}}, 0.75),
            ({"lora_alpha": 8, "alpha_pattern": {r".*layers\.[0-9]+\..*q_proj": 3}}, 0.75),
            ({"lora_alpha": 8, "alpha_pattern": {"proj": 3}}, 2.0),
            ({"lora_alpha": 8, "fan_in_fan_out": True}, 2.0),
            ({"lora_alpha": 8, "r": 9, "rank_pattern": {"q_proj": 4, "v_proj": 4}}, 2.0),
        ]
    ):
        adapter = load_adapter(write_adapter(tmp_path / str(i), pairs, **config))
        expected = scale * B.astype(float) @ A.astype(float)
        np.testing.assert_allclose(adapter.update(module).dense, expected, rtol=1e-14)


def test_audit_finds_true_ranks(tmp_path):
    full = load_adapter(write_adapter(tmp_path / "full", factors()))
    audit = full.audit()
    assert {(m.rank, m.verdict) for m in audit.modules} == {(4, "exact")}
    assert audit.redundant == 4 * 16
    assert audit.needed == full.parameters == 4 * 2 * (22 + 16)
    low = load_adapter(write_adapter(tmp_path / "low", rank_two_of_four()))
    found = low.audit()
    assert {(m.rank, m.verdict, m.lower) for m in found.modules} == {(2, "numerical", 2)}
    assert found.needed == full.parameters // 2
    for module in found.modules:
        exact = np.linalg.matrix_rank(low.update(module.name).dense)
        assert exact == 2
        values = np.linalg.svd(low.update(module.name).dense, compute_uv=False)
        np.testing.assert_allclose(module.singular_values, values[:4], atol=1e-12 * values[0])
    zero = {name: (0 * B, A) for name, (B, A) in factors().items()}
    untrained = load_adapter(write_adapter(tmp_path / "zero", zero))
    assert {(m.rank, m.verdict, m.gap) for m in untrained.audit().modules} == {(0, "exact", None)}
    assert set(nm.adapter(tmp_path / "low").rank().values()) == {2}


def test_ranks_that_floats_cannot_tell_are_undecided(tmp_path):
    """σ₃ at 1e-14 of the factors: modulo p the rank is at least 3, and nothing says at most 3."""
    pairs = {}
    for name, (B, A) in rank_two_of_four().items():
        B[:, 3] += 2.0**-50 * np.arange(len(B)) ** 2
        pairs[name] = (B, A)
    adapter = load_adapter(write_adapter(tmp_path / "a", pairs))
    for module in adapter.audit().modules:
        assert module.lower == 3
        assert module.rank is None
        assert module.verdict == "undecided"
        assert module.gap is not None


def test_rounding_hides_a_low_rank_and_the_audit_says_so(tmp_path):
    random = np.random.default_rng(0)
    pairs = {
        name: ((B[:, :2] @ random.normal(size=(2, 4))).astype(np.float32), A)
        for name, (B, A) in factors(dtype=np.float64).items()
    }
    pairs = {name: (B, A.astype(np.float32)) for name, (B, A) in pairs.items()}
    for module in load_adapter(write_adapter(tmp_path / "a", pairs)).audit().modules:
        assert (module.rank, module.verdict) == (4, "exact")
        assert module.rank_to_rounding == 2


def test_exact_rank_agrees_with_rational_elimination():
    sympy = pytest.importorskip("sympy")
    for B, A in rank_two_of_four().values():
        update = LowRank(B, A, Scale(Fraction(1), 4), np.dtype(np.float64))
        product = sympy.Matrix(B.astype(int).tolist()) * sympy.Matrix(A.astype(int).tolist())
        assert exact_rank(update, FIELD) == product.rank() == 2


def test_the_canonical_form_is_constant_on_orbits_and_idempotent(tmp_path):
    pairs = factors(dtype=np.float64)
    adapter = load_adapter(write_adapter(tmp_path / "a", pairs))
    wide = {
        name: (np.hstack([B, B, 0 * B]) / 2, np.vstack([A, A, A])) for name, (B, A) in pairs.items()
    }
    others = [
        write_adapter(tmp_path / "b", regauged(pairs)),
        write_adapter(tmp_path / "c", wide, r=12, lora_alpha=24),
        write_adapter(tmp_path / "d", {k: (4 * B, A) for k, (B, A) in pairs.items()}, lora_alpha=2),
    ]
    form = canonical_adapter(adapter)
    assert form.relative < 1e-14
    form.save(tmp_path / "form")
    for other in [*others, tmp_path / "form"]:
        again = canonical_adapter(load_adapter(other))
        for name in adapter.modules:
            ours, theirs = (item.adapter.update(name) for item in (form, again))
            np.testing.assert_allclose(ours.A, theirs.A, atol=1e-12)
            np.testing.assert_allclose(ours.B, theirs.B, atol=1e-12)
            np.testing.assert_allclose(ours.B.T @ ours.B, ours.A @ ours.A.T, atol=1e-12)
    for name, update in dense(load_adapter(tmp_path / "form")).items():
        np.testing.assert_allclose(update, adapter.update(name).dense, atol=1e-13)


def test_equal_singular_values_are_reported_as_a_block(tmp_path):
    eye = np.eye(4)
    pairs = {"base_model.model.m": (np.diag([3.0, 2, 2, 1]), eye)}
    form = canonical_adapter(load_adapter(write_adapter(tmp_path / "a", pairs)))
    assert form.changes[0].blocks == ((1, 2),)


def test_merging_is_exact_and_gauge_does_not_matter(tmp_path):
    first, second = factors(0), factors(1, r=3)
    a = write_adapter(tmp_path / "a", first)
    b = write_adapter(tmp_path / "b", second, lora_alpha=5)
    weights = (0.7, -1.5)
    merged = merge_adapters([a, b], weights, dtype=np.dtype(np.float64))
    parts = [dense(load_adapter(path)) for path in (a, b)]
    for name, update in dense(merged.adapter).items():
        expected = sum(w * part[name] for w, part in zip(weights, parts, strict=True))
        np.testing.assert_allclose(update, expected, atol=1e-13 * np.abs(expected).max())
    ranks = {change.name: change.rank for change in merged.changes}
    assert sorted(ranks.values()) == [6, 6, 7, 7]
    merged.save(tmp_path / "merged")
    loaded = load_adapter(tmp_path / "merged")
    for name, update in dense(loaded).items():
        np.testing.assert_allclose(update, merged.adapter.update(name).dense, rtol=1e-15)
    assert merge_adapters([a, a], (1, -1)).adapter.parameters == 2 * (22 + 16)
    same = merge_adapters([a, a, a])
    assert {change.rank for change in same.changes} == {4}


def test_merging_factors_singly_is_wrong_and_depends_on_the_gauge(tmp_path):
    """What adding or interpolating A and B as tensors gives, and that G changes it."""
    first, second = factors(0, dtype=np.float64), factors(1, dtype=np.float64)
    moved = regauged(second)
    a = write_adapter(tmp_path / "a", first)
    paths = [write_adapter(tmp_path / word, pairs) for word, pairs in (("b", second), ("m", moved))]
    errors, naive = [], []
    for path, pairs in zip(paths, (second, moved), strict=True):
        merged = dense(merge_adapters([a, path], (0.5, 0.5)).adapter)
        for name, (B, A) in first.items():
            ours = merged[name.removeprefix("base_model.model.")]
            right = B @ A + second[name][0] @ second[name][1]  # scale 2, weights 1/2
            singly = 2 * ((B + pairs[name][0]) / 2) @ ((A + pairs[name][1]) / 2)
            errors.append(np.linalg.norm(ours - right) / np.linalg.norm(right))
            naive.append(np.linalg.norm(singly - right) / np.linalg.norm(right))
    assert max(errors) < 1e-13
    assert min(naive) > 0.3
    assert max(abs(np.array(naive[:4]) - naive[4:])) > 0.1


def test_distances_are_those_of_the_dense_updates(tmp_path):
    a = load_adapter(write_adapter(tmp_path / "a", factors(0)))
    b = load_adapter(write_adapter(tmp_path / "b", factors(1, r=3)))
    found = adapter_distance(a, b)
    total = 0.0
    for module in found.modules:
        left, right = (item.update(module.name).dense for item in (a, b))
        assert module.distance == pytest.approx(np.linalg.norm(left - right), rel=1e-12)
        norms = np.linalg.norm(left), np.linalg.norm(right)
        assert module.cosine == pytest.approx(np.sum(left * right) / np.prod(norms), abs=1e-12)
        assert module.level == "different"
        total += module.distance**2
    assert found.distance == pytest.approx(np.sqrt(total))
    assert found.level == "different"


def test_three_levels_of_equality(tmp_path):
    pairs = factors()
    paths = [
        write_adapter(tmp_path / "a", pairs),
        write_adapter(tmp_path / "b", {k: (4 * B, A / 4) for k, (B, A) in pairs.items()}),
        write_adapter(tmp_path / "c", {k: (B[:, ::-1], A[::-1]) for k, (B, A) in pairs.items()}),
        write_adapter(tmp_path / "d", regauged(pairs)),
        write_adapter(tmp_path / "e", {k: (B, 1.0001 * A) for k, (B, A) in pairs.items()}),
    ]
    levels = [adapter_distance(paths[0], path).level for path in paths]
    assert levels == ["exact", "exact", "exact", "equal to rounding", "different"]
    distances = [adapter_distance(paths[0], path) for path in paths[1:]]
    assert duplicate_groups(distances) == [[str(path) for path in paths[:4]]]
    small = {k: (B.copy(), A) for k, (B, A) in pairs.items()}
    last = list(small)[-1]
    small[last][0][0, 0] = np.nextafter(small[last][0][0, 0], np.float32(10))
    f = write_adapter(tmp_path / "f", small)
    assert adapter_distance(paths[0], f).level == "equal to rounding"
    del small[last]
    g = write_adapter(tmp_path / "g", small)
    missing = adapter_distance(paths[0], g)
    assert missing.level == "different"
    assert missing.modules[-1].relative == 1


def test_shrinking_gives_the_best_approximation_and_its_error(tmp_path):
    adapter = load_adapter(write_adapter(tmp_path / "a", factors(dtype=np.float64)))
    for rank in (1, 2, 3):
        made = shrink_adapter(adapter, rank=rank)
        for change in made.changes:
            values = np.linalg.svd(adapter.update(change.name).dense, compute_uv=False)
            assert change.error == pytest.approx(np.linalg.norm(values[rank:]), rel=1e-10)
            new = made.adapter.update(change.name).dense
            assert np.linalg.matrix_rank(new) == rank
            error = np.linalg.norm(new - adapter.update(change.name).dense)
            assert change.error == pytest.approx(error, rel=1e-10)
    for error in (0.0, 0.1, 0.5, 0.9):
        made = shrink_adapter(adapter, error=error)
        for change in made.changes:
            assert change.relative <= error + 1e-14
            values = np.linalg.svd(adapter.update(change.name).dense, compute_uv=False)
            if change.rank:
                assert np.linalg.norm(values[change.rank - 1 :]) > error * change.norm
    half = shrink_adapter(adapter, dtype=np.dtype(np.float16))
    assert 1e-5 < half.relative < 1e-3
    assert all(change.dropped < 1e-12 for change in half.changes)


def test_balanced_factors_survive_half_precision(tmp_path):
    """Rounding to float16 costs a badly scaled gauge far more than the canonical factors."""
    pairs = regauged(factors(dtype=np.float64), condition=1e4)
    adapter = load_adapter(write_adapter(tmp_path / "a", pairs))
    rounded = {name: tuple(x.astype(np.float16) for x in pair) for name, pair in pairs.items()}
    raw = adapter_distance(adapter, write_adapter(tmp_path / "b", rounded)).relative
    balanced = canonical_adapter(adapter, dtype=np.dtype(np.float16)).relative
    assert raw > 5 * balanced


def test_other_tensors_and_shapes_pass_through(tmp_path):
    random = np.random.default_rng(0)
    head = random.normal(size=(3, 12)).astype(np.float32)
    conv = (random.normal(size=(5, 2, 1, 1)), random.normal(size=(2, 3, 3, 3)))
    others = {"base_model.model.classifier.weight": head}
    path = write_adapter(tmp_path / "a", {"base_model.model.conv": conv}, others)
    adapter = load_adapter(path)
    assert "classifier" in adapter.notes[-1]
    canonical_adapter(adapter).save(tmp_path / "b")
    again = load_adapter(tmp_path / "b")
    np.testing.assert_array_equal(again.others["base_model.model.classifier.weight"](), head)
    assert again.modules["conv"].A_shape == (2, 3, 3, 3)
    assert adapter_distance(adapter, again).level == "equal to rounding"
    with pytest.raises(ArgumentError, match="whole tensors"):
        merge_adapters([path, path])


BAD_CONFIG = {
    "kind LORA are read; got LOHA": {"peft_type": "LOHA"},
    "DoRA": {"use_dora": True},
    "another order": {"layer_replication": [[1, 2], [0, 1]]},
    "r must be a whole number": {"r": "4"},
    "lora_alpha must be a finite": {"lora_alpha": None},
    "got inf": {"lora_alpha": float("inf")},
    "got 1000": {"lora_alpha": 10**200},
    "rank_pattern must map": {"rank_pattern": [1]},
    "no pattern": {"rank_pattern": {"(": 1}},
    "too complicated": {"rank_pattern": {"(a+)+b": 1}},
    "says r = 3": {"r": 3},
    "use_rslora must be true or false; got 'false'": {"use_rslora": "false"},
    "QALoRA": {"use_qalora": True},
    "BD-LoRA": {"use_bdlora": {"nblocks": 2}},
    "KaSA": {"kasa_config": {"beta": 1}},
    "MonteCLoRA": {"monteclora_config": {"samples": 4}},
    "Arrow": {"arrow_config": {"top_k": 3}},
    "Activated LoRA": {"alora_invocation_tokens": [1, 2]},
    "several matrices in one": {"target_parameters": ["experts.down_proj"]},
    "single rows of a table": {"trainable_token_indices": [0, 1]},
    "init_lora_weights is pissa_niter_16, which changes the base": {
        "init_lora_weights": "pissa_niter_16"
    },
    "init_lora_weights is olora": {"init_lora_weights": "olora"},
}


@pytest.mark.parametrize("reason", BAD_CONFIG)
def test_bad_configurations_are_refused(tmp_path, reason):
    path = write_adapter(tmp_path / "a", factors(), **BAD_CONFIG[reason])
    with pytest.raises(FileFormatError) as error:
        load_adapter(path)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_bad_files_are_refused(tmp_path):
    B, A = next(iter(factors().values()))
    for reason, tensors in {
        "has lora_A alone": {"m.lora_A.weight": A},
        "holds no lora_A": {"m.weight": A},
        "is no factor": {"m.lora_magnitude_vector": A},
        "are both there": {"m.lora_A.weight": A, "m.lora_A.other.weight": A},
        "(r, in) and (out, r) were due": {"m.lora_A.weight": A.T, "m.lora_B.weight": B},
        "floats were due": {"m.lora_A.weight": A.astype(int), "m.lora_B.weight": B},
    }.items():
        folder = tmp_path / reason.replace(" ", "_").replace("(", "")
        write_adapter(folder, {"x": (B, A)}).joinpath("adapter_model.safetensors").unlink()
        layout = {name: (array.dtype, array.shape) for name, array in tensors.items()}
        path = folder / "adapter_model.safetensors"
        write_safetensors(path, layout, lambda name, tensors=tensors: tensors[name])
        with pytest.raises(FileFormatError) as error:
            load_adapter(folder)
        assert reason in str(error.value)
    with pytest.raises(FileFormatError, match="no adapter_config"):
        load_adapter(tmp_path)
    (tmp_path / "adapter_config.json").write_text(json.dumps({"r": 1, "lora_alpha": 1}))
    with pytest.raises(FileFormatError, match="has no adapter_model"):
        load_adapter(tmp_path)


def test_bad_requests_are_refused_and_leave_nothing(tmp_path):
    a = write_adapter(tmp_path / "a", factors())
    b = write_adapter(
        tmp_path / "b",
        {"base_model.model.model.layers.0.self_attn.q_proj": (np.ones((3, 4)), np.ones((4, 5)))},
    )
    for call, reason in (
        (lambda: merge_adapters([a], (1, 2)), "one weight"),
        (lambda: merge_adapters([a, a], (1, np.nan)), "finite"),
        (lambda: merge_adapters([a, b]), "different models"),
        (lambda: adapter_distance(a, b), "different models"),
        (lambda: shrink_adapter(load_adapter(a), rank=0), "at least 1"),
        (lambda: shrink_adapter(load_adapter(a), rank=2, error=0.1), "not both"),
        (lambda: shrink_adapter(load_adapter(a), error=1.0), "below 1"),
        (lambda: load_adapter(a).update("x"), "does not change x"),
    ):
        with pytest.raises(ArgumentError, match=reason):
            call()
    form = canonical_adapter(load_adapter(a))
    with pytest.raises(FileFormatError, match="exists"):
        form.save(a)
    with pytest.raises(FileFormatError, match="does not exist"):
        form.save(tmp_path / "x" / "y")
    form.save(a, force=True)
    large = {k: (1e30 * B, 1e30 * A) for k, (B, A) in factors(dtype=np.float64).items()}
    huge = load_adapter(write_adapter(tmp_path / "large", large))
    with pytest.raises(nm.NeuromanifoldError, match="too large for float16"):
        canonical_adapter(huge, dtype=np.dtype(np.float16))


def test_a_changed_sign_is_no_rounding_and_a_hopeless_gauge_is_undecided(tmp_path):
    for word in ("bfloat16", "float16"):
        dtype = np.dtype(word) if word == "float16" else BFLOAT16
        pairs = factors(r=16, layers=1, dtype=dtype)
        first = write_adapter(tmp_path / f"a-{word}", pairs)
        name = next(iter(pairs))
        for i in range(12):
            B = pairs[name][0].copy()
            k = int(np.argmax(np.abs(B[i].astype(float))))
            B[i, k] = -B[i, k]
            changed = write_adapter(tmp_path / f"{i}-{word}", pairs | {name: (B, pairs[name][1])})
            assert adapter_distance(first, changed).level == "different"
        near = write_adapter(tmp_path / f"near-{word}", regauged(pairs, condition=8))
        assert adapter_distance(first, near).level == "equal to rounding"
        far = adapter_distance(
            first, write_adapter(tmp_path / f"far-{word}", regauged(pairs, condition=3e3))
        )
        assert far.level == "undecided"
        assert duplicate_groups([far]) == []
        assert "may be the same adapter or not" in str(far)


def test_rounding_below_the_smallest_normal_number_is_even(tmp_path):
    random = np.random.default_rng(0)
    name = PREFIX.format(0, "q")
    pairs = {
        name: (
            (random.normal(size=(12, 4)) * 1e-6).astype(np.float16),
            random.normal(size=(4, 10)).astype(np.float16),
        )
    }
    first = write_adapter(tmp_path / "a", pairs)
    moved = write_adapter(tmp_path / "b", regauged(pairs, condition=2))
    found = adapter_distance(first, moved)
    assert found.relative > 4 * 2.0**-11  # more than relative rounding would make
    assert found.level != "different"


def test_a_module_that_one_adapter_lacks_is_zero_there_exactly(tmp_path):
    pairs = {"base_model.model.n": (np.ones((3, 2)), np.ones((2, 3)))}
    lacks = write_adapter(tmp_path / "lacks", pairs)
    A = np.array([[0.1, 0.7, 1 / 3], [0.1, 0.7, 1 / 3]])
    zero = {"base_model.model.m": (np.array([[1.0, -1], [3, -3], [0.3, -0.3]]), A)}
    assert adapter_distance(lacks, write_adapter(tmp_path / "z", pairs | zero)).level == "exact"
    A[1, 2] = np.nextafter(A[1, 2], 1)
    found = adapter_distance(lacks, write_adapter(tmp_path / "y", pairs | zero))
    assert found.level == "undecided"


def test_factors_whose_squares_leave_float64_are_refused(tmp_path):
    good = {"base_model.model.n": (np.ones((3, 2)), np.ones((2, 3)))}
    for number, (size, alpha) in enumerate([(1e-170, 1), (1e170, 1), (1.0, 1e-250)]):
        pairs = {"base_model.model.m": (np.full((3, 2), size), np.ones((2, 3)))}
        path = write_adapter(tmp_path / str(number), pairs, lora_alpha=alpha)
        other = write_adapter(tmp_path / f"other-{number}", good)
        for call in (
            lambda path=path: load_adapter(path).audit(),
            lambda path=path, other=other: adapter_distance(path, other),
            lambda path=path: merge_adapters([path]),
        ):
            with pytest.raises(FileFormatError, match=r"factors of m .* rescale the factors"):
                call()
    a = tmp_path / "other-0"
    for weight in (1e200, 1e-200, np.inf):
        with pytest.raises(ArgumentError, match="between 1e-40 and 1e40"):
            merge_adapters([a], [weight])


def test_whole_tensors_have_no_multiple(tmp_path):
    whole = {"base_model.model.lm_head.weight": np.ones((3, 3))}
    a = write_adapter(tmp_path / "a", factors(), whole)
    assert list(merge_adapters([a]).adapter.others) == list(whole)
    with pytest.raises(ArgumentError, match="no multiple or sum"):
        merge_adapters([a], [0.5])


def test_a_table_and_a_map_of_the_same_name_do_not_meet(tmp_path):
    B, A = np.ones((4, 2)), np.ones((2, 4))
    plain = write_adapter(tmp_path / "a", {"base_model.model.m": (B, A)})
    table = write_adapter(
        tmp_path / "b",
        {"base_model.model.n": (B, A)},
        {"base_model.model.m.lora_embedding_A": A, "base_model.model.m.lora_embedding_B": B},
    )
    for call in (adapter_distance, lambda *pair: merge_adapters(pair)):
        with pytest.raises(ArgumentError, match="a table in one of them"):
            call(plain, table)


def test_a_merged_configuration_names_its_modules_alone(tmp_path):
    pairs = factors()
    names = list(pairs)
    narrow = {"layers_to_transform": [0], "layers_pattern": "layers", "exclude_modules": ["v"]}
    a = write_adapter(tmp_path / "a", {k: pairs[k] for k in names[:2]}, **narrow)
    b = write_adapter(tmp_path / "b", {k: pairs[k] for k in names[2:]})
    config = merge_adapters([a, b]).adapter.config
    assert [config[key] for key in narrow] == [None] * 3
    assert len(config["target_modules"]) == 4
    assert load_adapter(a).canonical().adapter.config["layers_to_transform"] == [0]
