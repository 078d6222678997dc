"""exp(score_samples) is a density in the units of X: it integrates to one, and marginalises.

Closed forms are held to the error of the grid, 1e-3. Estimates by sampling are unbiased whatever
the effort: their integral is a mean over as many seeds as make its standard error 0.0025, and must
be 1 within 0.01, which chance alone exceeds once in 16,000. Grids over two columns take seconds
then and are among the slow tests.
"""

import warnings

import numpy as np
import pytest

from checks.integrals import axis, bounded_axis, product, sampled
from contract.registry import DEFAULTS, SETTINGS, UNSUPERVISED, Setting
from skbnp import DeepScaleModel, DirichletProcessMixture, InfiniteFactorClusterer
from skbnp.samplers import MixtureSampler

# Beside those of the registry.
MORE = [
    Setting("clusterer-t", InfiniteFactorClusterer, {"tails": "t"}),
    Setting("clusterer-both", InfiniteFactorClusterer, {"means": "both"}),
]
# Every value of `density` that a setting takes.
DENSITIES = {
    "CIBPBeliefNet": ("auto", "importance", "ais"),
    "ICPNetwork": ("auto", "fantasies", "importance", "ais"),
}
# The effort of one estimate: about what makes the integral's error small soonest.
EFFORT = {"n_temperatures": 50, "n_particles": 4, "n_fantasies": 500, "n_importance": 150}
# Integrals over these grids are of smooth functions, by a rule that converges exponentially.
GRID_ERROR = 1e-3
# Of estimates, where a joint density is compared with a marginal one.
N_SEEDS = 6


def cases():
    for setting in UNSUPERVISED + MORE:
        for density in DENSITIES.get(setting.kind.__name__, (None,)):
            is_cibp = setting.kind.__name__ == "CIBPBeliefNet"
            if density == "importance" and is_cibp and setting.options.get("max_layers") != 1:
                continue
            name = setting.name if density is None else f"{setting.name}-{density}"
            yield pytest.param(setting, density, id=name)


