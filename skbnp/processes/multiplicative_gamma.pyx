"""Multiplicative gamma process: precisions of factors that grow along a chain or down a tree.

delta_1 ~ Gamma(a1, rate 1) at a root and delta_h ~ Gamma(a2, rate 1) elsewhere; the precision of
factor h is tau_h, the product of delta over h and its ancestors. Here a1 = ``shrinkage_root`` and
a2 = ``shrinkage``. On a chain every factor's parent is the one before it (Bhattacharya & Dunson);
``parent`` gives any forest (Zhang, Dunson & Carin). A loading d_hp has variance 1 / (phi_hp tau_h)
with the local precision phi_hp ~ Gamma(nu / 2, rate nu / 2).

References
----------
- Bhattacharya & Dunson (2011), "Sparse Bayesian infinite factor models", Biometrika 98.
- Zhang, Dunson & Carin (2011), "Tree-structured infinite sparse factor model", ICML.
- Durante (2017), "A note on the multiplicative gamma process", Statistics & Probability Letters
  122.
"""

from libc.math cimport exp, fmax, fmin, log
from numpy.random cimport bitgen_t

from skbnp.numerics.rng cimport borrow, draw_gamma
from skbnp.numerics.special cimport lgamma

from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.special import gammaincc, gammainccinv, gammaln, polygamma, psi

from skbnp.numerics.rng import as_generator
from skbnp.processes._checks import as_count, as_numbers, as_positive, as_whole_array

__all__ = [
    "SHRINKAGE_THRESHOLD",
    "Shrinkage",
    "check_shrinkage",
    "expected_log_precision",
    "expected_precision",
    "expected_product",
    "expected_variance",
    "log_prob",
    "sample",
    "sample_local_precision",
    "sample_multipliers",
    "var_log_precision",
]

# The root of psi: with a smaller shrinkage tau_h tends to 0 almost surely.
SHRINKAGE_THRESHOLD = 1.4616321449683622

cdef enum:
    LOG_LIMIT = 300  # |log tau| beyond which products would leave the range of a double


# -- the law and its conditionals -------------------------------------------------------------


cdef double log_density(double x, double shape) noexcept nogil:
    """Of Gamma(shape, rate 1)."""
    return (shape - 1.0) * log(x) - x - lgamma(shape)


cdef void draw_local(
    bitgen_t* rng, Py_ssize_t n, const double* loading, double precision, double df, double* local
) noexcept nogil:
    """phi_p | d_p, tau ~ Gamma((nu + 1) / 2, (nu + tau d_p^2) / 2), n of them.

    Equation (T10.4) of doc/mathematics/tree_factor_model; Zhang et al. misprint it in equation 5.
    """
    cdef Py_ssize_t p
    for p in range(n):
        local[p] = draw_gamma(
            rng, 0.5 * (df + 1.0), 0.5 * (df + precision * loading[p] * loading[p])
        )


cdef void draw_multipliers(
    bitgen_t* rng, Py_ssize_t n_nodes, const Py_ssize_t* parent, const double* weighted_square,
    Py_ssize_t n_features, double root_shape, double shape, double* multiplier,
    double* log_precision, double* scratch,
) noexcept nogil:
    """Update every delta, from the roots down, given s_h = sum_p phi_hp d_hp^2; O(n_nodes).

    delta_h | - ~ Gamma(a_h + P |S_h| / 2, 1 + sum_{c in S_h} (tau_c / delta_h) s_c / 2) with S_h
    the subtree rooted at h, h included: delta_h enters the precision of each of its nodes, not
    of the children alone as equation 5 of Zhang et al. has it. Derived in
    doc/mathematics/tree_factor_model, section 15.1.

    Parents come before children; the parent of a root is -1. The sums over subtrees are made
    once: what the new delta of an ancestor does to them is the one factor that it does to tau_h.
    ``scratch`` holds 3 n_nodes doubles.
    """
    cdef double* total = scratch                # sum over the subtree of tau_c s_c, before
    cdef double* size = scratch + n_nodes       # |S_h|
    cdef double* log_before = scratch + 2 * n_nodes
    cdef double old, gain, rate, n
    cdef Py_ssize_t h
    for h in range(n_nodes):
        log_before[h] = log_precision[h]
        total[h] = exp(_within(log_precision[h])) * weighted_square[h]
        size[h] = 1.0
    for h in range(n_nodes - 1, -1, -1):
        if parent[h] >= 0:
            total[parent[h]] += total[h]
            size[parent[h]] += size[h]
    for h in range(n_nodes):
        old = multiplier[h]
        # What the ancestors' new values have done to all precisions of the subtree.
        gain = 0.0 if parent[h] < 0 else log_precision[parent[h]] - log_before[parent[h]]
        n = n_features * size[h]
        rate = 1.0 + 0.5 * exp(_within(gain)) * total[h] / old
        multiplier[h] = draw_gamma(
            rng, (root_shape if parent[h] < 0 else shape) + 0.5 * n, rate
        )
        log_precision[h] = log(multiplier[h])
        if parent[h] >= 0:
            log_precision[h] += log_precision[parent[h]]


