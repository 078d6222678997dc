"""Sums over the number of components of a mixture, which has a law of its own.

With p(m) the law, gamma the Dirichlet parameter of each component and [x]_n rising factorials,

    V_n(t) = sum_{m >= t} m! / (m - t)! p(m) / [gamma m]_n

is what the probability of a partition of n items into t blocks is made of. Terms rise and fall
over few m where t is far below n, but over about n^2 of them near t = n.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import numpy as np
from scipy.special import gammaln, polygamma

from skbnp.laws import ShiftedBetaNegativeBinomial
from skbnp.processes._checks import MOST_WHOLE, as_numbers

# Terms below e^-50 of the largest are left out.
_NEGLIGIBLE = 50.0
# So many terms are added one by one rather than integrated, and so many before an integral.
_FEW, _HEAD = 2**13, 2**12
# As far as sums reach, log(m): parameters of the law are bounded so that it is far enough.
_FARTHEST = 600.0
# Terms that are looked at for a law that is known at whole numbers alone.
_MOST_TERMS = 2**22
_NODE, _WEIGHT = np.polynomial.legendre.leggauss(20)


# -- laws of the number of components ---------------------------------------------------------


class BetaNegativeBinomial(ShiftedBetaNegativeBinomial):
    """The law of `skbnp.laws`, its density continued between whole numbers: sums are integrals."""

    is_smooth = True

    def log_pmf(self, m):
        """Log probability of m >= 1, for real m too."""
        k, (a, b, c) = m - 1.0, (self.a, self.b, self.c)
        constant = gammaln(a + b) - gammaln(a) - _log_beta(b, c)
        return constant + log_gamma_ratio(k + 1.0, a - 1.0) - log_gamma_ratio(k + c, a + b)

    def log_sum(self, log_weight, start, log_bound):
        """log sum_{m >= start} exp(log_weight(m)) p(m), for smooth weights."""
        return _log_smooth_sum(lambda m: log_weight(m) + self.log_pmf(m), start)

    def draw(self, rng):
        """One draw, at most 2^53: so many components are as good as any more."""
        return int(min(self.sample(random_state=rng), MOST_WHOLE))


@dataclass(frozen=True, eq=False)
class FrozenLaw:
    """A frozen discrete law of scipy, known at whole numbers alone."""

    law: object
    is_smooth = False

    def __eq__(self, other):
        return isinstance(other, FrozenLaw) and other.law is self.law

    def __hash__(self):
        return id(self.law)

    def log_pmf(self, m):
        """Log probability of whole m >= 1."""
        return self.law.logpmf(m)

    def log_sum(self, log_weight, start, log_bound):
        """log sum_{m >= start} exp(log_weight(m)) p(m), one term after the other.

        ``log_bound(m)`` is not below the log weight of m and of all that are larger.
        """
        total, first, n = -np.inf, int(max(start, self.law.support()[0])), 256
        while first <= self.law.support()[1]:
            m = np.arange(first, first + n, dtype=np.float64)
            total = np.logaddexp(total, _log_sum_exp(log_weight(m) + self.law.logpmf(m)))
            first += n
            n = min(2 * n, 2**18)
            rest = self.law.logsf(first - 1)
            if rest == -np.inf or log_bound(float(first)) + rest < total - 40.0:
                break
            if first - start > _MOST_TERMS:
                raise ValueError(
                    "n_components_prior must have a lighter tail where it is a law of scipy: "
                    f"the first {_MOST_TERMS} terms are not enough; give (a, b, c)"
                )
        return total

    def draw(self, rng):
        """One draw, at most 2^53; rng is a numpy.random.Generator."""
        return int(min(self.law.rvs(random_state=rng), MOST_WHOLE))


def as_components_law(name, value):
    """The law of the number of components that the user gives."""
    if isinstance(value, ShiftedBetaNegativeBinomial):
        return BetaNegativeBinomial(value.a, value.b, value.c)
    if hasattr(value, "logpmf") and hasattr(value, "support"):
        if not (value.cdf(0) == 0.0 and value.sf(0) > 0.0):
            raise ValueError(
                f"{name} must be a law on 1, 2, ..., got P(M <= 0) = {value.cdf(0)!r}; "
                "loc=1 shifts a law that starts at 0"
            )
        return FrozenLaw(value)
    numbers = as_numbers(name, value) if np.shape(value) == (3,) else np.zeros(3)
    if not (np.all(numbers >= 0.1) and np.all(numbers <= 1e4)):
        raise ValueError(
            f"{name} must be three numbers from 0.1 to 1e4 or a frozen discrete law of scipy, "
            f"got {value!r}"
        )
    return BetaNegativeBinomial(*map(float, numbers))


# -- what is summed ---------------------------------------------------------------------------


class Coefficients:
    """log V_n(t) + lgamma(n) for t = 1, 2, ..., computed when they are first asked for.

    Without lgamma(n) the digits of n log n, common to all t, would be lost to their ratios.
    """

    def __init__(self, n, concentration, law):
        self._n, self._concentration, self._law = n, concentration, law
        self._known, self._table, self._lock = {}, np.zeros(1), Lock()

    def of(self, n_blocks):
        """The coefficient of one number of blocks; inf for n + 1 where the law has no mean."""
        t = int(n_blocks)
        if t not in self._known:
            self._known[t] = log_coefficient(self._n, t, self._concentration, self._law)
        return self._known[t]

    def up_to(self, n_blocks):
        """An array with entry t for each number of blocks up to n_blocks at least; entry 0 is 0."""
        with self._lock:
            n_known = len(self._table)
            if n_blocks >= n_known:
                new = [self.of(t) for t in range(n_known, n_blocks + 1)]
                self._table = np.append(self._table, new)
            return self._table


@lru_cache(maxsize=256)
def coefficients(n, concentration, law):
    """The coefficients of n items, the same object whoever asks."""
    return Coefficients(n, concentration, law)


def log_coefficient(n, t, concentration, law):
    """log V_n(t) + lgamma(n); inf for t = n + 1 where a smooth law has no mean."""
    if t == n + 1 and law.is_smooth and law.b <= 1.0:
        return np.inf

    def log_weight(m):
        return log_component_weight(m, n, t, concentration)

    def log_bound(m):
        # m! / (m - t)! / [gamma m]_n rises to one maximum and falls, or rises to its limit.
        here, after = log_weight(np.array([m, m + 1.0]))
        if after <= here:
            return here
        return gammaln(n) - n * math.log(concentration) if t == n else np.inf

    return law.log_sum(log_weight, t, log_bound)


def log_component_weight(m, n, t, concentration):
    """log of m! / (m - t)! Gamma(n) / [gamma m]_n for an array of m >= t.

    Two forms that are equal: the first is for few components, in the second all that is common
    to gamma m >> n is taken out before it cancels.
    """
    m = np.asarray(m, dtype=np.float64)
    out, x = np.empty(m.shape), concentration * m
    few = x <= n
    out[few] = log_gamma_ratio(m[few] - t + 1.0, t) - log_gamma_ratio(n, x[few]) + gammaln(x[few])
    many, x = m[~few], x[~few]
    falling = _log_rising_over_power(many - t + 1.0, t) + t * np.log1p((1.0 - t) / many)
    out[~few] = (
        (t - n) * np.log(many)
        - n * math.log(concentration)
        + gammaln(n)
        + falling
        - _log_rising_over_power(x, n)
    )
    return out


def log_block_moments(n, concentration, law):
    """log E[K_n] and log E[K_n (K_n - 1)] for the number of blocks of n items."""

    def log_mean(m):
        return np.log(m) + np.log(-np.expm1(_log_empty(m, n, concentration)))

    def log_pairs(m):
        one, next_one = _log_empty(m, n, concentration), _log_empty(m - 1.0, n, concentration)
        # P(both of two components have items): two forms, the second for many components.
        few = -np.expm1(one) + np.exp(one) * np.expm1(next_one)
        far = np.maximum(concentration * (m - 1.0), 1e-300)
        change = -np.exp(2.0 * np.log(concentration) + _log_inverse_squares(far, n))
        many = np.expm1(one) ** 2 + np.exp(2.0 * one) * np.expm1(change)
        used = np.where(m < 1e6, few, many)
        with np.errstate(divide="ignore"):
            return np.log(m) + np.log(m - 1.0) + np.log(np.maximum(used, 0.0))

    bound = 2.0 * math.log(n) if n > 1 else 0.0
    mean = law.log_sum(log_mean, 1, lambda m: bound)
    return mean, law.log_sum(log_pairs, 2, lambda m: bound) if n > 1 else -np.inf


def _log_empty(m, n, concentration):
    """log probability that one of m components has none of n items."""
    x, rest = concentration * m, concentration * (m - 1.0)
    with np.errstate(divide="ignore"):
        few = log_gamma_ratio(np.maximum(rest, 1e-300), concentration)
        few = np.where(rest > 0.0, few - log_gamma_ratio(rest + n, concentration), -np.inf)
        many = np.maximum(rest, 1.0)
        many = _log_rising_over_power(many, n) - _log_rising_over_power(many + concentration, n)
        return np.where((rest > n) & (x > 1.0), many + n * np.log1p(-1.0 / m), few)


# -- sums over whole numbers ------------------------------------------------------------------


def _log_smooth_sum(log_f, start):
    """log sum_{m >= start} f(m) for a positive f that is smooth on the real line above start - 1.

    Few terms are added. Many are integrated over s = log(m - start + 1), by Gauss's rule on
    panels, with the end corrections of Euler and Maclaurin.
    """

    def log_g(s):  # f(m) dm / ds
        return log_f(start - 1.0 + np.exp(s)) + s

    s = np.linspace(0.0, _FARTHEST, 1201)
    g = log_g(s)
    # Peaks may be narrow: the neighbourhood of each is looked at ever more closely.
    for center in s[_local_maxima(g)]:
        for width in (0.5, 0.05, 0.005, 0.0005):
            near = np.linspace(max(center - width, 0.0), center + width, 41)
            g_near = log_g(near)
            center = near[np.argmax(g_near)]
            s, g = np.append(s, near), np.append(g, g_near)
    order = np.argsort(s, kind="stable")
    s, g = s[order], g[order]
    inside = np.flatnonzero(g > g.max() - _NEGLIGIBLE)
    low, high = s[max(inside[0] - 1, 0)], s[min(inside[-1] + 1, len(s) - 1)]
    first, last = start - 1.0 + math.floor(math.exp(low)), start - 1.0 + math.ceil(math.exp(high))
    if last - first < _FEW:
        return _log_sum_exp(log_f(np.arange(first, last + 1.0)))
    level = log_f(np.array([start - 1.0 + math.exp(s[np.argmax(g)])]))[0]
    total, cut = 0.0, float(first)
    # Where the sum begins in the midst of large terms, the first ones are added.
    while low == 0.0 and cut < last:
        m = np.arange(cut, cut + _HEAD)
        f = np.exp(log_f(np.append(m, cut + _HEAD)) - level)
        total += f[:-1].sum()
        cut += _HEAD
        if abs(f[-1] - f[-2]) <= 0.02 * f[-1]:
            total += _end_correction(np.exp(log_f(cut - 4.0 + np.arange(8.0)) - level))
            break
    return level + math.log(
        total + _integral(log_g, math.log(cut - 0.5 - start + 1.0), high, level)
    )


def _local_maxima(g):
    inner = (g >= np.append(-np.inf, g[:-1])) & (g >= np.append(g[1:], -np.inf))
    return np.flatnonzero(inner & (g > g.max() - 4.0 * _NEGLIGIBLE))[:4]


def _end_correction(f):
    """Sum of f over whole numbers from a + 1/2 on less its integral from a on.

    f'(a) / 24 - 7 f'''(a) / 5760 + 31 f^(5)(a) / 967680, of values at a - 7/2, ..., a + 7/2.
    """
    x = np.array([0.5, 1.5, 2.5, 3.5])
    odd = (f[4:] - f[3::-1]) / 2.0
    powers = np.array([1, 3, 5, 7])
    derivative = np.linalg.solve(x[:, None] ** powers / [1.0, 6.0, 120.0, 5040.0], odd)
    return derivative[:3] @ [1.0 / 24.0, -7.0 / 5760.0, 31.0 / 967680.0]


def _integral(log_g, low, high, level):
    """Integral of exp(log_g - level) from low to high: panels are halved until it stands still."""
    total, change, n_panels = np.inf, np.inf, 32
    while n_panels <= 2**13:
        edge = np.linspace(low, high, n_panels + 1)
        half = (edge[1:] - edge[:-1]) / 2.0
        s = (edge[:-1] + half)[:, None] + half[:, None] * _NODE
        finer = half @ (np.exp(log_g(s.ravel()) - level).reshape(s.shape) @ _WEIGHT)
        last, change, total = change, abs(finer - total), finer
        if change <= 1e-13 * total or change > 0.5 * last:  # the latter is rounding
            break
        n_panels *= 2
    return total


def _log_sum_exp(x):
    highest = x.max()
    return highest if not np.isfinite(highest) else highest + math.log(np.exp(x - highest).sum())


# -- gamma functions --------------------------------------------------------------------------


def log_gamma_ratio(x, d):
    """log Gamma(x + d) / Gamma(x) for x > 0, x + d > 0: large x does not take up its digits."""
    x, d = np.broadcast_arrays(np.asarray(x, dtype=np.float64), d)
    large = (x >= 100.0) & (x + d >= 100.0)
    safe, by = np.where(large, x, 100.0), np.where(large, d, 0.0)
    series = (
        (safe - 0.5) * np.log1p(by / safe)
        + by * (np.log(safe + by) - 1.0)
        + _stirling_remainder(safe + by)
        - _stirling_remainder(safe)
    )
    return np.where(large, series, gammaln(x + d) - gammaln(x))


def _log_rising_over_power(x, n):
    """log [x]_n / x^n for x > 0, to full precision where x is far above n too."""
    large = x >= 100.0
    y = np.where(large, x, 100.0)
    series = (
        y * _log1p_minus(n / y)
        + (n - 0.5) * np.log1p(n / y)
        + _stirling_remainder(y + n)
        - _stirling_remainder(y)
    )
    return np.where(large, series, gammaln(x + n) - gammaln(x) - n * np.log(x))


def _log_inverse_squares(x, n):
    """log sum_{i < n} (x + i)^-2 for x > 0: a difference of trigamma functions, or its series."""
    y = np.maximum(x, 30.0)
    series = sum(
        -c * y ** (1.0 - k) * np.expm1(-k * np.log1p(n / y))
        for k, c in ((1, 1.0), (2, 1 / 2), (3, 1 / 6), (5, -1 / 30), (7, 1 / 42))
    )
    z = np.clip(x, 1e-150, 30.0)
    near = polygamma(1, z) - polygamma(1, z + n)
    return np.where(x < 30.0, np.log(near), np.log(series) - np.log(y))


def _log1p_minus(u):
    """log(1 + u) - u for u >= 0."""
    r = u / (2.0 + u)
    square = r * r
    series = 1.0 / 17.0
    for odd in (15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0):
        series = 1.0 / odd + square * series
    return np.where(u < 0.2, r * (2.0 * square * series - u), np.log1p(u) - u)


def _stirling_remainder(x):
    """lgamma(x) - [(x - 1/2) log x - x + log(2 pi) / 2], to 1e-17 for x >= 100."""
    square = (1.0 / x) ** 2
    return (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0)) / x


def _log_beta(a, b):
    return gammaln(a) + gammaln(b) - gammaln(a + b)
