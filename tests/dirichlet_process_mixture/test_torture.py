"""Numbers at the edge: an answer or the documented error, never NaN or a crash."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from checks.dirichlet_process_mixture import gaussian_prior, state_of
from checks.slow import slow_where
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _model
from skbnp.dirichlet_process_mixture._estimator import _make_sampler
from skbnp.laws import Beta, Gamma, Grid
from skbnp.samplers import MixtureSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning"
)

KINDS = ["full", "diag", "spherical"]


def fit(X, kind="full", **options):
    defaults = dict(n_chains=2, n_warmup=10, n_draws=10, predict_draws=8, random_state=0)
    return DirichletProcessMixture(covariance_type=kind, **{**defaults, **options}).fit(X)


def assert_sound(dpm, X):
    """Every answer is a finite number and says what it must."""
    for name, trace in dpm.posterior_.traces.items():
        assert np.isfinite(trace).all(), name
    assert np.isfinite(dpm.expected_loss_)
    assert dpm.labels_.shape == (len(X),)
    assert_array_equal(np.unique(dpm.labels_), np.arange(dpm.n_clusters_))
    if np.isnan(X).any():
        assert np.isfinite(dpm.X_imputed_).all()
        assert_array_equal(dpm.X_imputed_[~np.isnan(X)], X[~np.isnan(X)])

    center = 0.5 * np.nanmax(X, axis=0) + 0.5 * np.nanmin(X, axis=0)
    spread = np.nanmax(np.abs(X - center), axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    far = center + 1e6 * spread * [[1.0], [-1.0]]
    rows = np.concatenate([X[:100], far, center[None], np.full((1, X.shape[1]), np.nan)])
    half = rows.copy()
    half[:, ::2] = np.nan  # with one feature: nothing observed at all
    for new in (rows, half):
        proba = dpm.predict_proba(new)
        assert np.isfinite(proba).all() and (proba >= 0).all()
        assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
        assert_array_equal(dpm.transform(new), proba)
        assert_array_equal(dpm.predict(new), proba.argmax(axis=1))
        novelty = dpm.novelty_proba(new)
        assert ((novelty >= 0) & (novelty <= 1)).all()
        assert np.isfinite(dpm.score_samples(new)).all()
        filled, std = dpm.impute(new, return_std=True)
        holes = np.isnan(new)
        assert np.isfinite(filled).all() and np.isfinite(std).all()
        assert_array_equal(filled[~holes], new[~holes])
        assert (std[~holes] == 0).all() and (std[holes] > 0).all()
    assert dpm.score_samples(rows)[-1] == pytest.approx(0.0, abs=1e-9)
    drawn, labels = dpm.sample(50, random_state=0)
    assert np.isfinite(drawn).all()
    assert ((labels >= -1) & (labels < dpm.n_clusters_)).all()


def two_clusters(n=40, d=2, seed=0, apart=8.0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 2
    return apart * truth[:, None] + rng.normal(size=(n, d)), truth


def holed(X, fraction=0.2, seed=1):
    holes = np.random.default_rng(seed).random(X.shape) < fraction
    holes[0] = False
    return np.where(holes, np.nan, X)


def crossed(X):
    """Each row lacks all columns but one: no two columns are ever seen together."""
    return np.where(np.arange(len(X))[:, None] % X.shape[1] == np.arange(X.shape[1]), X, np.nan)


def with_nan_rows(X):
    changed = X.copy()
    changed[[3, 4, 9]] = np.nan
    return changed


PLAIN, TRUTH = two_clusters()
DATA = {
    "plain": PLAIN,
    "holes": holed(PLAIN),
    "half the cells": holed(two_clusters(d=4)[0], 0.5),
    "crossed": crossed(PLAIN),
    "rows of NaN": with_nan_rows(PLAIN),
    "duplicated columns": PLAIN[:, [0, 0, 1, 1, 1]],
    "duplicated rows": np.repeat(PLAIN[:4], 10, axis=0),
    "a column twice, negated": np.column_stack([PLAIN, -PLAIN[:, 0]]),
    "scale 1e-8": PLAIN * 1e-8,
    "scale 1e8": PLAIN * 1e8,
    "mixed scales": PLAIN * [1e-8, 1e8],
    "mixed scales, holes": holed(PLAIN * [1e-8, 1e8]),
    "scale 1e-300": PLAIN * 1e-300,
    "scale 1e300": PLAIN * 1e300,
    "opposite ends": PLAIN * [1e-300, 1e300],
    "two rows": PLAIN[:2],
    "P > N": np.random.default_rng(2).normal(size=(5, 30)),
    "P > N, holes": holed(np.random.default_rng(2).normal(size=(8, 30))),
    "one feature": PLAIN[:, :1],
    "one feature, holes": holed(PLAIN[:, :1]),
    # Above 64 features another way to weigh incomplete rows.
    "66 features, holes": holed(np.random.default_rng(3).normal(size=(12, 66)), 0.01),
    "huge offset": 1e8 + PLAIN,
    "offset at the last digits": 1e8 + 1e-7 * PLAIN,
    "an outlier": np.vstack([PLAIN, [[1e9, -1e9]]]),
    "integers": np.round(PLAIN),
    "binary": (PLAIN > 4).astype(float),
    "Cauchy": np.random.default_rng(4).standard_cauchy(size=(60, 3)),
    "subnormal": PLAIN * 1e-310,
}


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("kind", slow_where(KINDS, lambda kind: kind != "full"))
def test_data(kind, name):
    X = DATA[name]
    dpm = fit(X, kind)
    assert_sound(dpm, X)
    if name in ("plain", "scale 1e-8", "scale 1e8", "mixed scales", "huge offset"):
        assert adjusted_rand_score(dpm.labels_, TRUTH) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_one_row(kind):
    """N = 1: one cluster, and a finite predictive whose centre is the row."""
    X = np.array([[3.0, -2.0]])
    dpm = fit(X, kind)
    assert dpm.n_clusters_ == 1
    assert_array_equal(dpm.labels_, [0])
    assert_sound(dpm, X)
    assert_allclose(dpm.impute([[np.nan, np.nan]]), X)


@pytest.mark.parametrize("kind", KINDS)
def test_constant_columns(kind):
    X = np.column_stack([PLAIN, np.full(40, 0.1), np.zeros(40)])
    if kind == "full":
        with pytest.raises(ValueError, match="vary in every column"):
            fit(X, kind)
        assert_sound(fit(X, kind, covariance_prior=np.eye(4)), X)
    else:
        assert_sound(fit(X, kind), X)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_with_one_value(kind):
    """A column of which a single cell was seen is constant too."""
    X = np.where(np.arange(40)[:, None] == 5, PLAIN, np.nan)
    Y = np.array([[0.0, np.nan], [1.0, 2.0]])
    for data in (X, Y):
        if kind == "full":
            with pytest.raises(ValueError, match="vary in every column"):
                fit(data, kind)
        else:
            assert_sound(fit(data, kind), data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.1, 0.0, 1e-300, -1e300])
def test_identical_rows(kind, value):
    X = np.full((10_000, 2), value)
    if kind == "full":
        with pytest.raises(ValueError, match=r"vary in every column.*constant column\(s\) 0, 1"):
            fit(X, kind)
        return
    dpm = fit(X, kind, n_chains=1, n_warmup=5, n_draws=5)
    assert dpm.n_clusters_ == 1
    assert_sound(dpm, X)


@pytest.mark.parametrize("kind", KINDS)
def test_identical_rows_but_one(kind):
    """10,000 copies and one other row, which keeps "full" possible."""
    X = np.full((10_001, 2), 5.0)
    X[17] = [6.0, 5.5]
    dpm = fit(X, kind, n_chains=1, n_warmup=5, n_draws=5)
    assert_sound(dpm, X)
    assert_array_equal(np.flatnonzero(dpm.labels_), [17])


@pytest.mark.parametrize("tightness", [1e-3, 1e-6])
@pytest.mark.parametrize("kind", KINDS)
def test_tight_clusters(kind, tightness):
    """Clusters a thousand, then a million, times tighter than their distance."""
    rng = np.random.default_rng(5)
    truth = np.arange(120) % 6
    X = rng.normal(size=(6, 3))[truth] + tightness * rng.normal(size=(120, 3))
    for data in (X, holed(X, 0.1)):
        dpm = fit(data, kind, n_warmup=40)
        known = ~np.isnan(data).all(axis=1)  # a row without a cell belongs nowhere
        assert adjusted_rand_score(dpm.labels_[known], truth[known]) == 1
        assert_sound(dpm, data)


@pytest.mark.parametrize("kind", KINDS)
def test_a_correlated_tight_ridge(kind):
    """Two columns that agree to nine digits."""
    x = np.random.default_rng(6).normal(size=60)
    X = np.column_stack([x, x * (1 + 1e-9), x + 1e-9 * np.sin(np.arange(60))])
    assert_sound(fit(X, kind), X)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("holes", [False, True])
def test_bookkeeping_at_the_edge(kind, holes):
    """The kernel's log joint is that of the model, tight clusters, distant scales and all."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(5, 3))[np.arange(100) % 5] + 1e-4 * rng.normal(size=(100, 3))
    X = holed(X) if holes else X
    d = X.shape[1]
    prior = gaussian_prior(
        kind,
        np.zeros(d),
        0.01,
        d + 2.0,
        {"full": np.eye(d), "diag": np.ones(d), "spherical": np.array(1.0)}[kind] * 1e-6,
    )
    for start in _model.STARTS:
        sampler = _make_sampler(np.random.PCG64(0), 0, X=X, prior=prior, start=start)
        for _ in range(49):  # the last sweep before statistics are built anew
            sampler.sweep()
        expected = _model.log_joint(state_of(sampler), sampler.completed_data(), prior)
        assert_allclose(sampler.log_joint(), expected, rtol=1e-8)