cdef double _within(double x) noexcept nogil:
    return fmax(fmin(x, LOG_LIMIT), -LOG_LIMIT)


# -- checks of what the user gives ------------------------------------------------------------


def _shapes(shrinkage_root, shrinkage):
    return (
        as_positive("shrinkage_root", shrinkage_root), as_positive("shrinkage", shrinkage)
    )


def _parents(parent, n_factors):
    """Parent of each factor, a chain if None."""
    if parent is None:
        return np.arange(-1, n_factors - 1)
    parent = as_whole_array("parent", parent, least=-1)
    if parent.shape != (n_factors,):
        raise ValueError(f"parent must name one of each of {n_factors}, got {parent.shape[0]}")
    if (parent >= np.arange(n_factors)).any():
        raise ValueError("parent must come before its children")
    return parent


def _kinds(shifted, truncated):
    """Kind of a root's delta and of the others': "gamma", "shifted" or "truncated"."""
    for name, value in (("shifted", shifted), ("truncated", truncated)):
        if value not in (False, True, "all"):
            raise ValueError(f"{name} must be False, True or 'all', got {value!r}")
    if shifted and truncated:
        raise ValueError("shifted and truncated exclude each other")
    kind = "shifted" if shifted else "truncated" if truncated else "gamma"
    return kind if "all" in (shifted, truncated) else "gamma", kind


def _multipliers(n_factors, shrinkage_root, shrinkage, parent, shifted, truncated):
    """(is a root, parent, [(kind, shape) of a root, (kind, shape) of the others]), checked."""
    shapes = _shapes(shrinkage_root, shrinkage)
    parent = _parents(parent, n_factors)
    return parent < 0, parent, list(zip(_kinds(shifted, truncated), shapes, strict=True))


# -- one multiplier ---------------------------------------------------------------------------


def _draw(kind, shape, size, rng):
    """Draws of one delta."""
    if kind == "truncated":
        return gammainccinv(shape, gammaincc(shape, 1.0) * rng.random(size))
    return rng.gamma(shape, size=size) + (kind == "shifted")


def _log_density(kind, shape, delta):
    """Log density of one delta, -inf outside its support."""
    x = delta - 1.0 if kind == "shifted" else delta
    inside = (x > 0.0) & (delta > (kind != "gamma"))
    safe = np.where(inside, x, 1.0)
    value = (shape - 1.0) * np.log(safe) - safe - gammaln(shape)
    if kind == "truncated":
        value = value - np.log(gammaincc(shape, 1.0))
    return np.where(inside, value, -np.inf)


def _moment(kind, shape, power):
    """E[delta^power], infinite where it is."""
    if kind == "gamma":
        return np.exp(gammaln(shape + power) - gammaln(shape)) if shape + power > 0.0 else np.inf
    return _expectation(kind, shape, lambda delta: delta**power)


def _expectation(kind, shape, function):
    """E[function(delta)] of a delta above 1, by quadrature over log(delta - 1)."""
    def integrand(x):
        above = np.exp(x)
        # 1 + above rounds to 1, where the shifted density has its pole or zero.
        at = above if kind == "shifted" else 1.0 + above
        log_weight = (shape - 1.0) * np.log(at) - at - gammaln(shape) + x
        return function(1.0 + above) * np.exp(log_weight)

    low = -40.0 / min(shape, 1.0)
    top = np.log(shape + 40.0 * (1.0 + np.sqrt(shape)))
    total = quad(integrand, low, top, epsabs=0.0, epsrel=1e-12, limit=400, points=[0.0])[0]
    return total / gammaincc(shape, 1.0) if kind == "truncated" else total


