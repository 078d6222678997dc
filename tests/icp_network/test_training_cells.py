"""Missing cells of the training rows, from what the chains have drawn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbnp import ICPNetwork

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1)) + 0.5 * rng.normal(size=(40, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def laws(draw, d):
    """Means (n_rows, n_features) and variances (n_features,) of the columns given activations."""
    W = np.zeros((len(draw["order"]) - d, d))
    parents, children = draw["edges"].T
    of_columns = children < d
    W[parents[of_columns] - d, children[of_columns]] = draw["weights"][of_columns]
    mean = draw["biases"][:d] + np.tanh(draw["pre_activations"] / 2) @ W
    return mean, 1 / draw["unit_precision"][:d]


def test_cells_are_averages_over_the_kept_sweeps(X):
    net = ICPNetwork(
        n_chains=2, n_warmup=10, n_draws=15, store_activations=True, random_state=0
    ).fit(X)
    draws = [draw for chain in net.posterior_.all_draws() for draw in chain]
    means, variances = zip(*(laws(draw, 3) for draw in draws), strict=True)
    mean = np.mean(means, axis=0)
    variance = np.var(means, axis=0) + np.mean(variances, axis=0)
    mean, std = net._units.moments(mean, variance)
    holes = np.isnan(X)
    assert_allclose(net.X_imputed_[holes], mean[holes], rtol=1e-10)
    assert_allclose(net.X_imputed_std_[holes], std[holes], rtol=1e-10)


def test_a_column_with_children_says_what_was_drawn(X):
    net = ICPNetwork(n_chains=1, n_warmup=0, n_draws=1, observed_order="free", random_state=0).fit(
        X
    )
    sampler = net._prepare(X)(np.random.PCG64(3), 0)
    holes, n_parents = np.isnan(X).T, 0
    for _ in range(30):
        sampler.move("missing").forget()
        sampler.sweep()
        parents = np.unique(sampler.get_state()["edges"][:, 0])
        said = np.zeros(holes.shape)
        said[holes] = sampler.move("missing").imputed_mean
        drawn = sampler.visible_activations().T
        for column in parents[parents < 3]:
            n_parents += 1
            assert_array_equal(said[column, holes[column]], drawn[column, holes[column]])
    assert n_parents > 5
