"""What a chain of the mixture is at: a partition of the rows, its law, and the blocks' statistics.

rho ~ PY(concentration, discount), theta_c ~ H, x_i | z_i = c ~ F(theta_c), theta integrated out.
The Dirichlet process has discount 0; M components have discount -concentration / M; where M has a
law of its own, the partition is that of `skbnp.processes.mfm`.
"""

from libc.math cimport log

import numpy as np

from skbnp.mcmc.chain cimport State as BaseState
from skbnp.numerics.special cimport lgamma
from skbnp.numerics.vector_math cimport prefetch
from skbnp.processes cimport crp_law

from skbnp.laws import Law
from skbnp.likelihoods.conjugate.product import ProductFamily
from skbnp.mcmc.fields import Field
from skbnp.numerics.buffers import longer
from skbnp.numerics.states import entry
from skbnp.processes.mfm import FiniteMixtures


cdef class State(BaseState):
    """A partition and its hyperparameters.

    Invariant between moves: slots 0..n_clusters-1 of the family are non-empty blocks, slot
    ``label[i]`` holds row i and no other slot does; slot n_clusters is the empty block, and at
    least three slots behind it are free. ``log_weight[k]`` is log(n_k - discount).
    """

    FIELDS = (
        Field("n_clusters", int, at_least=1),
        Field("label", int, ("n_samples",), at_least=0, below="n_clusters"),
        Field("concentration", float),
        Field("discount", float),
        Field("n_imputed", int, at_least=0),
    )

    def __init__(self, X, prior, labels, start, *, least_slots=0, double log_jacobian=0.0):
        """Rows of X (n_samples, n_features), in the units of ``prior``, with these labels.

        ``start`` has the hyperparameters. There is room for ``least_slots`` blocks at least.
        """
        parts = [self.family_of(X[:, part.columns], part, start) for part in prior.parts]
        self.family = _unite(parts, prior)
        if prior.learned:
            self.covariance = self.covariance_of(
                *next(pair for pair in zip(parts, prior.parts) if pair[1] is prior.gaussian)
            )
        self.n_samples = self.family.n_samples
        self.samples_concentration = isinstance(prior.concentration, Law)
        self.samples_discount = isinstance(prior.discount, Law)
        if self.samples_concentration:
            self.concentration_shape = prior.concentration.shape
            self.concentration_rate = prior.concentration.rate
        if self.samples_discount:
            self.discount_a, self.discount_b = prior.discount.a, prior.discount.b
        self.law = self.law_of(prior, start)
        self.scale_grid = np.array(prior.scale_grid)
        self._least_slots = least_slots
        self._log_jacobian = log_jacobian
        self.log_weight = np.zeros(0)
        self.log_weight_of_others = np.zeros(0)
        self.label = np.unique(labels, return_inverse=True)[1].astype(np.intp)
        self.n_clusters = np.max(self.label) + 1
        self.reserve()

    def law_of(self, prior, start):
        """The law of the partition, its parameters as at the start of a chain."""
        a, b = self.discount_a, self.discount_b
        concentration = start.get(
            "concentration",
            self.concentration_shape / self.concentration_rate
            if self.samples_concentration else prior.concentration,
        )
        if prior.components_law is not None:
            return FiniteMixtures(self.n_samples, concentration, prior.components_law)
        discount = start.get(
            "discount", min(a / (a + b), 1 - 1e-9) if self.samples_discount else prior.discount
        )
        return crp_law.PartitionLaw(concentration, discount, prior.n_components or 0)

    def family_of(self, X, part, start):
        """The family of one kind of columns, its prior's numbers as at the start of a chain."""
        return part.kernel(X, start)

    def covariance_of(self, family, part):
        """The updates of what its blocks share."""
        return part.covariance_updates(family)

    # -- what a chain resumes from ------------------------------------------------------------

    @property
    def concentration(self):
        """Of the partition's law."""
        return self.law.concentration

    @concentration.setter
    def concentration(self, value):
        self.law.set_concentration(value)

    @property
    def discount(self):
        """Of the partition's law; one that follows from the concentration comes with it."""
        return self.law.discount

    @discount.setter
    def discount(self, value):
        self.law.set_discount(value)

    def get_state(self):
        """Fields, and statistics of the blocks to the last bit."""
        return super().get_state() | {"family": self.family.get_state(self.n_clusters)}

    def check(self, state, values):
        """Whether statistics and labels belong together."""
        n_clusters, label, family = values["n_clusters"], values["label"], entry(state, "family")
        if isinstance(self.law, FiniteMixtures) and (
            values["concentration"], values["discount"]
        ) != (self.law.concentration, self.law.discount):
            raise ValueError(
                f"concentration of the state must be {self.law.concentration}, got "
                f"{values['concentration']!r}"
            )
        n_members = np.bincount(label, minlength=min(n_clusters, self.n_samples + 1))
        if not np.array_equal(n_members, entry(family, "n_members")):
            raise ValueError("n_members of the state must count its labels")
        self.family.check_cells(family, label, n_clusters)

    def refresh(self, state):
        """Statistics as they were, weights from them."""
        self.family.set_state(state["family"], self.n_clusters)
        self.reserve()
        self.weigh_all()

    def adapt(self):
        """Imputations of warm-up count for nothing."""
        self.family.forget_imputations()
        self.n_imputed = 0

    # -- rows in blocks -----------------------------------------------------------------------

    cdef void fetch(self, Py_ssize_t i) noexcept nogil:
        """Ask for what will be read soon of row i."""
        prefetch(&self.label[i])
        self.family.fetch(i)

    cdef Py_ssize_t detach(self, Py_ssize_t i, Py_ssize_t target) except -1 nogil:
        """Take row i out of its block; returns the slot that target has afterwards."""
        cdef Py_ssize_t k = self.label[i]
        if self.family.n_members[k] == 1:
            self.label[i] = -1
            return self.drop_block(k, target)
        if self.family.remove(k, i) != 0:
            self.label[i] = -1
            self.rebuild_block(k)
        self.label[i] = -1
        self.weigh(k)
        return max(target, 0)

    cdef int attach(self, Py_ssize_t i, Py_ssize_t k) except -1 nogil:
        """Put row i into block k; k = n_clusters opens a block."""
        self.family.add(k, i)
        self.label[i] = k
        self.weigh(k)
        if k == self.n_clusters:
            self.n_clusters += 1
            return self.reserve()
        return 0

    cdef Py_ssize_t drop_block(self, Py_ssize_t k, Py_ssize_t target) noexcept nogil:
        """Remove block k, which no label names; the last block takes its slot."""
        cdef Py_ssize_t last = self.n_clusters - 1, i
        if k != last:
            self.family.copy(last, k)
            for i in range(self.n_samples):
                if self.label[i] == last:
                    self.label[i] = k
            self.weigh(k)
        self.family.clear(last)
        self.n_clusters = last
        if target == last:
            return k
        return max(target, 0) if target <= last else last

    cdef void weigh(self, Py_ssize_t k) noexcept nogil:
        self.log_weight[k] = log(self.family.n_members[k] - self.law.discount)
        self.log_weight_of_others[k] = log(self.family.n_members[k] - 1 - self.law.discount)

    cdef void weigh_all(self) noexcept nogil:
        cdef Py_ssize_t k
        for k in range(self.n_clusters):
            self.weigh(k)

    cdef int reserve(self) except -1 nogil:
        """Room for the blocks or all components, the empty block and three scratch slots."""
        cdef Py_ssize_t n_blocks = max(self.n_clusters, self._least_slots)
        self.law.reserve(self.n_clusters)
        if self.family.n_slots < n_blocks + 4:
            self.family.reserve(n_blocks + 4)
        if self.log_weight.shape[0] < self.family.n_slots:
            with gil:
                self.log_weight = longer(self.log_weight, (self.family.n_slots,))
                self.log_weight_of_others = longer(
                    self.log_weight_of_others, (self.family.n_slots,)
                )
        return 0

    cdef void rebuild(self) noexcept nogil:
        """Compute all statistics anew from the rows, so that rounding does not pile up."""
        cdef Py_ssize_t i, k
        for k in range(self.family.n_slots):  # empty slots too: the prior scale may have changed
            self.family.clear(k)
        for i in range(self.n_samples):
            self.family.add(self.label[i], i)
        self.weigh_all()

    cdef void rebuild_block(self, Py_ssize_t k) noexcept nogil:
        """The same for one block."""
        cdef Py_ssize_t i
        self.family.clear(k)
        for i in range(self.n_samples):
            if self.label[i] == k:
                self.family.add(k, i)

    # -- density ------------------------------------------------------------------------------

    cpdef double log_joint(self):
        """log p(rho, X, all hyperparameters), in the units that the Jacobian gives."""
        return self.log_density()

    cdef double log_density(self) noexcept nogil:
        """Sum of the terms of ``_model.log_joint``: O(K d)."""
        cdef double total = self._log_jacobian
        cdef Py_ssize_t k
        total += self.law.log_prob(&self.family.n_members[0], self.n_clusters)
        for k in range(self.n_clusters):
            total += self.family.log_marginal(k)
        if self.samples_concentration:
            total += (self.concentration_shape * log(self.concentration_rate)
                      - lgamma(self.concentration_shape)
                      + (self.concentration_shape - 1.0) * log(self.law.concentration)
                      - self.concentration_rate * self.law.concentration)
        if self.samples_discount:
            total += ((self.discount_a - 1.0) * log(self.law.discount)
                      + (self.discount_b - 1.0) * log(1.0 - self.law.discount)
                      + lgamma(self.discount_a + self.discount_b)
                      - lgamma(self.discount_a) - lgamma(self.discount_b))
        if self.covariance is not None:
            total += self.covariance.log_prior()
        return total - log(<double> self.scale_grid.shape[0])

    # -- what draws and traces are made of ----------------------------------------------------

    def base_scalars(self):
        """Of the prior of real columns, what is part of the state: numbers."""
        if self.covariance is None:
            return {"prior_scale": self.family.scale}
        return {
            "mean_precision": self.covariance.mean_precision,
            "degrees_of_freedom": self.covariance.degrees_of_freedom,
            "log_det_covariance": self.covariance.log_det_covariance,
        }

    def base(self):
        """Of the prior of real columns, what is part of the state."""
        if self.covariance is None:
            return {"prior_scale": self.family.scale}
        return {
            "mean_precision": self.covariance.mean_precision,
            "degrees_of_freedom": self.covariance.degrees_of_freedom,
            "covariance": self.covariance.covariance,
        }

    def sizes(self):
        """Number of rows of each block."""
        return np.asarray(self.family.n_members)[:self.n_clusters]


def _unite(parts, prior):
    """The family of a table whose columns belong to these families."""
    if len(parts) == 1:
        return parts[0]
    return ProductFamily(parts, [part.columns for part in prior.parts])
