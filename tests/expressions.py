"""Random functions of weights and inputs, each both in JAX and in many digits.

Every expression is written once, against a `Floats` (JAX) or a `Digits` (mpmath) that knows the
functions; so the two have no evaluation and no derivative in common. Values are pairs of numbers.
A function is Σ w_k φ_k, where the φ_k are random expressions of the inputs, some of which are
whole numbers, and of two inner weights, and some come with a *twin*: the same or a dependent
function, written in another way.
"""

# ruff: noqa: ARG005 - all expressions take the same arguments

import functools
import operator

import jax
import jax.numpy as jnp
import mpmath
import numpy as np

LENGTH = 2
MIX = ((2.0, -1.0), (0.5, 3.0))
SINGULAR = ((1.0, 2.0), (2.0, 4.0))
NOISY = (1.0, float(np.cos(np.pi / 2)))


class SkippedError(Exception):
    """A value is not real, or too large or small to tell anything."""


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
    tan, exp2, expm1, log1p, asinh, floor, round = (
        *(jnp.tan, jnp.exp2, jnp.expm1, jnp.log1p),
        *(jnp.arcsinh, jnp.floor, jnp.round),
    )
    abs, sign, maximum, minimum, where, sort = (
        *(jnp.abs, jnp.sign, jnp.maximum, jnp.minimum),
        *(jnp.where, jnp.sort),
    )
    erf, erfc = staticmethod(jax.lax.erf), staticmethod(jax.lax.erfc)
    rsqrt, logistic = staticmethod(jax.lax.rsqrt), staticmethod(jax.nn.sigmoid)
    relu, softplus, silu = map(staticmethod, (jax.nn.relu, jax.nn.softplus, jax.nn.silu))
    softmax, logsumexp = map(staticmethod, (jax.nn.softmax, jax.nn.logsumexp))
    stopped, wrong_rule = map(staticmethod, (jax.lax.stop_gradient, _wrong_rule))
    wrong_pullback, called = map(staticmethod, (_wrong_pullback, jax.jit(lambda x: x)))
    cumsum, cumprod, flip, sum, prod = jnp.cumsum, jnp.cumprod, jnp.flip, jnp.sum, jnp.prod
    max, atan, cbrt, lgamma = jnp.max, jnp.arctan, jnp.cbrt, staticmethod(jax.lax.lgamma)

    log2, hypot, relu6 = jnp.log2, jnp.hypot, staticmethod(jax.nn.relu6)
    cummax = staticmethod(jax.lax.cummax)
    cumlogsumexp = staticmethod(jax.lax.cumlogsumexp)

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
        return jax.lax.scan(lambda c, a: (c * a, c * a), jnp.ones(()), x)[1]

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
        return centred * jax.lax.rsqrt((centred**2).mean() + 0.5)


def _scalar(function):
    """A function of one number of many digits, entry by entry."""

    def each(*arrays):
        shaped = np.broadcast_arrays(*[np.asarray(a, dtype=object) for a in arrays])
        result = np.empty(shaped[0].shape, dtype=object)
        rows = zip(*(a.reshape(-1) for a in shaped), strict=True)
        result.reshape(-1)[:] = [_real(function, *row) for row in rows]
        return result

    return staticmethod(each)


def _real(function, *arguments):
    if any(abs(mpmath.mpf(a)) > 1e3 for a in arguments):
        raise SkippedError
    try:
        value = function(*map(mpmath.mpf, arguments))
    except (ValueError, ZeroDivisionError, OverflowError):
        raise SkippedError from None
    if isinstance(value, mpmath.mpc) or not mpmath.isfinite(value):
        raise SkippedError
    return value


def _half(x):
    return mpmath.floor(x + 0.5)


def _logistic(x):
    return 1 / (1 + mpmath.exp(-x))


