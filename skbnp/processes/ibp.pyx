"""Indian buffet process: binary matrices of items and features, with two or three parameters.

Row i = 1, 2, ... takes a feature that m earlier rows have with probability (m - d) / (i - 1 + c),
and then Poisson(r_i) new ones, with

    r_i = mass Gamma(1 + c) Gamma(i - 1 + c + d) / (Gamma(i + c) Gamma(c + d)),

which is mass c / (c + i - 1) without ``discount``. ``mass`` is the expected number of features of
a row; a larger ``concentration`` c > -d shares them less; a ``discount`` 0 <= d < 1 above 0 gives
numbers of features that grow like n^d.

References
----------
- Adams, Wallach & Ghahramani (2010), "Learning the structure of deep sparse graphical models",
  AISTATS.
- Griffiths & Ghahramani (2011), "The Indian buffet process: an introduction and review", Journal
  of Machine Learning Research 12.
- Ghahramani, Griffiths & Sollich (2007), "Bayesian nonparametric latent feature models", Bayesian
  Statistics 8.
- Neal (2003), "Slice sampling", Annals of Statistics 31.
- Teh & Goerur (2009), "Indian buffet processes with power-law behavior", NIPS.
"""

from libc.math cimport INFINITY, log
from libc.stdint cimport uint8_t
from numpy.random cimport bitgen_t

from skbnp.numerics cimport slice_sampling
from skbnp.numerics.rng cimport borrow, poisson, uniform
from skbnp.numerics.slice_sampling cimport Slice
from skbnp.numerics.special cimport lgamma, log_rising

from collections import Counter

import numpy as np
from scipy.special import betaln, gammaln

from skbnp.numerics.rng import as_generator
from skbnp.processes._checks import (
    MOST,
    as_binary,
    as_count,
    as_number,
    as_numbers,
    as_option,
    as_strength_and_discount,
    as_whole_array,
)

__all__ = [
    "expected_edges",
    "expected_features",
    "expected_features_of_size",
    "expected_new",
    "log_predictive_existing",
    "log_prob",
    "new_rate",
    "sample",
    "var_edges",
    "var_features",
]


# -- the law ----------------------------------------------------------------------------------


cdef double dishes_per_mass(Py_ssize_t n, double concentration) noexcept nogil:
    """Expected number of dishes of n customers over the mass: sum_{j=1}^n c / (c + j - 1)."""
    cdef double total = 1.0 if n > 0 else 0.0
    cdef Py_ssize_t j
    for j in range(1, n):
        total += concentration / (concentration + j)
    return total


cdef double log_dish(
    Py_ssize_t n_takers, Py_ssize_t n_offered, double concentration
) noexcept nogil:
    """log Beta(m, n - m + c): a dish that m of the n customers have taken, m >= 1."""
    return lgamma(n_takers) - log_rising(n_offered - n_takers + concentration, n_takers)


def _new_per_mass(i, c, d):
    """r_i / mass. Beta functions keep the digits that gamma functions of a large i would lose."""
    return np.exp(betaln(i - 1 + c + d, 1.0 - d) - betaln(c + d, 1.0 - d))


def _log_feature(m, n, c, d):
    """Log intensity, over the mass, of the features that just these m of n rows have."""
    return betaln(m - d, n - m + c + d) - betaln(1.0 - d, c + d)


def _histories(Z):
    """The columns as bytes, which compare as binary numbers with row 0 as the highest digit."""
    return [column.tobytes() for column in np.packbits(Z, axis=0).T]


def _log_orders(Z, ordering):
    """Log of the number by which the density of an unordered set of columns is divided."""
    if ordering == "unordered":
        return 0.0
    if ordering == "labelled":
        return gammaln(Z.shape[1] + 1)
    if ordering == "arrival":
        return gammaln(np.bincount(Z.argmax(axis=0)) + 1).sum() if Z.size else 0.0
    return sum(gammaln(multiplicity + 1) for multiplicity in Counter(_histories(Z)).values())


