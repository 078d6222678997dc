"""All layers: links, births, splits and merges, scores, scales, up and down."""

from skbnp.deep_scale_model._state cimport State
from skbnp.likelihoods.sparse_loadings.layer_schedule cimport LayerSchedule
from skbnp.mcmc.chain cimport DONE, Move

from skbnp.likelihoods.sparse_loadings.layer_schedule import PARTS
from skbnp.likelihoods.sparse_loadings.moves.layer_move import COUNTS as COUNTS_OF_LAYERS


cdef class Layers(Move):
    """W, Z and Y of all layers | all else; of one of them while the greedy schedule lasts."""

    NAME = "layers"
    COUNTS = COUNTS_OF_LAYERS
    STEPS = PARTS

    def __init__(self, State state, LayerSchedule schedule, bit_generator):
        super().__init__(bit_generator)
        self.state, self.schedule = state, schedule
        schedule.count_in(self.accepted, self.proposed)

    cpdef int run(self) except -1:
        with nogil:
            if self.state.greedy_layer < self.state.max_layers:
                self.schedule.update_layer(self.rng, self.state.greedy_layer)
            else:
                self.schedule.update(self.rng)
        return DONE

    def step(self, name):
        """One kind of move in all layers."""
        self.schedule.update_part(self.rng, PARTS.index(name))

    def set_state(self, state):
        """Counts, which the layers go on with."""
        super().set_state(state)
        self.schedule.count_in(self.accepted, self.proposed)
