"""Chinese restaurant process: Dirichlet process, Pitman-Yor and finite Dirichlet, one family.

With theta = ``concentration``, d = ``discount`` and K blocks among n items, item n + 1 joins a
block of size n_c with probability (n_c - d) / (n + theta) and opens a block with probability
(theta + d K) / (n + theta). Either 0 <= d < 1 and theta > -d, where d = 0 is the Dirichlet
process; or ``n_components=M``, theta > 0 and d = -theta / M, which is the partition of a
mixture with weights ~ Dirichlet(theta / M, ..., theta / M). Where M has a law of its own see
`skbnp.processes.mfm`.

References
----------
- Antoniak (1974), "Mixtures of Dirichlet processes with applications to Bayesian nonparametric
  problems", Annals of Statistics 2.
- Pitman (1995), "Exchangeable and partially exchangeable random partitions", Probability Theory
  and Related Fields 102.
- Pitman (2006), "Combinatorial Stochastic Processes", Springer, chapter 3.
- Escobar & West (1995), "Bayesian density estimation and inference using mixtures", Journal of
  the American Statistical Association 90.
- Neal (2003), "Slice sampling", Annals of Statistics 31.
"""

from libc.math cimport exp
from numpy.random cimport bitgen_t

from skbnp.numerics.rng cimport borrow, log_dirichlet
from skbnp.processes cimport crp_law as law

import numpy as np
from scipy.optimize import brentq

from skbnp.numerics.rng import as_generator
from skbnp.processes._checks import (
    MOST_WHOLE,
    as_count,
    as_number,
    as_prior,
    as_sizes,
    as_strength_and_discount,
    sizes_of,
)

__all__ = [
    "concentration_for_expected_blocks",
    "expected_block_sizes",
    "expected_blocks",
    "log_predictive",
    "log_prob",
    "log_prob_sizes",
    "pmf_blocks",
    "posterior_weights",
    "sample",
    "sample_concentration",
    "sample_discount",
    "stick_breaking",
    "var_blocks",
]


# -- checks of what the user gives ------------------------------------------------------------


def _families(concentration, discount, n_components):
    """(theta, d), two arrays of the shape of concentration, checked."""
    theta, d = as_strength_and_discount(concentration, discount)
    if n_components is None:
        return theta, np.full(theta.shape, d)
    if d != 0.0:
        raise ValueError(
            "n_components fixes the discount to -concentration / n_components: "
            f"discount must be 0, got {discount!r}"
        )
    return theta, -theta / as_count("n_components", n_components, most=MOST_WHOLE)


def _family(concentration, discount, n_components):
    """(theta, d) as two floats, checked."""
    theta, d = _families(as_number("concentration", concentration), discount, n_components)
    return float(theta), float(d)


def _blocks(sizes, n_components, least=0):
    """Sizes of at least so many blocks and of no more than n_components."""
    sizes = as_sizes("sizes", sizes, least)
    if n_components is not None and sizes.size > n_components:
        raise ValueError(
            f"sizes must have at most n_components = {n_components} blocks, got {sizes.size}"
        )
    return sizes


# -- public functions -------------------------------------------------------------------------


def sample(n, concentration, discount=0.0, n_components=None, random_state=None):
    """Draw a partition of n items.

    Parameters
    ----------
    n : int
        Number of items, at least 1.
    concentration : float
        Strength theta > -discount; larger opens more blocks.
    discount : float, default=0.0
        In [0, 1); above 0 (Pitman-Yor) the number of blocks grows like n^discount.
    n_components : int or None, default=None
        At most this many blocks: weights ~ Dirichlet(concentration / n_components, ...).
        None: no bound.
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    labels : ndarray of shape (n,)
        Block of each item, numbered in order of appearance.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    O(n) in time and memory.

    Examples
    --------
    >>> from skbnp.processes import crp
    >>> labels = crp.sample(8, concentration=1.0, random_state=0)
    >>> labels.shape, int(labels[0])
    ((8,), 0)
    """
    cdef Py_ssize_t n_items = as_count("n", n)
    cdef double strength, decrement
    strength, decrement = _family(concentration, discount, n_components)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    cdef Py_ssize_t[::1] label = np.empty(n_items, dtype=np.intp)
    cdef Py_ssize_t[::1] size = np.empty(n_items, dtype=np.intp)
    with bit_generator.lock, nogil:
        law.seat(rng, n_items, strength, decrement, &label[0], &size[0])
    return np.asarray(label)


