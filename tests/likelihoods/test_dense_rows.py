"""Densities and missing cells under normal and t laws, beside SciPy's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from skbnp.likelihoods.dense_rows import DenseRows


def laws(d, n_laws=3, seed=0):
    """Means, scale matrices, and degrees of freedom, of which the last are infinite."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_laws, d, d))
    scale = root @ np.swapaxes(root, 1, 2) + 0.3 * np.eye(d)
    df = np.append(rng.uniform(2.5, 9.0, n_laws - 1), np.inf)
    return rng.normal(size=(n_laws, d)), scale, df


def rows(d, n=150, seed=1):
    """Rows with holes, some of them without any cell; more of a pattern than go together."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x[rng.random(x.shape) < 0.3] = np.nan
    x[:70] = rng.normal(size=(70, d))
    x[rng.permutation(n)[:5]] = np.nan
    x = x[rng.permutation(n)]
    patterns, pattern = np.unique(~np.isnan(x), axis=0, return_inverse=True)
    return x, DenseRows(np.nan_to_num(x, nan=99.0), patterns, pattern.ravel())


def law_of(mean, scale, df, cells):
    scale = scale[np.ix_(cells, cells)]
    if np.isinf(df):
        return stats.multivariate_normal(mean[cells], scale)
    return stats.multivariate_t(mean[cells], scale, df)


@pytest.mark.parametrize("d", [1, 3, 6, 20])
def test_log_densities(d):
    x, prepared = rows(d)
    mean, scale, df = laws(d)
    found = prepared.log_densities(mean, scale, df)
    for i, row in enumerate(x):
        cells = np.flatnonzero(~np.isnan(row))
        for c in range(len(df)):
            expected = (
                law_of(mean[c], scale[c], df[c], cells).logpdf(row[cells]) if len(cells) else 0
            )
            assert_allclose(found[c, i], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d", [2, 5])
def test_missing_cells(d):
    """Conditional mean and variance of each law, mixed by the weights of the row."""
    x, prepared = rows(d)
    mean, scale, df = laws(d)
    rng = np.random.default_rng(2)
    weight = rng.dirichlet(np.ones(len(df)), size=len(x)).T.copy()
    weight[0, ::3] = 0.0
    weight /= weight.sum(axis=0)
    first, square = np.zeros((2, *x.shape))
    prepared.add_moments(mean, scale, df, weight, first, square)
    for i, row in enumerate(x):
        seen = ~np.isnan(row)
        o, m = np.flatnonzero(seen), np.flatnonzero(~seen)
        centers, variances = [], []
        for c in range(len(df)):
            gain = scale[c][np.ix_(m, o)] @ np.linalg.inv(scale[c][np.ix_(o, o)])
            off = row[o] - mean[c, o]
            centers.append(mean[c, m] + gain @ off)
            schur = np.diag(scale[c][np.ix_(m, m)] - gain @ scale[c][np.ix_(o, m)])
            q = off @ np.linalg.solve(scale[c][np.ix_(o, o)], off)
            wider = 1.0 if np.isinf(df[c]) else (df[c] + q) / (df[c] + len(o) - 2)
            variances.append(wider * schur)
        expected = weight[:, i] @ np.array(centers)
        assert_allclose(first[i, m], expected, rtol=1e-9, atol=1e-11)
        spread = weight[:, i] @ (np.array(variances) + (np.array(centers) - expected) ** 2)
        assert_allclose(square[i, m], spread, rtol=1e-9)
        assert_array_equal(first[i, o], 0.0)
        assert_array_equal(square[i, o], 0.0)


def test_a_t_law_without_a_variance():
    prepared = DenseRows(np.zeros((1, 2)), np.array([[False, False]]), np.array([0]))
    first, square = np.zeros((2, 1, 2))
    one = np.ones((1, 1))
    prepared.add_moments(np.ones((1, 2)), np.eye(2)[None], np.array([1.5]), one, first, square)
    assert_array_equal(first, 1.0)
    assert_array_equal(square, np.inf)


def test_a_matrix_that_is_none():
    x = np.zeros((1, 2))
    scale, df = np.ones((1, 2, 2)), np.array([np.inf])
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        DenseRows(x, np.ones((1, 2), dtype=bool), np.array([0])).log_densities(x, scale, df)
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        DenseRows(x, np.array([[True, False]]), np.array([0])).add_moments(
            x, scale, df, np.ones((1, 1)), x.copy(), x.copy()
        )
