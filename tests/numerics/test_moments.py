"""Moments of mixtures, merged part by part, against fractions."""

from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbnp.numerics.moments import merged


def exact(parts):
    """Mean and variance of parts (weight, mean, square), without rounding."""
    parts = [tuple(map(Fraction, part)) for part in parts]
    total = sum(weight for weight, *_ in parts)
    mean = sum(weight * one for weight, one, _ in parts) / total
    square = sum(more + weight * (one - mean) ** 2 for weight, one, more in parts)
    return float(total), float(mean), float(square)


CASES = {
    "near": (1.0, 1.0, 1.0),
    "far and sharp": (1e9, 1e-3, 1e-9),
    "very far, spread lost in the mean": (1e15, 1e-3, 1e-12),
    "one certain value": (3.7, 0.0, 0.0),
    "one value that is far": (1e15 + 0.125, 0.0, 1e-12),
}


@pytest.mark.parametrize("case", CASES)
def test_against_fractions(case):
    center, spread, square = CASES[case]
    rng = np.random.default_rng(0)
    parts = [
        (w, center + spread * m, w * square * v)
        for w, m, v in zip(rng.random(50), rng.normal(size=50), rng.random(50), strict=True)
    ]
    total, mean, variance = exact(parts)
    found = merged(parts)
    # A mean holds no more digits than a float does: what it lacks of the spread is lost.
    rtol = 1e-12 + 10 * np.spacing(center) / spread if spread > np.spacing(center) else 1e-12
    assert_allclose(found, (total, mean, variance), rtol=rtol, atol=1e-300)
    # In groups, as threads have them.
    again = merged([merged(parts[:7]), merged(parts[7:40]), merged(parts[40:])])
    assert_allclose(again, found, rtol=rtol, atol=1e-300)


def test_a_far_part_that_hardly_counts_leaves_no_rounding_behind():
    near, far = (1.0, 0.3, 0.5), (1e-40, 1e17, 0.0)
    for parts in ([near, far], [far, near]):
        assert_allclose(merged(parts)[1:], exact(parts)[1:], rtol=1e-14)


def test_parts_without_weight_have_no_say():
    weight = np.array([[0.0], [1.0], [0.0]])
    parts = [(weight, np.full((3, 2), 1e100), weight * 2.0), (1.0 - weight, np.ones((3, 2)), 0.0)]
    total, mean, square = merged(parts)
    assert_array_equal(total, np.ones((3, 1)))
    assert_array_equal(mean[:, 0], [1.0, 1e100, 1.0])
    assert_array_equal(square[:, 0], [0.0, 2.0, 0.0])


def test_an_infinite_variance_stays():
    total, mean, square = merged([(1.0, 0.0, 1.0), (1.0, 1.0, np.inf), (1.0, 2.0, 1.0)])
    assert (total, mean, square) == (3.0, 1.0, np.inf)
