"""Tables of numbers at the edge of what an estimator may be given, and what it must answer."""

import numpy as np
from numpy.testing import assert_array_equal


def tables_at_the_edge():
    """A plain table of two groups (30, 3), and tables made from it by what is odd about them."""
    rng = np.random.default_rng(1)
    group = np.arange(30)[:, np.newaxis] % 2
    plain = rng.normal(size=(30, 3)) + 3.0 * group
    tables = {
        "constant column": plain * [1.0, 0.0, 1.0],
        "duplicated columns": np.column_stack([plain, plain, plain]),
        "tiny": plain * 1e-8,
        "huge": plain * 1e8,
        "mixed scales": plain * [1e-8, 1.0, 1e8],
        "far from zero": plain + 1e8,
        "two rows": plain[:2],
        "more columns than rows": rng.normal(size=(6, 25)),
        "rows without cells": np.where(np.arange(30)[:, np.newaxis] % 3 == 0, np.nan, plain),
        "mostly holes": np.where(rng.random(plain.shape) < 0.8, np.nan, plain),
        "one feature": plain[:, :1],
        "integers": np.round(plain),
        "binary": (plain > 1.5).astype(float),
        "one value in almost all rows": np.where(np.arange(30)[:, np.newaxis] < 28, 1.0, plain),
        "an outlier": np.concatenate([plain, [[1e6, -1e6, 1e6]]]),
        "tight groups": 1e-3 * rng.normal(size=(30, 3)) + group,
    }
    # Every column keeps two values.
    tables["mostly holes"][:2] = plain[:2]
    return plain, tables


def assert_finite_traces(model):
    """Chains have not broken down."""
    for name, trace in model.posterior_.traces.items():
        assert np.isfinite(trace).all(), name


def assert_sound(model, X, may_be_infinite=False, **of_impute):
    """Every answer about new rows is a number and says what it must.

    ``may_be_infinite``: deviations, and what is given. Returns these rows, which have holes too.
    """
    assert_finite_traces(model)
    rng = np.random.default_rng(0)
    rows = np.concatenate([X[:30], np.full((1, X.shape[1]), np.nan)])
    holes = np.where(rng.random(rows.shape) < 0.5, np.nan, rows)
    for new in (rows, holes):
        density = model.score_samples(new)
        assert np.isfinite(density).all()
        assert density[-1] == 0.0
        filled, std = model.impute(new, return_std=True, **of_impute)
        seen = ~np.isnan(new)
        assert np.isfinite(filled[~seen]).all() and not np.isnan(std).any()
        assert may_be_infinite or (np.isfinite(filled).all() and np.isfinite(std).all())
        assert_array_equal(filled[seen], new[seen])
        assert (std[seen] == 0).all()
        assert np.isfinite(model.transform(new)).all()
    assert np.isfinite(model.sample(50, random_state=0)).all()
    return rows, holes
