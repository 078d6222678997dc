"""What is handed to ArviZ is right: means of clusters, cells, predictive tables, the prior."""

import numpy as np
import pandas as pd
import pytest

from skbnp import (
    DirichletProcessMixture,
    ICPNetworkClassifier,
    ICPNetworkRegressor,
    InfiniteFactorClusterer,
    TreeFactorModel,
)
from skbnp.laws import Gamma

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
SHORT = dict(n_chains=2, n_warmup=20, n_draws=20, random_state=0)


def two_groups(n=40):
    X = np.random.default_rng(0).normal(size=(n, 2))
    X[: n // 2] += [8.0, 4.0]
    return X


# -- means of clusters


@pytest.mark.parametrize(
    "kind", [DirichletProcessMixture, TreeFactorModel, InfiniteFactorClusterer]
)
def test_a_cluster_has_the_mean_of_its_rows(kind):
    """Well apart, the mean of a cluster is that of its rows, give or take its standard error."""
    X = two_groups()
    model = kind(**SHORT).fit(X)
    found = model.posterior_.to_arviz()["posterior"]["cluster_mean"]
    assert found.dims == ("chain", "draw", "cluster", "feature")
    assert found.sizes["cluster"] == 2
    for k in range(2):
        rows = X[model.labels_ == k]
        error = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
        z = (found[:, :, k].mean(("chain", "draw")) - rows.mean(axis=0)) / error
        assert np.abs(z).max() < 2.0


def test_means_of_clusters_do_not_depend_on_numbers_of_blocks():
    """By its definition, row by row; and of the draw that a relabelling has made."""
    X = two_groups()
    model = DirichletProcessMixture(**SHORT).fit(X)
    draw = next(x for x in model.posterior_ if len(x["n_members"]) > 3)
    mean, labels = draw["mean"] * model._units.scale + model._units.center, draw["label"]
    by_row = [mean[labels[model.labels_ == k]].mean(axis=0) for k in range(2)]
    turned = np.append(np.roll(np.arange(len(mean) - 1), 1), len(mean) - 1)
    names = ("n_members", "mean", "factor")
    other = draw | {name: draw[name][turned] for name in names}
    other["label"] = np.argsort(turned)[labels].astype(labels.dtype)
    for one in (draw, other):
        (_, found) = model._cluster_means([[one]]).variables["cluster_mean"]
        np.testing.assert_allclose(found[0, 0], by_row, rtol=1e-10)


def test_names_of_groups_have_no_mean():
    rng = np.random.default_rng(0)
    kind = np.repeat(["a", "b", "c"], 12)
    X = pd.DataFrame({"size": rng.normal(size=36) + 6 * (kind == "a"), "kind": kind})
    X["flag"], X["visits"] = kind == "a", rng.poisson(2.0, size=36)
    model = DirichletProcessMixture(**SHORT).fit(X)
    data = model.posterior_.to_arviz(posterior_predictive=4, prior=2, random_state=0)
    means = data["posterior"]["cluster_mean"]
    assert means["numeric_feature"].values.tolist() == ["size", "flag", "visits"]
    flag = means.sel(numeric_feature="flag")
    assert (0.0 <= flag).all() and (flag <= 1.0).all()
    constants = data["constant_data"]
    assert constants["levels_feature"].values.tolist() == ["kind"]
    assert constants["levels"].item() == '["a", "b", "c"]'
    for group in ("observed_data", "posterior_predictive", "prior_predictive"):
        codes = data[group]["X"].sel(feature="kind")
        assert set(np.unique(codes)) <= {0.0, 1.0, 2.0}
        visits = data[group]["X"].sel(feature="visits")
        assert (visits >= 0).all() and (visits % 1 == 0).all()


def test_who_writes_to_it_leaves_the_estimator_as_it_was():
    model = DirichletProcessMixture(**SHORT).fit(two_groups())
    before = model.labels_.copy(), model.posterior_.observed_data()
    data = model.posterior_.to_arviz()
    data["constant_data"]["labels"].values[:] = 7
    data["observed_data"]["X"].values[:] = 7.0
    data["posterior"]["n_clusters"].values[:] = 7.0
    np.testing.assert_array_equal(model.labels_, before[0])
    np.testing.assert_array_equal(model.posterior_.observed_data(), before[1])
    assert (model.posterior_.traces["n_clusters"] != 7.0).all()


# -- missing cells


def with_holes():
    X = two_groups()
    X[3, 1] = X[30, 0] = np.nan
    return X


def test_cells_of_the_state_are_those_of_the_draws():
    X = with_holes()
    model = DirichletProcessMixture(**SHORT).fit(X)
    found = model.posterior_.to_arviz()["posterior"]["imputed"]
    assert found["cell_row"].values.tolist() == [3, 30]
    assert found["cell_feature"].values.tolist() == ["x1", "x0"]
    scale, center = (getattr(model._units, name)[[1, 0]] for name in ("scale", "center"))
    of_draw = model.posterior_[1, 7]["imputed"]
    np.testing.assert_allclose(found[1, 7], of_draw * scale + center, rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "options"),
    [(DirichletProcessMixture, {"covariance_type": "diag"}), (TreeFactorModel, {})],
)
def test_cells_that_are_drawn_have_their_moments(kind, options):
    """|z| < 4 of the mean over draws; under the model's own deviation, four draws a chain apart."""
    model = kind(**SHORT | {"n_draws": 100}, **options).fit(with_holes())
    assert "imputed" not in model.posterior_.to_arviz()["posterior"]
    data = model.posterior_.to_arviz(imputed=True, random_state=0)
    mean = data["posterior"]["imputed"].mean(("chain", "draw"))
    expected, std = data["constant_data"]["imputed_mean"], data["constant_data"]["imputed_std"]
    assert np.abs((mean - expected) / (std / np.sqrt(50))).max() < 4.0
    assert (data["posterior"]["imputed"].std(("chain", "draw")) > 0.5 * std).all()


