"""Mixture of finite mixtures: partitions by Dirichlet weights of a random number of components.

M ~ p(m) on 1, 2, ..., weights ~ Dirichlet(gamma, ..., gamma) over M components, items drawn from
them; the blocks are the components that have items. With gamma = ``component_concentration`` a
partition of n items into t blocks of sizes n_c has probability

    V_n(t) prod_c [gamma]_{n_c},    V_n(t) = sum_{m >= t} m! / (m - t)! p(m) / [gamma m]_n,

[x]_n = x (x + 1) ... (x + n - 1). Item n + 1 joins a block of size n_c with weight n_c + gamma and
opens one with weight gamma V_{n+1}(t + 1) / V_{n+1}(t). It is a member of the Gibbs-type family as
those of `skbnp.processes.crp` are, with discount -gamma. Unlike theirs, the number of blocks
settles at M as n grows.

``n_components_prior`` is the law p: `skbnp.laws.ShiftedBetaNegativeBinomial` or its three numbers
(a, b, c), which stand for M - 1 ~ BetaNegativeBinomial(a, b, c): negative binomial with size a and
success probability ~ Beta(b, c), mean a c / (b - 1) and tail m^(-1 - b); or a frozen discrete law
of scipy on 1, 2, ..., such as ``scipy.stats.poisson(3, loc=1)`` or ``scipy.stats.geom(0.2)``.

References
----------
- Miller & Harrison (2018), "Mixture models with a prior on the number of components", Journal of
  the American Statistical Association 113.
- Gnedin & Pitman (2006), "Exchangeable Gibbs partitions and Stirling triangles", Journal of
  Mathematical Sciences 138.
- Frühwirth-Schnatter, Malsiner-Walli & Grün (2021), "Generalized mixtures of finite mixtures and
  telescoping sampling", Bayesian Analysis 16.
"""

from libc.math cimport INFINITY, exp, fabs, log, log1p
from numpy.random cimport bitgen_t

from skbnp.numerics.rng cimport borrow
from skbnp.numerics.special cimport lgamma, log_rising
from skbnp.processes cimport crp_law

import numpy as np

from skbnp.numerics.rng import as_generator
from skbnp.processes._checks import (
    MOST_WHOLE,
    as_count,
    as_number,
    as_sizes,
    as_whole_array,
    sizes_of,
)
from skbnp.processes._component_sums import (
    as_components_law,
    coefficients,
    log_block_moments,
    log_component_weight,
)

__all__ = [
    "expected_blocks",
    "expected_components",
    "log_coefficient",
    "log_predictive",
    "log_prob",
    "log_prob_components",
    "log_prob_sizes",
    "pmf_blocks",
    "sample",
    "var_blocks",
]

DEFAULT_PRIOR = (1.0, 4.0, 3.0)

# -- the law ----------------------------------------------------------------------------------


cdef double log_blocks_prob(
    const Py_ssize_t* size, Py_ssize_t n_blocks, double concentration
) noexcept nogil:
    """sum_c log [gamma]_{n_c} - log Gamma(n): all of a partition's log probability but the
    coefficient of its number of blocks, which has + log Gamma(n)."""
    cdef double total = 0.0
    cdef Py_ssize_t c, n_items = 0
    for c in range(n_blocks):
        n_items += size[c]
        total += log_rising(concentration, size[c])
    return total - lgamma(n_items)


cdef void log_allocations(
    Py_ssize_t n, double concentration, double* out, Py_ssize_t n_blocks
) noexcept nogil:
    """log of the sum of prod_c [gamma]_{n_c} / Gamma(n) over partitions into k blocks.

    Into out[k - 1] for k <= n_blocks, item after item: S_{m+1}(k) = (m + gamma k) S_m(k) +
    gamma S_m(k - 1). Every step adds positive terms only.
    """
    cdef Py_ssize_t m, k
    cdef double stays, opens
    out[0] = log(concentration)
    for k in range(1, n_blocks):
        out[k] = -INFINITY
    for m in range(1, n):
        for k in range(min(m, n_blocks - 1), 0, -1):
            stays = out[k] + log1p(concentration * (k + 1) / m)
            opens = out[k - 1] + log(concentration / m)
            out[k] = max(stays, opens) + log1p(exp(-fabs(stays - opens)))
        out[0] += log1p(concentration / m)