# -- public functions -------------------------------------------------------------------------


class Shrinkage(NamedTuple):
    """What the two shapes do to the precisions tau_h as h grows.

    Parameters
    ----------
    mean_precision_grows : bool
        E[tau_h] grows: shrinkage > 1. It does not say that loadings shrink.
    precision_diverges : bool
        tau_h tends to infinity almost surely: shrinkage > 1.4616, the root of psi. Below it
        tau_h tends to 0 and the loadings blow up.
    mean_variance_shrinks : bool
        E[1 / tau_h] is finite and decreases geometrically: shrinkage > 2 and shrinkage_root > 1.
    """

    mean_precision_grows: bool
    precision_diverges: bool
    mean_variance_shrinks: bool


def check_shrinkage(shrinkage_root, shrinkage):
    """Whether two shapes shrink the loadings, in three senses (Durante 2017).

    Parameters
    ----------
    shrinkage_root, shrinkage : float
        Shapes a1 of the first multiplier and a2 of the others, > 0.

    Returns
    -------
    flags : Shrinkage

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> from skbnp.processes import multiplicative_gamma
    >>> multiplicative_gamma.check_shrinkage(2.0, 1.7).mean_variance_shrinks
    False
    """
    first, other = _shapes(shrinkage_root, shrinkage)
    return Shrinkage(other > 1.0, other > SHRINKAGE_THRESHOLD, other > 2.0 and first > 1.0)


def sample(
    n_factors, shrinkage_root, shrinkage, parent=None, shifted=False, truncated=False, size=None,
    random_state=None,
):
    """Draw the multipliers and the precisions.

    Parameters
    ----------
    n_factors : int
        Number of factors, at least 1.
    shrinkage_root, shrinkage : float
        Shapes a1 of a root's multiplier and a2 of the others, > 0. Larger shrinks more.
    parent : array-like of int, shape (n_factors,), default=None
        Parent of each factor, before it, or -1 for a root. None: a chain.
    shifted : bool or "all", default=False
        delta_h - 1 ~ Gamma(a2, 1) except at roots, or at all factors: precisions never decrease.
    truncated : bool or "all", default=False
        delta_h ~ Gamma(a2, 1) given delta_h > 1, likewise.
    size : int or None, default=None
        Number of draws; None: one, without an axis of its own.
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    delta, tau : ndarrays of shape (n_factors,) or (size, n_factors)
        Multipliers and precisions.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> from skbnp.processes import multiplicative_gamma
    >>> delta, tau = multiplicative_gamma.sample(5, 2.0, 3.0, random_state=0)
    >>> bool((tau == delta.cumprod()).all())
    True
    """
    n_factors = as_count("n_factors", n_factors)
    is_root, parent, laws = _multipliers(
        n_factors, shrinkage_root, shrinkage, parent, shifted, truncated
    )
    rng = as_generator(random_state)
    shape = () if size is None else (as_count("size", size),)
    delta = np.empty((*shape, n_factors))
    for law, chosen in zip(laws, (is_root, ~is_root), strict=True):
        delta[..., chosen] = _draw(*law, (*shape, np.count_nonzero(chosen)), rng)
    return delta, _precisions(delta, parent)


def _precisions(delta, parent):
    tau = delta.copy()
    for h in np.flatnonzero(parent >= 0):
        tau[..., h] *= tau[..., parent[h]]
    return tau


