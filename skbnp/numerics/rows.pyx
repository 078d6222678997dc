"""Rows of a table: which lack the same entries, and 64-bit keys of their values."""

from libc.math cimport NAN
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

import numpy as np

cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15   # 2^64 over the golden ratio, between keys


def patterns(A):
    """The rows of each pattern of missing entries: a list of index arrays."""
    if len(A) == 0:
        return []
    missing = np.isnan(A)
    if not missing.any():
        return [np.arange(len(A))]
    _, group = np.unique(np.packbits(missing, axis=1), axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)


def row_keys(A):
    """64-bit keys of the rows' values, (n_rows,): all NaN count alike, and so do 0 and -0."""
    cdef const double[:, ::1] x = np.ascontiguousarray(A, dtype=np.float64)
    cdef uint64_t[::1] out = np.empty(len(A), dtype=np.uint64)
    cdef Py_ssize_t i
    with nogil:
        for i in range(out.shape[0]):
            out[i] = row_key(&x[i, 0], x.shape[1])
    return np.asarray(out)


cdef uint64_t row_key(const double* row, Py_ssize_t n) noexcept nogil:
    """The key of one row of n values."""
    cdef uint64_t key = 0, bits
    cdef double value
    cdef Py_ssize_t d
    for d in range(n):
        value = row[d] + 0.0 if row[d] == row[d] else NAN
        memcpy(&bits, &value, sizeof(double))
        # The mixer of SplitMix64 (Steele, Lea & Flood 2014) over a running sum.
        key += bits + GOLDEN
        key = (key ^ (key >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
        key = (key ^ (key >> 27)) * <uint64_t> 0x94D049BB133111EB
        key = key ^ (key >> 31)
    return key