cdef class FiniteMixtures(crp_law.PartitionLaw):
    """The law for samplers of n items, with the coefficients that have been asked for so far.

    As in every finite mixture, block weights given the partition are Dirichlet(n_c + gamma) up to
    a factor that is the same for all blocks: nothing need be drawn for the rest.
    """

    def __init__(self, n_items, component_concentration, n_components_prior):
        gamma, law = _member(component_concentration, n_components_prior)
        crp_law.PartitionLaw.__init__(self, gamma, -gamma)
        self._coefficients = coefficients(n_items, gamma, law)
        self._prior = n_components_prior
        self._n_items = n_items
        self._log_coefficient = np.zeros(1)
        self.reserve(1)

    cdef double log_new_weight(self, Py_ssize_t n_blocks) noexcept nogil:
        """log gamma V_n(t + 1) / V_n(t); the first item opens a block whatever that is."""
        if n_blocks == 0:
            return 0.0
        if n_blocks >= self._n_items:
            return -INFINITY
        return (
            log(self.concentration) + self.log_coefficient(n_blocks + 1)
            - self.log_coefficient(n_blocks)
        )

    cdef double log_coefficient(self, Py_ssize_t n_blocks) noexcept nogil:
        """log V_n(t) of t blocks."""
        return self._log_coefficient[n_blocks]

    cdef double log_total_weight(self, Py_ssize_t n_items, Py_ssize_t n_blocks) noexcept nogil:
        """For n_items = n - 1, the others of one: log V_{n-1}(t) / V_n(t)."""
        return log(
            n_items + self.concentration * n_blocks + exp(self.log_new_weight(n_blocks))
        )

    cdef double weight_of_rest(self, Py_ssize_t n_blocks) noexcept nogil:
        return 0.0

    cdef double log_prob(self, const Py_ssize_t* size, Py_ssize_t n_blocks) noexcept nogil:
        return (
            log_blocks_prob(size, n_blocks, self.concentration)
            + self.log_coefficient(n_blocks)
        )

    cdef int reserve(self, Py_ssize_t n_blocks) except -1 nogil:
        """Twice as many coefficients as are needed: each costs a millisecond."""
        cdef Py_ssize_t least = min(n_blocks + 1, self._n_items)
        if least >= self._log_coefficient.shape[0]:
            with gil:
                most = max(least, min(2 * least, self._n_items))
                self._log_coefficient = self._coefficients.up_to(most)
        return 0

    def log_predictive(self, const Py_ssize_t[::1] sizes):
        """By the coefficients of one item more."""
        return log_predictive(sizes, self.concentration, self._prior)


# -- checks of what the user gives ------------------------------------------------------------


def _member(component_concentration, n_components_prior):
    """(gamma, law), checked."""
    gamma = as_number("component_concentration", component_concentration)
    if not 1e-10 <= gamma <= 1e10:
        raise ValueError(
            "component_concentration must be from 1e-10 to 1e10, got "
            f"{component_concentration!r}"
        )
    return gamma, as_components_law("n_components_prior", n_components_prior)


def _block_counts(n_blocks, n):
    """Numbers of blocks, each from 1 to n, as an array."""
    t = np.asarray(n_blocks)
    counts = as_whole_array("n_blocks", t.reshape(-1), least=1)
    if counts.size and counts.max() > n:
        raise ValueError(f"n_blocks must be <= n = {n}, got {counts.max()}")
    return counts.reshape(t.shape)


# -- public functions -------------------------------------------------------------------------


def sample(n, component_concentration=1.0, n_components_prior=DEFAULT_PRIOR, random_state=None):
    """Draw a partition of n items.

    Parameters
    ----------
    n : int
        Number of items, at least 1.
    component_concentration : float, default=1.0
        Dirichlet parameter gamma of each component, from 1e-10 to 1e10; larger makes the weights
        more even.
    n_components_prior : tuple of (a, b, c) or law, default=(1.0, 4.0, 3.0)
        Law of the number M of components: M - 1 ~ BetaNegativeBinomial(a, b, c), each from 0.1 to
        1e4, or any discrete law on 1, 2, ...
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

    Examples
    --------
    >>> from skbnp.processes import mfm
    >>> labels = mfm.sample(8, random_state=0)
    >>> labels.shape, int(labels[0])
    ((8,), 0)
    """
    n = as_count("n", n)
    gamma, law = _member(component_concentration, n_components_prior)
    generator = as_generator(random_state)
    bit_generator = generator.bit_generator
    cdef double discount = -gamma, concentration = gamma * law.draw(generator)
    cdef bitgen_t* rng = borrow(bit_generator)
    cdef Py_ssize_t[::1] label = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] size = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t n_items = n
    with bit_generator.lock, nogil:
        crp_law.seat(rng, n_items, concentration, discount, &label[0], &size[0])
    return np.asarray(label)


