"""What the moves of a layer have in common."""

from numpy.random cimport bitgen_t

from skbnp.likelihoods.sparse_loadings.scale_layer cimport ScaleLayer

# What is counted as accepted and proposed, of all moves together.
COUNTS = ("links", "births", "deaths", "splits", "merges", "scales")


cdef class LayerMove:
    """A move of a layer given what is below and above it, with its scratch."""

    def __init__(self, ScaleLayer layer):
        self.layer = layer

    def count_in(self, accepted, proposed):
        """Where to count, arrays of `COUNTS` that several moves and layers share."""
        self.accepted, self.proposed = accepted, proposed

    cdef int run(self, bitgen_t* rng) except -1 nogil:
        """Make the move."""
        return 0
