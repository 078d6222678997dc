"""What columns are taken for where nobody says it: frames by their columns, arrays as real."""

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture._table import Table

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:covariance_type='full' has little"),
]
SHORT = {"n_chains": 1, "n_warmup": 3, "n_draws": 3, "random_state": 0}
N = 60
RNG = np.random.default_rng(101)
REAL = RNG.normal(size=N)
GROUP = np.arange(N) % 2


def mixture(**options):
    return DirichletProcessMixture(**(SHORT | options))


def families(frame, **options):
    return mixture(**options).fit(frame).families_.tolist()


def holed(x):
    """Floats, as pandas makes them of integers with a missing cell."""
    return np.where(np.arange(N) % 9 == 4, np.nan, x)


COLUMNS = {
    "real numbers": (REAL, "gaussian"),
    "whole floats": (np.rint(10 * REAL), "gaussian"),
    "bools": (GROUP == 1, "bernoulli"),
    "zeros and ones": (GROUP, "bernoulli"),
    "zeros and ones with holes": (holed(GROUP), "bernoulli"),
    "counts": (RNG.poisson(3.0, N), "poisson"),
    "counts with holes": (holed(RNG.poisson(3.0, N)), "poisson"),
    "counts from one": (1 + RNG.poisson(3.0, N), "poisson"),
    "answers": (np.clip(np.rint(3.0 + REAL), 1, 5).astype(int), "categorical"),
    "answers with holes": (holed(np.clip(np.rint(REAL), -1, 1)), "categorical"),
    "whole objects": (RNG.poisson(3.0, N).astype(object), "poisson"),
    "nullable counts": (pd.array(RNG.poisson(3.0, N), dtype="Int64"), "poisson"),
    "ages": (RNG.integers(0, 90, N), "gaussian"),
    "years": (RNG.integers(1990, 2024, N), "gaussian"),
    "large counts": (RNG.poisson(np.where(GROUP, 2.0, 300.0)), "gaussian"),
    "scores of either sign": (RNG.integers(-2, 3, N), "categorical"),
    "real objects": (REAL.astype(object), "gaussian"),
    "decimals": ([Decimal(int(100 * x)) / 100 for x in REAL], "gaussian"),
    "names": (np.where(GROUP, "u", "v"), "categorical"),
    "categories of codes": (pd.Categorical(1 + GROUP), "categorical"),
}


def test_the_rule_for_columns_of_a_frame():
    """One fit for all of them, by default and by name."""
    frame = pd.DataFrame({name: x for name, (x, _) in COLUMNS.items()})
    expected = {name: family for name, (_, family) in COLUMNS.items()}
    for options in ({}, {"family": "auto"}, {"family": {}}):
        found = families(frame, covariance_type="diag", **options)
        assert dict(zip(frame.columns, found, strict=True)) == expected
    expected["years"], expected["zeros and ones"] = "poisson", "categorical"
    family = {name: expected[name] for name in ("years", "zeros and ones")}
    found = families(frame, covariance_type="diag", family=family)
    assert dict(zip(frame.columns, found, strict=True)) == expected


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.bool_, object, "list", "masked"])
def test_an_array_is_real(dtype):
    """Draws are those of a mixture of real columns, whatever the numbers."""
    X = np.column_stack([GROUP, RNG.integers(0, 2, N)])
    if dtype == "list":
        given = X.tolist()
    else:
        given = np.ma.MaskedArray(X) if dtype == "masked" else X.astype(dtype)
    one = mixture().fit(given)
    other = mixture(family="gaussian").fit(X.astype(float))
    assert one.families_.tolist() == ["gaussian"] * 2
    assert_array_equal(one.posterior_.traces["log_joint"], other.posterior_.traces["log_joint"])
    # In a sequence too, "auto" says what it says alone.
    other = mixture(family=["auto", "gaussian"]).fit(given)
    assert_array_equal(one.posterior_.traces["log_joint"], other.posterior_.traces["log_joint"])