def draw_arrivals(bit_generator, Py_ssize_t n, double mass, double c, double d):
    """A matrix of n rows with its columns in order of arrival.

    The parameters are not checked but for a mass that makes no matrix which memory can hold.
    """
    cdef bitgen_t* rng = borrow(bit_generator)
    per_mass = _new_per_mass(np.arange(1, n + 1), c, d)
    most = MOST / (n * per_mass.sum())
    if not mass <= most:
        raise ValueError(
            f"mass must be <= {most:.3g} for {n} rows, or a matrix of more than {MOST} cells is "
            f"expected, got {mass!r}"
        )
    cdef double[::1] rate = mass * per_mass
    cdef Py_ssize_t[::1] n_seen = np.zeros(n + 1, dtype=np.intp)
    cdef Py_ssize_t i, k
    # The numbers of new columns depend on nothing: drawn first, they say what to allocate.
    with bit_generator.lock, nogil:
        for i in range(n):
            n_seen[i + 1] = n_seen[i] + <Py_ssize_t> poisson(rng, rate[i])
    out = np.zeros((n, n_seen[n]), dtype=np.uint8)
    cdef uint8_t[:, ::1] Z = out
    cdef Py_ssize_t[::1] size = np.zeros(n_seen[n], dtype=np.intp)
    with bit_generator.lock, nogil:
        for i in range(n):
            for k in range(n_seen[i + 1]):
                if k >= n_seen[i] or uniform(rng) * (i + c) < size[k] - d:
                    Z[i, k] = 1
                    size[k] += 1
    return out


# -- updates of the parameters ----------------------------------------------------------------


cdef struct Restaurant:
    # What the conditional of one parameter depends on; the parameter's own field is unused.
    const Py_ssize_t* n_takers   # (n_dishes,)
    Py_ssize_t n_dishes
    Py_ssize_t n_customers
    Py_ssize_t n_offered
    double mass
    double concentration


ctypedef double (*log_density_of)(double x, const Restaurant* restaurant) noexcept nogil


cdef double log_density_of_mass(double x, const Restaurant* restaurant) noexcept nogil:
    """Log conditional density of the mass under a flat prior, not normalised."""
    return restaurant.n_dishes * log(x) - x * dishes_per_mass(
        restaurant.n_customers, restaurant.concentration
    )


cdef double log_density_of_concentration(double x, const Restaurant* restaurant) noexcept nogil:
    """Log conditional density of the concentration under a flat prior, not normalised."""
    cdef double total = restaurant.n_dishes * log(x)
    cdef Py_ssize_t i
    for i in range(restaurant.n_dishes):
        total += log_dish(restaurant.n_takers[i], restaurant.n_offered, x)
    return total - restaurant.mass * dishes_per_mass(restaurant.n_customers, x)


cdef double slice_step(
    bitgen_t* rng, double current, double low, double high,
    log_density_of log_density, const Restaurant* restaurant,
) noexcept nogil:
    """One step of slice sampling, its bracket all of (low, high)."""
    cdef Slice step
    slice_sampling.begin(
        &step, rng, current, log_density(current, restaurant), low, high, INFINITY, 0
    )
    while slice_sampling.asks(&step, rng):
        slice_sampling.tell(&step, log_density(step.at, restaurant))
    return step.at


cdef double draw_mass(
    bitgen_t* rng, double current, Py_ssize_t n_dishes, Py_ssize_t n_customers,
    double concentration, double low, double high,
) noexcept nogil:
    """Update the mass of a restaurant under a flat prior on (low, high).

    The target is mass^n_dishes exp(-mass dishes_per_mass): Adams et al. (2010), section 4.4.
    """
    cdef Restaurant restaurant
    restaurant.n_dishes = n_dishes
    restaurant.n_customers = n_customers
    restaurant.concentration = concentration
    return slice_step(rng, current, low, high, log_density_of_mass, &restaurant)


cdef double draw_concentration(
    bitgen_t* rng, double current, double mass, const Py_ssize_t* n_takers,
    Py_ssize_t n_dishes, Py_ssize_t n_customers, Py_ssize_t n_offered, double low, double high,
) noexcept nogil:
    """Update the concentration c of a restaurant under a flat prior on (low, high).

    The target is c^n_dishes exp(-mass dishes_per_mass(n_customers, c)) times, for each dish,
    Beta(n_takers, n_offered - n_takers + c). ``n_offered`` is ``n_customers`` unless dishes are
    offered to lower layers too.
    """
    cdef Restaurant restaurant
    restaurant.n_takers = n_takers
    restaurant.n_dishes = n_dishes
    restaurant.n_customers = n_customers
    restaurant.n_offered = n_offered
    restaurant.mass = mass
    return slice_step(rng, current, low, high, log_density_of_concentration, &restaurant)


# -- checks of what the user gives ------------------------------------------------------------


def _families(mass, concentration, discount):
    """(mass, c, d), arrays of one shape and a float, checked."""
    mass = as_numbers("mass", mass)
    if not (mass > 0.0).all():
        raise ValueError(f"mass must be > 0, got {mass}")
    c, d = as_strength_and_discount(concentration, discount)
    return *np.broadcast_arrays(mass, c), d


def _family(mass, concentration, discount):
    """(mass, c, d) as three floats, checked."""
    mass, c, d = _families(
        as_number("mass", mass), as_number("concentration", concentration), discount
    )
    return float(mass), float(c), d


