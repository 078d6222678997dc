"""Scores of all rows: mathematics, section 8."""

from libc.math cimport sqrt
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from skbnp.mcmc.chain cimport Move
from skbnp.numerics cimport rng as draws
from skbnp.tree_factor_model._faults cimport FLAT_SCORES
from skbnp.tree_factor_model._leaf_laws cimport LeafLaws
from skbnp.tree_factor_model._products cimport Products
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._work cimport Pool, Scratch, Work

cdef class PieceScores


cdef class Scores(Move):
    """x_i = U^-1 (omega_i + eps / sqrt(u_i)): p(x_i | b_i, u_i, y_i), (T8.1).

    The products that the loadings want are made on the way, while the rows are at hand.
    Cost: O(N L (P + L)).
    """

    NAME = "scores"

    cdef:
        State state
        Pool pool
        Products products
        PieceScores draw

    def __init__(
        self, State state, LeafLaws laws, Pool pool, Products products, bit_generator, int fault=0
    ):
        super().__init__(bit_generator)
        self.state, self.pool, self.products = state, pool, products
        self.draw = PieceScores(state, laws, products, fault == FLAT_SCORES)

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

    cdef:
        State state
        LeafLaws laws
        Products products
        uint64_t key                            # of the random numbers
        bint _flat

    def __init__(self, State state, LeafLaws laws, Products products, bint flat):
        self.state, self.laws, self.products, self._flat = state, laws, products, flat

    cdef int item(self, Scratch scratch, Py_ssize_t k) except -1 nogil:
        cdef Py_ssize_t t = self.state.piece_start[k], n, j, h, i, depth = self.state.depth
        cdef double sd
        cdef double* row
        cdef draws.RowStream stream
        self.products.clear(k)
        while t < self.state.piece_start[k + 1]:
            n = self.laws.whiten_run(scratch.law, k, t, True)
            if n < 0:
                return self.fail()
            if self._flat:
                scratch.law.solve(n)
            for j in range(n):
                i = scratch.law.chosen[j]
                draws.start_row_stream(&stream, self.key, 0, i)
                sd = 1.0 / sqrt(self.state.row_precision[i])
                row = &scratch.law.omega[j * depth]
                for h in range(depth):
                    row[h] += sd * draws.normal(&stream.rng)
            if not self._flat:
                scratch.law.solve(n)
            for j in range(n):
                memcpy(&self.state.scores[scratch.law.chosen[j], 0], &scratch.law.omega[j * depth],
                       depth * sizeof(double))
            self.products.add_chunk(scratch.law, k, n)
            t += n
        return 0
