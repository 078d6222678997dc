"""What displays ask a fitted estimator, its own figures beside what all may read."""

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skbnp.tables.columns import as_numbers


def check_estimator(estimator, attribute):
    """Raise where there is nothing to show, or not yet, or the estimator sits in a pipeline."""
    if hasattr(estimator, "steps"):
        raise TypeError(
            "estimator must be the fitted step of the pipeline, pipeline[-1], with X as the steps "
            "before it hand it on, got a Pipeline"
        )
    kind = type(estimator).__name__
    if not _is_fitted(estimator, attribute):
        raise NotFittedError(f"{kind} is not fitted: call fit before")
    if not hasattr(estimator, attribute):
        raise TypeError(f"estimator must have {attribute!r}, which {kind} has not")


def labels_in_memory(estimator):
    """``labels_``, of more than 100,000 rows those of the rows that are in memory, or None."""
    if hasattr(estimator, "_training_labels"):
        return estimator._training_labels
    return getattr(estimator, "labels_", None)


def marks_in_fit(estimator):
    """What stood for missing cells in `fit`, as `skbnp.tables.marks.resolve_marks` has it."""
    form = getattr(estimator, "_form", None)
    return getattr(estimator, "_marks", {}) if form is None else form.marks


def places_in_training(estimator, X):
    """Where rows are in the training table, -1 where they are not; None if it does not tell."""
    if not hasattr(estimator, "_training_places"):
        return None
    return estimator._training_places(X)


def reported_traces(estimator):
    """Names of the traces that `fit` judges; all of them where it does not say."""
    return getattr(estimator, "_reported_traces", None) or list(estimator.posterior_.traces)


def as_measured(estimator, X):
    """A table as numbers for profiles: codes of levels, and cells below a limit at it.

    Parameters
    ----------
    estimator : estimator
        With clusters.
    X : array-like or None
        None means the training rows that are in memory.
    """
    if X is None:
        rows = estimator.posterior_.observed_data()
    elif hasattr(estimator, "_check_new"):
        rows = estimator._check_new(X)
    else:
        rows = np.asarray(as_numbers(X), dtype=np.float64)
    return estimator._at_limit(rows) if hasattr(estimator, "_at_limit") else rows


def _is_fitted(estimator, attribute):
    if not hasattr(estimator, "fit"):  # no estimator, but something that looks like a fitted one
        return hasattr(estimator, attribute)
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True
