"""Looking at an estimator costs nothing: no attribute computes, none is larger than the table.

scikit-learn's HTML reads every public attribute that ends in an underscore, notebooks read all of
them for their completion, debuggers too.
"""

import tracemalloc

import numpy as np
import pytest
from sklearn.utils import estimator_html_repr

from contract.registry import SETTINGS, SHORTEST

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# Of a table of so many rows an array of all pairs takes 150 times the table's memory.
N_ROWS, N_FEATURES = 600, 4


def table(holes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    X[: N_ROWS // 2, :2] += 6.0
    X[:, 3] += X[:, 0]
    if holes:
        X[rng.random(X.shape) < 0.05] = np.nan
        X[np.isnan(X).all(axis=1)] = 0.0
    return X


@pytest.fixture(scope="module", params=SETTINGS, ids=str)
def fitted(request):
    setting = request.param
    return setting.fit(table(setting.takes_holes), **SHORTEST)


def read_all(estimator):
    for name in dir(estimator):
        if not name.startswith("__"):
            getattr(estimator, name, None)
    return vars(estimator)


LOOKS = {"html": estimator_html_repr, "repr": repr, "str": str, "attributes": read_all}


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_takes_no_more_memory_than_the_table(fitted, look):
    LOOKS[look](fitted)  # what Python and scikit-learn keep from the first time
    tracemalloc.start()
    try:
        LOOKS[look](fitted)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The text itself is some 200 kB of style sheets and scripts, whatever was fitted.
    assert peak < N_ROWS * N_FEATURES * 8 + 1_000_000


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_predicts_nothing(fitted, look, monkeypatch):
    """Everything that is computed of draws goes through one of these."""

    def computes(*args, **kwargs):
        raise AssertionError("computes")

    for name in ("_prediction_draws", "_by_blocks", "_check_new"):
        assert callable(getattr(fitted, name))
        monkeypatch.setattr(fitted, name, computes, raising=True)
    for name in ("evenly_spaced", "in_order", "highest"):
        monkeypatch.setattr(type(fitted.posterior_), name, computes)
    LOOKS[look](fitted)