def log_prob(labels, component_concentration=1.0, n_components_prior=DEFAULT_PRIOR):
    """Log probability of the partition that the labels describe.

    It is the exchangeable partition probability function: the names of the blocks and the order of
    the items do not matter.

    Parameters
    ----------
    labels : array-like of int, shape (n,)
        Block of each item, n >= 1; any names >= 0.
    component_concentration, n_components_prior
        As in :func:`sample`.

    Returns
    -------
    log_prob : float
        Sums to one over all partitions of n items; -inf for more blocks than there can be
        components.

    Raises
    ------
    ValueError
        If the labels are not a one-dimensional array of integers >= 0, or a parameter is out
        of its range.

    Examples
    --------
    >>> from skbnp.processes import mfm
    >>> round(mfm.log_prob([0, 0, 1]), 6)
    -2.573553
    """
    return log_prob_sizes(sizes_of(labels), component_concentration, n_components_prior)


def log_prob_sizes(sizes, component_concentration=1.0, n_components_prior=DEFAULT_PRIOR):
    """Log probability of one particular partition with blocks of these sizes.

    Parameters
    ----------
    sizes : array-like of int, shape (n_blocks,)
        Items in each block, at least one block, each at least 1.
    component_concentration, n_components_prior
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
    gamma, law = _member(component_concentration, n_components_prior)
    cdef const Py_ssize_t[::1] size = as_sizes("sizes", sizes, least=1)
    cdef Py_ssize_t n_blocks = size.shape[0]
    of_number = coefficients(int(np.sum(size)), gamma, law).of(n_blocks)
    return float(log_blocks_prob(&size[0], n_blocks, gamma) + of_number)


def log_coefficient(
    n_blocks, n, component_concentration=1.0, n_components_prior=DEFAULT_PRIOR
):
    """Log of V_n(t), what the number of blocks contributes to the probability of a partition.

    Parameters
    ----------
    n_blocks : int or array-like of int
        Numbers t of blocks, each from 1 to n.
    n : int
        Number of items, at least 1.
    component_concentration, n_components_prior
        As in :func:`sample`.

    Returns
    -------
    log_v : float or ndarray of the shape of n_blocks
        To 1e-12 of the largest of 1, its size and log n!.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    They satisfy V_n(t) = (n + gamma t) V_{n+1}(t) + gamma V_{n+1}(t + 1). For (a, b, c) each costs
    some thousand terms whatever n is: sums over many m are integrals with the end corrections of
    Euler and Maclaurin. A law of scipy, known at whole numbers alone, is summed term by term.
    """
    n = as_count("n", n, most=MOST_WHOLE)
    gamma, law = _member(component_concentration, n_components_prior)
    counts = _block_counts(n_blocks, n)
    table = coefficients(n, gamma, law)
    out = np.array([table.of(t) for t in counts.ravel()]) - lgamma(n)
    return out.reshape(counts.shape) if counts.ndim else float(out[0])


def log_predictive(sizes, component_concentration=1.0, n_components_prior=DEFAULT_PRIOR):
    """Log probabilities of where the next item goes.

    Parameters
    ----------
    sizes : array-like of int, shape (n_blocks,)
        Items in each block so far; empty before the first item.
    component_concentration, n_components_prior
        As in :func:`sample`.

    Returns
    -------
    log_weights : ndarray of shape (n_blocks + 1,)
        Of joining each block and, last, of opening a new one. Their exponentials sum to one.

    Raises
    ------
    ValueError
        If the sizes are malformed, or more than there can be components, or a parameter is out of
        its range.
    """
    gamma, law = _member(component_concentration, n_components_prior)
    sizes = as_sizes("sizes", sizes)
    if sizes.size == 0:
        return np.zeros(1)
    table = coefficients(int(sizes.sum()) + 1, gamma, law)
    now = table.of(sizes.size)
    if now == -np.inf:
        raise ValueError(
            f"sizes must have no more blocks than there can be components, got {sizes.size}"
        )
    log_weight = np.append(np.log(sizes + gamma), np.log(gamma) + table.of(sizes.size + 1) - now)
    # The sum is V_n(t) / V_{n+1}(t).
    return log_weight - np.logaddexp.reduce(log_weight)


def pmf_blocks(n, component_concentration=1.0, n_components_prior=DEFAULT_PRIOR):
    """Distribution of the number of blocks among n items.

    Parameters
    ----------
    n : int
        Number of items, at least 1.
    component_concentration, n_components_prior
        As in :func:`sample`.

    Returns
    -------
    pmf : ndarray of shape (n,)
        P(K_n = k) at index k - 1; zeros from where it has fallen below 1e-12.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    O(n) times the number of k with probability above 1e-12.
    """
    cdef Py_ssize_t n_items = as_count("n", n), n_blocks = min(n, 64)
    gamma, law = _member(component_concentration, n_components_prior)
    table = coefficients(n, gamma, law)
    cdef double concentration = gamma
    cdef double[::1] log_ways
    while True:
        log_ways = np.empty(n_blocks)
        with nogil:
            log_allocations(n_items, concentration, &log_ways[0], n_blocks)
        pmf = np.exp(log_ways + table.up_to(n_blocks)[1:n_blocks + 1])
        if n_blocks == n_items or (pmf[n_blocks - 1] < 1e-12 and pmf.argmax() < n_blocks - 1):
            break
        n_blocks = min(2 * n_blocks, n_items)
    return np.append(pmf, np.zeros(n_items - n_blocks))


def expected_blocks(n, component_concentration=1.0, n_components_prior=DEFAULT_PRIOR):
    """Expected number of blocks among n items.

    Parameters
    ----------
    n : int
        Number of items, at least 1.
    component_concentration, n_components_prior
        As in :func:`sample`.

    Returns
    -------
    mean : float
        E[K_n], from its mean given M.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> from skbnp.processes import mfm
    >>> round(mfm.expected_blocks(100), 6)
    1.945683
    """
    return _block_moments(n, component_concentration, n_components_prior)[0]


def var_blocks(n, component_concentration=1.0, n_components_prior=DEFAULT_PRIOR):
    """Variance of the number of blocks among n items.

    Parameters
    ----------
    n : int
        Number of items, at least 1.
    component_concentration, n_components_prior
        As in :func:`sample`.

    Returns
    -------
    variance : float
        Var[K_n], from its moments given M.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    return _block_moments(n, component_concentration, n_components_prior)[1]


