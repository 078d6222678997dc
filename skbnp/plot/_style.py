"""What all displays share: the import of matplotlib and the colours."""

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

# Okabe & Ito's palette, told apart with any colour vision; without yellow, too faint for lines,
# and sky blue, which cannot be told from a faint point of the first blue.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#000000")
GREY = "#8C8C8C"


def import_pyplot():
    """matplotlib.pyplot, or an ImportError that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "skbnp.plot needs matplotlib: install it with `pip install 'skbnp[plot]'`"
        ) from error
    return plt


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


def _is_fitted(estimator, attribute):
    if not hasattr(estimator, "fit"):  # no estimator, but something that looks like a fitted one
        return hasattr(estimator, attribute)
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def hide_frame(ax):
    """Leave only the two spines that carry the scales."""
    ax.spines[["top", "right"]].set_visible(False)