def log_prob(labels, concentration, discount=0.0, n_components=None):
    """Log probability of the partition that the labels describe.

    It is the exchangeable partition probability function, not the probability of the
    labels as such: the names of the blocks and the order of the items do not matter.

    Parameters
    ----------
    labels : array-like of int, shape (n,)
        Block of each item, n >= 1; any names >= 0.
    concentration, discount, n_components
        As in :func:`sample`.

    Returns
    -------
    log_prob : float
        Sums to one over all partitions of n items; -inf for more than n_components blocks.

    Raises
    ------
    ValueError
        If the labels are not a one-dimensional array of integers >= 0, or a parameter is out
        of its range.

    Examples
    --------
    >>> from skbnp.processes import crp
    >>> round(crp.log_prob([0, 0, 1], concentration=1.0), 6)  # 1 / 6
    -1.791759
    """
    return log_prob_sizes(sizes_of(labels), concentration, discount, n_components)


def log_prob_sizes(sizes, concentration, discount=0.0, n_components=None):
    """Log probability of one particular partition with blocks of these sizes.

    Parameters
    ----------
    sizes : array-like of int, shape (n_blocks,)
        Items in each block, at least one block, each at least 1.
    concentration, discount, n_components
        As in :func:`sample`.

    Returns
    -------
    log_prob : float
        As of :func:`log_prob`.

    Raises
    ------
    ValueError
        If the sizes are malformed or a parameter is out of its range.
    """
    theta, d = _family(concentration, discount, n_components)
    cdef const Py_ssize_t[::1] size = as_sizes("sizes", sizes, least=1)
    return law.log_eppf(&size[0], size.shape[0], theta, d)


def log_predictive(sizes, concentration, discount=0.0, n_components=None):
    """Log probabilities of where the next item goes.

    Parameters
    ----------
    sizes : array-like of int, shape (n_blocks,)
        Items in each block so far; empty before the first item.
    concentration, discount, n_components
        As in :func:`sample`.

    Returns
    -------
    log_weights : ndarray of shape (n_blocks + 1,)
        Of joining each block and, last, of opening a new one. Their exponentials sum to one.

    Raises
    ------
    ValueError
        If the sizes are malformed, or more than n_components, or a parameter is out of its
        range.
    """
    theta, d = _family(concentration, discount, n_components)
    sizes = _blocks(sizes, n_components)
    if sizes.size == 0:
        return np.zeros(1)
    opening = law.log_new_weight(sizes.size, theta, d)
    return np.append(np.log(sizes - d), opening) - np.log(sizes.sum() + theta)


def expected_blocks(n, concentration, discount=0.0, n_components=None):
    """Expected number of blocks among n items.

    Parameters
    ----------
    n : int
        Number of items, at least 1.
    concentration : float or array-like
        Strength, each > -discount.
    discount, n_components
        As in :func:`sample`.

    Returns
    -------
    mean : float or ndarray of the shape of concentration
        E[K_n].

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    For each concentration at most 4096 steps, by the recursion over items, and a closed form for
    all further ones: Antoniak (1974) for the Dirichlet process, Pitman (2006).

    Examples
    --------
    >>> from skbnp.processes import crp
    >>> round(crp.expected_blocks(100, concentration=1.0), 6)
    5.187378
    """
    cdef Py_ssize_t n_items = as_count("n", n, most=MOST_WHOLE), t
    theta, d = _families(concentration, discount, n_components)
    cdef const double[::1] strength = np.ravel(theta), decrement = np.ravel(d)
    cdef double[::1] out = np.empty(theta.size)
    with nogil:
        for t in range(strength.shape[0]):
            out[t] = law.block_mean(n_items, strength[t], decrement[t])
    return np.asarray(out).reshape(theta.shape) if theta.ndim else out[0]


def var_blocks(n, concentration, discount=0.0, n_components=None):
    """Variance of the number of blocks among n items.

    For the Dirichlet process about theta [log(1 + n / theta) - n / (n + theta)] when theta is
    of order 1 or more; the figure returned is exact.

    Parameters
    ----------
    n : int
        Number of items, at least 1.
    concentration : float or array-like
        Strength, each > -discount.
    discount, n_components
        As in :func:`sample`.

    Returns
    -------
    variance : float or ndarray of the shape of concentration
        Var[K_n].

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    O(n) for each concentration.
    """
    cdef Py_ssize_t n_items = as_count("n", n), t
    theta, d = _families(concentration, discount, n_components)
    cdef const double[::1] strength = np.ravel(theta), decrement = np.ravel(d)
    cdef double[::1] out = np.empty(theta.size)
    cdef double mean
    with nogil:
        for t in range(strength.shape[0]):
            law.block_moments(n_items, strength[t], decrement[t], &mean, &out[t])
    return np.asarray(out).reshape(theta.shape) if theta.ndim else out[0]


