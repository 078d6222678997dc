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

from libc.math cimport INFINITY, exp, expm1, fmin, log, log1p
from numpy.random cimport bitgen_t

from skbnp.numerics.rng cimport (
    below,
    borrow,
    draw_gamma,
    log_beta,
    log_dirichlet,
    uniform,
)
from skbnp.numerics.special cimport log1p_exp, log_rising

import numpy as np
from scipy.optimize import brentq

from skbnp.numerics.rng import as_generator
from skbnp.processes._checks import (
    MOST_WHOLE,
    as_count,
    as_number,
    as_numbers,
    as_prior,
    as_sizes,
    as_whole_array,
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


# Items that are looked at one by one where a closed form takes over for the others.
cdef Py_ssize_t FEW_ITEMS = 4096

# -- the law ----------------------------------------------------------------------------------


cdef double new_weight(Py_ssize_t n_blocks, double concentration, double discount) noexcept nogil:
    """max(theta + d K, 0), and 1 where the first block opens whatever theta is."""
    cdef double weight = concentration + discount * n_blocks
    if n_blocks == 0 and weight <= 0.0:
        return 1.0
    # With d < 0 the weight is a whole multiple of |d|: less than half of it is rounding.
    if discount < 0.0 and weight < -0.5 * discount:
        return 0.0
    return max(weight, 0.0)


cdef double log_new_weight(
    Py_ssize_t n_blocks, double concentration, double discount
) noexcept nogil:
    """log max(theta + d K, 0): -inf once the finite member has all its blocks.

    Without a block it is log theta, or 0 if theta <= 0: the first item always opens one.
    """
    cdef double weight = new_weight(n_blocks, concentration, discount)
    return log(weight) if weight > 0.0 else -INFINITY


cdef double log_eppf(
    const Py_ssize_t* size, Py_ssize_t n_blocks, double concentration, double discount
) noexcept nogil:
    """Log probability of one partition of n = sum(size) items into blocks of these sizes.

    sum_{i<K} log(theta + d i) - log [theta + 1]_{n-1} + sum_c log [1 - d]_{n_c - 1}, where
    [x]_m = Gamma(x + m) / Gamma(x); -inf for parameters outside the family.
    """
    cdef double total = 0.0
    cdef Py_ssize_t c, n_items = 0
    if discount >= 1.0 or concentration <= (-discount if discount >= 0.0 else 0.0):
        return -INFINITY
    for c in range(n_blocks):
        n_items += size[c]
        total += log_rising(1.0 - discount, size[c] - 1)
    # For every member but d = 0 the K terms are added singly: a ratio of gamma functions of
    # theta / d breaks at theta <= 0 and cancels at small d.
    if discount == 0.0:
        total += (n_blocks - 1) * log(concentration)
    else:
        for c in range(1, n_blocks):
            total += log_new_weight(c, concentration, discount)
    return total - log_rising(concentration + 1.0, n_items - 1)


cdef void block_moments(
    Py_ssize_t n, double concentration, double discount, double* mean, double* variance
) noexcept nogil:
    """Mean and variance of the number of blocks, one item after the other: O(n).

    Item m + 1 opens a block with probability q = (theta + d E[K_m]) / (m + theta), and its
    covariance with K_m is d Var[K_m] / (m + theta). Nothing cancels here, unlike in the closed
    forms, which lose their digits at small d and at large theta.
    """
    cdef double total, opens
    cdef Py_ssize_t m
    mean[0] = 1.0
    variance[0] = 0.0
    for m in range(1, n):
        total = m + concentration
        opens = max(concentration + discount * mean[0], 0.0) / total
        variance[0] += (
            2.0 * discount / total * variance[0] + opens * (m - discount * mean[0]) / total
        )
        mean[0] += opens


cdef double log1p_rate(double x, double d) noexcept nogil:
    """log(1 + d x) / d, and its limit x for d = 0."""
    return log1p(d * x) / d if d != 0.0 else x


cdef double block_mean(Py_ssize_t n, double concentration, double discount) noexcept nogil:
    """Mean of the number of blocks: over the first items as ``block_moments``, then in one step.

    theta / d + E[K_n] grows by the factor (1 + d / (m + theta)) with item m + 1, so that from item
    s on E[K_n] = E[K_s] + (theta + d E[K_s]) (exp(L) - 1) / d with

        exp(L) = Gamma(n + theta + d) Gamma(s + theta) / (Gamma(n + theta) Gamma(s + theta + d)).

    L / d is taken from Stirling's series, in which s is large, term by term as differences that
    do not cancel, neither at d = 0 nor at large theta.
    """
    cdef Py_ssize_t start = n if n < FEW_ITEMS else FEW_ITEMS
    cdef double mean, variance, z, above, further, rate, d = discount
    block_moments(start, concentration, d, &mean, &variance)
    if n == start:
        return mean
    further = n - start
    z = start + concentration
    above = start + (concentration + d)
    if z > 1e100:
        # Squares would overflow, and further items are nothing beside theta.
        rate = further * log1p_rate(1.0 / z, d)
    else:
        rate = (
            further * log1p_rate(1.0 / (z + further), d)
            + (z - 0.5) * log1p_rate(-further / ((z + further) * above), d)
            + log1p(further / above)
            + stirling_rate(z + further, above + further) - stirling_rate(z, above)
        )
    if d != 0.0:
        rate = expm1(d * rate) / d
    return fmin(mean + max(concentration + d * mean, 0.0) * rate, <double> n)


cdef double stirling_rate(double z, double above) noexcept nogil:
    """(S(z + d) - S(z)) / d with S(z) = 1 / (12 z) - 1 / (360 z^3), and above = z + d."""
    cdef double a = 1.0 / z, b = 1.0 / above
    return a * b * (-1.0 / 12.0 + (a * a + a * b + b * b) / 360.0)


cdef void block_pmf(
    Py_ssize_t n, double concentration, double discount, double* pmf
) noexcept nogil:
    """P(K_n = k) into pmf[k - 1]. Every step adds positive terms only.

    Only the window of k with more than 1e-30 is carried on, which loses less than 2e-30 n.
    """
    cdef double total
    cdef Py_ssize_t k, m, first = 0, last = 0
    for k in range(n):
        pmf[k] = 0.0
    pmf[0] = 1.0
    for m in range(1, n):
        total = m + concentration
        last += 1
        for k in range(last, first, -1):
            pmf[k] = (
                pmf[k] * (m - discount * (k + 1))
                + pmf[k - 1] * new_weight(k, concentration, discount)
            ) / total
        pmf[first] *= (m - discount * (first + 1)) / total
        while last > first and pmf[last] < 1e-30:
            pmf[last] = 0.0
            last -= 1
        while first < last and pmf[first] < 1e-30:
            pmf[first] = 0.0
            first += 1


cdef Py_ssize_t seat(
    bitgen_t* rng, Py_ssize_t n, double concentration, double discount,
    Py_ssize_t* label, Py_ssize_t* size,
) noexcept nogil:
    """Draw the labels of n items in order of appearance; returns the number of blocks.

    A block is found through an earlier item, in O(1): for d >= 0 a uniform item's block is
    accepted with probability (n_c - d) / n_c, which takes about one try per item; for d < 0
    n_c + |d| is a mixture of a uniform item's block and a uniform block.
    """
    cdef Py_ssize_t m, k, n_blocks = 0
    for m in range(n):
        if m == 0 or uniform(rng) * (m + concentration) < new_weight(
            n_blocks, concentration, discount
        ):
            k = n_blocks
            size[k] = 0
            n_blocks += 1
        elif discount < 0.0 and uniform(rng) * (m - discount * n_blocks) >= m:
            k = below(rng, n_blocks)
        else:
            k = label[below(rng, m)]
            while discount > 0.0 and uniform(rng) * size[k] < discount:
                k = label[below(rng, m)]
        label[m] = k
        size[k] += 1
    return n_blocks


# -- what moves over partitions ask -----------------------------------------------------------


cdef class PartitionLaw:
    """The law of a random partition, for samplers: this family, and the base of others.

    All laws here are Gibbs-type: an item joins a block of size n_c with weight n_c - discount and
    opens one with a weight that depends on the number of blocks alone. A block's own factor of
    the probability of a partition is [1 - discount]_{n_c - 1}, whatever the law.
    """

    def __init__(self, double concentration, double discount, Py_ssize_t n_components=0):
        """``n_components``, 0 for no bound, makes the discount -concentration / n_components."""
        self.n_components = n_components
        self.discount = discount
        self.set_concentration(concentration)

    cdef void set_concentration(self, double concentration) noexcept nogil:
        """The discount moves along where it follows from the concentration."""
        self.concentration = concentration
        if self.n_components > 0:
            self.discount = -concentration / self.n_components

    cdef void set_discount(self, double discount) noexcept nogil:
        self.discount = discount

    cdef double log_new_weight(self, Py_ssize_t n_blocks) noexcept nogil:
        """log weight of a new block beside n_blocks; -inf if there can be no more.

        It is also the ratio of the factors that n_blocks + 1 and n_blocks blocks contribute to
        the probability of a partition.
        """
        return log_new_weight(n_blocks, self.concentration, self.discount)

    cdef double log_total_weight(self, Py_ssize_t n_items, Py_ssize_t n_blocks) noexcept nogil:
        """log of the sum of all weights, of n_items in n_blocks blocks."""
        return log(n_items + self.concentration)

    cdef double weight_of_rest(self, Py_ssize_t n_blocks) noexcept nogil:
        """Dirichlet parameter of what is outside the blocks when their weights are drawn."""
        return exp(self.log_new_weight(n_blocks))

    cdef double log_prob(self, const Py_ssize_t* size, Py_ssize_t n_blocks) noexcept nogil:
        """Log probability of one partition into blocks of these sizes."""
        return log_eppf(size, n_blocks, self.concentration, self.discount)

    cdef int reserve(self, Py_ssize_t n_blocks) except -1 nogil:
        """Before weights beside that many blocks are asked for."""
        return 0

    def log_predictive(self, const Py_ssize_t[::1] sizes):
        """Log probabilities of where the next item goes, a new block last: (n_blocks + 1,)."""
        cdef Py_ssize_t k, n_blocks = sizes.shape[0], n_items = 0
        cdef double[::1] out = np.empty(n_blocks + 1)
        cdef double total
        for k in range(n_blocks):
            n_items += sizes[k]
        total = self.log_total_weight(n_items, n_blocks)
        for k in range(n_blocks):
            out[k] = log(sizes[k] - self.discount) - total
        out[n_blocks] = self.log_new_weight(n_blocks) - total
        return np.asarray(out)


# -- updates of the parameters ----------------------------------------------------------------


cdef struct Target:
    # What the conditional of one parameter depends on; the parameter's own field is unused.
    const Py_ssize_t* size
    Py_ssize_t n_blocks
    Py_ssize_t n_components   # 0: infinite, else discount = -concentration / n_components
    double concentration
    double discount
    double prior_first        # Gamma shape, or first Beta shape
    double prior_second       # Gamma rate, or second Beta shape


ctypedef double (*log_density_of)(double x, const Target* target) noexcept nogil


cdef double log_density_of_log_concentration(double x, const Target* target) noexcept nogil:
    """Log conditional density of x = log concentration, not normalised."""
    cdef double concentration = exp(x)
    cdef double discount = target.discount
    if target.n_components > 0:
        discount = -concentration / target.n_components
    return (
        log_eppf(target.size, target.n_blocks, concentration, discount)
        + target.prior_first * x - target.prior_second * concentration
    )


cdef double log_density_of_logit_discount(double x, const Target* target) noexcept nogil:
    """Log conditional density of x = log(d / (1 - d)), not normalised."""
    return (
        log_eppf(target.size, target.n_blocks, target.concentration, 1.0 / (1.0 + exp(-x)))
        - target.prior_first * log1p_exp(-x) - target.prior_second * log1p_exp(x)
    )


cdef double slice_step(
    bitgen_t* rng, double current, double low, double high,
    log_density_of log_density, const Target* target,
) noexcept nogil:
    """One slice-sampling step on (low, high): stepping out, then shrinkage (Neal 2003).

    At most 32 steps out, split at random between the sides, and 200 shrinkages, after which
    the point stays: both bounds are symmetric in the two points and so keep the target.
    """
    cdef double level = log_density(current, target) + log(uniform(rng))
    cdef double left = current - uniform(rng) * 1.5
    cdef double right = left + 1.5
    cdef double proposal
    cdef Py_ssize_t steps_left = below(rng, 32), _
    cdef Py_ssize_t steps_right = 31 - steps_left
    while steps_left > 0 and left > low and log_density(left, target) > level:
        left -= 1.5
        steps_left -= 1
    while steps_right > 0 and right < high and log_density(right, target) > level:
        right += 1.5
        steps_right -= 1
    for _ in range(200):
        proposal = left + uniform(rng) * (right - left)
        if low < proposal < high and log_density(proposal, target) >= level:
            return proposal
        if proposal < current:
            left = proposal
        else:
            right = proposal
    return current


cdef double draw_concentration(
    bitgen_t* rng, double current, const Py_ssize_t* size, Py_ssize_t n_blocks,
    double discount, Py_ssize_t n_components, double shape, double rate,
) noexcept nogil:
    """Update concentration > 0 under its Gamma(shape, rate) prior, given the block sizes.

    Dirichlet process: x ~ Beta(theta + 1, n - 1), theta ~ Gamma(shape + K - 1, rate - log x),
    which is Escobar & West's augmentation of theta^{K-1} Gamma(theta + 1)/Gamma(theta + n)
    and needs no mixture: equation (M4.5). Other members: a slice step on log theta, because their
    partition probability depends on all sizes, equation (M4.6); with n_components > 0 the discount
    moves along.
    """
    cdef Py_ssize_t c, n_items = 0
    cdef double log_x
    cdef Target target
    for c in range(n_blocks):
        n_items += size[c]
    if n_items < 2:
        return draw_gamma(rng, shape, rate)
    if discount == 0.0 and n_components == 0:
        log_x = log_beta(rng, current + 1.0, n_items - 1)
        return draw_gamma(rng, shape + n_blocks - 1, rate - log_x)
    target.size = size
    target.n_blocks = n_blocks
    target.n_components = n_components
    target.discount = discount
    target.prior_first = shape
    target.prior_second = rate
    return exp(
        slice_step(rng, log(current), -690.0, 690.0, log_density_of_log_concentration, &target)
    )


cdef double draw_discount(
    bitgen_t* rng, double current, const Py_ssize_t* size, Py_ssize_t n_blocks,
    double concentration, double a, double b,
) noexcept nogil:
    """Update discount, 0 < current < 1, under its Beta(a, b) prior, given the block sizes.

    A slice step on log(d / (1 - d)), which stays below 30 so that 1 - d keeps its digits.
    """
    cdef Target target
    target.size = size
    target.n_blocks = n_blocks
    target.concentration = concentration
    target.prior_first = a
    target.prior_second = b
    cdef double x = slice_step(
        rng, log(current / (1.0 - current)), -690.0, 30.0, log_density_of_logit_discount, &target
    )
    return 1.0 / (1.0 + exp(-x))


# -- checks of what the user gives ------------------------------------------------------------


def _families(concentration, discount, n_components):
    """(theta, d), two arrays of the shape of concentration, checked."""
    theta = as_numbers("concentration", concentration)
    d = as_number("discount", discount)
    if n_components is not None:
        n_components = as_count("n_components", n_components, most=MOST_WHOLE)
        if d != 0.0:
            raise ValueError(
                "n_components fixes the discount to -concentration / n_components: "
                f"discount must be 0, got {discount!r}"
            )
    if not 0.0 <= d < 1.0:
        raise ValueError(f"discount must be in [0, 1), got {discount!r}")
    if not (theta > -d).all():
        bound = f"> -discount = {-d}" if d > 0.0 else "> 0"
        raise ValueError(f"concentration must be {bound}, got {concentration!r}")
    return theta, np.full(theta.shape, d) if n_components is None else -theta / n_components


def _family(concentration, discount, n_components):
    """(theta, d) as two floats, checked."""
    theta, d = _families(as_number("concentration", concentration), discount, n_components)
    return float(theta), float(d)


def _blocks(sizes, n_components):
    """Sizes of at least one block and of no more than n_components."""
    sizes = as_sizes("sizes", sizes)
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
    n = as_count("n", n)
    theta, d = _family(concentration, discount, n_components)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    cdef Py_ssize_t[::1] label = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t[::1] size = np.empty(n, dtype=np.intp)
    cdef Py_ssize_t n_items = n
    cdef double strength = theta, decrement = d
    with bit_generator.lock, nogil:
        seat(rng, n_items, strength, decrement, &label[0], &size[0])
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
    labels = as_whole_array("labels", labels, least=0, most=2**63 - 1)
    if labels.size == 0:
        raise ValueError("labels must hold at least one item, got none")
    sizes = np.unique(labels, return_counts=True)[1]
    return log_prob_sizes(sizes, concentration, discount, n_components)


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
    cdef const Py_ssize_t[::1] size = as_sizes("sizes", sizes)
    if size.shape[0] == 0:
        raise ValueError("sizes must hold at least one block, got none")
    return log_eppf(&size[0], size.shape[0], theta, d)


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
    opening = log_new_weight(sizes.size, theta, d)
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
            out[t] = block_mean(n_items, strength[t], decrement[t])
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
            block_moments(n_items, strength[t], decrement[t], &mean, &out[t])
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
    theta, d = _family(concentration, discount, n_components)
    cdef double[::1] out = np.empty(n_items)
    cdef double strength = theta, decrement = d
    with nogil:
        block_pmf(n_items, strength, decrement, &out[0])
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
            shape[1] = new_weight(j + 1, strength, decrement)
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
    cdef const double[::1] shape = np.append(sizes - d, new_weight(sizes.size, theta, d))
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
        return block_mean(n, theta, discount if n_components is None else -theta / n_components)

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
    chain = _concentration_chain(
        sizes, concentration, discount, n_components, concentration_prior, random_state, 1
    )
    return float(chain[0])


def _concentration_chain(
    sizes, concentration, discount, n_components, prior, random_state, n_updates
):
    """Successive values of so many updates, shape (n_updates,)."""
    _family(concentration, discount, n_components)
    if not concentration > 0.0:
        raise ValueError(f"concentration must be > 0 to be sampled, got {concentration!r}")
    cdef const Py_ssize_t[::1] size = _blocks(sizes, n_components)
    if size.shape[0] == 0:
        raise ValueError("sizes must hold at least one block, got none")
    first, second = as_prior("concentration_prior", prior)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    cdef double[::1] out = np.empty(n_updates)
    cdef double current = concentration, fixed = discount, shape = first, rate = second
    cdef Py_ssize_t most = 0 if n_components is None else n_components, t
    with bit_generator.lock, nogil:
        for t in range(out.shape[0]):
            current = draw_concentration(
                rng, current, &size[0], size.shape[0], fixed, most, shape, rate
            )
            out[t] = current
    return np.asarray(out)


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
    cdef const Py_ssize_t[::1] size = _blocks(sizes, None)
    if size.shape[0] == 0:
        raise ValueError("sizes must hold at least one block, got none")
    a, b = as_prior("discount_prior", discount_prior)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    with bit_generator.lock:
        return draw_discount(rng, d, &size[0], size.shape[0], theta, a, b)