def log_prob(delta, shrinkage_root, shrinkage, parent=None, shifted=False, truncated=False):
    """Log density of the multipliers.

    Parameters
    ----------
    delta : array-like of shape (..., n_factors)
        Multipliers.
    shrinkage_root, shrinkage, parent, shifted, truncated
        As in :func:`sample`.

    Returns
    -------
    log_prob : float or ndarray of shape (...)
        -inf outside the support.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    delta = as_numbers("delta", delta)
    n_factors = delta.shape[delta.ndim - 1] if delta.ndim else 0
    if n_factors == 0:
        raise ValueError(f"delta must hold a factor at least, got shape {delta.shape}")
    is_root, _, laws = _multipliers(
        n_factors, shrinkage_root, shrinkage, parent, shifted, truncated
    )
    terms = np.where(is_root, _log_density(*laws[0], delta), _log_density(*laws[1], delta))
    total = terms.sum(axis=-1)
    return float(total) if total.ndim == 0 else total


def expected_precision(
    n_factors, shrinkage_root, shrinkage, power=1.0, shifted=False, truncated=False
):
    """Expected powers of the precisions along a chain.

    Parameters
    ----------
    n_factors : int
        Number of factors, at least 1.
    shrinkage_root, shrinkage : float
        Shapes, > 0.
    power : float, default=1.0
        E[tau_h^power] is returned.
    shifted, truncated
        As in :func:`sample`.

    Returns
    -------
    mean : ndarray of shape (n_factors,)
        At depths 1, 2, ..., n_factors of a tree as well; infinite where the expectation is.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    n_factors = as_count("n_factors", n_factors)
    _, _, (root, other) = _multipliers(
        1, shrinkage_root, shrinkage, None, shifted, truncated
    )
    power = float(as_numbers("power", power))
    with np.errstate(over="ignore"):
        return _moment(*root, power) * _moment(*other, power) ** np.arange(n_factors)


def expected_variance(n_factors, shrinkage_root, shrinkage, shifted=False, truncated=False):
    """E[1 / tau_h] along a chain: finite for shrinkage_root > 1, decreasing for shrinkage > 2.

    The expected variance of a loading is nu / (nu - 2) times that, for nu > 2.

    Parameters
    ----------
    n_factors, shrinkage_root, shrinkage, shifted, truncated
        As in :func:`expected_precision`.

    Returns
    -------
    mean : ndarray of shape (n_factors,)
        Infinite where the expectation is.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    return expected_precision(n_factors, shrinkage_root, shrinkage, -1.0, shifted, truncated)


def _log_moments(kind, shape):
    """Mean and variance of log delta."""
    if kind == "gamma":
        return psi(shape), polygamma(1, shape)
    mean = _expectation(kind, shape, np.log)
    return mean, _expectation(kind, shape, lambda delta: (np.log(delta) - mean) ** 2)


def expected_log_precision(n_factors, shrinkage_root, shrinkage, shifted=False, truncated=False):
    """E[log tau_h] along a chain: psi(a1) + (h - 1) psi(a2) for plain gamma multipliers.

    Parameters
    ----------
    n_factors, shrinkage_root, shrinkage, shifted, truncated
        As in :func:`expected_precision`.

    Returns
    -------
    mean : ndarray of shape (n_factors,)

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    return _sum_of_logs(n_factors, shrinkage_root, shrinkage, shifted, truncated, 0)


