"""Updates of the pre-activations of one layer of squashed Gaussian units, given all else.

Rows are independent. With u = s(a) = tanh(a / 2), row n has the log density, up to a constant,
    log f(a) = -1/2 sum_k nu_nk (a_k - mean_nk)^2 + linear_n'u - 1/2 u' quadratic u:
the units' own noise, and their children's, whose means are linear in u.
"""

from libc.math cimport cos, exp, log, log1p, sin, sqrt, tanh
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

from skbnp.likelihoods.nonlinear_gaussian._exponential cimport quick_squash
from skbnp.numerics cimport linalg, rng as random
from skbnp.numerics.rng cimport RowStream

import numpy as np

cdef enum:
    BLOCK = 128         # rows at a time; the arrays of a block stay in the second cache
    N_LEAPFROG = 8
    MOST_STEPS = 64     # of the slice's stepping out, both sides together
    MOST_SHRINKS = 200  # an interval of doubles is a point long before
    NARROW = 8          # layers below this width are left to the slice by "auto"

cdef enum:
    AUTO, SLICE, HMC, MTM, ESS

METHODS = {"auto": AUTO, "slice": SLICE, "hmc": HMC, "mtm": MTM, "ess": ESS}
cdef double TARGET_ACCEPTANCE = 0.85


cdef double squash(double a) noexcept nogil:
    """s(a) = tanh(a / 2), from the reals onto (-1, 1)."""
    return tanh(0.5 * a)


cdef double unsquash(double u) noexcept nogil:
    """s^-1(u) = log (1 + u) / (1 - u)."""
    return log1p(u) - log1p(-u)


cdef extern from *:
    """
    static SKBNP_CLONES void skbnp_squash_all(Py_ssize_t n, const double* a, double* u) {
        Py_ssize_t i;
        for (i = 0; i < n; i++) u[i] = skbnp_quick_squash(a[i]);
    }
    """
    void c_squash_all "skbnp_squash_all"(Py_ssize_t n, const double* a, double* u) noexcept nogil


cdef void squash_all(Py_ssize_t n, const double* a, double* u) noexcept nogil:
    """u = tanh(a / 2), entry by entry, to an absolute error of 3e-16."""
    c_squash_all(n, a, u)


cdef inline double log_density(
    double a, double u, double mean, double nu, double t, double s
) noexcept nogil:
    """Of one unit given the others, at u = s(a): -nu/2 (a - mean)^2 + t u - s/2 u^2."""
    return u * (t - 0.5 * s * u) - 0.5 * nu * (a - mean) * (a - mean)


cdef inline bint within(
    double a, double mean, double nu, double t, double s, double level
) noexcept nogil:
    """Whether a is in the slice above the level."""
    return log_density(a, quick_squash(a), mean, nu, t, s) > level


cdef void slice_draw(
    bitgen_t* rng, double* a, double* u, double mean, double nu, double t, double s
) noexcept nogil:
    """Univariate slice sampling by stepping out and shrinkage (Neal 2003, figures 3 and 5)."""
    cdef double width = 3.0 / sqrt(nu + 0.25 * s)
    cdef double level = log_density(a[0], u[0], mean, nu, t, s) + log(random.uniform(rng))
    cdef double low = a[0] - width * random.uniform(rng), high = low + width, x, v
    cdef Py_ssize_t left = random.below(rng, MOST_STEPS), right = MOST_STEPS - 1 - left, _
    while left > 0 and within(low, mean, nu, t, s, level):
        low -= width
        left -= 1
    while right > 0 and within(high, mean, nu, t, s, level):
        high += width
        right -= 1
    for _ in range(MOST_SHRINKS):
        x = low + (high - low) * random.uniform(rng)
        v = quick_squash(x)
        if log_density(x, v, mean, nu, t, s) >= level:
            a[0], u[0] = x, v
            return
        if x < a[0]:
            low = x
        else:
            high = x


