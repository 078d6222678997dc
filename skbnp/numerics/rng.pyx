"""Random draws from NumPy's bit generators, without the GIL, and Philox4x32-10 by counter.

The only module that opens the bit generator's capsule. The caller keeps the bit generator
alive and holds its lock for as long as it uses the borrowed pointer.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.math cimport INFINITY, exp, log, log1p, sqrt
from libc.stdint cimport uint32_t, uint64_t
from numpy.random cimport bitgen_t
from numpy.random.c_distributions cimport (
    random_interval,
    random_poisson,
    random_standard_gamma,
    random_standard_normal,
)

import numbers

import numpy as np


cdef bitgen_t* borrow(object bit_generator) except NULL:
    """The C interface of a NumPy bit generator, such as ``default_rng(seed).bit_generator``."""
    return <bitgen_t*> PyCapsule_GetPointer(bit_generator.capsule, "BitGenerator")


cdef double uniform(bitgen_t* rng) noexcept nogil:
    """Draw from the open interval (0, 1): safe to take the logarithm of."""
    cdef double u = rng.next_double(rng.state)
    while u == 0.0:
        u = rng.next_double(rng.state)
    return u


cdef Py_ssize_t below(bitgen_t* rng, Py_ssize_t n) noexcept nogil:
    """Draw uniformly from 0..n-1, n >= 1."""
    return <Py_ssize_t> random_interval(rng, <uint64_t> (n - 1))


cdef uint64_t bits(bitgen_t* rng) noexcept nogil:
    """64 random bits, such as a key for draws by counter."""
    return rng.next_uint64(rng.state)


cdef double normal(bitgen_t* rng) noexcept nogil:
    """Draw from the standard normal."""
    return random_standard_normal(rng)


cdef double gamma(bitgen_t* rng, double shape) noexcept nogil:
    """Draw from Gamma(shape, rate 1); underflows to 0 for shapes below about 0.01."""
    return random_standard_gamma(rng, shape)


cdef double poisson(bitgen_t* rng, double rate) noexcept nogil:
    """Draw from Poisson(rate); above rates of 1e13 NumPy's rejection loses its digits."""
    return <double> random_poisson(rng, rate)


cdef double log_gamma(bitgen_t* rng, double shape) noexcept nogil:
    """Log of a Gamma(shape, rate 1) draw, for any shape > 0.

    For small shapes G(a) = G(a + 1) U^(1/a) in law, which never underflows in logs.
    Shape 0 is the point mass at 0: -inf.
    """
    if shape <= 0.0:
        return -INFINITY
    if shape < 1.0:
        return log(random_standard_gamma(rng, shape + 1.0)) + log(uniform(rng)) / shape
    return log(random_standard_gamma(rng, shape))


cdef double draw_gamma(bitgen_t* rng, double shape, double rate) noexcept nogil:
    """Draw from Gamma(shape, rate), kept above 1e-300 so that its logarithm stays finite."""
    return max(exp(log_gamma(rng, shape)) / rate, 1e-300)


cdef double truncated_gamma(
    bitgen_t* rng, double shape, double rate, double high
) noexcept nogil:
    """Draw from Gamma(shape, rate) on (0, high), by rejection.

    Where little mass lies below ``high``, y = log(high / x) has a density proportional to
    exp(-shape y - rate high e^-y), which exp(-(shape - rate high) y) bounds from above.
    """
    cdef double at_end = rate * high, slope = shape - rate * high, x
    # Below shape 1 no slope is steep, however little mass lies below the bound.
    if slope <= 0.0 or (slope * slope < shape and at_end >= 0.5 * shape):
        while True:
            x = draw_gamma(rng, shape, rate)
            if x < high:
                return x
    while True:
        x = -log(uniform(rng)) / slope
        if log(uniform(rng)) < -at_end * (exp(-x) - 1.0 + x):
            return max(high * exp(-x), 1e-300)


cdef double log_beta(bitgen_t* rng, double a, double b) noexcept nogil:
    """Log of a Beta(a, b) draw, for any a, b > 0."""
    cdef double x = log_gamma(rng, a)
    cdef double y = log_gamma(rng, b)
    if x >= y:
        return -log1p(exp(y - x))
    return x - y - log1p(exp(x - y))


cdef void log_dirichlet(
    bitgen_t* rng, const double* shape, Py_ssize_t n, double* out
) noexcept nogil:
    """Logs of a Dirichlet(shape) draw into out; a zero shape gets weight 0 (log -inf)."""
    cdef double highest = -INFINITY, total = 0.0
    cdef Py_ssize_t k
    for k in range(n):
        out[k] = log_gamma(rng, shape[k])
        highest = max(highest, out[k])
    for k in range(n):
        total += exp(out[k] - highest)
    total = highest + log(total)
    for k in range(n):
        out[k] -= total


