"""How the blocks of some rows are made, for whoever has the rows.

It pickles, and where columns are real it holds no prior: a worker that reads rows imports kernels
alone, and none of the libraries that laws and estimators need.
"""

from functools import partial

from skbnp.dirichlet_process_mixture.records._blocks import united
from skbnp.likelihoods.conjugate.normal_inverse_gamma import NormalInverseGamma
from skbnp.likelihoods.conjugate.normal_inverse_wishart import NormalInverseWishart

# By the covariance of real columns.
_GAUSSIAN = {
    "full": NormalInverseWishart,
    "diag": NormalInverseGamma,
    "spherical": NormalInverseGamma,
}


class Kernels:
    """Makes the family of some rows.

    Parameters
    ----------
    prior : Prior
    start : dict
        The hyperparameters of the columns.
    """

    def __init__(self, prior, start):
        self._columns = [part.columns for part in prior.parts]
        self._kernels = [kernel_of(part, start) for part in prior.parts]

    def family(self, X):
        """The family of rows (n_samples, n_features)."""
        if len(self._kernels) == 1:
            return self._kernels[0](X)  # all columns are of one kind
        pairs = zip(self._kernels, self._columns, strict=True)
        return united([kernel(X[:, columns]) for kernel, columns in pairs], self._columns)


def kernel_of(part, start):
    """What makes the family of the rows of one kind of columns."""
    kind = _GAUSSIAN.get(getattr(part, "covariance_type", None))
    if kind is None:
        return partial(part.kernel, start=start)
    return part.kernel(None, start, partial(_GaussianKernel, kind))


class _GaussianKernel:
    """A compiled class and its arguments but for the rows, which come first."""

    def __init__(self, kind, _, *arguments):
        self._kind, self._arguments = kind, arguments

    def __call__(self, X):
        family = self._kind(X, *self._arguments)
        if isinstance(family, NormalInverseGamma):
            family.complete = False  # blocks have rows elsewhere, which may lack cells
        return family