# -- public functions -------------------------------------------------------------------------


def sample(n, mass, concentration=1.0, discount=0.0, ordering="lof", random_state=None):
    """Draw the features of n rows.

    Parameters
    ----------
    n : int
        Number of rows, at least 1.
    mass : float
        Expected number of features of a row, > 0.
    concentration : float, default=1.0
        Above -discount; larger: more features, each in fewer rows.
    discount : float, default=0.0
        In [0, 1); above 0 the number of features grows like n^discount.
    ordering : {"lof", "arrival"}, default="lof"
        Order of the columns: left-ordered form, in which they fall as binary numbers with the
        first row as the highest digit; or as the process makes them, by their first row.
    random_state : None, int, RandomState or Generator, default=None
        Source of randomness.

    Returns
    -------
    Z : ndarray of shape (n, n_features), uint8
        1 where a row has a feature. No column is empty; there may be no columns.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    O(n n_features).

    Examples
    --------
    >>> from skbnp.processes import ibp
    >>> Z = ibp.sample(4, mass=2.0, random_state=0)
    >>> Z.shape[0], bool(Z.any(axis=0).all())
    (4, True)
    """
    n = as_count("n", n)
    process = _family(mass, concentration, discount)
    as_option("ordering", ordering, ("lof", "arrival"))
    Z = draw_arrivals(as_generator(random_state).bit_generator, n, *process)
    if ordering == "lof":
        history = _histories(Z)
        order = sorted(range(len(history)), key=history.__getitem__, reverse=True)
        Z = np.ascontiguousarray(Z[:, order])
    return Z


def log_prob(Z, mass, concentration=1.0, discount=0.0, ordering="lof"):
    """Log probability of a matrix of features.

    Parameters
    ----------
    Z : array-like of shape (n, n_features)
        Of 0 and 1, no column empty.
    mass, concentration, discount
        As in :func:`sample`.
    ordering : {"lof", "arrival", "labelled", "unordered"}, default="lof"
        What the order of the columns means.

        - "lof": nothing; the probability of all matrices that agree with Z up to it.
        - "arrival": the columns are ordered by their first row, those of one row at random, as
          :func:`sample` makes them; -inf if they are not.
        - "labelled": the columns are in uniformly random order.
        - "unordered": the density of a set of columns that other, continuous, quantities tell
          apart, as in a model where every feature has parameters: "labelled" times
          n_features!. It does not sum to one over matrices.

    Returns
    -------
    log_prob : float
        The first three sum to one over what they are the probability of.

    Raises
    ------
    ValueError
        If Z is malformed or a parameter is out of its range.

    Notes
    -----
    Griffiths & Ghahramani (2011), equation 14, for a concentration of 1. Probabilities of the
    left-ordered form divide by the factorials of the numbers of equal columns, those of the
    arrival form by the factorials of the numbers of new columns of each row; the two are not to
    be mixed.

    Examples
    --------
    >>> from skbnp.processes import ibp
    >>> round(ibp.log_prob([[1], [1], [1]], mass=0.6), 6)  # log 0.2 - 0.6 (1 + 1/2 + 1/3)
    -2.709438
    """
    Z = as_binary("Z", Z)
    n, _ = Z.shape
    if n == 0:
        raise ValueError("Z must have at least one row")
    mass, c, d = _family(mass, concentration, discount)
    as_option("ordering", ordering, ("lof", "arrival", "labelled", "unordered"))
    size = Z.sum(axis=0, dtype=np.intp)
    if not size.all():
        raise ValueError(f"Z must have no empty column, got column {size.argmin()} without a 1")
    if ordering == "arrival" and (np.diff(Z.argmax(axis=0)) < 0).any():
        return -np.inf
    total = size.size * np.log(mass) + _log_feature(size, n, c, d).sum()
    total -= mass * _new_per_mass(np.arange(1, n + 1), c, d).sum()
    return float(total - _log_orders(Z, ordering))


def log_predictive_existing(m, i, concentration=1.0, discount=0.0):
    """Log probability that row i takes a feature that m of the rows before it have.

    log (m - d) / (i - 1 + c). With i = n and the counts of all other rows it is also the
    conditional of any row given them, because the rows are exchangeable.

    Parameters
    ----------
    m : int or array-like of int
        Rows with the feature, 1 <= m <= i - 1.
    i : int
        Number of the row, at least 2.
    concentration, discount
        As in :func:`sample`.

    Returns
    -------
    log_prob : float or ndarray of the shape of m
        Each feature is taken or not independently of the others.

    Raises
    ------
    ValueError
        If a count or a parameter is out of its range.
    """
    _, c, d = _family(1.0, concentration, discount)
    i = as_count("i", i, least=2)
    m = as_whole_array("m", np.ravel(m), least=1).reshape(np.shape(m))
    if (m >= i).any():
        raise ValueError(f"m must be <= i - 1 = {i - 1}, got {m.max()}")
    return np.log((m - d) / (i - 1 + c))


