"""What every estimator with a partition promises."""

import numpy as np
import pytest

from contract.registry import DEFAULTS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
WITH_PARTITION = [setting for setting in DEFAULTS if hasattr(setting.kind, "coclustering")]


def test_who_has_one():
    names = {setting.name for setting in WITH_PARTITION}
    assert names == {"mixture", "tree", "clusterer"}


@pytest.fixture(scope="module", params=WITH_PARTITION, ids=str)
def fitted(request):
    X = np.concatenate([np.random.default_rng(c).normal(20.0 * c, 1, (15, 3)) for c in (0, 1)])
    return request.param.fit(X, n_warmup=30, n_draws=30)


def test_coclustering(fitted):
    together = fitted.coclustering()
    assert together.shape == (30, 30)
    np.testing.assert_array_equal(together, together.T)
    np.testing.assert_array_equal(np.diag(together), 1.0)
    assert together[:15, :15].mean() > together[:15, 15:].mean()
    np.testing.assert_array_equal(fitted.coclustering([3, 20], [4]), together[[3, 20]][:, [4]])


def test_coclustering_is_no_attribute(fitted):
    with pytest.raises(AttributeError, match=r"call coclustering\(\)"):
        fitted.coclustering_  # noqa: B018


def test_credible_ball(fitted):
    ball = fitted.credible_ball(level=0.9)
    assert ball.radius >= 0.0
    for bound in (ball.upper, ball.lower, ball.horizontal):
        assert all(np.asarray(labels).shape == (30,) for labels in np.atleast_2d(bound))
    with pytest.raises(ValueError, match="level"):
        fitted.credible_ball(level=1.5)
