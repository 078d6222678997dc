"""How sure it is that rows are of their clusters."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from skbnp.summaries.membership import membership

LABELS = np.array([0, 0, 0, 1, 1, 2])


def by_definition(labels, draws):
    """Of each draw, the labels of the other rows of a row's block."""
    n, k = len(labels), labels.max() + 1
    out = np.zeros((n, k))
    for draw in draws:
        for i in range(n):
            others = [j for j in range(n) if j != i and draw[j] == draw[i]]
            for j in others:
                out[i, labels[j]] += 1 / len(others)
            if not others and np.sum(labels == labels[i]) == 1:
                out[i, labels[i]] += 1
    return out / len(draws)


def test_draws_that_agree_are_sure():
    assert_array_equal(membership(LABELS, [LABELS, 7 - LABELS]), np.eye(3)[LABELS])


def test_by_definition():
    rng = np.random.default_rng(0)
    draws = [rng.integers(4, size=6) for _ in range(20)]
    assert_allclose(membership(LABELS, draws), by_definition(LABELS, draws))


def test_pieces_of_a_cluster_are_of_it():
    draw = np.array([0, 0, 1, 1, 2, 3])
    found = membership(np.array([0, 0, 0, 0, 1, 1]), [draw])
    assert_array_equal(found[:4], [[1, 0]] * 4)
    assert_array_equal(found[4:], 0)  # alone in the draw, though not in their cluster


def test_of_many_rows_some_draws_are_enough(monkeypatch):
    rng = np.random.default_rng(0)
    draws = [rng.integers(2, size=6) for _ in range(400)]
    monkeypatch.setattr("skbnp.summaries.membership._MOST_CELLS", 100 * 18)
    assert_allclose(membership(LABELS, draws), membership(LABELS, draws[::4]))
