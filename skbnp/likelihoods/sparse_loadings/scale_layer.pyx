"""One layer of the deep scale model: sparse loadings, scores, and what is above them.

Row n of the layer below has x_t ~ N(location_n + drift A_nt, A_nt^2 + floor_n), A = W Y, scores
y_kt ~ N(0, v_kt) with v = 1 + A^2 of the layer above; loadings are an Indian buffet process whose
customers are the rows. `doc/mathematics/deep_scale_model`, sections 3 to 9, which equations
(D...) are of; Pan & Han, equations 9 to 17, repaired.
"""

from libc.math cimport INFINITY, cos, exp, fabs, isnan, ldexp, log, log1p, sin, sqrt

import numpy as np

from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma, log1p_exp

cdef double LOG_2_PI = 1.8378770664093453
cdef double LOG_2 = 0.6931471805599453
cdef double PI = 3.141592653589793
# Nodes of a proposal of scores span so many standard deviations; so much of it is the prior.
cdef double GRID_END = 5.0
cdef double GRID_PRIOR = 0.02
# A proposal of a loading: points for each sign, steps from the best, degrees of freedom and
# widening of its two humps, and the share of the prior (D3.4).
cdef int N_POINTS = 7
cdef int N_STEPS = 4
cdef double HUMP_DF = 5.0
cdef double HUMP_WIDTH = 1.69
cdef double HUMP_SHARE = 0.9
cdef double LEAST_LINK = 0.03
# Standard deviation of log factors of scale (D8.1).
cdef double SCALE_STEP = 0.1


cdef struct Hump:
    double mode, information, height


cdef double harmonic(Py_ssize_t n) noexcept nogil:
    """1 + 1/2 + ... + 1/n."""
    cdef double total = 0.0
    cdef Py_ssize_t i
    for i in range(n):
        total += 1.0 / (i + 1.0)
    return total


cdef double log_density(
    Py_ssize_t n, const double* x, const double* base, const double* y, double w, double drift,
    double floor,
) noexcept nogil:
    """sum log N(x; drift a, a^2 + floor) + n log(2 pi) / 2, a = base + w y.

    One logarithm for many variances: of their product, before it leaves the range of doubles.
    """
    cdef double quadratic = 0.0, total = 0.0, product = 1.0, a, e, variance
    cdef Py_ssize_t t
    for t in range(n):
        a = base[t] + w * y[t]
        e = x[t] - drift * a
        variance = a * a + floor
        quadratic += e * e / variance
        product *= variance
        if product < 1e-150 or product > 1e150:
            total += log(product)
            product = 1.0
    return -0.5 * (quadratic + total + log(product))


cdef double log_t(double x, double df, double scale2) noexcept nogil:
    """log density of Student's t of squared scale ``scale2``."""
    return (
        lgamma(0.5 * (df + 1.0)) - lgamma(0.5 * df) - 0.5 * log(df * PI * scale2)
        - 0.5 * (df + 1.0) * log1p(x * x / (df * scale2))
    )


cdef double draw_t(bitgen_t* rng, double df, double scale2) noexcept nogil:
    return draws.normal(rng) * sqrt(0.5 * df * scale2 / draws.draw_gamma(rng, 0.5 * df, 1.0))


cdef double log_add(double a, double b) noexcept nogil:
    """log(e^a + e^b)."""
    return a + log1p_exp(b - a) if a >= b else b + log1p_exp(a - b)


cdef bint accepts(bitgen_t* rng, double log_ratio) noexcept nogil:
    """Metropolis: never for a ratio that is no number."""
    return log(draws.uniform(rng)) < log_ratio


cdef void put_in_order(bitgen_t* rng, Py_ssize_t* item, Py_ssize_t n) noexcept nogil:
    """A random order: that of storage tells which factor was born last."""
    cdef Py_ssize_t i
    for i in range(n):
        item[i] = i
    draws.shuffle(rng, item, n)


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


cdef void add_cells(
    Py_ssize_t n_nodes, const double* node, double base, double w, double x, double drift,
    double floor, double* quadratic, double* product,
) noexcept nogil:
    """What a cell adds to -2 log of its density at every node; variances are multiplied."""
    cdef double a, e, variance
    cdef Py_ssize_t g
    for g in range(n_nodes):
        a = base + w * node[g]
        e = x - drift * a
        variance = a * a + floor
        quadratic[g] += e * e / variance
        product[g] *= variance


cdef double put_heights(
    Py_ssize_t n_nodes, const double* quadratic, const double* product, double* height,
) noexcept nogil:
    """Densities at the nodes, up to a factor, and the area below them in steps of a node.

    Products within [1e-100, 1e100] cannot raise what is e^-500 of the least quadratic form.
    """
    cdef double least = INFINITY, area = 0.0
    cdef Py_ssize_t g
    for g in range(n_nodes):
        least = min(least, quadratic[g])
    for g in range(n_nodes):
        height[g] = 0.0
        if quadratic[g] - least < 1000.0:
            height[g] = exp(-0.5 * (quadratic[g] - least)) / sqrt(product[g])
        area += height[g]
    return area - 0.5 * (height[0] + height[n_nodes - 1])


