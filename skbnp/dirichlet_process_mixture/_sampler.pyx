"""One chain of the conjugate mixture: Gibbs, split-merge and hyperparameter moves.

rho ~ PY(concentration, discount), theta_c ~ H, x_i | z_i = c ~ F(theta_c), theta integrated out.
The Dirichlet process has discount 0; M components have discount -concentration / M; where M has a
law of its own, the partition is that of `skbnp.processes.mfm`.
"""

from libc.math cimport INFINITY, NAN, isfinite, log
from numpy.random cimport bitgen_t

import numpy as np

from skbnp.dirichlet_process_mixture._division cimport Division
from skbnp.dirichlet_process_mixture._row_pass cimport RowPass
from skbnp.likelihoods.conjugate cimport ConjugateFamily
from skbnp.likelihoods.learned_covariance cimport LearnedCovariance
from skbnp.numerics cimport rng as draws
from skbnp.numerics.special cimport lgamma, log_sum_exp
from skbnp.processes cimport crp

from skbnp.dirichlet_process_mixture._model import CategoricalPrior, PoissonPrior
from skbnp.likelihoods.conjugate import check_array_of_state
from skbnp.likelihoods.dirichlet_categorical import DirichletCategorical
from skbnp.likelihoods.gamma_poisson import GammaPoisson
from skbnp.likelihoods.learned_covariance import FAULTS as COVARIANCE_FAULTS, learned_covariance
from skbnp.likelihoods.normal_inverse_gamma import NormalInverseGamma
from skbnp.likelihoods.normal_inverse_wishart import NormalInverseWishart
from skbnp.likelihoods.product import ProductFamily
from skbnp.numerics.buffers import longer
from skbnp.processes.mfm import FiniteMixtures


cdef enum:
    REBUILD_EVERY = 50      # sweeps between rebuilding all statistics from their rows
    MIN_SPLIT_MERGE = 4     # split-merge proposals per sweep when "auto" follows few blocks

# Moves, in the order of a sweep; NO_MOVE while all is well.
MOVES = (
    "", "gibbs", "all_rows", "split_merge", "concentration", "discount", "prior_scale",
    "learned_covariance",
)
# What the last of them consists of.
COVARIANCE_MOVES = ("covariance", "degrees_of_freedom", "covariance_size", "mean_precision")

cdef enum Move:
    NO_MOVE
    GIBBS
    ALL_ROWS
    SPLIT_MERGE
    CONCENTRATION
    DISCOUNT
    PRIOR_SCALE
    LEARNED_COVARIANCE

# Rows that "parallel" redraws one by one in a sweep.
SUBSET = 2000

# How labels are redrawn.
ALGORITHMS = ("collapsed", "gibbs", "parallel")
# How a split divides a block.
DIVISIONS = ("sequential", "restricted_gibbs")

# What is counted as accepted and proposed.
cdef enum:
    GIBBS_ROWS
    PASS_ROWS
    SPLITS
    MERGES
    SIZES
    N_COUNTS

# Named wrong formulas, for the tests alone: each must make a test fail.
FAULTS = {
    "none": 0,
    "missing_normaliser": 1,        # erratum 1 of the notes: m(X_c u x) without m(X_c)
    "swapped_beta": 2,              # the two shapes of the concentration's Beta variable
    "dp_concentration": 3,          # the Dirichlet process' update for the finite mixture
    "adaptive_split_merge": 4,      # as many proposals as the present number of blocks asks
    "split_state_count": 5,         # number of blocks of the split state in the acceptance
    "narrow_imputation": 6,         # imputation without the (df + q) of the conditional t
    "unscaled_prior": 7,            # prior scale weights without the prior's own power
    "no_anchors": 8,                # labels over the occupied blocks, which may run empty
    "undivided_weights": 9,         # plain Gibbs with Dirichlet(concentration + n_k)
    "uncounted_scan": 10,           # restricted Gibbs without the probability of its last scan
    "coefficient_of_one_more_block": 11,    # V_n(t + 1) where M is sampled
    "coefficient_of_one_more_row": 12,      # V_{n+1}(t)
}
# Those of the learned covariances come after.
FAULTS |= {
    name: len(FAULTS) - 1 + number for name, number in COVARIANCE_FAULTS.items() if number > 0
}

cdef enum Fault:
    NONE
    MISSING_NORMALISER
    SWAPPED_BETA
    DP_CONCENTRATION
    ADAPTIVE_SPLIT_MERGE
    SPLIT_STATE_COUNT
    NARROW_IMPUTATION
    UNSCALED_PRIOR
    NO_ANCHORS
    UNDIVIDED_WEIGHTS
    UNCOUNTED_SCAN
    COEFFICIENT_OF_ONE_MORE_BLOCK
    COEFFICIENT_OF_ONE_MORE_ROW