# -- parameters at their ends


OPTIONS = {
    "one component": dict(n_components=1),
    "more components than rows": dict(n_components=1000),
    "a great many components": dict(n_components=10**15),
    "three components, weights tiny": dict(n_components=3, concentration=1e-300),
    "three components, weights huge": dict(n_components=3, concentration=1e300),
    "concentration tiny": dict(concentration=1e-300),
    "concentration huge": dict(concentration=1e300),
    "concentration below zero": dict(discount=0.5, concentration=np.nextafter(-0.5, 0)),
    "vague concentration": dict(concentration=Gamma(1e-3, 1e-3)),
    "sharp concentration": dict(concentration=Gamma(1e10, 1.0)),
    "concentration at zero": dict(concentration=Gamma(1.0, 1e10)),
    "concentration at zero, vague": dict(concentration=Gamma(1e-10, 1.0)),
    "discount near 1": dict(discount=1 - 1e-9),
    "discount next to 1": dict(discount=np.nextafter(1, 0)),
    "discount drawn to 1": dict(discount=Beta(1.0, 0.01)),
    "discount drawn to 0": dict(discount=Beta(0.001, 1.0)),
    "discount at both ends": dict(discount=Beta(1e-3, 1e-3)),
    "no split-merge": dict(sampler=MixtureSampler(n_split_merge=0)),
    "many split-merge": dict(sampler=MixtureSampler(n_split_merge=50)),
    "no warm-up": dict(n_warmup=0),
    "one draw": dict(n_draws=1),
    "thin": dict(thin=3),
    "one chain": dict(n_chains=1),
    "next to nothing": dict(
        n_chains=1, n_warmup=0, n_draws=1, sampler=MixtureSampler(n_split_merge=0)
    ),
    "one draw to predict": dict(predict_draws=1),
    "kappa tiny": dict(mean_precision_prior=1e-100),
    "kappa huge": dict(mean_precision_prior=1e100),
    "nu huge": dict(degrees_of_freedom_prior=1e8),
    "s tiny": dict(prior_scale=1e-100, degrees_of_freedom_prior=4.0),
    "s on a grid": dict(prior_scale=Grid([1e-9, 3.0, 1e9]), degrees_of_freedom_prior=4.0),
    "s huge": dict(prior_scale=1e100, degrees_of_freedom_prior=4.0),
    "kappa0 fixed": dict(mean_precision_prior=0.01, degrees_of_freedom_prior=4.0),
    "mean far": dict(mean_prior=[5e5, -5e5]),
    "binder": dict(point_estimate="binder"),
    "map": dict(point_estimate="map"),
}


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("kind", slow_where(KINDS, lambda kind: kind != "full"))
def test_parameters(kind, name):
    options = OPTIONS[name]
    for X in (PLAIN, holed(PLAIN)):
        dpm = fit(X, kind, **options)
        assert_sound(dpm, X)
        if "n_components" in options:
            assert dpm.posterior_.traces["n_clusters"].max() <= options["n_components"]
        assert dpm.posterior_.n_draws == options.get("n_draws", 10)
        assert dpm.posterior_.n_chains == options.get("n_chains", 2)


