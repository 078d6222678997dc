"""Missing cells that are filled with numbers far outside all others: each model says so."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skbnp import BNPImputer, DirichletProcessMixture, TreeFactorModel
from skbnp.imputer import default_model

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
WORDS = "farther outside all training values than these reach"
SHORT = dict(n_chains=1, n_warmup=10, n_draws=40, random_state=0)


def said(caught):
    return [str(one.message) for one in caught if WORDS in str(one.message)]


@pytest.fixture
def line():
    """A column and three times that, so that a row far along the one is far along the other."""
    x = np.random.default_rng(0).normal(size=(80, 1))
    return np.hstack([x, 3.0 * x + 0.1 * np.random.default_rng(1).normal(size=(80, 1))])


@pytest.mark.parametrize("kind", [DirichletProcessMixture, TreeFactorModel])
def test_new_rows(kind, line):
    model = kind(**SHORT).fit(line)
    reach = np.ptp(line[:, 1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        filled = model.impute([[line[:, 0].max() + 0.5, np.nan], [np.nan, np.nan]])
        assert (np.abs(filled[:, 1]) < line[:, 1].max() + reach).all()
        assert not said(caught)
        far = model.impute([[100.0, np.nan], [0.0, np.nan], [-100.0, np.nan]])
    assert far[0, 1] > line[:, 1].max() + reach
    (message,) = said(caught)
    assert message.startswith("2 missing cell(s) of column(s) 1 were filled")
    assert message.endswith("Look at their standard deviations before you use them")


def test_training_rows(line):
    line[3] = [60.0, np.nan]
    with pytest.warns(UserWarning, match=f"1 missing cell.*column.s. 1 .*{WORDS}"):
        model = TreeFactorModel(**SHORT).fit(line)
    assert model.X_imputed_[3, 1] > 2 * np.nanmax(line[:, 1])
    imputer = BNPImputer(estimator=TreeFactorModel(**SHORT | {"n_chains": 2}))
    with pytest.warns(UserWarning, match=f"{WORDS}.*the imputer's estimator"):
        imputer.fit(line)
    assert imputer._are_judged_by_cells()
    imputer.r_hat_ = 1.0  # as if chains agreed
    report = imputer.report()
    assert "1 cell got numbers farther outside all observed values" in str(report)
    (verdict,) = report.sections["imputer"].verdicts
    assert (verdict.part, verdict.trust) == ("what fills missing cells", "with care")


def test_the_mixture_says_what_it_follows(line):
    # Most rows have one value: in their component it has no spread.
    ties = np.zeros((80, 1))
    ties[:20, 0] = np.random.default_rng(2).normal(size=20)
    model = DirichletProcessMixture(**SHORT).fit(np.hstack([line, ties]))
    assert model.partition_info_["ties"]
    with pytest.warns(UserWarning, match=f"{WORDS}. Components of .* have one value in column"):
        model.impute([[1000.0, np.nan, 0.0]])


@pytest.mark.parametrize(
    "equal, shape",
    [(0, "full"), (20, "full"), (21, "diag"), (30, "diag"), (36, "diag"), (39, "full")],
)
def test_the_default_imputer_has_no_full_covariances_of_equal_values(equal, shape):
    x = np.arange(40.0)
    x[:equal] = -1.0  # two values alone are levels
    frame = pd.DataFrame({"x": x, "y": np.arange(40.0), "name": ["a", "b"] * 20})
    frame.loc[39, "y"] = np.nan
    assert default_model(frame, semicontinuous=False).covariance_type == shape
    # Names may repeat.
    repeated = frame.assign(name=["a"] * 39 + ["b"])
    assert default_model(repeated, semicontinuous=False).covariance_type == shape
    # A common value is set apart where there are five others or more.
    assert default_model(frame).covariance_type == ("diag" if equal == 36 else "full")


def test_columns_of_one_value_are_no_reach(line):
    line[:, 0] = 5.0
    line[3, 0] = np.nan
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = TreeFactorModel(**SHORT).fit(line)
        model.impute([[np.nan, 0.0]])
    assert not said(caught)


def test_cells_that_are_no_numbers_are_left_to_the_model():
    frame = pd.DataFrame({"x": [[1], [2], [3]] * 7, "n": ["a", "b", None] * 7})
    assert default_model(frame).covariance_type == "full"
