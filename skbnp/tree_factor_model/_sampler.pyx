"""One chain of the tree factor model: paths, leaf means, scores, loadings, precisions.

b_i ~ nested CRP; y_i | b_i, x_i ~ N(m_b + sum_l x_il d_{b_l}, (kappa_b Lambda)^-1), x_il ~
N(0, 1 / psi_{b_i h}); loadings shrink down the tree by a multiplicative gamma process. Missing
entries are integrated out.
"""

from libc.math cimport INFINITY, NAN, exp, expm1, fmax, fmin, isfinite, log, sqrt
from libc.stdint cimport uint64_t
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.numerics cimport linalg
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma
from skbnp.processes cimport multiplicative_gamma as shrinkage
from skbnp.processes cimport ncrp
from skbnp.tree_factor_model._rows cimport CHUNK, Rows

from skbnp.tree_factor_model._model import (
    BRANCH_SCALES,
    NOISES,
    checked_count,
    checked_state,
    entry,
)


cdef enum:
    ADAPT_EVERY = 10        # warm-up sweeps between changes of the depth
    REGULAR = -2            # owner of a leaf that holds rows, in the collapsed pass
    DEAD = -3               # owner of a leaf that nobody may choose any more
    # What a slice may reach for, far beyond any use: a concentration gone astray would not end.
    MAX_STICKS = 1_000_000
    MAX_FRESH_NODES = 100_000

# An axis whose signal-to-noise is below this share of what noise alone gives is pruned.
cdef double PRUNE_TOLERANCE = 0.1

# Moves, in the order of a sweep; NO_MOVE while all is well.
MOVES = ("", "paths", "leaf_means", "scores", "loadings", "precisions", "concentration")

cdef enum Move:
    NO_MOVE
    PATHS
    LEAF_MEANS
    SCORES
    LOADINGS
    PRECISIONS
    CONCENTRATION

PATH_UPDATES = ("slice", "collapsed")
# What a fresh path brings along in the collapsed update (spec 4.3).
BIRTHS = ("integrated", "prior")

# Named wrong formulas, for the tests alone: each must make a test fail.
FAULTS = {
    "none": 0,
    "children_only": 1,             # erratum 1: the multipliers' rule as the paper prints it
    "descendants_only": 2,          # the subtree without its root
    "children_shape": 3,            # the right rate, but the shape of the children
    "no_determinant": 4,            # path densities without |R|
    "keeps_own_count": 5,           # collapsed paths that count the row itself
    "no_new_paths": 6,              # slice paths over occupied leaves only
    "flat_scores": 7,               # scores with independent noise
    "unweighted_rows": 8,           # loadings without the branches' noise scales
    "mean_given_scores": 9,         # leaf means with the noise of y given x, but x integrated
    "fills_in": 10,                 # loadings without the Schur complements
    "blind_birth": 11,              # new loadings that do not look at the row they are born for
}

cdef enum Fault:
    NONE
    CHILDREN_ONLY
    DESCENDANTS_ONLY
    CHILDREN_SHAPE
    NO_DETERMINANT
    KEEPS_OWN_COUNT
    NO_NEW_PATHS
    FLAT_SCORES
    UNWEIGHTED_ROWS
    MEAN_GIVEN_SCORES
    FILLS_IN
    BLIND_BIRTH