@pytest.mark.parametrize("seed", range(8))
def test_cells_of_blocks_that_are_nearly_singular(seed):
    """Blocks of one row have covariances of rank one, up to 1e-100."""
    X = holed(PLAIN)
    assert_sound(fit(X, "full", **OPTIONS["s tiny"], random_state=seed), X)


@pytest.mark.parametrize("kind", KINDS)
def test_concentration_without_limit_separates_all(kind):
    """The limits of the prior: every row alone, and all rows together."""
    assert fit(PLAIN, kind, concentration=1e300).n_clusters_ == len(PLAIN)
    close = PLAIN[TRUTH == 0]
    assert fit(close, kind, concentration=1e-300).n_clusters_ == 1


@pytest.mark.parametrize("kind", slow_where(KINDS, lambda kind: kind != "full"))
def test_few_degrees_of_freedom(kind):
    """Without a second moment the standard deviation is inf, and that is all."""
    df = 1.2 if kind == "full" else 0.5
    dpm = fit(PLAIN, kind, degrees_of_freedom_prior=df)
    new = np.array([[0.0, np.nan], [np.nan, np.nan]])
    filled, std = dpm.impute(new, return_std=True)
    assert np.isfinite(filled).all()
    assert (std[np.isnan(new)] == np.inf).all() and std[0, 0] == 0
    assert np.isfinite(dpm.score_samples(new)).all()
    # Gamma draws of so small a shape are often exactly 0 in floating point.
    dpm = fit(PLAIN, kind, degrees_of_freedom_prior=1.001 if kind == "full" else 1e-3)
    X, labels = dpm.sample(20_000, random_state=0)
    assert np.isfinite(X).all()
    assert (labels == -1).sum() > 100


