"""The search where there are too many items to search them all: limits made small for it."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skbnp.summaries import _strategy
from skbnp.summaries._draws import merge_rows, number_for_packing, pack, spread
from skbnp.summaries.partitions import consensus_partition, expected_loss

LOSSES = ["vi", "binder"]


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(_strategy, "MAX_ITEMS", 100)
    monkeypatch.setattr(_strategy, "SAMPLE_SIZE", 80)
    monkeypatch.setattr(_strategy, "ROWS_PER_BLOCK", 1)


def overlapping_draws(seed, n_draws=30, n=600, n_clusters=5, noise=0.8):
    """Draws around one partition, so noisy that hardly two rows are alike."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(n_clusters, size=n)
    moved = rng.random((n_draws, n)) < noise * rng.random(n)
    return np.where(moved, rng.integers(n_clusters + 1, size=(n_draws, n)), truth).astype(np.uint8)


def draws_used(labels, info):
    return labels[spread(np.arange(len(labels)), info["n_draws"])]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_result_is_as_good_as_in_full_and_better_than_any_draw(loss, seed, monkeypatch):
    labels = overlapping_draws(seed)
    in_full = consensus_partition(labels, loss, random_state=seed)
    monkeypatch.setattr(_strategy, "MAX_ITEMS", 100)
    monkeypatch.setattr(_strategy, "SAMPLE_SIZE", 150)
    partition, expected, info = consensus_partition(labels, loss, random_state=seed)
    assert info["n_sampled"] < 400 < info["n_items"] and not info["truncated"]
    assert info["n_draws"] == 30 and info["n_rated"] == 4
    assert_allclose(expected_loss(partition, labels, loss), expected)
    assert expected < min(expected_loss(draw, labels, loss) for draw in labels)
    assert expected <= 1.01 * in_full[1]


