"""What `impute` says of missing cells: all draws alike, and a deviation wherever there is doubt."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from contract.registry import SETTINGS, UNSUPERVISED, others_slow
from skbnp import ICPNetworkRegressor

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

HOLE = np.array([False, True, False, False, True])
# In standard deviations; what an estimator refuses as too far away it says so.
DISTANCES = [0.0, 1.0, 1e3, 1e5, 1e7, 1e15, 1e40]


def table(n=64):
    """Complete, of multiples of 2^-10: what follows may shift it without any rounding."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, 5))
    X[:, 1] += 2.0 * X[:, 0]
    X[: n // 2, 2:4] += 4.0
    return np.round(X * 1024) / 1024


def row_at(distance):
    row = np.array([[1.0, np.nan, -1.0, 1.0, np.nan]]) * np.ldexp(1.0, int(np.log2(distance or 1)))
    row[0, ~HOLE] *= distance > 0
    return row


def filled(estimator, X):
    """impute, or None where the rows are refused as too far away."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*beyond the range of the training data")
        try:
            return estimator.impute(X, return_std=True)
        except ValueError as error:
            assert "standard deviations of the training data" in str(error)
            return None


def answers(estimator, distance):
    return filled(estimator, row_at(distance)) is not None


@pytest.fixture(scope="module", params=others_slow(UNSUPERVISED), ids=str)
def fitted(request):
    return request.param.fit(table())


@pytest.mark.parametrize("setting", UNSUPERVISED, ids=str)
def test_nothing_is_filled_before_fit(setting):
    with pytest.raises(NotFittedError):
        setting.make().impute(row_at(1.0))


def test_deviations_are_positive_near_and_far(fitted):
    """Never 0 where a cell is not known, never NaN; 0 where it is observed."""
    answered = []
    for distance in DISTANCES:
        X = row_at(distance)
        answer = filled(fitted, X)
        if answer is None:
            continue
        answered.append(distance)
        mean, std = answer
        assert_array_equal(mean[:, ~HOLE], X[:, ~HOLE])
        assert_array_equal(std[:, ~HOLE], 0.0)
        assert np.isfinite(mean).all()
        assert (std[:, HOLE] > 1e-6).all(), distance
    assert answered[:3] == DISTANCES[:3]


def test_one_draw_is_not_certain_either(fitted):
    """Nothing differs between draws then: what is left is the doubt within one."""
    before = fitted.predict_draws
    try:
        fitted.set_params(predict_draws=1)
        for distance in DISTANCES:
            answer = filled(fitted, row_at(distance))
            if answer is not None:
                assert (answer[1][:, HOLE] > 1e-6).all(), distance
    finally:
        fitted.set_params(predict_draws=before)


def test_draws_weigh_the_same(fitted, monkeypatch):
    """Mean and variance of what the draws say, by the law of total variance in long doubles."""
    said, over_draws = [], fitted._over_draws

    def listening(A, of_draw, *args, **options):
        def loud(draw, t, block):
            moments = of_draw(draw, t, block)
            said.append((t, *moments))
            return moments

        return over_draws(A, loud, *args, **options)

    monkeypatch.setattr(fitted, "_over_draws", listening)
    monkeypatch.setattr(fitted, "n_jobs", 1)
    X = np.concatenate([row_at(distance) for distance in DISTANCES if answers(fitted, distance)])
    said.clear()
    _, std = fitted.impute(X, return_std=True)
    assert [t for t, *_ in said] == list(range(8))
    means, variances = (
        np.array(one, dtype=np.longdouble) for one in list(zip(*said, strict=True))[1:]
    )
    within, center = variances.mean(axis=0), means.mean(axis=0)
    expected = within + ((means - center) ** 2).mean(axis=0)
    mean, expected = fitted._in_units(center.astype(float), expected.astype(float))
    assert_allclose(fitted.impute(X)[:, HOLE], mean[:, HOLE], rtol=1e-12)
    assert_allclose(std[:, HOLE], expected[:, HOLE], rtol=1e-12)


def test_threads_change_nothing(fitted):
    X = np.tile(table(), (20, 1))
    X[::2, 1] = np.nan
    X[::3, 4] = np.nan
    # More rows than a block holds, but for the networks, which take long.
    X = X[:100] if "N" in type(fitted).__name__ else X[:1100]
    found = []
    for n_jobs in (1, 2):
        fitted.set_params(n_jobs=n_jobs)
        found.append(np.stack(fitted.impute(X, return_std=True)))
    assert_array_equal(*found)


@pytest.mark.parametrize("setting", others_slow(UNSUPERVISED), ids=str)
def test_where_the_table_lies_does_not_matter(setting):
    """All of it shifted by two million standard deviations: the same draws and deviations."""
    X, shift = table(), 2.0**21
    one, other = setting.fit(X), setting.fit(X + shift)
    for name, trace in one.posterior_.traces.items():
        assert_allclose(other.posterior_.traces[name], trace, rtol=1e-6, err_msg=name)
    for distance in (0.0, 1.0, 1024.0):
        X = row_at(distance)
        here, there = filled(one, X), filled(other, X + shift)
        assert_allclose(there[0][:, HOLE] - shift, here[0][:, HOLE], rtol=1e-6, atol=1e-6)
        assert_allclose(there[1], here[1], rtol=1e-6)


@pytest.mark.parametrize(
    "setting", [one for one in SETTINGS if one.kind is ICPNetworkRegressor], ids=str
)
def test_a_regressor_is_never_certain(setting):
    X = table()
    net = setting.fit(X)
    net.set_params(predict_draws=1)
    least = min(draw["unit_precision"][0] ** -0.5 for draw in net.posterior_)
    for distance in DISTANCES:
        try:
            mean, std = net.predict(np.nan_to_num(row_at(distance)), return_std=True)
        except ValueError as error:
            assert "standard deviations of the training data" in str(error)
            continue
        assert np.isfinite(mean).all() and np.isfinite(std).all()
        assert (std >= (1 - 1e-12) * least * net._units.scale).all(), distance
