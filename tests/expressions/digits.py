"""The functions of the expressions in many digits."""

import mpmath
import numpy as np

from expressions.constants import LENGTH, MIX, NOISY, STEPS


class SkippedError(Exception):
    """A value is not real, or too large or small to tell anything."""


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
    acosh, atanh, ceil = map(_scalar, (mpmath.acosh, mpmath.atanh, mpmath.ceil))
    round, logistic = _scalar(_half), _scalar(_logistic)
    atan, cbrt, lgamma = map(_scalar, (mpmath.atan, mpmath.cbrt, mpmath.loggamma))
    exp2, log2 = _scalar(lambda x: mpmath.mpf(2) ** x), _scalar(lambda x: mpmath.log(x, 2))
    hypot, turned = _scalar(mpmath.hypot), _scalar(lambda x: x + mpmath.pi / 2)
    relu6 = _scalar(lambda x: min(max(x, mpmath.mpf(0)), mpmath.mpf(6)))
    abs, sign, maximum, minimum = _scalar(abs), _scalar(mpmath.sign), _scalar(max), _scalar(min)
    where = _scalar(lambda c, x, y: x if c else y)
    rem = _scalar(lambda x, y: mpmath.sign(x) * mpmath.fmod(abs(x), abs(y)))
    clipped = _scalar(lambda x: min(max(x, mpmath.mpf(0)), mpmath.mpf(1)))
    steps = steps_from_the_right = _scalar(lambda x: mpmath.mpf(sum(x > s for s in STEPS)))
    square_modulus = _scalar(lambda x, y: x * x + y * y)
    rsqrt, relu = _scalar(lambda x: 1 / mpmath.sqrt(x)), _scalar(lambda x: max(x, mpmath.mpf(0)))
    softplus = _scalar(lambda x: mpmath.log(1 + mpmath.exp(x)))
    silu = _scalar(lambda x: x * _logistic(x))
    # JAX divides by √2 as a float.
    gelu = _scalar(lambda x: x / 2 * (1 + mpmath.erf(x * mpmath.mpf(float(np.sqrt(0.5))))))
    stopped = wrong_rule = wrong_pullback = called = wrapped = staticmethod(lambda x: x)
    cumsum, cumprod, flip = np.cumsum, np.cumprod, np.flip
    swapped = restacked = tiled = np.flip
    sum, prod = staticmethod(np.sum), staticmethod(np.prod)

    @staticmethod
    def max(x):
        return max(x)

    @staticmethod
    def min(x):
        return min(x)

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

    @staticmethod
    def cummin(x):
        return np.array([x[0], min(x)], dtype=object)

    @staticmethod
    def smallest_place(x, y):
        return np.array([y[0] if x[0] <= x[1] else y[1]] * LENGTH, dtype=object)

    @staticmethod
    def chosen(x, y):
        return x if x[0] > y[0] else y

    @staticmethod
    def window_max(x):
        return np.array([max(x), x[1]], dtype=object)

    @staticmethod
    def window_min(x):
        return np.array([min(x), x[1]], dtype=object)

    @staticmethod
    def window_sum(x):
        return np.array([x[0] + x[1], x[1]], dtype=object)

    @staticmethod
    def updated(x, y):
        return np.array([x[0], y[0]], dtype=object)

    put = updated

    @staticmethod
    def multiplied(x, y):
        return x * y

    @staticmethod
    def subtracted(x, y):
        return np.array([x[0], x[1] - y[0] - y[1]], dtype=object)

    @staticmethod
    def top_k(x):
        return np.array(sorted(x, reverse=True), dtype=object)

    @staticmethod
    def repeated(x):
        return x * x * x
