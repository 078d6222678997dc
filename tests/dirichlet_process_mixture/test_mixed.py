"""Tables of several kinds of columns: bookkeeping of the sampler, public API."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from checks.dirichlet_process_mixture import (
    make_sampler,
)
from checks.mixture_priors import COVARIANCE, mixed_prior
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _model
from skbnp.laws import Beta, Gamma


@pytest.mark.parametrize("kind", COVARIANCE)
def test_bookkeeping_agrees_with_the_reference(kind):
    """2,000 rows, 20 sweeps: the kernel's log joint to 1e-8 relative."""
    rng = np.random.default_rng(2)
    prior = mixed_prior(kind)
    _, X = _model.draw_joint(prior, 2000, rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    sampler = make_sampler(X, prior, rng.integers(6, size=2000))
    for _ in range(20):
        sampler.sweep()
    state = {"label": sampler.labels, **{k: sampler.draw()[k] for k in sampler.draw()}}
    state["label"] = sampler.labels
    completed = np.where(np.isnan(X), sampler.completed_data(), X)
    if kind != "full":
        completed = X
    else:
        completed[:, [1, 3, 4, 5]] = X[:, [1, 3, 4, 5]]
    assert_allclose(sampler.log_joint(), _model.log_joint(state, completed, prior), rtol=1e-8)


# -- the public API ---------------------------------------------------------------------------


def people(n=300, seed=0):
    """Two groups of people in a DataFrame of every dtype, with holes, and the groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    table = pd.DataFrame(
        {
            "height": rng.normal(np.where(group, 182.0, 166.0), 5.0),
            "smoker": pd.Series(rng.random(n) < np.where(group, 0.8, 0.1), dtype="boolean"),
            "city": np.where(rng.random(n) < 0.8, np.where(group, "Oslo", "Rome"), "Bern"),
            "visits": rng.poisson(np.where(group, 1.0, 7.0)),
            "size": pd.Categorical(
                np.where(group, "L", "S"), categories=["S", "M", "L"], ordered=True
            ),
        }
    )
    for name in ("height", "smoker", "city", "size"):
        table.loc[rng.random(n) < 0.1, name] = None
    return table, group


SHORT = {"n_chains": 2, "n_warmup": 30, "n_draws": 30, "random_state": 0}


@pytest.fixture(scope="module")
def fitted():
    table, group = people()
    return DirichletProcessMixture(family="auto", **SHORT).fit(table), table, group


def test_auto_goes_by_dtype(fitted):
    dpm, table, group = fitted
    assert dpm.families_.tolist() == [
        "gaussian", "bernoulli", "categorical", "poisson", "categorical",
    ]  # fmt: skip
    assert [None if levels is None else list(levels) for levels in dpm.levels_] == [
        None, None, ["Bern", "Oslo", "Rome"], None, ["S", "M", "L"],
    ]  # fmt: skip
    assert dpm.feature_names_in_.tolist() == list(table.columns)
    assert adjusted_rand_score(group, dpm.labels_) > 0.95


def test_new_rows_are_assigned(fitted):
    dpm, _, _ = fitted
    new, group = people(200, seed=1)
    assert adjusted_rand_score(group, dpm.predict(new)) > 0.9
    assert_allclose(dpm.predict_proba(new).sum(axis=1), 1.0)
    assert np.all(np.isfinite(dpm.score_samples(new)))
    assert np.all((dpm.novelty_proba(new) > 0) & (dpm.novelty_proba(new) < 1))


def test_score_is_a_probability(fitted):
    """Over all values of the discrete columns, the other cells missing, it sums to one."""
    dpm, table, _ = fitted
    empty = table.iloc[:1].copy()
    for name in table.columns:
        empty[name] = empty[name].astype(object)
        empty[name] = None
    total = 0.0
    for city in ("Bern", "Oslo", "Rome"):
        for smoker in (0, 1):
            for visits in (0, 3, None):
                row = empty.assign(city=city, smoker=smoker)
                row["visits"] = visits
                if visits is None:
                    total += np.exp(dpm.score_samples(row)[0])
                assert dpm.score_samples(row)[0] < 0
    assert_allclose(total, 1.0, rtol=1e-10)
    counts = empty.loc[empty.index.repeat(200)].assign(visits=np.arange(200))
    assert_allclose(np.exp(dpm.score_samples(counts)).sum(), 1.0, rtol=1e-6)


def test_impute_gives_the_table_back(fitted):
    dpm, table, group = fitted
    filled, std = dpm.impute(table, return_std=True)
    assert list(filled.columns) == list(table.columns)
    assert not filled.isna().any().any()
    assert filled["size"].dtype == table["size"].dtype
    for name in table.columns:
        seen = table[name].notna().to_numpy()
        assert (filled[name][seen].to_numpy() == table[name][seen].to_numpy()).all()
        assert np.all(std[name][seen] == 0)
        assert np.all(std[name][~seen] > 0)
    hole = table["city"].isna().to_numpy()
    assert np.mean(filled["city"][hole] == np.where(group[hole], "Oslo", "Rome")) > 0.8
    hole = table["smoker"].isna().to_numpy()
    assert np.all((filled["smoker"][hole] > 0) & (filled["smoker"][hole] < 1))
    rounded = dpm.impute(table, rounding=True)
    assert set(rounded["smoker"]) <= {0.0, 1.0}
    assert (dpm.X_imputed_["city"][table["city"].notna()] == table["city"].dropna()).all()
    agree = dpm.X_imputed_["size"] == np.where(group, "L", "S")
    assert agree.mean() > 0.95


def test_samples_are_such_tables(fitted):
    dpm, table, _ = fitted
    rows, labels = dpm.sample(500, random_state=0)
    assert list(rows.columns) == list(table.columns)
    assert set(rows["city"]) <= {"Bern", "Oslo", "Rome"}
    tall = rows["height"] > 174
    assert rows["visits"][tall].mean() < rows["visits"][~tall].mean()
    assert labels.shape == (500,)
    rows, labels = dpm.sample_prior(40, random_state=1)
    assert list(rows.columns) == list(table.columns)
    assert labels[0] == 0 and len(labels) == 40


def test_prior_samples_vary(fitted):
    dpm, _, _ = fitted
    counts = [dpm.sample_prior(50, random_state=seed)[1].max() + 1 for seed in range(200)]
    assert 1 in counts and max(counts) > 5


def test_same_draws_in_pieces(fitted):
    """One and two threads over rows; a table in another row order."""
    dpm, table, _ = fitted
    once = dpm.score_samples(table)
    assert_array_equal(once[::-1], dpm.score_samples(table.iloc[::-1]))


def test_cross_validation_in_a_pipeline():
    table, _ = people(120)
    table["city"] = table["city"].astype("category")
    pipeline = make_pipeline(FunctionTransformer(), DirichletProcessMixture(family="auto", **SHORT))
    assert np.all(np.isfinite(cross_val_score(pipeline, table, cv=3)))


def test_a_dict_overrules_some_columns():
    table, _ = people(60)
    dpm = DirichletProcessMixture(family={"visits": "gaussian"}, **SHORT).fit(table)
    assert dpm.families_[3] == "gaussian" and dpm.families_[2] == "categorical"


@pytest.mark.parametrize("family", ["bernoulli", "categorical", "poisson"])
def test_arrays_of_one_family(family):
    rng = np.random.default_rng(3)
    group = np.arange(200) % 2
    X = rng.poisson(np.where(group, 8.0, 0.15)[:, None], size=(200, 6)).astype(float)
    if family != "poisson":
        X = np.minimum(X, 1.0 if family == "bernoulli" else 3.0)
    X[rng.random(X.shape) < 0.05] = np.nan
    dpm = DirichletProcessMixture(family=family, **SHORT).fit(X)
    assert adjusted_rand_score(group, dpm.labels_) > 0.9
    filled = dpm.impute(X)
    assert isinstance(filled, np.ndarray) and not np.isnan(filled).any()
    assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert isinstance(dpm.X_imputed_, np.ndarray)


def test_decimals_in_text_are_real():
    X = np.random.default_rng(0).normal(size=(30, 2))
    table = pd.DataFrame({"a": [f"{x:.2f}" for x in X[:, 0]], "b": X[:, 1], "g": ["1", "2"] * 15})
    model = DirichletProcessMixture(**SHORT).fit(table)
    assert list(model.families_) == ["gaussian", "gaussian", "categorical"]
    same = DirichletProcessMixture(**SHORT).fit(table.astype({"a": float}))
    assert_array_equal(model.labels_, same.labels_)


def test_sparse_rows_of_other_families_are_refused():
    X = csr_matrix(np.random.default_rng(0).poisson(1.0, size=(20, 3)))
    for family in ("auto", "gaussian"):
        with pytest.raises(TypeError, match="Sparse data .* write family='poisson'"):
            DirichletProcessMixture(family=family).fit(X)
    of_each = DirichletProcessMixture(family=["poisson"] * 3, **SHORT).fit(X)
    of_all = DirichletProcessMixture(family="poisson", **SHORT).fit(X)
    assert_array_equal(of_each.labels_, of_all.labels_)


def test_sparse_counts():
    rng = np.random.default_rng(4)
    X = rng.poisson(1.0, size=(60, 4))
    dense = DirichletProcessMixture(family="poisson", **SHORT).fit(X.astype(float))
    sparse = DirichletProcessMixture(family="poisson", **SHORT).fit(csr_matrix(X))
    assert_array_equal(dense.labels_, sparse.labels_)
    assert_allclose(dense.score_samples(X), sparse.score_samples(csr_matrix(X)))
    with pytest.raises(TypeError, match="[Ss]parse"):
        DirichletProcessMixture(**SHORT).fit(csr_matrix(X.astype(float)))


def test_spread_of_a_filled_level_is_that_of_its_indicator(fitted, monkeypatch):
    """Its probability is the mean of those that the draws give it, each by its densities."""
    dpm, table, _ = fitted
    row = table.iloc[:1].copy()
    row["city"] = None
    filled, std = dpm.impute(row, return_std=True)
    by_draw = []
    draws = dpm._prediction_draws()
    monkeypatch.setattr(dpm, "_parameters_of_laws", None)  # Otherwise laws are kept.
    for draw in draws:
        monkeypatch.setattr(dpm, "_prediction_draws", lambda draw=draw: [draw])
        whole = [dpm.score_samples(row.assign(city=city))[0] for city in ("Bern", "Oslo", "Rome")]
        by_draw.append(np.exp(whole - dpm.score_samples(row)))
    p = np.mean(by_draw, axis=0)
    assert_allclose(p.sum(), 1.0, rtol=1e-8)
    assert filled["city"].iloc[0] == ("Bern", "Oslo", "Rome")[np.argmax(p)]
    assert_allclose(std["city"].iloc[0], np.sqrt(p.max() * (1 - p.max())), rtol=1e-8)


BAD_TABLES = {
    "names where numbers are due": (
        {"a": ["x", "y"]}, "gaussian", "must hold numbers in a 'gaussian' column|must hold numbers",
    ),
    "two in a bernoulli column": ({"a": [0, 1, 2]}, "bernoulli", "got 2 in .*name another family"),
    "two other values": ({"a": [-1.5, 2]}, "bernoulli", "write 0 and 1 .*, as by x > -1.5"),
    "negative count": ({"a": [0, -1]}, "poisson", "'poisson' column, got -1"),
    "half a count": ({"a": [0, 0.5]}, "poisson", "'poisson' column, got 0.5"),
    "huge count": ({"a": [0, 2.0**23]}, "poisson", "integers from 0 to 4194304"),
    "half a level": ({"a": [0, 0.5]}, "categorical", "column, got 0.5 .*astype"),
    "infinite": ({"a": [0, np.inf]}, ["gaussian"], "must not hold infinity"),
    "unknown family": ({"a": [0, 1]}, ["normal"], "family must be one of"),
    "too few families": ({"a": [0, 1], "b": [0, 1]}, ["poisson"], "one entry per column, 2"),
    "unknown column": ({"a": [0, 1]}, {"z": "poisson"}, "family must name columns of X, got 'z'"),
    "no name in a dict": (np.zeros((3, 1)), {"a": "poisson"}, "family must name columns"),
    "empty column": ({"a": [None, None], "b": [1, 2]}, "auto", "only NaN in column"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables(name):
    columns, family, message = BAD_TABLES[name]
    X = pd.DataFrame(columns) if isinstance(columns, dict) else columns
    with pytest.raises(ValueError, match=message):
        DirichletProcessMixture(family=family, **SHORT).fit(X)


def test_an_unseen_level_is_named(fitted):
    dpm, table, _ = fitted
    with pytest.raises(ValueError, match="level 'Paris' in column 'city', unseen in fit"):
        dpm.predict(table.assign(city="Paris"))


@pytest.mark.parametrize(
    "name, value",
    [
        ("bernoulli_prior", (0.5, 1.0)),
        ("bernoulli_prior", Gamma(1.0, 1.0)),
        ("categorical_prior", 0.0),
        ("poisson_prior", (1.0, 1.0)),
        ("poisson_prior", Gamma(1.0, Gamma(1.0, 1.0))),
        ("mean_prior", [0.0]),
        ("covariance_prior", 1.0),
        ("degrees_of_freedom_prior", 3.0),
    ],
)
def test_bad_priors(name, value):
    with pytest.raises(ValueError, match=name):
        DirichletProcessMixture(family="poisson", **{name: value}).fit(np.ones((4, 1)))


def test_priors_of_discrete_columns_reach_the_prior():
    X = np.array([[0, 0, 2], [1, 1, 0], [0, 2, 1]])
    dpm = DirichletProcessMixture(
        family=["bernoulli", "categorical", "poisson"],
        bernoulli_prior=Beta(2.0, 3.0),
        categorical_prior=6.0,
        poisson_prior=Gamma(4.0, 5.0),
        **SHORT,
    ).fit(X)
    level, count = dpm._prior.parts
    assert [list(g) for g in level.pseudo_counts] == [[3.0, 2.0], [2.0, 2.0, 2.0]]
    assert (count.shape[0], count.rate[0]) == (4.0, 5.0)


# -- sets of partitions -----------------------------------------------------------------------


def test_credible_ball_and_chosen_rows(fitted):
    dpm, _, _ = fitted
    ball = dpm.credible_ball(0.9)
    assert 0 <= ball.radius <= np.log(len(dpm.labels_)) and ball.mass >= 0.9
    assert ball.upper.shape[1] == len(dpm.labels_)
    whole = dpm.coclustering()
    assert_array_equal(dpm.coclustering([3, 50]), whole[np.ix_([3, 50], [3, 50])])
    assert_array_equal(dpm.coclustering([3], "all"), whole[[3]])
    with pytest.raises(ValueError, match="level"):
        dpm.credible_ball(1.5)
