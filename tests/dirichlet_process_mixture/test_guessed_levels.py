"""Few different numbers, which "auto" takes for levels: they stay numbers for the user."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbnp import DirichletProcessMixture

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:covariance_type='full' has little"),
]
N = 120
RNG = np.random.default_rng(7)


def frame(values, x=None, **options):
    """A column of these in turn, which follows from another."""
    group = np.resize(np.arange(len(values)), N)
    x = 4.0 * group + RNG.normal(size=N) if x is None else x
    return pd.DataFrame({"a": np.array(values)[group], "x": x}, **options)


def fitted(X):
    return DirichletProcessMixture(n_chains=1, n_warmup=60, n_draws=40, random_state=0).fit(X)


def said(call, *args, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = call(*args, **options)
    return answer, [str(one.message) for one in caught]


def holed(X, rows=slice(0, None, 9)):
    X = X.astype({"a": float})
    X.loc[X.index[rows], "a"] = np.nan
    return X


@pytest.mark.parametrize("mark", [-999, 99])
def test_a_mark_among_them_is_named(mark):
    X = frame([1, 2, 3, 4, 5])
    X.loc[[3, 20, 33, 50], "a"] = mark
    model, words = said(fitted, X)
    assert model.families_.tolist() == ["categorical", "gaussian"]
    assert any(f"X has {mark} in column(s) 'a'" in one for one in words)


def test_reports_and_arviz_have_the_numbers():
    X = holed(frame([10, 20, 50]))
    model = fitted(X)
    filled = model.X_imputed_["a"][X["a"].isna()]
    assert filled.between(10, 50).all() and (filled % 10).any()
    text = str(model.report())
    assert "the most probable one" not in text
    low, high = re.search(r"^ +a .* (\S+) to (\S+)$", text, re.MULTILINE).groups()
    assert_allclose([float(low), float(high)], [filled.min(), filled.max()], rtol=0.1)
    group = model._constant_group().variables
    assert_allclose(group["imputed_mean"][1], filled)
    assert "levels" not in group
    observed = model._observed_group().variables["X"][1]
    assert set(observed[:, 0][~X["a"].isna()]) == {10.0, 20.0, 50.0}
    draws = [[model.posterior_[0, t] for t in range(3)]]
    drawn = model._drawn_cells(draws, np.random.RandomState(0))
    assert set(np.unique(drawn.variables["imputed"][1])) <= {10.0, 20.0, 50.0}


@pytest.mark.parametrize("form", ["Int64", "float"])
def test_fractions_stay_so_in_a_column_of_integers(form):
    model = fitted(frame([0.5, 1.0, 2.5]))
    X = pd.DataFrame({"a": pd.array([1, None, None, None], "Int64"), "x": [4.0, 0.0, 4.0, 8.0]})
    if form != "Int64":
        X = X.astype({"a": float})
    tables = [*model.sample_missing(X, n_tables=3, random_state=0), model.impute(X, rounding=True)]
    for table in tables:
        assert set(np.asarray(table["a"], dtype=float)) <= {0.5, 1.0, 2.5}
    assert_array_equal(np.asarray(tables[-1]["a"], dtype=float), [1.0, 0.5, 1.0, 2.5])


def test_what_is_new_stays_whatever_its_size():
    model = fitted(frame([1, 2, 3]))
    for new in (1e20, -7.25, 2.0**60):
        X = pd.DataFrame({"a": [new, 2.0, np.nan], "x": 0.0})
        answer, words = said(model.impute, X)
        assert answer["a"][0] == new and answer["a"][1] == 2.0 and 1.0 <= answer["a"][2] <= 3.0
        assert len(words) == 1 and f"X has {new:.12g} in column 'a'" in words[0]
    with pytest.raises(ValueError, match="integers up to 2.53 in size"):
        model.impute(pd.DataFrame({"a": [2**60 + 1, 2], "x": 0.0}))
    # A column with nothing to fill keeps its type.
    for dtype in ("int64", "uint8", object):
        X = pd.DataFrame({"a": np.array([7, 2], dtype), "x": 0.0})
        answer, _ = said(model.impute, X)
        assert answer["a"].dtype == dtype and answer["a"].tolist() == [7, 2]


def test_integers_that_floats_do_not_hold_are_no_levels():
    X = frame([2**62, 2**62 + 1]).astype({"a": object})
    with pytest.raises(ValueError, match="integers up to 2.53 in size"):
        fitted(X)
    assert fitted(frame([2**62, 2**64]).astype({"a": object})).families_[0] == "gaussian"


@pytest.mark.parametrize("values", [[0.1, 0.2, 0.3], [1e6 + 0.1, 1e6 + 2.1, 1e6 + 4.1]])
@pytest.mark.parametrize("first", [np.float32, np.float64, np.longdouble])
def test_single_precision_has_the_same_levels(values, first):
    X = frame(np.array(values, np.float64))
    model = fitted(X.astype({"a": first}))
    assert model.families_[0] == "categorical" and model.levels_[0].dtype == np.float64
    for other in (np.float32, np.float64):
        new = X.astype({"a": other})
        found, words = said(model.score_samples, new)
        assert not words
        assert_allclose(found, model.score_samples(X.astype({"a": first})), rtol=1e-12)
        new.loc[0, "a"] = np.nan
        pd.testing.assert_series_equal(
            model.impute(new)["a"][1:], new["a"][1:], check_dtype=False, check_exact=True
        )


def test_codes_that_differ_late_are_told_apart():
    model = fitted(frame([1000001, 1000002, 1000003]))
    X = pd.DataFrame({"a": [1000004, 1000003], "x": 0.0})
    _, words = said(model.predict, X)
    assert "X has 1000004 in" in words[0] and "1000001, 1000002, 1000003:" in words[0]


def test_whole_floats_are_what_integers_are():
    counts = RNG.poisson(1.0, N)
    X = frame([1, 2, 3]).assign(c=counts, b=counts > 1)
    X = X.astype({"b": int})
    families = fitted(X).families_.tolist()
    assert families == ["categorical", "gaussian", "poisson", "bernoulli"]
    floats = X.astype(float)
    assert fitted(floats).families_.tolist() == families
    floats.iloc[3, [0, 2, 3]] = np.nan
    assert fitted(floats).families_.tolist() == families


def test_few_rows_of_answers_are_named():
    """With fewer than ten rows for each they are counts, and tell no clusters apart."""
    X = pd.DataFrame(RNG.integers(1, 8, (65, 2)), columns=["a", "b"])
    model, words = said(fitted, X)
    assert model.families_.tolist() == ["poisson", "poisson"]
    assert any("'a', 'b'" in one and "answers such as 1 to 5" in one for one in words)