def _block_moments(n, component_concentration, n_components_prior):
    n = as_count("n", n, most=MOST_WHOLE)
    gamma, law = _member(component_concentration, n_components_prior)
    mean, pairs = np.exp(log_block_moments(n, gamma, law))
    return float(mean), float(max(pairs + mean - mean**2, 0.0))


def log_prob_components(
    n_components, n_blocks, n, component_concentration=1.0, n_components_prior=DEFAULT_PRIOR
):
    """Log probability of the number of components given the number of blocks among n items.

    Of a partition, the number of its blocks alone matters to the number of components.

    Parameters
    ----------
    n_components : int or array-like of int
        Values m of M, each at least 1.
    n_blocks : int
        Number of blocks, from 1 to n.
    n : int
        Number of items, at least 1.
    component_concentration, n_components_prior
        As in :func:`sample`.

    Returns
    -------
    log_prob : float or ndarray of the shape of n_components
        log P(M = m | t blocks among n items); -inf below n_blocks.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    n = as_count("n", n, most=MOST_WHOLE)
    t = int(_block_counts(as_count("n_blocks", n_blocks), n))
    gamma, law = _member(component_concentration, n_components_prior)
    values = np.asarray(n_components)
    m = as_whole_array("n_components", values.reshape(-1), least=1).astype(np.float64)
    out = np.full(m.shape, -np.inf)
    can = m >= t
    out[can] = log_component_weight(m[can], n, t, gamma) + law.log_pmf(m[can])
    out -= coefficients(n, gamma, law).of(t)
    return out.reshape(values.shape) if values.ndim else float(out[0])


def expected_components(
    n_blocks, n, component_concentration=1.0, n_components_prior=DEFAULT_PRIOR
):
    """Expected number of components given the number of blocks: t + V_n(t + 1) / V_n(t).

    Parameters
    ----------
    n_blocks : int
        Number of blocks, from 1 to n; below n for a law of scipy.
    n : int
        Number of items, at least 1.
    component_concentration, n_components_prior
        As in :func:`sample`.

    Returns
    -------
    mean : float
        E[M | t blocks among n items]; inf where all n items are alone and p has no mean.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    n = as_count("n", n, most=MOST_WHOLE)
    t = int(_block_counts(as_count("n_blocks", n_blocks), n))
    gamma, law = _member(component_concentration, n_components_prior)
    if t == n and not law.is_smooth:
        raise ValueError(f"n_blocks must be < n = {n} for a law of scipy, got {n_blocks}")
    table = coefficients(n, gamma, law)
    return t + float(np.exp(table.of(t + 1) - table.of(t)))