cdef class Sampler:
    """State of one chain.

    Invariant between moves: slots 0..n_clusters-1 of the family are non-empty blocks, slot
    ``label[i]`` holds row i and no other slot does; slot n_clusters is the empty block.
    ``log_weight[k]`` is log(n_k - discount).

    Labels are redrawn by one of three algorithms. "collapsed": every row given all others,
    parameters integrated out. "gibbs", for finitely many components: all rows at once given
    weights and parameters of all components. "parallel": a random ``n_subset`` of the rows as in
    "collapsed", which opens and closes small blocks, then all rows at once given weights and
    parameters of the blocks and their anchors.

    Cost of a sweep for N rows, K blocks, d features, full covariance: O(N K d^2) for the labels,
    O(n_split_merge (N + S d^2)) for S rows in the blocks proposed, O(K d^3) for the prior
    scale; d instead of d^2 for diagonal and spherical blocks. An incomplete row under full
    covariance costs O(K d^3).
    """

    cdef:
        object _bit_generator                   # owner of *_rng, must outlive it
        bitgen_t* _rng
        readonly ConjugateFamily family
        LearnedCovariance _covariance           # None where the numbers of the prior are fixed
        Division _division
        RowPass _row_pass
        readonly str algorithm
        Py_ssize_t _n_one_by_one                # rows of a Gibbs pass
        Py_ssize_t _least_slots                 # "gibbs" has parameters of all components
        readonly Py_ssize_t n_samples, n_clusters
        readonly crp.PartitionLaw law           # of the partition, with its present parameters
        readonly Py_ssize_t n_split_merge
        bint _sample_concentration, _sample_discount, _auto_split_merge
        double _concentration_shape, _concentration_rate, _discount_a, _discount_b
        double _log_jacobian
        int _fault
        Move _broken
        Py_ssize_t _n_sweeps, _n_imputed
        double[::1] scale_grid                  # (n_grid,) values of the prior scale, one: fixed
        double[::1] log_scale_weight            # scratch, (n_grid,)
        Py_ssize_t[::1] label                   # (n_samples,)
        double[::1] log_weight                  # (n_slots,) log(n_k - discount)
        double[::1] log_density                 # scratch, (n_slots,)
        Py_ssize_t[::1] new_label               # scratch, (n_slots,)
        Py_ssize_t[::1] order                   # (n_samples,) order of the Gibbs pass
        Py_ssize_t[::1] member                  # scratch, (n_samples,)
        unsigned char[::1] goes_second          # scratch, (n_samples,) side taken in a split
        Py_ssize_t[::1] _accepted               # (N_COUNTS,)
        Py_ssize_t[::1] _proposed               # (N_COUNTS,)

    def __init__(
        self, X, prior, labels, bit_generator, *, start=None, algorithm="collapsed",
        split_merge="sequential", n_split_merge="auto", n_subset=SUBSET, for_rows=None,
        double log_jacobian=0.0, int fault=0,
    ):
        """A chain on X (n_samples, n_features) in the units of ``prior``, a ``_model.Prior``.

        It starts from ``labels`` and from the hyperparameters in the dict ``start``, by default
        what they are fixed to, their prior means, 1 for a prior scale and ``Prior.gaussian``'s
        guess for learned covariances.
        ``log_jacobian`` is added to the log joint.

        ``for_rows(function, n_items, size)`` calls ``function(start, stop)`` for every chunk of
        that size, by threads if it likes; default: one after the other.
        """
        if algorithm not in ALGORITHMS:
            raise ValueError(f"algorithm must be one of {ALGORITHMS}, got {algorithm!r}")
        if split_merge not in DIVISIONS:
            raise ValueError(f"split_merge must be one of {DIVISIONS}, got {split_merge!r}")
        if algorithm == "gibbs" and prior.n_components is None:
            got = "None" if prior.n_components_prior is None else "a law"
            raise ValueError(f"algorithm='gibbs' must have a finite n_components, got {got}")
        start = prior.start() | (start or {})
        shape, rate = prior.concentration_prior
        a, b = prior.discount_prior
        self._bit_generator = bit_generator
        self._rng = draws.borrow(bit_generator)
        parts = [_make_part(X[:, part.columns], part, start) for part in prior.parts]
        self.family = _unite(parts, prior)
        if prior.learned:
            gaussian = next(t for t, part in enumerate(prior.parts) if part is prior.gaussian)
            self._covariance = learned_covariance(
                parts[gaussian], prior.gaussian, _covariance_fault(fault)
            )
        self.n_samples = self.family.n_samples
        self.algorithm = algorithm
        self._n_one_by_one = self.n_samples
        if algorithm == "parallel":
            self._n_one_by_one = min(self.n_samples, n_subset)
        self._least_slots = prior.n_components if algorithm == "gibbs" else 0
        self._sample_concentration = prior.concentration is None
        self._sample_discount = prior.discount is None
        concentration = start.get(
            "concentration", shape / rate if self._sample_concentration else prior.concentration
        )
        if prior.n_components_prior is None:
            discount = start.get(
                "discount", min(a / (a + b), 1 - 1e-9) if self._sample_discount else prior.discount
            )
            self.law = crp.PartitionLaw(concentration, discount, prior.n_components or 0)
        else:
            self.law = FiniteMixtures(
                self.n_samples + (fault == COEFFICIENT_OF_ONE_MORE_ROW), concentration,
                prior.n_components_prior, fault == COEFFICIENT_OF_ONE_MORE_BLOCK,
            )
        self._concentration_shape, self._concentration_rate = shape, rate
        self._discount_a, self._discount_b = a, b
        self.scale_grid = np.array(prior.scale_grid)
        self.log_scale_weight = np.zeros(self.scale_grid.shape[0])
        self._auto_split_merge = n_split_merge == "auto"
        self.n_split_merge = MIN_SPLIT_MERGE if self._auto_split_merge else n_split_merge
        self._log_jacobian = log_jacobian
        self._fault = fault
        self._broken = NO_MOVE
        self.order = np.arange(self.n_samples)
        self.member = np.zeros(self.n_samples, dtype=np.intp)
        self.goes_second = np.zeros(self.n_samples, dtype=np.uint8)
        self._accepted = np.zeros(N_COUNTS, dtype=np.intp)
        self._proposed = np.zeros(N_COUNTS, dtype=np.intp)
        self.log_weight = np.zeros(0)
        self.log_density = np.zeros(0)
        self.label = np.unique(labels, return_inverse=True)[1].astype(np.intp)
        self.n_clusters = np.max(self.label) + 1
        self._division = Division(
            self.family, self.label, self.member, self.goes_second,
            split_merge == "restricted_gibbs", fault == UNCOUNTED_SCAN,
        )
        self._reserve()
        if algorithm == "collapsed":
            self._rebuild()
        else:
            self._row_pass = RowPass(self.family, self.label, self.member, for_rows or _in_order)
            self._row_pass.rebuild(self.n_clusters)
            self._weigh_all()

    # -- the sampler contract -----------------------------------------------------------------

    def sweep(self):
        """One transition: the labels, the split-merge proposals, the hyperparameters."""
        with self._bit_generator.lock:
            if self.algorithm != "gibbs":
                with nogil:
                    self._gibbs_pass()
                    self._watch(GIBBS)
            if self.algorithm != "collapsed":
                self._pass_over_all_rows()
                self._watch(ALL_ROWS)
            with nogil:
                self._split_merge_pass()
                self._watch(SPLIT_MERGE)
                self._update_concentration()
                self._watch(CONCENTRATION)
                self._update_discount()
                self._watch(DISCOUNT)
                self._update_prior_scale()
                self._watch(PRIOR_SCALE)
                self._learn_covariance()
                self._watch(LEARNED_COVARIANCE)
                self._n_sweeps += 1
                if self._row_pass is None and self._n_sweeps % REBUILD_EVERY == 0:
                    self._rebuild()

    def sweep_only(self, str move):
        """One move set alone, for the tests: a name of ``MOVES``."""
        with self._bit_generator.lock:
            if move == "gibbs":
                self._gibbs_pass()
            elif move == "all_rows":
                self._pass_over_all_rows()
            elif move == "split_merge":
                self._split_merge_pass()
            elif move == "concentration":
                self._update_concentration()
            elif move == "discount":
                self._update_discount()
            elif move == "prior_scale":
                self._update_prior_scale()
            elif move == "learned_covariance":
                self._learn_covariance()
            elif move in COVARIANCE_MOVES:
                self._covariance.only(move, self.n_clusters, self._bit_generator)
            else:
                raise ValueError(
                    f"move must be one of {(*MOVES[1:], *COVARIANCE_MOVES)}, got {move!r}"
                )

    def adapt(self, step):
        """After a warm-up sweep: let "auto" counts follow the state, forget imputations so far."""
        if self._auto_split_merge:
            # Frozen after warm-up: a count that reads the present K biases the chain.
            self.n_split_merge = max(MIN_SPLIT_MERGE, (self.n_clusters + 1) // 2)
        self.family.forget_imputations()
        self._n_imputed = 0

    def log_joint(self):
        """log p(rho, X, all hyperparameters), in the units that the Jacobian gives."""
        return self._log_joint()

    @property
    def broken_move(self):
        """Name of the move after which the log joint was first not finite, "" if none."""
        return MOVES[self._broken]

    def scalars(self):
        """Quantities traced beside the log joint."""
        return {
            "n_clusters": float(self.n_clusters),
            "concentration": self.law.concentration,
            "discount": self.law.discount,
            **self._base_scalars(),
            "largest_cluster": float(np.max(self._sizes())),
        }

    def _base_scalars(self):
        """Of the prior of real columns, what is part of the state: numbers."""
        if self._covariance is None:
            return {"prior_scale": self.family.scale}
        return {
            "mean_precision": self._covariance.mean_precision,
            "degrees_of_freedom": self._covariance.degrees_of_freedom,
            "log_det_covariance": self._covariance.log_det_covariance,
        }

    def draw(self):
        """Snapshot for prediction; the last block is the empty one.

        label (n_samples,), statistics of the n_clusters + 1 blocks, concentration, discount,
        prior_scale or, where covariances are learned, mean_precision, degrees_of_freedom and
        covariance; imputed, row by row, where missing cells are part of the state.
        """
        imputed = self.family.imputed()
        return {
            "label": np.asarray(self.label).astype(_label_type(self.n_clusters)),
            "concentration": self.law.concentration,
            "discount": self.law.discount,
            **self._base(),
            **self.family.blocks(self.n_clusters + 1),
            **({"imputed": imputed} if imputed.size else {}),
        }

    def _base(self):
        """Of the prior of real columns, what is part of the state."""
        if self._covariance is None:
            return {"prior_scale": self.family.scale}
        return {
            "mean_precision": self._covariance.mean_precision,
            "degrees_of_freedom": self._covariance.degrees_of_freedom,
            "covariance": self._covariance.covariance,
        }

    def get_state(self):
        """Everything that the next sweep depends on, bit for bit."""
        return {
            "label": np.array(self.label),
            "n_clusters": self.n_clusters,
            "order": np.array(self.order),
            "concentration": self.law.concentration,
            "discount": self.law.discount,
            "n_split_merge": self.n_split_merge,
            "n_sweeps": self._n_sweeps,
            "n_imputed": self._n_imputed,
            "accepted": np.array(self._accepted),
            "proposed": np.array(self._proposed),
            "family": self.family.get_state(self.n_clusters),
            "bit_generator": self._bit_generator.state,
        }

    def set_state(self, state):
        """Restore what ``get_state`` returned, of a sampler made with the same arguments.

        Raises a ValueError if it cannot be such a state: it may come from a file.
        """
        self._check_state(state)
        self.n_clusters = state["n_clusters"]
        self.family.set_state(state["family"], self.n_clusters)
        np.asarray(self.label)[:] = state["label"]  # in place: the pass over all rows shares it
        self.order = state["order"].copy()
        self.law.set_concentration(state["concentration"])
        self.law.set_discount(state["discount"])
        self.n_split_merge = state["n_split_merge"]
        self._n_sweeps = state["n_sweeps"]
        self._n_imputed = state["n_imputed"]
        self._accepted = state["accepted"].copy()
        self._proposed = state["proposed"].copy()
        self._bit_generator.state = state["bit_generator"]
        self._broken = NO_MOVE
        self._reserve()
        self._weigh_all()

    def _check_state(self, state):
        for name, like in (
            ("label", self.label), ("order", self.order),
            ("accepted", self._accepted), ("proposed", self._proposed),
        ):
            check_array_of_state(name, state[name], np.asarray(like))
        for name in ("n_clusters", "n_split_merge", "n_sweeps", "n_imputed"):
            if type(state[name]) is not int or state[name] < 0:
                raise ValueError(f"{name} of a state must be an integer >= 0, got {state[name]!r}")
        for name in ("concentration", "discount"):
            if type(state[name]) is not float or not np.isfinite(state[name]):
                raise ValueError(f"{name} of a state must be a number, got {state[name]!r}")
        if isinstance(self.law, FiniteMixtures) and (
            state["concentration"], state["discount"]
        ) != (self.law.concentration, self.law.discount):
            raise ValueError(
                f"concentration of a state must be {self.law.concentration}, got "
                f"{state['concentration']!r}"
            )
        label, n_clusters = state["label"], state["n_clusters"]
        if not 1 <= n_clusters <= self.n_samples or label.min() < 0 or label.max() >= n_clusters:
            raise ValueError(f"labels of a state must be from 0 to {n_clusters - 1}")
        n_members = np.bincount(label, minlength=n_clusters)
        if not np.array_equal(n_members, state["family"]["n_members"]):
            raise ValueError("n_members of a state must count its labels")
        self.family.check_cells(state["family"], label, n_clusters)
        if not np.array_equal(np.sort(state["order"]), np.arange(self.n_samples)):
            raise ValueError("order of a state must be one of all rows")

    def acceptance(self):
        """Move name -> (accepted, proposed) so far; for gibbs and all_rows, rows that moved."""
        names = {
            "gibbs": GIBBS_ROWS, "all_rows": PASS_ROWS, "split": SPLITS, "merge": MERGES,
            "covariance_size": SIZES,
        }
        unused = {"collapsed": ["all_rows"], "gibbs": ["gibbs"]}.get(self.algorithm, [])
        if self._covariance is None:
            unused.append("covariance_size")
        return {
            name: (int(self._accepted[t]), int(self._proposed[t]))
            for name, t in names.items() if name not in unused
        }

    def simulate_data(self):
        """Draw the data anew given partition and hyperparameters (Geweke 2004).

        Parameters of each block come from their posterior, then every row from them.
        """
        cdef Py_ssize_t k, i, n
        with self._bit_generator.lock:
            for k in range(self.n_clusters):
                n = 0
                for i in range(self.n_samples):
                    if self.label[i] == k:
                        self.member[n] = i
                        n += 1
                if self.family.redraw_rows(k, &self.member[0], n, self._rng) != 0:
                    raise ArithmeticError(f"the parameters drawn for block {k} are not finite")
            self._rebuild()

    @property
    def labels(self):
        """Block of each row, a copy, shape (n_samples,)."""
        return np.array(self.label)

    def completed_data(self):
        """The data with current imputations, a copy."""
        return self.family.completed()

    # -- Gibbs --------------------------------------------------------------------------------

    cdef int _gibbs_pass(self) except -1 nogil:
        """Draw labels of rows one by one, in a fresh random order: Neal (2000), algorithm 3."""
        cdef Py_ssize_t t, i, other
        # The pass over all rows counts them all once; here it might be only some.
        cdef bint remember = self._row_pass is None
        for t in range(self._n_one_by_one):
            other = t + draws.below(self._rng, self.n_samples - t)
            i = self.order[other]
            self.order[other] = self.order[t]
            self.order[t] = i
            if self.family.augmented(i):
                self._redraw_detached(i)
            else:
                self._redraw_attached(i)
            if remember and self.family.incomplete(i):
                self.family.remember_imputation(i, self._n_imputed)
        self._n_imputed += remember
        self._proposed[GIBBS_ROWS] += self._n_one_by_one
        return 0

    cdef int _redraw_attached(self, Py_ssize_t i) except -1 nogil:
        """p(z_i | z_-i, X) without taking row i out first: most rows stay where they are."""
        cdef Py_ssize_t own = self.label[i], k
        cdef bint alone = self.family.n_members[own] == 1
        if not self._score_attached(i):
            return self._redraw_detached(i)
        if self._fault == MISSING_NORMALISER:
            self._spoil_normaliser(i)
        if draws.categorical_from_logs(
            self._rng, &self.log_density[0], self.n_clusters + 1, &k
        ) != 0:
            return self._break(GIBBS)
        if alone and k == self.n_clusters:
            k = own
        if k != own:
            self._accepted[GIBBS_ROWS] += 1
            k = self._detach(i, k)
            self._attach(i, k)
        if self.family.incomplete(i):
            self.family.missing_of_member(k, i)
        return 0

    cdef int _redraw_detached(self, Py_ssize_t i) except -1 nogil:
        """p(z_i, missing cells of row i | the rest), row i taken out of its block first."""
        cdef Py_ssize_t own = self.label[i], k
        cdef bint alone = self.family.n_members[own] == 1
        self._detach(i, -1)
        if alone:
            own = self.n_clusters  # its block is gone: to stay is to open one
        self._score_detached(i)
        if draws.categorical_from_logs(
            self._rng, &self.log_density[0], self.n_clusters + 1, &k
        ) != 0:
            self._break(GIBBS)
            k = self.n_clusters
        self._accepted[GIBBS_ROWS] += k != own
        if self.family.incomplete(i):
            self.family.draw_missing(k, i, self._rng, self._fault == NARROW_IMPUTATION)
        self._attach(i, k)
        return 0

    cdef bint _score_attached(self, Py_ssize_t i) noexcept nogil:
        """log_density[k] = log p(z_i = k, x_i | the rest) up to a constant, row i in its block.

        False where digits were lost: take the row out first.
        """
        cdef Py_ssize_t own = self.label[i], k
        cdef bint alone = self.family.n_members[own] == 1
        self.family.log_predictive_all(self.n_clusters + 1, i, &self.log_density[0])
        for k in range(self.n_clusters):
            self.log_density[k] += self.log_weight[k]
        self.log_density[self.n_clusters] += self.law.log_new_weight(self.n_clusters - alone)
        if alone:
            self.log_density[own] = -INFINITY  # its block is the new one
            return True
        self.log_density[own] = self.family.log_predictive_own(own, i)
        if self.log_density[own] != self.log_density[own]:
            return False
        self.log_density[own] += log(self.family.n_members[own] - 1 - self.law.discount)
        return True

    cdef void _score_detached(self, Py_ssize_t i) noexcept nogil:
        """The same for a row that is in no block, of its observed cells."""
        cdef Py_ssize_t k
        if self.family.augmented(i):
            self.family.log_predictive_observed(self.n_clusters + 1, i, &self.log_density[0])
        else:
            self.family.log_predictive_all(self.n_clusters + 1, i, &self.log_density[0])
        for k in range(self.n_clusters):
            self.log_density[k] += self.log_weight[k]
        self.log_density[self.n_clusters] += self.law.log_new_weight(self.n_clusters)

    def log_predictive(self):
        """Log probabilities of where another row goes, a new block last: (n_clusters + 1,)."""
        return self.law.log_predictive(self.family.n_members[:self.n_clusters])

    def log_densities(self, const Py_ssize_t[::1] rows):
        """Log densities of new rows that repeat training rows, shape of rows.

        Missing cells are integrated out, but of real columns with full covariance, where the row
        is taken as it is completed at present.
        """
        cdef double[::1] out = np.empty(rows.shape[0])
        cdef double[::1] log_weight = self.log_predictive()
        cdef Py_ssize_t t, k, n = self.n_clusters + 1
        with nogil:
            for t in range(rows.shape[0]):
                self.family.log_predictive_all(n, rows[t], &self.log_density[0])
                for k in range(n):
                    self.log_density[k] += log_weight[k]
                out[t] = log_sum_exp(&self.log_density[0], n)
        return np.asarray(out)

    def leave_one_out(self, imputed=None):
        """log p(x_i | z_-i, X_-i) of the observed cells of each row, in the sampler's units.

        The row's own label is summed over, so that the mean over draws of its inverse is
        1 / p(x_i | X_-i). ``imputed`` are the cells of a draw to put in first. Costs as much as a
        Gibbs pass; blocks may be numbered anew.
        """
        cdef double[::1] out = np.empty(self.n_samples)
        cdef Py_ssize_t i
        if imputed is not None:
            self.family.set_imputed(imputed)
            self._rebuild()
        with nogil:
            for i in range(self.n_samples):
                out[i] = self._log_density_given_others(i)
        return np.asarray(out)

    cdef double _log_density_given_others(self, Py_ssize_t i) except? -1 nogil:
        cdef Py_ssize_t own = self.label[i]
        cdef bint alone = self.family.n_members[own] == 1
        cdef double total = -self.law.log_total_weight(self.n_samples - 1, self.n_clusters - alone)
        if not self.family.augmented(i) and self._score_attached(i):
            return total + log_sum_exp(&self.log_density[0], self.n_clusters + 1)
        self._detach(i, -1)
        self._score_detached(i)
        total += log_sum_exp(&self.log_density[0], self.n_clusters + 1)
        self._attach(i, self.n_clusters if alone else own)
        return total

    def leave_one_out_shares(self, imputed=None):
        """p(z_i = k | z_-i, X) of each row and each block there is, (n_samples, n_clusters).

        The full conditional of the Gibbs pass without the chance of a new block; a row alone in
        its block keeps that, with the weight of a new one. Blocks are in the order of the labels
        at the call and may be numbered anew by it. ``imputed`` and cost as in ``leave_one_out``.
        """
        cdef Py_ssize_t[::1] block = np.arange(self.n_clusters)
        cdef double[:, ::1] out = np.empty((self.n_samples, self.n_clusters))
        cdef Py_ssize_t i
        if imputed is not None:
            self.family.set_imputed(imputed)
            self._rebuild()
        with nogil:
            for i in range(self.n_samples):
                self._score_given_others(i, &block[0], &out[i, 0])
        shares = np.asarray(out)
        shares -= shares.max(axis=1, keepdims=True)
        np.exp(shares, out=shares)
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    cdef int _score_given_others(
        self, Py_ssize_t i, Py_ssize_t* block, double* out
    ) except -1 nogil:
        """out[k] = log p(z_i = k | z_-i, X) up to a constant; slot t holds block[t]."""
        cdef Py_ssize_t own = self.label[i], last = self.n_clusters - 1, k
        cdef bint alone = self.family.n_members[own] == 1
        if not self.family.augmented(i) and self._score_attached(i):
            if alone:
                self.log_density[own] = self.log_density[self.n_clusters]
        else:
            self._detach(i, -1)
            self._score_detached(i)
            if alone:
                # The last block has its slot now; put back, the row's own comes last.
                k = block[own]
                block[own] = block[last]
                block[last] = k
            self._attach(i, last if alone else own)
        for k in range(last + 1):
            out[block[k]] = self.log_density[k]
        return 0

    cdef void _spoil_normaliser(self, Py_ssize_t i) noexcept nogil:
        """The notes' erratum 1, for the tests."""
        cdef Py_ssize_t k, own = self.label[i]
        for k in range(self.n_clusters):
            if k == own:
                if self.family.n_members[k] > 1:
                    self.log_density[k] += (self.family.log_marginal(k)
                                            - self.family.log_predictive_own(k, i))
            else:
                self.log_density[k] += self.family.log_marginal(k)

    # -- all rows at once ---------------------------------------------------------------------

    cdef int _pass_over_all_rows(self) except -1:
        """Draw all labels given weights and parameters: spec 4.5 and, for "gibbs", 4.6."""
        cdef bint anchored = self.algorithm == "parallel" and self._fault != NO_ANCHORS
        cdef Py_ssize_t n_blocks = self.n_clusters
        cdef double discount = self.law.discount
        if self.algorithm == "gibbs":
            n_blocks = self.law.n_components
            if self._fault == UNDIVIDED_WEIGHTS:
                discount *= self.law.n_components
        self._row_pass.run(
            self._rng, n_blocks, discount,
            self.law.weight_of_rest(n_blocks), anchored, self._n_imputed,
        )
        with nogil:
            self._close_gaps(n_blocks)
        self._n_imputed += 1
        self._accepted[PASS_ROWS] += self._row_pass.n_moved
        self._proposed[PASS_ROWS] += self.n_samples
        if self._row_pass.failed:
            self._break(ALL_ROWS)
        return 0

    cdef void _close_gaps(self, Py_ssize_t n_blocks) noexcept nogil:
        """Let the non-empty among the first n_blocks slots be slots 0..n_clusters-1, in order."""
        cdef Py_ssize_t k, i
        self.n_clusters = 0
        for k in range(n_blocks):
            if self.family.n_members[k] == 0:
                continue
            self.new_label[k] = self.n_clusters
            if k != self.n_clusters:
                self.family.copy(k, self.n_clusters)
                self.family.clear(k)
            self.n_clusters += 1
        if self.n_clusters < n_blocks:
            for i in range(self.n_samples):
                self.label[i] = self.new_label[self.label[i]]
        self._weigh_all()

    # -- split and merge ----------------------------------------------------------------------

    cdef int _split_merge_pass(self) except -1 nogil:
        """The proposals of one sweep. Their number must not look at the present K (spec 1)."""
        cdef Py_ssize_t n_proposals = self.n_split_merge, _
        self._division.discount = self.law.discount
        if self._fault == ADAPTIVE_SPLIT_MERGE:
            n_proposals = self.n_clusters
        for _ in range(n_proposals):
            self._split_or_merge()
        return 0

    cdef int _split_or_merge(self) except -1 nogil:
        """Two rows at random; in one block: propose to split it, in two: to merge them."""
        cdef Py_ssize_t i, j
        if self.n_samples < 2:
            return 0
        i = draws.below(self._rng, self.n_samples)
        j = draws.below(self._rng, self.n_samples - 1)
        j += j >= i
        self._reserve()
        if self.label[i] == self.label[j]:
            return self._propose_split(i, j)
        return self._propose_merge(i, j)

    cdef int _propose_split(self, Py_ssize_t i, Py_ssize_t j) except -1 nogil:
        cdef Py_ssize_t a = self.n_clusters + 1, b = self.n_clusters + 2, k = self.label[i], n, t
        cdef double log_ratio = self._log_split_prior(self.n_clusters)
        self._proposed[SPLITS] += 1
        if not isfinite(log_ratio):
            return 0  # all components are in use: no split
        n = self._list_others(i, j)
        log_ratio -= self._division.draw(self._rng, i, j, n, a, b, False, 0.0)
        log_ratio += self._log_split_gain(a, b, k)
        if log(draws.uniform(self._rng)) < log_ratio:
            self._accepted[SPLITS] += 1
            self.family.copy(a, k)
            self.family.copy(b, self.n_clusters)
            self.label[j] = self.n_clusters
            for t in range(n):
                if self.goes_second[t]:
                    self.label[self.member[t]] = self.n_clusters
            self._weigh(k)
            self._weigh(self.n_clusters)
            self.n_clusters += 1
        self.family.clear(a)
        self.family.clear(b)
        return self._reserve()

    cdef int _propose_merge(self, Py_ssize_t i, Py_ssize_t j) except -1 nogil:
        """Accept if log u < -log r, where log r = log_ratio - log q is at least log_ratio.

        So most merges, those of blocks far apart, are refused before q is worked out.
        """
        cdef Py_ssize_t a = self.n_clusters + 1, b = self.n_clusters + 2, both = self.n_clusters + 3
        cdef Py_ssize_t k = self.label[i], gone = self.label[j], n, t
        cdef double log_ratio, log_u = log(draws.uniform(self._rng))
        self._proposed[MERGES] += 1
        if self.family.merge(k, gone, both) != 0:
            self._unite_by_rows(k, gone, both)
        log_ratio = (self._log_split_prior(self.n_clusters - 1)
                     + self._log_split_gain(k, gone, both))
        if log_u < -log_ratio:
            n = self._list_others(i, j)
            if log_u + log_ratio < self._division.draw(
                self._rng, i, j, n, a, b, True, log_u + log_ratio
            ):
                self._accepted[MERGES] += 1
                self.label[j] = k
                for t in range(n):
                    self.label[self.member[t]] = k
                self._rebuild_block(k)  # from its rows: the rounding of the two is not inherited
                self._weigh(k)
                self._drop_block(gone, -1)
            self.family.clear(a)
            self.family.clear(b)
        self.family.clear(both)
        return 0

    cdef Py_ssize_t _list_others(self, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
        """List the other rows of the blocks of rows i and j in ``member``; returns how many."""
        cdef Py_ssize_t n = 0, t, k
        for t in range(self.n_samples):
            k = self.label[t]
            if (k == self.label[i] or k == self.label[j]) and t != i and t != j:
                self.member[n] = t
                n += 1
        return n

    cdef void _unite_by_rows(self, Py_ssize_t k, Py_ssize_t other, Py_ssize_t both) noexcept nogil:
        """Make slot both the block of the rows of two blocks."""
        cdef Py_ssize_t i
        self.family.clear(both)
        for i in range(self.n_samples):
            if self.label[i] == k or self.label[i] == other:
                self.family.add(both, i)

    cdef double _log_split_prior(self, Py_ssize_t n_merged) noexcept nogil:
        """log weight of a new block beside K, the number of blocks of the merged state."""
        if self._fault == SPLIT_STATE_COUNT:
            n_merged += 1
        return self.law.log_new_weight(n_merged)

    cdef double _log_split_gain(self, Py_ssize_t a, Py_ssize_t b, Py_ssize_t both) noexcept nogil:
        """log of p(split) / p(merged) without the term of ``_log_split_prior``."""
        return (self.family.log_marginal(a) + self.family.log_marginal(b)
                - self.family.log_marginal(both) + self._log_rising(self.family.n_members[a])
                + self._log_rising(self.family.n_members[b])
                - self._log_rising(self.family.n_members[both]))

    cdef double _log_rising(self, Py_ssize_t n) noexcept nogil:
        """log Gamma(n - discount) / Gamma(1 - discount)"""
        return lgamma(n - self.law.discount) - lgamma(1.0 - self.law.discount)

    # -- hyperparameters ----------------------------------------------------------------------

    cdef int _update_concentration(self) except -1 nogil:
        """concentration | block sizes (and discount): processes.crp."""
        cdef int fault = 0
        if not self._sample_concentration:
            return 0
        if self._fault == SWAPPED_BETA:
            fault = crp.SWAPPED_BETA_SHAPES
        elif self._fault == DP_CONCENTRATION:
            fault = crp.DIRICHLET_PROCESS_FOR_FINITE
        self.law.set_concentration(crp.draw_concentration(
            self._rng, self.law.concentration, &self.family.n_members[0], self.n_clusters,
            self.law.discount, self.law.n_components, self._concentration_shape,
            self._concentration_rate, fault,
        ))
        if self.law.n_components > 0:
            self._weigh_all()
        return 0

    cdef int _update_discount(self) except -1 nogil:
        """discount | block sizes, concentration: processes.crp."""
        if not self._sample_discount:
            return 0
        self.law.set_discount(crp.draw_discount(
            self._rng, self.law.discount, &self.family.n_members[0], self.n_clusters,
            self.law.concentration, self._discount_a, self._discount_b,
        ))
        self._weigh_all()
        return 0

    cdef int _update_prior_scale(self) except -1 nogil:
        """scale | partition, X: a Gibbs step over its grid."""
        cdef Py_ssize_t n_grid = self.scale_grid.shape[0], g
        if n_grid == 1:
            return 0
        for g in range(n_grid):
            self.log_scale_weight[g] = 0.0
        if self.family.scale_log_weights(
            self.n_clusters, &self.scale_grid[0], n_grid, &self.log_scale_weight[0]
        ) != 0:
            return self._break(PRIOR_SCALE)
        if self._fault == UNSCALED_PRIOR:
            for g in range(n_grid):
                self.log_scale_weight[g] -= self.n_clusters * log(self.scale_grid[g])
        if draws.categorical_from_logs(self._rng, &self.log_scale_weight[0], n_grid, &g) != 0:
            return self._break(PRIOR_SCALE)
        if self.scale_grid[g] != self.family.scale:
            if self.family.set_scale(self.n_clusters, self.scale_grid[g]) != 0:
                self._rebuild()
        return 0

    cdef int _learn_covariance(self) except -1 nogil:
        """Lam, delta and kappa0 | partition, X: likelihoods.learned_covariance."""
        if self._covariance is None:
            return 0
        if self._covariance.sweep(self.n_clusters, self._rng) != 0:
            return self._break(LEARNED_COVARIANCE)
        self._accepted[SIZES] += self._covariance.n_accepted
        self._proposed[SIZES] += self._covariance.n_rounds
        if self._covariance.settle(self.n_clusters) != 0:
            self._rebuild()
        return 0

    # -- bookkeeping --------------------------------------------------------------------------

    cdef Py_ssize_t _detach(self, Py_ssize_t i, Py_ssize_t target) except -1 nogil:
        """Take row i out of its block; returns the slot that target has afterwards."""
        cdef Py_ssize_t k = self.label[i]
        if self.family.n_members[k] == 1:
            self.label[i] = -1
            return self._drop_block(k, target)
        if self.family.remove(k, i) != 0:
            self.label[i] = -1
            self._rebuild_block(k)
        self.label[i] = -1
        self._weigh(k)
        return max(target, 0)

    cdef Py_ssize_t _drop_block(self, Py_ssize_t k, Py_ssize_t target) noexcept nogil:
        """Remove block k, which no label names; the last block takes its slot."""
        cdef Py_ssize_t last = self.n_clusters - 1, i
        if k != last:
            self.family.copy(last, k)
            for i in range(self.n_samples):
                if self.label[i] == last:
                    self.label[i] = k
            self._weigh(k)
        self.family.clear(last)
        self.n_clusters = last
        if target == last:
            return k
        return max(target, 0) if target <= last else last

    cdef int _attach(self, Py_ssize_t i, Py_ssize_t k) except -1 nogil:
        """Put row i into block k; k = n_clusters opens a block."""
        self.family.add(k, i)
        self.label[i] = k
        self._weigh(k)
        if k == self.n_clusters:
            self.n_clusters += 1
            return self._reserve()
        return 0

    cdef void _weigh(self, Py_ssize_t k) noexcept nogil:
        self.log_weight[k] = log(self.family.n_members[k] - self.law.discount)

    cdef void _weigh_all(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_clusters):
            self._weigh(k)

    cdef int _reserve(self) except -1 nogil:
        """Room for the blocks or all components, the empty block and three scratch slots."""
        cdef Py_ssize_t n_blocks = max(self.n_clusters, self._least_slots)
        self.law.reserve(self.n_clusters)
        if self.family.n_slots < n_blocks + 4:
            self.family.reserve(n_blocks + 4)
        if self.log_weight.shape[0] < self.family.n_slots:
            with gil:
                self.log_weight = longer(self.log_weight, (self.family.n_slots,))
                self.log_density = np.zeros(self.family.n_slots)
                self.new_label = np.zeros(self.family.n_slots, dtype=np.intp)
        return 0

    cdef void _rebuild(self) noexcept nogil:
        """Compute all statistics anew from the rows, so that rounding does not pile up."""
        cdef Py_ssize_t i, k
        for k in range(self.family.n_slots):  # empty slots too: the prior scale may have changed
            self.family.clear(k)
        for i in range(self.n_samples):
            self.family.add(self.label[i], i)
        self._weigh_all()

    cdef void _rebuild_block(self, Py_ssize_t k) noexcept nogil:
        """The same for one block."""
        cdef Py_ssize_t i
        self.family.clear(k)
        for i in range(self.n_samples):
            if self.label[i] == k:
                self.family.add(k, i)

    cdef double _log_joint(self) noexcept nogil:
        """Sum of the terms of ``_model.log_joint``: O(K d)."""
        cdef double total = self._log_jacobian
        cdef Py_ssize_t k
        if self._broken != NO_MOVE:
            return NAN
        total += self.law.log_prob(&self.family.n_members[0], self.n_clusters)
        for k in range(self.n_clusters):
            total += self.family.log_marginal(k)
        if self._sample_concentration:
            total += (self._concentration_shape * log(self._concentration_rate)
                      - lgamma(self._concentration_shape)
                      + (self._concentration_shape - 1.0) * log(self.law.concentration)
                      - self._concentration_rate * self.law.concentration)
        if self._sample_discount:
            total += ((self._discount_a - 1.0) * log(self.law.discount)
                      + (self._discount_b - 1.0) * log(1.0 - self.law.discount)
                      + lgamma(self._discount_a + self._discount_b)
                      - lgamma(self._discount_a) - lgamma(self._discount_b))
        if self._covariance is not None:
            total += self._covariance.log_prior()
        return total - log(<double> self.scale_grid.shape[0])

    cdef void _watch(self, Move move) noexcept nogil:
        """Remember the first move after which the log joint is not finite."""
        if self._broken == NO_MOVE and not isfinite(self._log_joint()):
            self._broken = move

    cdef int _break(self, Move move) noexcept nogil:
        """A move had no finite weights: remember it; the log joint is NaN from now on."""
        if self._broken == NO_MOVE:
            self._broken = move
        return 0

    def _sizes(self):
        return np.asarray(self.family.n_members)[:self.n_clusters]


def _in_order(function, n_items, size):
    """Call function(start, stop) for each chunk of the items, one after the other."""
    for start in range(0, n_items, size):
        function(start, min(start + size, n_items))


def _label_type(n_clusters):
    """The smallest type that holds so many labels."""
    return np.uint8 if n_clusters <= 255 else np.uint16 if n_clusters <= 65535 else np.int32


def _unite(parts, prior):
    """The family of a table whose columns belong to these families."""
    if len(parts) == 1:
        return parts[0]
    return ProductFamily(parts, [part.columns for part in prior.parts])


def _make_part(X, part, start):
    """The family of one kind of columns, the numbers of its prior as at the start of a chain."""
    if isinstance(part, CategoricalPrior):
        return DirichletCategorical(X, part.pseudo_counts)
    if isinstance(part, PoissonPrior):
        return GammaPoisson(X, part.shape, part.rate)
    if part.learned:
        mean_precision, df, _ = part.base(start)
        covariance, scale = start["covariance"], df - part.width - 1
    else:
        mean_precision, df, _ = part.base(start)
        covariance = part.covariance
        scale = start["prior_scale"]
    if part.covariance_type == "full":
        return NormalInverseWishart(
            X, part.mean, mean_precision, df, covariance, scale, part.learned
        )
    return NormalInverseGamma(
        X, part.mean, mean_precision, df / 2, np.asarray(covariance) / 2, scale,
        part.covariance_type == "spherical", part.learned,
    )


def _covariance_fault(fault):
    """The number of a fault among those of the learned covariances."""
    name = next(name for name, number in FAULTS.items() if number == fault)
    return COVARIANCE_FAULTS.get(name, 0)
