"""Missing cells of the training rows, from what the chains have drawn."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbnp import CIBPBeliefNet

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1)) + 0.5 * rng.normal(size=(40, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def short(**options):
    return CIBPBeliefNet(
        **dict(n_chains=2, n_warmup=10, n_draws=15, random_state=0, max_layers=1) | options
    )


def laws(draw):
    """Means (n_rows, n_features) and variances (n_features,) of the columns given activations."""
    d = draw["widths"][0]
    W = np.zeros((draw["widths"].sum() - d, d))
    into = draw["edges"][:, 1] < d
    parents, children = draw["edges"][into].T
    W[parents - d, children] = draw["weights"][into]
    mean = draw["biases"][:d] + np.tanh(draw["activations"] / 2) @ W
    return mean, 1 / draw["unit_precision"][:d]


def test_cells_are_averages_over_the_kept_sweeps(X):
    net = short().fit(X)
    means, variances = zip(
        *(laws(draw) for chain in net.posterior_.all_draws() for draw in chain), strict=True
    )
    mean = np.mean(means, axis=0)
    variance = np.var(means, axis=0) + np.mean(variances, axis=0)
    mean, std = net._units.moments(mean, variance)
    holes = np.isnan(X)
    assert_allclose(net.X_imputed_[holes], mean[holes], rtol=1e-10)
    assert_allclose(net.X_imputed_std_, np.where(holes, std, 0.0), rtol=1e-10)


def test_states_without_moments_are_taken(X):
    """Those of version 0.1, to go on from."""
    net = short().fit(X)
    sampler = net._prepare(X)(np.random.default_rng(0).bit_generator, 0)
    state = sampler.get_state()
    for name in ("n_imputed", "imputed_mean", "imputed_square"):
        del state["moves"]["missing"][name]
    sampler.set_state(state)
    assert sampler.move("missing").n_imputed == 0
