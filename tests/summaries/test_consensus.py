"""The consensus without noise: what is dropped, what stays, and what is said of it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.enumeration import canonical
from skbnp.summaries import consensus
from skbnp.summaries.consensus import (
    distances_to_consensus,
    drop_unsupported,
    stable_consensus,
    support,
)
from skbnp.summaries.partitions import consensus_partition, expected_loss, relabel_by_size


def ten_clusters(seed=0, n_draws=100, n=300):
    """Ten clusters in every draw; the first three rows waver between three of them."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 10
    labels = np.tile(truth, (n_draws, 1))
    labels[:, :3] = rng.integers(3, size=(n_draws, 3))
    return truth, labels


def jaccard(a, b):
    return np.sum(a & b) / np.sum(a | b)


def support_by_definition(partition, labels):
    return np.array(
        [
            np.mean(
                [
                    max(jaccard(partition == k, draw == c) for c in np.unique(draw)) >= 0.5
                    for draw in labels
                ]
            )
            for k in range(partition.max() + 1)
        ]
    )


def noisy_draws(seed, n_draws=64, n=80, noise=0.4):
    rng = np.random.default_rng(seed)
    truth = rng.integers(4, size=n)
    moved = rng.random((n_draws, n)) < noise * rng.random(n)
    return np.where(moved, rng.integers(7, size=(n_draws, n)), truth)


# -- dropping noise


def test_rows_that_waver_are_no_clusters():
    """Alone they are nearer to all draws than with any of the three, but no draw has them so."""
    truth, labels = ten_clusters()
    assert consensus_partition(labels, random_state=0)[0].max() + 1 > 10
    partition, expected, info = stable_consensus(labels, random_state=0)
    assert partition.max() + 1 == 10
    assert canonical(partition[3:]) == canonical(truth[3:])
    assert_allclose(expected, expected_loss(partition, labels), rtol=1e-10)
    assert info["support"] == [1.0] * 10


def test_never_more_clusters_than_most_draws_have():
    """94 draws of 100 have three blocks, six of them four: the 95 % quantile is four."""
    truth = np.repeat([0, 1, 2], 20)
    split = np.repeat([0, 1, 2, 3], [20, 20, 10, 10])
    for n_split, most in ((5, 3), (6, 4)):
        labels = [truth] * (100 - n_split) + [split] * n_split
        info = stable_consensus(labels, random_state=0)[2]
        assert info["max_clusters"] == most


