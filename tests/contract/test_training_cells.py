"""Missing cells of the training rows, where the sweeps of the chains say them: networks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbnp import CIBPBeliefNet, ICPNetwork

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
NETWORKS = pytest.mark.parametrize("kind", [CIBPBeliefNet, ICPNetwork])


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1)) + 0.5 * rng.normal(size=(40, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def short(kind, **options):
    return kind(**dict(n_chains=2, n_warmup=10, n_draws=15, random_state=0) | options)


def laws(draw, d):
    """Means (n_rows, n_features) and variances (n_features,) of the columns given activations."""
    hidden = draw["pre_activations"] if "pre_activations" in draw else draw["activations"]
    W = np.zeros((hidden.shape[1], d))
    parents, children = draw["edges"].T
    into = children < d
    W[parents[into] - d, children[into]] = draw["weights"][into]
    return draw["biases"][:d] + np.tanh(hidden / 2) @ W, 1 / draw["unit_precision"][:d]


@pytest.mark.parametrize(
    "kind, options", [(CIBPBeliefNet, {"max_layers": 1}), (ICPNetwork, {"store_activations": True})]
)
def test_cells_are_averages_over_the_kept_sweeps(X, kind, options):
    net = short(kind, **options).fit(X)
    draws = [draw for chain in net.posterior_.all_draws() for draw in chain]
    means, variances = zip(*(laws(draw, 3) for draw in draws), strict=True)
    mean = np.mean(means, axis=0)
    variance = np.var(means, axis=0) + np.mean(variances, axis=0)
    mean, std = net._units.moments(mean, variance)
    holes = np.isnan(X)
    assert_allclose(net.X_imputed_[holes], mean[holes], rtol=1e-10)
    assert_allclose(net.X_imputed_std_, np.where(holes, std, 0.0), rtol=1e-10)


@NETWORKS
def test_rows_of_fit_are_answered_with_them(X, kind):
    net = short(kind, visible="sigmoid", n_warmup=50).fit(X)
    filled, std = net.impute(X, return_std=True)
    assert_array_equal(filled, net.X_imputed_)
    assert_array_equal(std, net.X_imputed_std_)
    holes = np.isnan(X)
    assert_array_equal(filled[~holes], X[~holes])
    assert (std[holes] > 0).all() and (std[~holes] == 0).all()
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    width = high - low
    assert ((filled > low - width) & (filled < high + width)).all()
    other = X + 0.01
    assert np.corrcoef(net.impute(other)[holes], filled[holes])[0, 1] > 0.5


@NETWORKS
def test_going_on_counts_all_sweeps(X, kind):
    whole = short(kind).fit(X)
    grown = short(kind, n_draws=6, warm_start=True).fit(X)
    grown.set_params(n_draws=15).fit(X)
    assert_array_equal(grown.X_imputed_, whole.X_imputed_)
    assert_array_equal(grown.X_imputed_std_, whole.X_imputed_std_)


@NETWORKS
def test_files_keep_them(X, kind, tmp_path):
    net = short(kind).fit(X)
    net.save(tmp_path / "net.skbnp")
    assert_array_equal(kind.load(tmp_path / "net.skbnp").X_imputed_, net.X_imputed_)


@NETWORKS
def test_whole_tables_have_none(kind):
    net = short(kind).fit(np.random.default_rng(0).normal(size=(20, 2)))
    with pytest.raises(AttributeError, match="missing cells"):
        _ = net.X_imputed_


@NETWORKS
def test_holes_in_constant_columns_alone(kind):
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[:, 1], X[4, 1] = 7.0, np.nan
    with pytest.warns(UserWarning, match="constant"):
        net = short(kind).fit(X)
    X[4, 1] = 7.0
    assert_array_equal(net.X_imputed_, X)
    assert_array_equal(net.X_imputed_std_, np.zeros_like(X))


def test_rows_that_are_left_out_are_filled_by_the_draws(X):
    net = short(ICPNetwork, max_rows=len(X) - 1).fit(X)
    with pytest.raises(AttributeError, match="call impute"):
        _ = net.X_imputed_
    assert net.impute(X).shape == X.shape
    assert short(ICPNetwork, max_rows=len(X)).fit(X).X_imputed_.shape == X.shape
