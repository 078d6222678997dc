"""Joining of overlapping clusters: sums against their definitions, joins by hand."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.enumeration import canonical
from skbnp.summaries import joining
from skbnp.summaries.joining import (
    LINKAGES,
    OVERLAPS,
    cluster_shares,
    joined_across,
    joined_draws,
    joined_shares,
    merge_tree,
    move_rows,
    overlap_of,
)
from skbnp.summaries.partitions import consensus_partition, relabel_by_size


def random_draws(seed, n_draws=12, n=30, n_blocks=5):
    return np.random.default_rng(seed).integers(n_blocks, size=(n_draws, n))


def shares_by_definition(reference, labels, responsibilities):
    """P_t(b) = (1/S) sum_s sum_k r_ts(k) |block k and cluster b| / |block k|, term by term."""
    n_clusters = max(reference) + 1
    total = np.zeros((len(responsibilities[0]), n_clusters))
    for label, r in zip(labels, responsibilities, strict=True):
        for t in range(len(r)):
            for k in range(r.shape[1]):
                members = [i for i in range(len(label)) if label[i] == k]
                for b in range(n_clusters):
                    both = sum(reference[i] == b for i in members)
                    total[t, b] += r[t, k] * both / max(len(members), 1) / len(labels)
    return total


def tree_by_definition(joint, kind, linkage):
    """Joins of sets of clusters, every overlap from the whole matrix anew."""
    groups = [[g] for g in range(len(joint))]
    pairs, overlap = [], []

    def between(a, b):
        return sum(joint[g, h] for g in a for h in b)

    def one_way(a, b):
        other = between(a, range(len(joint))) if kind == "rows" else between(a, a) + between(a, b)
        share = between(a + b, range(len(joint))) / joint.sum() if kind == "share" else 1.0
        return between(a, b) / other / share**0.1875 if other > 0 else 0.0

    def both_ways(a, b):
        found = max(one_way(a, b), one_way(b, a))
        # What two that have been joined had with the other group, whichever was made last.
        made = max((made_of.get(tuple(sorted(c)), (0,)) for c in (a, b)), key=lambda c: c[0])
        if linkage == "sum" or not made[0]:
            return found
        rows = [between(c, range(len(joint))) for c in (a, b)]
        if min(rows) < joint.sum() / 20:
            return found
        other = b if made[1] + made[2] == a else a
        return min(found, max(both_ways(part, other) for part in made[1:]))

    made_of = {}
    while len(groups) > 1:
        q, _, g, h = max(
            (both_ways(a, b), (-g, -h), g, h)
            for g, a in enumerate(groups)
            for h, b in enumerate(groups)
            if g < h
        )
        pairs.append((min(groups[g]), min(groups[h])))
        overlap.append(q)
        first, second = groups[g], groups.pop(h)
        groups[g] = first + second
        made_of[tuple(sorted(groups[g]))] = (len(pairs), first, second)
    return pairs, overlap


# -- shares


@pytest.mark.parametrize("seed", range(3))
def test_shares_are_their_definition(seed):
    rng = np.random.default_rng(seed)
    labels = random_draws(seed)
    reference = rng.integers(4, size=30)
    reference[:4] = range(4)
    own = [np.eye(5)[draw] for draw in labels]
    expected = shares_by_definition(reference, labels, own)
    assert_allclose(cluster_shares(reference, labels), expected, atol=1e-14)
    assert_allclose(cluster_shares(reference, labels, own), expected, atol=1e-14)
    r = [rng.dirichlet(np.ones(5), size=17) for _ in labels]  # of other rows
    found = cluster_shares(reference, list(labels), iter(r))
    assert_allclose(found, shares_by_definition(reference, labels, r), atol=1e-14)
    assert_allclose(found.sum(axis=1), 1.0)


def test_shares_by_hand():
    """Two draws of four rows; the second has its blocks across the clusters."""
    found = cluster_shares([0, 0, 1, 1], [[0, 0, 1, 1], [0, 1, 1, 1]])
    assert_allclose(found, [[1, 0], [2 / 3, 1 / 3], [1 / 6, 5 / 6], [1 / 6, 5 / 6]])
    joint = found.T @ found
    assert_allclose(joint * 36, [[54, 18], [18, 54]])
    assert_allclose(overlap_of(joint), [[0, 0.25], [0.25, 0]])
    assert_allclose(overlap_of(joint, "pair"), [[0, 0.25], [0.25, 0]])
    assert_allclose(overlap_of(joint, "share"), [[0, 0.25], [0.25, 0]])  # all rows are theirs


def test_one_draw_is_held_at_a_time():
    labels = random_draws(0)
    asked = []

    def one_by_one():
        for s, draw in enumerate(labels):
            asked.append(s)
            yield np.eye(5)[draw]

    shares = one_by_one()
    cluster_shares(relabel_by_size(labels[0]), labels, shares)
    assert asked == list(range(12))


def test_shares_name_what_is_wrong():
    labels = random_draws(0)
    r = [np.eye(5)[draw] for draw in labels]
    with pytest.raises(ValueError, match="one array for each draw of labels, 12"):
        cluster_shares(labels[0], labels, r[:-1])
    with pytest.raises(ValueError, match="one array for each draw of labels, 12"):
        cluster_shares(labels[0], labels, [*r, r[0]])
    with pytest.raises(ValueError, match=r"the same rows for all draws, got \(29, 5\) for draw 3"):
        cluster_shares(labels[0], labels, [*r[:3], r[3][1:], *r[4:]])
    with pytest.raises(ValueError, match="labels_draw must be from 0 to 3, got 0 to 4"):
        cluster_shares(labels[0], labels, [one[:, :4] for one in r])
    with pytest.raises(ValueError, match="reference must have the labels 0 to 4.* got 1 to 5"):
        cluster_shares(labels[0] + 1, labels)


# -- overlap and tree


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("kind", OVERLAPS)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 12, 25])
def test_joins_are_their_definition(kind, linkage, n):
    rng = np.random.default_rng(n)
    shares = rng.dirichlet(np.full(n, 0.3), size=50)
    joint = shares.T @ shares
    tree = merge_tree(joint, np.full(n, 3), kind, linkage)
    pairs, overlap = tree_by_definition(joint, kind, linkage)
    assert tree.pairs.tolist() == [list(pair) for pair in pairs]
    assert_allclose(tree.overlap, overlap, rtol=1e-12)
    assert len(tree.pairs) == n - 1 and (n == 1 or tree.rows[-1] == 3 * n)
    table = overlap_of(joint, kind)
    assert_array_equal(table, table.T)
    assert n == 1 or table.max() == tree.overlap[0]
    assert kind == "share" or np.all(tree.overlap <= 1.0 + 1e-12)


@pytest.mark.parametrize("kind", OVERLAPS)
def test_clusters_that_touch_stay_apart_however_many_they_are(kind):
    """A row of each is with its own by .88 and with each other one by .02."""
    shares = 0.86 * np.eye(7) + 0.02
    joint = shares.T @ shares
    rising, capped = (merge_tree(joint, [9] * 7, kind, linkage) for linkage in LINKAGES)
    assert rising.overlap[-1] > 2 * rising.overlap[0]
    assert_allclose(capped.overlap[0], rising.overlap[0])
    assert np.all(np.diff(capped.overlap) <= 0.0)
    least = 1.5 * capped.overlap[0]
    assert capped.cut(least).max() == 6 and len(set(rising.overlap >= least)) == 2


@pytest.mark.parametrize("size, overlap", [(30, 3 / 7), (300, 6 / 10)])
def test_a_small_piece_may_be_of_all_of_a_cluster_together(size, overlap):
    """The third holds 10 rows of 148 or of 1228; alone each of the two overlaps with it by 3/7."""
    joint = [[size + 5, size, 3], [size, size + 5, 3], [3, 3, 4]]
    tree = merge_tree(joint, [size, size, 10], "pair", "capped")
    assert tree.pairs.tolist() == [[0, 1], [0, 2]]
    assert_allclose(tree.overlap, [size / (2 * size + 5), overlap])


def test_an_unknown_linkage_is_refused():
    with pytest.raises(ValueError, match="linkage must be one of .'sum', 'capped'., got 'ward'"):
        merge_tree(np.eye(2), [1, 1], linkage="ward")


def test_tree_by_hand():
    """0 and 1 overlap by 2/10; with 2 they are joined by 1/10, the larger of 1/18 and 1/10."""
    tree = merge_tree([[8, 2, 0], [2, 7, 1], [0, 1, 9]], sizes=[11, 9, 10])
    assert tree.pairs.tolist() == [[0, 1], [0, 2]]
    assert_allclose(tree.overlap, [0.2, 0.1])
    assert tree.rows.tolist() == [20, 30]
    assert tree.cut().tolist() == [0, 2, 1]  # by decreasing rows
    assert tree.cut(0.2).tolist() == [0, 0, 1]
    assert tree.cut(0.05).tolist() == [0, 0, 0]
    assert [tree.cut(n_clusters=k).tolist() for k in (3, 2, 1)] == [[0, 2, 1], [0, 0, 1], [0, 0, 0]]
    small_first = merge_tree([[8, 2, 0], [2, 7, 1], [0, 1, 9]], sizes=[4, 4, 10])
    assert small_first.cut(0.2).tolist() == [1, 1, 0]


def test_joins_after_one_that_is_too_small_are_not_made():
    """The second join overlaps more than the first, but comes after it."""
    joint = np.array([[10.0, 4, 3], [4, 10, 3], [3, 3, 8]])
    tree = merge_tree(joint, [5, 5, 5])
    assert_allclose(tree.overlap, [4 / 17, 6 / 14])
    assert tree.cut(0.25).tolist() == [0, 1, 2]
    assert tree.cut(0.2).tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", OVERLAPS)
def test_ties_go_to_the_lowest_pair(kind):
    joint = np.array([[9.0, 1, 1, 1], [1, 9, 1, 1], [1, 1, 9, 1], [1, 1, 1, 9]])
    assert merge_tree(joint, [1] * 4, kind).pairs[0].tolist() == [0, 1]
    joint[2, 3] = joint[3, 2] = joint[1, 3] = joint[3, 1] = 2
    joint[2, 2] = joint[1, 1] = 8
    assert merge_tree(joint, [1] * 4, kind).pairs[0].tolist() == [1, 3]
    apart = merge_tree(np.eye(4), [1] * 4, kind)
    assert apart.pairs.tolist() == [[0, 1], [0, 2], [0, 3]] and not apart.overlap.any()


@pytest.mark.parametrize("kind", OVERLAPS)
def test_rounding_does_not_turn_a_pair_round(kind):
    """A product of matrices may differ from its transpose in the last digit."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(9), size=50)
    joint = shares.T @ shares
    rounded = joint * (1 + 1e-15 * rng.normal(size=joint.shape))
    assert_array_equal(
        merge_tree(rounded, [1] * 9, kind).pairs, merge_tree(joint, [1] * 9, kind).pairs
    )


