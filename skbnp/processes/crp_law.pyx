"""Law of the Chinese restaurant process in C, which samplers and `skbnp.processes.crp` share.

``concentration`` and ``discount`` mean what they mean there; d < 0 is the finite member, with
``n_components`` blocks at most and discount -concentration / n_components.

References
----------
- Escobar & West (1995), "Bayesian density estimation and inference using mixtures", Journal of
  the American Statistical Association 90.
- Neal (2003), "Slice sampling", Annals of Statistics 31.
"""

from libc.math cimport INFINITY, exp, expm1, fmin, log, log1p
from numpy.random cimport bitgen_t

from skbnp.numerics cimport slice_sampling
from skbnp.numerics.rng cimport below, draw_gamma, log_beta, uniform
from skbnp.numerics.slice_sampling cimport Slice
from skbnp.numerics.special cimport log1p_exp, log_rising

import numpy as np

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
    """One step of slice sampling on (low, high)."""
    cdef Slice step
    slice_sampling.begin(&step, rng, current, log_density(current, target), low, high, 1.5, 32)
    while slice_sampling.asks(&step, rng):
        slice_sampling.tell(&step, log_density(step.at, target))
    return step.at


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