def pmf_blocks(n, concentration, discount=0.0, n_components=None):
    """Distribution of the number of blocks among n items.

    Parameters
    ----------
    n : int
        Number of items, at least 1.
    concentration, discount, n_components
        As in :func:`sample`.

    Returns
    -------
    pmf : ndarray of shape (n,)
        P(K_n = k) at index k - 1, exact to 2e-30 n and rounding.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    O(n) times the number of k with probability above 1e-30.
    """
    cdef Py_ssize_t n_items = as_count("n", n)
    cdef double strength, decrement
    strength, decrement = _family(concentration, discount, n_components)
    cdef double[::1] out = np.empty(n_items)
    with nogil:
        law.block_pmf(n_items, strength, decrement, &out[0])
    return np.asarray(out)


def expected_block_sizes(n, concentration, discount=0.0, n_components=None):
    """Expected number of blocks of each size among n items.

    E[C_j] = binom(n, j) [1 - d]_{j-1} [theta + d]_{n-j} / [theta + 1]_{n-1}: Pitman (2006).

    Parameters
    ----------
    n : int
        Number of items, at least 1.
    concentration : float or array-like
        Strength, each > -discount.
    discount, n_components
        As in :func:`sample`.

    Returns
    -------
    counts : ndarray of shape (n,), or the shape of concentration + (n,)
        Expected number of blocks with j items at index j - 1. They sum to E[K_n], and the
        sum of j E[C_j] is n.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    n = as_count("n", n)
    theta, d = (x[..., np.newaxis] for x in _families(concentration, discount, n_components))
    j = np.arange(1, n)
    # Ratios of neighbours, scaled so that sum j E[C_j] = n: the gamma functions of the formula
    # would cancel at large n. One component has theta + d = 0, where the last ratio is infinite.
    after = np.maximum(theta + d + (n - j - 1), np.finfo(np.float64).tiny)
    log_ratio = np.log((n - j) / (j + 1.0) * (j - d)) - np.log(after)
    log_count = np.concatenate([np.zeros(theta.shape), np.cumsum(log_ratio, axis=-1)], axis=-1)
    log_count -= log_count.max(axis=-1, keepdims=True)
    count = np.exp(log_count)
    return count * (n / (count @ np.arange(1, n + 1)))[..., np.newaxis]


def stick_breaking(n_sticks, concentration, discount=0.0, n_components=None, random_state=None):
    """Draw the first size-biased weights: v_j ~ Beta(1 - d, theta + j d), j = 1, 2, ...

    Parameters
    ----------
    n_sticks : int
        Number of sticks to break, at least 1. It is a count because the mass left falls too
        slowly to be a stopping rule: with discount 0.5 leaving 1e-4 takes tens of thousands.
    concentration, discount, n_components
        As in :func:`sample`.
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    weights : ndarray of shape (n_sticks,)
        Weights in the order in which a sample would meet their blocks. The finite member has
        n_components of them and zeros after.
    remaining : float
        One minus their sum, computed without cancellation.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    cdef Py_ssize_t n_weights = as_count("n_sticks", n_sticks), j
    theta, d = _family(concentration, discount, n_components)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    cdef double[::1] log_weight = np.empty(n_weights)
    cdef double strength = theta, decrement = d, log_rest = 0.0
    cdef double shape[2]
    cdef double log_part[2]
    shape[0] = 1.0 - decrement
    with bit_generator.lock, nogil:
        for j in range(n_weights):
            shape[1] = law.new_weight(j + 1, strength, decrement)
            log_dirichlet(rng, shape, 2, log_part)
            log_weight[j] = log_rest + log_part[0]
            log_rest += log_part[1]
    return np.exp(log_weight), exp(log_rest)


def posterior_weights(sizes, concentration, discount=0.0, n_components=None, random_state=None):
    """Draw the weights of the blocks and of what is unseen, given the blocks' sizes.

    (w_1, ..., w_K, w_rest) ~ Dirichlet(n_1 - d, ..., n_K - d, theta + d K): Pitman (2006).

    Parameters
    ----------
    sizes : array-like of int, shape (n_blocks,)
        Items in each block; empty before the first item.
    concentration, discount, n_components
        As in :func:`sample`.
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    weights : ndarray of shape (n_blocks + 1,)
        Weight of each block and, last, the unseen mass; they sum to one. The unseen mass is
        exactly 0 when all n_components have been seen.

    Raises
    ------
    ValueError
        If the sizes are malformed, or more than n_components, or a parameter is out of its
        range.
    """
    theta, d = _family(concentration, discount, n_components)
    sizes = _blocks(sizes, n_components)
    cdef const double[::1] shape = np.append(sizes - d, law.new_weight(sizes.size, theta, d))
    cdef double[::1] log_weight = np.empty(shape.shape[0])
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    with bit_generator.lock, nogil:
        log_dirichlet(rng, &shape[0], shape.shape[0], &log_weight[0])
    return np.exp(log_weight)


