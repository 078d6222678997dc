"""A reading at any distance gets a finite answer or an error that names its column."""

import warnings

import numpy as np
import pytest

from contract.registry import SETTINGS
from skbnp.estimators.tables import FARTHEST

DENSITIES = {"CIBPBeliefNet": ["auto", "ais"], "ICPNetwork": ["fantasies", "importance", "ais"]}
METHODS = ("score_samples", "impute", "transform", "predict", "predict_proba")


def table():
    X = np.random.default_rng(0).normal(size=(30, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    X[:15] += 4.0
    return X


@pytest.fixture(scope="module")
def fitted():
    cache = {}

    def fit(setting):
        if setting.name not in cache:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cache[setting.name] = setting.fit(table(), predict_draws=2)
        return cache[setting.name]

    return fit


def is_clipped(setting):
    return setting.options.get("visible") == "sigmoid"


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_reading_out_of_reach_is_refused(setting, fitted):
    if is_clipped(setting):
        pytest.skip("sigmoid columns are clipped to their range")
    X, model = table()[:2], fitted(setting)
    for value in (-1e306, 1e53):
        X[1, 1] = value
        for name in METHODS:
            if hasattr(model, name):
                with pytest.raises(ValueError, match=r"X must be within .* in column\(s\) 1"):
                    getattr(model, name)(X)


@pytest.mark.filterwarnings("ignore:.*reach beyond the range", "ignore:Most rows have the weight")
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_answers_up_to_there_are_finite(setting, fitted):
    X, model = table(), fitted(setting)
    spread, before = X.std(axis=0).min(), model.get_params()
    densities = DENSITIES.get(type(model).__name__, [None])
    for share in (1.0, 1e-25, 1e-44):
        # One reading far out, then both; the other cell is missing, or not.
        far = 0.99 * FARTHEST * spread * share
        rows = np.array([[far, 1.0], [-far, far]])
        if setting.takes_holes:
            rows = np.vstack([rows, [np.nan, -far], [far, np.nan]])
        for density in densities:
            if density is not None:
                model.set_params(density=density)
            for name in METHODS:
                if not hasattr(model, name):
                    continue
                answer = np.asarray(getattr(model, name)(rows))
                if name == "score_samples":
                    assert not np.isnan(answer).any() and (answer < np.inf).all()
                elif answer.dtype.kind == "f":
                    assert np.isfinite(answer).all(), name
    model.set_params(**before)
