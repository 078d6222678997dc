"""Labels of all rows at once, given weights and parameters of the blocks; then their statistics.

Weights and parameters are drawn given the partition, then every label given these, rows
independent: z_i = c with probability proportional to w_c f(x_i | theta_c). Over all components of
a finite mixture that is Gibbs sampling as it stands. Over the occupied blocks of an infinite one
it is exact once every block keeps an *anchor*, its first member in a random order of the rows that
does not look at the state, and rows join only blocks whose anchor comes before them: equation
(M4.4).
"""

from libc.math cimport INFINITY
from libc.string cimport memcpy
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.likelihoods.conjugate.family cimport ConjugateFamily
from skbnp.numerics cimport rng as draws


cdef enum:
    CHUNK = 1024            # rows per call; fixed, so that threads do not change the results
    PIECE = 4096            # members of a block that are summed in one go
    TOGETHER = 65536        # densities that one call of the family computes at most

# What rows draw by counter under the key of a pass.
cdef enum Purpose:
    ORDER_AND_LABEL
    IMPUTATION


cdef class RowPass:
    """The pass, with its buffers. It shares the labels of the state.

    Work is cut into chunks that depend on the number of rows and the block sizes alone, chunks
    write to places of their own and are added in order, and random numbers belong to rows: the
    result is the same to the last bit however ``for_rows`` distributes the chunks.

    Cost for N rows, K blocks, d features, full covariance: O(N K d^2 + N d^2), memory O(N).
    """

    def __init__(self, ConjugateFamily family, label, for_rows):
        self.family = family
        self._label = label
        self._for_rows = for_rows
        self._n_samples = family.n_samples
        self._member = np.zeros(self._n_samples, dtype=np.intp)
        self._row = family.row_order()
        n_chunks = (self._n_samples + CHUNK - 1) // CHUNK
        self._chunk_moved = np.zeros(n_chunks, dtype=np.intp)
        self._chunk_failed = np.zeros(n_chunks, dtype=np.intp)
        self._reserve(1)

    def _reserve(self, n_blocks):
        """Buffers for exactly so many blocks."""
        n_chunks = self._chunk_moved.shape[0]
        self._n_blocks = n_blocks
        self._log_weight = np.zeros(n_blocks + 1)
        self._place = np.zeros(n_blocks)
        self._anchor = np.zeros(n_blocks, dtype=np.intp)
        self._size = np.zeros(n_blocks, dtype=np.intp)
        self._chunk_anchor = np.zeros((n_chunks, n_blocks), dtype=np.intp)
        self._chunk_count = np.zeros((n_chunks, n_blocks), dtype=np.intp)

    cdef int run(
        self, bitgen_t* rng, Py_ssize_t n_blocks, double discount, double rest, bint anchored,
        Py_ssize_t n_imputed,
    ) except -1:
        """One pass over blocks 0..n_blocks-1, called with the GIL.

        ``rest`` is the Dirichlet parameter of all that is outside these blocks. Without anchors
        blocks may run empty: their slots are cleared, the others stay where they are. The moments
        of missing cells join those of ``n_imputed`` sweeps.
        """
        if n_blocks != self._n_blocks:
            self._reserve(n_blocks)
        self._anchored = anchored
        self._n_imputed = n_imputed
        self._key = draws.bits(rng)
        self._draw_parameters(rng, discount, rest)
        if anchored:
            self._for_rows(self._find_anchors, self._n_samples, CHUNK)
            self._choose_anchors()
        self._for_rows(self._draw_labels, self._n_samples, CHUNK)
        self.n_moved = np.sum(self._chunk_moved)
        self.failed = np.any(self._chunk_failed)
        return self._summarise()

    cdef int rebuild(self, Py_ssize_t n_blocks) except -1:
        """Compute the statistics of blocks 0..n_blocks-1 from the labels; with the GIL."""
        if n_blocks != self._n_blocks:
            self._reserve(n_blocks)
        self._for_rows(self._count_rows, self._n_samples, CHUNK)
        return self._summarise()

    cdef int _draw_parameters(self, bitgen_t* rng, double discount, double rest) except -1 nogil:
        """(w_1..w_K, rest) ~ Dirichlet(n_c - discount, ..., rest), theta_c from its posterior."""
        cdef Py_ssize_t k, n = self._n_blocks
        self.family.reserve_parameters(n)
        for k in range(n):
            self.family.draw_parameters(k, rng)
            self._log_weight[k] = self.family.n_members[k] - discount
        self._log_weight[n] = rest
        draws.log_dirichlet(rng, &self._log_weight[0], n + 1, &self._log_weight[0])
        return 0

    # -- anchors ------------------------------------------------------------------------------

    cdef double _place_of(self, Py_ssize_t i) noexcept nogil:
        """Place of row i in the order of the pass, uniform on (0, 1)."""
        cdef double u[2]
        draws.philox_uniforms(self._key, ORDER_AND_LABEL, <uint64_t> i, u)
        return u[0]

    cdef bint _precedes(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """Whether row i comes before row j in the order; the index decides between equals."""
        cdef double a = self._place_of(i), b = self._place_of(j)
        return a < b or (a == b and i < j)

    def _find_anchors(self, Py_ssize_t start, Py_ssize_t stop):
        """The first member of every block among the rows of a chunk."""
        cdef Py_ssize_t chunk = start // CHUNK, t, i, k
        cdef double place
        cdef double[::1] first = np.full(self._n_blocks, INFINITY)
        with nogil:
            for k in range(self._n_blocks):
                self._chunk_anchor[chunk, k] = -1
            for t in range(start, stop):
                i = self._row[t]
                k = self._label[i]
                place = self._place_of(i)
                if place < first[k] or (place == first[k] and i < self._chunk_anchor[chunk, k]):
                    first[k] = place
                    self._chunk_anchor[chunk, k] = i

    def _choose_anchors(self):
        """The first of the chunks' first members."""
        cdef Py_ssize_t chunk, k, i
        for k in range(self._n_blocks):
            self._anchor[k] = -1
        for chunk in range(self._chunk_anchor.shape[0]):
            for k in range(self._n_blocks):
                i = self._chunk_anchor[chunk, k]
                if i >= 0 and (self._anchor[k] < 0 or self._precedes(i, self._anchor[k])):
                    self._anchor[k] = i
        self._last_place = 0.0
        for k in range(self._n_blocks):
            self._place[k] = self._place_of(self._anchor[k])
            self._last_place = max(self._last_place, self._place[k])

    # -- labels -------------------------------------------------------------------------------

    def _draw_labels(self, Py_ssize_t start, Py_ssize_t stop):
        """Labels, and missing cells that are part of the state, of one chunk of rows."""
        cdef Py_ssize_t n_together = max(1, min(CHUNK, TOGETHER // self._n_blocks))
        cdef double[::1] log_p = np.empty(n_together * self._n_blocks)
        cdef double[::1] work = np.empty(self.family.work_size(n_together, self._n_blocks) + 1)
        with nogil:
            self._label_chunk(start, stop, n_together, &log_p[0], &work[0])

    cdef void _label_chunk(
        self, Py_ssize_t start, Py_ssize_t stop, Py_ssize_t n_together, double* log_p,
        double* work,
    ) noexcept nogil:
        cdef Py_ssize_t chunk = start // CHUNK, n_blocks = self._n_blocks, n, t, i, k
        cdef draws.RowStream stream
        self._chunk_moved[chunk] = 0
        self._chunk_failed[chunk] = 0
        for k in range(n_blocks):
            self._chunk_count[chunk, k] = 0
        while start < stop:
            n = min(n_together, stop - start)
            for t in range(n):
                memcpy(log_p + t * n_blocks, &self._log_weight[0], n_blocks * sizeof(double))
            self.family.log_likelihoods(&self._row[start], n, n_blocks, log_p, work)
            for t in range(n):
                i = self._row[start + t]
                if self._draw_label(i, log_p + t * n_blocks, &k) != 0:
                    self._chunk_failed[chunk] += 1
                    k = self._label[i]
                self._chunk_moved[chunk] += k != self._label[i]
                self._chunk_count[chunk, k] += 1
                self._label[i] = k
                if self.family.incomplete(i):
                    draws.start_row_stream(&stream, self._key, IMPUTATION, <uint64_t> i)
                    self.family.draw_missing_given_parameters(k, i, &stream.rng, work)
                    self.family.remember_imputation(i, self._n_imputed)
            start += n

    cdef int _draw_label(self, Py_ssize_t i, double* log_p, Py_ssize_t* chosen) noexcept nogil:
        """A block with probability proportional to exp(log_p); non-zero if none is finite."""
        cdef Py_ssize_t k
        cdef double u[2]
        draws.philox_uniforms(self._key, ORDER_AND_LABEL, <uint64_t> i, u)
        if self._anchored:
            if self._anchor[self._label[i]] == i:
                chosen[0] = self._label[i]
                return 0
            if u[0] <= self._last_place:
                for k in range(self._n_blocks):
                    if u[0] < self._place[k] or (u[0] == self._place[k] and i < self._anchor[k]):
                        log_p[k] = -INFINITY
        return draws.categorical_at(u[1], log_p, self._n_blocks, chosen)

    # -- statistics ---------------------------------------------------------------------------

    cdef int _summarise(self) except -1:
        """List the rows block by block, sum pieces of these lists, add the sums."""
        self._place_members()
        self._for_rows(self._list_members, self._n_samples, CHUNK)
        self._for_rows(self._sum_pieces, self._piece_block.shape[0], 1)
        with nogil:
            self._collect()
        return 0

    def _count_rows(self, Py_ssize_t start, Py_ssize_t stop):
        """Number of rows of each block in one chunk."""
        cdef Py_ssize_t chunk = start // CHUNK, t, k
        with nogil:
            for k in range(self._n_blocks):
                self._chunk_count[chunk, k] = 0
            for t in range(start, stop):
                self._chunk_count[chunk, self._label[self._row[t]]] += 1

    def _place_members(self):
        """Say where each chunk lists its rows of each block, and cut the blocks into pieces."""
        cdef Py_ssize_t chunk, k, n, place = 0
        for k in range(self._n_blocks):
            self._size[k] = place
            for chunk in range(self._chunk_count.shape[0]):
                n = self._chunk_count[chunk, k]
                self._chunk_count[chunk, k] = place
                place += n
            self._size[k] = place - self._size[k]
        size = np.asarray(self._size)
        n_pieces = (size + PIECE - 1) // PIECE
        block = np.repeat(np.arange(self._n_blocks), n_pieces)
        number = np.arange(len(block)) - np.repeat(np.cumsum(n_pieces) - n_pieces, n_pieces)
        starts = (np.cumsum(size) - size)[block] + PIECE * number
        self._piece_block = block
        self._piece_start = np.append(starts, self._n_samples)
        self._piece_sums = np.zeros((len(block), self.family.sums_size()))

    def _list_members(self, Py_ssize_t start, Py_ssize_t stop):
        """List the rows of one chunk block by block."""
        cdef Py_ssize_t chunk = start // CHUNK, t, i, k
        with nogil:
            for t in range(start, stop):
                i = self._row[t]
                k = self._label[i]
                self._member[self._chunk_count[chunk, k]] = i
                self._chunk_count[chunk, k] += 1

    def _sum_pieces(self, Py_ssize_t start, Py_ssize_t stop):
        """Sums over the rows of some pieces, each on its own."""
        cdef Py_ssize_t p, first
        cdef double[::1] work = np.empty(self.family.work_size(PIECE, 1) + 1)
        with nogil:
            for p in range(start, stop):
                first = self._piece_start[p]
                self.family.sum_rows(
                    self._piece_block[p], &self._member[first], self._piece_start[p + 1] - first,
                    &self._piece_sums[p, 0], &work[0],
                )

    cdef void _collect(self) noexcept nogil:
        """Add the pieces of each block in order and make them its statistics."""
        cdef Py_ssize_t k, a, p = 0, first, n_sums = self.family.sums_size()
        for k in range(self._n_blocks):
            if self._size[k] == 0:
                self.family.clear(k)
                continue
            first = p
            p += 1
            while p < self._piece_block.shape[0] and self._piece_block[p] == k:
                for a in range(n_sums):
                    self._piece_sums[first, a] += self._piece_sums[p, a]
                p += 1
            if self.family.set_from_sums(k, self._size[k], &self._piece_sums[first, 0]) != 0:
                self.family.clear(k)
                for a in range(self._piece_start[first], self._piece_start[p]):
                    self.family.add(k, self._member[a])