@pytest.mark.parametrize("loss", ["vi", "binder"])
@pytest.mark.parametrize("seed", range(5))
def test_what_stays_gains_more_than_its_error(loss, seed):
    labels = noisy_draws(seed)
    partition, expected, info = stable_consensus(labels, loss, random_state=0)
    assert_array_equal(partition, relabel_by_size(partition))
    assert_allclose(expected, expected_loss(partition, labels, loss), rtol=1e-9)
    assert partition.max() + 1 <= np.quantile(
        [len(np.unique(draw)) for draw in labels], 0.95, method="inverted_cdf"
    )
    for one in info["dropped"]:
        assert one["gain"] <= 2 * one["error"] and one["support"] < 0.5 and one["size"] >= 1
    # Dropped loss by loss: what the search found is at most what was given up below the result.
    free = consensus_partition(labels, loss, max_clusters=info["max_clusters"], random_state=0)
    assert free[1] <= expected + 1e-9


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_gain_and_error_are_their_definition(loss):
    """Of runs that drop one cluster: losses of each draw before and after, nine batches of nine."""
    n_seen = 0
    for seed in range(8):
        labels = noisy_draws(seed, n_draws=81, n=40, noise=0.5)
        after, _, info = stable_consensus(labels, loss, random_state=0)
        if len(info["dropped"]) != 1:
            continue
        n_seen += 1
        most = info["max_clusters"]
        before, best, _ = consensus_partition(labels, loss, max_clusters=most, random_state=0)
        more = np.array(
            [expected_loss(after, [d], loss) - expected_loss(before, [d], loss) for d in labels]
        )
        (dropped,) = info["dropped"]
        means = more.reshape(9, 9).mean(axis=1)
        assert_allclose(dropped["gain"], more.mean(), atol=1e-12)
        assert_allclose(dropped["error"], means.std(ddof=1) / 3, rtol=1e-9)
        assert_allclose(expected_loss(after, labels, loss), best + dropped["gain"], rtol=1e-9)
        assert dropped["support"] < 0.5
        assert dropped["size"] in np.bincount(before)
    assert n_seen


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_dissolving_a_cluster_is_its_definition(loss):
    """Change of the loss against each draw, what is left after, and nothing done before."""
    labels = noisy_draws(3)
    start = relabel_by_size(noisy_draws(4, n_draws=1, noise=0.9)[0])
    pruning = consensus._Pruning(start, list(labels), loss, np.random.default_rng(0))
    search, n_clusters = pruning._search, pruning.n_clusters

    def losses(partition):
        return np.array([expected_loss(partition, [draw], loss) for draw in labels])

    def of_search():
        return pruning.label[pruning._item]

    unit = float(consensus.scale(1.0, loss, len(start)))
    assert_allclose(pruning.losses * unit, losses(start))
    for gone in range(n_clusters):
        members, joined, change = search.without(gone)
        assert_array_equal(of_search(), start)
        assert_array_equal(np.sort(members), np.flatnonzero(pruning.label == gone))
        assert gone not in joined
        moved = pruning.label
        moved[members] = joined
        assert_allclose((pruning.losses + change) * unit, losses(moved[pruning._item]))
        assert search.support_of(gone, 0.5) == support(start, labels)[gone]
    pruning._drop(1, search.without(1), {})
    assert sorted(set(of_search())) == list(range(n_clusters - 1))
    assert_allclose(pruning.losses * unit, losses(of_search()))
    assert_allclose(search.losses(), pruning.losses)


def test_what_most_draws_have_is_no_noise():
    """Three chains of four have two clusters: the gain is unsure, and the cluster stays."""
    two, one = np.repeat([0, 1], [40, 20]), np.zeros(60, dtype=int)
    labels = [two] * 75 + [one] * 25
    partition, _, info = stable_consensus(labels, random_state=0)
    assert_array_equal(partition, two)
    assert info["dropped"] == [] and info["support"] == [1.0, 0.75]


def test_draws_that_agree_drop_nothing():
    truth = np.repeat(np.arange(6), [1, 2, 3, 10, 20, 1])
    partition, expected, info = stable_consensus([truth] * 50, random_state=0)
    assert canonical(partition) == canonical(truth)
    assert_allclose(expected, 0.0, atol=1e-12)
    assert info["dropped"] == [] and info["support"] == [1.0] * 6
    single = stable_consensus([truth], random_state=0)
    assert canonical(single[0]) == canonical(truth)


@pytest.mark.parametrize("labels", [[[0]], [[0, 0, 0]], [[0, 1, 2]] * 3, [[5], [7]]])
def test_smallest_cases(labels):
    partition, _, info = stable_consensus(labels, random_state=0)
    assert canonical(partition) == canonical(labels[0])
    assert info["dropped"] == []


def test_names_of_blocks_and_order_of_rows_change_nothing():
    labels = noisy_draws(3)
    rng = np.random.default_rng(0)
    partition, expected, info = stable_consensus(labels, random_state=0)
    renamed = [rng.permutation(9)[draw] for draw in labels]
    again = stable_consensus(renamed, random_state=0)
    assert_array_equal(again[0], partition)
    assert again[2] == info
    order = rng.permutation(labels.shape[1])
    moved = stable_consensus(labels[:, order], random_state=0)
    assert canonical(moved[0]) == canonical(partition[order])
    assert_allclose(moved[1], expected, rtol=1e-9)


def test_work_is_bounded():
    labels = noisy_draws(1, n=400)
    info = stable_consensus(labels, max_work=1, random_state=0)[2]
    assert info["truncated"]
    assert not stable_consensus(labels, max_work=10**9, random_state=0)[2]["truncated"]