class Digits:
    """The same functions in many digits."""

    exp, log, sqrt, sin, cos, tanh, sinh, cosh = (
        _scalar(getattr(mpmath, name))
        for name in ("exp", "log", "sqrt", "sin", "cos", "tanh", "sinh", "cosh")
    )
    tan, expm1, log1p, asinh, floor, erf, erfc = (
        _scalar(getattr(mpmath, name))
        for name in ("tan", "expm1", "log1p", "asinh", "floor", "erf", "erfc")
    )
    round, logistic = _scalar(_half), _scalar(_logistic)
    atan, cbrt, lgamma = map(_scalar, (mpmath.atan, mpmath.cbrt, mpmath.loggamma))
    exp2, log2 = _scalar(lambda x: mpmath.mpf(2) ** x), _scalar(lambda x: mpmath.log(x, 2))
    hypot, turned = _scalar(mpmath.hypot), _scalar(lambda x: x + mpmath.pi / 2)
    relu6 = _scalar(lambda x: min(max(x, mpmath.mpf(0)), mpmath.mpf(6)))
    abs, sign, maximum, minimum = _scalar(abs), _scalar(mpmath.sign), _scalar(max), _scalar(min)
    where = _scalar(lambda c, x, y: x if c else y)
    rsqrt, relu = _scalar(lambda x: 1 / mpmath.sqrt(x)), _scalar(lambda x: max(x, mpmath.mpf(0)))
    softplus = _scalar(lambda x: mpmath.log(1 + mpmath.exp(x)))
    silu = _scalar(lambda x: x * _logistic(x))
    # JAX divides by √2 as a float.
    gelu = _scalar(lambda x: x / 2 * (1 + mpmath.erf(x * mpmath.mpf(float(np.sqrt(0.5))))))
    stopped = wrong_rule = wrong_pullback = called = staticmethod(lambda x: x)
    cumsum, cumprod, flip = np.cumsum, np.cumprod, np.flip
    sum, prod = staticmethod(np.sum), staticmethod(np.prod)

    @staticmethod
    def max(x):
        return max(x)

    @staticmethod
    def power_spectrum(x):
        return np.array([(x[0] + x[1]) ** 2, (x[0] - x[1]) ** 2], dtype=object)

    @staticmethod
    def circular(x, y):
        return np.array([x[0] * y[0] + x[1] * y[1], x[0] * y[1] + x[1] * y[0]], dtype=object)

    @staticmethod
    def there_and_back(x):
        return x

    @staticmethod
    def sort(x):
        return np.array(sorted(x), dtype=object)

    @classmethod
    def softmax(cls, x):
        return cls.exp(x) / np.sum(cls.exp(x))

    @classmethod
    def logsumexp(cls, x):
        return cls.log(np.sum(cls.exp(x)))

    @classmethod
    def power(cls, x, n):
        return _scalar(lambda a: a ** mpmath.mpf(n)).__func__(x)

    @staticmethod
    def mixed(x, matrix=MIX):
        return np.array([[mpmath.mpf(e) for e in row] for row in matrix], dtype=object) @ x

    @staticmethod
    def filled(x):
        return np.array([x[1], mpmath.mpf(0)], dtype=object)

    @staticmethod
    def segments(x):
        return np.array([mpmath.mpf(0), x[0]], dtype=object)

    @staticmethod
    def scattered(x):
        return np.array([mpmath.mpf(0), x[0] + x[1]], dtype=object)

    @staticmethod
    def masked_softmax(x, low):
        del x, low
        return np.array([mpmath.mpf(1), mpmath.mpf(0)], dtype=object)

    @staticmethod
    def low_number(x):
        return np.array([x[0], mpmath.mpf(-1e9)], dtype=object)

    @staticmethod
    def raised(x):
        return np.array([x[0] / 20000 + 1, mpmath.mpf(0)], dtype=object)

    @staticmethod
    def tiny(x):
        return x

    @staticmethod
    def cummax(x):
        return np.array([x[0], max(x)], dtype=object)

    @classmethod
    def cumlogsumexp(cls, x):
        return np.array([x[0], cls.logsumexp(x).item()], dtype=object)

    @staticmethod
    def looped(x):
        return np.array([x[0], x[0] * x[1]], dtype=object)

    @staticmethod
    def det(a, b):
        return a[0] * b[1] - a[1] * b[0]

    @classmethod
    def solved(cls, a, b, c):
        d = cls.det(a, b)
        if abs(d) < 1e-6:
            raise SkippedError
        return np.array([b[1] * c[0] - a[1] * c[1], a[0] * c[1] - b[0] * c[0]], dtype=object) / d

    @staticmethod
    def convolved(x):
        return np.array([x[0], x[1] + 2 * x[0]], dtype=object)

    @staticmethod
    def largest_place(x, y):
        return np.array([y[0] if x[0] >= x[1] else y[1]] * LENGTH, dtype=object)

    @staticmethod
    def taken(x, places):
        return x[np.array([int(place) for place in places])]

    @staticmethod
    def numbers(truths):
        return np.array([mpmath.mpf(int(truth)) for truth in truths], dtype=object)

    @staticmethod
    def noisy(x):
        return np.array([mpmath.mpf(e) for e in NOISY], dtype=object) * x

    @classmethod
    def normed(cls, x):
        centred = x - (x[0] + x[1]) / 2
        return centred / cls.sqrt(np.sum(centred**2) / 2 + mpmath.mpf(0.5))