cdef class ScaleLayer:
    """Loadings and scores of one layer. Invariant between moves: A = W Y, ``n_links`` counts a
    column's links, none of which is 0 unless the law of links is finite; rows of the layer above
    are this layer's factors and share the memory of its scores.

    Cost of ``update`` for N rows, K factors, T samples, L links and m rows of a split:
    O(T (25 N K + (n_births N + 3 n_split_merges m) n_nodes + L + 6 N)), and the same above.
    """

    def __init__(
        self, Py_ssize_t n_samples, double mass, double slab_shape, double slab_scale,
        ScaleLayer above, *, Py_ssize_t n_births=2, Py_ssize_t n_split_merges=10,
        Py_ssize_t n_nodes=61, int birth_move=SINGLETON, int fault=0,
    ):
        """A layer without rows and factors; ``above`` is the next one, None if there is none.

        ``n_births`` are attempts for each row, ``n_split_merges`` for each update.
        """
        self.n_samples, self.mass = n_samples, mass
        self.slab_shape, self.slab_scale = slab_shape, slab_scale
        self.above = above
        self.is_live = above is not None
        self.n_births, self.n_split_merges = n_births, n_split_merges
        self.n_nodes, self.birth_move, self.fault = n_nodes, birth_move, fault
        self.owns_below = True
        # Rows of memory are never empty: a pointer to their start is one even without samples.
        n_samples = max(1, n_samples)
        self.below, self.A, self.base = (np.zeros((0, n_samples)) for _ in range(3))
        self.Y, self.W = np.zeros((0, n_samples)), np.zeros((0, 0))
        self.floor, self.location = np.zeros(0), np.zeros(0)
        self.n_links, self.row_order, self.column_order = (np.zeros(0, np.intp) for _ in range(3))
        self.cell_x, self.cell_base, self.cell_y = (np.zeros(n_samples) for _ in range(3))
        self.new_scores, self.other_scores = np.zeros(n_samples), np.zeros(n_samples)
        self.node = np.linspace(-GRID_END, GRID_END, n_nodes)
        self.height, self.quadratic, self.product = (np.zeros(n_nodes) for _ in range(3))
        self._reserve_with_gil(1, 1)

    def reset(self, Py_ssize_t n_below, layers):
        """Set the numbers of rows and the (loadings, scores) of this layer and those above it.

        ``layers`` is a list from this layer up, loadings (rows, factors), scores (n_samples,
        factors); layers beyond it are empty. Floors become 1, locations 0; ``below`` is the
        caller's to fill.
        """
        cdef Py_ssize_t n_factors = 0
        if layers:
            loadings, scores = layers[0]
            n_factors = loadings.shape[1]
        self._reserve_with_gil(n_below, n_factors)
        self.n_below, self.n_factors = n_below, n_factors
        self.W[:, :] = 0.0
        self.floor[:] = 1.0
        self.location[:] = 0.0
        if layers:
            np.asarray(self.W)[:n_below, :n_factors] = loadings
            np.asarray(self.Y)[:n_factors, :self.n_samples] = scores.T
            np.asarray(self.n_links)[:n_factors] = np.count_nonzero(loadings, axis=0)
        self.refresh()
        if self.above is not None:
            self.above.reset(n_factors if self.is_live else 0, layers[1:])

    def take_part(self, bint is_live):
        """Whether the layer above is looked at; ``reset`` must follow."""
        self.is_live = is_live and self.above is not None

    def layers(self):
        """What ``reset`` takes, as copies, up to the last layer with a factor."""
        if self.n_factors == 0:
            return []
        loadings = np.array(self.W[:self.n_below, :self.n_factors])
        scores = np.array(self.Y[:self.n_factors, :self.n_samples].T, order="C")
        upper = self.above.layers() if self.is_live else []
        return [(loadings, scores), *upper]

    # -- rows of the layer below ------------------------------------------------------------------

    cdef int draw_row(self, bitgen_t* rng) except -1 nogil:
        """Append a row from its law given the others: factors, loadings, scores of new factors.

        Factor j with probability m_j / (n + 1), Poisson(mass / (n + 1)) new ones (D9.1). Rows
        are exchangeable, so this is also the law of any row given the rest, and no ratio of a
        birth or death has more of it than the variance of the scores that it gives.
        """
        cdef Py_ssize_t n = self.n_below, j, t, n_new, K = self.n_factors
        cdef double others = n + 1.0, m, w
        n_new = <Py_ssize_t> draws.poisson(rng, self.mass / (n + 1.0))
        self.reserve(n + 1, K + n_new)
        if self.fault == STALE_ROWS:
            others = max(n, 1.0)
        for t in range(self.n_samples):
            self.A[n, t] = 0.0
        self.floor[n], self.location[n] = 1.0, 0.0
        for j in range(K):
            m = self.n_links[j]
            self.W[n, j] = 0.0
            if draws.uniform(rng) * others < m:
                w = draw_t(
                    rng, 2.0 * self.slab_shape + m,
                    (2.0 * self.slab_scale + self.column_energy(j)) / (2.0 * self.slab_shape + m),
                )
                self.W[n, j] = w
                self.n_links[j] += 1
        self.n_below = n + 1
        for j in range(K, K + n_new):
            if self.is_live:
                self.above.draw_row(rng)
            for t in range(self.n_samples):
                self.Y[j, t] = draws.normal(rng) * sqrt(self.score_variance(j, t))
            for t in range(n):
                self.W[t, j] = 0.0
            self.W[n, j] = draw_t(
                rng, 2.0 * self.slab_shape, self.slab_scale / self.slab_shape
            )
            self.n_links[j] = 1
            self.n_factors = j + 1
        self._refresh_row(n)
        return 0

    cdef void drop_last_row(self) noexcept nogil:
        """Undo ``draw_row``: factors that it made are the last, and have links to nothing else."""
        self.remove_row(self.n_below - 1)

    cdef void remove_row(self, Py_ssize_t n) noexcept nogil:
        """Remove a row with the factors it alone has; the last row takes its place.

        What ``below`` holds is the owner's to move.
        """
        cdef Py_ssize_t j, t, last = self.n_below - 1
        for j in range(self.n_factors - 1, -1, -1):
            if self.W[n, j] != 0.0:
                self.W[n, j] = 0.0
                self.n_links[j] -= 1
                if self.n_links[j] == 0:
                    self.remove_factor(j)
        if n != last:
            for j in range(self.n_factors):
                self.W[n, j] = self.W[last, j]
                self.W[last, j] = 0.0
            for t in range(self.n_samples):
                self.A[n, t] = self.A[last, t]
            self.floor[n], self.location[n] = self.floor[last], self.location[last]
        self.n_below = last

    cdef void remove_factor(self, Py_ssize_t k) noexcept nogil:
        """Remove a factor, its links and its row above; the last factor takes its place."""
        cdef Py_ssize_t last = self.n_factors - 1, n, t
        if self.is_live:
            self.above.remove_row(k)
        for n in range(self.n_below):
            self.W[n, k] = self.W[n, last]
            self.W[n, last] = 0.0
        for t in range(self.n_samples):
            self.Y[k, t] = self.Y[last, t]
        self.n_links[k] = self.n_links[last]
        self.n_factors = last

    # -- the transition ---------------------------------------------------------------------------

    cdef int update(self, bitgen_t* rng) except -1 nogil:
        """One transition of this layer and those above, up and down, given ``below``."""
        if self.n_below == 0:
            return 0
        self.refresh()
        self.own_moves(rng)
        if self.is_live:
            self.above.update(rng)
            if self.above.n_factors > 0:
                self.update_scores(rng)
        self.refresh()
        return 0

    cdef int update_layer(self, bitgen_t* rng, Py_ssize_t number) except -1 nogil:
        """``update`` of the layer so many above this one."""
        if number > 0:
            return self.above.update_layer(rng, number - 1)
        return self.update(rng)

    cdef int update_part(self, bitgen_t* rng, int part) except -1 nogil:
        """One kind of move, in this layer and those above."""
        if self.n_below == 0:
            return 0
        if part == LINKS:
            self.update_links(rng)
        elif part == BIRTHS:
            self.update_births(rng)
        elif part == SPLIT_MERGES:
            self.update_split_merges(rng)
        elif part == SCORES:
            self.update_scores(rng)
        elif part == SCALES:
            self.update_scales(rng)
        return self.above.update_part(rng, part) if self.is_live else 0

    cdef int own_moves(self, bitgen_t* rng) except -1 nogil:
        """The moves of this layer alone."""
        self.update_links(rng)
        self.update_births(rng)
        self.update_split_merges(rng)
        self.update_scores(rng)
        self.update_scales(rng)
        return 0

    # -- links (section 3) ------------------------------------------------------------------------

    cdef void update_links(self, bitgen_t* rng) noexcept nogil:
        """Every loading that may be on or off, in random order."""
        cdef Py_ssize_t i, j
        put_in_order(rng, &self.row_order[0], self.n_below)
        put_in_order(rng, &self.column_order[0], self.n_factors)
        for i in range(self.n_below):
            for j in range(self.n_factors):
                self._update_link(rng, self.row_order[i], self.column_order[j])

    cdef void _update_link(self, bitgen_t* rng, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
        """A loading and whether it is there, by an independence proposal near its conditional.

        What is off has the conditional of a t law with the column's other loadings, the odds of
        being there are those of the buffet; the proposal is a mixture of a hump for each sign and
        that t law.
        """
        cdef double old = self.W[n, k], w, df, scale2, log_odds, reach, none, evidence, point
        cdef double others = self.n_links[k] - (1 if old != 0.0 else 0)
        cdef double size_x = 0.0, size_y = 0.0, log_on, log_ratio, height, best, share, total
        cdef Py_ssize_t n_cells, t
        cdef Hump hump[2]
        cdef double log_share[2]
        cdef int s, j, _
        cdef bint was_on = old != 0.0, is_on = True, can_be_off = True
        if self.birth_move == SINGLETON:
            can_be_off = others > 0.0
            if not can_be_off and not was_on:
                return
        df = 2.0 * self.slab_shape + others
        self.W[n, k] = 0.0
        scale2 = (2.0 * self.slab_scale + self.column_energy(k)) / df
        self.W[n, k] = old
        log_odds = INFINITY
        if can_be_off:
            share = others + (1.0 if was_on and self.fault == OWN_LINK else 0.0)
            if self.birth_move != SINGLETON:
                share += self.mass / self.n_factors
            log_odds = log(share / (self.n_below - others))
        n_cells = self.gather(n, k)
        for t in range(n_cells):
            size_x += self.cell_x[t] * self.cell_x[t]
            size_y += self.cell_y[t] * self.cell_y[t]
        reach = sqrt(size_x / size_y) if size_x > 0.0 and size_y > 0.0 else sqrt(scale2)
        for s in range(2):
            best = -INFINITY
            point = w = reach * (0.05 if s == 0 else -0.05)
            for _ in range(N_POINTS):
                height = self.log_cells(n_cells, n, w) + log_t(w, df, scale2)
                if height > best:
                    best, point = height, w
                w *= 2.0
            hump[s] = climb(
                n_cells, &self.cell_x[0], &self.cell_base[0], &self.cell_y[0], point, self.drift,
                self.floor[n], df, scale2,
            )
            log_share[s] = hump[s].height - 0.5 * log(hump[s].information)
        total = log_add(log_share[0], log_share[1])
        evidence = total + 0.5 * LOG_2_PI
        for s in range(2):
            log_share[s] += log(HUMP_SHARE) - total
        none = self.log_cells(n_cells, n, 0.0)
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
                height = self.log_cells(n_cells, n, point) + best - log_add(
                    height, log(1.0 - HUMP_SHARE) + best
                )
                if can_be_off:
                    height += log_odds - log_on
            log_ratio += height if j == 0 else -height
        self.n_links_tried += 1
        if not accepts(rng, log_ratio):
            return
        self.n_links_changed += 1
        self.W[n, k] = w
        self.n_links[k] += (1 if w != 0.0 else 0) - (1 if was_on else 0)
        for t in range(self.n_samples):
            self.A[n, t] += (w - old) * self.Y[k, t]

    cdef Py_ssize_t gather(self, Py_ssize_t n, Py_ssize_t k) noexcept nogil:
        """Row n's observed cells without factor k, side by side; returns how many there are."""
        cdef Py_ssize_t t, n_cells = 0
        cdef double w = self.W[n, k]
        for t in range(self.n_samples):
            if not isnan(self.below[n, t]):
                self.cell_x[n_cells] = self.below[n, t] - self.location[n]
                self.cell_base[n_cells] = self.A[n, t] - w * self.Y[k, t]
                self.cell_y[n_cells] = self.Y[k, t]
                n_cells += 1
        return n_cells

    cdef double log_cells(self, Py_ssize_t n_cells, Py_ssize_t n, double w) noexcept nogil:
        """Density of the gathered cells of row n, had factor k the loading w."""
        return log_density(
            n_cells, &self.cell_x[0], &self.cell_base[0], &self.cell_y[0], w, self.drift,
            self.floor[n],
        )

    # -- births of factors with one link (section 4) ----------------------------------------------

    cdef int update_births(self, bitgen_t* rng) except -1 nogil:
        """As many attempts as the rows ask for: never a number that the factors decide."""
        cdef Py_ssize_t i, n_attempts = self.n_births * self.n_below
        if self.birth_move == PAN_HAN:
            return self._printed_moves(rng)
        if self.fault == REPEATED:
            n_attempts = self.n_factors * self.n_below
        put_in_order(rng, &self.row_order[0], self.n_below)
        for i in range(n_attempts):
            if self.birth_move == FINITE:
                self._add_or_delete(rng)
            elif draws.uniform(rng) < 0.5:
                self._birth(rng, self.row_order[i % self.n_below])
            else:
                self._death(rng, self.row_order[i % self.n_below])
        return 0

    cdef int _birth(self, bitgen_t* rng, Py_ssize_t n) except -1 nogil:
        cdef Py_ssize_t K = self.n_factors, t, i
        cdef double w, scale2, evidence
        self.reserve(self.n_below, K + 1)
        if self.is_live:
            self.above.draw_row(rng)
        self.row[0] = n
        for t in range(self.n_samples):
            self.base[0, t] = self.A[n, t]
        scale2 = self._birth_scale(n)
        if draws.uniform(rng) < 0.5:
            scale2 = self.slab_scale / self.slab_shape
        w = draw_t(rng, 2.0 * self.slab_shape, scale2)
        self.row_weight[0] = w
        evidence = self.grid_evidence(rng, 0, 1, K, &self.Y[K, 0], True)
        self.n_births_tried += 1
        if not accepts(rng, self._log_birth(n, self._count_singletons(n), w, evidence)):
            if self.is_live:
                self.above.drop_last_row()
            return 0
        self.n_born += 1
        for i in range(self.n_below):
            self.W[i, K] = 0.0
        self.W[n, K], self.n_links[K] = w, 1
        self.n_factors = K + 1
        for t in range(self.n_samples):
            self.A[n, t] += w * self.Y[K, t]
        return 0

    cdef int _death(self, bitgen_t* rng, Py_ssize_t n) except -1 nogil:
        cdef Py_ssize_t n_singletons = self._count_singletons(n), k = 0, t, pick
        cdef double w, evidence
        self.n_deaths_tried += 1
        if n_singletons == 0:
            return 0
        pick = draws.below(rng, n_singletons)
        for k in range(self.n_factors):
            if self.n_links[k] == 1 and self.W[n, k] != 0.0:
                if pick == 0:
                    break
                pick -= 1
        w = self.W[n, k]
        self.row[0], self.row_weight[0] = n, w
        for t in range(self.n_samples):
            self.base[0, t] = self.A[n, t] - w * self.Y[k, t]
        evidence = self.grid_evidence(rng, 0, 1, k, &self.Y[k, 0], False)
        if not accepts(rng, -self._log_birth(n, n_singletons - 1, w, evidence)):
            return 0
        self.n_died += 1
        for t in range(self.n_samples):
            self.A[n, t] = self.base[0, t]
        self.remove_factor(k)
        return 0

    cdef Py_ssize_t _count_singletons(self, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t k, total = 0
        for k in range(self.n_factors):
            total += self.n_links[k] == 1 and self.W[n, k] != 0.0
        return total

    cdef double _birth_scale(self, Py_ssize_t n) noexcept nogil:
        """Squared scale of a proposed loading: what row n varies by beside ``base[0]``."""
        cdef double total = 0.0, e
        cdef Py_ssize_t t, n_cells = 0
        for t in range(self.n_samples):
            if not isnan(self.below[n, t]):
                e = self.below[n, t] - self.location[n] - self.drift * self.base[0, t]
                total += e * e
                n_cells += 1
        if total == 0.0:
            return self.slab_scale / self.slab_shape
        return total / (n_cells * (1.0 + self.drift * self.drift))

    cdef double _log_birth(
        self, Py_ssize_t n, Py_ssize_t n_singletons, double w, double evidence
    ) noexcept nogil:
        """Log ratio of a birth to row n's ``n_singletons``; the row without it in ``base[0]``.

        log(mass / N) - log(singletons + 1) + evidence + log p(w) / q(w).
        """
        cdef double df = 2.0 * self.slab_shape
        cdef double prior = log_t(w, df, self.slab_scale / self.slab_shape)
        cdef double proposed = log_t(w, df, self._birth_scale(n))
        cdef double none = 0.0
        cdef Py_ssize_t t, n_cells = 0
        for t in range(self.n_samples):
            if not isnan(self.below[n, t]):
                self.cell_x[n_cells] = self.below[n, t] - self.location[n]
                self.cell_base[n_cells] = self.base[0, t]
                n_cells += 1
        none = self.log_cells(n_cells, n, 0.0)
        if self.fault == NO_COUNT:
            n_singletons = 0
        return (
            log(self.mass / self.n_below) - log(n_singletons + 1.0) + evidence - none
            + prior - (log_add(prior, proposed) - log(2.0))
        )

    # -- splits and merges of factors (section 5) -------------------------------------------------

    cdef int update_split_merges(self, bitgen_t* rng) except -1 nogil:
        """A fixed number of attempts; columns of finite laws have none."""
        cdef Py_ssize_t _
        if self.birth_move != SINGLETON:
            return 0
        for _ in range(self.n_split_merges):
            if draws.uniform(rng) < 0.5:
                self._merge(rng)
            else:
                self._split(rng)
        return 0

    cdef int _merge(self, bitgen_t* rng) except -1 nogil:
        """Join two factors without a row in common; one of them keeps its row above.

        The row above of the other then goes as in a death, and a split draws it as in a birth, so
        that the law of rows cancels. New signs of a column are half of its proposals both ways.
        """
        cdef Py_ssize_t n_pairs = self._count_pairs(), k = 0, j = 0, n, t, i, m1, m, pick
        cdef Py_ssize_t n_splittable
        cdef double sign, log_ratio, s1, s2
        self.n_merges_tried += 1
        if n_pairs == 0:
            return 0
        pick = draws.below(rng, n_pairs)
        for i in range(self.n_factors * self.n_factors):
            k, j = i // self.n_factors, i % self.n_factors
            if k < j and self._disjoint(k, j):
                if pick == 0:
                    break
                pick -= 1
        if draws.uniform(rng) < 0.5:
            k, j = j, k
        sign = 1.0 if draws.uniform(rng) < 0.5 else -1.0
        s1, s2 = self.column_energy(k), self.column_energy(j)
        m1, m = self.n_links[k], self.n_links[k] + self.n_links[j]
        self.part[:] = 0
        self._gather_rows(k, 0, 0)
        self._gather_rows(j, m1, 0)
        log_ratio = -self.grid_evidence(rng, 0, m1, k, &self.Y[k, 0], False)
        log_ratio -= self.grid_evidence(rng, m1, m, j, &self.Y[j, 0], False)
        for i in range(m1, m):
            self.row_weight[i] *= sign
        log_ratio += self.grid_evidence(rng, 0, m, k, &self.new_scores[0], True)
        n_splittable = self._count_splittable() + 1
        n_splittable -= (m1 > 1) + (m - m1 > 1)
        log_ratio += self._log_merge(m1, m - m1, s1, s2)
        if self.fault != NO_PAIRS:
            log_ratio += log(<double> n_pairs) - log(<double> n_splittable)
        if not accepts(rng, log_ratio):
            return 0
        self.n_merged += 1
        for i in range(m):
            n = self.row[i]
            self.W[n, j] = 0.0
            self.W[n, k] = self.row_weight[i]
            for t in range(self.n_samples):
                self.A[n, t] = self.base[i, t] + self.row_weight[i] * self.new_scores[t]
        self.n_links[k] = m
        for t in range(self.n_samples):
            self.Y[k, t] = self.new_scores[t]
        self.remove_factor(j)
        return 0

    cdef int _split(self, bitgen_t* rng) except -1 nogil:
        """Give some of a factor's rows to a new one: the inverse of ``_merge``."""
        cdef Py_ssize_t n_splittable = self._count_splittable(), K = self.n_factors, k = 0, t
        cdef Py_ssize_t i, m, m1, pick, n_pairs
        cdef double log_ratio, weight, s1 = 0.0, s2 = 0.0
        self.n_splits_tried += 1
        if n_splittable == 0:
            return 0
        pick = draws.below(rng, n_splittable)
        for k in range(K):
            if self.n_links[k] > 1:
                if pick == 0:
                    break
                pick -= 1
        self.reserve(self.n_below, K + 1)
        if self.is_live:
            self.above.draw_row(rng)
        self._draw_parts(rng, k)
        m1 = self._gather_rows(k, 0, 0)
        m = self._gather_rows(k, m1, 1)
        log_ratio = -self.grid_evidence(rng, 0, m, k, &self.Y[k, 0], False)
        log_ratio += self.grid_evidence(rng, 0, m1, k, &self.new_scores[0], True)
        log_ratio += self.grid_evidence(rng, m1, m, K, &self.other_scores[0], True)
        for i in range(self.n_below):
            self.W[i, K] = 0.0
        for i in range(m):
            weight = self.row_weight[i]
            if i < m1:
                s1 += weight * weight
            else:
                s2 += weight * weight
                self.W[self.row[i], K] = weight
                self.W[self.row[i], k] = 0.0
        self.n_links[k], self.n_links[K] = m1, m - m1
        self.n_factors = K + 1
        n_pairs = self._count_pairs()
        log_ratio -= self._log_merge(m1, m - m1, s1, s2)
        if self.fault != NO_PAIRS:
            log_ratio += log(<double> n_splittable) - log(<double> n_pairs)
        if not accepts(rng, log_ratio):
            for i in range(m1, m):
                self.W[self.row[i], k] = self.row_weight[i]
                self.W[self.row[i], K] = 0.0
            self.n_links[k] = m
            self.n_factors = K
            if self.is_live:
                self.above.drop_last_row()
            return 0
        self.n_split += 1
        for t in range(self.n_samples):
            self.Y[k, t] = self.new_scores[t]
            self.Y[K, t] = self.other_scores[t]
        for i in range(m):
            self._refresh_row(self.row[i])
        return 0

    cdef double _log_merge(
        self, Py_ssize_t m1, Py_ssize_t m2, double s1, double s2
    ) noexcept nogil:
        """Log ratio of priors and partitions of a merge: all but scores and choices of columns."""
        cdef Py_ssize_t m = m1 + m2
        # Half of the partitions are any of 2^(m - 1) - 1, half peel one row off.
        cdef double log_parts = -(m - 1) * LOG_2 - log1p(-ldexp(1.0, <int> (1 - m)))
        if m > 2:
            log_parts -= LOG_2
            if m1 == 1 or m2 == 1:
                log_parts = log_add(log_parts, -log(2.0 * m))
        return (
            self.log_rate(m) - self.log_rate(m1) - self.log_rate(m2)
            + self.log_column(m, s1 + s2) - self.log_column(m1, s1) - self.log_column(m2, s2)
            + log_parts
        )

    cdef Py_ssize_t _gather_rows(self, Py_ssize_t k, Py_ssize_t start, int part) noexcept nogil:
        """Factor k's rows of a part, their loadings and A without it, from ``start``; the end."""
        cdef Py_ssize_t n, t, i = start
        for n in range(self.n_below):
            if self.W[n, k] != 0.0 and self.part[n] == part:
                self.row[i], self.row_weight[i] = n, self.W[n, k]
                for t in range(self.n_samples):
                    self.base[i, t] = self.A[n, t] - self.W[n, k] * self.Y[k, t]
                i += 1
        return i

    cdef void _draw_parts(self, bitgen_t* rng, Py_ssize_t k) noexcept nogil:
        """Two parts of factor k's rows, neither empty, in ``part``; which keeps it is a coin's."""
        cdef Py_ssize_t n, m = self.n_links[k], i = 0, n_first = 0, peeled = -1
        cdef int first = draws.uniform(rng) < 0.5
        if draws.uniform(rng) < 0.5:
            peeled = draws.below(rng, m)
        while n_first == 0:
            i = 0
            for n in range(self.n_below):
                self.part[n] = 1 - first
                if self.W[n, k] != 0.0:
                    # Of any two parts the last row is in one; not all others may be.
                    if i == peeled if peeled >= 0 else i < m - 1 and draws.uniform(rng) < 0.5:
                        self.part[n] = first
                        n_first += 1
                    i += 1

    cdef bint _disjoint(self, Py_ssize_t k, Py_ssize_t j) noexcept nogil:
        cdef Py_ssize_t n
        for n in range(self.n_below):
            if self.W[n, k] != 0.0 and self.W[n, j] != 0.0:
                return False
        return True

    cdef Py_ssize_t _count_pairs(self) noexcept nogil:
        """Pairs of factors without a row in common."""
        cdef Py_ssize_t k, j, total = 0
        for k in range(self.n_factors):
            for j in range(k + 1, self.n_factors):
                total += self._disjoint(k, j)
        return total

    cdef Py_ssize_t _count_splittable(self) noexcept nogil:
        cdef Py_ssize_t k, total = 0
        for k in range(self.n_factors):
            total += self.n_links[k] > 1
        return total

    # -- proposals of scores (section 6) ----------------------------------------------------------

    cdef double grid_evidence(
        self, bitgen_t* rng, Py_ssize_t start, Py_ssize_t end, Py_ssize_t k, double* y, bint draw
    ) noexcept nogil:
        """log p(y) + log p(rows | y) - log q(y) of scores of a factor of gathered rows.

        The rows are those at places ``start`` to ``end``, the variance of y is factor k's. q is,
        for each sample, a density linear between nodes, proportional there to p(y) p(rows | y),
        mixed with p(y); y is drawn from it, or given. Constants of the rows' densities are left
        out.
        """
        cdef double total = 0.0, sd, x, b, w, a, e, variance, area, density, prior, z, far
        cdef double low, high, offset, floor, target, f = 0.0, drift = self.drift
        cdef double step = 2.0 * GRID_END / (self.n_nodes - 1)
        cdef double* node = &self.node[0]
        cdef double* height = &self.height[0]
        cdef double* quadratic = &self.quadratic[0]
        cdef double* product = &self.product[0]
        cdef Py_ssize_t t, i, n, g = 0, G = self.n_nodes
        for t in range(self.n_samples):
            sd = sqrt(self.score_variance(k, t))
            for g in range(G):
                quadratic[g], product[g] = node[g] * node[g], 1.0
            low = high = 1.0
            for i in range(start, end):
                n = self.row[i]
                x = self.below[n, t] - self.location[n]
                if isnan(x):
                    continue
                b, w, floor = self.base[i, t], self.row_weight[i] * sd, self.floor[n]
                far = fabs(b) + GRID_END * fabs(w)
                low *= floor
                high *= far * far + floor
                if low < 1e-100 or high > 1e100:
                    for g in range(G):
                        quadratic[g] += log(product[g])
                        product[g] = 1.0
                    low, high = floor, far * far + floor
                add_cells(G, node, b, w, x, drift, floor, quadratic, product)
            area = put_heights(G, quadratic, product, height)
            if draw:
                if draws.uniform(rng) < GRID_PRIOR:
                    y[t] = sd * draws.normal(rng)
                else:
                    target = draws.uniform(rng) * area
                    for g in range(G - 1):
                        f = 0.5 * (height[g] + height[g + 1])
                        if target <= f or g == G - 2:
                            break
                        target -= f
                    # The inverse of the distribution function within a cell.
                    low, high = height[g], height[g + 1]
                    f = sqrt(low * low + min(target / f, 1.0) * (high * high - low * low))
                    offset = (f - low) / (high - low) if high != low else target / f
                    if not 0.0 <= offset <= 1.0:
                        offset = 0.5
                    y[t] = sd * (node[g] + step * offset)
            z = y[t] / sd
            prior = exp(-0.5 * (z * z + LOG_2_PI))
            density = 0.0
            if fabs(z) < GRID_END:
                g = min(<Py_ssize_t> ((z + GRID_END) / step), G - 2)
                offset = (z - node[g]) / step
                density = height[g] + offset * (height[g + 1] - height[g])
                density /= area * step
            if self.fault != BLIND_SCORES:
                total -= 0.5 * (z * z + LOG_2_PI)
                total -= log((1.0 - GRID_PRIOR) * density + GRID_PRIOR * prior)
            f, low = 0.0, 1.0
            for i in range(start, end):
                n = self.row[i]
                x = self.below[n, t] - self.location[n]
                if isnan(x):
                    continue
                a = self.base[i, t] + self.row_weight[i] * y[t]
                e = x - drift * a
                variance = a * a + self.floor[n]
                f += e * e / variance
                low *= variance
                if low < 1e-150 or low > 1e150:
                    f += log(low)
                    low = 1.0
            total -= 0.5 * (f + log(low))
        return total

    cdef double score_variance(self, Py_ssize_t k, Py_ssize_t t) noexcept nogil:
        """v of the scores of factor k: 1 and what the layer above adds."""
        if not self.is_live:
            return 1.0
        return 1.0 + self.above.A[k, t] * self.above.A[k, t]

    # -- columns of finite laws (section 10) ------------------------------------------------------

    cdef Py_ssize_t _count_empty(self) noexcept nogil:
        cdef Py_ssize_t k, total = 0
        for k in range(self.n_factors):
            total += self.n_links[k] == 0
        return total

    cdef int _add_or_delete(self, bitgen_t* rng) except -1 nogil:
        """A column without links comes or goes; its scores are from their law."""
        cdef Py_ssize_t n_empty = self._count_empty(), pick, k = 0
        if draws.uniform(rng) < 0.5:
            self.n_births_tried += 1
            if accepts(rng, self._log_add(self.n_factors, n_empty)):
                self.n_born += 1
                self._add_empty(rng)
            return 0
        self.n_deaths_tried += 1
        if n_empty == 0:
            return 0
        pick = draws.below(rng, n_empty)
        for k in range(self.n_factors):
            if self.n_links[k] == 0:
                if pick == 0:
                    break
                pick -= 1
        if accepts(rng, -self._log_add(self.n_factors - 1, n_empty - 1)):
            self.n_died += 1
            self.remove_factor(k)
        return 0

    cdef double _log_add(self, Py_ssize_t n_columns, Py_ssize_t n_empty) noexcept nogil:
        """Log ratio of one more empty column beside so many; all columns have another law then."""
        cdef double before = self.mass / n_columns if n_columns > 0 else 0.0
        cdef double after = self.mass / (n_columns + 1.0), total
        cdef Py_ssize_t k, n_active = n_columns - n_empty
        total = log(self.mass * harmonic(self.n_below) / (n_columns + 1.0))
        if self.fault == PRINTED_POSITION:
            total += log(n_columns / ((n_columns + 1.0) * max(n_active, 1)))
        else:
            total += log((n_columns + 1.0) / (n_empty + 1.0))
        total += self.log_finite_column(0, after)
        if self.fault == SAME_RATE:
            return total
        for k in range(self.n_factors):
            if self.n_links[k] > 0:
                total += self.log_finite_column(self.n_links[k], after)
                total -= self.log_finite_column(self.n_links[k], before)
        if n_empty > 0:
            total += n_empty * (
                self.log_finite_column(0, after) - self.log_finite_column(0, before)
            )
        return total

    cdef double log_finite_column(self, Py_ssize_t n_links, double a) noexcept nogil:
        """Log probability of a beta(a, 1)-Bernoulli column."""
        return (
            log(a) + lgamma(n_links + a) + lgamma(self.n_below - n_links + 1.0)
            - lgamma(self.n_below + 1.0 + a)
        )

    cdef int _add_empty(self, bitgen_t* rng) except -1 nogil:
        cdef Py_ssize_t K = self.n_factors, n, t
        self.reserve(self.n_below, K + 1)
        if self.is_live:
            self.above.draw_row(rng)
        for t in range(self.n_samples):
            self.Y[K, t] = draws.normal(rng) * sqrt(self.score_variance(K, t))
        for n in range(self.n_below):
            self.W[n, K] = 0.0
        self.n_links[K] = 0
        self.n_factors = K + 1
        return 0

    cdef int _printed_moves(self, bitgen_t* rng) except -1 nogil:
        """Equations 12 and 13 as printed, an attempt for each row and column.

        They leave no posterior as it is (sections 13.5, 13.6); without columns nothing comes
        back.
        """
        cdef Py_ssize_t _, k, n_columns, n_active
        for _ in range(self.n_below):
            n_columns, k = self.n_factors, 0
            while k < min(n_columns, self.n_factors):
                n_active = self.n_factors - self._count_empty()
                if self.n_links[k] > 0:
                    self.n_births_tried += 1
                    if accepts(
                        rng, log_printed_add(self.n_factors, n_active, self.n_below, self.mass)
                    ):
                        self.n_born += 1
                        self._add_empty(rng)
                    k += 1
                    continue
                self.n_deaths_tried += 1
                if accepts(
                    rng, log_printed_delete(self.n_factors, n_active, self.n_below, self.mass)
                ):
                    self.n_died += 1
                    self.remove_factor(k)
                    n_columns -= 1
                else:
                    k += 1
        return 0

    # -- scores (section 7) -----------------------------------------------------------------------

    cdef void update_scores(self, bitgen_t* rng) noexcept nogil:
        """Every sample's scores: an elliptical slice step for all, flips and slices for each."""
        cdef Py_ssize_t k, n, t, i = 0
        if self.n_factors == 0:
            return
        for k in range(self.n_factors):
            self.link_start[k] = i
            for n in range(self.n_below):
                if self.W[n, k] != 0.0:
                    self.link_row[i], self.link_weight[i] = n, self.W[n, k]
                    i += 1
        self.link_start[self.n_factors] = i
        put_in_order(rng, &self.column_order[0], self.n_factors)
        for t in range(self.n_samples):
            self._update_sample(rng, t)

    cdef void _update_sample(self, bitgen_t* rng, Py_ssize_t t) noexcept nogil:
        cdef Py_ssize_t n, k, i, j, n_rows = 0
        cdef double threshold, theta, low, high, c, s, y, old, variance, width
        for n in range(self.n_below):
            self.row_x[n] = self.below[n, t] - self.location[n]
            self.row_a[n], self.row_step[n] = self.A[n, t], 0.0
        # Elliptical slice sampling (Murray, Adams & MacKay 2010).
        for k in range(self.n_factors):
            variance = 1.0 if self.fault == ONE_PASS else self.score_variance(k, t)
            self.row_score[k] = self.Y[k, t]
            self.row_draw[k] = draws.normal(rng) * sqrt(variance)
            for i in range(self.link_start[k], self.link_start[k + 1]):
                self.row_step[self.link_row[i]] += self.link_weight[i] * self.row_draw[k]
        for n in range(self.n_below):
            # Rows without links do not see the scores.
            if self.row_step[n] != 0.0 and not isnan(self.row_x[n]):
                self.row[n_rows] = n
                n_rows += 1
        threshold = self._log_sample(n_rows, 1.0, 0.0) + log(draws.uniform(rng))
        theta = draws.uniform(rng) * 2.0 * PI
        low, high = theta - 2.0 * PI, theta
        while True:
            c, s = cos(theta), sin(theta)
            if self._log_sample(n_rows, c, s) > threshold or high - low < 1e-12:
                break
            if theta < 0.0:
                low = theta
            else:
                high = theta
            theta = low + draws.uniform(rng) * (high - low)
        for k in range(self.n_factors):
            self.row_score[k] = c * self.row_score[k] + s * self.row_draw[k]
        for n in range(self.n_below):
            self.row_a[n] = c * self.row_a[n] + s * self.row_step[n]
        for j in range(self.n_factors):
            k = self.column_order[j]
            variance = 1.0 if self.fault == ONE_PASS else self.score_variance(k, t)
            old = self.row_score[k]
            threshold = self._log_score(k, 0.0)
            if accepts(rng, self._log_score(k, -2.0 * old) - threshold):
                self._move_score(k, -2.0 * old)
                old = -old
            # A slice of fixed width at a random place, without stepping out.
            threshold = self._log_score(k, 0.0) - 0.5 * old * old / variance
            threshold += log(draws.uniform(rng))
            width = 8.0 * sqrt(variance)
            low = old - draws.uniform(rng) * width
            high = low + width
            while high - low > 1e-12 * width:
                y = low + draws.uniform(rng) * (high - low)
                if self._log_score(k, y - old) - 0.5 * y * y / variance > threshold:
                    self._move_score(k, y - old)
                    break
                if y < old:
                    low = y
                else:
                    high = y
        for k in range(self.n_factors):
            self.Y[k, t] = self.row_score[k]
        for n in range(self.n_below):
            self.A[n, t] = self.row_a[n]

    cdef double _log_sample(self, Py_ssize_t n_rows, double c, double s) noexcept nogil:
        """Density of one sample's listed cells at amplitudes c a + s step."""
        cdef double quadratic = 0.0, total = 0.0, product = 1.0, a, e, variance
        cdef Py_ssize_t i, n
        for i in range(n_rows):
            n = self.row[i]
            a = c * self.row_a[n] + s * self.row_step[n]
            e = self.row_x[n] - self.drift * a
            variance = a * a + self.floor[n]
            quadratic += e * e / variance
            product *= variance
            if product < 1e-150 or product > 1e150:
                total += log(product)
                product = 1.0
        return -0.5 * (quadratic + total + log(product))

    cdef double _log_score(self, Py_ssize_t k, double change) noexcept nogil:
        """Density of one sample's cells that factor k has links to, its score changed."""
        cdef double quadratic = 0.0, total = 0.0, product = 1.0, a, e, variance
        cdef Py_ssize_t i, n
        for i in range(self.link_start[k], self.link_start[k + 1]):
            n = self.link_row[i]
            if isnan(self.row_x[n]):
                continue
            a = self.row_a[n] + self.link_weight[i] * change
            e = self.row_x[n] - self.drift * a
            variance = a * a + self.floor[n]
            quadratic += e * e / variance
            product *= variance
            if product < 1e-150 or product > 1e150:
                total += log(product)
                product = 1.0
        return -0.5 * (quadratic + total + log(product))

    cdef void _move_score(self, Py_ssize_t k, double change) noexcept nogil:
        cdef Py_ssize_t i
        self.row_score[k] += change
        for i in range(self.link_start[k], self.link_start[k + 1]):
            self.row_a[self.link_row[i]] += self.link_weight[i] * change

    # -- scales (section 8) -----------------------------------------------------------------------

    cdef void update_scales(self, bitgen_t* rng) noexcept nogil:
        """Of every factor (loadings, scores) to (g loadings, scores / g), A as it was."""
        cdef Py_ssize_t k, n, t
        cdef double g, energy, squares, log_ratio, m
        for k in range(self.n_factors):
            m, energy, squares = self.n_links[k], self.column_energy(k), 0.0
            for t in range(self.n_samples):
                squares += self.Y[k, t] * self.Y[k, t] / self.score_variance(k, t)
            g = exp(SCALE_STEP * draws.normal(rng))
            log_ratio = self.log_column(m, g * g * energy) - self.log_column(m, energy)
            log_ratio -= 0.5 * (1.0 / (g * g) - 1.0) * squares
            if self.fault != NO_JACOBIAN:
                log_ratio += (m - self.n_samples) * log(g)
            self.n_rescales_tried += 1
            if not accepts(rng, log_ratio):
                continue
            self.n_rescaled += 1
            for n in range(self.n_below):
                self.W[n, k] *= g
            for t in range(self.n_samples):
                self.Y[k, t] /= g

    # -- densities --------------------------------------------------------------------------------

    cdef double log_prior(self) noexcept nogil:
        """log p of links, loadings and scores of this layer and those above (section 2)."""
        cdef double total, v, m, empty = 0.0
        cdef Py_ssize_t k, t, K = self.n_factors
        total = -self.mass * harmonic(self.n_below) - lgamma(K + 1.0)
        if self.birth_move != SINGLETON:
            total += K * log(self.mass * harmonic(self.n_below))
        for k in range(K):
            m = self.n_links[k]
            if self.birth_move == SINGLETON:
                total += self.log_rate(m)
            else:
                total += self.log_finite_column(self.n_links[k], self.mass / K)
            total += self.log_column(m, self.column_energy(k))
            for t in range(self.n_samples):
                v = self.score_variance(k, t)
                total -= 0.5 * (LOG_2_PI + log(v) + self.Y[k, t] * self.Y[k, t] / v)
        if self.is_live:
            total += self.above.log_prior()
        elif self.above is not None:
            empty = self.above.mass * harmonic(K)
        return total - empty

    cdef double log_data(self) noexcept nogil:
        """log p of all observed cells given the state."""
        cdef double total = 0.0
        cdef Py_ssize_t n
        for n in range(self.n_below):
            total += self.row_log_data(n, self.floor[n])
        return total

    cdef double row_log_data(self, Py_ssize_t n, double floor) noexcept nogil:
        """log p of one row's observed cells, had it this floor."""
        cdef Py_ssize_t t, n_cells = 0
        for t in range(self.n_samples):
            if not isnan(self.below[n, t]):
                self.cell_x[n_cells] = self.below[n, t] - self.location[n]
                self.cell_base[n_cells] = self.A[n, t]
                n_cells += 1
        return -0.5 * n_cells * LOG_2_PI + log_density(
            n_cells, &self.cell_x[0], &self.cell_base[0], &self.cell_y[0], 0.0, self.drift, floor,
        )

    cdef double column_energy(self, Py_ssize_t k) noexcept nogil:
        """Sum of squared loadings of factor k."""
        cdef double total = 0.0
        cdef Py_ssize_t n
        for n in range(self.n_below):
            total += self.W[n, k] * self.W[n, k]
        return total

    cdef double log_column(self, double n_links, double energy) noexcept nogil:
        """log p of a column's loadings, their variance integrated out."""
        cdef double a = self.slab_shape + 0.5 * n_links
        return (
            lgamma(a) - lgamma(self.slab_shape) + self.slab_shape * log(self.slab_scale)
            - 0.5 * n_links * LOG_2_PI - a * log(self.slab_scale + 0.5 * energy)
        )

    cdef double log_rate(self, double n_links) noexcept nogil:
        """log mass (N - m)! (m - 1)! / N!: of how many factors a set of m rows has."""
        return (
            log(self.mass) + lgamma(self.n_below - n_links + 1.0) + lgamma(n_links)
            - lgamma(self.n_below + 1.0)
        )

    # -- bookkeeping ------------------------------------------------------------------------------

    cdef void refresh(self) noexcept nogil:
        """A = W Y anew: small changes have rounding errors."""
        cdef Py_ssize_t n
        for n in range(self.n_below):
            self._refresh_row(n)

    cdef void _refresh_row(self, Py_ssize_t n) noexcept nogil:
        cdef Py_ssize_t k, t
        for t in range(self.n_samples):
            self.A[n, t] = 0.0
        for k in range(self.n_factors):
            if self.W[n, k] != 0.0:
                linalg.axpy(self.n_samples, self.W[n, k], &self.Y[k, 0], &self.A[n, 0])

    cdef int reserve(self, Py_ssize_t n_below, Py_ssize_t n_factors) except -1 nogil:
        """Room for so many rows and factors: at least twice as much where it has to grow."""
        if n_below > self.room_below or n_factors > self.room:
            with gil:
                self._reserve_with_gil(n_below, n_factors)
        return 0

    cdef int _reserve_with_gil(self, Py_ssize_t n_below, Py_ssize_t n_factors) except -1:
        cdef Py_ssize_t rows = self.room_below, columns = self.room, T = max(1, self.n_samples)
        if n_below > rows:
            rows = max(n_below, 2 * rows)
        if n_factors > columns:
            columns = max(n_factors, 2 * columns)
        if rows > self.room_below:
            if self.owns_below:
                self.below = grown(self.below, (rows, T))
            self.A, self.base = grown(self.A, (rows, T)), np.zeros((rows, T))
            self.floor, self.location = grown(self.floor, (rows,)), grown(self.location, (rows,))
            self.row_weight, self.row_x = np.zeros(rows), np.zeros(rows)
            self.row_a, self.row_step = np.zeros(rows), np.zeros(rows)
            self.row, self.part = (np.zeros(rows, dtype=np.intp) for _ in range(2))
            self.row_order = grown(self.row_order, (rows,))
        if columns > self.room:
            self.Y = grown(self.Y, (columns, T))
            self.n_links = grown(self.n_links, (columns,))
            self.column_order = grown(self.column_order, (columns,))
            self.link_start = np.zeros(columns + 1, dtype=np.intp)
            self.row_score, self.row_draw = np.zeros(columns), np.zeros(columns)
        self.W = grown(self.W, (rows, columns))
        self.link_row = np.zeros(rows * columns, dtype=np.intp)
        self.link_weight = np.zeros(rows * columns)
        self.room_below, self.room = rows, columns
        if self.above is not None:
            # Rows of the layer above are this layer's scores.
            self.above.owns_below = False
            self.above.below = self.Y
            self.above._reserve_with_gil(columns, self.above.room)
        return 0


def grown(values, shape):
    """A larger array with the values in its corner."""
    values = np.asarray(values)
    out = np.zeros(shape, dtype=values.dtype)
    out[tuple(slice(size) for size in values.shape)] = values
    return out


cdef double log_empty(Py_ssize_t n_rows, double a) noexcept nogil:
    """Log probability that a beta(a, 1)-Bernoulli column has no link."""
    return lgamma(1.0 + a) + lgamma(n_rows + 1.0) - lgamma(n_rows + 1.0 + a)


cdef double log_printed_add(
    Py_ssize_t n_columns, Py_ssize_t n_active, Py_ssize_t n_rows, double mass
) noexcept nogil:
    """Equation 12 of the paper (D10.3)."""
    cdef double K = n_columns
    return (
        log_empty(n_rows, mass / (K + 1.0)) + log(mass * harmonic(n_rows) / (K + 1.0))
        + log(K / ((K + 1.0) * n_active))
    )


cdef double log_printed_delete(
    Py_ssize_t n_columns, Py_ssize_t n_active, Py_ssize_t n_rows, double mass
) noexcept nogil:
    """Equation 13 of the paper: with the same factor as 12, not its inverse (section 13.5)."""
    cdef double K = n_columns
    return (
        -log_empty(n_rows, mass / K) - log(mass * harmonic(n_rows) / K)
        + log(K / ((K + 1.0) * n_active))
    )


def printed_ratios(Py_ssize_t n_columns, Py_ssize_t n_active, Py_ssize_t n_rows, double mass):
    """The printed ratios (add, delete) of columns without links."""
    return (
        exp(log_printed_add(n_columns, n_active, n_rows, mass)),
        exp(log_printed_delete(n_columns, n_active, n_rows, mass)),
    )
