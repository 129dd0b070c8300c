"""Complex values in between: Fourier transforms whose roots of unity are rational."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import neuromanifold as nm
from formal_ranks import float_rank
from neuromanifold.algebra.balls.arrays import midpoints
from neuromanifold.algebra.balls.function import in_balls
from neuromanifold.algebra.modular import opened
from neuromanifold.certificates.exact import certify_function
from neuromanifold.errors import ArgumentError, NotCoveredError

FFT = jnp.fft


def _scanned(step, x):
    return jax.lax.scan(step, jnp.ones(4, complex), FFT.fft(x))[1].imag


FUNCTIONS = {
    "fft": lambda x: FFT.fft(x).real,
    "two axes": lambda x: jnp.abs(FFT.fft2(x)),
    "half": lambda x: FFT.rfft(x, axis=0).imag,
    "half of two axes": lambda x: FFT.irfftn(FFT.rfftn(x) ** 2),
    "inverse": lambda x: FFT.ifft2(x * (1.0 + 2j)).imag,
    "any half": lambda x: FFT.irfft2(x[:, :3] + 1j * x[:, 1:], s=(4, 4)),
    "real half": lambda x: FFT.irfft(x[:, :3] + 1j, n=4),
    "hermitian": lambda x: FFT.hfft(x[:, :3], n=4),
    "shorter": lambda x: FFT.fft(x, n=2)[..., ::-1].real,
    "quotient": lambda x: jnp.exp(FFT.fft(x) / (3 + FFT.ifft(x))).imag,
    "quotient by a real one": lambda x: (FFT.fft(x) / (2 + x * x)).imag,
    "powers": lambda x: (FFT.fft(x) ** -2 + FFT.fft(x) ** 3).real,
    "product": lambda x: jnp.einsum("ij,jk->ik", FFT.fft(x), x + 2j).imag,
    "conjugate": lambda x: (FFT.fft(x).conj() * 1j - x).real,
    "filled": lambda x: FFT.fft(x).at[np.array([1, 9])].get(mode="fill", fill_value=2j).imag,
    "padded": lambda x: jnp.pad(FFT.fft(x), 1, constant_values=1 + 2j).imag,
    "loop": lambda x: _scanned(lambda c, a: (c * a, c + a), x),
    "turns that are constant": lambda x: _scanned(lambda c, a: (c + 1j, c + 0 * a), x),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_parts_are_those_of_the_function(name):
    f = FUNCTIONS[name]
    with jax.enable_x64(True):
        x = np.random.default_rng(1).normal(size=(4, 4))
        expected = np.asarray(f(x))
        assert np.ptp(expected) > 0.1
        np.testing.assert_allclose(opened(f)(x), expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(midpoints(in_balls(f, x)), expected, rtol=1e-12, atol=1e-12)


def mixing(w, X):
    """Tokens mixed by a Fourier transform in place of attention, as FNet does."""
    Y = X + FFT.fft2(X @ w["in"]).real
    return jnp.tanh(Y @ w["up"]) @ w["down"]


def convolution(w, x):
    return FFT.ifft(FFT.fft(w["filter"]) * FFT.fft(x)).real * w["scale"]


def filtered(w, x):
    return FFT.irfft(FFT.rfft(jnp.sin(x)) * (w[:3] + 1j * w[3:]), 4)


@pytest.mark.parametrize(
    ("f", "weights", "sample", "found"),
    [
        (mixing, {"in": (2, 2), "up": (2, 2), "down": (2, 2)}, (4, 2), 12),
        (convolution, {"filter": (4,), "scale": ()}, (4,), 4),
        (filtered, (6,), (4,), 4),  # the imaginary parts at 0 and n/2 are not seen
        (lambda w, x: jnp.abs(FFT.fft(w * x)) ** 2, (4,), (4,), 4),
    ],
)
def test_ranks_are_those_of_floats(f, weights, sample, found):
    shapes = jax.tree.map(np.zeros, weights, is_leaf=lambda x: isinstance(x, tuple))
    network = nm.network(f, shapes, np.zeros(sample))
    certificate = nm.certify(network)
    assert all(obligation.met for obligation in certificate.obligations)
    assert certificate.lower == found == float_rank(f, shapes, np.zeros(sample))
    assert nm.verify(certificate, network).agrees


@pytest.mark.parametrize(("shape", "seen"), [((4,), 3), ((2,), 2), ((4, 4), 10), ((2, 4), 6)])
def test_a_power_spectrum_loses_its_phases(shape, seen):
    # Frequencies k and −k have the same power: one number for each of the seen classes {k, −k}.
    f = lambda w, x: jnp.abs(FFT.fftn(w)) ** 2 * x  # noqa: E731
    assert certify_function(f, np.zeros(shape), np.zeros(())).lower == seen


def test_a_transform_and_its_inverse_create_no_rank():
    f = lambda w, x: w[0] * x + w[1] * (FFT.irfft(FFT.rfft(x**2), 4) - x**2)  # noqa: E731
    g = lambda w, x: w[0] * x + w[1] * (FFT.ifft2(FFT.fft2(x**2)).imag)  # noqa: E731
    assert certify_function(f, np.zeros(2), np.zeros(4)).lower == 1
    assert certify_function(g, np.zeros(2), np.zeros((2, 4))).lower == 1


def test_the_size_of_a_real_number_is_a_branch_and_no_root():
    f = lambda w, x: w[0] * x + w[1] * jnp.abs(FFT.fft(x[:1]) + 0 * x)  # noqa: E731
    certificate = certify_function(f, np.zeros(2), np.zeros(3))
    assert certificate.readings.patterns > 1
    assert certificate.lower == 2


@pytest.mark.parametrize(
    ("f", "error", "said"),
    [
        (lambda w, x: FFT.fft(w * x).real, NotCoveredError, r"`fft` \(.*test_fourier.* length 3 "),
        (lambda w, x: FFT.irfft(FFT.rfft(w * x), 3), NotCoveredError, "lengths 1, 2 and 4 only"),
        (lambda w, x: jnp.log(w * x + 1j).real, NotCoveredError, "`log` .* of complex values"),
        (lambda w, x: w * x * 1j, ArgumentError, "type complex128; return real numbers"),
    ],
)
def test_what_is_not_covered_is_refused_in_a_sentence(f, error, said):
    with pytest.raises(error, match=said):
        certify_function(f, np.zeros(3), np.zeros(3))


def test_a_transform_of_constants_may_have_any_length():
    f = lambda w, x: FFT.fft(np.ones(5)).real * w * x  # noqa: E731
    assert certify_function(f, np.zeros(5), np.zeros(5)).lower == 1


def test_roots_of_lengths_are_rational_or_refused():
    def there_and_back(w, x):
        return (FFT.ifft(FFT.fft(w, norm="ortho"), norm="ortho").real - w) * x + w[0]

    assert certify_function(there_and_back, np.zeros(4), np.zeros(4)).rank == 1
    with pytest.raises(NotCoveredError, match='with norm="ortho" and its inverse would not cancel'):
        certify_function(there_and_back, np.zeros(2), np.zeros(2))