def _ones(B, u):
    return 0 * u + 1


# Pairs of functions of u and v that are equal, or as good as equal: what a proof must not miss.
TWINS = (
    (lambda B, u, v: B.exp(2 * u), lambda B, u, v: B.exp(u) ** 2),
    (lambda B, u, v: B.exp(u + v), lambda B, u, v: B.exp(u) * B.exp(v)),
    (lambda B, u, v: B.exp(u + 1), lambda B, u, v: B.exp(u)),
    (lambda B, u, v: B.exp(-u), lambda B, u, v: 1 / B.exp(u)),
    (lambda B, u, v: B.sqrt(4 * u), lambda B, u, v: B.sqrt(u)),
    (lambda B, u, v: B.sqrt(u * u), lambda B, u, v: u),
    (lambda B, u, v: B.sqrt(u * v), lambda B, u, v: B.sqrt(u) * B.sqrt(v)),
    (lambda B, u, v: B.rsqrt(u), lambda B, u, v: 1 / B.sqrt(u)),
    (lambda B, u, v: B.power(u, 1.5), lambda B, u, v: u * B.sqrt(u)),
    (lambda B, u, v: B.sqrt(B.exp(u)), lambda B, u, v: B.exp(u / 2)),
    (lambda B, u, v: B.tanh(u), lambda B, u, v: 2 * B.logistic(2 * u) - 1),
    (lambda B, u, v: B.logistic(u), lambda B, u, v: 1 - B.logistic(-u)),
    (lambda B, u, v: B.log(u * v), lambda B, u, v: B.log(u) + B.log(v)),
    (lambda B, u, v: B.log(u * u), lambda B, u, v: B.log(u)),
    (lambda B, u, v: B.log(B.exp(u)), lambda B, u, v: u),
    (lambda B, u, v: B.exp(B.log(u)), lambda B, u, v: u),
    (lambda B, u, v: B.log(B.sqrt(u)), lambda B, u, v: B.log(u)),
    (lambda B, u, v: B.erf(-u), lambda B, u, v: B.erf(u)),
    (lambda B, u, v: B.erfc(u), lambda B, u, v: 1 - B.erf(u)),
    (lambda B, u, v: B.sin(u) ** 2 + B.cos(u) ** 2, lambda B, u, v: _ones(B, u)),
    (lambda B, u, v: B.sin(2 * u), lambda B, u, v: B.sin(u) * B.cos(u)),
    (lambda B, u, v: B.cos(u + v), lambda B, u, v: B.cos(u) * B.cos(v) - B.sin(u) * B.sin(v)),
    (lambda B, u, v: B.tan(u), lambda B, u, v: B.sin(u) / B.cos(u)),
    (lambda B, u, v: B.cosh(u) ** 2 - B.sinh(u) ** 2, lambda B, u, v: _ones(B, u)),
    (lambda B, u, v: B.asinh(u), lambda B, u, v: B.log(u + B.sqrt(u * u + 1))),
    (lambda B, u, v: B.softplus(u), lambda B, u, v: B.log1p(B.exp(u))),
    (lambda B, u, v: B.softplus(u) - B.softplus(-u), lambda B, u, v: u),
    (lambda B, u, v: B.silu(u), lambda B, u, v: u * B.logistic(u)),
    (lambda B, u, v: B.gelu(u) - B.gelu(-u), lambda B, u, v: u),
    (lambda B, u, v: B.expm1(u), lambda B, u, v: B.exp(u) - 1),
    (lambda B, u, v: B.exp2(2 * u), lambda B, u, v: B.exp2(u) ** 2),
    (lambda B, u, v: B.softmax(u), lambda B, u, v: B.exp(u) / B.sum(B.exp(u))),
    (lambda B, u, v: B.softmax(u), lambda B, u, v: B.softmax(u + 3)),
    (lambda B, u, v: B.logsumexp(u) + 0 * u, lambda B, u, v: B.log(B.sum(B.exp(u))) + 0 * u),
    (lambda B, u, v: B.masked_softmax(u, -1e9), lambda B, u, v: B.masked_softmax(v, -np.inf)),
    (lambda B, u, v: B.low_number(u), lambda B, u, v: B.low_number(v)),
    (lambda B, u, v: B.abs(u), lambda B, u, v: B.relu(u) + B.relu(-u)),
    (lambda B, u, v: B.abs(u), lambda B, u, v: u),
    (lambda B, u, v: B.relu(u) - B.relu(-u), lambda B, u, v: u),
    (lambda B, u, v: B.maximum(u, v), lambda B, u, v: (u + v + B.abs(u - v)) / 2),
    (lambda B, u, v: B.where(u > v, u, v), lambda B, u, v: B.maximum(u, v)),
    (lambda B, u, v: B.minimum(u, v) + B.maximum(u, v), lambda B, u, v: u + v),
    (lambda B, u, v: B.sort(u), lambda B, u, v: u),
    (lambda B, u, v: B.max(u) + 0 * u, lambda B, u, v: B.max(B.flip(u)) + 0 * u),
    (lambda B, u, v: B.floor(u), lambda B, u, v: B.round(u - 0.5)),
    (lambda B, u, v: B.sign(u), lambda B, u, v: _ones(B, u)),
    (lambda B, u, v: B.largest_place(u, v), lambda B, u, v: v),
    (lambda B, u, v: B.stopped(u) + v, lambda B, u, v: u + v),
    (lambda B, u, v: u + B.stopped(B.round(u) - u), lambda B, u, v: B.round(u)),
    (lambda B, u, v: B.wrong_rule(u), lambda B, u, v: u),
    (lambda B, u, v: B.wrong_pullback(u), lambda B, u, v: u),
    (lambda B, u, v: B.called(u), lambda B, u, v: u),
    (lambda B, u, v: B.filled(u), lambda B, u, v: B.flip(B.segments(B.flip(u)))),
    (lambda B, u, v: B.scattered(u), lambda B, u, v: B.segments(B.cumsum(u)[::-1])),
    (lambda B, u, v: B.looped(u), lambda B, u, v: B.cumprod(u)),
    (lambda B, u, v: B.det(u, v) + 0 * u, lambda B, u, v: u[0] * v[1] - u[1] * v[0] + 0 * u),
    (lambda B, u, v: B.solved(u, v, u * v), lambda B, u, v: B.solved(v, u, (u * v)[::-1])),
    (lambda B, u, v: B.convolved(u), lambda B, u, v: B.mixed(u, ((1.0, 0.0), (2.0, 1.0)))),
    (lambda B, u, v: B.mixed(u, SINGULAR), lambda B, u, v: B.mixed(B.flip(u), SINGULAR)),
    (lambda B, u, v: B.noisy(u), lambda B, u, v: u),
    (lambda B, u, v: B.normed(u), lambda B, u, v: B.normed(u + 1)),
    (lambda B, u, v: B.atan(u) + B.atan(1 / u), lambda B, u, v: _ones(B, u)),
    (lambda B, u, v: B.atan(u), lambda B, u, v: B.atan(1 * u)),
    (lambda B, u, v: B.cbrt(8 * u), lambda B, u, v: B.cbrt(u)),
    (lambda B, u, v: B.lgamma(u + 1) - B.lgamma(u), lambda B, u, v: B.log(u)),
    (lambda B, u, v: B.there_and_back(u), lambda B, u, v: u),
    (lambda B, u, v: B.power_spectrum(u), lambda B, u, v: B.power_spectrum(B.flip(u))),
    (lambda B, u, v: B.circular(u, v), lambda B, u, v: B.circular(v, B.there_and_back(u))),
    (lambda B, u, v: B.exp2(u + 1) - 2 * B.exp2(u), lambda B, u, v: u),
    (lambda B, u, v: B.log2(2 * u) - B.log2(u) - 1, lambda B, u, v: u),
    (lambda B, u, v: B.sin(B.turned(u)) - B.cos(u), lambda B, u, v: u),
    (lambda B, u, v: B.hypot(u, v) ** 2 - u * u, lambda B, u, v: v * v),
    (lambda B, u, v: B.cummax(u) - u, lambda B, u, v: B.cummax(u - v) + v - u),
    (lambda B, u, v: B.cumlogsumexp(u), lambda B, u, v: B.log(B.cumsum(B.exp(u)))),
    (lambda B, u, v: B.exp(B.raised(u)), lambda B, u, v: B.exp(B.raised(u) + 1)),
    (lambda B, u, v: B.tiny(u), lambda B, u, v: B.tiny(u * u) - u * u + u),
    (lambda B, u, v: B.relu6(u) + B.relu6(-u), lambda B, u, v: B.relu6(B.abs(u))),
    (lambda B, u, v: u**3 / u, lambda B, u, v: u * u),
    (lambda B, u, v: (u * u - v * v) / (u - v), lambda B, u, v: u + v),
)

