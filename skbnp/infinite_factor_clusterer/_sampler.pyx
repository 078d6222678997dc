"""One chain of the mixture of sparse factors: its moves in their order.

z ~ CRP; x | z = g ~ N(W y + o_g, s_g / lambda); y_k | z = g ~ N(m_gk, v_gk u_k / lambda); links of
W follow an Indian buffet over the features. u = 1 + A_2^2 with layers above, else 1:
`doc/mathematics/infinite_factor_clusterer` has the equations that kernels cite, as in (F1.2).
"""

from numpy.random cimport bitgen_t

import numpy as np

from skbnp.infinite_factor_clusterer._law cimport OF_FACTORS
from skbnp.infinite_factor_clusterer._state cimport State
from skbnp.infinite_factor_clusterer._table cimport CENSORED
from skbnp.mcmc.chain cimport Chain
from skbnp.numerics cimport rng as draws
from skbnp.numerics.truncated cimport normal_above

from skbnp.infinite_factor_clusterer._row_law import RowLaw
from skbnp.infinite_factor_clusterer._sides import Sides
from skbnp.infinite_factor_clusterer._state import State as FactorState
from skbnp.infinite_factor_clusterer.moves._launch import Launch
from skbnp.infinite_factor_clusterer.moves.births import Births
from skbnp.infinite_factor_clusterer.moves.energies import Energies
from skbnp.infinite_factor_clusterer.moves.hyper import Hyper
from skbnp.infinite_factor_clusterer.moves.labels import Labels
from skbnp.infinite_factor_clusterer.moves.loadings import Loadings
from skbnp.infinite_factor_clusterer.moves.means import Means
from skbnp.infinite_factor_clusterer.moves.rescales import Rescales
from skbnp.infinite_factor_clusterer.moves.scores import Scores
from skbnp.infinite_factor_clusterer.moves.splits import Splits
from skbnp.infinite_factor_clusterer.moves.tails import Tails
from skbnp.infinite_factor_clusterer.moves.upper import Upper
from skbnp.likelihoods.sparse_loadings.layers import level_labels


cdef class Sampler(Chain):
    """One chain; ``sweep`` is its transition.

    Cost of a sweep for T rows, N features, K factors, G clusters, complete rows:
    O(T (G K (N + K) + N K) + G N K^2) where rows meet every cluster, mostly BLAS 3;
    O(T) for each of ``n_births`` attempts at each feature, O(T (N + K) / G) for each of
    ``n_split_merge``. Every pattern of missing cells costs O(G (N K^2 + K^3)) of its own, and
    with factors in a layer above every row does.
    """

    # What a chain is made of.
    STATE, ROW_LAW, LAUNCH = FactorState, RowLaw, Launch
    MOVES = {
        move.NAME: move
        for move in (
            Labels, Tails, Means, Scores, Splits, Energies, Loadings, Births, Rescales, Upper, Hyper
        )
    }

    def __init__(
        self, X, prior, start, bit_generator, *, limit=None, n_births=1, n_split_merge=10,
        double log_jacobian=0.0,
    ):
        """A chain on X (n_samples, n_features), NaN where missing, -inf where below ``limit``.

        It starts from ``start``, a dict as ``_model`` describes it for ``prior``.
        ``log_jacobian`` is added to the log joint.
        """
        state = self.STATE(X, prior, start, limit, log_jacobian=log_jacobian)
        super().__init__(
            state, self._make_moves(state, n_births, n_split_merge, bit_generator), bit_generator
        )

    def _make_moves(self, State state, n_births, n_split_merge, bit_generator):
        """A sweep: rows without their scores, scores, clusters, factors, layers above."""
        row_law, sides = self.ROW_LAW(state), Sides(state)
        energies = self.MOVES["energies"](state, sides, bit_generator)
        launch = self.LAUNCH(state, row_law, sides, energies, bit_generator)

        def rows(name):
            return self.MOVES[name](state, row_law, bit_generator)

        return [
            rows("labels"),
            *([rows("tails")] if state.law.student else []),
            rows("means"),
            rows("scores"),
            self.MOVES["splits"](state, sides, launch, n_split_merge, bit_generator),
            energies,
            self.MOVES["loadings"](state, bit_generator),
            self.MOVES["births"](state, n_births, bit_generator),
            self.MOVES["rescales"](state, bit_generator),
            *([self.MOVES["upper"](state, bit_generator)] if state.has_upper else []),
            self.MOVES["hyper"](state, bit_generator),
        ]

    def scalars(self):
        """Quantities traced beside the log joint."""
        cdef State state = self.state
        k = state.n_factors
        return {
            "n_clusters": float(state.n_clusters),
            "n_factors": float(k),
            **({"n_layers": float(bool(k) + len(state.upper_layers()))} if state.has_upper else {}),
            "n_shared_factors": float(np.sum(np.asarray(state.n_links)[:k] > 1)),
            "concentration": state.concentration,
            "mass": state.mass,
            "log_noise_rate": float(np.mean(np.log(state.rate))),
            **(
                {"offset_precision": state.offset_precision}
                if state.law.means != OF_FACTORS else {}
            ),
            **({"tail_weight": 1.0 / state.tail_df} if state.law.student else {}),
        }

    def draw(self):
        """Snapshot for prediction: labels, and the parameters of clusters and factors."""
        cdef State state = self.state
        found = state.snapshot(with_rows=False)
        n, k = state.n_clusters, state.n_factors
        dtype = np.uint8 if n <= 256 else np.uint16 if n <= 65536 else np.int32
        found["label"] = np.asarray(state.label).astype(dtype)
        found["n_members"] = np.bincount(state.label, minlength=n)
        found["score_energy"] = np.mean(np.asarray(state.Y)[:, :k] ** 2, axis=0)
        layers = state.upper_layers()
        if layers:
            found["level_labels"] = np.array([level_labels(*layer) for layer in layers])
        return found

    def log_densities(self, rows):
        """``RowLaw.log_densities`` of some rows in the clusters that there are."""
        return self.ROW_LAW(self.state).log_densities(rows)

    def simulate_data(self):
        """Draw the observed cells anew given the state, scores included (Geweke 2004).

        Which cells are censored stays as it is: those are drawn below their limit.
        """
        cdef Py_ssize_t t, j, k, g
        cdef double mean, sd
        cdef State state = self.state
        cdef bitgen_t* rng = draws.borrow(self.bit_generator)
        state.has_residuals = False
        with self.bit_generator.lock:
            for t in range(state.n_samples):
                g = state.label[t]
                for j in range(state.n_features):
                    mean = state.shift[g, j]
                    for k in range(state.n_factors):
                        mean += state.W[j, k] * state.Y[t, k]
                    sd = (state.noise(g)[j] / state.row_precision[t]) ** 0.5
                    if state.table.has_open_cells and state.table.cell[t, j] == CENSORED:
                        state.X[t, j] = mean - sd * normal_above(
                            rng, (mean - state.table.limit[j]) / sd
                        )
                    else:
                        state.X[t, j] = mean + sd * draws.normal(rng)

    def data(self):
        """The data, NaN where missing and -inf where censored, a copy."""
        return self.state.data()
