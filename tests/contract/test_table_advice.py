"""What `fit` says of columns, by their names: identifiers, dates, cells far out."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

from contract.registry import DEFAULTS
from contract.tables import any_method, fitted, pl, short
from skbnp.tables.identifiers import identifier_columns
from skbnp.tables.outlying import n_far_targets, outlying_columns

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:covariance_type='full' has little"),
]
by_setting = pytest.mark.parametrize("setting", DEFAULTS, ids=str)


def clusters(n):
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.normal(0, 1, (n // 2, 2)), rng.normal(8, 1, (n // 2, 2))])
    return pd.DataFrame(X, columns=["a", "b"])


IDENTIFIERS = {
    "from zero": lambda n: np.arange(n),
    "from a thousand": lambda n: np.arange(n) + 1000.0,
    "shuffled": lambda n: np.random.default_rng(0).permutation(n),
    "in tens": lambda n: 10 * np.arange(n),
    "a part of them": lambda n: np.sort(np.random.default_rng(0).permutation(2 * n)[:n]),
    "with holes": lambda n: np.where(np.arange(n) % 10 == 3, np.nan, np.arange(n)),
    "two of them twice": lambda n: np.maximum(np.arange(n), 2),
}


@pytest.mark.parametrize("name", IDENTIFIERS)
def test_an_identifier_is_seen_whatever_its_numbers(name):
    frame = clusters(120).assign(row=IDENTIFIERS[name](120))
    assert identifier_columns(frame.to_numpy(dtype=float)) == [2]


@by_setting
def test_an_identifier_is_named_at_the_line_of_fit(setting):
    frame = clusters(40).assign(row=np.arange(40))
    with pytest.warns(UserWarning, match=r"column\(s\) 'row', .*: drop .* index") as caught:
        setting.fit(frame)
    assert any("'row'" in str(one.message) for one in caught)
    with pytest.warns(UserWarning, match=r"column\(s\) 2, ") as caught:
        X = frame.to_numpy()
        setting.make().fit(X, setting.target(X))
    found = [one for one in caught if "column(s) 2" in str(one.message)]
    assert [one.filename for one in found] == [__file__]


@pytest.mark.parametrize("dtype", [object, "category", "string"])
def test_names_of_rows_are_identifiers(dtype):
    frame = clusters(40).assign(row=[f"row {i}" for i in range(40)]).astype({"row": dtype})
    with pytest.warns(UserWarning, match="'row'"):
        short(family="auto").fit(frame)


REAL_TABLES = [load_iris, load_wine, load_breast_cancer, load_diabetes, load_digits]


@pytest.mark.parametrize("load", REAL_TABLES)
def test_no_false_alarm_on_measurements(load):
    X = load().data
    assert identifier_columns(X) == []
    rng = np.random.default_rng(0)
    for n in (5, 10, 20, 30, 50, 100):
        rows = X[rng.permutation(len(X))[:n]]
        assert identifier_columns(rows) == []
        # Whole numbers of every fineness.
        for digits in (1, 10, 100, 1000):
            spread = np.maximum(X.std(axis=0), 1e-9)
            assert identifier_columns(np.rint(rows / spread * digits)) == []


def test_false_alarms_of_the_rule_are_rare():
    """Uniform integers tie the least of all: their widest range that is looked at is the worst."""
    rng = np.random.default_rng(0)
    n_alarms = 0
    for n in (25, 60, 200):
        X = rng.integers(0, n * (n - 1) // 20, size=(n, 2000)).astype(float)
        n_alarms += len(identifier_columns(X))
    # At most e^-10 each: among 6,000 more than 3 come with a chance of 2e-4.
    assert n_alarms <= 3


@by_setting
@pytest.mark.filterwarnings("ignore:.*reach beyond the range")
def test_a_cell_that_makes_all_others_equal_is_named(setting):
    frame = clusters(40)
    frame.iloc[7, 1] = 1e30
    name = frame.columns[1]
    with pytest.warns(UserWarning, match=rf"so far out in column\(s\) '{name}'") as caught:
        setting.fit(frame)
    assert sum("so far out" in str(one.message) for one in caught) == 1


@pytest.mark.parametrize("n", [4, 10, 19, 40, 1000])
@pytest.mark.parametrize("far", [1e7, -1e7, 1e150, -1e307])
@pytest.mark.parametrize("unit", [1e-290, 1.0])
def test_columns_of_one_far_cell(n, far, unit):
    X = np.random.default_rng(n).normal(size=(n, 3)) * unit
    assert outlying_columns(X) == []
    X[n // 2, 1] = far * unit
    X[n // 3, 2] = np.nan
    assert outlying_columns(X) == [1]
    assert outlying_columns(X, nominal=[1]) == []


@pytest.mark.parametrize("load", REAL_TABLES)
def test_measurements_are_not_far_out(load):
    assert outlying_columns(load().data) == []


def test_long_tails_are_not_far_out():
    rng = np.random.default_rng(0)
    assert outlying_columns(rng.standard_cauchy(size=(500, 200))) == []
    assert outlying_columns(rng.lognormal(sigma=2.5, size=(500, 200))) == []
    assert outlying_columns((rng.random((500, 20)) < 0.01) * 1e30) == []  # the others are equal


DATES = {
    "datetime": pd.date_range("2024", periods=40),
    "of a zone": pd.date_range("2024", periods=40, tz="UTC"),
    "period": pd.period_range("2024", periods=40, freq="D"),
    "span": pd.to_timedelta(np.arange(40), unit="D"),
    "date": [d.date() for d in pd.date_range("2024", periods=40)],
    "text": [str(d.date()) for d in pd.date_range("2024", periods=40)],
}


@by_setting
@pytest.mark.parametrize("kind", DATES)
def test_dates_are_refused_where_numbers_are_due(setting, kind):
    frame = clusters(40).assign(when=DATES[kind])
    y = setting.target(clusters(40).to_numpy())
    with pytest.raises((TypeError, ValueError), match="'when'.*drop it, set it as the index"):
        setting.make().fit(frame, y)
    model = fitted(setting, "pandas", False)
    with pytest.raises((TypeError, ValueError), match="'c'.*drop it, set it as the index"):
        getattr(model, any_method(model))(frame.set_axis(["a", "b", "c"], axis=1))
    if kind == "datetime":
        with pytest.raises((TypeError, ValueError), match="dates or times"):
            setting.make().fit(frame[["when"]].to_numpy(), y)
    if kind == "datetime" and pl is not None:
        with pytest.raises((TypeError, ValueError), match="'when'.*drop it"):
            setting.make().fit(pl.from_pandas(frame), y)


@pytest.mark.parametrize("kind", DATES)
def test_dates_are_no_levels_unless_they_are_said_to_be(kind):
    frame = clusters(40).assign(when=DATES[kind])
    with pytest.raises(ValueError, match="no dates or times.*'when'.*drop it"):
        short(family="auto").fit(frame)
    frame["when"] = pd.Series(DATES[kind]).take(np.repeat(np.arange(4), 10)).to_numpy()
    with pytest.raises(ValueError, match="no dates or times.*'when'.*drop it"):
        short(family="auto").fit(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        short(family={"when": "categorical"}).fit(frame)
        short(family="auto").fit(frame.astype({"when": "category"}))


def test_targets_are_far_beyond_ten_ranges():
    y = np.linspace(-1.0, 1.0, 101)
    assert n_far_targets(y) == n_far_targets(1e308 * y) == n_far_targets(5e-324 * np.arange(9)) == 0
    for far, found in ((15.0, 0), (20.0, 1), (-20.0, 1), (1e308, 1)):
        y[50] = far
        assert n_far_targets(y) == found
    assert n_far_targets(np.zeros(3)) == n_far_targets(np.full(9, 2.0)) == 0
    assert n_far_targets(np.append(np.zeros(98), [1.0, 2.0])) == 0
