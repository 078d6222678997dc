"""What a file must hold before kernels, which trust their indices, may see it."""

from numbers import Real

import numpy as np

from skbnp.dirichlet_process_mixture._model import LAWS
from skbnp.dirichlet_process_mixture.families._columns import check_array
from skbnp.laws import Grid, Law
from skbnp.numerics.states import check_positive, is_same
from skbnp.units import check_units


def check_draw(draw, prior, X, all_rows=True):
    """Raise a ValueError unless a draw fits the prior and the standardised rows.

    Parameters
    ----------
    draw : dict
    prior : Prior
    X : ndarray of shape (n_samples, n_features)
    all_rows : bool, default=True
        Whether these are all rows that the blocks hold, or some of them.
    """
    n_members = draw["n_members"]
    n_blocks = len(n_members)
    check_array("n_members", n_members, (n_blocks,), np.intp)
    empty = np.flatnonzero(n_members == 0)
    if n_blocks < 2 or empty.tolist() != [n_blocks - 1]:
        raise ValueError("n_members of a draw must count its labels, the last block empty")
    if all_rows or "label" in draw:
        _check_labels_of_draw(draw["label"], n_members, len(X), all_rows)
    else:
        X = X[:0]  # what draws of collections say of single rows follows from a record
    of_base = [name for name in prior.start() if name != "covariance"]
    for name in ("concentration", "discount", *of_base):
        if type(draw[name]) is not float:
            raise ValueError(f"{name} of a draw must be a number, got {draw[name]!r}")
    lowest = -draw["discount"] if prior.n_components is None else 0.0
    if not (
        draw["concentration"] > lowest
        and draw["discount"] < 1.0
        and all(0.0 < draw[name] < np.inf for name in of_base)
    ):
        raise ValueError(f"concentration, discount and {of_base} of a draw must be in range")
    if prior.components_law is not None and draw["concentration"] != prior.concentration:
        raise ValueError("concentration of a draw must be that of the prior's components")
    for part in prior.parts:
        part.check_draw(draw, n_blocks, X[:, part.columns])


def _check_labels_of_draw(label, n_members, n_rows, all_rows):
    if label.shape != (n_rows,) or label.dtype not in (np.uint8, np.uint16, np.int32):
        raise ValueError(f"label of a draw has shape {label.shape} and dtype {label.dtype}")
    counts = np.bincount(label, minlength=len(n_members))
    if len(counts) != len(n_members) or not (
        np.array_equal(counts, n_members) if all_rows else np.all(counts <= n_members)
    ):
        raise ValueError("n_members of a draw must count its labels, the last block empty")


def check_prior(prior, n_features):
    """Raise a ValueError unless the parts of a prior share out the columns and fit them.

    Parameters
    ----------
    prior : Prior
    n_features : int
    """
    columns = [part.columns for part in prior.parts]
    for column in columns:
        check_array("columns", column, (len(column),), np.intp)
    shared_out = sorted(np.concatenate(columns).tolist())
    # The length first: the number of features may be anything.
    if len(shared_out) != n_features or shared_out != list(range(n_features)):
        raise ValueError("the parts of a prior must share out the columns")
    for part in prior.parts:
        part.check()
    _check_laws(prior)


def _check_laws(prior):
    """Raise a ValueError unless what is sampled has a law of its kind, and numbers are in range."""
    check_positive(prior, "n_components")
    if prior.components_law is not None:
        check_positive(prior, "concentration")
        if isinstance(prior.concentration, Law) or prior.discount != 0.0:
            raise ValueError("a law of n_components fixes the concentration of each component")
    for name, kind in LAWS.items():
        value = getattr(prior, name)
        if type(value) is not kind and not (isinstance(value, Real) and np.isfinite(value)):
            raise ValueError(
                f"{name} of the prior must be a number or a {kind.__name__}, got {value!r}"
            )
        if kind is not Grid and isinstance(value, Law):
            check_positive(prior, name)
    if not np.all(prior.scale_grid > 0.0):
        raise ValueError(f"prior_scale of the prior must be > 0, got {prior.prior_scale!r}")
    if not isinstance(prior.discount, Law) and not 0.0 <= prior.discount < 1.0:
        raise ValueError(f"discount of the prior must be in [0, 1), got {prior.discount!r}")


def check_fitted(estimator):
    """Raise a ValueError unless the fitted attributes of a mixture belong together.

    Parameters
    ----------
    estimator : DirichletProcessMixture
    """
    rows, d = estimator._training_rows, estimator.n_features_in_
    n = len(rows.X)
    check_array("X", rows.X, (n, d))
    estimator._form.check(d, n)
    check_prior(estimator._prior, d)
    _check_families(estimator._prior, estimator)
    check_units(estimator._units, d, keep_constant=True)
    ours = {"prior": estimator._prior, "units": estimator._units}
    theirs = {name: getattr(rows, name) for name in ours}
    if not is_same(ours, theirs):
        raise ValueError("the training rows must have the prior and the units of the draws")
    if estimator._n_features_out != estimator.n_clusters_:
        raise ValueError("_n_features_out must be n_clusters_")
    if estimator._training_cells is not None:
        estimator._training_cells.check(np.isnan(rows.X), estimator._prior.columns_of_values)
    if type(estimator.n_clusters_) is not int:
        raise ValueError("n_clusters_ must be an integer")
    _check_labels("labels_", estimator._training_labels, n, estimator.n_clusters_)
    sizes = estimator.merge_tree_.sizes
    _check_labels("component_labels_", estimator.component_labels_, n, len(sizes))
    if not np.array_equal(np.bincount(estimator.component_labels_), sizes):
        raise ValueError("sizes of merge_tree_ must be those of component_labels_")
    sure = estimator._sure_rows
    if sure is not None and (sure.shape != (n,) or sure.dtype != bool):
        raise ValueError("_sure_rows must be None or say yes or no of each row")
    counts = estimator.merged_n_clusters_
    if counts.ndim != 1 or counts.dtype.kind != "i" or not len(counts):
        raise ValueError("merged_n_clusters_ must have one number per draw")
    if counts.min() < 1 or counts.max() > n:
        raise ValueError(f"merged_n_clusters_ must be integers from 1 to {n}")


def _check_labels(name, labels, n, n_clusters):
    if labels.shape != (n,) or labels.dtype.kind != "i":
        raise ValueError(f"{name} must have one entry per row")
    # The number first: it may be anything.
    if n_clusters > n or not np.array_equal(np.unique(labels), np.arange(n_clusters)):
        raise ValueError(f"{name} must be 0 to {n_clusters - 1}")


def _check_families(prior, estimator):
    """Cells of new rows are read as the table says and used as the prior says: both must agree."""
    table = estimator._table
    families = ["gaussian"] * estimator.n_features_in_ if table is None else table.families
    if list(estimator.families_) != list(families):
        raise ValueError("families_ must be those of the table")
    for part in prior.parts:
        for place, j in enumerate(part.columns):
            part.check_column(place, families[j], None if table is None else table.levels[j])
