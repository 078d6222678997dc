"""Mean and variance of missing cells under one draw, against formulas in long doubles."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skbnp import DirichletProcessMixture

FAR = [0.5, 1e3, 1e6]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module", params=["full", "diag"])
def fitted(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    X[:, 1] += X[:, 0]
    X[:40] += 8.0
    options = dict(n_chains=1, n_warmup=20, n_draws=3, random_state=0, predict_draws=1)
    return DirichletProcessMixture(covariance_type=request.param, **options).fit(X)


def blocks(mixture, x):
    """(weight, mean, variance) of column 1 given x in column 0, by block, standardised."""
    (draw,), prior = mixture._prediction_draws(), mixture._prior.parts[0]
    rows = mixture._prepared(np.array([[x, np.nan]]))
    log_p = mixture._log_joint_of(mixture._law_of(draw, 0), 0, rows)[0].astype(np.longdouble)
    n, m = np.longdouble(draw["n_members"]), np.longdouble(draw["mean"])
    kappa0, nu0 = prior.numbers(draw)
    kappa, x = kappa0 + n, np.longdouble(x)
    if prior.covariance_type == "full":
        U = np.longdouble(draw["factor"])
        psi = np.einsum("kji,kjl->kil", np.triu(U), np.triu(U))
        slope = psi[:, 0, 1] / psi[:, 0, 0]
        df = nu0 + n - 2 + 1 + 1  # of the t law given one cell
        square = (x - m[:, 0]) ** 2 / psi[:, 0, 0]
        spread = ((kappa + 1) / kappa + square) / (df - 2)
        variance = spread * (psi[:, 1, 1] - slope * psi[:, 0, 1])
        mean = m[:, 1] + slope * (x - m[:, 0])
    else:
        shape = (nu0 + n) / 2
        mean, variance = m[:, 1], draw["rate"][:, 1] / (shape - 1) * (kappa + 1) / kappa
    weight = np.exp(log_p - log_p.max())
    return weight / weight.sum(), mean, variance


@pytest.mark.parametrize("x", FAR)
def test_moments_of_near_and_far_rows(fitted, x):
    weight, mean, variance = blocks(fitted, x)
    expected = weight @ mean
    spread = np.sqrt(weight @ (variance + (mean - expected) ** 2))
    row = np.array([[x, np.nan]]) * fitted._units.scale + fitted._units.center
    found, std = fitted.impute(row, return_std=True)
    # What the row loses in units of the data.
    assert_allclose(
        found[0, 1], float(expected * fitted._units.scale[1] + fitted._units.center[1]), rtol=1e-8
    )
    assert_allclose(std[0, 1], float(spread * fitted._units.scale[1]), rtol=1e-8)
    assert std[0, 1] > 0
