"""One chain of the conjugate mixture: its moves in their order.

rho ~ PY(concentration, discount), theta_c ~ H, x_i | z_i = c ~ F(theta_c), theta integrated out.
"""

from libc.math cimport isfinite

from numbers import Integral

import numpy as np

from skbnp.dirichlet_process_mixture._row_scores cimport RowScores
from skbnp.dirichlet_process_mixture._state cimport State
from skbnp.mcmc.chain cimport Chain
from skbnp.numerics cimport rng as draws

from skbnp.dirichlet_process_mixture._state import State as MixtureState
from skbnp.dirichlet_process_mixture._sweep import MOVES, Sweep


cdef enum:
    REBUILD_EVERY = 50      # sweeps between rebuilding all statistics from their rows


cdef class Sampler(Chain):
    """One chain of the mixture.

    Labels are redrawn by one of three algorithms. "collapsed": every row given all others,
    parameters integrated out. "gibbs", for finitely many components: all rows at once given
    weights and parameters of all components. "parallel": a random ``n_subset`` of the rows as in
    "collapsed", which opens and closes small blocks, then all rows at once given weights and
    parameters of the blocks and their anchors.

    Cost of a sweep for N rows, K blocks, d features, full covariance: O(N K d^2) for the labels,
    O(n_split_merge (N + S d^2)) for S rows in the blocks proposed, O(K d^3) for the prior; d
    instead of d^2 for diagonal and spherical blocks. An incomplete row under full covariance costs
    O(K d^3).
    """

    cdef readonly str algorithm

    # What a chain is made of.
    STATE = MixtureState
    MOVES = {move.NAME: move for move in MOVES}

    def __init__(
        self, X, prior, labels, bit_generator, *, start=None, double log_jacobian=0.0, **settings
    ):
        """A chain on X (n_samples, n_features) in the units of ``prior``, a ``_model.Prior``.

        It starts from ``labels`` and from the hyperparameters in the dict ``start``, by default
        what they are fixed to, their prior means, the first value of a prior scale and
        ``Prior.gaussian``'s guess for learned covariances. ``log_jacobian`` is added to the log
        joint. The others are those of a ``Sweep``.
        """
        sweep = Sweep(**settings)
        if sweep.algorithm == "gibbs" and not isinstance(prior.n_components, Integral):
            raise ValueError(
                f"algorithm='gibbs' must have a finite n_components, got {prior.n_components!r}"
            )
        self.algorithm = sweep.algorithm
        state = self.STATE(
            X, prior, labels, prior.start() | (start or {}), log_jacobian=log_jacobian,
            # Plain Gibbs has parameters of all components.
            least_slots=0 if sweep.by_rows else prior.n_components,
        )
        if not sweep.at_once:
            (<State> state).rebuild()
        made = [move.of(state, sweep, bit_generator) for move in self.MOVES.values()]
        super().__init__(state, [move for move in made if move is not None], bit_generator)

    cpdef bint is_sound(self):
        """Whether the log joint is finite: O(K d)."""
        return isfinite((<State> self.state).log_density())

    cpdef int finish_sweep(self) except -1:
        """Statistics anew from the rows; the pass over all rows does that in every sweep."""
        if self.algorithm == "collapsed" and self.n_sweeps % REBUILD_EVERY == 0:
            (<State> self.state).rebuild()
        return 0

    def scalars(self):
        """Quantities traced beside the log joint."""
        cdef State state = self.state
        return {
            "n_clusters": float(state.n_clusters),
            "concentration": state.law.concentration,
            "discount": state.law.discount,
            **state.base_scalars(),
            "largest_cluster": float(np.max(state.sizes())),
        }

    def draw(self):
        """Snapshot for prediction; the last block is the empty one.

        label (n_samples,), statistics of the n_clusters + 1 blocks, concentration, discount,
        prior_scale or, where covariances are learned, mean_precision, degrees_of_freedom and
        covariance; imputed, row by row, where missing cells are part of the state.
        """
        cdef State state = self.state
        imputed = state.family.imputed()
        return {
            "label": np.asarray(state.label).astype(_label_type(state.n_clusters)),
            "concentration": state.law.concentration,
            "discount": state.law.discount,
            **state.base(),
            **state.family.blocks(state.n_clusters + 1),
            **({"imputed": imputed} if imputed.size else {}),
        }

    def simulate_data(self):
        """Draw the data anew given partition and hyperparameters (Geweke 2004).

        Parameters of each block come from their posterior, then every row from them.
        """
        cdef State state = self.state
        cdef Py_ssize_t k
        cdef Py_ssize_t[::1] member
        with self.bit_generator.lock:
            for k in range(state.n_clusters):
                member = np.flatnonzero(np.asarray(state.label) == k)
                if state.family.redraw_rows(
                    k, &member[0], member.shape[0], draws.borrow(self.bit_generator)
                ) != 0:
                    raise ArithmeticError(f"the parameters drawn for block {k} are not finite")
            state.rebuild()

    # -- of the present state -----------------------------------------------------------------

    @property
    def family(self):
        """Statistics of the blocks."""
        return self.state.family

    @property
    def n_samples(self):
        """Number of rows."""
        return self.state.n_samples

    @property
    def n_clusters(self):
        """Number of blocks."""
        return self.state.n_clusters

    @property
    def labels(self):
        """Block of each row, a copy, shape (n_samples,)."""
        return np.array(self.state.label)

    def completed_data(self):
        """The data with current imputations, a copy."""
        return self.state.family.completed()

    def log_densities(self, rows):
        """Log densities of new rows that repeat training rows: ``RowScores.of_new_rows``."""
        return RowScores(self.state).of_new_rows(rows)

    def leave_one_out(self, imputed=None):
        """``RowScores.leave_one_out``; ``imputed`` are the cells of a draw to put in first."""
        self._impute(imputed)
        return RowScores(self.state).leave_one_out()

    def leave_one_out_shares(self, imputed=None):
        """``RowScores.leave_one_out_shares``, ``imputed`` as above."""
        self._impute(imputed)
        return RowScores(self.state).leave_one_out_shares()

    def _impute(self, imputed):
        cdef State state = self.state
        if imputed is not None:
            state.family.set_imputed(imputed)
            state.rebuild()


def _label_type(n_clusters):
    """The smallest type that holds so many labels."""
    return np.uint8 if n_clusters <= 255 else np.uint16 if n_clusters <= 65535 else np.int32