def test_a_threshold_that_is_met_exactly_joins():
    tree = merge_tree([[3, 1], [1, 3]], [4, 4])
    assert tree.overlap[0] == 0.25
    assert tree.cut(0.25).max() == 0 and tree.cut(np.nextafter(0.25, 1)).max() == 1


def test_pieces_that_coincide():
    """Five clusters that are one: .20 each of the rows, one half of a pair."""
    shares = np.full((40, 5), 0.2)
    joint = shares.T @ shares
    assert_allclose(merge_tree(joint, [8] * 5).overlap[0], 0.2)
    assert_allclose(merge_tree(joint, [8] * 5, "pair").overlap, [1 / 2, 2 / 3, 3 / 4, 4 / 5])
    assert merge_tree(joint, [8] * 5, "pair").cut().tolist() == [0] * 5
    share = np.arange(2, 6) / 5
    overlap = merge_tree(joint, [8] * 5, "share").overlap
    assert_allclose(overlap, [1 / 2, 2 / 3, 3 / 4, 4 / 5] / share**0.1875)


def test_the_same_overlap_counts_more_between_small_clusters():
    joint = np.kron(np.diag([16.0, 1.0]), [[3.0, 1.0], [1.0, 3.0]])
    pair, share = overlap_of(joint, "pair"), overlap_of(joint, "share")
    assert pair[0, 1] == pair[2, 3] == 0.25
    assert_allclose(share[[0, 2], [1, 3]], 0.25 / (np.array([16, 1]) / 17) ** 0.1875)
    assert merge_tree(joint, [4] * 4, "share").cut(0.3).tolist() == [1, 2, 0, 0]