def test_many_rows():
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=30_000)
    labels = np.array([np.where(rng.random(30_000) < 0.03, 4 - truth, truth) for _ in range(30)])
    partition, expected, info = stable_consensus(labels, random_state=0)
    assert partition.max() + 1 <= 5
    assert_allclose(expected, expected_loss(partition, labels), rtol=1e-9)


# -- support


@pytest.mark.parametrize("seed", range(3))
def test_support_is_its_definition(seed):
    labels = noisy_draws(seed, n_draws=12)
    partition = consensus_partition(labels, random_state=0)[0]
    assert_allclose(support(partition, labels), support_by_definition(partition, labels))
    joined = labels // 2
    either = [
        np.mean(
            [
                max(
                    max(jaccard(partition == k, draw == c) for c in np.unique(draw))
                    for draw in pair
                )
                >= 0.5
                for pair in zip(labels, joined, strict=True)
            ]
        )
        for k in range(partition.max() + 1)
    ]
    assert_allclose(support(partition, labels, joined), either)


def test_support_by_hand():
    partition = [0, 0, 0, 0, 1, 1]
    assert_allclose(
        # half of four rows; four rows of six; all six together hold the first alone
        support(partition, [[0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 0, 0], [0, 1, 2, 3, 4, 5]]),
        [2 / 3, 2 / 3],
    )


@pytest.mark.parametrize("seed", range(4))
def test_unsupported_clusters_are_dropped(seed):
    labels = noisy_draws(seed, noise=0.3)
    rng = np.random.default_rng(seed)
    partition = consensus_partition(labels, random_state=0)[0]
    partition[rng.choice(80, size=12, replace=False)] = partition.max() + 1 + np.arange(12) % 3
    partition = relabel_by_size(partition)
    left, dropped = drop_unsupported(partition, labels, random_state=0)
    assert min(support(partition, labels)) < 0.5 <= min(support(left, labels))
    assert len(dropped) == partition.max() - left.max() >= 3
    assert all(one["support"] < 0.5 for one in dropped)


@pytest.mark.parametrize("seed", range(4))
def test_where_the_draws_support_no_clusters_all_stay(seed):
    """One cluster would be no better: no draw has a block of half of the rows."""
    labels = noisy_draws(seed, noise=0.9)
    partition = relabel_by_size(labels[0])
    assert min(support(partition, labels)) < 0.5
    assert support(np.zeros(80, dtype=int), labels)[0] < 0.5
    left, dropped = drop_unsupported(partition, labels, random_state=0)
    assert_array_equal(left, partition)
    assert dropped == []


def test_a_joined_block_supports_too():
    """Every draw cuts the second half elsewhere: only joined blocks are like it."""
    labels = [np.where(np.arange(40) < 20, 0, 1 + (np.arange(40) + s) % 3) for s in range(40)]
    halves = np.repeat([0, 1], 20)
    assert drop_unsupported(halves, labels)[0].max() == 0
    left, dropped = drop_unsupported(halves, labels, [halves] * 40)
    assert_array_equal(left, halves)
    assert dropped == []
    with pytest.raises(ValueError, match="zip"):
        support(halves, labels, [halves] * 39)


def test_constants():
    assert consensus.MOST_BLOCKS == 0.95
    assert consensus.LEAST_JACCARD == consensus.LEAST_SUPPORT == 0.5


def test_distances_to_the_consensus_of_each_chain():
    random = np.random.default_rng(0)
    halves, stripes = np.arange(24) // 12, np.arange(24) % 3

    def near(partition):
        draw = partition.copy()
        draw[random.integers(24)] = random.integers(3)
        return draw

    chains = [[near(halves) for _ in range(6)], [near(stripes) for _ in range(6)]]
    found = distances_to_consensus(chains)
    assert found.shape == (2, 2, 6)
    for k, partition in enumerate((halves, stripes)):
        for c, chain in enumerate(chains):
            wanted = [expected_loss(partition, [draw]) for draw in chain]
            assert_allclose(found[k, c], wanted, atol=1e-12)
    assert (found[0, 0] < found[0, 1]).all() and (found[1, 1] < found[1, 0]).all()