UNARY = (
    *("exp", "log", "sqrt", "sin", "cos", "tanh", "sinh", "cosh", "expm1", "log1p", "asinh"),
    *("erf", "rsqrt", "logistic", "relu", "softplus", "silu", "gelu", "softmax", "abs", "tan"),
    *("cumsum", "cumprod", "flip", "mixed", "filled", "looped", "convolved", "normed", "stopped"),
    *("sort", "exp2", "erfc", "wrong_rule", "power_spectrum", "there_and_back"),
    *("log2", "turned", "cummax", "cumlogsumexp", "raised", "tiny", "relu6"),
)
BINARY = (operator.add, operator.sub, operator.mul, operator.truediv)


def _looked_up(B, w, x):
    """Entries of a vector at places that are inputs."""
    return B.taken(x["a"] + w[:2], x["t"])


def _truth(B, w, x):
    """Input truth values as numbers."""
    return B.numbers(x["c"]) * x["b"]


def _inner(generator, depth, whole):
    """A random expression of inputs and inner weights."""
    if depth == 0 or generator.random() < 0.15:
        leaf = int(generator.integers(8 if whole else 6))
        if leaf >= 6:
            return (_looked_up, _truth)[leaf % 2]
        return lambda B, w, x: (x["a"], x["a"], x["b"], x["b"] + w[:2], x["a"] * w[:2], w[:2])[leaf]
    if generator.random() < 0.4:
        left, right = (_inner(generator, depth - 1, whole) for _ in range(2))
        operation = BINARY[int(generator.integers(len(BINARY)))]
        return lambda B, w, x: operation(left(B, w, x), right(B, w, x))
    name, inside = str(generator.choice(UNARY)), _inner(generator, depth - 1, whole)
    return lambda B, w, x: getattr(B, name)(inside(B, w, x))


