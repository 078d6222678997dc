"""Missing cells drawn under one draw of the chains, against dense Gaussian and t laws."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from checks.monte_carlo import z_score
from checks.tree_factor_model import make_sampler, prior_of
from skbnp import TreeFactorModel
from skbnp.tree_factor_model import _model
from skbnp.tree_factor_model._missing_cells import draw_cells
from skbnp.tree_factor_model._new_branches import with_new_branches
from skbnp.tree_factor_model._predictive import conditional_moments
from skbnp.tree_factor_model._rows import Rows

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N_DRAWS = 4000


def drawn(structure, tails, new_branches=False):
    """A draw of a short chain, rows with holes, and their cells drawn many times."""
    rng = np.random.default_rng(3)
    p = prior_of(structure, n_features=4, tails=tails)
    state, X = _model.draw_joint(p, 30, rng)
    sampler = make_sampler(X, p, state)
    sampler.sweep()
    draw = sampler.draw()
    if new_branches:
        draw = with_new_branches(draw, p, 2, rng)
    nan = np.nan
    rows = np.array([[nan] * 4, [0.3, nan, nan, nan], [nan, 1.0, -0.5, nan], [0.1, 0.2, 0.3, 0.4]])
    cells = draw_cells(np.repeat(rows, N_DRAWS, axis=0), draw, np.random.RandomState(0))
    return draw, rows, cells.reshape(4, N_DRAWS, 4)


@pytest.mark.parametrize(
    ("structure", "new"), [("tree", False), ("tree", True), ("mixture", False)]
)
def test_moments_are_those_of_impute(structure, new):
    draw, rows, cells = drawn(structure, "gaussian", new)
    mean, variance = conditional_moments(Rows(rows), draw)
    for i, j in zip(*np.nonzero(np.isnan(rows)), strict=True):
        x = cells[i, :, j]
        assert abs(z_score(x, mean[i, j])) < 4
        assert abs(z_score((x - mean[i, j]) ** 2, variance[i, j])) < 4
    assert_array_equal(cells[3], np.broadcast_to(rows[3], cells[3].shape))


@pytest.mark.parametrize("tails", _model.TAILS)
def test_cells_of_a_row_against_dense_algebra(tails):
    """Every cell by its distribution function, and two of them together by their difference."""
    draw, rows, cells = drawn("single", tails)
    center, C = _model.branch_law(draw, 0)
    df = draw["tail_df"][0]
    for x, found in zip(rows[:3], cells[:3], strict=True):
        o, m = ~np.isnan(x), np.isnan(x)
        gain = np.linalg.solve(C[np.ix_(o, o)], C[np.ix_(o, m)]).T
        at, left = center[m] + gain @ (x - center)[o], C[np.ix_(m, m)] - gain @ C[np.ix_(o, m)]
        spread = 1.0
        if np.isfinite(df):
            off = (x - center)[o]
            spread = (df + off @ np.linalg.solve(C[np.ix_(o, o)], off)) / (df + o.sum())
        for weight in (*np.eye(m.sum()), np.array([1.0, -1.0, *np.zeros(m.sum() - 2)])):
            scale = np.sqrt(spread * (weight @ left @ weight))
            law = stats.t(df + o.sum()) if np.isfinite(df) else stats.norm()
            y = (found[:, m] @ weight - weight @ at) / scale
            assert stats.kstest(y, law.cdf).pvalue > 1e-4


def test_tables():
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[::4, 1] = np.nan
    X[3] = np.nan, 1.0, np.nan
    options = dict(max_depth=2, n_chains=2, n_warmup=5, n_draws=5, random_state=0)
    model = TreeFactorModel(**options, new_branch="prior").fit(X)
    for given in (None, X, X[:5] + 1.0):
        tables = model.sample_missing(given, n_tables=2, random_state=0)
        truth = X if given is None else given
        for table in tables:
            assert np.isfinite(table).all()
            assert_array_equal(table[~np.isnan(truth)], truth[~np.isnan(truth)])
        assert not np.array_equal(*tables)
