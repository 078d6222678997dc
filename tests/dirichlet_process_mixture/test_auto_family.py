"""What columns are taken for where nobody says it: frames by their columns, arrays as real."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import adjusted_rand_score

from skbnp import DirichletProcessMixture

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
    "whole objects": (RNG.poisson(3.0, N).astype(object), "poisson"),
    "nullable counts": (pd.array(RNG.poisson(3.0, N), dtype="Int64"), "poisson"),
    "ages": (RNG.integers(0, 90, N), "gaussian"),
    "years": (RNG.integers(1990, 2024, N), "gaussian"),
    "large counts": (RNG.poisson(np.where(GROUP, 2.0, 300.0)), "gaussian"),
    "scores of either sign": (RNG.integers(-2, 3, N), "gaussian"),
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


def test_answers_are_said_to_tell_clusters_apart_as_categorical_columns():
    """No mixture of Poisson laws has less variance than mean: as counts they are one cluster."""
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=200)
    level = (group[:, np.newaxis] + np.arange(5)) % 3
    X = np.clip(np.round(1.0 + level + 0.8 * rng.normal(size=(200, 5))), 0, 4).astype(int)
    frame = pd.DataFrame(X, columns=list("abcde")).assign(
        a=1 + X[:, 0], b=3 + X[:, 1] // 3, visits=rng.poisson(3.0 * (group == 1)), x=REAL[group]
    )
    assert (frame.loc[:, "c":"e"].min() == 0).all()
    with pytest.warns(UserWarning, match="ten different whole numbers") as caught:
        model = mixture().fit(frame)
    assert model.families_.tolist() == ["poisson", "gaussian", *["poisson"] * 4, "gaussian"]
    (said,) = [str(one.message) for one in caught if "ten different" in str(one.message)]
    assert "in column(s) 'a', 'b', 'c', 'd', 'e', which" in said and "visits" not in said
    assert "'b': 'categorical'" in said and "answers such as 1 to 5" in said
    options = dict(n_chains=1, n_warmup=200, n_draws=50, random_state=0)
    answers = frame[list("abcde")]
    found = DirichletProcessMixture(family="categorical", **options).fit(answers).labels_
    assert adjusted_rand_score(group, found) > 0.5