@pytest.mark.parametrize("kind", KINDS)
def test_far_rows(kind):
    """The density falls as a power of the distance; far rows are new; means stay in reach."""
    dpm = fit(PLAIN, kind)
    steps = 10.0 ** np.arange(2, 49, 2)
    density = dpm.score_samples(np.outer(steps, [1.0, 1.0]))
    assert (np.diff(density) < 0).all()
    slope = np.diff(density) / np.diff(np.log(steps))
    assert_allclose(slope[5:], slope[-1], rtol=1e-3)
    # t of the new block: nu0 - d + 1 degrees of freedom in d dimensions; diag: two t of nu0.
    # The draw with the heaviest tails outlasts the others.
    nu0 = min(draw["degrees_of_freedom"] for draw in dpm._prediction_draws())
    df = {"full": nu0 + 1, "diag": 2 * (nu0 + 1), "spherical": nu0 + 2}[kind]
    assert_allclose(-slope[-1], df, rtol=1e-6)
    assert_allclose(dpm.novelty_proba(np.outer(steps[5:], [1.0, -1.0])), 1.0, atol=1e-6)
    filled, std = dpm.impute([[1e6, np.nan]], return_std=True)
    assert np.isfinite(filled).all() and np.isfinite(std).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_without_a_cell(kind):
    """It has density one, the sizes of the clusters, and the mean of the whole."""
    dpm = fit(PLAIN, kind)
    row = np.full((1, 2), np.nan)
    assert_allclose(dpm.score_samples(row), 0.0, atol=1e-12)
    assert_allclose(dpm.predict_proba(row), [[0.5, 0.5]], atol=0.02)
    assert_allclose(dpm.impute(row)[0], PLAIN.mean(axis=0), atol=0.2)