def test_an_array_of_objects_with_names_is_read_like_a_frame():
    X = np.empty((N, 3), dtype=object)
    X[:, 0], X[:, 1], X[:, 2] = REAL, np.where(GROUP, "u", "v"), RNG.poisson(3.0, N)
    X[4, 0] = X[5, 1] = None
    model = mixture().fit(X)
    assert model.families_.tolist() == ["gaussian", "categorical", "poisson"]
    assert set(model.impute(X)[:, 1]) == {"u", "v"}


@pytest.mark.parametrize("family", ["auto", ["gaussian", "categorical", "poisson"], "categorical"])
def test_rows_in_lists_are_read_like_objects(family):
    """NumPy would make text of all cells, of NaN the name "nan"."""
    X = np.empty((N, 3), dtype=object)
    X[:, 0], X[:, 1], X[:, 2] = REAL.round(0), np.where(GROUP, "u", "v"), RNG.poisson(3.0, N)
    X[4, 0] = X[5, 1] = np.nan
    one, other = mixture(family=family).fit(X), mixture(family=family).fit(X.tolist())
    assert one.families_.tolist() == other.families_.tolist()
    assert_array_equal(one.posterior_.traces["log_joint"], other.posterior_.traces["log_joint"])
    assert list(other.levels_[1]) == ["u", "v"]
    assert_array_equal(one.predict(X.tolist()), other.predict(X))


def test_a_frame_of_real_columns_draws_what_its_array_draws():
    X = RNG.normal(size=(N, 2))
    one, other = mixture().fit(pd.DataFrame(X, columns=["a", "b"])), mixture().fit(X)
    assert_array_equal(one.posterior_.traces["log_joint"], other.posterior_.traces["log_joint"])
    assert one.levels_ == [None, None]


def test_a_file_of_real_columns_is_read(tmp_path):
    """What was fitted as "gaussian", the default of before, answers as it did."""
    X = RNG.normal(size=(N, 2))
    one = mixture(family="gaussian").fit(X)
    again = DirichletProcessMixture.load(one.save(tmp_path / "file") and tmp_path / "file")
    assert again.family == "gaussian"
    assert_array_equal(again.score_samples(X), one.score_samples(X))
    newer = mixture().fit(pd.DataFrame(X))
    newer.save(tmp_path / "file")
    again = DirichletProcessMixture.load(tmp_path / "file")
    assert again.family == "auto"
    assert_array_equal(again.score_samples(X), newer.score_samples(X))


def answers(n=300, n_levels=5, seed=0):
    """Three groups by their answers to six questions."""
    rng = np.random.default_rng(seed)
    group = rng.integers(3, size=n)
    level = (group[:, np.newaxis] + np.arange(6)) % 3 * (n_levels - 1) / 2
    X = np.rint(level + 0.2 * n_levels * rng.normal(size=(n, 6)))
    return pd.DataFrame(np.clip(X, 0, n_levels - 1).astype(int), columns=list("abcdef")), group


@pytest.mark.parametrize("n_levels, first", [(3, 1), (5, 1), (5, 0), (7, -3), (11, 1)])
def test_answers_tell_clusters_apart(n_levels, first):
    """As counts they would be one cluster: no mixture of Poisson laws varies less than its mean."""
    X, group = answers(n_levels=n_levels)
    model = mixture(n_warmup=200, n_draws=50).fit(X + first)
    assert model.families_.tolist() == ["categorical"] * 6
    assert model.levels_[0].tolist() == list(range(first, n_levels + first))
    assert adjusted_rand_score(group, model.labels_) > 0.8