def concentration_for_expected_blocks(n, target, discount=0.0, n_components=None):
    """The concentration at which n items are expected to make ``target`` blocks.

    Parameters
    ----------
    n : int
        Number of items, at least 2.
    target : float
        Above 1, and below what an infinite concentration gives: n, or
        M (1 - (1 - 1/M)^n) with n_components = M.
    discount, n_components
        As in :func:`sample`.

    Returns
    -------
    concentration : float
        Root of E[K_n] = target; negative, above -discount, for small targets.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> from skbnp.processes import crp
    >>> round(crp.concentration_for_expected_blocks(100, target=5.0), 4)
    0.9476
    """
    n = as_count("n", n, least=2, most=MOST_WHOLE)
    target = as_number("target", target)
    _families(1.0, discount, n_components)  # only to check the other two

    def expected(log_excess):  # as a function of log(concentration + discount)
        cdef double theta = exp(log_excess) - discount
        return law.block_mean(n, theta, discount if n_components is None else -theta / n_components)

    limit = expected(512.0)
    if not 1.0 < target < limit:
        raise ValueError(f"target must be in (1, {limit}) for n = {n}, got {target!r}")
    low, high = -1.0, 1.0
    while expected(low) > target:
        low *= 2.0
    while expected(high) < target:
        high *= 2.0
    return exp(brentq(lambda x: expected(x) - target, low, high, xtol=1e-14)) - discount


def sample_concentration(
    sizes, concentration, discount=0.0, n_components=None, concentration_prior=(1.0, 1.0),
    random_state=None,
):
    """One Markov update of the concentration given the block sizes.

    It leaves p(concentration | sizes) invariant. For the Dirichlet process it is an exact
    draw given one auxiliary Beta variable (Escobar & West 1995), else a
    slice-sampling step (Neal 2003).

    Parameters
    ----------
    sizes : array-like of int, shape (n_blocks,)
        Items in each block, at least one block.
    concentration : float
        Current value, > 0.
    discount : float, default=0.0
        As in :func:`sample`; held fixed.
    n_components : int or None, default=None
        As in :func:`sample`.
    concentration_prior : (shape, rate), default=(1.0, 1.0)
        Gamma prior, mean shape / rate.
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    concentration : float
        The next value. With a single item it is a draw from the prior.

    Raises
    ------
    ValueError
        If the sizes are malformed or a parameter is out of its range.
    """
    _family(concentration, discount, n_components)
    if not concentration > 0.0:
        raise ValueError(f"concentration must be > 0 to be sampled, got {concentration!r}")
    cdef const Py_ssize_t[::1] size = _blocks(sizes, n_components, least=1)
    shape, rate = as_prior("concentration_prior", concentration_prior)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    with bit_generator.lock:
        return law.draw_concentration(
            rng, concentration, &size[0], size.shape[0], discount, n_components or 0, shape, rate
        )


def sample_discount(
    sizes, concentration, discount, discount_prior=(1.0, 9.0), random_state=None
):
    """One Markov update of the discount given the block sizes: a slice-sampling step.

    It leaves p(discount | sizes, concentration) invariant.

    Parameters
    ----------
    sizes : array-like of int, shape (n_blocks,)
        Items in each block, at least one block.
    concentration : float
        Strength > -discount; held fixed.
    discount : float
        Current value, in (0, 1).
    discount_prior : (a, b), default=(1.0, 9.0)
        Beta prior, mean a / (a + b).
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    discount : float
        The next value, in (0, 1).

    Raises
    ------
    ValueError
        If the sizes are malformed or a parameter is out of its range.
    """
    theta, d = _family(concentration, discount, None)
    if d == 0.0:
        raise ValueError(f"discount must be > 0 to be sampled, got {discount!r}")
    cdef const Py_ssize_t[::1] size = as_sizes("sizes", sizes, least=1)
    a, b = as_prior("discount_prior", discount_prior)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    with bit_generator.lock:
        return law.draw_discount(rng, d, &size[0], size.shape[0], theta, a, b)