@pytest.mark.parametrize("loss", LOSSES)
def test_work_is_bounded(loss, small_limits):
    labels = overlapping_draws(0)
    unbounded = consensus_partition(labels, loss, random_state=0)[2]["work"]
    least = _strategy.MIN_DRAWS * labels.shape[1] * (_strategy.PACKING + _strategy.COMPARING)
    # Beside the least, what is under way when the work runs out: one start and one item.
    slack = _strategy.MIN_DRAWS * (80 + 3 * labels.shape[1])
    for share in (0, 1e-3, 0.01, 0.03, 0.1, 0.3, 0.9):
        max_work = int(share * unbounded)
        partition, expected, info = consensus_partition(
            labels, loss, max_work=max_work, random_state=0
        )
        assert info["truncated"]
        assert info["work"] <= max(max_work, least) + slack
        read = max(_strategy.MIN_DRAWS, max_work // (2 * _strategy.PACKING * labels.shape[1]))
        used = draws_used(labels[spread(np.arange(30), read)], info)
        assert_allclose(expected_loss(partition, used, loss), expected)
        again = consensus_partition(labels, loss, max_work=max_work, random_state=0)
        assert_array_equal(again[0], partition)


def test_less_work_uses_fewer_draws(small_limits):
    labels = overlapping_draws(1, n_draws=120)
    n_used = [
        consensus_partition(labels, max_work=work, random_state=0)[2]["n_draws"]
        for work in (0, 10**6, 10**9)
    ]
    assert n_used[0] == _strategy.MIN_DRAWS and n_used[2] == 120
    assert _strategy.MIN_DRAWS < n_used[1] < 120


def test_draws_that_do_not_fit_into_memory_are_left_out(monkeypatch):
    labels = overlapping_draws(2)
    monkeypatch.setattr(_strategy, "MAX_PACKED", 10 * labels.shape[1])
    partition, expected, info = consensus_partition(labels, random_state=0)
    assert info["n_draws"] == 10
    assert_allclose(expected_loss(partition, draws_used(labels, info)), expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_clusters_that_the_sample_misses_are_found(loss, small_limits):
    """Three large clusters and ten of six rows: a sample of 80 sees about half of the ten."""
    rng = np.random.default_rng(3)
    truth = np.repeat(np.arange(13), [200] * 3 + [6] * 10)
    moved = rng.random((30, 660)) < np.where(truth < 3, 0.3, 0.05)
    labels = np.where(moved, rng.integers(3, size=(30, 660)), truth)
    partition, expected, info = consensus_partition(labels, loss, random_state=0)
    assert info["n_sampled"] < 100 < info["n_items"]
    assert np.sum(np.bincount(partition) == 6) == 10
    assert expected <= expected_loss(truth, labels, loss) + 1e-12


def test_most_clusters_allowed(small_limits):
    labels = overlapping_draws(4)
    for most in (1, 3):
        partition, expected, info = consensus_partition(labels, max_clusters=most, random_state=0)
        assert partition.max() < most and info["n_rated"] == 0
        assert_allclose(expected_loss(partition, labels), expected)


def test_weights_and_lists(small_limits):
    labels = overlapping_draws(5)
    weights = np.random.default_rng(0).random(30) * (np.arange(30) % 3 > 0)
    partition, expected, info = consensus_partition(labels, weights=weights, random_state=0)
    assert info["n_draws"] == 20
    assert_allclose(expected_loss(partition, labels, weights=weights), expected)
    for other in (list(labels), labels.astype(np.int64), [x.astype(np.int32) for x in labels]):
        there = consensus_partition(other, weights=weights, random_state=0)
        assert_array_equal(there[0], partition)
        assert there[1:] == (expected, info)


def test_names_of_labels_do_not_matter(small_limits):
    rng = np.random.default_rng(0)
    labels = overlapping_draws(6)
    renamed = np.array([rng.permutation(300)[draw] for draw in labels])
    far_apart = renamed * 10**9
    here = consensus_partition(labels, random_state=0)
    for other in (renamed, far_apart):
        there = consensus_partition(other, random_state=0)
        assert_array_equal(there[0], here[0])
        assert there[1:] == here[1:]


@pytest.mark.parametrize("n_clusters", [3, 300, 70_000])
def test_packed_rows_are_the_canonical_draws(n_clusters):
    rng = np.random.default_rng(0)
    n = 5000 if n_clusters < 70_000 else 150_000  # more than one chunk, and 1, 2, 4 bytes
    labels = rng.integers(n_clusters, size=(3, n))
    labels[:, :n_clusters] = np.arange(n_clusters)
    rows = pack([number_for_packing(draw - 50) for draw in labels])
    assert rows.itemsize == {3: 1, 300: 2, 70_000: 4}[n_clusters]
    for m in range(3):
        _, first, inverse = np.unique(labels[m], return_index=True, return_inverse=True)
        assert_array_equal(rows[:, m], np.argsort(np.argsort(first))[inverse])


def test_equal_rows_become_one_item():
    rng = np.random.default_rng(0)
    rows = rng.integers(2, size=(3000, 9)).astype(np.uint16)
    item, first, weight = merge_rows(rows)
    assert len(first) == len(np.unique(rows, axis=0))
    assert_array_equal(rows[first][item], rows)
    assert_array_equal(np.bincount(item), weight)
    assert np.all(np.diff(first) > 0) and np.all(item[first] == np.arange(len(first)))


@pytest.mark.parametrize("n_clusters", [20, 300])
def test_memory_is_a_small_multiple_of_the_packed_draws(n_clusters):
    """200,000 rows that are all different: two copies of the draws in one or two bytes."""
    n, n_draws = 200_000, 50
    rng = np.random.default_rng(0)
    truth = rng.integers(n_clusters, size=n)
    labels = [
        np.where(rng.random(n) < 0.5, rng.integers(n_clusters, size=n), truth).astype(np.int32)
        for _ in range(n_draws)
    ]
    tracemalloc.start()
    try:
        consensus_partition(labels, max_work=10**8, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    width = 1 if n_clusters <= 256 else 2
    assert peak < 2.2 * n * n_draws * width + 150 * n + 2**25
