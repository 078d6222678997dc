"""Updates of the parameters of processes, many in a row: what tests compare with quadrature."""

from numpy.random cimport bitgen_t

import numpy as np

from skbnp.numerics.rng cimport borrow
from skbnp.processes cimport crp_law, ibp, ncrp

from skbnp.numerics.rng import as_generator


def restaurant_concentrations(
    const Py_ssize_t[::1] size, double current, double discount, Py_ssize_t n_components, prior,
    random_state, Py_ssize_t n_updates,
):
    """Successive concentrations of a Chinese restaurant; n_components is 0 without a bound."""
    cdef double[::1] value = np.empty(n_updates)
    cdef double shape, rate
    cdef Py_ssize_t t
    shape, rate = prior
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    with bit_generator.lock, nogil:
        for t in range(n_updates):
            current = crp_law.draw_concentration(
                rng, current, &size[0], size.shape[0], discount, n_components, shape, rate
            )
            value[t] = current
    return np.asarray(value)


def level_concentrations(
    const Py_ssize_t[::1] count, const Py_ssize_t[::1] n_children, double current, prior,
    random_state, Py_ssize_t n_updates,
):
    """Successive concentrations of one level of a nested restaurant."""
    cdef double[::1] value = np.empty(n_updates)
    cdef double shape, rate
    cdef Py_ssize_t t
    shape, rate = prior
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    with bit_generator.lock, nogil:
        for t in range(n_updates):
            current = ncrp.draw_concentration(
                rng, current, &count[0], &n_children[0], count.shape[0], shape, rate
            )
            value[t] = current
    return np.asarray(value)


def buffet_masses(
    Py_ssize_t n_dishes, Py_ssize_t n_customers, double concentration, bounds, random_state,
    Py_ssize_t n_updates,
):
    """Successive masses of an Indian buffet, from the middle of the bounds on."""
    cdef double[::1] value = np.empty(n_updates)
    cdef double low, high, current
    cdef Py_ssize_t t
    low, high = bounds
    current = 0.5 * (low + high)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    with bit_generator.lock, nogil:
        for t in range(n_updates):
            current = ibp.draw_mass(rng, current, n_dishes, n_customers, concentration, low, high)
            value[t] = current
    return np.asarray(value)


def buffet_concentrations(
    const Py_ssize_t[::1] n_takers, Py_ssize_t n_customers, Py_ssize_t n_offered, double mass,
    bounds, random_state, Py_ssize_t n_updates,
):
    """Successive concentrations of an Indian buffet, from the middle of the bounds on."""
    cdef double[::1] value = np.empty(n_updates)
    cdef double low, high, current
    cdef Py_ssize_t t, n_dishes = n_takers.shape[0]
    cdef const Py_ssize_t* takers = &n_takers[0] if n_dishes > 0 else NULL
    low, high = bounds
    current = 0.5 * (low + high)
    bit_generator = as_generator(random_state).bit_generator
    cdef bitgen_t* rng = borrow(bit_generator)
    with bit_generator.lock, nogil:
        for t in range(n_updates):
            current = ibp.draw_concentration(
                rng, current, mass, takers, n_dishes, n_customers, n_offered, low, high
            )
            value[t] = current
    return np.asarray(value)
