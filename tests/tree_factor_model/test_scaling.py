"""One scale of all columns, or one of each, where nothing is said."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skbnp import TreeFactorModel
from skbnp.tree_factor_model._scaling import scaling_of

SHORT = dict(n_chains=1, n_warmup=5, n_draws=4, thin=1, random_state=0)


def table(n_columns=6, n=60, seed=0):
    """Two factors and noise, a tenth of the cells missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) @ rng.normal(size=(2, n_columns)) + rng.normal(size=(n, n_columns))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def test_columns_of_about_one_size_have_one_scale():
    X = table()
    assert scaling_of(X) == "common"
    assert scaling_of(X * np.array([1, 1, 1, 1, 1, 0.2])) == "common"
    assert scaling_of(X * np.array([1, 1, 1, 1, 1, 0.01])) == "each"
    assert scaling_of(X * np.array([1, 1, 1, 1, 1, 1e-200])) == "each"
    assert scaling_of(X + 1e6 * np.arange(6)) == "common"


def test_columns_that_do_not_vary_say_nothing():
    X = np.column_stack([table(), np.full(60, 1e6)])
    assert scaling_of(X) == "common"
    assert scaling_of(np.ones((5, 2))) == "common"


def test_pixels_have_one_scale():
    """Some hardly vary: at an edge, where few images have ink."""
    rng = np.random.default_rng(0)
    ink = rng.integers(0, 17, size=(80, 50)).astype(float)
    ink[:, :20] *= rng.random((80, 20)) < 0.02
    ink[0] = 16.0
    assert scaling_of(ink) == "common"
    faces = 0.2 * rng.normal(size=(80, 50)).clip(-2, 2) + 0.5
    faces[:, :5] *= 0.001
    assert scaling_of(faces) == "common"
    assert scaling_of(faces[:, :20]) == "each"  # a table of few columns, of which some are small
    assert scaling_of(faces * 10.0 ** np.linspace(-5, 5, 50)) == "each"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("factor", [2.0**-12, 2.0**20])
def test_units_of_a_column_do_not_matter(factor):
    X = table()
    factors = np.array([1, 1, 1, 1, 1, factor])
    each = TreeFactorModel(scaling="each", **SHORT).fit(X)
    model = TreeFactorModel(**SHORT).fit(X * factors)
    for a, b in zip(each.posterior_, model.posterior_, strict=True):
        assert_array_equal(a["loadings"], b["loadings"])
    assert_array_equal(model.impute(X * factors), each.impute(X) * factors)
    common = TreeFactorModel(scaling="common", **SHORT).fit(X)
    assert_array_equal(TreeFactorModel(**SHORT).fit(X).impute(X), common.impute(X))


def test_a_wide_column_beside_a_narrow_one_is_no_scale_with_ends():
    """Densities are those of the narrow one too: with one scale it would be a constant."""
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(0, 1000, 80), rng.normal(0, 1, 80)])
    assert scaling_of(X) == "each"
    assert scaling_of(X[:, [0, 1, 1]]) == "each"
    # Two columns that have both ends are.
    X = np.clip(rng.normal(0.5, 1.0, size=(80, 2)), 0.0, 1.0)
    small = 1e-3 * rng.random((80, 2))
    assert scaling_of(np.column_stack([X, small])) == "common"
