"""One layer of the deep scale model: sparse loadings, scores, and what is above them.

Row n of the layer below has x_t ~ N(location_n + drift A_nt, A_nt^2 + floor_n), A = W Y, scores
y_kt ~ N(0, v_kt) with v = 1 + A^2 of the layer above; loadings are an Indian buffet process whose
customers are the rows. mathematics/deep_scale_model, sections 3 to 9, which equations (D...) are
of; Pan & Han, equations 9 to 17, repaired.
"""

from libc.math cimport isnan, log, sqrt

import numpy as np

from skbnp.likelihoods.sparse_loadings.cells cimport draw_t, log_density
from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport LOG_2_PI, lgamma
from skbnp.processes.ibp cimport dishes_per_mass


cdef class ScaleLayer:
    """Loadings and scores of one layer. Invariant between moves: A = W Y, ``n_links`` counts a
    column's links, none of which is 0 unless the law of links is finite; rows of the layer above
    are this layer's factors and share the memory of its scores.
    """

    def __init__(
        self, Py_ssize_t n_samples, double mass, double slab_shape, double slab_scale,
        ScaleLayer above, *, int birth_move=SINGLETON,
    ):
        """A layer without rows and factors; ``above`` is the next one, None if there is none."""
        self.n_samples, self.mass = n_samples, mass
        self.slab_shape, self.slab_scale = slab_shape, slab_scale
        self.above = above
        self.is_live = above is not None
        self.birth_move = birth_move
        self.owns_below = True
        # Rows of memory are never empty: a pointer to their start is one even without samples.
        n_samples = max(1, n_samples)
        self.below, self.A = np.zeros((0, n_samples)), np.zeros((0, n_samples))
        self.Y, self.W = np.zeros((0, n_samples)), np.zeros((0, 0))
        self.floor, self.location = np.zeros(0), np.zeros(0)
        self.n_links = np.zeros(0, np.intp)
        self.cell_x, self.cell_base, self.cell_y = (np.zeros(n_samples) for _ in range(3))
        self.reserve_with_gil(1, 1)

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
        self.reserve_with_gil(n_below, n_factors)
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
        cdef double others = self.n_customers(), m, w
        n_new = <Py_ssize_t> draws.poisson(rng, self.mass / (n + 1.0))
        self.reserve(n + 1, K + n_new)
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
        self.refresh_row(n)
        return 0

    cdef double n_customers(self) noexcept nogil:
        """Of the buffet, the row that comes counted."""
        return self.n_below + 1.0

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

    # -- densities --------------------------------------------------------------------------------

    cdef double log_prior(self) noexcept nogil:
        """log p of links, loadings and scores of this layer and those above.

        mathematics/deep_scale_model, section 2.
        """
        cdef double total, v, m, empty = 0.0
        cdef Py_ssize_t k, t, K = self.n_factors
        total = -self.mass * dishes_per_mass(self.n_below, 1.0) - lgamma(K + 1.0)
        if self.birth_move != SINGLETON:
            total += K * log(self.mass * dishes_per_mass(self.n_below, 1.0))
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
            empty = self.above.mass * dishes_per_mass(K, 1.0)
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

    cdef double score_variance(self, Py_ssize_t k, Py_ssize_t t) noexcept nogil:
        """v of the scores of factor k: 1 and what the layer above adds."""
        if not self.is_live:
            return 1.0
        return 1.0 + self.above.A[k, t] * self.above.A[k, t]

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

    cdef double log_finite_column(self, Py_ssize_t n_links, double a) noexcept nogil:
        """Log probability of a beta(a, 1)-Bernoulli column."""
        return (
            log(a) + lgamma(n_links + a) + lgamma(self.n_below - n_links + 1.0)
            - lgamma(self.n_below + 1.0 + a)
        )

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

    cdef Py_ssize_t count_empty(self) noexcept nogil:
        cdef Py_ssize_t k, total = 0
        for k in range(self.n_factors):
            total += self.n_links[k] == 0
        return total

    # -- bookkeeping ------------------------------------------------------------------------------

    cdef void refresh(self) noexcept nogil:
        """A = W Y anew: small changes have rounding errors."""
        cdef Py_ssize_t n
        for n in range(self.n_below):
            self.refresh_row(n)

    cdef void refresh_row(self, Py_ssize_t n) noexcept nogil:
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
                self.reserve_with_gil(n_below, n_factors)
        return 0

    cdef int reserve_with_gil(self, Py_ssize_t n_below, Py_ssize_t n_factors) except -1:
        cdef Py_ssize_t rows = self.room_below, columns = self.room, T = max(1, self.n_samples)
        if n_below > rows:
            rows = max(n_below, 2 * rows)
        if n_factors > columns:
            columns = max(n_factors, 2 * columns)
        if rows > self.room_below:
            if self.owns_below:
                self.below = grown(self.below, (rows, T))
            self.A = grown(self.A, (rows, T))
            self.floor, self.location = grown(self.floor, (rows,)), grown(self.location, (rows,))
        if columns > self.room:
            self.Y = grown(self.Y, (columns, T))
            self.n_links = grown(self.n_links, (columns,))
        self.W = grown(self.W, (rows, columns))
        self.room_below, self.room = rows, columns
        if self.above is not None:
            # Rows of the layer above are this layer's scores.
            self.above.owns_below = False
            self.above.below = self.Y
            self.above.reserve_with_gil(columns, self.above.room)
        return 0


def grown(values, shape):
    """A larger array with the values in its corner."""
    values = np.asarray(values)
    out = np.zeros(shape, dtype=values.dtype)
    out[tuple(slice(size) for size in values.shape)] = values
    return out
