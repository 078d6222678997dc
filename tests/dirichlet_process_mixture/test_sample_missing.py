"""Tables completed by draws of their missing cells, against the moments that are known."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.monte_carlo import z_score
from checks.slow import slow_where
from skbnp import DirichletProcessMixture
from skbnp.laws import Gamma

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KINDS = ["full", "diag", "spherical"]
some_kinds = pytest.mark.parametrize("kind", slow_where(KINDS, lambda kind: kind == "diag"))
N_TABLES = 2000


def mixed(n=60, seed=0):
    """Two groups, numbers as pandas has them; a fifth of the cells of four columns is missing."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    numbers = rng.normal(size=(n, 2)) @ [[1.0, 0.8], [0.0, 0.6]] + 4 * group[:, np.newaxis]
    table = pd.DataFrame(
        {
            "a": numbers[:, 0],
            "b": numbers[:, 1],
            "level": pd.Categorical(np.where(rng.random(n) < 0.8, group, 2), [0, 1, 2]),
            "count": pd.array(rng.poisson(2 + 4 * group), dtype="Int64"),
            "flag": pd.array(rng.random(n) < 0.2 + 0.5 * group, dtype="boolean"),
        },
        index=np.arange(n) + 100,
    )
    for j in range(1, 5):
        table.iloc[rng.random(n) < 0.2, j] = np.nan if j == 1 else pd.NA
    return table


def fitted(kind, X, **options):
    options = dict(family="auto", n_chains=2, n_warmup=50, n_draws=400, random_state=0) | options
    return DirichletProcessMixture(covariance_type=kind, **options).fit(X)


FAMILIES = ["gaussian", "gaussian", "categorical", "poisson", "bernoulli"]


@cache
def fitted_to_mixed(kind):
    """To an array: frames are looked at below, and hundreds of them take their time."""
    return fitted(kind, as_floats(mixed()), family=FAMILIES, predict_draws=800)


def as_floats(table):
    return np.column_stack(
        [table[name].astype(float).to_numpy(float, na_value=np.nan) for name in table]
    )


def assert_moments(tables, holes, mean, std, levels):
    """Within 4.5 standard errors of 300 independent tables, and deviations within 15 %.

    For a level that of the share of the one that is filled in.
    """
    drawn = np.array(tables)[:, holes]
    mean, std, level = mean[holes], std[holes], np.broadcast_to(levels, holes.shape)[holes]
    drawn[:, level] = drawn[:, level] == mean[level]
    expected = np.where(level, (1 + np.sqrt(np.maximum(1 - 4 * std**2, 0))) / 2, mean)
    assert (np.abs(drawn.mean(axis=0) - expected)[~level] < 4.5 * std[~level] / np.sqrt(300)).all()
    # p (1 - p) has two roots.
    share = drawn.mean(axis=0)[level]
    assert (np.minimum(abs(share - expected[level]), abs(1 - share - expected[level])) < 0.1).all()
    assert_allclose(drawn.std(axis=0)[~level], std[~level], rtol=0.25)
    assert abs(np.mean(drawn.std(axis=0)[~level] / std[~level]) - 1) < 0.05


@some_kinds
def test_training_cells_have_the_moments_of_all_sweeps(kind):
    model = fitted_to_mixed(kind)
    tables = model.sample_missing(n_tables=800, random_state=0)
    holes, levels = mixed().isna().to_numpy(), np.arange(5) == 2
    assert_moments(tables, holes, model.X_imputed_, model.X_imputed_std_, levels)


@some_kinds
def test_cells_of_new_rows_have_the_moments_of_impute(kind):
    model = fitted_to_mixed(kind)
    new = as_floats(mixed(40, seed=1))
    tables = model.sample_missing(new, n_tables=800, random_state=0)
    mean, std = model.impute(new, return_std=True)
    assert_moments(tables, np.isnan(new), mean, std, np.arange(5) == 2)


