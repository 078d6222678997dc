"""Links and loadings of a layer: mathematics/deep_scale_model, section 3."""

from libc.math cimport INFINITY, exp, fabs, log, sqrt
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.sparse_loadings.cells cimport (
    accepts, draw_t, log_add, log_t, put_in_order,
)
from skbnp.likelihoods.sparse_loadings.moves.layer_move cimport OF_LINKS, LayerMove
from skbnp.likelihoods.sparse_loadings.scale_layer cimport SINGLETON
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI

# The proposal of a loading (D3.4).
cdef int N_POINTS = 7               # for each sign, of which the best is where a climb starts
cdef int N_STEPS = 4                # of a climb, at most
cdef int N_LENGTHS = 3              # that a step tries, each a quarter of the last
cdef double NEAREST_POINT = 0.05    # of what loadings are likely to be
cdef double HUMP_DF = 5.0
cdef double HUMP_WIDTH = 1.69       # variance of a hump over that of Laplace's approximation
cdef double HUMP_SHARE = 0.9        # the rest is the column's law
cdef double LEAST_LINK = 0.03       # chance that a link is proposed, and that it is not


cdef class Links(LayerMove):
    """Every loading and whether it is there, one by one. O(25 T N K).

    A loading that is there has, but for the cells, a t law given the column's others; the odds of
    its being there are those of the buffet.
    """

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
        """A loading and whether it is there, by an independence proposal near its conditional."""
        cdef LinkProposal link
        cdef double old = self.layer.W[n, k], others = self.layer.n_links[k] - (old != 0.0), new
        link.row, link.can_be_off = n, self.layer.birth_move != SINGLETON or others > 0.0
        if old == 0.0 and not link.can_be_off:
            # A factor's only link comes and goes with the factor, by births and deaths.
            return
        self.take_column(&link, k, others)
        link.n_cells = self.layer.gather(n, k)
        self.find_humps(&link)
        self.weigh_absence(&link)
        new = draw_loading(rng, &link)
        self.proposed[OF_LINKS] += 1
        if accepts(rng, self.log_weight(&link, new) - self.log_weight(&link, old)):
            self.accepted[OF_LINKS] += 1
            self.put(n, k, new)

    cdef void take_column(self, LinkProposal* link, Py_ssize_t k, double others) noexcept nogil:
        """What the other links of the column, so many, say of this one: (D3.1), (D3.2)."""
        cdef Py_ssize_t n = link.row
        cdef double old = self.layer.W[n, k], weight
        link.df = 2.0 * self.layer.slab_shape + others
        self.layer.W[n, k] = 0.0
        link.scale2 = (2.0 * self.layer.slab_scale + self.layer.column_energy(k)) / link.df
        self.layer.W[n, k] = old
        link.log_odds = INFINITY
        if link.can_be_off:
            weight = self.n_others(others, old != 0.0)
            if self.layer.birth_move != SINGLETON:
                weight += self.layer.mass / self.layer.n_factors
            link.log_odds = log(weight / (self.layer.n_below - others))

    cdef double n_others(self, double others, bint was_on) noexcept nogil:
        """Links of the column that the odds (D3.2) count: those to other rows."""
        return others

    # -- the proposal -----------------------------------------------------------------------------

    cdef void find_humps(self, LinkProposal* link) noexcept nogil:
        """A hump for each sign, and what Laplace's approximation makes of the two (D3.4)."""
        cdef double size = self.likely_size(link), total
        cdef int s
        for s in range(2):
            link.hump[s] = self.climb(
                link, self.best_point(link, size * (NEAREST_POINT if s == 0 else -NEAREST_POINT))
            )
            link.log_share[s] = link.hump[s].height - 0.5 * log(link.hump[s].information)
        total = log_add(link.log_share[0], link.log_share[1])
        link.log_evidence = total + 0.5 * LOG_2_PI
        for s in range(2):
            link.log_share[s] += log(HUMP_SHARE) - total

    cdef double likely_size(self, const LinkProposal* link) noexcept nogil:
        """Of the loading: that of the cells over that of the scores."""
        cdef double size_x = 0.0, size_y = 0.0
        cdef Py_ssize_t t
        for t in range(link.n_cells):
            size_x += self.layer.cell_x[t] * self.layer.cell_x[t]
            size_y += self.layer.cell_y[t] * self.layer.cell_y[t]
        return sqrt(size_x / size_y) if size_x > 0.0 and size_y > 0.0 else sqrt(link.scale2)

    cdef double best_point(self, const LinkProposal* link, double w) noexcept nogil:
        """The highest of points from w outwards, each twice the last."""
        cdef double best = w, most = -INFINITY, height
        cdef int _
        for _ in range(N_POINTS):
            height = self.log_height(link, w)
            if height > most:
                most, best = height, w
            w *= 2.0
        return best

    cdef Hump climb(self, const LinkProposal* link, double start) noexcept nogil:
        """Damped Fisher scoring of the loading's conditional from a start (D3.3)."""
        cdef Hump hump
        cdef double slope, step
        cdef int _
        hump.mode, hump.height = start, self.log_height(link, start)
        slope = self.slope_at(link, start, &hump.information)
        for _ in range(N_STEPS):
            step = self.step_up(link, &hump, slope / hump.information)
            if step == 0.0 or fabs(step) * sqrt(hump.information) < 0.05:
                # Close enough: the proposal is wider than the hump.
                break
            slope = self.slope_at(link, hump.mode, &hump.information)
        return hump

    cdef double step_up(self, const LinkProposal* link, Hump* hump, double step) noexcept nogil:
        """Step from a hump's mode, less far where that is not higher; 0 if it never is."""
        cdef double w, height
        cdef int _
        for _ in range(N_LENGTHS):
            w = hump.mode + step
            height = self.log_height(link, w)
            if height > hump.height:
                hump.mode, hump.height = w, height
                return step
            step *= 0.25
        return 0.0

    cdef double slope_at(
        self, const LinkProposal* link, double w, double* information
    ) noexcept nogil:
        """Derivative of the log density of a loading, and Fisher's information: (D3.3)."""
        cdef double slope, total, a, e, variance
        cdef double drift = self.layer.drift, floor = self.layer.floor[link.row]
        cdef const double* x = &self.layer.cell_x[0]
        cdef const double* base = &self.layer.cell_base[0]
        cdef const double* y = &self.layer.cell_y[0]
        cdef Py_ssize_t t
        slope = -(link.df + 1.0) * w / (link.df * link.scale2 + w * w)
        total = (link.df + 1.0) / (2.0 * link.df * link.scale2)
        for t in range(link.n_cells):
            a = base[t] + w * y[t]
            e = x[t] - drift * a
            variance = 1.0 / (a * a + floor)
            slope += y[t] * variance * (a * (e * e * variance - 1.0) + drift * e)
            total += y[t] * y[t] * variance * (2.0 * a * a * variance + drift * drift)
        information[0] = total
        return slope

    cdef void weigh_absence(self, LinkProposal* link) noexcept nogil:
        """The density without the link, and the chance at which one is proposed."""
        link.log_off = self.layer.log_cells(link.n_cells, link.row, 0.0)
        link.chance, link.log_on = 1.0, INFINITY
        if link.can_be_off:
            link.chance = 1.0 / (1.0 + exp(link.log_off - link.log_evidence - link.log_odds))
            link.chance = min(max(link.chance, LEAST_LINK), 1.0 - LEAST_LINK)
            link.log_on = log(link.chance / (1.0 - link.chance))

    # -- densities --------------------------------------------------------------------------------

    cdef double log_height(self, const LinkProposal* link, double w) noexcept nogil:
        """Log density of the cells and of a loading that is there."""
        return self.layer.log_cells(link.n_cells, link.row, w) + log_t(w, link.df, link.scale2)

    cdef double log_weight(self, const LinkProposal* link, double w) noexcept nogil:
        """Log density of a loading, 0 without the link, over that at which it is proposed."""
        cdef double prior, out
        if w == 0.0:
            return link.log_off
        prior = log_t(w, link.df, link.scale2)
        out = self.layer.log_cells(link.n_cells, link.row, w) + prior
        out -= log_add(log_humps(link, w), log(1.0 - HUMP_SHARE) + prior)
        if link.can_be_off:
            out += link.log_odds - link.log_on
        return out

    # -- bookkeeping ------------------------------------------------------------------------------

    cdef void put(self, Py_ssize_t n, Py_ssize_t k, double w) noexcept nogil:
        """Give a link its loading, 0 to take it away; counts and amplitudes follow."""
        cdef double old = self.layer.W[n, k]
        cdef Py_ssize_t t
        self.layer.W[n, k] = w
        self.layer.n_links[k] += (w != 0.0) - (old != 0.0)
        for t in range(self.layer.n_samples):
            self.layer.A[n, t] += (w - old) * self.layer.Y[k, t]


cdef double draw_loading(bitgen_t* rng, const LinkProposal* link) noexcept nogil:
    """Of the proposal: 0 without the link, else of the column's law or around a mode."""
    cdef double u
    cdef int s
    if link.can_be_off and not draws.uniform(rng) < link.chance:
        return 0.0
    u = draws.uniform(rng)
    if u < 1.0 - HUMP_SHARE:
        return draw_t(rng, link.df, link.scale2)
    s = 0 if u < 1.0 - HUMP_SHARE + exp(link.log_share[0]) else 1
    return link.hump[s].mode + draw_t(rng, HUMP_DF, HUMP_WIDTH / link.hump[s].information)


cdef double log_humps(const LinkProposal* link, double w) noexcept nogil:
    """Log density of the two humps of the proposal, with their shares."""
    return log_add(log_hump(link, 0, w), log_hump(link, 1, w))


cdef double log_hump(const LinkProposal* link, int s, double w) noexcept nogil:
    return link.log_share[s] + log_t(
        w - link.hump[s].mode, HUMP_DF, HUMP_WIDTH / link.hump[s].information
    )
