"""How long chains run, what is traced of training rows, and what fit says of chains."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from checks.watched import table_with_holes
from skbnp import InfiniteFactorClusterer
from skbnp.infinite_factor_clusterer._components import components
from skbnp.infinite_factor_clusterer._estimator import _work_of_sweep
from skbnp.infinite_factor_clusterer._model import Prior
from skbnp.infinite_factor_clusterer._predictive import as_rows, log_densities

QUICK = {"n_chains": 2, "n_warmup": 20, "n_draws": 10, "random_state": 0}


def fitted(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return InfiniteFactorClusterer(**{**QUICK, **options}).fit(X)


def of_clusters(model, X, draw):
    """Log density of rows of X in the clusters of a draw, by what predictions are made of."""
    rows = as_rows(model._modelled(X), model._training_rows.limit)
    log_p = log_densities(rows, components(draw, model._prior), new=False)[:, :-1]
    weight = draw["n_members"] / draw["n_members"].sum()
    return logsumexp(log_p + np.log(weight), axis=1) + model._log_jacobian(X)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tails": "t", "means": "both"},
        {"noise": "shared", "means": "feature"},
        {"detection_limit": -0.5},
        {"max_layers": 2, "n_warmup": 5},
    ],
    ids=str,
)
def test_log_density_is_that_of_the_clusters_of_a_draw(options):
    X = table_with_holes(40)
    model = fitted(X, **options)
    posterior = model.posterior_
    log_p = np.array([of_clusters(model, X, draw) for draw in posterior])
    found = posterior.traces["log_density"].ravel()
    np.testing.assert_allclose(found, log_p.mean(axis=1), rtol=1e-9)
    pooled = (logsumexp(log_p, axis=0) - np.log(len(log_p))).mean()
    assert posterior.pool()["pooled"] == pytest.approx(pooled)
    # That of score_samples has a new cluster beside them, of little weight.
    assert model.score(X) == pytest.approx(pooled, abs=0.3)


def test_density_of_a_sampler_can_be_sent_to_another_process():
    X = table_with_holes(300)
    model = fitted(X, n_draws=2)
    density = model._density(X, model._watched_rows(300))
    sampler = model._prepare(X)(np.random.PCG64(0), 0)
    sampler.set_state(model.posterior_.final_states[0])
    assert density.n_rows == 200
    found = pickle.loads(pickle.dumps(density))(sampler)
    np.testing.assert_array_equal(found, density(sampler))
    assert found.mean() == model.posterior_.traces["log_density"][0, -1]


def test_units_of_density_are_those_of_the_table():
    X = table_with_holes(40)
    log_density = fitted(X).posterior_.traces["log_density"]
    wider = fitted(8.0 * X).posterior_.traces["log_density"]
    n_read = np.mean(np.sum(~np.isnan(X), axis=1))
    np.testing.assert_allclose(wider, log_density - n_read * np.log(8.0))


def test_labels_that_change_are_counted():
    posterior = fitted(table_with_holes(40)).posterior_
    for end in posterior.ends:
        accepted, proposed = end.counts["labels"]
        assert 0 < accepted < proposed == 40 * 30


def signals(n, d, seed):
    """Signal strengths of d transmitters, heard all over a floor; the weak ones at -80."""
    rng = np.random.default_rng(seed)
    place = rng.uniform([0, 0], [20, 40], size=(n, 2))
    distance = np.linalg.norm(
        place[:, np.newaxis] - rng.uniform([-5, -5], [25, 45], (d, 2)), axis=2
    )
    i, j = (place // 7).astype(int).T
    walls = rng.normal(0, 4, size=(4, 7, d))[i, j]
    X = -35 - 28 * np.log10(1 + distance) + walls + 2 * rng.normal(size=(n, d))
    return np.maximum(np.round(X), -80) + rng.uniform(-0.5, 0.5, size=(n, d))


def test_chains_that_stay_apart_are_called_different():
    """In many columns every chain keeps about as many factors as it began with."""
    model = InfiniteFactorClusterer(n_chains=4, n_warmup=60, n_draws=30, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(signals(80, 24, seed=101))
    text = next(str(w.message) for w in caught if "may not have converged" in str(w.message))
    assert "the chains found different factors and clusters; averaged they describe" in text
    assert "more chains (n_chains) help more than longer ones" in text
    assert np.ptp(model.posterior_.traces["n_factors"].mean(axis=1)) > 1
    assert model.posterior_.pool()["pool_gain"] > 0.02 * 24


def test_work_of_a_sweep_counts_what_it_does():
    """Within a factor of two of milliseconds of one core that were measured."""
    for (n, d, holes, n_clusters, n_factors), measured in [
        ((100, 5, 0.0, 5, 2), 1.18),
        ((100, 5, 0.0, 30, 5), 0.98),
        ((1300, 4, 0.0, 6, 2), 8.1),
        ((700, 7, 0.0, 14, 4), 4.2),
        ((600, 12, 0.0, 7, 3), 5.6),
        ((300, 16, 0.05, 9, 2), 2.75),
        ((160, 28, 0.0, 15, 10), 2.2),
        ((800, 28, 0.0, 19, 19), 10.7),
    ]:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d))
        X[rng.random(X.shape) < holes] = np.nan
        found = 1e3 * _work_of_sweep(n_clusters, n_factors, X, Prior(), 10)
        assert measured / 2 < found < 2 * measured, (n, d)
        assert 0.0 < 1e3 * _work_of_sweep(1, 0, X, Prior(), 10) < found


def test_draws_are_as_far_apart_as_chains_need():
    X = signals(30, 12, seed=102)
    model = InfiniteFactorClusterer(
        n_chains=2, n_draws=20, thin="auto", max_work=1.0, random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = model.fit(X).posterior_
    assert posterior.sweeps_per_draw > 1
    assert posterior.warmup.thin == posterior.sweeps_per_draw


def test_warmup_ends_when_its_work_is_spent():
    X = signals(30, 12, seed=102)
    model = InfiniteFactorClusterer(n_chains=2, n_draws=5, max_work=1e-3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="warm-up ended when max_work=0.001 was spent"):
        model.fit(X)
    assert (model.n_chains_, model.n_warmup_, model.n_draws_) == (2, 300, 5)
    assert model.posterior_.sweeps_per_draw == 1
    assert model.posterior_.warmup.ended == "spent"
