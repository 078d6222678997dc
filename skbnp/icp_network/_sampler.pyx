"""One chain of a network of any shape under the Indian chefs process.

Node i has a_ni ~ N(b_i + sum_k W_ki u_nk, 1 / rho_i) over its parents k, u = tanh(a / 2); graph and
orders follow Dallaire et al.'s process with the density and the ratios corrected. Sections and
equations (I...) of all kernels are those of doc/mathematics/icp_network.
"""

from libc.math cimport NAN, sqrt

import numpy as np

from skbnp.icp_network._births cimport INTERVAL, ORPHAN, SINGLETON, WHOLE
from skbnp.icp_network._network cimport BROKEN_ORDERS, NO_MOVE
from skbnp.icp_network._reshapes cimport Reshapes
from skbnp.numerics cimport rng as draws

from skbnp.icp_network._model import checked_state
from skbnp.numerics.states import checked_count, entry, put_bit_generator

# Parts of a sweep; NO_MOVE while all is well.
MOVES = (
    *("", "noises", "trajectories", "edges", "activations", "latents", "births", "splits"),
    *("swaps", "orders", "affine", "rotations", "hyper"),
)
# Named wrong formulas, for the tests alone: each must make a test fail.
FAULTS = {
    "none": 0,
    "printed_constant": 1,      # section 9, item 1: 1 / H! in the density, ratios right
    "printed_ratio": 2,         # item 2: births and deaths without K + 1 and K
    "wrong_up": 3,              # item 3: intervals above a node counted as one more
    "singletons_stay": 4,       # item 4: edges of singletons are not candidates
    "observed_stay": 5,         # item 5: nor those of observed nodes with one child
    "wrong_gap": 6,             # item 9: the interval above the node instead of its own
    "own_edge": 7,              # toggles that count the edge itself
    "no_descent": 8,            # births that forget that nodes above have one more below
    "no_jacobian": 9,           # of the children's precisions
    "no_grid": 10,              # grid proposals always accepted
    "no_log_scale": 11,         # trajectories without the Jacobian of log precisions
    "plain_mass": 12,           # the mass' rate without the concentration
    "no_stretch": 13,           # affine moves as if their inverse drew the same shift
    "kept_rivals": 14,          # trajectories that leave the latents they integrate out
    "one_variance": 15,         # weights from inputs as if from hidden nodes
}
# Counters that a state carries along.
COUNTS = (
    *("n_flipped", "n_toggled", "n_births", "n_births_tried", "n_deaths", "n_deaths_tried"),
    *("n_splits", "n_splits_tried", "n_merges", "n_merges_tried", "n_swaps", "n_swaps_tried"),
    *("n_moved", "n_tried", "n_trajectories", "n_trajectories_tried", "n_orders"),
    *("n_orders_tried", "n_affine", "n_affine_tried", "n_rotations", "n_rotations_tried"),
    "n_guard_rejections",
)