def test_a_cluster_that_no_row_is_put_in_stays_alone():
    tree = merge_tree([[4, 2, 0], [2, 4, 0], [0, 0, 0]], [6, 6, 0])
    assert tree.cut().tolist() == [0, 0, 1]
    assert_allclose(tree.overlap, [1 / 3, 0])


@pytest.mark.parametrize(
    "wrong, words",
    [
        ({"pairs": np.array([[0, 1], [1, 2]])}, "two clusters left, got 1, 2"),
        ({"pairs": np.array([[1, 0], [0, 2]])}, "two clusters left, got 1, 0"),
        ({"pairs": np.array([[0, 1], [0, 3]])}, "two clusters left, got 0, 3"),
        ({"pairs": np.array([[0, 1]])}, r"pairs .* shape \(2, 2\), got int64 \(1, 2\)"),
        ({"overlap": np.array([1, 0])}, r"overlap .* shape \(2,\), got int64 \(2,\)"),
        ({"rows": np.array([2.0, 3.0])}, r"rows .* shape \(2,\), got float64 \(2,\)"),
        ({"rows": np.array([2, 4])}, "rows .* those of the two joined, 3, got 4"),
    ],
)
def test_a_tree_that_is_none_is_refused(wrong, words):
    """As a damaged file may hold one."""
    tree = merge_tree(np.eye(3), [1, 1, 1])
    with pytest.raises(ValueError, match=words):
        replace(tree, **wrong)


