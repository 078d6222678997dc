"""Links and loadings of a layer: section 3."""

from libc.math cimport INFINITY, exp, fabs, log, sqrt
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.sparse_loadings.cells cimport (
    accepts, draw_t, log_add, log_density, log_t, put_in_order,
)
from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport OF_LINKS, LayerMove
from skbnp.likelihoods.sparse_loadings.scale_layer cimport SINGLETON
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI

# A proposal of a loading: points for each sign, steps from the best, degrees of freedom and
# widening of its two humps, and the share of the prior (D3.4).
cdef int N_POINTS = 7
cdef int N_STEPS = 4
cdef double HUMP_DF = 5.0
cdef double HUMP_WIDTH = 1.69
cdef double HUMP_SHARE = 0.9
cdef double LEAST_LINK = 0.03


cdef struct Hump:
    double mode, information, height


cdef Hump climb(
    Py_ssize_t n, const double* x, const double* base, const double* y, double start, double drift,
    double floor, double df, double scale2,
) noexcept nogil:
    """Damped Fisher scoring of one loading's conditional from a start (D3.3)."""
    cdef Hump out = Hump(start, 0.0, 0.0)
    cdef double w = start, a, e, variance, slope, information, step, height, trial
    cdef double prior_information = (df + 1.0) / (2.0 * df * scale2)
    cdef Py_ssize_t t
    cdef int i, _
    out.height = log_density(n, x, base, y, w, drift, floor) + log_t(w, df, scale2)
    for i in range(N_STEPS + 1):
        slope = -(df + 1.0) * w / (df * scale2 + w * w)
        information = prior_information
        for t in range(n):
            a = base[t] + w * y[t]
            e = x[t] - drift * a
            variance = 1.0 / (a * a + floor)
            slope += y[t] * variance * (a * (e * e * variance - 1.0) + drift * e)
            information += y[t] * y[t] * variance * (2.0 * a * a * variance + drift * drift)
        out.mode, out.information = w, information
        if i == N_STEPS:
            break
        step = slope / information
        for _ in range(3):
            trial = w + step
            height = log_density(n, x, base, y, trial, drift, floor) + log_t(trial, df, scale2)
            if height > out.height:
                break
            step *= 0.25
        else:
            break
        w, out.height = trial, height
        if fabs(step) * sqrt(information) < 0.05:
            # Close enough: the proposal is wider than the hump.
            out.mode = w
            break
    return out


