"""Units of columns: there and back, what is set aside, what floats cannot hold."""

import numpy as np
import pytest

from skbnp.units import Units, check_units, range_units, standard_units


def table(n=200):
    X = np.random.default_rng(0).normal(size=(n, 4)) * [1.0, 10.0, 1e-3, 0.0] + [0.0, 5.0, 2.0, 7.0]
    X[3, 0] = X[7, 1] = np.nan
    return X


@pytest.mark.parametrize("scaling", ["each", "common", "none"])
def test_there_and_back(scaling):
    X = table()
    units = standard_units(X, scaling)
    np.testing.assert_array_equal(units.columns, [0, 1, 2])
    np.testing.assert_array_equal(units.set_aside(), [3])
    A = units.to_visible(X)
    back = units.from_visible(A)
    np.testing.assert_allclose(back[:, :3], X[:, :3], rtol=1e-12)
    assert (back[:, 3] == 7.0).all()
    np.testing.assert_allclose(np.nanmean(A, axis=0), 0.0, atol=1e-12)
    spread = np.nanstd(A, axis=0)
    if scaling == "each":
        np.testing.assert_allclose(spread, 1.0)
    elif scaling == "common":
        assert np.mean(spread**2) == pytest.approx(1.0) and len(set(units.scale)) == 1
    else:
        np.testing.assert_allclose(spread, np.nanstd(X[:, :3], axis=0))


def test_constant_columns_may_be_kept_with_scale_one():
    units = standard_units(table(), keep_constant=True)
    assert len(units.columns) == 4 and units.scale[3] == 1.0 and units.center[3] == 7.0


@pytest.mark.parametrize("visible", ["gaussian", "sigmoid"])
def test_log_jacobian_is_that_of_the_map(visible):
    X = table()
    units = standard_units(X) if visible == "gaussian" else range_units(X, None, 0.9)
    found, h = units.log_jacobian(X), 1e-6
    row = X[0]
    slopes = [
        (units.to_visible(X[:1] + h * e) - units.to_visible(X[:1] - h * e))[0, j] / (2 * h)
        for j, e in enumerate(np.eye(4)[:3] * [1.0, 1.0, 1e-3, 0.0])
    ]
    assert np.isfinite(row).all()
    expected = np.log(slopes) - np.log([1, 1, 1e-3])
    assert found[0] == pytest.approx(expected.sum(), rel=1e-5)
    # A missing cell adds nothing.
    gone = X[:1].copy()
    gone[0, 1] = np.nan
    assert units.log_jacobian(gone)[0] == pytest.approx(found[0] - expected[1], rel=1e-5)


@pytest.mark.parametrize("visible", ["gaussian", "sigmoid"])
def test_log_jacobian_of_rows_that_have_their_units(visible):
    X = table()
    units = standard_units(X) if visible == "gaussian" else range_units(X, None, 0.9)
    A = units.to_visible(X)
    found = units.log_jacobian_of_visible(A)
    np.testing.assert_allclose(found, units.log_jacobian(X), rtol=1e-12)
    # Below a detection limit there is no density.
    below = A[:1].copy()
    below[0, 1] = -np.inf
    gone = X[:1].copy()
    gone[0, 1] = np.nan
    np.testing.assert_allclose(
        units.log_jacobian_of_visible(below), units.log_jacobian(gone), rtol=1e-12
    )


def test_a_step_widens_the_scale_by_its_jitter():
    X, step = table()[:, :3], np.array([0.0, 6.0, 0.0])
    plain, wider = standard_units(X), standard_units(X, step=step)
    expected = np.sqrt(plain.scale**2 + step**2 / 12)
    np.testing.assert_allclose(wider.scale, expected, rtol=1e-14)


def test_ranges_with_bounds():
    X = table()[:, :3]
    bounds = np.full(3, -50.0), np.full(3, 100.0)
    units = range_units(X, bounds, 0.9)
    np.testing.assert_allclose(units.center, 25.0)
    np.testing.assert_allclose(units.scale, 75.0 / 0.9)
    assert units.is_outside(np.array([[200.0, 0.0, 0.0]])).all()


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.ones((5, 2)), "X must have a column that is not constant"),
        (1.7e308 * np.array([[1.0, -1.0], [0.9, 0.0]]), r"can hold, got overflow in \[0\]"),
    ],
)
def test_what_has_no_units_is_refused(X, sentence):
    with pytest.raises(ValueError, match=sentence):
        standard_units(X)


def test_sums_of_squares_that_overflow_are_refused_where_they_are_taken():
    X = 1e200 * table()[:, :2]
    standard_units(X)
    with pytest.raises(ValueError, match="floats can hold, got overflow in column b"):
        standard_units(X, sums_of_squares=True, named=lambda columns: "column b")


@pytest.mark.parametrize(
    ("units", "sentence"),
    [
        (Units.unscaled(2), "must be of all columns"),
        (Units("sigmoid", *list(vars(Units.unscaled(3)).values())[1:]), "must be 'gaussian'"),
        (Units("gaussian", np.array([1, 0, 2]), np.zeros(3), np.zeros(3), np.ones(3)), "ascending"),
        (Units("gaussian", np.array([0, 1, 3]), np.zeros(3), np.zeros(3), np.ones(3)), "there are"),
        (Units("gaussian", np.arange(3), np.zeros(3), np.zeros(3), np.zeros(3)), "must be > 0"),
        (Units("gaussian", np.arange(3), np.zeros(3), np.zeros(2), np.ones(3)), "3 numbers"),
    ],
)
def test_units_from_files_are_checked(units, sentence):
    check_units(Units.unscaled(3), 3, keep_constant=True)
    with pytest.raises(ValueError, match=sentence):
        check_units(units, 3, keep_constant=True)