def new_rate(i, mass, concentration=1.0, discount=0.0):
    """Expected number of new features of row i, which is Poisson.

    Parameters
    ----------
    i : int
        Number of the row, at least 1.
    mass, concentration : float or array-like
        As in :func:`sample`; arrays are broadcast.
    discount : float, default=0.0
        As in :func:`sample`.

    Returns
    -------
    rate : float or ndarray
        r_i, of the common shape of mass and concentration.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    mass, c, d = _families(mass, concentration, discount)
    return mass * _new_per_mass(as_count("i", i), c, d)


def expected_new(n, mass, concentration=1.0, discount=0.0):
    """Expected numbers of new features of rows 1, ..., n.

    Parameters
    ----------
    n : int
        Number of rows, at least 1.
    mass, concentration : float or array-like
        As in :func:`sample`; arrays are broadcast.
    discount : float, default=0.0
        As in :func:`sample`.

    Returns
    -------
    rates : ndarray of shape (n,), or the common shape of mass and concentration + (n,)
        r_i at index i - 1.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    n = as_count("n", n)
    mass, c, d = _families(mass, concentration, discount)
    return mass[..., np.newaxis] * _new_per_mass(np.arange(1, n + 1), c[..., np.newaxis], d)


def expected_features(n, mass, concentration=1.0, discount=0.0):
    """Expected number of features of n rows: the sum of :func:`expected_new`.

    Parameters
    ----------
    n, mass, concentration, discount
        As in :func:`expected_new`.

    Returns
    -------
    mean : float or ndarray
        Of the common shape of mass and concentration. The number of features is Poisson.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Examples
    --------
    >>> from skbnp.processes import ibp
    >>> round(float(ibp.expected_features(10, mass=2.0, concentration=3.0)), 4)
    9.6193
    """
    with np.errstate(over="ignore"):  # inf where no float holds it
        return expected_new(n, mass, concentration, discount).sum(axis=-1)


def var_features(n, mass, concentration=1.0, discount=0.0):
    """Variance of the number of features of n rows: its mean, the number being Poisson.

    Parameters
    ----------
    n, mass, concentration, discount
        As in :func:`expected_new`.

    Returns
    -------
    variance : float or ndarray
        Of the common shape of mass and concentration.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    return expected_features(n, mass, concentration, discount)


def expected_edges(n, mass, concentration=1.0, discount=0.0):
    """Expected number of ones in the matrix, n mass: each row has Poisson(mass) of them.

    Parameters
    ----------
    n, mass, concentration, discount
        As in :func:`expected_new`.

    Returns
    -------
    mean : float or ndarray
        Of the common shape of mass and concentration.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    mass, _, _ = _families(mass, concentration, discount)
    with np.errstate(over="ignore"):  # inf where no float holds it
        return as_count("n", n) * mass


def var_edges(n, mass, concentration=1.0, discount=0.0):
    """Variance of the number of ones in the matrix.

    n mass (1 + (n - 1) (1 - d) / (1 + c)), because two rows share Poisson features, in mean
    mass (1 - d) / (1 + c).

    Parameters
    ----------
    n, mass, concentration, discount
        As in :func:`expected_new`.

    Returns
    -------
    variance : float or ndarray
        Of the common shape of mass and concentration.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    mass, c, d = _families(mass, concentration, discount)
    n = as_count("n", n)
    with np.errstate(over="ignore"):  # inf where no float holds it
        return n * mass * (1.0 + (n - 1) * (1.0 - d) / (1.0 + c))


def expected_features_of_size(n, mass, concentration=1.0, discount=0.0):
    """Expected number of features that just m of the n rows have, for each m.

    Parameters
    ----------
    n, mass, concentration, discount
        As in :func:`expected_new`.

    Returns
    -------
    counts : ndarray of shape (n,), or the common shape of mass and concentration + (n,)
        Expected number of features of m rows at index m - 1. The numbers are independent and
        Poisson.

    Raises
    ------
    ValueError
        If a parameter is out of its range.
    """
    n = as_count("n", n)
    mass, c, d = _families(mass, concentration, discount)
    m = np.arange(1, n + 1)
    log_binomial = -np.log(n + 1) - betaln(m + 1, n - m + 1)
    return mass[..., np.newaxis] * np.exp(
        log_binomial + _log_feature(m, n, c[..., np.newaxis], d)
    )