def test_tree_names_what_is_wrong():
    with pytest.raises(ValueError, match=r"joint must have shape \(n, n\), n >= 1, got \(2, 3\)"):
        merge_tree(np.ones((2, 3)), [1, 1])
    with pytest.raises(ValueError, match="joint must hold finite numbers >= 0"):
        overlap_of([[1, -1], [-1, 1]])
    with pytest.raises(ValueError, match="joint must be symmetric, got cells that differ by 1"):
        merge_tree([[4, 2], [1, 4]], [1, 1])
    with pytest.raises(ValueError, match="kind must be one of .*, got 'columns'"):
        overlap_of(np.eye(2), "columns")
    with pytest.raises(ValueError, match=r"sizes must have shape \(2,\), got \(3,\)"):
        merge_tree(np.eye(2), [1, 1, 1])
    for wrong in (0, 3, 1.5):
        with pytest.raises(ValueError, match="n_clusters must be an integer from 1 to 2, got"):
            merge_tree(np.eye(2), [1, 1]).cut(n_clusters=wrong)


# -- probabilities of one draw

RESPONSIBILITY = np.array(
    [[0.7, 0.3, 0], [0.6, 0.4, 0], [0.2, 0.8, 0], [0.05, 0.9, 0.05], [0, 0.02, 0.98], [0, 0, 1]]
)


def test_misclassification():
    table = overlap_of(RESPONSIBILITY.T @ RESPONSIBILITY)
    assert_allclose([table[0, 1], table[1, 2]], [0.422581, 0.031823], atol=5e-7)


@pytest.mark.parametrize(
    "overlap, groups",
    [(0.5, [0, 1, 2]), (0.3, [0, 0, 1]), (0.1, [0, 0, 1]), (0.02, [0, 0, 0])],
)
def test_joined_components(overlap, groups):
    tree = merge_tree(RESPONSIBILITY.T @ RESPONSIBILITY, [2, 2, 2])
    assert tree.cut(overlap).tolist() == groups


