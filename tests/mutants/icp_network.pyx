"""Wrong formulas of networks under the Indian chefs process, each an overridden small method."""

from libc.math cimport INFINITY, log
from numpy.random cimport bitgen_t

from skbnp.icp_network._graph cimport Graph
from skbnp.icp_network._network cimport Network
from skbnp.icp_network.moves._choice cimport Choice
from skbnp.icp_network.moves._newborn cimport Newborn
from skbnp.icp_network.moves._proposal cimport Proposal
from skbnp.icp_network.moves.activations cimport Activations, Unit
from skbnp.icp_network.moves.affine cimport Affine
from skbnp.icp_network.moves.births cimport Births
from skbnp.icp_network.moves.edges cimport Edges
from skbnp.icp_network.moves.hyperparameters cimport Hyperparameters
from skbnp.icp_network.moves.trajectories cimport Trajectories
from skbnp.likelihoods.nonlinear_gaussian._exponential cimport quick_squash
from skbnp.likelihoods.nonlinear_gaussian._grid cimport draw_on_grid


cdef class PrintedConstant(Graph):
    """1 / H! in the density, ratios right (section 9, item 1)."""

    cdef double log_density(self) noexcept nogil:
        cdef Py_ssize_t i
        cdef double total = Graph.log_density(self)
        for i in range(self.n_hidden):
            total -= log(i + 1.0)
        return total


cdef class PrintedRatio(Choice):
    """Births and deaths without K + 1 and K (item 2)."""

    cdef double log_death(self, Proposal* p, Py_ssize_t n_eligible) noexcept nogil:
        return -log(n_eligible)


cdef class WrongUp(Choice):
    """Intervals above a node counted as one more (item 3)."""

    cdef double _log_interval(self, Proposal* p) noexcept nogil:
        cdef double n = self.graph.n_nodes - self.graph.count_up_to(self.graph.order[p.child[0]])
        return Choice._log_interval(self, p) + log((n + 2.0) / (n + 1.0))


cdef class SingletonsStay(Edges):
    """Edges of singletons are no candidates (item 4)."""

    cdef double _log_prior_odds(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil:
        if self.graph.is_hidden(parent) and self.graph.n_children[parent] == 1:
            return -INFINITY
        return Edges._log_prior_odds(self, child, parent)


cdef class ObservedStay(Edges):
    """Nor those of observed nodes with one child (item 5)."""

    cdef double _log_prior_odds(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil:
        if not self.graph.is_hidden(parent) and self.graph.n_children[parent] == 1:
            return -INFINITY
        return Edges._log_prior_odds(self, child, parent)


cdef class OwnEdge(Edges):
    """Toggles that count the edge itself."""

    cdef double _log_prior_odds(self, Py_ssize_t child, Py_ssize_t parent) noexcept nogil:
        cdef Py_ssize_t m = self.graph.n_children[parent]
        if m <= 1:
            return Edges._log_prior_odds(self, child, parent)
        return self.graph.law.log_taken_odds(
            self.graph.is_hidden(parent), m, self.n_below[parent]
        )


cdef class WrongGap(Births):
    """The interval above the node instead of its own in a death (item 9)."""

    cdef double _log_return(self, Proposal* p) noexcept nogil:
        cdef Py_ssize_t n = self.graph.count_below(p.order)
        cdef double low = self.graph.order[self.graph.ascending[n - 1]], high = 1.0
        if n < self.graph.n_nodes:
            high = self.graph.order[self.graph.ascending[n]]
        return Births._log_return(self, p) + log((high - p.order) / (high - low))


cdef class NoDescent(Newborn):
    """Births that forget that nodes above have one more below."""

    cdef double draw(self, Proposal* p, Py_ssize_t slot, bitgen_t* rng) noexcept nogil:
        return Newborn.draw(self, p, slot, rng) + forgotten_descent(self.graph, slot)

    cdef double weigh(self, Proposal* p, Py_ssize_t slot) noexcept nogil:
        return Newborn.weigh(self, p, slot) + forgotten_descent(self.graph, slot)


cdef double forgotten_descent(Graph graph, Py_ssize_t slot) noexcept nogil:
    """What nodes above that are no parents lose by the node."""
    cdef Py_ssize_t i, other, n_below
    cdef double total = 0.0
    for i in range(graph.n_nodes):
        other = graph.ascending[i]
        if graph.order[other] > graph.order[slot] and not graph.edge[slot, other]:
            n_below = graph.count_below(graph.order[other])
            total += graph.log_node(other, n_below - 1) - graph.log_node(other, n_below)
    return total


cdef class NoJacobian(Newborn):
    """Of the children's precisions."""

    cdef double _log_jacobian(self, double with_it, double without) noexcept nogil:
        return 0.0


cdef class BirthsOfPrintedRatio(Births):
    CHOICE = PrintedRatio


cdef class BirthsOfWrongUp(Births):
    CHOICE = WrongUp


cdef class BirthsWithoutDescent(Births):
    NEWBORN = NoDescent


cdef class BirthsWithoutJacobian(Births):
    NEWBORN = NoJacobian


cdef class NoGrid(Activations):
    """Grid proposals always accepted."""

    cdef long long _update_on_grid(self, const Unit* unit, double spread) noexcept nogil:
        cdef Py_ssize_t i
        for i in range(unit.n):
            draw_on_grid(
                self.rng, self.mean[i], spread, self.linear[i], unit.quadratic, &self.own[i]
            )
            self.output[i] = quick_squash(self.own[i])
        return unit.n


cdef class NoLogScale(Network):
    """Trajectories without the Jacobian of log precisions."""

    cdef double log_of_log_precision(self, double r) noexcept nogil:
        return Network.log_of_log_precision(self, r) - r

    cdef double slope_of_log_precision(self, double r) noexcept nogil:
        return Network.slope_of_log_precision(self, r) - 1.0


cdef class KeptRivals(Trajectories):
    """Trajectories that leave the latents they integrate out."""

    cdef void _take_latents(self) noexcept nogil:
        cdef Py_ssize_t i
        self.latents.measure()
        for i in range(self.net.n_samples):
            if self.net.n_latents > 1:
                self.latents.set_lead(i, self.lead[i])
        self.latents.squash()


cdef class PlainMass(Hyperparameters):
    """The mass' rate without the concentration."""

    cdef double _exposure_of_mass(self) noexcept nogil:
        return self.graph.exposure(self.graph.law.concentration)


cdef class NoStretch(Affine):
    """Affine moves as if their inverse drew the same shift."""

    cdef double _log_inverse_shift(self, double c, double t) noexcept nogil:
        return 0.0


cdef class OneVariance(Network):
    """Weights from inputs as if from hidden nodes."""

    cdef double weight_precision_from(self, Py_ssize_t parent) noexcept nogil:
        return self.weight_precision