def table():
    """Two clusters of unlike shape, in units far from standard ones."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    X[:20] = 0.6 * X[:20] + [4.0, 3.0]
    return X @ [[1.0, 0.5], [0.0, 1.0]] * [1e3, 50.0] + [5e3, -2.0]


@pytest.fixture(scope="module")
def fitted():
    """Fitted models, each once for all that is asked of it."""
    cache = {}

    def fit(setting, n_columns, density=None):
        if (setting.name, n_columns) not in cache:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cache[setting.name, n_columns] = setting.fit(table()[:, :n_columns])
        model = cache[setting.name, n_columns]
        model.set_params(predict_draws=2)
        if density is not None:
            known = model.get_params()
            effort = {name: value for name, value in EFFORT.items() if name in known}
            model.set_params(density=density, **effort)
        return model

    return fit


def is_sampled(model):
    """Whether densities are estimates, in the networks or where every factor has scales."""
    return hasattr(model, "density") or isinstance(model, DeepScaleModel)


def axes(model, n_columns):
    """A rule for each column, of points in the units of X."""
    X = table()[:, :n_columns]
    if getattr(model, "visible", "") == "sigmoid":
        half = 0.5 * np.ptp(X, axis=0) / model.feature_range
        middle = 0.5 * (X.min(axis=0) + X.max(axis=0))
        n = 161 if n_columns == 1 else 41
        return [bounded_axis(m - h, m + h, n) for m, h in zip(middle, half, strict=True)]
    if is_sampled(model):
        # Their tails are normal, and each row is slow.
        return [axis(x, 121 if n_columns == 1 else 61, 3.6) for x in X.T]
    return [axis(x, 801 if n_columns == 1 else 161) for x in X.T]


def density_of(model):
    """The density of rows with the random numbers of a seed."""
    first = model.seed_

    def density(rows, seed=0):
        model.seed_ = first + seed
        try:
            return np.exp(model.score_samples(rows))
        finally:
            model.seed_ = first

    return density


def check_integral(model, n_columns):
    """That the density is one in all, by the rule for so many columns."""
    rows, weights = product(axes(model, n_columns))
    if is_sampled(model):
        integral, error = sampled(density_of(model), rows, weights)
        assert error < 0.0025
        assert integral == pytest.approx(1.0, abs=0.01)
    else:
        assert np.exp(model.score_samples(rows)) @ weights == pytest.approx(1.0, abs=GRID_ERROR)


WARNED = pytest.mark.filterwarnings(
    "ignore:.*reach beyond the range",
    "ignore:Most rows have the weight",
    "ignore:the density of .* rests on fewer",
)


def slowly(cases, is_slow):
    """The same cases; those for which ``is_slow(setting, density)`` holds are slow tests."""
    return [
        pytest.param(*case.values, id=case.id, marks=[pytest.mark.slow] * is_slow(*case.values))
        for case in cases
    ]


@WARNED
@pytest.mark.parametrize(
    ("setting", "density"),
    slowly(
        cases(),
        lambda setting, density: (
            density == "ais" or (density == "importance" and setting not in DEFAULTS)
        ),
    ),
)
def test_the_density_of_a_column_integrates_to_one(setting, density, fitted):
    check_integral(fitted(setting, 1, density), 1)


@WARNED
@pytest.mark.parametrize(
    ("setting", "density"), slowly(cases(), lambda setting, density: density is not None)
)
def test_the_density_of_two_columns_integrates_to_one(setting, density, fitted):
    check_integral(fitted(setting, 2, density), 2)


@WARNED
@pytest.mark.parametrize(("setting", "density"), cases())
def test_a_missing_cell_is_integrated_out(setting, density, fitted):
    """By differences under each seed: rows share their fantasies, and so their errors."""
    model = fitted(setting, 2, density)
    density, seeds = density_of(model), range(N_SEEDS if is_sampled(model) else 1)
    y, weight = axes(model, 2)[1]
    for x in np.quantile(table()[:, 0], [0.2, 0.6]):
        rows = np.column_stack([np.full(len(y), x), y])
        joint = np.array([density(rows, seed) @ weight for seed in seeds])
        alone = np.array([density(np.array([[x, np.nan]]), seed)[0] for seed in seeds])
        error = np.std(joint - alone, ddof=1) / np.sqrt(N_SEEDS) if len(seeds) > 1 else 0.0
        tolerance = GRID_ERROR * alone.mean() + 5 * error
        assert joint.mean() == pytest.approx(alone.mean(), abs=tolerance)


@WARNED
@pytest.mark.parametrize("setting", UNSUPERVISED, ids=str)
def test_a_column_that_is_set_aside_does_not_count(setting):
    """Nor without a word where it has other values than in `fit`."""
    if setting.kind is DirichletProcessMixture:
        pytest.skip("a law for it as for any column, or refused")
    X = np.column_stack([table(), np.full(40, 7.0)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = setting.fit(X, predict_draws=2)
    if not model._units.set_aside().size:
        pytest.skip("a column as any other")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*constant in fit")
        before = model.score_samples(X[:3])
        np.testing.assert_array_equal(model.score_samples(X[:3] * [1.0, 1.0, np.nan]), before)
    rows = X[:3] + [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, -1e-9]]
    said = r"2 row\(s\) of X have another value in column\(s\) 2, constant in fit"
    with pytest.warns(UserWarning, match=said):
        np.testing.assert_array_equal(model.score_samples(rows), before)


def test_detection_limits_leave_a_density_above_and_a_probability_below():
    X = table()[:, 0]
    limit = np.quantile(X, 0.3)
    given = np.where(X < limit, -np.inf, X)[:, np.newaxis]
    for tails in ("gaussian", "t"):
        setting = Setting("", InfiniteFactorClusterer, {"detection_limit": limit, "tails": tails})
        model = setting.fit(given)
        x, weight = axis(X, 8001)
        density = np.exp(model.score_samples(x[:, np.newaxis]))
        above = x > limit
        # The rule starts in the middle of nowhere: the first cell counts by its share.
        first = np.flatnonzero(above)[0]
        share = 0.5 + (x[first] - limit) / weight[first]
        total = density[above] @ weight[above] + (share - 1.0) * density[first] * weight[first]
        below = np.exp(model.score_samples([[-np.inf]]))[0]
        assert total + below == pytest.approx(1.0, abs=GRID_ERROR)


@pytest.mark.parametrize("algorithm", ["collapsed", "parallel"])
def test_mixed_tables_sum_and_integrate_to_one(algorithm):
    """Over levels, counts and a real column, and over all real values for each level alone."""
    rng = np.random.default_rng(3)
    real, level, count = table()[:, 0], rng.integers(3, size=40), rng.poisson(2.0, size=40)
    model = DirichletProcessMixture(
        family=["gaussian", "categorical", "poisson"],
        sampler=MixtureSampler(algorithm=algorithm), n_chains=1,
        n_warmup=4, n_draws=4, predict_draws=2, random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.column_stack([real, level, count]))
    x, weight = axis(real, 101, 7.0)
    counts = np.arange(60.0)
    levels = np.arange(3.0)
    rules = [(x, weight), (levels, np.ones(3)), (counts, np.ones(60))]
    rows, weights = product(rules)
    joint = np.exp(model.score_samples(rows)) * weights
    assert joint.sum() == pytest.approx(1.0, abs=GRID_ERROR)
    alone = np.exp(model.score_samples(np.array([[np.nan, k, np.nan] for k in levels])))
    np.testing.assert_allclose(joint.reshape(101, 3, 60).sum(axis=(0, 2)), alone, atol=GRID_ERROR)


@pytest.mark.parametrize(
    "setting", [s for s in SETTINGS if hasattr(s.kind, "predict_proba")], ids=str
)
def test_probabilities_sum_to_one(setting):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = setting.fit(table())
    share = model.predict_proba(table()[:5])
    assert (share >= 0.0).all()
    np.testing.assert_allclose(share.sum(axis=1), 1.0, atol=1e-12)