def var_log_precision(n_factors, shrinkage_root, shrinkage, shifted=False, truncated=False):
    """Var[log tau_h] along a chain: psi'(a1) + (h - 1) psi'(a2) for plain gamma multipliers.

    Parameters
    ----------
    n_factors, shrinkage_root, shrinkage, shifted, truncated
        As in :func:`expected_precision`.

    Returns
    -------
    variance : ndarray of shape (n_factors,)

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    return _sum_of_logs(n_factors, shrinkage_root, shrinkage, shifted, truncated, 1)


def _sum_of_logs(n_factors, shrinkage_root, shrinkage, shifted, truncated, moment):
    n_factors = as_count("n_factors", n_factors)
    _, _, laws = _multipliers(1, shrinkage_root, shrinkage, None, shifted, truncated)
    root, other = (_log_moments(*law)[moment] for law in laws)
    return root + other * np.arange(n_factors)


def expected_product(depth, other_depth, n_shared, shrinkage_root, shrinkage):
    """E[gamma_v gamma_w] of the precisions gamma = phi tau of two different nodes of a tree.

    With plain gamma multipliers it is a1 (a1 + 1) (a2 (a2 + 1))^(s - 1) a2^(h + h' - 2 s), so the
    covariance of nodes that share an ancestor is positive.

    Parameters
    ----------
    depth, other_depth : int
        Depths h and h' of the nodes; a root has 1.
    n_shared : int
        Ancestors s that both have, themselves included; 0 for nodes below different roots.
    shrinkage_root, shrinkage : float
        Shapes, > 0.

    Returns
    -------
    mean : float

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    first, other = _shapes(shrinkage_root, shrinkage)
    h, other_h = as_count("depth", depth), as_count("other_depth", other_depth)
    s = as_count("n_shared", n_shared, least=0)
    if s > min(h, other_h):
        raise ValueError(f"n_shared must be at most {min(h, other_h)}, got {n_shared}")
    alone = h + other_h - 2 * s
    if s == 0:
        return first**2 * other ** (alone - 2)
    return first * (first + 1.0) * (other * (other + 1.0)) ** (s - 1) * other**alone


def sample_local_precision(loadings, tau, df, random_state=None):
    """Draw the local precisions given loadings and precisions of the factors.

    phi_hp | - ~ Gamma((nu + 1) / 2, (nu + tau_h d_hp^2) / 2).

    Parameters
    ----------
    loadings : array-like of shape (n_factors, n_features)
        Loadings d.
    tau : array-like of shape (n_factors,)
        Precisions, > 0.
    df : float
        nu > 0; the loadings have Student's t tails with nu degrees of freedom.
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    phi : ndarray of shape (n_factors, n_features)

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    d, precision = as_numbers("loadings", loadings), as_numbers("tau", tau)
    if d.ndim != 2 or precision.shape != d.shape[:1] or not (precision > 0.0).all():
        raise ValueError(
            "tau must hold a number > 0 for each row of loadings, "
            f"got shapes {precision.shape} and {d.shape}"
        )
    cdef const double[:, ::1] loading = np.ascontiguousarray(d)
    cdef const double[::1] row_precision = np.ascontiguousarray(precision)
    cdef double[:, ::1] out = np.empty(d.shape)
    cdef double nu = as_positive("df", df)
    cdef Py_ssize_t h
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    with bit_generator.lock:
        for h in range(loading.shape[0] if loading.shape[1] else 0):
            draw_local(rng, loading.shape[1], &loading[h, 0], row_precision[h], nu, &out[h, 0])
    return np.asarray(out)


def sample_multipliers(
    weighted_squares, n_features, delta, shrinkage_root, shrinkage, parent=None, random_state=None
):
    """One Gibbs update of all multipliers given the loadings.

    delta_h ~ Gamma(a_h + P n_h / 2, 1 + sum_{c in S_h} (tau_c / delta_h) s_c / 2), from the roots
    down, where S_h is the subtree rooted at h, h included, and n_h the number of its nodes.

    Parameters
    ----------
    weighted_squares : array-like of shape (n_factors,)
        s_h = sum_p phi_hp d_hp^2.
    n_features : int
        Number of loadings P of each factor.
    delta : array-like of shape (n_factors,)
        Current values, > 0.
    shrinkage_root, shrinkage, parent
        As in :func:`sample`.
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    delta : ndarray of shape (n_factors,)
        The next values.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    delta = as_numbers("delta", delta)
    squares = as_numbers("weighted_squares", weighted_squares)
    if delta.ndim != 1 or delta.size == 0 or not (delta > 0.0).all():
        raise ValueError(f"delta must hold numbers > 0, got {delta!r}")
    if squares.shape != delta.shape or not (squares >= 0.0).all():
        raise ValueError(f"weighted_squares must hold {delta.size} numbers >= 0, got {squares!r}")
    first, other = _shapes(shrinkage_root, shrinkage)
    parents = _parents(parent, delta.size)
    cdef const Py_ssize_t[::1] above = np.ascontiguousarray(parents, dtype=np.intp)
    cdef const double[::1] square = np.ascontiguousarray(squares)
    cdef double[::1] multiplier = np.array(delta)
    cdef double[::1] log_precision = np.log(_precisions(delta, parents))
    cdef double[::1] scratch = np.empty(3 * delta.size)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    with bit_generator.lock:
        draw_multipliers(
            rng, multiplier.shape[0], &above[0], &square[0], as_count("n_features", n_features),
            first, other, &multiplier[0], &log_precision[0], &scratch[0],
        )
    return np.asarray(multiplier)