def test_where_integers_are_levels():
    """At most twelve, in ten rows each in the mean, unless they are plainly counts."""
    rng = np.random.default_rng(3)
    counts = rng.poisson(1.0, 120)
    columns = {
        "twelve": (np.arange(120) % 12 + 3, "categorical"),
        "thirteen": (np.arange(120) % 13 + 3, "gaussian"),
        "counts": (counts, "poisson"),
        "counts from one": (counts + 1, "categorical"),
        "the largest in six rows": (np.where(np.arange(120) < 6, 8, counts), "poisson"),
        "the largest in seven rows": (np.where(np.arange(120) < 7, 8, counts), "categorical"),
        "vary less than counts": (rng.choice([0, *[2] * 50, *[3] * 40, 4, 5], 120), "categorical"),
        "two": (np.arange(120) % 2 + 1, "categorical"),
        "one": (np.full(120, 3), "gaussian"),
    }
    frame = pd.DataFrame({name: x for name, (x, _) in columns.items()})
    found = families(frame, covariance_type="diag")
    assert dict(zip(frame, found, strict=True)) == {k: family for k, (_, family) in columns.items()}
    # The same values in fewer rows.
    row = np.arange(400)
    schooling = np.where(row < 100, 40.0, 41.5 + row % 29)
    less = np.where(row < 99, 40.0, 41.5 + row % 29)
    more = np.where(row < 100, 40.0, 41.5 + row % 30)
    tied = pd.DataFrame({"schooling": schooling, "less": less, "more": more})
    assert families(tied, covariance_type="diag") == ["categorical", "gaussian", "gaussian"]
    assert families(tied[:299], covariance_type="diag")[0] == "gaussian"
    few = families(frame[["twelve", "two"]].iloc[:60], covariance_type="diag")
    assert few == ["gaussian", "categorical"]
    few = families(frame[["twelve", "counts", "two"]].iloc[:19], covariance_type="diag")
    assert few == ["gaussian", "poisson", "poisson"]


def test_numbers_that_are_new_among_guessed_levels_are_missing(tmp_path):
    X, _ = answers()
    X = X.assign(x=np.random.default_rng(1).normal(size=len(X)), text=X["a"].astype(object))
    model = mixture().fit(X)
    assert model.families_.tolist() == ["categorical"] * 6 + ["gaussian", "categorical"]
    new = X.iloc[:6].astype({"a": float, "b": "Int64"})
    new.loc[0, "a"], new.loc[1, "b"], new.loc[2, "text"] = 2.5, 17, -1
    with pytest.warns(UserWarning) as caught:
        found = model.score_samples(new)
    said = [str(one.message) for one in caught]
    assert len(said) == 3 and "2.5 in column 'a'" in said[0] and "17 in column 'b'" in said[1]
    assert "-1 in column 'text', of whose few numbers fit made the levels 0, 1, 2, 3, 4:" in said[2]
    holes = new.copy()
    holes.loc[0, "a"], holes.loc[1, "b"], holes.loc[2, "text"] = np.nan, pd.NA, None
    assert_array_equal(model.predict_proba(new), model.predict_proba(holes))
    # A number that none of 300 cells was: as under a Dirichlet process.
    seldom = np.where(np.arange(6) < 3, np.log(1 / 301), 0.0)
    assert_allclose(found, model.score_samples(holes) + seldom, rtol=1e-12)
    model.save(tmp_path / "file")
    with pytest.warns(UserWarning, match="17 in column 'b'"):
        again = DirichletProcessMixture.load(tmp_path / "file").score_samples(new)
    assert_array_equal(found, again)
    # What was given stays, beside cells that are filled.
    new.loc[4, "a"], new.loc[5, "b"] = np.nan, pd.NA
    with pytest.warns(UserWarning, match="17 in column 'b'"):
        filled, std = model.impute(new, return_std=True)
    (drawn,) = model.sample_missing(new, n_tables=1)
    hidden = new.isna()
    for table in (filled, drawn):
        assert not table.isna().any(axis=None)
        pd.testing.assert_frame_equal(table.mask(hidden), new, check_dtype=False)
    assert (std > 0).equals(hidden)


