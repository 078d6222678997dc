"""Cascading Indian buffet process: layers of units of random width, in random number.

References
----------
- Adams, Wallach & Ghahramani (2010), "Learning the structure of deep sparse graphical models",
  AISTATS.
- Neal (2003), "Slice sampling", Annals of Statistics 31.
"""

from libc.math cimport log
from numpy.random cimport bitgen_t

from skbnp.numerics.rng cimport borrow, uniform
from skbnp.numerics.special cimport lgamma, log_rising

import numpy as np

from skbnp.numerics.rng import as_generator


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
    """One slice-sampling step on (low, high): all of it, then shrinkage (Neal 2003).

    At most 200 shrinkages, after which the point stays; the bound is symmetric in the two points
    and so keeps the target.
    """
    cdef double level = log_density(current, restaurant) + log(uniform(rng))
    cdef double left = low, right = high, proposal
    cdef Py_ssize_t _
    for _ in range(200):
        proposal = left + uniform(rng) * (right - left)
        if low < proposal < high and log_density(proposal, restaurant) >= level:
            return proposal
        if proposal < current:
            left = proposal
        else:
            right = proposal
    return current


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


def _mass_chain(
    Py_ssize_t n_dishes, Py_ssize_t n_customers, double concentration, bounds, random_state,
    Py_ssize_t n_updates,
):
    """Successive values of so many updates of the mass."""
    cdef double low, high, current
    cdef double[::1] value = np.empty(n_updates)
    cdef Py_ssize_t t
    low, high = bounds
    current = 0.5 * (low + high)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    with bit_generator.lock, nogil:
        for t in range(n_updates):
            current = draw_mass(
                rng, current, n_dishes, n_customers, concentration, low, high
            )
            value[t] = current
    return np.asarray(value)


def _concentration_chain(
    const Py_ssize_t[::1] n_takers, Py_ssize_t n_customers, Py_ssize_t n_offered, double mass,
    bounds, random_state, Py_ssize_t n_updates,
):
    """Successive values of so many updates of the concentration."""
    cdef double low, high, current
    cdef double[::1] value = np.empty(n_updates)
    cdef Py_ssize_t t, n_dishes = n_takers.shape[0]
    cdef const Py_ssize_t* takers = &n_takers[0] if n_dishes > 0 else NULL
    low, high = bounds
    current = 0.5 * (low + high)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    with bit_generator.lock, nogil:
        for t in range(n_updates):
            current = draw_concentration(
                rng, current, mass, takers, n_dishes, n_customers, n_offered, low, high
            )
            value[t] = current
    return np.asarray(value)