cdef int categorical_from_logs(
    bitgen_t* rng, double* log_weight, Py_ssize_t n, Py_ssize_t* chosen
) noexcept nogil:
    """Draw k with probability proportional to exp(log_weight[k]); log_weight is overwritten.

    Non-zero, and nothing is drawn, if no weight is positive or one is NaN or +inf: the caller
    must ask. ``chosen`` is a valid index all the same, so that no mistake reads out of bounds.
    Weights below e^-45 of the largest are smaller than the rounding of the sum and count as 0.
    """
    cdef Py_ssize_t last = _cumulate(log_weight, n)
    chosen[0] = 0
    if last < 0:
        return 1
    chosen[0] = _locate(uniform(rng), log_weight, last)
    return 0


cdef int categorical_at(
    double u, double* log_weight, Py_ssize_t n, Py_ssize_t* chosen
) noexcept nogil:
    """The same by inversion at a uniform u that the caller drew."""
    cdef Py_ssize_t last = _cumulate(log_weight, n)
    chosen[0] = 0
    if last < 0:
        return 1
    chosen[0] = _locate(u, log_weight, last)
    return 0


cdef Py_ssize_t _cumulate(double* log_weight, Py_ssize_t n) noexcept nogil:
    """Turn log weights into running sums; returns the last k with a weight, -1 if none is valid."""
    cdef double highest = -INFINITY, total = 0.0
    cdef Py_ssize_t k, last = -1
    for k in range(n):
        if log_weight[k] != log_weight[k]:
            return -1
        if log_weight[k] > highest:
            highest = log_weight[k]
    if highest == -INFINITY or highest == INFINITY:
        return -1
    for k in range(n):
        if log_weight[k] - highest > -45.0:  # not "> highest - 45", which rounds at large logs
            total += exp(log_weight[k] - highest)
            last = k
        log_weight[k] = total
    return last


cdef Py_ssize_t _locate(double u, const double* cumulated, Py_ssize_t last) noexcept nogil:
    """The first k whose running sum exceeds the share u of the total."""
    cdef double target = u * cumulated[last]
    cdef Py_ssize_t k
    for k in range(last):
        if target < cumulated[k]:
            return k
    return last


cdef void shuffle(bitgen_t* rng, Py_ssize_t* item, Py_ssize_t n) noexcept nogil:
    """Put the items into a uniformly random order (Fisher-Yates)."""
    cdef Py_ssize_t i, j, held
    for i in range(n - 1, 0, -1):
        j = below(rng, i + 1)
        held = item[i]
        item[i] = item[j]
        item[j] = held


cdef void wishart_factor(bitgen_t* rng, double df, Py_ssize_t n, double* out) noexcept nogil:
    """Bartlett's lower factor A (row-major, n x n): A A^T ~ Wishart(df, identity), df > n - 1."""
    cdef Py_ssize_t a, b
    for a in range(n):
        for b in range(a):
            out[a * n + b] = normal(rng)
        out[a * n + a] = sqrt(2.0 * random_standard_gamma(rng, 0.5 * (df - a)))
        for b in range(a + 1, n):
            out[a * n + b] = 0.0


cdef void philox4x32(const uint32_t* counter, const uint32_t* key, uint32_t* out) noexcept nogil:
    """Philox4x32-10: ten rounds on a 128-bit counter under a 64-bit key.

    Salmon, Moraes, Dror & Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3".
    """
    cdef uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3]
    cdef uint32_t k0 = key[0], k1 = key[1]
    cdef uint64_t left, right
    cdef int _
    for _ in range(10):
        left = <uint64_t> 0xD2511F53u * c0
        right = <uint64_t> 0xCD9E8D57u * c2
        c0 = <uint32_t> (right >> 32) ^ c1 ^ k0
        c1 = <uint32_t> right
        c2 = <uint32_t> (left >> 32) ^ c3 ^ k1
        c3 = <uint32_t> left
        k0 += 0x9E3779B9u
        k1 += 0xBB67AE85u
    out[0] = c0
    out[1] = c1
    out[2] = c2
    out[3] = c3


