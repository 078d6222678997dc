"""One chain of the mixture of sparse factors.

z ~ CRP; x | z = g ~ N(W y + o_g, s_g / lambda); y_k | z = g ~ N(m_gk, v_gk u_k / lambda); links of
W follow an Indian buffet over the features. u = 1 + A_2^2 with layers above, else 1:
`doc/mathematics/infinite_factor_clusterer` has the equations that kernels cite, as in (F1.2).
"""

from libc.math cimport NAN, isfinite, isnan, sqrt

import numpy as np

from skbnp.infinite_factor_clusterer._divisions cimport Divisions
from skbnp.infinite_factor_clusterer._rows cimport DRAWS, INFORMATION
from skbnp.infinite_factor_clusterer._state cimport (
    CENSORED, HYPER, KNOWN, MISSING, NO_MOVE, OF_FACTORS,
)
from skbnp.numerics cimport rng as draws
from skbnp.numerics.truncated cimport normal_above
from skbnp.processes cimport crp

from skbnp.infinite_factor_clusterer._model import checked_state
from skbnp.likelihoods.sparse_loadings.layers import level_labels
from skbnp.numerics.states import checked_count, put_bit_generator

# Parts of a sweep; NO_MOVE while all is well.
MOVES = (
    *("", "labels", "tails", "means", "scores", "energies", "loadings", "births", "splits"),
    *("rescales", "hyper", "upper"),
)
# Named wrong formulas, for the tests alone: each must make a test fail.
FAULTS = {
    "none": 0,
    "no_determinant": 1,        # densities of rows without |P| and |D|
    "no_slice": 2,              # labels that never open a cluster
    "blind_means": 3,           # means that do not look at their rows
    "prior_scores": 4,          # scores that do not look at their row
    "unweighted": 5,            # loadings as if all clusters had the same noise
    "own_link": 6,              # links that count themselves
    "birth_count": 7,           # births and deaths that count singletons one too high
    "no_stretch": 8,            # rescaled factors without the energies' part of the ratio
    "no_partition": 9,          # splits without the Chinese restaurant's factor
    "stale_noise": 10,          # births without the Jacobian of the shares
    "free_division": 11,        # splits without the probability of the division
    "flat_upper": 12,           # births that do not look at the layer above
    "free_scores": 13,          # divisions without the density of the scores that they propose
}
# Counters that a state carries along.
COUNTS = (
    *("n_births", "n_births_tried", "n_deaths", "n_deaths_tried", "n_splits", "n_splits_tried"),
    *("n_merges", "n_merges_tried", "n_divisions", "n_divisions_tried", "n_unions"),
    *("n_unions_tried", "n_rescales", "n_rescales_tried"),
)


