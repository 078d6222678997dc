"""What tests ask of the kernels of the networks under the Indian chefs process."""

from libc.stdint cimport uint64_t
from numpy.random cimport bitgen_t

from skbnp.icp_network._feedforward cimport BLOCK, Feedforward
from skbnp.numerics cimport rng as random
from skbnp.numerics.rng cimport RowStream

import numpy as np


def sliced(
    Feedforward net, uint64_t seed, a, u, double temperature=1.0, Py_ssize_t n_steps=1
):
    """Values (n_nodes, n_rows) of a and u after so many slices; row i has stream i."""
    cdef double[:, ::1] a_new = np.array(a, dtype=np.float64, order="C")
    cdef double[:, ::1] u_new = np.array(u, dtype=np.float64, order="C")
    cdef Py_ssize_t first, n, i, p, _, n_rows = a_new.shape[1]
    cdef RowStream stream[BLOCK]
    cdef bitgen_t* rng[BLOCK]
    cdef Py_ssize_t[:, ::1] at = np.empty((2, max(1, net.n_nodes)), dtype=np.intp)
    cdef double** at_a = <double**> &at[0, 0]
    cdef double** at_u = <double**> &at[1, 0]
    for first in range(0, n_rows, BLOCK):
        n = min(<Py_ssize_t> BLOCK, n_rows - first)
        for i in range(n):
            random.start_row_stream(&stream[i], seed, 0, first + i)
            rng[i] = &stream[i].rng
        for p in range(net.n_nodes):
            at_a[p], at_u[p] = &a_new[p, first], &u_new[p, first]
        for _ in range(n_steps):
            net.slice_noises(rng, n, at_a, at_u, temperature)
    return np.asarray(a_new), np.asarray(u_new)
