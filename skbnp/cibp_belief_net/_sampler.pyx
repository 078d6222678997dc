"""One chain of the belief network: activations, edges, units, weights, hyperparameters.

Layer m's units have a_nk ~ N(b_k + sum_j W_jk tanh(a_nj / 2), 1 / nu_k) over their parents j of
layer m + 1 (any higher layer with skip connections); edges, widths and depth follow a cascading
Indian buffet process. Adams, Wallach & Ghahramani (2010), corrected where
doc/mathematics/cibp_belief_net says so; equation numbers are those of that page.
"""

import numpy as np

from skbnp.cibp_belief_net._laws cimport CONCENTRATION, MASS, WEIGHT_PRECISION
from skbnp.cibp_belief_net._state cimport Network
from skbnp.cibp_belief_net.moves.activations cimport LayerActivations
from skbnp.mcmc.chain cimport Chain

from skbnp.cibp_belief_net._state import Network as BeliefNetwork
from skbnp.cibp_belief_net.moves.activations import LayerActivations as ActivationsMove
from skbnp.cibp_belief_net.moves.hyperparameters import Hyperparameters
from skbnp.cibp_belief_net.moves.matched_births import MatchedBirths
from skbnp.cibp_belief_net.moves.missing import Missing
from skbnp.cibp_belief_net.moves.noncentred import NonCentred
from skbnp.cibp_belief_net.moves.row_clusters import RowClusters
from skbnp.cibp_belief_net.moves.rows import Rows

# What chains keep of each row for starts of prediction, at most so many rows.
MOST_ROWS_KEPT = 1000


cdef class Sampler(Chain):
    """One chain; ``sweep`` is its transition.

    Cost of a sweep for each layer of K children and p parents, N rows: O(N K p) and O(N p^2) in
    matrix products, O(N p^2) for each pass over activations, and what the steps of ``Rows`` say;
    O(N C K) for C row clusters.
    """

    cdef:
        Network net
        LayerActivations activations

    # What a chain is made of.
    STATE = BeliefNetwork
    MOVES = {
        move.NAME: move
        for move in (
            ActivationsMove, Rows, MatchedBirths, NonCentred, RowClusters, Missing,
            Hyperparameters,
        )
    }

    def __init__(
        self, visible, prior, state, bit_generator, *, activation_update="auto",
        n_activation_passes=2, n_tries=5, bint matched_births=True, double matched_rate=0.25,
        log_jacobian=0.0, squashes_cells=False, **options,
    ):
        """A chain on ``visible`` (n_samples, n_features), NaN where missing.

        It starts from ``state``, a dict as ``_model`` describes it for ``prior``. ``log_jacobian``
        is added to the log joint, ``matched_rate`` is that of ``MatchedBirths``; ``options`` are
        those of ``Rows``.
        """
        make, rng = self.MOVES, bit_generator
        self.net = net = self.STATE(visible, prior, state, log_jacobian)
        self.activations = make["activations"](
            net, rng, activation_update, n_activation_passes, n_tries
        )
        rows = make["rows"](net, rng, **options)
        moves = [
            self.activations,
            rows,
            *([make["matched_births"](net, rows, rng, matched_rate)] if matched_births else []),
            make["noncentred"](net, self.activations, rng),
            *([make["clusters"](net, rng)] if prior.row_clusters else []),
            make["missing"](net, rng, squashes_cells),
            make["hyper"](net, rng),
        ]
        super().__init__(net, moves, rng)

    def adapt(self, step):
        """After a warm-up sweep: tune the step of Hamiltonian Monte Carlo, ever more slowly."""
        self.activations.adapt_step(step)
        self.move("missing").adapt()

    def scalars(self):
        """Quantities traced beside the log joint."""
        cdef Network net = self.net
        d = net.n_visible
        if d + net.n_hidden == 0:
            return {}
        return {
            "n_layers": float(net.n_layers - 1),
            "n_units": float(net.n_hidden),
            "n_edges": float(np.asarray(net.n_children)[net.hidden_slots()].sum()),
            "width1": float(net.width(1)),
            "visible_edges": float(np.asarray(net.edge)[:d].sum()),
            "log_visible_precision": float(np.mean(np.log(np.asarray(net.precision)[:d]))),
            "log_weight_precision": float(np.log(net.hyper[WEIGHT_PRECISION, 0])),
            "mass0": net.hyper[MASS, 0],
            "concentration0": net.hyper[CONCENTRATION, 0],
            **({"n_clusters": float(net.n_clusters)} if net.laws.has_clusters else {}),
        }

    def draw(self):
        """Snapshot for prediction: the network, and the activations of some rows to start from."""
        cdef Network net = self.net
        state = net.parameters()
        rows = np.linspace(0, net.n_samples, min(net.n_samples, MOST_ROWS_KEPT), False)
        state["activations"] = np.ascontiguousarray(
            np.asarray(net.pre)[net.hidden_slots()[:, np.newaxis], rows.astype(np.intp)].T
        )
        if net.laws.has_clusters:
            state["cluster_count"] = np.array(net.cluster_count[:net.n_clusters])
            state["row_cluster"] = state["row_cluster"].astype(np.int32)
        return state

    def data(self):
        """The data with NaN where missing, a copy."""
        return self.net.data()

    def visible_activations(self):
        """Pre-activations of the visible units, missing cells filled, (n_samples, n_features)."""
        return self.net.visible_activations()

    def simulate_data(self):
        """Draw the pre-activations of the visible units anew given the state (Geweke 2004)."""
        with self.bit_generator.lock:
            self.net.draw_visible(self.activations.rng)
