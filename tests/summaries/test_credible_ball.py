"""The credible ball against its definition, on random draws and on all partitions of few rows."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.dirichlet_process_mixture import exact_posterior, gaussian_cases
from checks.enumeration import canonical, set_partitions
from skbnp.summaries.partitions import consensus_partition, credible_ball, relabel_by_size

LOSSES = ["vi", "binder"]
CASES = gaussian_cases()


def distance(a, b, loss):
    """Variation of information in nats, or the number of discordant pairs."""
    a, b = np.asarray(a), np.asarray(b)
    if loss == "binder":
        pairs = combinations(range(len(a)), 2)
        return float(sum((a[i] == a[j]) != (b[i] == b[j]) for i, j in pairs))

    def entropy(labels):
        share = np.unique(labels, axis=0, return_counts=True)[1] / len(a)
        return -np.sum(share * np.log(share))

    return 2 * entropy(np.column_stack([a, b])) - entropy(a) - entropy(b)


def brute_force(centre, labels, loss, level, weights):
    """Radius, mass, the draws inside and the three bounds as sets of partitions."""
    far = np.array([distance(centre, draw, loss) for draw in labels]).round(9)
    share = np.asarray(weights, float) / np.sum(weights)
    radius = min(r for r in far if share[far <= r].sum() >= level - 1e-12)
    inside = (far <= radius) & (share > 0)
    size = np.array([len(set(draw)) for draw in labels])

    def farthest(among):
        return {canonical(labels[m]) for m in np.flatnonzero(among & (far == far[among].max()))}

    return (
        radius,
        share[inside].sum(),
        inside,
        farthest(inside),
        farthest(inside & (size == size[inside].min())),
        farthest(inside & (size == size[inside].max())),
    )


def assert_ball(ball, expected, centre, loss):
    radius, mass, inside, horizontal, upper, lower = expected
    assert_allclose([ball.radius, ball.mass], [radius, mass], atol=1e-8)
    assert_array_equal(ball.inside, inside)
    for bound, wanted in zip(
        (ball.horizontal, ball.upper, ball.lower), (horizontal, upper, lower), strict=True
    ):
        assert sorted(map(canonical, bound.tolist())) == sorted(wanted)
        for partition in bound:
            assert_array_equal(partition, relabel_by_size(partition))
    for bound, far in (
        (ball.horizontal, ball.radius),
        (ball.upper, ball.upper_distance),
        (ball.lower, ball.lower_distance),
    ):
        for partition in bound:
            assert_allclose(distance(centre, partition, loss), far, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(12))
def test_ball_of_random_draws_is_its_definition(loss, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 14))
    labels = rng.integers(int(rng.integers(1, 5)) + 1, size=(25, n))
    labels = labels[rng.integers(25, size=25)]  # some draws are repeated
    weights = np.where(rng.random(25) < 0.8, rng.random(25), 0.0)
    for level in (0.2, 0.5, 0.95, 1.0):
        for w in (None, weights):
            ball = credible_ball(labels[0], labels, loss, level=level, weights=w)
            expected = brute_force(labels[0], labels, loss, level, np.ones(25) if w is None else w)
            assert_ball(ball, expected, labels[0], loss)
    assert_allclose(ball.distance, [distance(labels[0], draw, loss) for draw in labels], atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", CASES)
def test_ball_of_the_exact_posterior(loss, name):
    partitions, probability, _ = exact_posterior(CASES[name])
    labels = np.array(partitions)
    centre, _, _ = consensus_partition(
        labels, loss, max_draws=None, weights=probability, random_state=0
    )
    for level in (0.5, 0.95):
        ball = credible_ball(centre, labels, loss, level=level, weights=probability)
        assert ball.mass >= level
        assert_ball(ball, brute_force(centre, labels, loss, level, probability), centre, loss)
        # The smallest such ball: the draws strictly inside do not suffice.
        within = ball.distance < ball.radius - 1e-9
        assert probability[within].sum() < level


@pytest.mark.parametrize("loss", LOSSES)
def test_names_of_labels_and_order_of_rows_and_draws_do_not_matter(loss):
    rng = np.random.default_rng(0)
    labels = rng.integers(4, size=(30, 40))
    labels[:, :30] = np.arange(30) % 3
    weights = rng.random(30)
    ball = credible_ball(labels[0], labels, loss, weights=weights)
    renamed = np.array([rng.permutation(9)[draw] - 4 for draw in labels])
    rows, draws = rng.permutation(40), rng.permutation(30)
    other = credible_ball(7 - labels[0], renamed, loss, weights=weights)
    moved = credible_ball(labels[0][rows], labels[draws][:, rows], loss, weights=weights[draws])
    assert_allclose([other.radius, moved.radius], ball.radius)
    assert_array_equal(other.inside, ball.inside)
    assert_array_equal(moved.inside, ball.inside[draws])
    for name in ("horizontal", "upper", "lower"):
        here, there = getattr(ball, name), getattr(moved, name)
        assert_array_equal(getattr(other, name), here)
        assert {canonical(p[rows]) for p in here} == {canonical(p) for p in there}


def test_all_draws_at_one_distance_are_bounds():
    """Six rows, one of them moved into a cluster of its own: three draws equally far."""
    centre = np.array([0, 0, 0, 1, 1, 1])
    labels = np.tile(centre, (4, 1))
    labels[1, 0] = labels[2, 4] = labels[3, 5] = 2
    ball = credible_ball(centre, labels, level=0.5)
    assert ball.mass == 1.0 and ball.inside.all()
    assert len(ball.horizontal) == len(ball.lower) == 3
    assert ball.upper.tolist() == [centre.tolist()] and ball.upper_distance == 0.0
    assert ball.lower_distance == ball.radius > 0.0


def test_nineteen_of_twenty_draws_are_95_percent():
    centre = np.zeros(9, dtype=int)
    labels = np.tile(centre, (20, 1))
    labels[4] = np.arange(9)
    ball = credible_ball(centre, labels)
    assert ball.radius == 0.0 and ball.inside.sum() == 19
    assert_allclose(ball.mass, 0.95)
    everything = credible_ball(centre, labels, level=1.0)
    assert_allclose([everything.radius, everything.mass], [np.log(9), 1.0])
    assert everything.lower.tolist() == [list(range(9))]


def test_draws_without_weight_are_outside():
    labels = np.array([[0, 0, 0], [0, 1, 2], [0, 0, 0]])
    ball = credible_ball([0, 0, 0], labels, level=1.0, weights=[1, 0, 1])
    assert ball.radius == 0.0 and ball.inside.tolist() == [True, False, True]


def test_one_row_and_one_draw():
    ball = credible_ball([3], [[7]])
    assert (ball.radius, ball.mass) == (0.0, 1.0)
    assert ball.horizontal.tolist() == ball.upper.tolist() == ball.lower.tolist() == [[0]]


def test_ball_is_immutable():
    ball = credible_ball([0, 1], [[0, 1]])
    with pytest.raises(AttributeError):
        ball.radius = 1.0


@pytest.mark.parametrize("level", [0, -0.5, 1.5, np.nan])
def test_bad_level_is_named(level):
    with pytest.raises(ValueError, match="level must be above 0 and at most 1, got"):
        credible_ball([0, 1], [[0, 1]], level=level)


def test_bad_partition_is_named():
    with pytest.raises(ValueError, match="one label per column"):
        credible_ball([0], [[0, 1]])
    with pytest.raises(ValueError, match="loss must be 'vi' or 'binder'"):
        credible_ball([0, 1], [[0, 1]], "ari")


def test_every_partition_of_four_rows():
    """Uniform over all 15: the ball around one cluster grows by whole shells."""
    labels = np.array(list(set_partitions(4)))
    centre = np.zeros(4, dtype=int)
    shells = np.unique(np.round([distance(centre, p, "vi") for p in labels], 9), return_counts=True)
    for radius, count in zip(shells[0], np.cumsum(shells[1]), strict=True):
        ball = credible_ball(centre, labels, level=count / 15)
        assert_allclose(ball.radius, radius, atol=1e-8)
        assert ball.inside.sum() == count