cdef class Sampler(Reshapes):
    """One chain; ``sweep`` is its transition.

    Cost of a sweep over N rows, K nodes, E edges: O(N K^2) in matrix products for edges,
    O(N E n_hmc n_leapfrog) for trajectories, O(N E) for activations and slices, O(N K) for each of
    ``n_births`` attempts, O(K^2) for orders. All counts are constants.
    """

    cdef:
        bint _paper
        Py_ssize_t n_noise_slices, n_hmc, n_attempts, n_stretches, n_turns
        Py_ssize_t _n_settle                # sweeps of warm-up that are left without births
        double _log_jacobian
        bint _store_activations

    def __init__(
        self, visible, prior, state, bit_generator, *, labels=None, moves="default",
        activation_update="grid", Py_ssize_t n_noise_slices=1, Py_ssize_t n_hmc=3,
        Py_ssize_t n_leapfrog=20, Py_ssize_t n_births=10, Py_ssize_t n_affine=0,
        Py_ssize_t n_rotations=0, Py_ssize_t n_settle=0,
        bint store_activations=False, double log_jacobian=0.0, int fault=0,
    ):
        """A chain on ``visible`` (n_samples, n_observed), NaN where missing.

        It starts from ``state``, a dict as ``_model`` describes it for ``prior``. ``labels`` are
        those that latents decide. ``log_jacobian`` is added to the log joint. ``store_activations``
        puts the hidden activations of all rows into draws.
        """
        super().__init__(
            visible, prior, state, bit_generator, labels, activation_update, n_leapfrog, fault
        )
        if moves not in ("default", "paper"):
            raise ValueError(f"moves must be 'default' or 'paper', got {moves!r}")
        self._paper = moves == "paper"
        self.n_noise_slices, self.n_hmc, self.n_attempts = n_noise_slices, n_hmc, n_births
        self.n_stretches, self.n_turns = n_affine, n_rotations
        self._n_settle = n_settle
        self._log_jacobian, self._store_activations = log_jacobian, store_activations

    # -- the sampler contract -----------------------------------------------------------------

    def sweep(self):
        """One transition; every part is repeated a constant number of times."""
        with self._bit_generator.lock, nogil:
            self._update_all_noises()
            self._update_trajectories()
            self._update_edges()
            self._update_activations()
            self._update_latents()
            self._update_graph()
            self._update_all_orders()
            self._reshape()
            self._update_hyper()

    def sweep_only(self, str move):
        """One move alone, for the tests: a name of ``MOVES``."""
        with self._bit_generator.lock:
            if move == "noises":
                self._update_all_noises()
            elif move == "trajectories":
                self._update_trajectories()
            elif move == "edges":
                self._update_edges()
            elif move == "activations":
                self._update_activations()
            elif move == "latents":
                self._update_latents()
            elif move == "births":
                self._update_births()
            elif move == "splits":
                self._split_or_merge()
            elif move == "swaps":
                self._update_swaps()
            elif move == "orders":
                self._update_all_orders()
            elif move == "affine":
                self._stretch()
            elif move == "rotations":
                self._rotate()
            elif move == "hyper":
                self._update_hyper()
            else:
                raise ValueError(f"move must be one of {MOVES[1:]}, got {move!r}")

    def adapt(self, step):
        """After a warm-up sweep: tune the trajectories' step; let births begin."""
        self._adapt_step((step + 1.0) ** -0.5)
        self._n_settle = max(0, self._n_settle - 1)

    def log_joint(self):
        """log p(X, state), hidden nodes as a set, in the units that the Jacobian gives.

        NaN after a move has failed.
        """
        if self._broken != NO_MOVE:
            return NAN
        with self._bit_generator.lock:
            return self._log_prior() + self._log_data() + self._log_jacobian

    @property
    def broken_move(self):
        """Name of the move that first had no finite result, "" if none."""
        return ("", "edges", "activations", "orders")[self._broken]

    def scalars(self):
        """Quantities traced beside the log joint."""
        precision = np.asarray(self.precision)[:self.n_observed]
        modelled = np.asarray(self.role) == 0
        return {
            "n_hidden": float(self.n_hidden),
            "n_edges": float(self.n_edges),
            "depth": float(self._depth()),
            "mass": self.mass,
            "concentration": self.concentration,
            "observed_popularity": self.popularity,
            **({"log_observed_precision": float(np.mean(np.log(precision[modelled])))}
               if modelled.any() else {}),
        }

    def _depth(self):
        """Edges of the longest path."""
        cdef Py_ssize_t i, j, slot, other, longest = 0
        for i in range(self.n_nodes):
            slot = self.ascending[i]
            self.visit[slot] = 0
            for j in range(i):
                other = self.ascending[j]
                if self.edge[other, slot]:
                    self.visit[slot] = max(self.visit[slot], self.visit[other] + 1)
            longest = max(longest, self.visit[slot])
        return longest

    def draw(self):
        """Snapshot for prediction: the network, and hidden activations where they are stored."""
        state = self._state(self._store_activations)
        state.pop("visible", None)
        return state

    def get_state(self):
        """Everything that the next sweep depends on, bit for bit, as plain data."""
        return {
            **self._state(),
            **{name: getattr(self, name) for name in COUNTS},
            "step": self.step,
            "n_settle": self._n_settle,
            "bit_generator": self._bit_generator.state,
        }

    def set_state(self, state):
        """Restore what ``get_state`` returned.

        Raises ValueError, and leaves the chain as it was, for a state that does not fit.
        """
        counts = {name: checked_count(state, name) for name in COUNTS}
        n_settle = checked_count(state, "n_settle")
        step = entry(state, "step")
        if not isinstance(step, float) or not 0.0 < step < 1e3:
            raise ValueError(f"step of the state must be a number > 0, got {step!r}")
        checked = checked_state(state, self.prior, self.n_samples)
        put_bit_generator(self._bit_generator, state)
        self._put(checked)
        self.step, self._n_settle = step, n_settle
        for name, value in counts.items():
            setattr(self, name, value)
        self._broken = NO_MOVE

    def acceptance(self):
        """Move name -> (accepted, proposed) so far."""
        return {
            "edges": (self.n_flipped, self.n_toggled),
            "births": (self.n_births, self.n_births_tried),
            "deaths": (self.n_deaths, self.n_deaths_tried),
            "splits": (self.n_splits, self.n_splits_tried),
            "merges": (self.n_merges, self.n_merges_tried),
            "swaps": (self.n_swaps, self.n_swaps_tried),
            "activations": (self.n_moved, self.n_tried),
            "trajectories": (self.n_trajectories, self.n_trajectories_tried),
            **({"affine": (self.n_affine, self.n_affine_tried)} if self.n_stretches else {}),
            **({"rotations": (self.n_rotations, self.n_rotations_tried)} if self.n_turns else {}),
            **({"orders": (self.n_orders, self.n_orders_tried)} if self._paper else {}),
        }

    def data(self):
        """The data with NaN where missing, a copy."""
        X = self._visible()
        column = np.repeat(np.arange(self.n_observed), np.diff(self.cell_start))
        X[np.asarray(self.cell_row), column] = np.nan
        return X

    def visible_activations(self):
        """Pre-activations of the observed nodes, missing cells filled, (n_samples, n_observed)."""
        return self._visible()

    def simulate_data(self):
        """Draw the rows anew given the network (Geweke 2004), but for inputs.

        Hidden activations too: observed nodes may be their parents. Labels follow the latents.
        """
        cdef Py_ssize_t p, i, slot
        cdef double* a
        with self._bit_generator.lock:
            for p in range(self.n_nodes - 1, -1, -1):
                slot = self.ascending[p]
                if not self.has_law(slot):
                    continue
                a = &self.pre[slot, 0]
                for i in range(self.n_samples):
                    self.newborn[i] = draws.normal(self._rng) / sqrt(self.precision[slot])
                    a[i] = 0.0
                self._fill_residual(slot, &self.residual[slot, 0])
                for i in range(self.n_samples):
                    a[i] = self.newborn[i] - self.residual[slot, i]
                self._squash(slot)
        latents = np.asarray(self.pre)[self.first_latent:][:self.n_latents, :self.n_samples]
        if self.n_latents == 1:
            self.label = (latents[0] > 0.0).astype(np.intp)
        elif self.n_latents:
            self.label = latents.argmax(axis=0).astype(np.intp)

    # -- moves --------------------------------------------------------------------------------

    cdef int _update_all_orders(self) except -1 nogil:
        if self._update_orders(not self._paper) != 0:
            self._broken = BROKEN_ORDERS
        return 0

    cdef int _update_all_noises(self) except -1 nogil:
        cdef Py_ssize_t _
        for _ in range(self.n_noise_slices):
            self._update_noises()
        return 0

    cdef int _update_trajectories(self) except -1 nogil:
        cdef Py_ssize_t _
        for _ in range(self.n_hmc):
            self._move_along()
        return 0

    cdef int _update_graph(self) except -1 nogil:
        """All that changes the number of nodes, or edges and orders together."""
        if self._n_settle == 0:
            self._update_births()
            if not self._paper:
                self._split_or_merge()
        if not self._paper:
            self._update_swaps()
        return 0

    cdef int _update_births(self) except -1 nogil:
        """``n_attempts`` births or deaths, half of any orphans, a quarter each of the others."""
        cdef Py_ssize_t _
        cdef double u
        for _ in range(self.n_attempts):
            if self._paper:
                self._birth_or_death(INTERVAL)
                continue
            u = draws.uniform(self._rng)
            self._birth_or_death(ORPHAN if u < 0.5 else SINGLETON if u < 0.75 else WHOLE)
        return 0

    cdef int _update_swaps(self) except -1 nogil:
        cdef Py_ssize_t _
        for _ in range(3):
            self._swap()
        return 0

    cdef int _reshape(self) except -1 nogil:
        """The moves of whole units that are options."""
        cdef Py_ssize_t _
        for _ in range(self.n_stretches):
            self._stretch()
        for _ in range(self.n_turns):
            self._rotate()
        return 0