cdef class Activations:
    """Updates of the pre-activations of one layer given all else; see the module's equation.

    Every method leaves the density of each row invariant. ``n_passes`` passes are made over all
    units of all rows: of "slice", univariate slice sampling; of "hmc", Hamiltonian steps of
    whole rows with diagonal masses nu + diag(quadratic) / 8; of "mtm", multiple-try Metropolis
    by unit with ``n_tries`` tries from the unit's own noise (Adams, Wallach & Ghahramani 2010);
    of "ess", elliptical slice sampling of whole rows (Murray, Adams & MacKay 2010); of "auto",
    all but the last "hmc" and the last "slice", which crosses between modes, and in layers
    of fewer than 8 units "slice" alone. All depends on parameters alone, not on activations.

    Not for several threads at once; ``reserve`` before the GIL is given up.
    """

    def __cinit__(self, *args, **kwargs):
        self.order = np.empty(0, dtype=np.intp)

    def __init__(self, method="auto", Py_ssize_t n_passes=2, Py_ssize_t n_tries=5):
        if method not in METHODS:
            raise ValueError(f"method must be one of {sorted(METHODS)}, got {method!r}")
        if n_passes < 1 or n_tries < 1:
            raise ValueError(
                f"n_passes and n_tries must be >= 1, got {n_passes} and {n_tries}"
            )
        self.method, self.kind = method, METHODS[method]
        self.n_passes, self.n_tries = n_passes, n_tries
        self.step = 0.35
        self.candidate = np.empty(2 * n_tries)
        self.reserve(1)

    def adapt(self, double rate):
        """Move log(step) by rate times (acceptance of "hmc" since the last call - 0.85)."""
        if self.n_adapting > 0:
            self.step *= exp(rate * (self.total_acceptance / self.n_adapting - TARGET_ACCEPTANCE))
            # With masses above nu a step of 2 is unstable even where there is no likelihood.
            self.step = min(max(self.step, 1e-3), 1.5)
        self.total_acceptance, self.n_adapting = 0.0, 0

    def get_state(self):
        """What the next draws and reports depend on."""
        return {
            "step": self.step, "n_accepted": self.n_accepted, "n_proposed": self.n_proposed,
            "total_acceptance": self.total_acceptance, "n_adapting": self.n_adapting,
        }

    def set_state(self, state):
        """Continue from a ``get_state``."""
        self.step = state["step"]
        self.n_accepted, self.n_proposed = state["n_accepted"], state["n_proposed"]
        self.total_acceptance = state["total_acceptance"]
        self.n_adapting = state["n_adapting"]

    cdef int reserve(self, Py_ssize_t width) except -1:
        """Make room for layers up to this width."""
        if width <= self.order.shape[0]:
            return 0
        self.order = np.empty(width, dtype=np.intp)
        self.scratch = np.empty((5 * BLOCK + 2) * width)
        self.u = &self.scratch[0]
        self.field = self.u + BLOCK * width
        self.velocity = self.field + BLOCK * width
        self.start = self.velocity + BLOCK * width
        self.scale = self.start + BLOCK * width
        self.proposal = self.scale + BLOCK * width
        self.direction = self.proposal + width
        return 0

    cdef void update(
        self, bitgen_t* rng, Py_ssize_t n_rows, Py_ssize_t width, double* a, const double* mean,
        const double* precision, Py_ssize_t precision_stride, const double* linear,
        const double* quadratic,
    ) noexcept nogil:
        """Update a (n_rows, width) in place; all arrays are row-major.

        mean and linear are (n_rows, width), quadratic (width, width); precision is (width,)
        with stride 0, or (n_rows, width) with stride width. O(n_rows width^2) per pass.
        """
        cdef bitgen_t* by_row[BLOCK]
        cdef Py_ssize_t i, k, n
        for k in range(width):
            self.order[k] = k
        # Units are stored by age, which the likelihood of a structure depends on.
        random.shuffle(rng, &self.order[0], width)
        for i in range(BLOCK):
            by_row[i] = rng
        i = 0
        while i < n_rows:
            n = min(<Py_ssize_t> BLOCK, n_rows - i)
            self._passes(by_row, n, width, a + i * width, mean + i * width,
                         precision + i * precision_stride, precision_stride,
                         linear + i * width, quadratic)
            i += n

    cdef void update_rows(
        self, RowStream* stream, Py_ssize_t n_rows, Py_ssize_t width, double* a,
        const double* mean, const double* precision, Py_ssize_t precision_stride,
        const double* linear, const double* quadratic,
    ) noexcept nogil:
        """The same with random numbers of each row's own; units go in order, for a network that
        stays as it is.
        """
        cdef bitgen_t* by_row[BLOCK]
        cdef Py_ssize_t i, k, n
        for k in range(width):
            self.order[k] = k
        i = 0
        while i < n_rows:
            n = min(<Py_ssize_t> BLOCK, n_rows - i)
            for k in range(n):
                by_row[k] = &stream[i + k].rng
            self._passes(by_row, n, width, a + i * width, mean + i * width,
                         precision + i * precision_stride, precision_stride,
                         linear + i * width, quadratic)
            i += n

    cdef void _passes(
        self, bitgen_t** rng, Py_ssize_t n, Py_ssize_t width, double* a, const double* mean,
        const double* nu, Py_ssize_t stride, const double* linear, const double* S,
    ) noexcept nogil:
        """All passes over a block of n <= BLOCK rows."""
        cdef int kind
        cdef Py_ssize_t i
        for i in range(self.n_passes):
            kind = self.kind
            if kind == AUTO:
                kind = SLICE if width < NARROW or i + 1 == self.n_passes else HMC
            if kind == HMC:
                self._hmc_pass(rng, n, width, a, mean, nu, stride, linear, S)
            elif kind == ESS:
                self._elliptical_pass(rng, n, width, a, mean, nu, stride, linear, S)
            else:
                self._slice_pass(rng, n, width, a, mean, nu, stride, linear, S, kind == MTM)

    # -- by unit ------------------------------------------------------------------------------

    cdef void _slice_pass(
        self, bitgen_t** rng, Py_ssize_t n, Py_ssize_t width, double* a, const double* mean,
        const double* nu, Py_ssize_t stride, const double* linear, const double* S, bint tries,
    ) noexcept nogil:
        """Each unit of each row given the row's others, by a slice or by multiple tries."""
        cdef Py_ssize_t i, j, k
        cdef double s, t, before
        cdef double* u = self.u
        cdef double* field = self.field
        cdef const double* row
        self._field(n, width, a, linear, S)
        for i in range(n):
            for j in range(width):
                k = self.order[j]
                row = S + k * width
                s, before = row[k], u[k]
                t = field[k] + s * before
                if tries:
                    self._try_several(rng[i], &a[k], &u[k], mean[k], nu[k], t, s)
                else:
                    slice_draw(rng[i], &a[k], &u[k], mean[k], nu[k], t, s)
                axpy(width, before - u[k], row, field)
            a += width
            mean += width
            nu += stride
            u += width
            field += width

    cdef void _try_several(
        self, bitgen_t* rng, double* a, double* u, double mean, double nu, double t, double s
    ) noexcept nogil:
        """One of n_tries draws from the unit's noise, in proportion to its likelihood w.

        Tries do not depend on where the chain stands, so the ones not chosen serve as the
        reference set: accepted with min(1, sum w / (sum w - w_chosen + w_current)).
        """
        cdef double* x = &self.candidate[0]
        cdef double* w = x + self.n_tries
        cdef double now = u[0] * (t - 0.5 * s * u[0]), highest = now
        cdef double total = 0.0, spread = 1.0 / sqrt(nu), share, v
        cdef Py_ssize_t r, chosen = 0
        for r in range(self.n_tries):
            x[r] = mean + spread * random.normal(rng)
            v = quick_squash(x[r])
            w[r] = v * (t - 0.5 * s * v)
            highest = max(highest, w[r])
        for r in range(self.n_tries):
            w[r] = exp(w[r] - highest)
            total += w[r]
        now = exp(now - highest)
        share = total * random.uniform(rng)
        while chosen + 1 < self.n_tries and share >= w[chosen]:
            share -= w[chosen]
            chosen += 1
        self.n_proposed += 1
        if random.uniform(rng) * (total - w[chosen] + now) < total:
            self.n_accepted += 1
            a[0], u[0] = x[chosen], quick_squash(x[chosen])

    # -- by row -------------------------------------------------------------------------------

    cdef void _hmc_pass(
        self, bitgen_t** rng, Py_ssize_t n, Py_ssize_t width, double* a, const double* mean,
        const double* nu, Py_ssize_t stride, const double* linear, const double* S,
    ) noexcept nogil:
        """A Hamiltonian trajectory of each row (Neal 2011), all rows of the block in step.

        Momenta are divided by the square roots of the masses, whose inverses are ``scale``.
        """
        cdef double length[BLOCK]
        cdef double energy[BLOCK]
        cdef Py_ssize_t i, k, h, at
        cdef double change, half
        memcpy(self.start, a, n * width * sizeof(double))
        for i in range(n):
            length[i] = self.step * (0.8 + 0.4 * random.uniform(rng[i]))
            for k in range(width):
                at = i * width + k
                self.scale[at] = length[i] / sqrt(nu[i * stride + k] + 0.125 * S[k * width + k])
                self.velocity[at] = random.normal(rng[i])
        for h in range(N_LEAPFROG + 1):
            self._field(n, width, a, linear, S)
            for i in range(n):
                at = i * width
                if h == 0:
                    energy[i] = _energy(
                        width, a + at, self.u + at, self.velocity + at, mean + at,
                        nu + i * stride, linear + at, self.field + at,
                    )
                half = 0.5 if h == 0 or h == N_LEAPFROG else 1.0
                _kick(width, half, a + at, self.u + at, self.velocity + at, mean + at,
                      nu + i * stride, self.field + at, self.scale + at)
            if h < N_LEAPFROG:
                for at in range(n * width):
                    a[at] += self.scale[at] * self.velocity[at]
        for i in range(n):
            at = i * width
            change = energy[i] - _energy(
                width, a + at, self.u + at, self.velocity + at, mean + at, nu + i * stride,
                linear + at, self.field + at,
            )
            # The negation rejects what overflowed into NaN.
            change = 1.0 if change >= 0.0 else exp(change)
            self.total_acceptance += change if change == change else 0.0
            if random.uniform(rng[i]) < change:
                self.n_accepted += 1
            else:
                memcpy(a + at, self.start + at, width * sizeof(double))
        self.n_proposed += n
        self.n_adapting += n

    cdef void _elliptical_pass(
        self, bitgen_t** rng, Py_ssize_t n, Py_ssize_t width, double* a, const double* mean,
        const double* nu, Py_ssize_t stride, const double* linear, const double* S,
    ) noexcept nogil:
        """Each row along an ellipse through a draw of its units' noise."""
        cdef double* x = self.proposal
        cdef double* direction = self.direction
        cdef double level, angle, low, high, c, s
        cdef Py_ssize_t i, k, _
        for i in range(n):
            for k in range(width):
                direction[k] = random.normal(rng[i]) / sqrt(nu[k])
            self._field(1, width, a, linear, S)
            level = _log_likelihood(width, self.u, linear, self.field)
            level += log(random.uniform(rng[i]))
            high = 6.283185307179586 * random.uniform(rng[i])
            angle, low = high, high - 6.283185307179586
            for _ in range(MOST_SHRINKS):
                c, s = cos(angle), sin(angle)
                for k in range(width):
                    x[k] = mean[k] + c * (a[k] - mean[k]) + s * direction[k]
                self._field(1, width, x, linear, S)
                if _log_likelihood(width, self.u, linear, self.field) >= level:
                    memcpy(a, x, width * sizeof(double))
                    break
                if angle < 0.0:
                    low = angle
                else:
                    high = angle
                angle = low + (high - low) * random.uniform(rng[i])
            a += width
            mean += width
            nu += stride
            linear += width

    cdef void _field(
        self, Py_ssize_t n, Py_ssize_t width, const double* a, const double* linear,
        const double* S,
    ) noexcept nogil:
        """u = s(a) and field = linear - u S, the gradient of the likelihood by u."""
        squash_all(n * width, a, self.u)
        memcpy(self.field, linear, n * width * sizeof(double))
        linalg.gemm(False, False, n, width, width, -1.0, self.u, S, 1.0, self.field)


