"""Scores of all rows: mathematics/tree_factor_model, section 8."""

from libc.math cimport sqrt
from libc.string cimport memcpy

from skbnp.numerics cimport rng as draws


cdef class Scores(Move):
    """x_i = U^-1 (omega_i + eps / sqrt(u_i)): p(x_i | b_i, u_i, y_i), (T8.1).

    The products that the loadings want are made on the way, while the rows are at hand.
    Cost: O(N L (P + L)).
    """

    NAME = "scores"
    DRAW = PieceScores

    def __init__(
        self, State state, LeafLaws laws, Pool pool, Products products, bit_generator
    ):
        super().__init__(bit_generator)
        self.state, self.pool, self.products = state, pool, products
        self.draw = self.DRAW(state, laws, products)

    cpdef int run(self) except -1:
        cdef int status
        self.products.begin()
        self.draw.key = draws.bits(self.rng)
        status = self.pool.run(self.draw, self.state.n_pieces)
        self.state.version += 1
        self.products.finish()
        return status


cdef class PieceScores(Work):
    """Scores and products of the rows of piece k."""

    def __init__(self, State state, LeafLaws laws, Products products):
        self.state, self.laws, self.products = state, laws, products

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef Py_ssize_t t = self.state.piece_start[k], n, j, depth = self.state.depth
        self.products.clear(k)
        while t < self.state.piece_start[k + 1]:
            n = self.laws.whiten_run(scratch.law, k, t, True)
            if n < 0:
                return self.fail()
            self.draw(scratch.law, n)
            for j in range(n):
                memcpy(&self.state.scores[scratch.law.chosen[j], 0], &scratch.law.omega[j * depth],
                       depth * sizeof(double))
            self.products.add_chunk(scratch.law, k, n)
            t += n
        return 0

    cdef void draw(self, Law law, Py_ssize_t n) noexcept nogil:
        """Scores of n whitened rows, in place: noise, then U^-1."""
        self.add_noise(law, n)
        law.solve(n)

    cdef void add_noise(self, Law law, Py_ssize_t n) noexcept nogil:
        """Add eps / sqrt(u_i) to n rows of ``law.omega``."""
        cdef Py_ssize_t j, h, i, depth = self.state.depth
        cdef double sd
        cdef double* row
        cdef draws.RowStream stream
        for j in range(n):
            i = law.chosen[j]
            draws.start_row_stream(&stream, self.key, 0, i)
            sd = 1.0 / sqrt(self.state.row_precision[i])
            row = &law.omega[j * depth]
            for h in range(depth):
                row[h] += sd * draws.normal(&stream.rng)
