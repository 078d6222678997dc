"""A small table of columns, and one of features and targets."""

import numpy as np
import pytest


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 3)) + 0.3 * rng.normal(size=(40, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.fixture(scope="module")
def Xy(X):
    """Features, two targets and labels of three classes."""
    X = np.nan_to_num(X)
    Y = np.column_stack([np.sin(X[:, 0]) + 5.0, 100.0 * X[:, 1] * X[:, 2]])
    return X, Y, np.array(["ant", "bee", "cat"])[np.digitize(X[:, 0], [-0.5, 0.5])]
