"""What holds for all partitions: metrics, invariances, and what an answer promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checks.fuzz import some_examples
from skbnp.summaries.partitions import (
    central_draw,
    coclustering,
    companion_table,
    consensus_partition,
    credible_ball,
    expected_loss,
    relabel_by_size,
)

LOSSES = pytest.mark.parametrize("loss", ["vi", "binder"])
seeds = st.integers(0, 2**32 - 1)


@st.composite
def draws_of_partitions(draw, n_draws=None):
    """Draws (n_draws, n) of a partition, with labels of any integers and dtype."""
    n, m = draw(st.integers(1, 12)), n_draws or draw(st.integers(1, 8))
    labels = np.array([draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)) for _ in range(m)])
    names = draw(
        st.sampled_from(
            [
                np.arange(5, dtype=np.uint8),
                np.arange(5, dtype=np.int16) - 3,
                np.array([7, -(2**62), 2**62, 0, -1]),
                np.array([2**63 + 5, 1, 2**64 - 1, 2**40, 0], dtype=np.uint64),
            ]
        )
    )
    return names[labels]


def same(one, other):
    """Whether two labelled partitions are one partition."""
    return np.array_equal(np.equal.outer(one, one), np.equal.outer(other, other))


@LOSSES
@some_examples
@given(three=draws_of_partitions(3))
def test_losses_are_metrics(loss, three):
    def distance(one, other):
        return expected_loss(one, [other], loss)

    a, b, c = three
    assert distance(a, a) == pytest.approx(0.0, abs=1e-12)
    assert distance(a, b) == pytest.approx(distance(b, a), abs=1e-12)
    assert (distance(a, b) < 1e-12) == same(a, b)
    assert distance(a, c) <= distance(a, b) + distance(b, c) + 1e-12


@LOSSES
@some_examples
@given(labels=draws_of_partitions(), seed=seeds)
def test_losses_know_neither_names_nor_order(loss, labels, seed):
    random = np.random.default_rng(seed)
    order = random.permutation(labels.shape[1])
    renamed = np.array([np.unique(x, return_inverse=True)[1] for x in labels]) * 3 - 5
    partition = labels[0]
    wanted = expected_loss(partition, labels, loss)
    assert expected_loss(partition, renamed, loss) == pytest.approx(wanted)
    assert expected_loss(partition[order], labels[:, order], loss) == pytest.approx(wanted)
    assert expected_loss(partition, labels[::-1], loss) == pytest.approx(wanted)


@LOSSES
@some_examples
@given(labels=draws_of_partitions(), seed=st.integers(0, 100))
def test_a_consensus_is_never_worse_than_a_draw(loss, labels, seed):
    found, expected, _ = consensus_partition(labels, loss, random_state=seed)
    assert expected == pytest.approx(expected_loss(found, labels, loss), abs=1e-12)
    losses = [expected_loss(draw, labels, loss) for draw in labels]
    assert expected <= min(losses) + 1e-12
    assert losses[central_draw(labels, loss)] == pytest.approx(min(losses), abs=1e-12)
    assert np.array_equal(found, relabel_by_size(found))


@LOSSES
@some_examples
@given(labels=draws_of_partitions(), level=st.floats(0.01, 1.0))
def test_a_credible_ball_holds_what_it_promises(loss, labels, level):
    center = consensus_partition(labels, loss, random_state=0)[0]
    ball = credible_ball(center, labels, loss, level=level)
    distances = np.array([expected_loss(center, [draw], loss) for draw in labels])
    inside = distances <= ball.radius + 1e-12
    assert ball.mass == pytest.approx(inside.mean())
    assert ball.mass >= level - 1e-12
    # No smaller one holds as much.
    assert (distances < ball.radius - 1e-12).mean() < level
    for bound in (*ball.upper, *ball.lower, *ball.horizontal):
        assert any(same(bound, draw) for draw in labels[inside])


@some_examples
@given(labels=draws_of_partitions())
def test_coclustering_is_a_share_of_draws(labels):
    found = coclustering(labels)
    wanted = np.mean([np.equal.outer(draw, draw) for draw in labels], axis=0)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert np.array_equal(found, found.T)
    assert (np.diag(found) == 1.0).all()
    np.testing.assert_allclose(coclustering(labels, [0], [-1]), found[:1, -1:], atol=1e-12)


@some_examples
@given(labels=draws_of_partitions(1))
def test_relabelled_by_size(labels):
    found = relabel_by_size(labels[0])
    assert same(found, labels[0])
    size = np.bincount(found)
    assert (size > 0).all() and (np.diff(size) <= 0).all()


@some_examples
@given(two=draws_of_partitions(2))
def test_companions_are_shares_of_blocks(two):
    one, other = (np.unique(x, return_inverse=True)[1] for x in two)
    table = companion_table(one, one.max() + 1, other, other.max() + 1)
    np.testing.assert_allclose(table.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.bincount(one) @ table, np.bincount(other))


@pytest.mark.parametrize(
    "arguments, rule",
    [
        (([0, 2], 2, [0, 0], 1), "labels_draw must be from 0 to 1, got 0 to 2"),
        (([0, -1], 2, [0, 0], 1), "labels_draw must be from 0 to 1, got -1 to 0"),
        (([0, 1], 2, [0, 1], 1), "reference must be from 0 to 0, got 0 to 1"),
        (([0, 1], 2, [0, -(2**62)], 2), "reference must be from 0 to 1"),
        (([0, 1], 2, [0], 2), "reference must have as many labels as labels_draw, 2, got 1"),
        (([0.0, 1.0], 2, [0, 1], 2), "labels_draw must be integers"),
        (([[0, 1]], 2, [0, 1], 2), "labels_draw must be integers of shape"),
        (([0, 1], 10**6, [0, 1], 10**6), "n_blocks times n_reference must be <= 400000000"),
        (([0, 1], 0, [0, 1], 2), "n_blocks must be"),
    ],
)
def test_companions_beyond_their_range(arguments, rule):
    with pytest.raises(ValueError, match=rule):
        companion_table(*arguments)
