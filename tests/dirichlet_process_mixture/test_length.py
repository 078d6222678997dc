"""How long the mixture's chains run, what is traced of training rows, and what fit says of it."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from checks.answers import answers, assert_same_answers
from checks.watched import table_with_holes
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _estimator
from skbnp.dirichlet_process_mixture._predictive import log_weights
from skbnp.dirichlet_process_mixture._work import work_of_sweep
from skbnp.laws import ShiftedBetaNegativeBinomial
from skbnp.samplers import MixtureSampler

QUICK = {"n_chains": 2, "n_warmup": 20, "n_draws": 10, "random_state": 0}


def two_blobs(n=100, gap=8.0, d=2, seed=0):
    random = np.random.default_rng(seed)
    return np.concatenate([random.normal(0, 1, (n // 2, d)), random.normal(gap, 1, (n // 2, d))])


def fitted(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DirichletProcessMixture(**{**QUICK, **options}).fit(X)


def mixed_table():
    X = table_with_holes(40)
    X[:, 1] = np.round(np.abs(X[:, 1]))
    X[:, 2] = np.where(np.isnan(X[:, 2]), np.nan, X[:, 2] > 0)
    return X


@pytest.mark.parametrize(
    "X, options",
    [
        (two_blobs(40), {}),
        (table_with_holes(40), {}),
        (table_with_holes(40), {"covariance_type": "diag"}),
        (table_with_holes(40), {"covariance_type": "spherical", "n_components": 3}),
        (table_with_holes(40), {"n_components": ShiftedBetaNegativeBinomial(1, 4, 3)}),
        (mixed_table(), {"family": ["gaussian", "poisson", "bernoulli"]}),
    ],
)
def test_log_density_is_that_of_single_draws(X, options):
    """The trace says of a draw what `score_samples` says with that draw alone."""
    model = fitted(X, **options)
    posterior = model.posterior_
    found = posterior.traces["log_density"].ravel()
    log_p = []
    for draw in posterior:
        model.posterior_ = type(posterior)([[draw]], {"log_joint": [[0.0]]})
        log_p.append(model.score_samples(X))
    np.testing.assert_allclose(found, np.mean(log_p, axis=1), rtol=1e-10)
    by_chain = np.array(log_p).reshape(2, 10, len(X))
    pooled = np.log(np.exp(by_chain).mean(axis=(0, 1))).mean()
    assert posterior.pool()["pooled"] == pytest.approx(pooled)


def test_rows_are_chosen_by_the_seed():
    X = two_blobs(300)
    model = fitted(X, n_draws=2)
    rows = model._watched_rows(300)
    assert len(np.unique(rows)) == 200
    np.testing.assert_array_equal(rows, np.sort(rows))
    np.testing.assert_array_equal(rows, fitted(X, n_draws=3)._watched_rows(300))
    assert not np.array_equal(rows, fitted(X, n_draws=2, random_state=1)._watched_rows(300))
    np.testing.assert_array_equal(model._watched_rows(200), np.arange(200))
    density = model._density(X, rows)
    sampler = model._prepare(X)(np.random.PCG64(0), 0)
    sampler.set_state(model.posterior_.final_states[0])
    assert density.n_rows == 200
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(density))(sampler), density(sampler))
    assert density(sampler).mean() == model.posterior_.traces["log_density"][0, -1]


@pytest.mark.filterwarnings("ignore:covariance_type:UserWarning")
def test_work_of_a_sweep_counts_what_it_does():
    """Within a factor of two of seconds of one core that were measured."""

    def work(n, d, n_clusters, holes=0.0, algorithm="collapsed", **options):
        random = np.random.default_rng(0)
        X = random.normal(size=(n, d))
        X[random.random(n) < holes, 0] = np.nan
        prior = DirichletProcessMixture(**options)
        prior._check_training(X, None)
        prior.n_chains_ = 1
        prior._prepare(X)
        least, _ = prior._work(X)
        found = work_of_sweep(n_clusters, prior._training_rows.X, prior._prior, algorithm)
        assert found >= least > 0.0
        return found

    for table, measured in [
        ((455, 30, 15.0), 2.1e-3),
        ((142, 13, 12.0), 0.23e-3),
        ((120, 4, 3.0), 0.064e-3),
        ((455, 6, 15.0), 0.5e-3),
        ((10_000, 8, 13.0), 6.8e-3),
        ((30_000, 8, 12.0, 0.0, "parallel"), 8.8e-3),
        ((400, 14, 5.0, 0.95), 1.9e-3),
        # Of one cluster or two: whole tables are divided.
        ((60, 5, 3.0), 0.04e-3),
        ((60, 30, 1.0), 0.4e-3),
        ((60, 40, 2.0), 0.59e-3),
        ((300, 20, 1.0), 1.1e-3),
        ((300, 30, 1.0), 1.7e-3),
    ]:
        assert measured / 2 < work(*table) < 2 * measured, table
    assert 0.5e-3 < work(2_000, 8, 11.0, covariance_type="diag") < 2.2e-3
    # The updates of the prior are part of it.
    assert work(60, 30, 10.0) > 2 * work(60, 30, 10.0, covariance_type="diag")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"discount": 0.3},
        {"n_components": 3},
        {"n_components": ShiftedBetaNegativeBinomial(1, 4, 3)},
    ],
)
def test_a_sampler_weighs_blocks_for_the_next_row_as_its_draw_does(options):
    X = two_blobs(40)
    model = fitted(X, **options)
    sampler = model._prepare(X)(np.random.PCG64(0), 1)
    for _ in range(10):
        sampler.sweep()
    expected = log_weights(sampler.draw(), model._prior)
    found = sampler.state.law.log_predictive(sampler.state.sizes())
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(np.exp(expected).sum(), 1.0)


def test_units_of_density_are_those_of_the_table():
    X = two_blobs(40)
    log_density = fitted(X).posterior_.traces["log_density"]
    wider = fitted(8.0 * X).posterior_.traces["log_density"]
    np.testing.assert_allclose(wider, log_density - 2 * np.log(8.0))


def test_draws_do_not_depend_on_what_is_watched(monkeypatch):
    X = two_blobs(40)
    expected = fitted(X).posterior_
    monkeypatch.setattr(DirichletProcessMixture, "_density", lambda *_: None)
    monkeypatch.setattr(DirichletProcessMixture, "_reported_traces", ("log_joint",))
    found = fitted(X).posterior_
    for name, trace in found.traces.items():
        np.testing.assert_array_equal(trace, expected.traces[name])


def test_automatic_length_is_a_length():
    """A fit whose length was found and one that is told it have the same draws."""
    X = two_blobs(60)
    found = fitted(X, n_warmup="auto", n_draws=20)
    assert found.posterior_.warmup.ended == "settled"
    assert found.n_warmup_ in (200, 600, 1400, 3000)
    thin = found.posterior_.sweeps_per_draw
    told = fitted(X, n_warmup=found.n_warmup_, n_draws=20, thin=thin)
    assert_same_answers(answers(told, X), answers(found, X))
    assert told.posterior_.warmup is None


def test_number_of_sweeps_leaves_thinning_alone():
    model = fitted(two_blobs(40))
    assert (model.n_warmup_, model.posterior_.sweeps_per_draw) == (20, 1)
    assert model.posterior_.n_sweeps_run == 2 * 30


def test_goes_on_to_more_draws(tmp_path):
    X, options = two_blobs(60), {"n_warmup": "auto", "thin": "auto"}
    whole = answers(fitted(X, **options, n_draws=30), X)
    kept = fitted(X, **options, n_draws=10, checkpoint=tmp_path)
    again = fitted(X, **options, n_draws=30, checkpoint=tmp_path)
    assert_same_answers(answers(again, X), whole)
    assert again.posterior_.n_sweeps_run == 2 * 20 * again.posterior_.sweeps_per_draw
    warm = kept.set_params(n_draws=30, warm_start=True, checkpoint=None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same_answers(answers(warm.fit(X), X), whole)
        with pytest.raises(ValueError, match="differs in max_work;"):
            warm.set_params(max_work=3.0).fit(X)


def test_saved_and_loaded(tmp_path):
    X = two_blobs(60)
    model = fitted(X, n_warmup="auto")
    model.save(tmp_path / "file")
    loaded = DirichletProcessMixture.load(tmp_path / "file")
    assert loaded.posterior_.warmup == model.posterior_.warmup
    assert loaded.posterior_.pool() == model.posterior_.pool()
    assert_same_answers(answers(loaded, X), answers(model, X))


def test_work_that_is_spent_is_said():
    X = np.random.default_rng(1).normal(size=(60, 4)) ** 3
    model = DirichletProcessMixture(max_work=0.1, n_chains=2, n_draws=60, random_state=0)
    with pytest.warns(
        ConvergenceWarning, match="raise max_work .the warm-up ended when max_work=0.1 was spent"
    ):
        model.fit(X)
    assert model.posterior_.warmup.ended == "spent"
    assert model.n_warmup_ == 200
    # Told the same length, it is nobody's limit.
    model.set_params(n_warmup=200, thin=model.posterior_.sweeps_per_draw)
    with pytest.warns(ConvergenceWarning, match=r"\. To do: ") as caught:
        model.fit(X)
    assert not any("max_work" in str(w.message) for w in caught)


def test_different_partitions_are_said(monkeypatch):
    """Chains that cannot leave the one or the other of two partitions."""
    random = np.random.default_rng(2)
    X = random.normal(0, 1, (80, 2)) + 40.0 * random.integers(4, size=(80, 1))
    starts = iter(["one_block", "kmeans"])
    monkeypatch.setattr(
        _estimator, "start_labels", lambda *_: np.zeros(80, int) if next(starts) == "one_block"
        else np.arange(80) // 20,
    )  # fmt: skip
    model = DirichletProcessMixture(
        concentration=1.0,
        n_chains=2,
        n_warmup=0,
        n_draws=40,
        random_state=0,
        sampler=MixtureSampler(n_split_merge=0),
    )
    with pytest.warns(ConvergenceWarning, match="the chains found different partitions"):
        model.fit(X)
    assert model.posterior_.pool()["pool_gain"] > 0.04


def test_nothing_that_could_move_did():
    X = np.random.default_rng(0).normal(size=(30, 2))
    options = {**QUICK, "n_chains": 1, "n_draws": 200, "concentration": 1e-100}
    with pytest.warns(ConvergenceWarning, match="n_clusters never changed, and none of 6600 prop"):
        DirichletProcessMixture(**options, sampler=MixtureSampler(n_split_merge=0)).fit(X)
    # Where there is one partition alone, nothing can move.
    for rows, changed in [(X, {"n_components": 1}), (X[:1], {"degrees_of_freedom_prior": 5.0})]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted(rows, **changed)
        assert not any("never changed" in str(w.message) for w in caught)


def test_distance_to_consensus_tells_chains_apart():
    """Chains with as many clusters of the same sizes, which are not the same."""
    model = fitted(two_blobs(40), n_chains=2, n_draws=40)
    summary = model.posterior_.summary()
    assert 0.0 <= summary.loc["distance_to_consensus", "mean"] < np.log(40)
    posterior = model.posterior_
    for c in range(2):
        for t in range(40):
            label = np.arange(40) // 20 if c == 0 else np.arange(40) % 2
            posterior._draws[c][t] = {**posterior[c, t], "label": label}
    row = posterior.summary().loc["distance_to_consensus"]
    assert row["rhat"] == np.inf
    assert row["mean"] == pytest.approx(np.log(2.0))  # VI of two halves across: 2 ln 2, and 0
    # Too few draws for a figure.
    assert (
        "distance_to_consensus" not in fitted(two_blobs(40), n_draws=3).posterior_.summary().index
    )


@pytest.mark.parametrize("value", [0.0, -1.0, "much"])
def test_max_work_must_be_positive(value):
    with pytest.raises(ValueError, match="max_work"):
        DirichletProcessMixture(max_work=value).fit(two_blobs(20))


@pytest.mark.parametrize(
    ("n", "lengths"), [(4_999, (200, 300)), (5_000, (200, 150)), (100_001, (100, 100))]
)
def test_many_rows_have_fewer_draws(n, lengths):
    assert DirichletProcessMixture()._auto_lengths(np.zeros((n, 1))) == lengths
