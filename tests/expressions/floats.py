"""The functions of the expressions in JAX."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from expressions.constants import LENGTH, MIX, NOISY, STEPS


@jax.custom_jvp
def _wrong_rule(x):
    return x


_wrong_rule.defjvp(lambda primals, tangents: (primals[0], primals[0] * tangents[0]))


@jax.custom_vjp
def _wrong_pullback(x):
    return x


_wrong_pullback.defvjp(lambda x: (x, x), lambda x, u: (u * x * x,))


class Floats:
    """The functions in JAX."""

    exp, log, sqrt, sin, cos, tanh, sinh, cosh = (
        *(jnp.exp, jnp.log, jnp.sqrt, jnp.sin),
        *(jnp.cos, jnp.tanh, jnp.sinh, jnp.cosh),
    )
    tan, exp2, expm1, log1p, floor, round, ceil = (
        *(jnp.tan, jnp.exp2, jnp.expm1, jnp.log1p),
        *(jnp.floor, jnp.round, jnp.ceil),
    )
    asinh, acosh, atanh = jnp.arcsinh, jnp.arccosh, jnp.arctanh
    abs, sign, maximum, minimum, where, sort = (
        *(jnp.abs, jnp.sign, jnp.maximum, jnp.minimum),
        *(jnp.where, jnp.sort),
    )
    erf, erfc = staticmethod(lax.erf), staticmethod(lax.erfc)
    rsqrt, logistic = staticmethod(lax.rsqrt), staticmethod(jax.nn.sigmoid)
    relu, softplus, silu = map(staticmethod, (jax.nn.relu, jax.nn.softplus, jax.nn.silu))
    softmax, logsumexp = map(staticmethod, (jax.nn.softmax, jax.nn.logsumexp))
    stopped, wrong_rule = map(staticmethod, (lax.stop_gradient, _wrong_rule))
    wrong_pullback, called = map(staticmethod, (_wrong_pullback, jax.jit(lambda x: x)))
    cumsum, cumprod, flip, sum, prod = jnp.cumsum, jnp.cumprod, jnp.flip, jnp.sum, jnp.prod
    min, rem = jnp.min, staticmethod(lax.rem)
    max, atan, cbrt, lgamma = jnp.max, jnp.arctan, jnp.cbrt, staticmethod(lax.lgamma)

    log2, hypot, relu6 = jnp.log2, jnp.hypot, staticmethod(jax.nn.relu6)
    cummax, cummin = staticmethod(lax.cummax), staticmethod(lax.cummin)
    cumlogsumexp = staticmethod(lax.cumlogsumexp)

    @staticmethod
    def turned(x):
        return x + np.pi / 2

    @staticmethod
    def raised(x):
        return (jnp.where(jnp.array([True, False]), x, -2e4) + 2e4) / 2e4

    @staticmethod
    def tiny(x):
        return jnp.where(jnp.exp(-1e4 - x * x) > 0, x, x * x)

    @staticmethod
    def power_spectrum(x):
        return jnp.abs(jnp.fft.fft(x)) ** 2

    @staticmethod
    def circular(x, y):
        return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(y), LENGTH)

    @staticmethod
    def there_and_back(x):
        return jnp.fft.ifft(jnp.fft.fft(x) * 1j).imag

    @staticmethod
    def gelu(x):
        return jax.nn.gelu(x, approximate=False)

    @staticmethod
    def power(x, n):
        return x**n

    @staticmethod
    def mixed(x, matrix=MIX):
        return jnp.asarray(matrix) @ x

    @staticmethod
    def filled(x):
        return x.at[jnp.array([1, 7])].get(mode="fill", fill_value=0.0)

    @staticmethod
    def segments(x):
        return jax.ops.segment_sum(x, jnp.array([1, 7]), num_segments=LENGTH)

    @staticmethod
    def scattered(x):
        return jnp.zeros(LENGTH).at[jnp.array([1, 1])].add(x)

    @staticmethod
    def masked_softmax(x, low):
        return jax.nn.softmax(jnp.where(jnp.array([True, False]), x, low))

    @staticmethod
    def low_number(x):
        return jnp.where(jnp.array([True, False]), x, -1e9)

    @staticmethod
    def looped(x):
        return lax.scan(lambda c, a: (c * a, c * a), jnp.ones(()), x)[1]

    @staticmethod
    def det(a, b):
        return jnp.linalg.det(jnp.stack([a, b]))

    @staticmethod
    def solved(a, b, c):
        return jnp.linalg.solve(jnp.stack([a, b]), c)

    @staticmethod
    def convolved(x):
        return jnp.convolve(x, jnp.array([1.0, 2.0]), mode="full")[:LENGTH]

    @staticmethod
    def largest_place(x, y):
        return y[jnp.argmax(x)] * jnp.ones(LENGTH)

    @staticmethod
    def noisy(x):
        return jnp.array(NOISY) * x

    @staticmethod
    def taken(x, places):
        return x[places]

    @staticmethod
    def numbers(truths):
        return jnp.where(truths, 1.0, 0.0)

    @staticmethod
    def normed(x):
        centred = x - x.mean()
        return centred * lax.rsqrt((centred**2).mean() + 0.5)

    @staticmethod
    def smallest_place(x, y):
        return y[jnp.argmin(x)] * jnp.ones(LENGTH)

    @staticmethod
    def clipped(x):
        return lax.clamp(0.0, x, 1.0)

    @staticmethod
    def square_modulus(x, y):
        return jnp.real(jnp.conj(lax.complex(x, y)) * lax.complex(x, y))

    @staticmethod
    def chosen(x, y):
        return lax.cond(x[0] > y[0], lambda: x, lambda: y)

    @staticmethod
    def steps(x):
        return jnp.searchsorted(jnp.array(STEPS), x) + 0 * x

    @staticmethod
    def steps_from_the_right(x):
        return jnp.searchsorted(jnp.array(STEPS), x, side="right") + 0 * x

    @staticmethod
    def wrapped(x):
        inside = jax.checkpoint(lambda x: checkpoint_name(lax.reduce_precision(x, 8, 7), "x"))
        return lax.optimization_barrier(lax.platform_dependent(x, cpu=inside, default=inside))

    @staticmethod
    def window_max(x):
        return lax.reduce_window(x, -jnp.inf, lax.max, (2,), (1,), "SAME")

    @staticmethod
    def window_min(x):
        return lax.reduce_window(x, jnp.inf, lax.min, (2,), (1,), "SAME")

    @staticmethod
    def window_sum(x):
        return lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "SAME")

    @staticmethod
    def updated(x, y):
        return lax.dynamic_update_slice(x, y[:1], (1,))

    @staticmethod
    def put(x, y):
        return x.at[jnp.array([1])].set(y[:1])

    @staticmethod
    def multiplied(x, y):
        return x.at[jnp.array([0, 1])].multiply(y, unique_indices=True)

    @staticmethod
    def subtracted(x, y):
        return x.at[jnp.array([1, 1])].subtract(y)

    @staticmethod
    def top_k(x):
        return lax.top_k(x, LENGTH)[0]

    @staticmethod
    def repeated(x):
        start = (0, jnp.ones(LENGTH))
        return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), start)[1]

    @staticmethod
    def swapped(x):
        return jnp.concatenate(jnp.split(x, LENGTH)[::-1])

    @staticmethod
    def restacked(x):
        return jnp.stack(jnp.unstack(x)[::-1])

    @staticmethod
    def tiled(x):
        return jnp.tile(x, 2)[1 : 1 + LENGTH]