cdef class Sampler(Divisions):
    """One chain; ``sweep`` is its transition.

    Cost of a sweep for T rows, N features, K factors, G clusters, complete rows:
    O(T (G K (N + K) + N K) + G N K^2) where rows meet every cluster, mostly BLAS 3;
    O(T) for each of ``n_births`` attempts at each feature, O(T (N + K) / G) for each of
    ``n_split_merges``. Every pattern of missing cells costs O(G (N K^2 + K^3)) of its own, and
    with factors in a layer above every row does.
    """

    cdef:
        Py_ssize_t n_attempts, n_split_merges
        double _log_jacobian
        Py_ssize_t[::1] size                # (cluster_room,) of the clusters

    def __cinit__(self, *args, **kwargs):
        self.size = np.zeros(0, dtype=np.intp)

    def __init__(
        self, X, prior, state, bit_generator, *, limit=None, Py_ssize_t n_births=1,
        Py_ssize_t n_split_merges=10, double log_jacobian=0.0, int fault=0,
    ):
        """A chain on X (n_samples, n_features), NaN where missing, -inf where below ``limit``.

        It starts from ``state``, a dict as ``_model`` describes it for ``prior``.
        ``log_jacobian`` is added to the log joint.
        """
        super().__init__(X, prior, state, bit_generator, limit, fault)
        self.n_attempts, self.n_split_merges = n_births, n_split_merges
        self._log_jacobian = log_jacobian

    # -- the sampler contract -----------------------------------------------------------------

    def sweep(self):
        """One transition; every part is repeated a constant number of times."""
        with self._bit_generator.lock, nogil:
            self._update_rows()
            self._refresh_residuals()
            self._update_partition(self.n_split_merges)
            self._update_energies()
            self._update_loadings()
            self._refresh_residuals()
            self._update_singletons(self.n_attempts)
            self._rescale()
            self._update_upper()
            self._update_hyper()

    def sweep_only(self, str move):
        """One move alone, for the tests: a name of ``MOVES``.

        "labels", "tails" and "means" bring fresh scores along, "labels" also tails, "splits"
        fresh energies.
        """
        with self._bit_generator.lock:
            self._refresh_residuals()
            if move == "labels":
                self._update_labels()
                self._update_tails()
                self._visit(DRAWS)
                self._fill_cells()
            elif move == "tails":
                self._update_tails()
                self._visit(DRAWS)
                self._fill_cells()
            elif move == "means":
                self._visit(INFORMATION)
                self._visit(DRAWS)
                self._fill_cells()
            elif move == "scores":
                self._visit(DRAWS)
                self._fill_cells()
            elif move == "energies":
                self._update_energies()
            elif move == "loadings":
                self._update_loadings()
            elif move == "births":
                self._update_singletons(self.n_attempts)
            elif move == "splits":
                self._update_partition(self.n_split_merges)
                self._update_energies()
            elif move == "rescales":
                self._rescale()
            elif move == "upper":
                self._update_upper()
            elif move == "hyper":
                self._update_hyper()
            else:
                raise ValueError(f"move must be one of {MOVES[1:]}, got {move!r}")

    def adapt(self, step):
        """Nothing is tuned in warm-up."""

    def log_joint(self):
        """log p(X, state), filled cells integrated out; NaN after a move has failed."""
        if self._broken != NO_MOVE:
            return NAN
        with self._bit_generator.lock:
            return self._log_prior() + self._log_data() + self._log_jacobian

    @property
    def broken_move(self):
        """Name of the move that first had no finite result, "" if none."""
        return MOVES[self._broken]

    def scalars(self):
        """Quantities traced beside the log joint."""
        k = self.n_factors
        return {
            "n_clusters": float(self.n_clusters),
            "n_factors": float(k),
            **({"n_layers": float(bool(k) + len(self._upper_layers()))} if self.has_upper else {}),
            "n_shared_factors": float(np.sum(np.asarray(self.n_links)[:k] > 1)),
            "concentration": self.concentration,
            "mass": self.mass,
            "log_noise_rate": float(np.mean(np.log(self.rate))),
            **({"offset_precision": self.offset_precision} if self.means != OF_FACTORS else {}),
            **({"tail_weight": 1.0 / self.tail_df} if self.student else {}),
        }

    def draw(self):
        """Snapshot for prediction: labels, and the parameters of clusters and factors."""
        state = self._state(with_rows=False)
        n, k = self.n_clusters, self.n_factors
        dtype = np.uint8 if n <= 256 else np.uint16 if n <= 65536 else np.int32
        state["label"] = np.asarray(self.label).astype(dtype)
        state["n_members"] = np.bincount(self.label, minlength=n)
        state["score_energy"] = np.mean(np.asarray(self.Y)[:, :k] ** 2, axis=0)
        layers = self._upper_layers()
        if layers:
            state["level_labels"] = np.array([level_labels(*layer) for layer in layers])
        return state

    def get_state(self):
        """Everything that the next sweep depends on, bit for bit, as plain data."""
        return {
            **self._state(),
            **{name: getattr(self, name) for name in COUNTS},
            "bit_generator": self._bit_generator.state,
        }

    def set_state(self, state):
        """Restore what ``get_state`` returned.

        Raises ValueError, and leaves the chain as it was, for a state that does not fit.
        """
        counts = [checked_count(state, name) for name in COUNTS]
        checked = checked_state(state, self.prior, self.n_samples, self.n_features)
        known = np.asarray(self.cell) == KNOWN if self.has_open_cells else slice(None)
        if not np.array_equal(checked["filled"][known], np.asarray(self.X)[known]):
            raise ValueError("filled of the state must be the data where they are known")
        put_bit_generator(self._bit_generator, state)
        self._put(checked)
        self._set_counts(counts)
        self._broken = NO_MOVE

    def _set_counts(self, counts):
        (self.n_births, self.n_births_tried, self.n_deaths, self.n_deaths_tried, self.n_splits,
         self.n_splits_tried, self.n_merges, self.n_merges_tried, self.n_divisions,
         self.n_divisions_tried, self.n_unions, self.n_unions_tried, self.n_rescales,
         self.n_rescales_tried) = counts

    def acceptance(self):
        """Move name -> (accepted, proposed) so far."""
        return {
            "births": (self.n_births, self.n_births_tried),
            "deaths": (self.n_deaths, self.n_deaths_tried),
            "splits": (self.n_splits, self.n_splits_tried),
            "merges": (self.n_merges, self.n_merges_tried),
            "divisions": (self.n_divisions, self.n_divisions_tried),
            "unions": (self.n_unions, self.n_unions_tried),
            "rescales": (self.n_rescales, self.n_rescales_tried),
        }

    def simulate_data(self):
        """Draw the observed cells anew given the state, scores included (Geweke 2004).

        Which cells are censored stays as it is: those are drawn below their limit.
        """
        cdef Py_ssize_t t, j, k, g
        cdef double mean, sd
        with self._bit_generator.lock:
            for t in range(self.n_samples):
                g = self.label[t]
                for j in range(self.n_features):
                    mean = self.shift[g, j]
                    for k in range(self.n_factors):
                        mean += self.W[j, k] * self.Y[t, k]
                    sd = (self._noise(g)[j] / self.row_precision[t]) ** 0.5
                    if self.has_open_cells and self.cell[t, j] == CENSORED:
                        self.X[t, j] = mean - sd * normal_above(
                            self._rng, (mean - self.limit[j]) / sd
                        )
                    else:
                        self.X[t, j] = mean + sd * draws.normal(self._rng)

    def data(self):
        """The data, NaN where missing and -inf where censored, a copy."""
        X = np.array(self.X)
        if self.has_open_cells:
            cell = np.asarray(self.cell)
            X[cell == MISSING], X[cell == CENSORED] = np.nan, -np.inf
        return X

    # -- the layers above -----------------------------------------------------------------------

    cdef int _update_upper(self) except -1 nogil:
        """All moves of the layers above, given the standardised scores of this one (F1.7).

        sqrt(lambda / v) (y - m) ~ N(0, 1 + A_2^2): they see no more of what is below.
        """
        cdef Py_ssize_t g, k, t
        if not self.has_upper:
            return 0
        for t in range(self.n_samples):
            g = self.label[t]
            for k in range(self.n_factors):
                self.upper.below[k, t] = (
                    (self.Y[t, k] - self.M[g, k]) * sqrt(self.row_precision[t] / self.V[g, k])
                )
        self.upper.update(self._rng)
        self._refresh_inflation()
        return 0

    # -- hyperparameters ------------------------------------------------------------------------

    cdef int _update_hyper(self) except -1 nogil:
        """Concentration by Escobar & West (1995); mass | K ~ Gamma(a + K, b + H_N)."""
        cdef Py_ssize_t g, j
        cdef double harmonic = 0.0
        if isnan(self.given_concentration):
            if self.size.shape[0] < self.n_clusters:
                with gil:
                    self.size = np.zeros(self.cluster_room, dtype=np.intp)
            for g in range(self.n_clusters):
                self.size[g] = self._n_members(g)
            self.concentration = max(1e-300, crp.draw_concentration(
                self._rng, self.concentration, &self.size[0], self.n_clusters, 0.0, 0,
                self.concentration_law[0], self.concentration_law[1],
            ))
        if isnan(self.given_mass):
            for j in range(self.n_features):
                harmonic += 1.0 / (j + 1)
            self.mass = max(1e-300, draws.draw_gamma(
                self._rng, self.mass_law[0] + self.n_factors, self.mass_law[1] + harmonic
            ))
        if not (isfinite(self.concentration) and isfinite(self.mass)):
            self._break(HYPER)
        return 0