cdef class Links(LayerMove):
    """Every loading and whether it is there, one by one. O(25 T N K)."""

    def __init__(self, layer):
        super().__init__(layer)
        self.row_order = self.column_order = np.zeros(0, dtype=np.intp)

    cdef int make_room(self) except -1 nogil:
        """Room for orders of rows and of factors."""
        if (self.row_order.shape[0] < self.layer.room_below
                or self.column_order.shape[0] < self.layer.room):
            with gil:
                self.row_order = np.zeros(self.layer.room_below, dtype=np.intp)
                self.column_order = np.zeros(self.layer.room, dtype=np.intp)
        return 0

    cdef int run(self, bitgen_t* rng) except -1 nogil:
        """Every loading that may be on or off, in random order."""
        cdef Py_ssize_t i, j
        self.make_room()
        put_in_order(rng, &self.row_order[0], self.layer.n_below)
        put_in_order(rng, &self.column_order[0], self.layer.n_factors)
        for i in range(self.layer.n_below):
            for j in range(self.layer.n_factors):
                self.update_link(rng, self.row_order[i], self.column_order[j])
        return 0

    cdef void update_link(self, bitgen_t* rng, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
        """A loading and whether it is there, by an independence proposal near its conditional.

        What is off has the conditional of a t law with the column's other loadings, the odds of
        being there are those of the buffet; the proposal is a mixture of a hump for each sign and
        that t law.
        """
        cdef double old = self.layer.W[n, k], w, df, scale2, log_odds, reach, none, evidence, point
        cdef double others = self.layer.n_links[k] - (1 if old != 0.0 else 0)
        cdef double size_x = 0.0, size_y = 0.0, log_on, log_ratio, height, best, share, total
        cdef Py_ssize_t n_cells, t
        cdef Hump hump[2]
        cdef double log_share[2]
        cdef int s, j, _
        cdef bint was_on = old != 0.0, is_on = True, can_be_off = True
        if self.layer.birth_move == SINGLETON:
            can_be_off = others > 0.0
            if not can_be_off and not was_on:
                return
        df = 2.0 * self.layer.slab_shape + others
        self.layer.W[n, k] = 0.0
        scale2 = (2.0 * self.layer.slab_scale + self.layer.column_energy(k)) / df
        self.layer.W[n, k] = old
        log_odds = INFINITY
        if can_be_off:
            share = self.n_others(others, was_on)
            if self.layer.birth_move != SINGLETON:
                share += self.layer.mass / self.layer.n_factors
            log_odds = log(share / (self.layer.n_below - others))
        n_cells = self.layer.gather(n, k)
        for t in range(n_cells):
            size_x += self.layer.cell_x[t] * self.layer.cell_x[t]
            size_y += self.layer.cell_y[t] * self.layer.cell_y[t]
        reach = sqrt(size_x / size_y) if size_x > 0.0 and size_y > 0.0 else sqrt(scale2)
        for s in range(2):
            best = -INFINITY
            point = w = reach * (0.05 if s == 0 else -0.05)
            for _ in range(N_POINTS):
                height = self.layer.log_cells(n_cells, n, w) + log_t(w, df, scale2)
                if height > best:
                    best, point = height, w
                w *= 2.0
            hump[s] = climb(
                n_cells, &self.layer.cell_x[0], &self.layer.cell_base[0], &self.layer.cell_y[0],
                point, self.layer.drift, self.layer.floor[n], df, scale2,
            )
            log_share[s] = hump[s].height - 0.5 * log(hump[s].information)
        total = log_add(log_share[0], log_share[1])
        evidence = total + 0.5 * LOG_2_PI
        for s in range(2):
            log_share[s] += log(HUMP_SHARE) - total
        none = self.layer.log_cells(n_cells, n, 0.0)
        log_on = INFINITY
        if can_be_off:
            share = 1.0 / (1.0 + exp(none - evidence - log_odds))
            share = min(max(share, LEAST_LINK), 1.0 - LEAST_LINK)
            log_on = log(share / (1.0 - share))
            is_on = draws.uniform(rng) < share
        w = 0.0
        if is_on:
            share = draws.uniform(rng)
            if share < 1.0 - HUMP_SHARE:
                w = draw_t(rng, df, scale2)
            else:
                s = 0 if share < 1.0 - HUMP_SHARE + exp(log_share[0]) else 1
                w = hump[s].mode + draw_t(rng, HUMP_DF, HUMP_WIDTH / hump[s].information)
        log_ratio = 0.0
        for j in range(2):
            # The proposed loading's density over its proposal's, then the present one's.
            point = w if j == 0 else old
            if point == 0.0:
                height = none
            else:
                height = log_add(
                    log_share[0] + log_t(
                        point - hump[0].mode, HUMP_DF, HUMP_WIDTH / hump[0].information
                    ),
                    log_share[1] + log_t(
                        point - hump[1].mode, HUMP_DF, HUMP_WIDTH / hump[1].information
                    ),
                )
                best = log_t(point, df, scale2)
                height = self.layer.log_cells(n_cells, n, point) + best - log_add(
                    height, log(1.0 - HUMP_SHARE) + best
                )
                if can_be_off:
                    height += log_odds - log_on
            log_ratio += height if j == 0 else -height
        self.proposed[OF_LINKS] += 1
        if not accepts(rng, log_ratio):
            return
        self.accepted[OF_LINKS] += 1
        self.layer.W[n, k] = w
        self.layer.n_links[k] += (1 if w != 0.0 else 0) - (1 if was_on else 0)
        for t in range(self.layer.n_samples):
            self.layer.A[n, t] += (w - old) * self.layer.Y[k, t]

    cdef double n_others(self, double others, bint was_on) noexcept nogil:
        """Links of the column that the odds (D3.2) count: those to other rows."""
        return others