def test_missing_ones_among_guessed_levels_are_filled_with_their_mean():
    """By the one draw that there is: the mean and the deviation that its density gives."""
    X, _ = answers(100)
    values = np.array([-2, 1, 2, 7, 11])
    X = X.assign(c=values[X["c"]])
    model = mixture(n_warmup=50, n_draws=1).fit(X)
    new = X.iloc[:7]
    log_p = np.array([model.score_samples(new.assign(c=x)) for x in values])
    p = np.exp(log_p - log_p.max(axis=0))
    p /= p.sum(axis=0)
    filled, std = model.impute(new.assign(c=np.nan), return_std=True)
    assert_allclose(filled["c"], values @ p, rtol=1e-10)
    assert_allclose(std["c"], np.sqrt(values**2 @ p - (values @ p) ** 2), rtol=1e-8)
    assert filled.drop(columns="c").equals(new.drop(columns="c"))
    rounded = model.impute(new.assign(c=np.nan), rounding=True)["c"]
    assert set(rounded) <= set(values)
    (drawn,) = model.sample_missing(new.assign(c=np.nan), n_tables=1, random_state=0)
    sampled, _ = model.sample(50)
    assert set(drawn["c"]) <= set(values) >= set(sampled["c"]) and drawn["c"].dtype.kind == "f"
    assert sampled.dtypes.equals(X.dtypes)
    # As categories, the most probable one.
    names = mixture(n_warmup=50, n_draws=1).fit(X.astype({"c": "category"}))
    assert set(names.impute(new.assign(c=pd.Categorical([None] * 7, values)))["c"]) <= set(values)


@pytest.mark.parametrize(
    "value, message",
    [("often", "could not convert string to float"), (np.inf, "must not hold infinity")],
)
def test_no_number_among_guessed_levels(value, message):
    X, _ = answers()
    model = mixture().fit(X)
    new = X.iloc[:3].astype(object)
    new.loc[1, "c"] = value
    with pytest.raises(ValueError, match=message):
        model.predict(new)


def test_levels_that_are_named_are_not_guessed():
    X, _ = answers()
    for family in ("categorical", dict.fromkeys(X, "categorical")):
        model = mixture(family=family).fit(X)
        with pytest.raises(ValueError, match="the level 9 in column 'a', unseen in fit"):
            model.predict(X.iloc[:3].assign(a=9))
    model = mixture().fit(X.astype("category"))
    with pytest.raises(ValueError, match="the level 9 in column 'a', unseen in fit"):
        model.predict(X.iloc[:3].assign(a=9))


def test_columns_of_before_the_guess_are_read():
    table = Table(pd.DataFrame({"a": [1, 2], "b": ["u", "v"]}), "categorical", ["a", "b"])
    data = table.to_data()
    assert data.pop("guessed_from") == [0, 0]
    assert Table.from_data(data).to_data() == data | {"guessed_from": [0, 0]}


def test_an_array_of_truth_values_is_named():
    X = RNG.random((40, 2)) < 0.5
    with pytest.warns(UserWarning, match="family='bernoulli' is for them"):
        mixture().fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture(family="bernoulli").fit(X)
        mixture().fit(pd.DataFrame(X))


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        (["12%", "7%", "30 %"], "12%"),
        (["1,200", "350", "9"], "1,200"),
        (["$3.50", "$12", "-4"], "$3.50"),
        (["1", "2", "3"], None),
        (["25-34", "35-44", "12"], None),
        (["a1", "b2", "3%"], None),
        (["10.0.0.1", "10.0.0.2", "10.0.3.1"], None),
        (["1.2.3", "1.10.0", "2.0.1"], None),
        (["1 200 500.5", "17,5", "9"], "1 200 500.5"),
        (["12,34,567", "5.", "3.5  %"], "12,34,567"),
    ],
)
def test_text_that_may_be_numbers_is_named(texts, named):
    frame = pd.DataFrame({"x": np.arange(30.0) ** 1.1, "text": texts * 10})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net = mixture().fit(frame)
    assert net.families_[1] == "categorical"
    said = [str(one.message) for one in caught if "may be numbers" in str(one.message)]
    assert len(said) == (named is not None)
    assert named is None or f"column 'text', such as '{named}'" in said[0]