def _pair(generator, whole):
    first, second = TWINS[int(generator.integers(len(TWINS)))]
    u, v = (_inner(generator, int(generator.integers(0, 2)), whole) for _ in range(2))
    return [lambda B, w, x, f=f: f(B, u(B, w, x), v(B, w, x)) for f in (first, second)]


def random_function(seed):
    """A function of a backend, weights and inputs; how many weights; whether of whole numbers."""
    generator = np.random.default_rng(seed)
    whole = bool(generator.random() < 0.2)
    terms = _pair(generator, whole)
    for _ in range(int(generator.integers(0, 2))):
        terms.append(_inner(generator, 2, whole))
    if generator.random() < 0.2:
        terms += _pair(generator, whole)
    if generator.random() < 0.3:
        outer, body = str(generator.choice(UNARY)), terms[-1]
        terms[-1] = lambda B, w, x: getattr(B, outer)(body(B, w, x))

    # Inputs that enter through functions which are not read, here and there too many of them.
    warped = [name for name in "ab" if generator.random() < 0.2]
    kept = generator.random() < 0.2

    def function(B, w, x):
        given = x
        for name, warp in zip("ab", (B.atan, B.cbrt), strict=True):
            if name in warped:
                x = x | {name: warp(x[name]) + (given["a"] if kept else 0)}
        return functools.reduce(
            operator.add, (w[2 + k] * term(B, w, x) for k, term in enumerate(terms))
        )

    return function, 2 + len(terms), whole


def rank_in_digits(function, weights, inputs, digits=50):
    """The rank at these weights by differences in many digits, or None without a clear gap."""
    with mpmath.workdps(digits):
        step = mpmath.mpf(10) ** -20

        def at(w, x):
            try:
                return function(Digits, w, {k: _exact(v) for k, v in x.items()})
            except ZeroDivisionError:  # by a truth value, say
                raise SkippedError from None

        rows = []
        for x in inputs:
            columns = []
            for k in range(len(weights)):
                sides = []
                for sign in (1, -1):
                    w = _exact(weights)
                    w[k] += sign * step
                    sides.append(at(w, x))
                columns.append((sides[0] - sides[1]) / (2 * step))
            rows += list(np.stack(columns, axis=1))
        return _pivots(np.stack(rows))


def _exact(values):
    array = np.empty(np.shape(values), dtype=object)
    array.reshape(-1)[:] = [mpmath.mpf(x) for x in np.asarray(values).reshape(-1).tolist()]
    return array


def _pivots(matrix):
    """The number of pivots above 10^-12, if all others are below 10^-18, of rows of size one."""
    matrix = np.array([row / max(map(abs, row)) for row in matrix if max(map(abs, row)) > 1e-15])
    rank = 0
    while matrix.size:
        sizes = np.array([[float(abs(e)) for e in row] for row in matrix])
        i, j = np.unravel_index(np.argmax(sizes), sizes.shape)
        if sizes[i, j] < 1e-18:
            break
        if sizes[i, j] < 1e-12:
            return None
        pivot = matrix[i]
        matrix = np.array([r - pivot * (r[j] / pivot[j]) for k, r in enumerate(matrix) if k != i])
        rank += 1
    return rank