@pytest.mark.parametrize("kind", KINDS)
def test_cells_of_a_row_depend_on_one_another(kind):
    """One Gaussian given two values: covariance of what is missing, from complete rows drawn."""
    X = np.random.default_rng(1).normal(size=(30, 3)) @ [[1, 0.9, 0.9], [0, 0.4, 0.2], [0, 0, 0.3]]
    model = fitted(kind, X, n_components=1, family="gaussian")
    new = np.array([[0.5, np.nan, np.nan]])
    cells = np.array(model.sample_missing(new, n_tables=N_TABLES, random_state=0))[:, 0, 1:]
    a, b = (cells - cells.mean(axis=0)).T
    if kind == "full":
        precision = np.linalg.inv(np.cov(X.T))
        assert abs(np.corrcoef(a, b)[0, 1] + precision[1, 2] / np.sqrt(
            precision[1, 1] * precision[2, 2]
        )) < 0.15  # fmt: skip
    else:
        assert abs(z_score(a * b, 0.0)) < 4


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_training_cells_of_a_block_share_parameters(kind):
    """Cov = Var(mu | observed), in closed form; new rows are drawn each on its own."""
    X = np.array([[0.0, 1.0], [1.0, -1.0], [2.0, 0.5], [-1.0, np.nan], [0.5, np.nan]])
    prior = dict(mean_prior=[0.0, 0.0], mean_precision_prior=0.5, degrees_of_freedom_prior=8.0)
    prior |= dict(covariance_prior=[4.0, 4.0] if kind == "diag" else 4.0, prior_scale=1.0)
    model = fitted(kind, X, n_components=1, family="gaussian", concentration=1.0, **prior)
    cells = np.array(model.sample_missing(n_tables=N_TABLES, random_state=0))[:, 3:, 1]
    kappa, mean = 3.5, 0.5 / 3.5
    columns = [1] if kind == "diag" else [0, 1]
    shape, rate = 4.0, 2.0
    for j in columns:
        x = X[~np.isnan(X[:, j]), j]
        shape += len(x) / 2
        rate += np.sum((x - x.mean()) ** 2) / 2
        rate += 0.5 * len(x) / (0.5 + len(x)) * x.mean() ** 2 / 2
    of_mu = rate / (shape - 1) / kappa
    assert abs(z_score(cells[:, 0], mean)) < 4
    assert abs(z_score((cells[:, 0] - mean) * (cells[:, 1] - mean), of_mu)) < 4
    assert abs(z_score((cells[:, 0] - mean) ** 2, of_mu * (1 + kappa))) < 4
    new = np.where(np.isnan(X[3:]), np.nan, X[3:] + 1e-9)
    alone = np.array(model.sample_missing(new, n_tables=N_TABLES, random_state=0))[:, :, 1]
    assert abs(z_score((alone[:, 0] - mean) * (alone[:, 1] - mean), 0.0)) < 4


def test_levels_and_counts_of_a_block_share_parameters():
    """Two missing cells agree as often as draws of one unknown law do: E sum p^2."""
    nan = np.nan
    X = np.array([[0, 1], [1, 0], [0, 2], [nan, nan], [nan, nan]])
    families = ["categorical", "poisson"]
    options = dict(
        n_components=1, concentration=1.0, categorical_prior=1.0, poisson_prior=Gamma(2, 1)
    )
    model = fitted("full", X, family=families, **options)
    tables = np.array(model.sample_missing(n_tables=N_TABLES, random_state=0))
    level, n = tables[:, 3:, 0] == 0, tables[:, 3:, 1]
    g = np.array([2.5, 1.5])
    assert abs(z_score(level[:, 0], g[0] / 4)) < 4
    assert abs(z_score(level[:, 0] == level[:, 1], np.sum(g * (g + 1)) / 20)) < 4
    a, b = 5.0, 4.0
    assert abs(z_score(n[:, 0], a / b)) < 4
    assert abs(z_score((n[:, 0] - a / b) * (n[:, 1] - a / b), a / b**2)) < 4


def test_full_covariances_draw_the_cells_of_the_chains():
    X = np.random.default_rng(2).normal(size=(30, 3))
    X[::3, 1] = np.nan
    model = fitted("full", X, family="gaussian", n_draws=10)
    stored = [
        draw["imputed"] * model._units.scale[1] + model._units.center[1]
        for draw in model.posterior_
    ]
    drawn = [table[::3, 1] for table in model.sample_missing(n_tables=20, random_state=0)]
    assert_array_equal(np.sort(stored, axis=0), np.sort(drawn, axis=0))  # each draw once
    assert len(model.sample_missing(n_tables=25, random_state=0)) == 25
    known = [model.sample_missing(X[[3, 0]], 20, random_state=0)[t][:, 1] for t in range(20)]
    assert_array_equal(np.sort(known, axis=0), np.sort(stored, axis=0)[:, [1, 0]])


@pytest.mark.parametrize("which", ["training", "new"])
def test_tables_keep_their_form(which):
    X = mixed()
    model = fitted("full", X, n_draws=10)
    given = X if which == "training" else mixed(30, seed=1)
    ask = {} if which == "training" else {"X": given}
    tables = model.sample_missing(**ask, n_tables=3, random_state=0)
    assert len(tables) == 3
    holes = given.isna()
    for table in tables:
        assert list(table.columns) == list(X.columns) and table.index.equals(given.index)
        assert list(table.dtypes) == list(given.dtypes)
        assert not table.isna().any().any()
        assert ((table == given) | holes).all().all()
    assert not tables[0].equals(tables[1])
    for one, other in zip(
        tables, model.sample_missing(**ask, n_tables=3, random_state=0), strict=True
    ):
        pd.testing.assert_frame_equal(one, other)
    if which == "training":
        rows = np.asarray(model.sample_missing(X.to_numpy(dtype=object), random_state=0)[0])
        assert rows.shape == X.shape


def test_refusals():
    X = np.random.default_rng(3).normal(size=(20, 2))
    model = fitted("diag", X, family="gaussian", n_draws=10)
    with pytest.raises(ValueError, match="X must be given, for fit has seen no missing cells"):
        model.sample_missing()
    assert_array_equal(model.sample_missing(X, n_tables=1)[0], X)
    for n_tables in (0, 2.5, True):
        with pytest.raises(ValueError, match="n_tables must be an integer >= 1, got"):
            model.sample_missing(X, n_tables=n_tables)
