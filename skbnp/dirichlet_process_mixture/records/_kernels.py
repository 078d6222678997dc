"""How the blocks of some rows are made, for whoever has the rows.

It pickles, and where columns are real it holds no prior: a worker that reads rows imports kernels
alone, and none of the libraries that laws and estimators need.
"""

from functools import partial

from skbnp.dirichlet_process_mixture.records._blocks import united
from skbnp.dirichlet_process_mixture.records._wide_families import (
    WideNormalInverseGamma,
    WideNormalInverseWishart,
)

# By the covariance of real columns.
_WIDE = {
    "full": WideNormalInverseWishart,
    "diag": WideNormalInverseGamma,
    "spherical": WideNormalInverseGamma,
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
    wide = _WIDE.get(getattr(part, "covariance_type", None))
    if wide is None:
        return partial(part.kernel, start=start)
    return part.kernel(None, start, partial(_WideKernel, wide))


class _WideKernel:
    """A compiled class and its arguments but for the rows, which come first."""

    def __init__(self, kind, _, *arguments):
        self._kind, self._arguments = kind, arguments

    def __call__(self, X):
        return self._kind(X, *self._arguments)