def test_cells_are_refused_where_there_are_none():
    whole = DirichletProcessMixture(**SHORT).fit(two_groups())
    with pytest.raises(ValueError, match="imputed must be False where X has no missing cells"):
        whole.posterior_.to_arviz(imputed=True)
    clusterer = InfiniteFactorClusterer(**SHORT).fit(with_holes())
    with pytest.raises(ValueError, match="imputed must be False for InfiniteFactorClusterer"):
        clusterer.posterior_.to_arviz(imputed=True)
    with pytest.raises(ValueError, match="imputed must be False where scalars_only=True"):
        whole.posterior_.to_arviz(imputed=True, scalars_only=True)


# -- predictive tables


@pytest.mark.parametrize(
    "kind", [DirichletProcessMixture, TreeFactorModel, InfiniteFactorClusterer]
)
def test_new_rows_have_the_predictive_mean(kind):
    """|z| < 4 for each feature, against the mean that `impute` gives a row without values.

    Of groups of 5 and 20 rows, so that it matters how often a row is of which.
    """
    model = kind(**SHORT).fit(two_groups()[15:])
    data = model.posterior_.to_arviz(posterior_predictive=40, random_state=0)
    X = data["posterior_predictive"]["X"].values.reshape(-1, 2)
    expected = model.impute([[np.nan, np.nan]])[0]
    z = (X.mean(axis=0) - expected) / (X.std(axis=0, ddof=1) / np.sqrt(len(X)))
    assert np.abs(z).max() < 4.0


def test_draws_are_bounded_and_evenly_spaced():
    model = DirichletProcessMixture(**SHORT).fit(two_groups())
    data = model.posterior_.to_arviz(posterior_predictive=8)
    assert data["posterior_predictive"]["draw"].values.tolist() == [2, 7, 12, 17]
    with pytest.raises(ValueError, match="prior must be at most .* got 100000000"):
        model.posterior_.to_arviz(prior=10**8)


def test_draws_that_are_stored_have_their_numbers():
    """Where `store` has let draws go all groups have those that are left."""
    X = two_groups()
    model = DirichletProcessMixture(**SHORT, store=0.03, predict_draws=2).fit(X)
    posterior = model.posterior_
    assert posterior.store_every > 1
    data = posterior.to_arviz(posterior_predictive=True, log_likelihood=True)
    for name in ("posterior", "sample_stats", "log_likelihood", "posterior_predictive"):
        np.testing.assert_array_equal(data[name]["draw"], posterior.stored)
    np.testing.assert_array_equal(
        data["posterior"]["n_clusters"], posterior.traces["n_clusters"][:, posterior.stored]
    )
    whole = posterior.to_arviz(scalars_only=True)
    assert whole["posterior"].sizes["draw"] == 20


