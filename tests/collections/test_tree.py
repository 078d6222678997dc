"""Sums that do not depend on how cells are shared out."""

import numpy as np
import pytest

from skbnp.collections.tree import fold, leaves, total


def pair(left, right):
    return f"({left}{right})"


@pytest.mark.parametrize("n_cells", [1, 2, 3, 5, 8, 13, 37])
def test_the_tree_depends_on_the_number_of_cells_alone(n_cells):
    cells = [str(t) for t in range(n_cells)]
    expected = total(leaves(cells, 0), pair)
    rng = np.random.default_rng(n_cells)
    for _ in range(20):
        cuts = np.unique([0, *rng.integers(0, n_cells, size=3), n_cells])
        parts = [
            fold(leaves(cells[a:b], a), pair) for a, b in zip(cuts[:-1], cuts[1:], strict=True)
        ]
        assert total([node for part in parts for node in part], pair) == expected


def test_neighbours_are_combined_as_early_as_they_can_be():
    """What a worker hands on is short: no more nodes than twice the depth of the tree."""
    assert len(fold(leaves(range(1000), 0), lambda a, b: a)) <= 20
    assert len(fold(leaves(range(1000), 7), lambda a, b: a)) <= 20