cdef inline void axpy(Py_ssize_t n, double x, const double* row, double* out) noexcept nogil:
    """out += x row; short rows are not worth a call of BLAS."""
    cdef Py_ssize_t k
    for k in range(n):
        out[k] += x * row[k]


cdef inline double _log_likelihood(
    Py_ssize_t width, const double* u, const double* linear, const double* field
) noexcept nogil:
    """linear'u - 1/2 u' quadratic u = 1/2 (linear + field)'u."""
    cdef double total = 0.0
    cdef Py_ssize_t k
    for k in range(width):
        total += u[k] * (linear[k] + field[k])
    return 0.5 * total


cdef double _energy(
    Py_ssize_t width, const double* a, const double* u, const double* velocity,
    const double* mean, const double* nu, const double* linear, const double* field,
) noexcept nogil:
    """-log f(a) + 1/2 velocity^2."""
    cdef double total = 0.0
    cdef Py_ssize_t k
    for k in range(width):
        total += nu[k] * (a[k] - mean[k]) * (a[k] - mean[k]) + velocity[k] * velocity[k]
    return 0.5 * total - _log_likelihood(width, u, linear, field)


cdef void _kick(
    Py_ssize_t width, double part, const double* a, const double* u, double* velocity,
    const double* mean, const double* nu, const double* field, const double* scale,
) noexcept nogil:
    """velocity += part of a step along the gradient, -nu (a - mean) + s'(a) field."""
    cdef Py_ssize_t k
    for k in range(width):
        velocity[k] += part * scale[k] * (
            0.5 * (1.0 - u[k] * u[k]) * field[k] - nu[k] * (a[k] - mean[k])
        )