def test_targets_are_drawn_given_their_features():
    """The mean over draws of a row's target is what `predict` says: |z| < 4 in the worst row."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(40, 1))
    y = 2.0 * X[:, 0] + 0.1 * rng.normal(size=40)
    model = ICPNetworkRegressor(**SHORT | {"n_draws": 50}).fit(X, y)
    data = model.posterior_.to_arviz(posterior_predictive=100, random_state=0)
    drawn = data["posterior_predictive"]["y"].values.reshape(-1, 40)
    mean, std = model.predict(X, return_std=True)
    assert np.abs((drawn.mean(axis=0) - mean) / (std / np.sqrt(100))).max() < 4.0
    np.testing.assert_array_equal(data["observed_data"]["y"], y)
    np.testing.assert_array_equal(data["constant_data"]["X"], X)


def test_several_targets_have_names():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(30, 3))
    Y[:, 1] = 5.0
    with pytest.warns(UserWarning, match="y is constant"):
        model = ICPNetworkRegressor(**SHORT).fit(X, Y)
    data = model.posterior_.to_arviz(posterior_predictive=4, prior=2, random_state=0)
    assert data["observed_data"]["target"].values.tolist() == ["y0", "y1", "y2"]
    assert data["posterior"]["modelled_target"].values.tolist() == ["y0", "y2"]
    for group in ("posterior_predictive", "prior_predictive"):
        assert (data[group]["y"].sel(target="y1") == 5.0).all()


def test_classes_are_drawn_given_their_features():
    X = np.linspace(-3, 3, 60)[:, np.newaxis]
    y = np.repeat(["low", "high"], 30)
    model = ICPNetworkClassifier(probability_calibration=None, **SHORT | {"n_draws": 50}).fit(X, y)
    data = model.posterior_.to_arviz(posterior_predictive=100, random_state=0)
    assert data["constant_data"]["classes"].values.tolist() == ["high", "low"]
    share = data["posterior_predictive"]["y"].values.reshape(-1, 60).mean(axis=0)
    expected = model.predict_proba(X)[:, 1]
    error = np.sqrt(np.maximum(expected * (1 - expected), 0.01) / 100)
    assert np.abs((share - expected) / error).max() < 4.0


# -- the prior


def test_the_prior_is_that_of_the_parameters():
    """|z| < 4 of the mean of a concentration and of its logarithm under Gamma(3, 2)."""
    model = DirichletProcessMixture(**SHORT, concentration=Gamma(3.0, 2.0)).fit(two_groups(12))
    data = model.posterior_.to_arviz(prior=400, random_state=0)
    found = data["prior"]["concentration"].values[0]
    # Mean 1.5, variance 0.75; digamma(3) - log 2, trigamma(3).
    for values, mean, variance in ((found, 1.5, 0.75), (np.log(found), 0.2296371, 0.3949341)):
        assert abs(values.mean() - mean) < 4.0 * np.sqrt(variance / 400)


def test_prior_tables_are_those_of_their_parameters():
    """Rows of one cluster are alike: the table of a draw goes with its labels."""
    model = DirichletProcessMixture(
        **SHORT, degrees_of_freedom_prior=50.0, mean_precision_prior=0.001
    ).fit(two_groups())
    data = model.posterior_.to_arviz(prior=20, random_state=0)
    within, of_all = [], []
    for label, X in zip(data["prior"]["label"][0], data["prior_predictive"]["X"][0], strict=True):
        label, X = np.asarray(label), np.asarray(X)
        of_all.append(X.var(axis=0).mean())
        within.append(
            sum(X[label == k].var(axis=0).mean() * np.sum(label == k) for k in set(label))
        )
    assert np.sum(within) / 40 < 0.05 * np.sum(of_all)


# -- names of rows


@pytest.mark.parametrize(
    ("index", "labels"),
    [
        (pd.RangeIndex(5, 45), list(range(5, 45))),
        (pd.Index([f"r{i}" for i in range(40)]), [f"r{i}" for i in range(40)]),
        (pd.MultiIndex.from_product([["a", "b"], range(20)]), None),
        (pd.date_range("2020-01-01", periods=40, tz="UTC"), None),
        (pd.period_range("2020-01", periods=40, freq="M"), None),
    ],
)
def test_any_index_names_the_rows(index, labels):
    X = pd.DataFrame(two_groups(), index=index, columns=[7, 1])
    found = DirichletProcessMixture(**SHORT).fit(X).posterior_.to_arviz()["observed_data"]
    wanted = [str(one) for one in index] if labels is None else labels
    assert found["row"].values.tolist() == wanted
    assert found["feature"].values.tolist() == ["7", "1"]


def test_times_stay_times():
    index = pd.date_range("2020-01-01", periods=40)
    X = pd.DataFrame(two_groups(), index=index)
    found = DirichletProcessMixture(**SHORT).fit(X).posterior_.to_arviz()["observed_data"]
    assert found.sel(row="2020-01-03")["X"].values.tolist() == pytest.approx(X.iloc[2].tolist())