cdef void philox_uniforms(
    uint64_t seed, uint64_t sweep, uint64_t row, double* out
) noexcept nogil:
    """Two uniforms on (0, 1) that depend on (seed, sweep, row) alone, for rows in parallel."""
    cdef uint32_t counter[4]
    cdef uint32_t key[2]
    cdef uint32_t word[4]
    cdef uint64_t bits
    cdef int h
    counter[0] = <uint32_t> row
    counter[1] = <uint32_t> (row >> 32)
    counter[2] = <uint32_t> sweep
    counter[3] = <uint32_t> (sweep >> 32)
    key[0] = <uint32_t> seed
    key[1] = <uint32_t> (seed >> 32)
    philox4x32(counter, key, word)
    for h in range(2):
        bits = (<uint64_t> word[2 * h + 1] << 32) | word[2 * h]
        # 52 bits and a half are exact in a double; with 53 the largest would round up to 1.
        out[h] = ((bits >> 12) + 0.5) * (1.0 / 4503599627370496.0)


cdef uint64_t _stream_uint64(void* state) noexcept nogil:
    """The next 64 bits of a row stream; one call of Philox gives two.

    Two calls at a time: each is a chain of dependent steps, and the processor overlaps them.
    """
    cdef RowStream* stream = <RowStream*> state
    if stream.n_left == 0:
        philox4x32(stream.counter, stream.key, &stream.word[4])
        stream.counter[3] += 1
        philox4x32(stream.counter, stream.key, stream.word)
        stream.counter[3] += 1
        stream.n_left = 8
    stream.n_left -= 2
    return (<uint64_t> stream.word[stream.n_left + 1] << 32) | stream.word[stream.n_left]


cdef uint32_t _stream_uint32(void* state) noexcept nogil:
    return <uint32_t> (_stream_uint64(state) >> 32)


cdef double _stream_double(void* state) noexcept nogil:
    return (_stream_uint64(state) >> 11) * (1.0 / 9007199254740992.0)


cdef void start_row_stream(
    RowStream* stream, uint64_t seed, uint32_t sweep, uint64_t row
) noexcept nogil:
    """A bit generator that depends on (seed, sweep, row) alone, for rows in parallel.

    ``stream.rng`` goes wherever a bitgen_t* does; the stream must not move while it is in use.
    """
    stream.counter[0] = <uint32_t> row
    stream.counter[1] = <uint32_t> (row >> 32)
    stream.counter[2] = sweep
    stream.counter[3] = 0
    stream.key[0] = <uint32_t> seed
    stream.key[1] = <uint32_t> (seed >> 32)
    stream.n_left = 0
    stream.rng.state = stream
    stream.rng.next_uint64 = _stream_uint64
    stream.rng.next_uint32 = _stream_uint32
    stream.rng.next_double = _stream_double
    stream.rng.next_raw = _stream_uint64


# -- Python faces -----------------------------------------------------------------------------


def as_generator(random_state=None):
    """The numpy.random.Generator meant by None, an int, a RandomState or a Generator.

    A RandomState or Generator is shared, not copied: its stream moves on.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.Generator(random_state._bit_generator)
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, numbers.Integral) and random_state >= 0:
        return np.random.default_rng(int(random_state))
    raise ValueError(
        "random_state must be None, an int >= 0, a RandomState or a Generator, "
        f"got {random_state!r}"
    )


def sample_truncated_gamma(bit_generator, double shape, double rate, double high, Py_ssize_t size):
    """``size`` draws of Gamma(shape, rate) on (0, high), shape (size,)."""
    cdef bitgen_t* rng = borrow(bit_generator)
    cdef double[::1] out = np.empty(size)
    cdef Py_ssize_t t
    with bit_generator.lock:
        for t in range(size):
            out[t] = truncated_gamma(rng, shape, rate, high)
    return np.asarray(out)


def sample_log_dirichlet(bit_generator, const double[::1] shape):
    """Logs of one Dirichlet(shape) draw, shape (n,); zero shapes are allowed but not all."""
    cdef bitgen_t* rng = borrow(bit_generator)
    cdef double[::1] out = np.empty(shape.shape[0])
    with bit_generator.lock:
        log_dirichlet(rng, &shape[0], shape.shape[0], &out[0])
    return np.asarray(out)


def sample_wishart(bit_generator, double df, const double[:, ::1] scale_factor, Py_ssize_t size):
    """``size`` draws of Wishart(df, L L^T), L = scale_factor, shape (size, n, n)."""
    cdef bitgen_t* rng = borrow(bit_generator)
    cdef Py_ssize_t n = scale_factor.shape[0], t
    cdef double[:, :, ::1] factor = np.empty((size, n, n))
    with bit_generator.lock:
        for t in range(size):
            wishart_factor(rng, df, n, &factor[t, 0, 0])
    half = np.asarray(scale_factor) @ np.asarray(factor)
    return half @ half.transpose(0, 2, 1)