cdef class Sampler:
    """State of one chain.

    Invariant between moves: nodes 0..n_nodes-1 and leaves 0..n_leaves-1 hold rows, a parent comes
    before its children, ``node_path[n]`` lists the nodes from level 1 down to n, ``node_count``
    and ``leaf_count`` count the rows of ``branch``, ``order[leaf_start[b]:leaf_start[b + 1]]`` are
    the rows of leaf b, sorted by pattern, and ``log_tau`` is the sum of log ``multiplier`` down
    the path. Within a path move further slots hold fresh nodes and leaves.

    Rows with the same observed entries share a pattern, and all that depends on leaf and pattern
    alone is done once for them.

    Cost of a sweep for N complete rows, P features, B leaves, K nodes, depth L: O(N B L (P + L))
    for the paths, O(N L (P + L)) for scores and residuals, O(P K L^2) for the loadings. A pattern
    of its own costs a row O(B L^2 (P + L)).
    """

    cdef:
        object _bit_generator                   # owner of *_rng, must outlive it
        bitgen_t* _rng
        readonly object prior
        readonly str path_update
        readonly Py_ssize_t n_samples, n_features, max_depth, depth, n_nodes, n_leaves
        Py_ssize_t _n_node_slots, _n_leaf_slots     # in use, fresh ones included
        bint _sample_concentration, _has_noise_scale, _has_score_precision, _whole, _isotropic
        bint _sample_noise_rate, _adapt_depth, _by_slices, _integrated
        double _root_shape, _shape, _df, _noise_shape, _noise_rate
        double _noise_rate_shape, _noise_rate_rate
        double _mean_shape, _mean_rate, _score_shape, _scale_shape
        double _concentration_shape
        double _log_jacobian
        int _fault
        Move _broken
        Py_ssize_t _n_moved, _n_proposed        # rows whose leaf changed, rows drawn

        Rows rows

        # Tree, (n_node_slots, ...) and (n_leaf_slots, ...).
        Py_ssize_t[::1] parent, level, node_count
        Py_ssize_t[:, ::1] node_path            # (n_node_slots, max_depth)
        double[:, ::1] loading, local           # (n_node_slots, n_features)
        double[::1] multiplier, log_tau
        Py_ssize_t[::1] leaf_node, leaf_count
        double[:, ::1] leaf_mean                # (n_leaf_slots, n_features)
        double[:, ::1] psi                      # (n_leaf_slots, max_depth)
        double[::1] kappa

        # The rest of the state.
        double[::1] xi, noise                   # (n_features,)
        double[::1] alpha                       # (max_depth + 1,)
        Py_ssize_t[::1] branch_level            # (n_branch_levels,)
        double[::1] concentration_rate          # (n_branch_levels,)
        double noise_rate
        Py_ssize_t[::1] branch                  # (n_samples,)
        double[:, ::1] score                    # (n_samples, max_depth)
        Py_ssize_t[::1] order, leaf_start

        # Scratch of the path moves.
        double[::1] node_log_mass, node_gamma, node_rest, node_total    # (n_node_slots + 1,), n + 1
        double[::1] leaf_log_mass               # (n_leaf_slots,)
        double[::1] log_slice, best             # (n_samples,)
        double least_log_slice
        Py_ssize_t n_sticks                     # broken in this move
        Py_ssize_t[::1] choice                  # (n_samples,)
        unsigned char[::1] needed               # (n_node_slots,)
        Py_ssize_t[::1] new_node, n_children    # (n_node_slots + 1,)
        Py_ssize_t[::1] new_leaf                # (n_leaf_slots,)
        double[:, ::1] log_density              # (n_leaf_slots, n_samples), collapsed pass alone
        double[::1] log_weight                  # (n_leaf_slots,)
        double[:, ::1] tail_score               # (n_leaf_slots, max_depth), of auxiliaries
        double[::1] tail_precision, zeros       # (n_features,)
        Py_ssize_t[::1] owner, auxiliary        # (n_leaf_slots,), (n_node_slots + 1,)
        # Scratch of the loadings.
        double[:, ::1] node_gram, node_gram_of  # (n_node_slots, max_depth)
        double[:, ::1] leaf_gram, leaf_gram_of  # (n_leaf_slots, max_depth + 1)
        double[:, ::1] node_row, leaf_row
        double[:, ::1] node_side, leaf_side     # (slots, n_features) right-hand sides
        double[::1] node_rhs, leaf_rhs
        double[::1] gram, side                  # (max_depth, max_depth), (max_depth, n_features)
        double[:, ::1] rss                      # (n_leaf_slots, n_features)
        double[::1] weighted_square, node_scratch, vector, other_vector
        double[::1] transposed                  # (n_features, max_depth)

    def __init__(
        self, X, prior, state, bit_generator, *, path_update="slice", birth="integrated",
        adapt_depth=True, double log_jacobian=0.0, int fault=0,
    ):
        """A chain on X (n_samples, n_features) in the units of ``prior``, a ``_model.Prior``.

        It starts from ``state``, a dict as ``_model`` describes it. ``log_jacobian`` is added to
        the log joint.
        """
        if path_update not in PATH_UPDATES:
            raise ValueError(f"path_update must be one of {PATH_UPDATES}, got {path_update!r}")
        if birth not in BIRTHS:
            raise ValueError(f"birth must be one of {BIRTHS}, got {birth!r}")
        if prior.branch_scale not in BRANCH_SCALES:
            raise ValueError(
                f"branch_scale must be one of {BRANCH_SCALES}, got {prior.branch_scale!r}"
            )
        if prior.noise not in NOISES:
            raise ValueError(f"noise must be one of {NOISES}, got {prior.noise!r}")
        self._bit_generator = bit_generator
        self._rng = draws.borrow(bit_generator)
        self.prior = prior
        self.path_update = path_update
        self._by_slices = path_update == "slice"
        self._integrated = birth == "integrated"
        self._adapt_depth = adapt_depth
        self._log_jacobian = log_jacobian
        self._fault = fault
        self.max_depth = prior.max_depth
        self._read_prior(prior)
        self.rows = Rows(X, prior.max_depth)
        self.n_samples, self.n_features = X.shape
        self._allocate()
        self._put(checked_state(state, prior, self.n_samples))

    def _read_prior(self, prior):
        self._sample_concentration = prior.concentration is None
        self._has_noise_scale = prior.has_noise_scale
        self._has_score_precision = prior.has_score_precision
        self._whole = prior.branch_scale == "whole"
        self._isotropic = prior.noise == "isotropic"
        self._sample_noise_rate = prior.noise_rate_prior is not None
        self._root_shape, self._shape = prior.shrinkage_root, prior.shrinkage
        self._df = prior.local_shrinkage_df
        self._noise_shape, self._noise_rate = prior.noise_prior
        if self._sample_noise_rate:
            self._noise_rate_shape, self._noise_rate_rate = prior.noise_rate_prior
        self._mean_shape, self._mean_rate = prior.mean_precision_prior
        self._score_shape = prior.score_precision_prior
        self._scale_shape = prior.noise_scale_prior
        self._concentration_shape = prior.concentration_prior[0]
        self.branch_level = np.array(prior.branch_levels, dtype=np.intp)
        self.concentration_rate = np.array(prior.concentration_rates, dtype=np.float64)

    def _allocate(self):
        n, p, depth = self.n_samples, self.n_features, self.max_depth
        self.xi, self.noise = np.empty(p), np.empty(p)
        self.alpha = np.zeros(depth + 1)
        self.branch = np.zeros(n, dtype=np.intp)
        self.score = np.zeros((n, depth))
        self.order = np.empty(n, dtype=np.intp)
        self.vector, self.other_vector = np.empty(p), np.empty(p)
        self.tail_precision, self.zeros = np.empty(p), np.zeros(p)
        self.side, self.gram = np.empty(depth * p), np.empty(depth * depth)
        self.transposed = np.empty(p * depth)
        self.log_slice, self.best = np.empty(n), np.empty(n)
        self.choice = np.empty(n, dtype=np.intp)
        self.parent = self.level = self.node_count = self.auxiliary = np.zeros(0, dtype=np.intp)
        self.leaf_node = self.leaf_count = self.owner = np.zeros(0, dtype=np.intp)
        self.leaf_start = np.zeros(0, dtype=np.intp)
        self.node_path = np.zeros((0, depth), dtype=np.intp)
        self.multiplier = self.log_tau = self.kappa = self.leaf_log_mass = np.zeros(0)
        self.node_log_mass = self.node_gamma = self.node_rest = self.node_total = np.zeros(0)
        self.loading = self.local = self.leaf_mean = np.zeros((0, p))
        self.psi = np.zeros((0, depth))
        self.log_density = np.zeros((0, n))
        self.tail_score = np.zeros((0, depth))
        self._reserve(depth, 1)

    # -- the sampler contract -----------------------------------------------------------------

    def sweep(self):
        """One transition: paths and leaf means without scores, then scores and all that they see.

        The first two integrate the scores out, so that nothing may come between them and the
        fresh scores.
        """
        with self._bit_generator.lock, nogil:
            self._update_paths()
            if self._whole:
                self._update_whole_scale()
            self._update_leaf_means()
            self._update_scores()
            self._update_score_precisions()
            self._update_loadings()
            self._update_precisions()
            self._update_concentration()

    def sweep_only(self, str move):
        """One move alone, for the tests: a name of ``MOVES``.

        "paths" and "leaf_means" bring fresh scores along.
        """
        with self._bit_generator.lock:
            if move == "paths":
                self._update_paths()
                self._update_scores()
            elif move == "leaf_means":
                if self._whole:
                    self._update_whole_scale()
                self._update_leaf_means()
                self._update_scores()
            elif move == "scores":
                self._update_scores()
            elif move == "loadings":
                self._update_score_precisions()
                self._update_loadings()
            elif move == "precisions":
                self._update_precisions()
            elif move == "concentration":
                self._update_concentration()
            else:
                raise ValueError(f"move must be one of {MOVES[1:]}, got {move!r}")

    def adapt(self, step):
        """After a warm-up sweep: let the depth below the last branching level follow the data.

        A last level that no branch needs goes; when all levels are needed one is added, from the
        prior. Branches keep a common depth: one that could be cut alone would never grow back
        when it is born again, and the chain would forget its own law.
        """
        if not self._adapt_depth or (step + 1) % ADAPT_EVERY or self._broken != NO_MOVE:
            return
        with self._bit_generator.lock:
            lowest = max(1, max(self.branch_level, default=-1) + 1)
            n_cut = 0
            while self.depth > lowest and self._last_level_is_idle():
                self._cut_last_level()
                n_cut += 1
            if n_cut == 0 and lowest <= self.depth < self.max_depth:
                self._add_level()

    def log_joint(self, scores="integrated"):
        """log p(X, state), scores "integrated" out or an "explicit" part of the state.

        In the units that the Jacobian gives; NaN after a move has failed.
        """
        if self._broken != NO_MOVE:
            return NAN
        with self._bit_generator.lock:
            total = self._log_prior() + self._log_jacobian
            if scores == "integrated":
                return total + self._log_data()
            return total + self._log_data_given_scores()

    @property
    def broken_move(self):
        """Name of the move that first had no finite result, "" if none."""
        return MOVES[self._broken]

    def scalars(self):
        """Quantities traced beside the log joint."""
        noise = np.asarray(self.noise)
        return {
            "n_branches": float(self.n_leaves),
            "n_nodes": float(self.n_nodes),
            "depth": float(self.depth),
            "largest_branch": float(max(self.leaf_count[b] for b in range(self.n_leaves))),
            "log_noise_precision": float(np.mean(np.log(noise))),
            "log_mean_precision": float(np.mean(np.log(self.xi))),
            **{
                f"concentration{k}": self.alpha[self.branch_level[k]]
                for k in range(self.branch_level.shape[0])
            },
        }

    def draw(self):
        """Snapshot for prediction: the tree, its parameters and the leaf of each row."""
        state = self._state()
        for name in ("local_precision", "scores", "mean_precision", "noise_rate"):
            del state[name]
        state["leaf_count"] = np.bincount(state["branch"])
        state["branch"] = state["branch"].astype(
            np.uint8 if self.n_leaves <= 256 else np.uint16 if self.n_leaves <= 65536 else np.int32
        )
        return state

    def get_state(self):
        """Everything that the next sweep depends on, bit for bit, as plain data."""
        return {
            **self._state(),
            "n_moved": self._n_moved,
            "n_proposed": self._n_proposed,
            "bit_generator": self._bit_generator.state,
        }

    def set_state(self, state):
        """Restore what ``get_state`` returned.

        Raises ValueError, and leaves the chain as it was, for a state that does not fit.
        """
        moved, proposed = checked_count(state, "n_moved"), checked_count(state, "n_proposed")
        checked = checked_state(state, self.prior, self.n_samples)
        before = self._bit_generator.state
        try:
            self._bit_generator.state = entry(state, "bit_generator")
        except (TypeError, KeyError, ValueError, OverflowError) as error:
            self._bit_generator.state = before
            raise ValueError(f"state of the bit generator does not fit: {error}") from error
        self._put(checked)
        self._n_moved, self._n_proposed = moved, proposed
        self._broken = NO_MOVE

    def acceptance(self):
        """Move name -> (accepted, proposed) so far: rows whose leaf changed, rows drawn."""
        return {"paths": (self._n_moved, self._n_proposed)}

    def simulate_data(self):
        """Draw the observed entries anew given the state, scores included (Geweke 2004)."""
        state = self._state()
        branch, paths = state["branch"], np.asarray(self.node_path)[state["leaf_node"]]
        x, d = state["scores"], state["loadings"][paths[branch][:, :state["scores"].shape[1]]]
        mean = state["leaf_mean"][branch] + np.einsum("il,ilp->ip", x, d)
        sd = 1 / np.sqrt(state["noise_scale"][branch][:, np.newaxis] * np.asarray(self.noise))
        with self._bit_generator.lock:
            eps = np.array(
                [draws.normal(self._rng) for _ in range(self.n_samples * self.n_features)]
            )
        seen = np.asarray(self.rows.is_observed)[np.asarray(self.rows.pattern)]
        np.asarray(self.rows.X)[:] = np.where(seen, mean + sd * eps.reshape(mean.shape), 0.0)

    def data(self):
        """The data with NaN where missing, a copy."""
        seen = np.asarray(self.rows.is_observed)[np.asarray(self.rows.pattern)]
        return np.where(seen, self.rows.X, np.nan)

    def _state(self):
        """The state as ``_model`` describes it, copies."""
        nodes, leaves, levels = (slice(n) for n in (self.n_nodes, self.n_leaves, self.depth))
        return {
            "parent": np.asarray(self.parent)[nodes].copy(),
            "level": np.asarray(self.level)[nodes].copy(),
            "loadings": np.asarray(self.loading)[nodes].copy(),
            "local_precision": np.asarray(self.local)[nodes].copy(),
            "multiplier": np.asarray(self.multiplier)[nodes].copy(),
            "leaf_node": np.asarray(self.leaf_node)[leaves].copy(),
            "leaf_mean": np.asarray(self.leaf_mean)[leaves].copy(),
            "score_precision": np.asarray(self.psi)[leaves, levels].copy(),
            "noise_scale": np.asarray(self.kappa)[leaves].copy(),
            "mean_precision": np.array(self.xi),
            "noise_precision": np.array(self.noise),
            "noise_rate": self.noise_rate,
            "concentration": np.asarray(self.alpha)[:self.depth + 1].copy(),
            "branch": np.array(self.branch),
            "scores": np.asarray(self.score)[:, levels].copy(),
        }

    def _put(self, state):
        """Take a checked state over."""
        self.depth = len(state["concentration"]) - 1
        self.n_nodes, self.n_leaves = len(state["parent"]), len(state["leaf_node"])
        self._reserve(self.n_nodes, self.n_leaves)
        nodes, leaves, levels = (slice(n) for n in (self.n_nodes, self.n_leaves, self.depth))
        np.asarray(self.parent)[nodes] = state["parent"]
        np.asarray(self.level)[nodes] = state["level"]
        np.asarray(self.loading)[nodes] = state["loadings"]
        np.asarray(self.local)[nodes] = state["local_precision"]
        np.asarray(self.multiplier)[nodes] = state["multiplier"]
        np.asarray(self.leaf_node)[leaves] = state["leaf_node"]
        np.asarray(self.leaf_mean)[leaves] = state["leaf_mean"]
        np.asarray(self.kappa)[leaves] = state["noise_scale"]
        np.asarray(self.psi)[leaves, levels] = state["score_precision"]
        np.asarray(self.xi)[:] = state["mean_precision"]
        np.asarray(self.noise)[:] = state["noise_precision"]
        np.asarray(self.branch)[:] = state["branch"]
        self.noise_rate = state["noise_rate"]
        np.asarray(self.alpha)[:] = 0.0
        np.asarray(self.alpha)[:self.depth + 1] = state["concentration"]
        np.asarray(self.score)[:, levels] = state["scores"]
        for node in range(self.n_nodes):
            self._link(node)
        self._n_node_slots, self._n_leaf_slots = self.n_nodes, self.n_leaves
        self._compress()

    # -- paths --------------------------------------------------------------------------------

    cdef int _update_paths(self) except -1 nogil:
        """Draw b_i given parameters and, of the scores, nothing."""
        if self.branch_level.shape[0] == 0 or self.n_samples < 2:
            return 0
        if self._by_slices:
            self._slice_paths()
        else:
            self._collapsed_paths()
        self._n_proposed += self.n_samples
        return self._compress()

    cdef int _slice_paths(self) except -1 nogil:
        """Weights given the paths, a slice under each row's weight, paths given the slices.

        Weights of the children of a node are Dirichlet(N_1, ..., N_C, alpha); the last share is
        broken into sticks as long as a slice reaches them, with parameters from the prior.
        """
        cdef uint64_t key = draws.bits(self._rng)
        cdef double uniforms[2]
        cdef Py_ssize_t i, b
        self._weigh_children()
        self.least_log_slice = INFINITY
        for i in range(self.n_samples):
            draws.philox_uniforms(key, 0, i, uniforms)
            self.log_slice[i] = self.leaf_log_mass[self.branch[i]] + log(uniforms[0])
            self.least_log_slice = fmin(self.least_log_slice, self.log_slice[i])
            self.best[i] = -INFINITY
            self.choice[i] = -1
        if self._fault != NO_NEW_PATHS:
            self._grow_fresh_paths()
        for b in range(self._n_leaf_slots):
            self._offer_leaf(b, key)
        for i in range(self.n_samples):
            if self.choice[i] < 0:
                return self._break(PATHS)
            self._n_moved += self.choice[i] != self.branch[i]
        for i in range(self.n_samples):
            self.branch[i] = self.choice[i]
        return 0

    cdef void _weigh_children(self) noexcept nogil:
        """Draw the weights of all children given their counts: logs of the masses they carry."""
        cdef Py_ssize_t n, b, above
        cdef double alpha
        for n in range(-1, self.n_nodes):
            alpha = self.alpha[0 if n < 0 else self.level[n]]
            self.node_rest[n + 1] = draws.gamma(self._rng, alpha) if alpha > 0.0 else 0.0
            self.node_total[n + 1] = self.node_rest[n + 1]
        for n in range(self.n_nodes):
            self.node_gamma[n + 1] = 1.0
            if self.alpha[self.level[n] - 1] > 0.0:
                self.node_gamma[n + 1] = draws.gamma(self._rng, self.node_count[n])
            self.node_total[self.parent[n] + 1] += self.node_gamma[n + 1]
        for b in range(self.n_leaves):
            self.leaf_log_mass[b] = 1.0
            if self.alpha[self.depth] > 0.0:
                self.leaf_log_mass[b] = draws.gamma(self._rng, self.leaf_count[b])
            self.node_total[self.leaf_node[b] + 1] += self.leaf_log_mass[b]
        self.node_log_mass[0] = 0.0
        for n in range(self.n_nodes):
            above = self.parent[n] + 1
            self.node_log_mass[n + 1] = self.node_log_mass[above] + log(
                self.node_gamma[n + 1] / self.node_total[above]
            )
        for b in range(self.n_leaves):
            above = self.leaf_node[b] + 1
            self.leaf_log_mass[b] = self.node_log_mass[above] + log(
                self.leaf_log_mass[b] / self.node_total[above]
            )

    cdef int _grow_fresh_paths(self) except -1 nogil:
        """The unoccupied part of the tree as far as a slice reaches into it.

        Masses first, then parameters from the prior where a leaf needs them.
        """
        cdef Py_ssize_t n, b, h, n_nodes = self.n_nodes, n_leaves = self.n_leaves
        self.n_sticks = 0
        for n in range(-1, n_nodes):
            h = 0 if n < 0 else self.level[n]
            if self.alpha[h] > 0.0:
                self._break_sticks(n, h, self.node_log_mass[n + 1] + log(
                    self.node_rest[n + 1] / self.node_total[n + 1]
                ))
        for n in range(n_nodes, self._n_node_slots):
            self.needed[n] = 0
        for b in range(n_leaves, self._n_leaf_slots):
            for h in range(self.depth):
                self.needed[self.node_path[self.leaf_node[b], h]] = 1
        for n in range(n_nodes, self._n_node_slots):
            if self.needed[n]:
                self._draw_node(n)
        for b in range(n_leaves, self._n_leaf_slots):
            self._draw_leaf(b)
        return 0

    cdef int _break_sticks(
        self, Py_ssize_t node, Py_ssize_t level, double log_mass
    ) except -1 nogil:
        """Fresh children of a node share a mass by sticks v ~ Beta(1, alpha)."""
        cdef double log_left, log_child
        while log_mass > self.least_log_slice:
            self.n_sticks += 1
            if self.n_sticks > MAX_STICKS or self._n_node_slots > self.n_nodes + MAX_FRESH_NODES:
                return self._break(PATHS)
            log_left = log(draws.uniform(self._rng)) / self.alpha[level]
            log_child = log_mass + log(-expm1(log_left))
            log_mass += log_left
            if log_child > self.least_log_slice:
                self._grow(node, level, log_child)
        return 0

    cdef int _grow(self, Py_ssize_t node, Py_ssize_t level, double log_mass) except -1 nogil:
        """A fresh child of a node, and its own children."""
        if level == self.depth:
            node = self._new_leaf(node)
            self.leaf_log_mass[node] = log_mass
            return 0
        node = self._new_node(node)
        if self.alpha[level + 1] > 0.0:
            return self._break_sticks(node, level + 1, log_mass)
        return self._grow(node, level + 1, log_mass)

    cdef int _offer_leaf(self, Py_ssize_t b, uint64_t key) except -1 nogil:
        """Let all rows whose slice is below the mass of leaf b consider it."""
        cdef Py_ssize_t g, t, i, n
        cdef bint prepared
        for g in range(self.rows.n_patterns):
            n = 0
            prepared = False
            for t in range(self.rows.pattern_start[g], self.rows.pattern_start[g + 1]):
                i = self.rows.by_pattern[t]
                # A row's own leaf is always there, whatever the logarithms round to.
                if self.log_slice[i] < self.leaf_log_mass[b] or self.branch[i] == b:
                    self.rows.chosen[n] = i
                    n += 1
                if n > 0 and (n == CHUNK or t + 1 == self.rows.pattern_start[g + 1]):
                    if not prepared and self._prepare(b, g) != 0:
                        return self._break(PATHS)
                    prepared = True
                    self.rows.whiten(g, n)
                    self._offer(b, g, n, key)
                    n = 0
        return 0

    cdef void _offer(self, Py_ssize_t b, Py_ssize_t g, Py_ssize_t n, uint64_t key) noexcept nogil:
        """Keep the leaf with the largest log density plus Gumbel noise: a categorical draw.

        The noise depends on row and leaf alone, whichever order they are visited in.
        """
        cdef double uniforms[2]
        cdef double value
        cdef Py_ssize_t t, i
        for t in range(n):
            i = self.rows.chosen[t]
            draws.philox_uniforms(key, 1 + b, i, uniforms)
            value = self._log_density_of(g, self.rows.square[t]) - log(-log(uniforms[0]))
            if value > self.best[i]:
                self.best[i] = value
                self.choice[i] = b

    cdef int _collapsed_paths(self) except -1 nogil:
        """Rows one by one, weights integrated out: Neal (2000), algorithm 8, at every node.

        Each occupied node that may branch has an auxiliary, a fresh path down to a leaf with
        parameters from the prior. A row alone on the tail of its path turns that tail into the
        auxiliary of the node where it departs. An auxiliary stays until it is taken: given all
        else its law is the prior's, whether drawn again for each row or not.

        birth="prior": an auxiliary has loadings and a mean. "integrated": it has scores instead,
        loadings and mean are integrated out and drawn once a row has taken it, given that row.
        A row alone lends its tail the scores that it would have there.
        """
        cdef Py_ssize_t n, b, t, i
        self._need_columns()
        for b in range(self.n_leaves):
            self.owner[b] = REGULAR
            if self._fill_column(b) != 0:
                return self._break(PATHS)
        for n in range(-1, self.n_nodes):
            self.auxiliary[n + 1] = -1
        for n in range(-1, self.n_nodes):
            if self._new_auxiliary(n) != 0:
                return self._break(PATHS)
        for i in range(self.n_samples):
            self.choice[i] = i
        draws.shuffle(self._rng, &self.choice[0], self.n_samples)
        for t in range(self.n_samples):
            if self._redraw_path(self.choice[t]) != 0:
                return self._break(PATHS)
        return 0

    cdef int _redraw_path(self, Py_ssize_t i) except -1 nogil:
        """Draw b_i given all other paths. Non-zero: no leaf had a finite weight."""
        cdef Py_ssize_t own = self.branch[i], b, departs = -1, h, node
        cdef bint alone
        self._count_row(own, -1)
        alone = self.leaf_count[own] == 0
        if alone:
            for h in range(self.depth):
                node = self.node_path[self.leaf_node[own], h]
                if self.node_count[node] == 0:
                    break
                departs = node
        for b in range(self._n_leaf_slots):
            self.log_weight[b] = -INFINITY
            if alone and b == own:
                self.log_weight[b] = self._log_path_weight(b, departs)
                if self._integrated:
                    self.log_density[b, i] = self._log_density_of_tail(b, departs, i)
            elif self.owner[b] == REGULAR:
                self.log_weight[b] = self._log_path_weight(b, REGULAR)
            elif self.owner[b] != DEAD and not (alone and self._is_hidden(self.owner[b], departs)):
                self.log_weight[b] = self._log_path_weight(b, self.owner[b])
            if self.log_weight[b] > -INFINITY:
                self.log_weight[b] += self.log_density[b, i]
                if self._fault == KEEPS_OWN_COUNT and b == own and not alone:
                    self.log_weight[b] += log((self.leaf_count[b] + 1.0) / self.leaf_count[b])
        b = draws.categorical_from_logs(self._rng, &self.log_weight[0], self._n_leaf_slots)
        if b < 0:
            self._count_row(own, 1)
            return 1
        if alone and b != own:
            self._make_auxiliary(own, departs)
            if self._integrated and self._fill_column(own) != 0:
                return 1
        self._count_row(b, 1)
        self.branch[i] = b
        self._n_moved += b != own
        if self.owner[b] == REGULAR:
            return 0
        # Loadings before the auxiliaries below them, which share them. A row that has stayed
        # alone keeps its own: they are a draw given the scores that were drawn given them.
        if self._integrated and self._draw_tail(b, self.owner[b], i) != 0:
            return 1
        if self._replace_auxiliary(b) != 0:
            return 1
        return self._fill_column(b) if self._integrated else 0

    cdef bint _is_hidden(self, Py_ssize_t node, Py_ssize_t departs) noexcept nogil:
        """Whether an auxiliary is out of the choice while a row is alone on its tail.

        The tail stands in for that of the node where it departs; its own nodes are empty.
        """
        return node == departs or (node >= 0 and self.node_count[node] == 0)

    cdef double _log_path_weight(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil:
        """Log nCRP predictive of a leaf, a new path below ``departs`` unless that is REGULAR."""
        cdef Py_ssize_t k, h, above, last = self.depth + 1
        cdef double total = 0.0, n_above, n_child
        if departs != REGULAR:
            last = 0 if departs < 0 else self.level[departs]
        for k in range(self.branch_level.shape[0]):
            h = self.branch_level[k]
            if h > last:
                break
            above = -1 if h == 0 else self.node_path[self.leaf_node[b], h - 1]
            n_above = self.n_samples - 1 if above < 0 else self.node_count[above]
            if h == last:
                return total + log(self.alpha[h] / (n_above + self.alpha[h]))
            if h == self.depth:
                n_child = self.leaf_count[b]
            else:
                n_child = self.node_count[self.node_path[self.leaf_node[b], h]]
            total += log(n_child / (n_above + self.alpha[h]))
        return total

    cdef void _count_row(self, Py_ssize_t b, Py_ssize_t change) noexcept nogil:
        cdef Py_ssize_t h
        self.leaf_count[b] += change
        for h in range(self.depth):
            self.node_count[self.node_path[self.leaf_node[b], h]] += change

    cdef void _make_auxiliary(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil:
        """Turn a leaf that has lost its only row into the auxiliary of the node it departs from."""
        cdef Py_ssize_t h, node
        for h in range(self.depth):
            node = self.node_path[self.leaf_node[b], h]
            if self.node_count[node] == 0 and self.auxiliary[node + 1] >= 0:
                self.owner[self.auxiliary[node + 1]] = DEAD
                self.auxiliary[node + 1] = -1
        self.owner[self.auxiliary[departs + 1]] = DEAD
        self.auxiliary[departs + 1] = b
        self.owner[b] = departs

    cdef int _replace_auxiliary(self, Py_ssize_t b) except -1 nogil:
        """An auxiliary has been taken: new ones for its node and for those of its tail."""
        cdef Py_ssize_t h, departs = self.owner[b]
        cdef int failed = 0
        self.owner[b] = REGULAR
        failed |= self._new_auxiliary(departs)
        for h in range(0 if departs < 0 else self.level[departs], self.depth):
            failed |= self._new_auxiliary(self.node_path[self.leaf_node[b], h])
        return failed

    cdef int _new_auxiliary(self, Py_ssize_t node) except -1 nogil:
        """A fresh path below a node, if that may branch. Non-zero: densities failed."""
        cdef Py_ssize_t level = 0 if node < 0 else self.level[node], below = node, b, h, _
        if not self.alpha[level] > 0.0:
            return 0
        for _ in range(level, self.depth):
            below = self._new_node(below)
            self._draw_node(below)
            self.auxiliary[below + 1] = -1
        b = self._new_leaf(below)
        self._draw_leaf(b)
        for h in range(level, self.depth):
            self.tail_score[b, h] = draws.normal(self._rng) / sqrt(self.psi[b, h])
        self.owner[b] = node
        self.auxiliary[node + 1] = b
        self._need_columns()
        return self._fill_column(b)

    cdef int _need_columns(self) except -1 nogil:
        """Room for the log densities of all leaf slots."""
        if self.log_density.shape[0] < self.leaf_node.shape[0]:
            with gil:
                old = np.asarray(self.log_density)
                longer = np.empty((self.leaf_node.shape[0], self.n_samples))
                longer[:len(old)] = old
                self.log_density = longer
        return 0

    cdef int _fill_column(self, Py_ssize_t b) noexcept nogil:
        """Log density of every row in leaf b."""
        cdef Py_ssize_t g, t, n, k
        cdef bint is_tail = self._integrated and self.owner[b] != REGULAR
        if is_tail:
            self._sum_tail(b, self.owner[b])
        for g in range(self.rows.n_patterns):
            if (self._prepare_tail(b, self.owner[b], g) if is_tail else self._prepare(b, g)) != 0:
                return 1
            n = 0
            for t in range(self.rows.pattern_start[g], self.rows.pattern_start[g + 1]):
                self.rows.chosen[n] = self.rows.by_pattern[t]
                n += 1
                if n == CHUNK or t + 1 == self.rows.pattern_start[g + 1]:
                    self.rows.whiten(g, n)
                    for k in range(n):
                        self.log_density[b, self.rows.chosen[k]] = self._log_density_of(
                            g, self.rows.square[k]
                        )
                    n = 0
        return 0

    # -- paths born for a row -----------------------------------------------------------------

    cdef void _sum_tail(self, Py_ssize_t b, Py_ssize_t departs) noexcept nogil:
        """Precision of y_p under a tail with loadings and mean integrated out, scores given.

        Its variance is 1 / (kappa lambda_p) + 1 / xi_p + sum_j x_j^2 / (phi_jp tau_j).
        """
        cdef Py_ssize_t p, h, node, level = 0 if departs < 0 else self.level[departs]
        for p in range(self.n_features):
            self.tail_precision[p] = 1.0 / (self.kappa[b] * self.noise[p]) + 1.0 / self.xi[p]
        for h in range(level, self.depth):
            node = self.node_path[self.leaf_node[b], h]
            for p in range(self.n_features):
                self.tail_precision[p] += self.tail_score[b, h] * self.tail_score[b, h] / (
                    self.local[node, p] * self._tau(node)
                )
        for p in range(self.n_features):
            self.tail_precision[p] = 1.0 / self.tail_precision[p]

    cdef int _prepare_tail(self, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t g) noexcept nogil:
        """Set up the law of rows under a tail, after ``_sum_tail``: shared loadings, no mean."""
        return self.rows.prepare(
            g, 0 if departs < 0 else self.level[departs], &self.loading[0, 0],
            &self.node_path[self.leaf_node[b], 0], &self.zeros[0], &self.psi[b, 0], 1.0,
            &self.tail_precision[0],
        )

    cdef double _log_density_of_tail(
        self, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t i
    ) noexcept nogil:
        """Log density of a row that is alone on its tail, given fresh scores there.

        Its scores come from p(x_i | b_i, y_i, loadings); NaN where that fails.
        """
        cdef Py_ssize_t h, g = self.rows.pattern[i], depth = self.depth
        self.rows.chosen[0] = i
        if self._prepare(b, g) != 0:
            return NAN
        self.rows.whiten(g, 1)
        for h in range(depth):
            self.rows.omega[h] += draws.normal(self._rng)
        linalg.solve_rows_back(&self.rows.factor[0], depth, &self.rows.omega[0], 1)
        for h in range(depth):
            self.tail_score[b, h] = self.rows.omega[h]
        self._sum_tail(b, departs)
        if self._prepare_tail(b, departs, g) != 0:
            return NAN
        self.rows.whiten(g, 1)
        return self.rows.log_density(g, self.rows.square[0])

    cdef int _draw_tail(self, Py_ssize_t b, Py_ssize_t departs, Py_ssize_t i) noexcept nogil:
        """Shared scores of row i, then loadings and mean of its tail given those of the tail.

        A draw from the prior, corrected by what it misses of the row: y_p is their sum with noise.
        """
        cdef Py_ssize_t h, p, node, g = self.rows.pattern[i]
        cdef Py_ssize_t level = 0 if departs < 0 else self.level[departs]
        cdef double precision, off, inverse
        self.rows.chosen[0] = i
        self._sum_tail(b, departs)
        if self._prepare_tail(b, departs, g) != 0:
            return 1
        self.rows.whiten(g, 1)
        if level > 0:
            for h in range(level):
                self.rows.omega[h] += draws.normal(self._rng)
            linalg.solve_rows_back(&self.rows.factor[0], level, &self.rows.omega[0], 1)
        for p in range(self.n_features):
            self.leaf_mean[b, p] = draws.normal(self._rng) / sqrt(self.xi[p])
            off = self.rows.X[i, p] - self.leaf_mean[b, p]
            off -= draws.normal(self._rng) / sqrt(self.kappa[b] * self.noise[p])
            for h in range(self.depth):
                node = self.node_path[self.leaf_node[b], h]
                if h < level:
                    off -= self.rows.omega[h] * self.loading[node, p]
                    continue
                precision = self.local[node, p] * self._tau(node)
                self.loading[node, p] = draws.normal(self._rng) / sqrt(precision)
                off -= self.tail_score[b, h] * self.loading[node, p]
            if not self.rows.is_observed[g, p] or self._fault == BLIND_BIRTH:
                continue
            off *= self.tail_precision[p]
            self.leaf_mean[b, p] += off / self.xi[p]
            for h in range(level, self.depth):
                node = self.node_path[self.leaf_node[b], h]
                inverse = 1.0 / (self.local[node, p] * self._tau(node))
                self.loading[node, p] += off * self.tail_score[b, h] * inverse
        return 0

    # -- densities ----------------------------------------------------------------------------

    cdef int _prepare(self, Py_ssize_t b, Py_ssize_t g) noexcept nogil:
        """Set up the law of a leaf's rows with pattern g. Non-zero: it is degenerate."""
        return self.rows.prepare(
            g, self.depth, &self.loading[0, 0], &self.node_path[self.leaf_node[b], 0],
            &self.leaf_mean[b, 0], &self.psi[b, 0], self.kappa[b], &self.noise[0],
        )

    cdef double _log_density_of(self, Py_ssize_t g, double square) noexcept nogil:
        cdef double log_density = self.rows.log_density(g, square)
        if self._fault == NO_DETERMINANT:
            log_density += 0.5 * self.rows.log_det
        return log_density

    cdef Py_ssize_t _take_run(self, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
        """Choose the rows from ``order[start]`` on that share its pattern; returns how many."""
        cdef Py_ssize_t n = 0, g = self.rows.pattern[self.order[start]]
        while n < CHUNK and start + n < stop and self.rows.pattern[self.order[start + n]] == g:
            self.rows.chosen[n] = self.order[start + n]
            n += 1
        return n

    cdef double _log_data(self) noexcept nogil:
        """sum_i log N(y_i; m_b, Omega_b) over the observed entries; NaN if that fails."""
        cdef Py_ssize_t b, t, n, k, g, last
        cdef double total = 0.0
        for b in range(self.n_leaves):
            t = self.leaf_start[b]
            last = -1
            while t < self.leaf_start[b + 1]:
                n = self._take_run(t, self.leaf_start[b + 1])
                g = self.rows.pattern[self.rows.chosen[0]]
                if g != last and self._prepare(b, g) != 0:
                    return NAN
                last = g
                self.rows.whiten(g, n)
                for k in range(n):
                    total += self._log_density_of(g, self.rows.square[k])
                t += n
        return total

    # -- branch scales and leaf means, scores integrated ---------------------------------------

    cdef int _update_whole_scale(self) noexcept nogil:
        """kappa_b of the whole covariance: q_ib / kappa_b does not depend on it (spec 4.9 a3)."""
        cdef Py_ssize_t b, t, n, k, g, h, last, n_entries
        cdef double total
        for b in range(self.n_leaves):
            t = self.leaf_start[b]
            last = -1
            total = 0.0
            n_entries = 0
            while t < self.leaf_start[b + 1]:
                n = self._take_run(t, self.leaf_start[b + 1])
                g = self.rows.pattern[self.rows.chosen[0]]
                if g != last and self._prepare(b, g) != 0:
                    return self._break(LEAF_MEANS)
                last = g
                self.rows.whiten(g, n)
                for k in range(n):
                    total += self.rows.square[k]
                n_entries += n * self.rows.n_observed[g]
                t += n
            self.kappa[b] = draws.draw_gamma(
                self._rng, self._scale_shape + 0.5 * n_entries,
                self._scale_shape + 0.5 * total / self.kappa[b],
            )
            for h in range(self.depth):
                self.psi[b, h] = self.kappa[b]
        return 0

    cdef int _update_leaf_means(self) noexcept nogil:
        """m_b given its rows, their scores integrated out: spec 4.4.

        Leaves with incomplete rows wait for the draw together with the loadings; which leaves
        those are does not change here.
        """
        cdef Py_ssize_t b
        for b in range(self.n_leaves):
            if self.rows.n_observed[self.rows.pattern[self.order[self.leaf_start[b + 1] - 1]]] \
                    < self.n_features:
                continue
            if self._draw_leaf_mean(b) != 0:
                return self._break(LEAF_MEANS)
        return 0

    cdef int _draw_leaf_mean(self, Py_ssize_t b) noexcept nogil:
        """N(Q^-1 Gamma sum y, Q^-1), Q = diag(xi) + n Gamma, Gamma = kappa Lambda - SS' = Omega^-1.

        Perturb the right-hand side by a draw of variance Q, then solve by Woodbury on
        diag(xi + n kappa lambda): O(P L^2).
        """
        cdef Py_ssize_t n_features = self.n_features, depth = self.depth, p, h, t, node
        cdef Py_ssize_t n = self.leaf_count[b]
        cdef double total = 0.0, inverse, eps
        cdef double* s = &self.transposed[0]         # (P, L)
        cdef double* v = &self.vector[0]
        cdef double* by_level = &self.rows.omega[0]
        if self._prepare(b, self.rows.n_patterns) != 0:
            return 1
        # v = sum y + sqrt(n) z, z ~ N(0, Omega)
        for p in range(n_features):
            v[p] = sqrt(<double> n) * draws.normal(self._rng) / self.rows.root[p]
        for t in range(self.leaf_start[b], self.leaf_start[b + 1]):
            linalg.axpy(n_features, 1.0, &self.rows.X[self.order[t], 0], v)
        for h in range(depth):
            node = self.node_path[self.leaf_node[b], h]
            eps = sqrt(n / self.psi[b, h]) * draws.normal(self._rng)
            linalg.axpy(n_features, eps, &self.loading[node, 0], v)
        for p in range(n_features):
            for h in range(depth):
                s[p * depth + h] = self.rows.scaled[h * n_features + p]
        linalg.solve_rows(&self.rows.factor[0], depth, s, n_features)
        for p in range(n_features):
            for h in range(depth):
                s[p * depth + h] *= self.rows.root[p]
        # v <- Gamma v + sqrt(xi) eps
        linalg.gemm(False, False, 1, depth, n_features, 1.0, v, s, 0.0, by_level)
        for p in range(n_features):
            v[p] *= self.rows.root[p] * self.rows.root[p]
            if self._fault != MEAN_GIVEN_SCORES:
                v[p] -= linalg.dot(depth, &s[p * depth], by_level)
            v[p] += sqrt(self.xi[p]) * draws.normal(self._rng)
        # v <- Q^-1 v, with S / sqrt(a) in ``scaled``, transposed
        for p in range(n_features):
            inverse = 1.0 / (self.xi[p] + n * self.rows.root[p] * self.rows.root[p])
            v[p] *= inverse
            for h in range(depth):
                self.rows.scaled[h * n_features + p] = s[p * depth + h] * sqrt(inverse)
            self.other_vector[p] = inverse
        linalg.gemm(False, True, depth, depth, n_features, -1.0, &self.rows.scaled[0],
                    &self.rows.scaled[0], 0.0, &self.rows.factor[0])
        for h in range(depth):
            self.rows.factor[h * depth + h] += 1.0 / n
        if linalg.cholesky(&self.rows.factor[0], depth) != 0:
            return 1
        linalg.gemm(False, False, 1, depth, n_features, 1.0, v, s, 0.0, by_level)
        linalg.solve_rows(&self.rows.factor[0], depth, by_level, 1)
        linalg.solve_rows_back(&self.rows.factor[0], depth, by_level, 1)
        for p in range(n_features):
            v[p] += self.other_vector[p] * linalg.dot(depth, &s[p * depth], by_level)
            total += v[p]
        if not isfinite(total):
            return 1
        for p in range(n_features):
            self.leaf_mean[b, p] = v[p]
        return 0

    # -- scores -------------------------------------------------------------------------------

    cdef int _update_scores(self) noexcept nogil:
        """x_i = U^-1 (omega_i + eps): p(x_i | b_i, y_i) over the observed entries (spec 4.2)."""
        cdef Py_ssize_t b, t, n, k, h, g, last, depth = self.depth
        cdef uint64_t key = draws.bits(self._rng)
        cdef draws.RowStream stream
        for b in range(self.n_leaves):
            t = self.leaf_start[b]
            last = -1
            while t < self.leaf_start[b + 1]:
                n = self._take_run(t, self.leaf_start[b + 1])
                g = self.rows.pattern[self.rows.chosen[0]]
                if g != last and self._prepare(b, g) != 0:
                    return self._break(SCORES)
                last = g
                self.rows.whiten(g, n)
                if self._fault == FLAT_SCORES:
                    linalg.solve_rows_back(&self.rows.factor[0], depth, &self.rows.omega[0], n)
                for k in range(n):
                    draws.start_row_stream(&stream, key, 0, self.rows.chosen[k])
                    for h in range(depth):
                        self.rows.omega[k * depth + h] += draws.normal(&stream.rng)
                if self._fault != FLAT_SCORES:
                    linalg.solve_rows_back(&self.rows.factor[0], depth, &self.rows.omega[0], n)
                for k in range(n):
                    for h in range(depth):
                        self.score[self.rows.chosen[k], h] = self.rows.omega[k * depth + h]
                t += n
        return 0

    cdef void _update_score_precisions(self) noexcept nogil:
        """psi_bl ~ Gamma(a + N_b / 2, a + sum x_il^2 / 2)."""
        cdef Py_ssize_t b, h, t
        cdef double total
        if not self._has_score_precision:
            return
        for b in range(self.n_leaves):
            for h in range(self.depth):
                total = 0.0
                for t in range(self.leaf_start[b], self.leaf_start[b + 1]):
                    total += self.score[self.order[t], h] * self.score[self.order[t], h]
                self.psi[b, h] = draws.draw_gamma(
                    self._rng, self._score_shape + 0.5 * self.leaf_count[b],
                    self._score_shape + 0.5 * total,
                )

    # -- loadings and leaf means --------------------------------------------------------------

    cdef int _update_loadings(self) noexcept nogil:
        """(D_.p, M_.p) jointly given scores, feature by feature (spec 4.5, 4.9).

        theta_p ~ N(A_p^-1 lambda_p Z'W y_p, A_p^-1), A_p = diag(prior) + lambda_p Z'WZ, with Z the
        scores at the path nodes and an indicator of the leaf, and W the branches' noise scales.
        """
        cdef Py_ssize_t p
        self._sum_products()
        for p in range(self.n_features):
            if self.rows.n_seen[p] < self.n_samples:
                self._sum_grams(p, &self.node_gram_of[0, 0], &self.leaf_gram_of[0, 0])
                self._begin_feature(p, &self.node_gram_of[0, 0], &self.leaf_gram_of[0, 0])
            else:
                self._begin_feature(p, &self.node_gram[0, 0], &self.leaf_gram[0, 0])
            if self._eliminate() != 0:
                return self._break(LOADINGS)
            self._substitute(p)
        return 0

    cdef void _sum_products(self) noexcept nogil:
        """Z'W y_p for all features at once, and Z'WZ of all rows."""
        cdef Py_ssize_t b, t, n, k, h, i, p, depth = self.depth, n_features = self.n_features
        cdef double w
        for n in range(self.n_nodes):
            for p in range(n_features):
                self.node_side[n, p] = 0.0
        for b in range(self.n_leaves):
            w = self._row_weight(b)
            for p in range(n_features):
                self.leaf_side[b, p] = 0.0
            for h in range(depth * n_features):
                self.side[h] = 0.0
            t = self.leaf_start[b]
            while t < self.leaf_start[b + 1]:
                n = min(<Py_ssize_t> CHUNK, self.leaf_start[b + 1] - t)
                for k in range(n):
                    i = self.order[t + k]
                    for h in range(depth):
                        self.rows.omega[k * depth + h] = self.score[i, h]
                    for p in range(n_features):
                        self.rows.residual[k * n_features + p] = self.rows.X[i, p]
                    linalg.axpy(n_features, w, &self.rows.X[i, 0], &self.leaf_side[b, 0])
                linalg.gemm(True, False, depth, n_features, n, w, &self.rows.omega[0],
                            &self.rows.residual[0], 1.0, &self.side[0])
                t += n
            for h in range(depth):
                linalg.axpy(n_features, 1.0, &self.side[h * n_features],
                            &self.node_side[self.node_path[self.leaf_node[b], h], 0])
        self._sum_grams(-1, &self.node_gram[0, 0], &self.leaf_gram[0, 0])

    cdef void _sum_grams(self, Py_ssize_t p, double* node_gram, double* leaf_gram) noexcept nogil:
        """Z'WZ over the rows that feature p is observed in, over all for p = -1.

        Row n of ``node_gram`` holds the products with the nodes of n's path, row b of
        ``leaf_gram`` the sums over the leaf of its path's scores and, last, of the weights.
        """
        cdef Py_ssize_t b, t, n, h, k, i, node, depth = self.depth, width = self.max_depth
        cdef double w
        cdef double* row
        for n in range(self.n_nodes * width):
            node_gram[n] = 0.0
        for b in range(self.n_leaves):
            w = self._row_weight(b)
            row = &leaf_gram[b * (width + 1)]
            for h in range(depth + 1):
                row[h] = 0.0
            for h in range(depth * depth):
                self.gram[h] = 0.0
            n = 0
            for t in range(self.leaf_start[b], self.leaf_start[b + 1]):
                i = self.order[t]
                if p < 0 or self.rows.is_observed[self.rows.pattern[i], p]:
                    for h in range(depth):
                        self.rows.omega[n * depth + h] = self.score[i, h]
                        row[h] += w * self.score[i, h]
                    row[depth] += w
                    n += 1
                if n == CHUNK or (n > 0 and t + 1 == self.leaf_start[b + 1]):
                    linalg.gemm(True, False, depth, depth, n, w, &self.rows.omega[0],
                                &self.rows.omega[0], 1.0, &self.gram[0])
                    n = 0
            for h in range(depth):
                node = self.node_path[self.leaf_node[b], h]
                for k in range(h + 1):
                    node_gram[node * width + k] += self.gram[h * depth + k]

    cdef double _row_weight(self, Py_ssize_t b) noexcept nogil:
        return 1.0 if self._fault == UNWEIGHTED_ROWS else self.kappa[b]

    cdef void _begin_feature(
        self, Py_ssize_t p, const double* node_gram, const double* leaf_gram
    ) noexcept nogil:
        """A_p and its right-hand side, a row of couplings to its ancestors for every unknown."""
        cdef Py_ssize_t n, b, h, width = self.max_depth
        cdef double precision = self.noise[p]
        for n in range(self.n_nodes):
            for h in range(self.level[n]):
                self.node_row[n, h] = precision * node_gram[n * width + h]
            self.node_row[n, self.level[n] - 1] += self.local[n, p] * self._tau(n)
            self.node_rhs[n] = precision * self.node_side[n, p]
        for b in range(self.n_leaves):
            for h in range(self.depth + 1):
                self.leaf_row[b, h] = precision * leaf_gram[b * (width + 1) + h]
            self.leaf_row[b, self.depth] += self.xi[p]
            self.leaf_rhs[b] = precision * self.leaf_side[b, p]

    cdef int _eliminate(self) noexcept nogil:
        """Leaf means first, then nodes from the deepest up: the factor has no fill-in (spec 4.5).

        An unknown is coupled to its ancestors alone, and so is whatever its elimination adds.
        """
        cdef Py_ssize_t b, n
        for b in range(self.n_leaves):
            if self._eliminate_row(
                &self.leaf_row[b, 0], self.depth, self.leaf_rhs[b], self.leaf_node[b]
            ) != 0:
                return 1
        for n in range(self.n_nodes - 1, -1, -1):
            if self._eliminate_row(
                &self.node_row[n, 0], self.level[n] - 1, self.node_rhs[n], self.parent[n]
            ) != 0:
                return 1
        return 0

    cdef int _eliminate_row(
        self, const double* row, Py_ssize_t n_above, double rhs, Py_ssize_t above
    ) noexcept nogil:
        """Take one unknown out: its couplings are row[:n_above], its pivot is row[n_above]."""
        cdef Py_ssize_t j, k, node
        cdef double share
        cdef double* target
        if not 0.0 < row[n_above] < INFINITY:
            return 1
        for j in range(n_above):
            share = row[j] / row[n_above]
            node = self.node_path[above, j]
            target = &self.node_row[node, 0]
            if self._fault != FILLS_IN:
                for k in range(j + 1):
                    target[k] -= share * row[k]
            self.node_rhs[node] -= share * rhs
        return 0

    cdef void _substitute(self, Py_ssize_t p) noexcept nogil:
        """Draw from the roots down: each unknown is normal given its ancestors."""
        cdef Py_ssize_t n, b, h, last
        cdef double total
        for n in range(self.n_nodes):
            last = self.level[n] - 1
            total = self.node_rhs[n]
            for h in range(last):
                total -= self.node_row[n, h] * self.loading[self.node_path[n, h], p]
            self.loading[n, p] = self._normal_given(total, self.node_row[n, last])
        for b in range(self.n_leaves):
            total = self.leaf_rhs[b]
            for h in range(self.depth):
                total -= self.leaf_row[b, h] * self.loading[self.node_path[self.leaf_node[b], h], p]
            self.leaf_mean[b, p] = self._normal_given(total, self.leaf_row[b, self.depth])

    cdef double _normal_given(self, double rhs, double precision) noexcept nogil:
        return rhs / precision + draws.normal(self._rng) / sqrt(precision)

    cdef double _tau(self, Py_ssize_t n) noexcept nogil:
        return exp(fmax(fmin(self.log_tau[n], 300.0), -300.0))

    # -- precisions ---------------------------------------------------------------------------

    cdef int _update_precisions(self) noexcept nogil:
        """kappa, lambda and its rate, xi, phi, zeta given all else: gammas (spec 4.6, 4.9)."""
        cdef Py_ssize_t b, p, n, n_entries
        cdef double total
        self._sum_squares()
        if self._has_noise_scale and not self._whole:
            for b in range(self.n_leaves):
                n_entries = 0
                for n in range(self.leaf_start[b], self.leaf_start[b + 1]):
                    n_entries += self.rows.n_observed[self.rows.pattern[self.order[n]]]
                total = linalg.dot(self.n_features, &self.noise[0], &self.rss[b, 0])
                self.kappa[b] = draws.draw_gamma(
                    self._rng, self._scale_shape + 0.5 * n_entries, self._scale_shape + 0.5 * total
                )
        self._update_noise()
        for p in range(self.n_features):
            total = 0.0
            for b in range(self.n_leaves):
                total += self.leaf_mean[b, p] * self.leaf_mean[b, p]
            self.xi[p] = draws.draw_gamma(
                self._rng, self._mean_shape + 0.5 * self.n_leaves, self._mean_rate + 0.5 * total
            )
        for n in range(self.n_nodes):
            shrinkage.draw_local(self._rng, self.n_features, &self.loading[n, 0], self._tau(n),
                                 self._df, &self.local[n, 0])
            total = 0.0
            for p in range(self.n_features):
                total += self.local[n, p] * self.loading[n, p] * self.loading[n, p]
            self.weighted_square[n] = total
        shrinkage.draw_multipliers(
            self._rng, self.n_nodes, &self.parent[0], &self.weighted_square[0], self.n_features,
            self._root_shape, self._shape, &self.multiplier[0], &self.log_tau[0],
            &self.node_scratch[0], self._fault if self._fault <= CHILDREN_SHAPE else 0,
        )
        return 0

    cdef void _update_noise(self) noexcept nogil:
        """lambda_p ~ Gamma(a0 + N_p / 2, b0 + sum_b kappa_b rss_bp / 2), or one for all."""
        cdef Py_ssize_t b, p
        cdef double total, shape = self._noise_shape, rate = self.noise_rate, sum_noise = 0.0
        for p in range(self.n_features):
            total = 0.0
            for b in range(self.n_leaves):
                total += self.kappa[b] * self.rss[b, p]
            shape += 0.5 * self.rows.n_seen[p]
            rate += 0.5 * total
            if not self._isotropic:
                self.noise[p] = draws.draw_gamma(self._rng, shape, rate)
                sum_noise += self.noise[p]
                shape, rate = self._noise_shape, self.noise_rate
        if self._isotropic:
            self.noise[0] = draws.draw_gamma(self._rng, shape, rate)
            sum_noise = self.noise[0]
            for p in range(1, self.n_features):
                self.noise[p] = self.noise[0]
        if self._sample_noise_rate:
            self.noise_rate = draws.draw_gamma(
                self._rng, self._noise_rate_shape
                + self._noise_shape * (1 if self._isotropic else self.n_features),
                self._noise_rate_rate + sum_noise,
            )

    cdef void _sum_squares(self) noexcept nogil:
        """rss_bp = sum over the leaf's observed entries of (y_ip - m_bp - x_i'd_p)^2."""
        cdef Py_ssize_t b, t, n, k, h, p, i, depth = self.depth, n_features = self.n_features
        cdef double* e
        for b in range(self.n_leaves):
            for p in range(n_features):
                self.rss[b, p] = 0.0
            for h in range(depth):
                for p in range(n_features):
                    self.rows.scaled[h * n_features + p] = self.loading[
                        self.node_path[self.leaf_node[b], h], p
                    ]
            t = self.leaf_start[b]
            while t < self.leaf_start[b + 1]:
                n = min(<Py_ssize_t> CHUNK, self.leaf_start[b + 1] - t)
                for k in range(n):
                    i = self.order[t + k]
                    for h in range(depth):
                        self.rows.omega[k * depth + h] = self.score[i, h]
                    for p in range(n_features):
                        self.rows.residual[k * n_features + p] = (
                            self.rows.X[i, p] - self.leaf_mean[b, p]
                        )
                linalg.gemm(False, False, n, n_features, depth, -1.0, &self.rows.omega[0],
                            &self.rows.scaled[0], 1.0, &self.rows.residual[0])
                for k in range(n):
                    i = self.order[t + k]
                    e = &self.rows.residual[k * n_features]
                    for p in range(n_features):
                        if self.rows.is_observed[self.rows.pattern[i], p]:
                            self.rss[b, p] += e[p] * e[p]
                t += n

    # -- concentrations -----------------------------------------------------------------------

    cdef void _update_concentration(self) noexcept nogil:
        """alpha of each branching level given the tree: processes.ncrp."""
        cdef Py_ssize_t k, h, n, n_above
        if not self._sample_concentration:
            return
        for k in range(self.branch_level.shape[0]):
            h = self.branch_level[k]
            n_above = 0
            for n in range(-1, self.n_nodes):
                if (0 if n < 0 else self.level[n]) == h:
                    self.auxiliary[n + 1] = n_above
                    self.new_node[n_above] = self.n_samples if n < 0 else self.node_count[n]
                    self.n_children[n_above] = 0
                    n_above += 1
            if h < self.depth:
                for n in range(self.n_nodes):
                    if self.level[n] == h + 1:
                        self.n_children[self.auxiliary[self.parent[n] + 1]] += 1
            else:
                for n in range(self.n_leaves):
                    self.n_children[self.auxiliary[self.leaf_node[n] + 1]] += 1
            self.alpha[h] = ncrp.draw_concentration(
                self._rng, self.alpha[h], &self.new_node[0], &self.n_children[0], n_above,
                self._concentration_shape, self.concentration_rate[k],
                ncrp.NO_NESTED_FAULT,
            )

    # -- depth --------------------------------------------------------------------------------

    cdef bint _last_level_is_idle(self) noexcept nogil:
        """Whether in no branch the last axis stands out of the noise: d' Gamma d small (spec 3)."""
        cdef Py_ssize_t b, last = self.depth - 1
        cdef double pivot
        for b in range(self.n_leaves):
            if self._prepare(b, self.rows.n_patterns) != 0:
                return False
            pivot = self.rows.factor[last * self.depth + last]
            if pivot * pivot / self.psi[b, last] - 1.0 > PRUNE_TOLERANCE * fmax(
                1.0, self.n_features / <double> self.leaf_count[b]
            ):
                return False
        return True

    cdef int _cut_last_level(self) except -1 nogil:
        cdef Py_ssize_t b
        for b in range(self.n_leaves):
            self.leaf_node[b] = self.parent[self.leaf_node[b]]
        self.depth -= 1
        return self._compress()

    cdef int _add_level(self) except -1 nogil:
        """One more axis for every branch, with loadings and scores from the prior."""
        cdef Py_ssize_t b, i, node
        for b in range(self.n_leaves):
            node = self._new_node(self.leaf_node[b])
            self._draw_node(node)
            self.leaf_node[b] = node
            self.psi[b, self.depth] = self._prior_score_precision(b)
        for i in range(self.n_samples):
            self.score[i, self.depth] = draws.normal(self._rng) / sqrt(
                self.psi[self.branch[i], self.depth]
            )
        self.depth += 1
        return self._compress()

    # -- bookkeeping --------------------------------------------------------------------------

    cdef Py_ssize_t _new_node(self, Py_ssize_t above) except -1 nogil:
        """A slot for a child of a node, without parameters."""
        cdef Py_ssize_t n = self._n_node_slots
        self._reserve(n + 1, self._n_leaf_slots)
        self._n_node_slots += 1
        self.parent[n] = above
        self.level[n] = 1 if above < 0 else self.level[above] + 1
        self.node_count[n] = 0
        self.multiplier[n] = 1.0
        self._link(n)
        return n

    cdef Py_ssize_t _new_leaf(self, Py_ssize_t above) except -1 nogil:
        cdef Py_ssize_t b = self._n_leaf_slots
        self._reserve(self._n_node_slots, b + 1)
        self._n_leaf_slots += 1
        self.leaf_node[b] = above
        self.leaf_count[b] = 0
        return b

    cdef void _link(self, Py_ssize_t n) noexcept nogil:
        """The path and log tau of a node, from those of its parent."""
        cdef Py_ssize_t h, above = self.parent[n]
        for h in range(self.level[n] - 1):
            self.node_path[n, h] = self.node_path[above, h]
        self.node_path[n, self.level[n] - 1] = n
        self.log_tau[n] = log(self.multiplier[n])
        if above >= 0:
            self.log_tau[n] += self.log_tau[above]

    cdef void _draw_node(self, Py_ssize_t n) noexcept nogil:
        """Parameters of a fresh node from the prior."""
        cdef Py_ssize_t p
        self.multiplier[n] = draws.draw_gamma(
            self._rng, self._root_shape if self.parent[n] < 0 else self._shape, 1.0
        )
        self._link(n)
        for p in range(self.n_features):
            self.local[n, p] = draws.draw_gamma(self._rng, 0.5 * self._df, 0.5 * self._df)
            self.loading[n, p] = draws.normal(self._rng) / sqrt(self.local[n, p] * self._tau(n))

    cdef void _draw_leaf(self, Py_ssize_t b) noexcept nogil:
        """Parameters of a fresh leaf from the prior."""
        cdef Py_ssize_t p, h
        for p in range(self.n_features):
            self.leaf_mean[b, p] = draws.normal(self._rng) / sqrt(self.xi[p])
        self.kappa[b] = 1.0
        if self._has_noise_scale:
            self.kappa[b] = draws.draw_gamma(self._rng, self._scale_shape, self._scale_shape)
        for h in range(self.depth):
            self.psi[b, h] = self._prior_score_precision(b)

    cdef double _prior_score_precision(self, Py_ssize_t b) noexcept nogil:
        if self._has_score_precision:
            return draws.draw_gamma(self._rng, self._score_shape, self._score_shape)
        return self.kappa[b] if self._whole else 1.0

    cdef int _compress(self) except -1 nogil:
        """Drop nodes and leaves without rows, and restore the invariant."""
        cdef Py_ssize_t n, b, h, i, n_kept = 0
        for b in range(self._n_leaf_slots):
            self.leaf_count[b] = 0
        for i in range(self.n_samples):
            self.leaf_count[self.branch[i]] += 1
        for n in range(self._n_node_slots):
            self.node_count[n] = 0
        for b in range(self._n_leaf_slots):
            for h in range(self.depth if self.leaf_count[b] > 0 else 0):
                self.node_count[self.node_path[self.leaf_node[b], h]] += self.leaf_count[b]
        for n in range(self._n_node_slots):
            if self.node_count[n] == 0:
                continue
            self.new_node[n] = n_kept
            self.parent[n_kept] = -1 if self.parent[n] < 0 else self.new_node[self.parent[n]]
            if n != n_kept:
                self.level[n_kept] = self.level[n]
                self.node_count[n_kept] = self.node_count[n]
                self.multiplier[n_kept] = self.multiplier[n]
                self.loading[n_kept, :] = self.loading[n, :]
                self.local[n_kept, :] = self.local[n, :]
            self._link(n_kept)
            n_kept += 1
        self.n_nodes = self._n_node_slots = n_kept
        n_kept = 0
        for b in range(self._n_leaf_slots):
            if self.leaf_count[b] == 0:
                continue
            self.new_leaf[b] = n_kept
            self.leaf_node[n_kept] = self.new_node[self.leaf_node[b]]
            if b != n_kept:
                self.leaf_count[n_kept] = self.leaf_count[b]
                self.kappa[n_kept] = self.kappa[b]
                self.leaf_mean[n_kept, :] = self.leaf_mean[b, :]
                self.psi[n_kept, :] = self.psi[b, :]
            n_kept += 1
        self.n_leaves = self._n_leaf_slots = n_kept
        for i in range(self.n_samples):
            self.branch[i] = self.new_leaf[self.branch[i]]
        self._sort_rows()
        return 0

    cdef void _sort_rows(self) noexcept nogil:
        """Rows by leaf, within a leaf by pattern: a counting sort."""
        cdef Py_ssize_t b, t, i
        self.leaf_start[0] = 0
        for b in range(self.n_leaves):
            self.leaf_start[b + 1] = self.leaf_start[b] + self.leaf_count[b]
            self.new_leaf[b] = self.leaf_start[b]
        for t in range(self.n_samples):
            i = self.rows.by_pattern[t]
            b = self.branch[i]
            self.order[self.new_leaf[b]] = i
            self.new_leaf[b] += 1

    cdef int _reserve(self, Py_ssize_t n_nodes, Py_ssize_t n_leaves) except -1 nogil:
        """Room for so many nodes and leaves; twice as many as there were if that is too few."""
        if n_nodes > self.parent.shape[0]:
            with gil:
                self._resize_nodes(max(n_nodes, 2 * self.parent.shape[0]))
        if n_leaves > self.leaf_node.shape[0]:
            with gil:
                self._resize_leaves(max(n_leaves, 2 * self.leaf_node.shape[0]))
        return 0

    def _resize_nodes(self, n):
        p, depth = self.n_features, self.max_depth
        self.parent = _longer(self.parent, (n,), np.intp)
        self.level = _longer(self.level, (n,), np.intp)
        self.node_count = _longer(self.node_count, (n,), np.intp)
        self.node_path = _longer(self.node_path, (n, depth), np.intp)
        self.loading = _longer(self.loading, (n, p))
        self.local = _longer(self.local, (n, p))
        self.multiplier = _longer(self.multiplier, (n,))
        self.log_tau = _longer(self.log_tau, (n,))
        self.node_log_mass = _longer(self.node_log_mass, (n + 1,))
        self.node_gamma = _longer(self.node_gamma, (n + 1,))
        self.node_rest = _longer(self.node_rest, (n + 1,))
        self.node_total = _longer(self.node_total, (n + 1,))
        self.auxiliary = _longer(self.auxiliary, (n + 1,), np.intp)
        self.needed = np.zeros(n, dtype=np.uint8)
        self.new_node = np.zeros(n + 1, dtype=np.intp)
        self.n_children = np.zeros(n + 1, dtype=np.intp)
        self.node_gram, self.node_gram_of = np.empty((n, depth)), np.empty((n, depth))
        self.node_row, self.node_side = np.empty((n, depth)), np.empty((n, p))
        self.node_rhs, self.weighted_square = np.empty(n), np.empty(n)
        self.node_scratch = np.empty(3 * n)

    def _resize_leaves(self, n):
        p, depth = self.n_features, self.max_depth
        self.leaf_node = _longer(self.leaf_node, (n,), np.intp)
        self.leaf_count = _longer(self.leaf_count, (n,), np.intp)
        self.owner = _longer(self.owner, (n,), np.intp)
        self.leaf_mean = _longer(self.leaf_mean, (n, p))
        self.psi = _longer(self.psi, (n, depth))
        self.tail_score = _longer(self.tail_score, (n, depth))
        self.kappa = _longer(self.kappa, (n,))
        self.leaf_log_mass = _longer(self.leaf_log_mass, (n,))
        self.leaf_start = _longer(self.leaf_start, (n + 1,), np.intp)
        self.log_weight = np.empty(n)
        self.new_leaf = np.zeros(n, dtype=np.intp)
        self.leaf_gram, self.leaf_gram_of = np.empty((n, depth + 1)), np.empty((n, depth + 1))
        self.leaf_row, self.leaf_side = np.empty((n, depth + 1)), np.empty((n, p))
        self.leaf_rhs, self.rss = np.empty(n), np.empty((n, p))

    cdef double _log_prior(self) noexcept nogil:
        """The terms of ``_model.log_joint`` without those of scores and data."""
        cdef double total = 0.0, tau, half_log_tau
        cdef double half_log_2pi = 0.9189385332046727
        cdef Py_ssize_t n, b, p, h, k
        total += self._log_paths()
        for n in range(self.n_nodes):
            total += shrinkage.log_density(
                self.multiplier[n], self._root_shape if self.parent[n] < 0 else self._shape
            )
            tau = self._tau(n)
            half_log_tau = 0.5 * self.log_tau[n]
            for p in range(self.n_features):
                total += (
                    log_gamma_density(self.local[n, p], 0.5 * self._df, 0.5 * self._df)
                    + 0.5 * log(self.local[n, p]) + half_log_tau - half_log_2pi
                    - 0.5 * self.local[n, p] * tau * self.loading[n, p] * self.loading[n, p]
                )
        for p in range(self.n_features):
            total += log_gamma_density(self.xi[p], self._mean_shape, self._mean_rate)
            if p == 0 or not self._isotropic:
                total += log_gamma_density(self.noise[p], self._noise_shape, self.noise_rate)
            for b in range(self.n_leaves):
                total += (0.5 * log(self.xi[p]) - half_log_2pi
                          - 0.5 * self.xi[p] * self.leaf_mean[b, p] * self.leaf_mean[b, p])
        if self._sample_noise_rate:
            total += log_gamma_density(
                self.noise_rate, self._noise_rate_shape, self._noise_rate_rate
            )
        for b in range(self.n_leaves):
            if self._has_noise_scale:
                total += log_gamma_density(self.kappa[b], self._scale_shape, self._scale_shape)
            if self._has_score_precision:
                for h in range(self.depth):
                    total += log_gamma_density(
                        self.psi[b, h], self._score_shape, self._score_shape
                    )
        if self._sample_concentration:
            for k in range(self.branch_level.shape[0]):
                total += log_gamma_density(
                    self.alpha[self.branch_level[k]], self._concentration_shape,
                    self.concentration_rate[k],
                )
        return total

    cdef double _log_paths(self) noexcept nogil:
        """Log probability of the tree: the sum over nodes of log EPPF of their children."""
        cdef double total = 0.0, alpha
        cdef Py_ssize_t n, b
        for n in range(-1, self.n_nodes):
            alpha = self.alpha[0 if n < 0 else self.level[n]]
            if alpha > 0.0:
                total += lgamma(alpha) - lgamma(
                    alpha + (self.n_samples if n < 0 else self.node_count[n])
                )
        for n in range(self.n_nodes):
            alpha = self.alpha[self.level[n] - 1]
            if alpha > 0.0:
                total += log(alpha) + lgamma(self.node_count[n])
        alpha = self.alpha[self.depth]
        for b in range(self.n_leaves):
            if alpha > 0.0:
                total += log(alpha) + lgamma(self.leaf_count[b])
        return total

    cdef double _log_data_given_scores(self) noexcept nogil:
        """sum_i log p(x_i | b_i) + log p(y_i | b_i, x_i) over the observed entries."""
        cdef double total = 0.0, half_log_2pi = 0.9189385332046727
        cdef Py_ssize_t i, b, p, h
        self._sum_squares()
        for i in range(self.n_samples):
            b = self.branch[i]
            for h in range(self.depth):
                total += (0.5 * log(self.psi[b, h]) - half_log_2pi
                          - 0.5 * self.psi[b, h] * self.score[i, h] * self.score[i, h])
            for p in range(self.n_features):
                if self.rows.is_observed[self.rows.pattern[i], p]:
                    total += 0.5 * log(self.kappa[b] * self.noise[p]) - half_log_2pi
        for b in range(self.n_leaves):
            for p in range(self.n_features):
                total -= 0.5 * self.kappa[b] * self.noise[p] * self.rss[b, p]
        return total

    cdef int _break(self, Move move) noexcept nogil:
        """A move had no finite result: remember it; the log joint is NaN from now on."""
        if self._broken == NO_MOVE:
            self._broken = move
        return 0

    # -- for the tests ------------------------------------------------------------------------

    def _densities(self, Py_ssize_t b):
        """Log density of every row in leaf b, shape (n_samples,)."""
        self._reserve(self._n_node_slots, self._n_leaf_slots)
        self._need_columns()
        self.owner[b] = REGULAR
        if self._fill_column(b) != 0:
            raise ArithmeticError(f"the covariance of leaf {b} is not positive definite")
        return np.array(self.log_density[b])

    def _eliminated(self, Py_ssize_t p):
        """The system of feature p and its factor: node rows, leaf rows, before and after."""
        self._sum_products()
        self._sum_grams(p, &self.node_gram_of[0, 0], &self.leaf_gram_of[0, 0])
        self._begin_feature(p, &self.node_gram_of[0, 0], &self.leaf_gram_of[0, 0])
        before = self._rows()
        if self._eliminate() != 0:
            raise ArithmeticError(f"the system of feature {p} is not positive definite")
        return before, self._rows()

    def _rows(self):
        """A row of couplings and pivot for every node, then for every leaf."""
        nodes = [np.array(self.node_row[n, :self.level[n]]) for n in range(self.n_nodes)]
        return nodes + [np.array(self.leaf_row[b, :self.depth + 1]) for b in range(self.n_leaves)]


cdef double log_gamma_density(double x, double shape, double rate) noexcept nogil:
    return shape * log(rate) - lgamma(shape) + (shape - 1.0) * log(x) - rate * x


def _longer(old, shape, dtype=np.float64):
    """A larger array with what the old one holds."""
    out = np.zeros(shape, dtype=dtype)
    out[:len(old)] = old
    return out
