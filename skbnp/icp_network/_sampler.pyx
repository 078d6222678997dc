"""One chain of a network of any shape under the Indian chefs process: its moves in their order.

Node i has a_ni ~ N(b_i + sum_k W_ki u_nk, 1 / rho_i) over its parents k, u = tanh(a / 2); graph and
orders follow Dallaire et al.'s process with the density and the ratios corrected. Sections and
equations (I...) of all kernels are those of doc/mathematics/icp_network.
"""

from skbnp.icp_network._network cimport Network
from skbnp.mcmc.chain cimport Chain
from skbnp.numerics cimport rng as draws

from skbnp.icp_network._child_regression import ChildRegression
from skbnp.icp_network._network import Network as NetworkState
from skbnp.icp_network.moves.activations import Activations
from skbnp.icp_network.moves.affine import Affine
from skbnp.icp_network.moves.births import Births
from skbnp.icp_network.moves.edges import Edges
from skbnp.icp_network.moves.hyperparameters import Hyperparameters
from skbnp.icp_network.moves.latents import Latents
from skbnp.icp_network.moves.missing import Missing
from skbnp.icp_network.moves.noises import Noises
from skbnp.icp_network.moves.orders import ExactOrders, ProposedOrders
from skbnp.icp_network.moves.rotations import Rotations
from skbnp.icp_network.moves.splits import Splits
from skbnp.icp_network.moves.swaps import Swaps
from skbnp.icp_network.moves.trajectories import Trajectories


cdef class Sampler(Chain):
    """One chain; ``sweep`` makes every move a constant number of times.

    Cost of a sweep over N rows, K nodes, E edges: O(N K^2) in matrix products for edges,
    O(N E n_hmc n_leapfrog) for trajectories, O(N E) for activations and slices, O(N K) for each of
    ``n_births`` attempts, O(K^2) for orders.
    """

    cdef bint _store_activations

    # What a chain is made of.
    STATE = NetworkState
    MOVES = {
        move.NAME: move
        for move in (
            Noises, Trajectories, Edges, Activations, Latents, Births, Splits, Swaps, ExactOrders,
            ProposedOrders, Affine, Rotations, Hyperparameters, Missing,
        )
    }

    def __init__(
        self, visible, prior, state, bit_generator, *, labels=None, moves="default",
        activation_update="grid", n_noise_slices=1, n_hmc=3, n_leapfrog=20, step_length=0.01,
        n_births=10, n_affine=0, n_rotations=0, n_settle=0, bint store_activations=False,
        log_jacobian=0.0, bint squashes_cells=False,
    ):
        """A chain on ``visible`` (n_samples, n_observed), NaN where missing.

        It starts from ``state``, a dict as ``_model`` describes it for ``prior``. ``labels`` are
        those that latents decide. ``step_length`` is that of the first trajectories, ``n_settle``
        the sweeps of warm-up without births. ``log_jacobian`` is added to the log joint.
        ``store_activations`` puts the hidden activations of all rows into draws. What sweeps say
        of missing cells are moments of activations where it ``squashes_cells``.
        """
        if moves not in ("default", "paper"):
            raise ValueError(f"moves must be 'default' or 'paper', got {moves!r}")
        net = self.STATE(
            visible, prior, state, labels, n_settle=n_settle, log_jacobian=log_jacobian
        )
        self._store_activations = store_activations
        make, regression, rng = self.MOVES, ChildRegression(net), bit_generator
        latents = make["latents"](net, rng) if net.n_latents else None
        sweep = [
            make["noises"](net, n_noise_slices, rng),
            make["trajectories"](net, latents, n_hmc, n_leapfrog, step_length, rng),
            make["edges"](net, regression, rng),
            make["activations"](net, activation_update, rng),
            *([latents] if latents is not None else []),
            make["births"](net, n_births, moves == "paper", rng),
        ]
        if moves == "paper":
            sweep += [make["proposed_orders"](net.graph, rng)]
        else:
            sweep += [
                make["splits"](net, rng),
                make["swaps"](net, regression, rng),
                make["orders"](net.graph, rng),
            ]
        if n_affine:
            sweep += [make["affine"](net, regression, n_affine, rng)]
        if n_rotations:
            sweep += [make["rotations"](net, regression, n_rotations, rng)]
        sweep += [make["hyper"](net, rng)]
        if len(net.cell_row):
            sweep += [make["missing"](net, rng, squashes_cells)]
        super().__init__(net, sweep, bit_generator)

    def adapt(self, step):
        """After a warm-up sweep: tune the trajectories' step; let births begin."""
        super().adapt(step)
        self.move("trajectories").adapt_length((step + 1.0) ** -0.5)

    def scalars(self):
        """Quantities traced beside the log joint."""
        return self.state.scalars()

    def draw(self):
        """Snapshot for prediction: the network, and hidden activations where they are stored."""
        state = self.state.as_state(self._store_activations)
        state.pop("visible", None)
        return state

    def data(self):
        """The data with NaN where missing, a copy."""
        return self.state.data()

    def visible_activations(self):
        """Pre-activations of the observed nodes, missing cells filled, (n_samples, n_observed)."""
        return self.state.visible()

    def simulate_data(self):
        """Draw the rows anew given the network (Geweke 2004), but for inputs.

        Hidden activations too: observed nodes may be their parents. Labels follow the latents.
        """
        cdef Network net = self.state
        with self.bit_generator.lock:
            net.simulate_rows(draws.borrow(self.bit_generator))
            net.relabel()