def test_joining_by_hand():
    """Chains of joins, and a component without rows, against sums of the columns themselves."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        r = rng.dirichlet(np.full(6, 0.3), size=30)
        got = merge_tree(r.T @ r, np.ones(6)).cut(0.2)
        groups = [[g] for g in range(6)]
        while True:
            sums = np.stack([r[:, group].sum(axis=1) for group in groups], axis=1)
            q = sums.T @ sums / sums.sum(axis=0)[:, np.newaxis]
            np.fill_diagonal(q, 0)
            if len(groups) == 1 or q.max() < 0.2:
                break
            g, h = sorted(np.unravel_index(np.argmax(q), q.shape))
            groups[g] += groups.pop(h)
        assert sorted(map(sorted, groups)) == sorted(
            np.flatnonzero(got == k).tolist() for k in range(got.max() + 1)
        )
    empty = np.column_stack([RESPONSIBILITY, np.zeros(6)])
    assert merge_tree(empty.T @ empty, [3, 2, 1, 0]).cut(0.1).tolist() == [0, 0, 1, 2]


# -- partitions


def halves_cut_at_random(seed, n_draws=40, n=120):
    """Two clusters; every draw cuts the second at a place of its own."""
    rng = np.random.default_rng(seed)
    labels = np.zeros((n_draws, n), dtype=int)
    labels[:, n // 2 :] = 1
    for draw in labels:
        draw[rng.integers(n // 2 + 5, n - 5) :] = 2
    return labels


@pytest.mark.parametrize("kind", OVERLAPS)
def test_a_cluster_cut_at_random_is_joined(kind):
    labels = halves_cut_at_random(0)
    components = np.repeat([0, 1, 2], [60, 30, 30])
    shares = cluster_shares(components, labels)
    tree = merge_tree(shares.T @ shares, np.bincount(components), kind)
    assert tree.pairs[0].tolist() == [1, 2] and tree.overlap[0] > 0.25
    assert tree.overlap[1] == 0.0
    assert canonical(tree.cut()[components]) == canonical(np.repeat([0, 1], 60))
    for draw in joined_draws(labels, kind=kind):
        assert canonical(draw.tolist()) == canonical(np.repeat([0, 1], 60))


def test_draws_that_agree_join_nothing():
    truth = np.repeat(np.arange(5), [30, 20, 10, 1, 1])
    labels = [truth] * 40
    shares = cluster_shares(truth, labels)
    assert_array_equal(shares, np.eye(5)[truth])
    tree = merge_tree(shares.T @ shares, np.bincount(truth))
    assert not tree.overlap.any() and canonical(tree.cut()[truth]) == canonical(truth)
    assert all(canonical(draw.tolist()) == canonical(truth) for draw in joined_draws(labels))


@pytest.mark.parametrize("reference", [[0, 0, 0], [0]])
def test_one_cluster(reference):
    labels = [reference] * 3
    shares = cluster_shares(reference, labels)
    assert_array_equal(shares, np.ones((len(reference), 1)))
    tree = merge_tree(shares.T @ shares, [len(reference)])
    assert tree.pairs.shape == (0, 2) and tree.cut().tolist() == [0]
    assert tree.cut(n_clusters=1).tolist() == [0]
    assert [draw.tolist() for draw in joined_draws(labels)] == labels


def test_names_and_order_change_nothing():
    """Blocks by other names, and rows in another order, in the draws."""
    labels = random_draws(4, n_draws=40, n=60)
    rng = np.random.default_rng(1)
    reference = consensus_partition(labels, random_state=0)[0]
    shares = cluster_shares(reference, labels)
    tree = merge_tree(shares.T @ shares, np.bincount(reference))
    renamed = [rng.permutation(90)[draw] for draw in labels]
    assert_allclose(cluster_shares(reference, renamed), shares, rtol=1e-13)
    order = rng.permutation(60)
    moved = cluster_shares(reference[order], labels[:, order])
    assert_allclose(moved, shares[order], rtol=1e-13)
    again = merge_tree(moved.T @ moved, np.bincount(reference[order]))
    assert_array_equal(again.pairs, tree.pairs)
    assert_allclose(again.overlap, tree.overlap, rtol=1e-12)
    # Joined draws, too.
    joined = joined_draws(labels, 0.15)
    for a, b, c in zip(
        joined, joined_draws(renamed, 0.15), joined_draws(labels[:, order], 0.15), strict=True
    ):
        assert canonical(a.tolist()) == canonical(b.tolist())
        assert canonical(a[order].tolist()) == canonical(c.tolist())


@pytest.mark.parametrize("kind", OVERLAPS)
@pytest.mark.parametrize("seed", range(3))
def test_joined_draws_are_their_definition(seed, kind):
    """Each draw as the reference of all others."""
    labels = random_draws(seed, n_draws=7, n=25, n_blocks=4)
    labels[:, 5:15] = labels[:, :1]  # rows that stay together
    found = joined_draws(labels, 0.2, kind)
    for s, draw in enumerate(labels):
        own = np.unique(draw, return_inverse=True)[1]
        others = np.delete(labels, s, axis=0)
        shares = shares_by_definition(own, others, [np.eye(4)[one] for one in others])
        cluster = merge_tree(shares.T @ shares, np.bincount(own), kind).cut(0.2)
        assert canonical(found[s].tolist()) == canonical(cluster[own].tolist())
        assert found[s].dtype == np.uint8
        assert np.all(np.diff(np.bincount(found[s])) <= 0)
    assert [draw.tolist() for draw in joined_draws(labels[:1])] == [
        relabel_by_size(labels[0]).tolist()
    ]


@pytest.mark.parametrize("kind", OVERLAPS)
def test_some_rows_say_how_far_blocks_overlap(kind):
    labels = random_draws(3, n_draws=7, n=25, n_blocks=4)
    labels[2, 24] = 9  # a block of its own, which no row of the part is in
    labels[2, 0] = 9
    rows = np.array([5, 3, 19, 7, 11, 2, 15, 16, 21])
    reference = np.unique(labels[0], return_inverse=True)[1]
    assert_array_equal(
        cluster_shares(reference, labels, rows=rows), cluster_shares(reference, labels)[rows]
    )
    everything = joined_draws(labels, 0.2, kind)
    for found, draw in zip(joined_draws(labels, 0.2, kind, rows=np.arange(25)), everything,
                           strict=True):  # fmt: skip
        assert_array_equal(found, draw)
    found = joined_draws(labels, 0.2, kind, rows=rows)
    for whole, part in zip(found, joined_draws(labels[:, rows], 0.2, kind), strict=True):
        assert len(whole) == 25 and canonical(whole[rows].tolist()) == canonical(part.tolist())
    assert np.flatnonzero(found[2] == found[2][24]).tolist() == [0, 24]


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([25], "rows must be 0 to 24, got 25 to 25"),
        ([-1, 3], "rows must be 0 to 24, got -1 to 3"),
        ([0.5], r"rows must be integers of shape \(n_rows,\), .* got float64 \(1,\)"),
        ([], "n_rows >= 1"),
    ],
)
def test_rows_that_there_are_not(rows, match):
    labels = random_draws(3, n_draws=3, n=25, n_blocks=4)
    for piece in (joined_draws, lambda x, rows: cluster_shares(np.zeros(25, int), x, rows=rows)):
        with pytest.raises(ValueError, match=match):
            piece(labels, rows=rows)
    shares = [np.ones((2, 4))] * 3
    with pytest.raises(ValueError, match="rows must be None where responsibilities are given"):
        cluster_shares(np.zeros(25, int), labels, shares, rows=[0])


def test_columns_are_added():
    shares = np.random.default_rng(0).dirichlet(np.ones(4), size=6)
    joined = joined_shares(shares, [1, 0, 1, 2])
    assert_allclose(joined, np.c_[shares[:, 1], shares[:, 0] + shares[:, 2], shares[:, 3]])
    with pytest.raises(ValueError, match=r"a column for each of the 3 clusters, .*\(6, 4\)"):
        joined_shares(shares, [0, 0, 1])


def test_constants():
    assert joining.LEAST_DRAWS == 40 and joining.LEAST_OVERLAP == 0.25


def test_moved_rows_leave_no_cluster_empty():
    reference = np.array([0, 0, 1, 1, 2])
    assert move_rows(reference, np.array([1, 2, 4]), np.array([1, 0, 0])).tolist() == [
        0,
        1,
        0,
        1,
        2,
    ]
    # Clusters 1 and 2 would lose all that they have.
    assert move_rows(reference, np.array([2, 3, 4]), np.zeros(3, dtype=int)).tolist() == [
        *(0, 0, 1, 1, 2)
    ]
    assert reference.tolist() == [0, 0, 1, 1, 2]


def test_pairs_of_different_clusters_that_draws_join():
    """Of 2 x 3 pairs none, all, and those of one row of the first with the second."""
    labels = np.array([0, 0, 1, 1, 1])
    draws = [np.array(draw) for draw in ([0, 1, 2, 2, 3], [0] * 5, [0, 1, 1, 1, 1])]
    assert joined_across(labels, draws[:1]) == 0.0
    assert joined_across(labels, [draw.astype(np.uint8) for draw in draws[1:2]]) == 1.0
    assert joined_across(labels, draws) == pytest.approx((0 + 1 + 3 / 6) / 3)
    assert joined_across(np.zeros(5), draws) == 0.0
