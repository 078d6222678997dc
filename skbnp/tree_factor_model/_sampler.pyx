"""One chain of the tree factor model: paths, leaf means, scores, loadings, precisions.

b_i ~ nested CRP; y_i | b_i, x_i ~ N(m_b + sum_l x_il d_{b_l}, (u_i kappa_b Lambda)^-1), x_il ~
N(0, 1 / (psi_{b_i l} u_i)); loadings shrink down the tree by a multiplicative gamma process.
u_i = 1, or Gamma(df_b / 2, df_b / 2) for heavy tails. Missing entries are integrated out.
"""

from libc.math cimport NAN

import numpy as np

from skbnp.mcmc.chain cimport Chain, Move
from skbnp.numerics cimport rng as draws
from skbnp.tree_factor_model._depth cimport Depth
from skbnp.tree_factor_model._leaf_laws cimport LeafLaws
from skbnp.tree_factor_model._state cimport State
from skbnp.tree_factor_model._threads cimport Pool

from skbnp.tree_factor_model._leaf_laws import LeafLaws as TreeLaws
from skbnp.tree_factor_model._products import Products
from skbnp.tree_factor_model._state import State as TreeState
from skbnp.tree_factor_model._saved import NOT_IN_DRAWS
from skbnp.tree_factor_model.moves.collapsed_paths import CollapsedPaths
from skbnp.tree_factor_model.moves.concentrations import Concentrations
from skbnp.tree_factor_model.moves.leaf_means import LeafMeans
from skbnp.tree_factor_model.moves.loadings import Loadings
from skbnp.tree_factor_model.moves.precisions import Precisions
from skbnp.tree_factor_model.moves.scores import Scores
from skbnp.tree_factor_model.moves.slice_paths import SlicePaths
from skbnp.tree_factor_model.moves.tails import Tails


cdef enum:
    ADAPT_EVERY = 10        # warm-up sweeps between changes of the depth

PATH_UPDATES = ("slice", "collapsed")
# What a fresh path brings along in the collapsed update.
BIRTHS = ("integrated", "prior")
# Moves that integrate the scores out -> what draws afterwards what they have left behind.
FOLLOWERS = {"paths": ("tails", "scores"), "tails": ("scores",), "leaf_means": ("scores",)}


cdef class Sampler(Chain):
    """One chain; ``sweep`` is its transition.

    Paths, tails and leaf means are drawn without the scores, then comes all that sees scores:
    nothing may come between the former and the fresh scores.

    Rows with the same observed entries share a pattern, and all that depends on leaf and pattern
    alone is done once for them. What is done item by item, `_threads` does.

    Cost of a sweep for N complete rows, P features, B leaves, K nodes, depth L: O(N B L P) for the
    paths, O(N L (P + L)) for scores, products and residuals, O(P K L^2) for the loadings; but for
    O(N B P) all that grows with N is BLAS 3. A pattern of its own with n entries costs a row
    O(B L^2 (n + L)), or O(B n^3 + L^2 (n + L)) where n < L.
    """

    # What a chain is made of; there are two ways to draw paths.
    STATE, LAWS = TreeState, TreeLaws
    MOVES = {
        "slice": SlicePaths, "collapsed": CollapsedPaths,
        **{
            move.NAME: move
            for move in (Tails, LeafMeans, Scores, Loadings, Precisions, Concentrations)
        },
    }

    cdef:
        LeafLaws _laws
        Depth _depth                            # None where it is fixed
        double _log_jacobian

    def __init__(
        self, X, prior, state, bit_generator, *, path_update="slice", birth="integrated",
        adapt_depth=True, for_rows=None, double log_jacobian=0.0,
    ):
        """A chain on X (n_samples, n_features) in the units of ``prior``, a ``_model.Prior``.

        It starts from ``state``, a dict as ``_saved`` describes it. ``log_jacobian`` is added to
        the log joint. ``for_rows`` is what `_threads.Pool` takes.
        """
        if path_update not in PATH_UPDATES:
            raise ValueError(f"path_update must be one of {PATH_UPDATES}, got {path_update!r}")
        if birth not in BIRTHS:
            raise ValueError(f"birth must be one of {BIRTHS}, got {birth!r}")
        tree = self.STATE(X, prior, state)
        pool = Pool(tree, for_rows)
        products = Products(tree, pool)
        laws = self._laws = self.LAWS(tree, pool)
        self._depth = Depth(tree, laws) if adapt_depth else None
        self._log_jacobian = log_jacobian
        make, bits = self.MOVES, bit_generator
        super().__init__(tree, (
            make["slice"](tree, laws, pool, bits) if path_update == "slice"
            else make["collapsed"](tree, laws, birth, bits),
            make["tails"](tree, laws, pool, bits),
            make["leaf_means"](tree, laws, pool, bits),
            make["scores"](tree, laws, pool, products, bits),
            make["loadings"](tree, pool, products, bits),
            make["precisions"](tree, pool, bits),
            make["concentration"](tree, bits),
        ), bits)

    def sweep_only(self, str name):
        """One move alone, for the tests; one that integrates the scores out brings fresh ones."""
        for one in (name, *FOLLOWERS.get(name, ())):
            super().sweep_only(one)

    def adapt(self, step):
        """After a warm-up sweep: let the depth below the last branching level follow the data."""
        cdef Move any_move = self.moves[0]
        if self._depth is None or (step + 1) % ADAPT_EVERY or self.broken_move:
            return
        with self.bit_generator.lock, nogil:
            self._depth.follow_data(any_move.rng)

    def log_joint(self, scores="integrated"):
        """log p(X, state), scores "integrated" out or an "explicit" part of the state.

        In the units that the Jacobian gives; NaN after a move has failed.
        """
        cdef State tree = self.state
        if self.broken_move:
            return NAN
        with self.bit_generator.lock:
            if scores == "explicit":
                return tree.log_joint() + self._log_jacobian
            return tree.log_prior() + self._log_jacobian + self._laws.log_data()

    def scalars(self):
        """Quantities traced beside the log joint."""
        cdef State tree = self.state
        return {
            "n_branches": float(tree.n_leaves),
            "n_nodes": float(tree.n_nodes),
            "depth": float(tree.depth),
            "largest_branch": float(max(tree.leaf_count[b] for b in range(tree.n_leaves))),
            "log_noise_precision": float(np.mean(np.log(tree.noise_precision))),
            "log_mean_precision": float(np.mean(np.log(tree.mean_precision))),
            **({"largest_tail_df": float(max(tree.tail_df[b] for b in range(tree.n_leaves)))}
               if tree.hyper.has_tail else {}),
            **{
                f"concentration{k}": tree.concentration[tree.hyper.branch_level[k]]
                for k in range(tree.hyper.branch_level.shape[0])
            },
        }

    def draw(self):
        """Snapshot for prediction: the tree, its parameters and the leaf of each row."""
        state = self.state.get_state()
        for name in NOT_IN_DRAWS:
            del state[name]
        n_leaves = len(state["leaf_node"])
        state["leaf_count"] = np.bincount(state["branch"])
        state["branch"] = state["branch"].astype(
            np.uint8 if n_leaves <= 256 else np.uint16 if n_leaves <= 65536 else np.int32
        )
        return state

    def simulate_data(self):
        """Draw the observed entries anew given the state, scores included (Geweke 2004)."""
        cdef Move any_move = self.moves[0]
        mean, sd = self.state.expected_data()
        with self.bit_generator.lock:
            eps = np.array([draws.normal(any_move.rng) for _ in range(mean.size)])
        self.state.set_data(mean + sd * eps.reshape(mean.shape))
