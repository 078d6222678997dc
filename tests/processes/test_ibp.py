"""The Indian buffet process against enumeration, simulation and known figures."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma

from checks.monte_carlo import p_value, z_score
from checks.proofs import proof
from skbnp.processes import ibp

FAMILY = [
    dict(mass=0.6),
    dict(mass=0.5, concentration=3.0),
    dict(mass=0.5, concentration=0.7, discount=0.3),
    dict(mass=0.4, concentration=-0.1, discount=0.5),
]
every_member = pytest.mark.parametrize("member", FAMILY, ids=str)


def matrix(*columns):
    return np.array(columns, dtype=np.uint8).T


def two_row_classes(highest=12):
    """Left-ordered matrices of two rows, with each column at most so many times."""
    for first, both, second in itertools.product(range(highest + 1), repeat=3):
        columns = [(1, 1)] * both + [(1, 0)] * first + [(0, 1)] * second
        yield np.array(columns, dtype=np.uint8).reshape(-1, 2).T


# -- the law ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "member",
    [
        dict(mass=1.0),
        dict(mass=0.8, concentration=2.5),
        dict(mass=0.7, concentration=1.0, discount=0.4),
    ],
    ids=str,
)
def test_probabilities_sum_to_one_over_all_classes(member):
    total = math.fsum(math.exp(ibp.log_prob(Z, **member)) for Z in two_row_classes())
    assert total == pytest.approx(1.0, abs=1e-12)


def test_figures_of_three_rows():
    assert math.exp(ibp.log_prob(np.zeros((3, 0)), 0.6)) == pytest.approx(0.332871, abs=5e-7)
    assert math.exp(ibp.log_prob(np.ones((3, 1)), 0.6)) == pytest.approx(0.066574, abs=5e-7)


@pytest.mark.parametrize("mass, total", [(0.5, 0.9735), (1.0, 0.9098), (1.5, 0.8266)])
def test_new_columns_are_no_denominator_for_a_class(mass, total):
    """doc/mathematics/cibp_belief_net, (B3.3): with the factorials of the numbers of new columns,
    which belong to matrices in order of arrival, the probabilities of the classes miss one."""
    classes = list(two_row_classes(9))
    wrong = math.fsum(math.exp(ibp.log_prob(Z, mass, ordering="arrival")) for Z in classes)
    assert wrong == pytest.approx(total, abs=5e-5)
    right = math.fsum(math.exp(ibp.log_prob(Z, mass)) for Z in classes)
    assert right == pytest.approx(1.0, abs=1e-7)


@every_member
@pytest.mark.parametrize("ordering", ["arrival", "labelled"])
def test_orders_of_a_class_sum_to_its_probability(member, ordering):
    Z = matrix((1, 1, 0), (1, 1, 0), (1, 0, 0), (0, 1, 1), (0, 1, 1), (0, 0, 1))
    orders = {columns for columns in itertools.permutations(map(tuple, Z.T))}
    total = math.fsum(
        math.exp(ibp.log_prob(matrix(*columns), **member, ordering=ordering)) for columns in orders
    )
    assert math.log(total) == pytest.approx(ibp.log_prob(Z, **member), abs=1e-12)


@every_member
def test_unordered_is_the_density_of_distinct_columns(member):
    Z = matrix((1, 1), (1, 1), (0, 1))
    labelled = ibp.log_prob(Z, **member, ordering="labelled")
    unordered = ibp.log_prob(Z, **member, ordering="unordered")
    assert unordered == pytest.approx(labelled + math.log(6))


@every_member
@pytest.mark.parametrize("ordering", ["lof", "labelled", "unordered"])
def test_order_of_rows_and_columns_does_not_matter(member, ordering):
    rng = np.random.default_rng(0)
    Z = ibp.sample(9, 4.0, 2.0, random_state=1)
    expected = ibp.log_prob(Z, **member, ordering=ordering)
    for _ in range(5):
        shuffled = rng.permutation(rng.permutation(Z), axis=1)
        assert ibp.log_prob(shuffled, **member, ordering=ordering) == pytest.approx(
            expected, rel=1e-12
        )


@every_member
def test_log_prob_is_the_sum_of_the_predictives(member):
    mass, beside = member["mass"], {k: v for k, v in member.items() if k != "mass"}
    Z = ibp.sample(12, 3.0, 2.0, ordering="arrival", random_state=2)
    first = Z.argmax(axis=0)
    total = 0.0
    for i in range(1, 13):
        old = first < i - 1
        n_new, rate = np.count_nonzero(first == i - 1), ibp.new_rate(i, mass, **beside)
        total += stats.poisson.logpmf(n_new, rate)
        if old.any():
            log_p = ibp.log_predictive_existing(Z[: i - 1, old].sum(axis=0), i, **beside)
            total += np.where(Z[i - 1, old], log_p, np.log1p(-np.exp(log_p))).sum()
    assert total == pytest.approx(ibp.log_prob(Z, **member, ordering="arrival"), abs=1e-10)


@every_member
def test_dropping_the_last_row_leaves_the_law_of_the_others(member):
    Z = matrix((1, 1, 0), (1, 0, 0), (0, 1, 1))
    total = 0.0
    for row in itertools.product((0, 1), repeat=3):
        for n_new in range(25):
            longer = np.zeros((4, 3 + n_new), dtype=np.uint8)
            longer[:3, :3], longer[3, :3], longer[3, 3:] = Z, row, 1
            total += math.exp(ibp.log_prob(longer, **member, ordering="arrival"))
    expected = math.exp(ibp.log_prob(Z, **member, ordering="arrival"))
    assert total == pytest.approx(expected, rel=1e-12)


def test_columns_out_of_order_never_arrive():
    assert ibp.log_prob([[0, 1], [1, 0]], 1.0, ordering="arrival") == -np.inf


# -- moments ----------------------------------------------------------------------------------


def test_moments_of_the_spec():
    process = (10, 2.0, 3.0)
    assert ibp.expected_features(*process) == pytest.approx(9.6193, abs=5e-5)
    assert ibp.var_features(*process) == ibp.expected_features(*process)
    assert ibp.expected_edges(*process) == 20.0
    assert ibp.var_edges(*process) == pytest.approx(65.0)
    assert ibp.expected_features_of_size(*process)[0] == pytest.approx(5.0)


@pytest.mark.parametrize("c", [0.2, 1.0, 50.0])
def test_expected_features_in_closed_form(c):
    expected = 1.7 * c * (digamma(c + 1000) - digamma(c))
    assert ibp.expected_features(1000, 1.7, c) == pytest.approx(expected, rel=1e-11)


@every_member
def test_moments_agree_with_each_other(member):
    n = 40
    size, count = np.arange(1, n + 1), ibp.expected_features_of_size(n, **member)
    assert count.sum() == pytest.approx(ibp.expected_features(n, **member), rel=1e-11)
    assert size @ count == pytest.approx(ibp.expected_edges(n, **member), rel=1e-11)
    assert size**2 @ count == pytest.approx(ibp.var_edges(n, **member), rel=1e-11)
    rates = ibp.expected_new(n, **member)
    assert rates[0] == pytest.approx(member["mass"])
    np.testing.assert_allclose([ibp.new_rate(i, **member) for i in size], rates, rtol=1e-12)


def test_moments_broadcast():
    mass, c = np.array([0.5, 1.0, 2.0]), np.array([[1.0], [3.0]])
    for moment, shape in (
        (ibp.expected_features, (2, 3)),
        (ibp.expected_edges, (2, 3)),
        (ibp.var_edges, (2, 3)),
        (ibp.expected_new, (2, 3, 7)),
        (ibp.expected_features_of_size, (2, 3, 7)),
    ):
        got = moment(7, mass, c)
        assert got.shape == shape
        np.testing.assert_allclose(got[1, 2], moment(7, 2.0, 3.0))


def test_large_n():
    n = 10**6
    assert ibp.new_rate(n, 2.0, 3.0) == pytest.approx(6.0 / (n + 2.0), rel=1e-14)
    expected = 3.0 * (digamma(1.0 + n) - digamma(1.0))
    assert ibp.expected_features(n, 3.0) == pytest.approx(expected, rel=1e-11)
    Z = ibp.sample(n, 3.0, random_state=0)
    assert Z.dtype == np.uint8 and np.isfinite(ibp.log_prob(Z, 3.0))
    assert abs(Z.shape[1] - expected) < 4 * math.sqrt(expected)


# -- draws ------------------------------------------------------------------------------------


@proof(draws=(20_000, 100_000), seed=3)
@every_member
def test_samples_follow_the_probabilities(member, size, seed):
    """Chi-square over classes of 3 rows with 20 expected or more; false alarms 1e-4 each."""
    n_draws, rng = size, np.random.default_rng(seed)
    drawn = Counter()
    for _ in range(n_draws):
        Z = ibp.sample(3, **member, random_state=rng)
        drawn[tuple(map(tuple, Z.T))] += 1
    kinds = sorted(itertools.product((1, 0), repeat=3), reverse=True)[:-1]
    classes = [
        columns
        for width in range(4)
        for columns in itertools.combinations_with_replacement(kinds, width)
    ]
    expected = {
        columns: n_draws * math.exp(ibp.log_prob(np.array(columns).reshape(-1, 3).T, **member))
        for columns in classes
    }
    common = [columns for columns, n in expected.items() if n >= 20]
    assert len(common) > 10
    observed = np.array([drawn[columns] for columns in common] + [0])
    wanted = np.array([expected[columns] for columns in common] + [0])
    observed[-1], wanted[-1] = n_draws - observed.sum(), n_draws - wanted.sum()
    assert p_value(stats.chisquare(observed, wanted)) > 1e-4


@every_member
def test_orders_of_a_sample(member):
    member = member | dict(mass=4.0)
    for seed in range(20):
        arrival = ibp.sample(6, **member, ordering="arrival", random_state=seed)
        lof = ibp.sample(6, **member, random_state=seed)
        assert (np.diff(arrival.argmax(axis=0)) >= 0).all()
        assert (np.diff([32, 16, 8, 4, 2, 1] @ lof.astype(int)) <= 0).all()
        assert sorted(map(tuple, arrival.T)) == sorted(map(tuple, lof.T))


@proof(draws=(6000, 30_000), seed=4)
@every_member
def test_every_row_has_poisson_features(member, size, seed):
    """Mean, variance and empty rows of the first and the last row, and shared features."""
    mass, rng = 1.5, np.random.default_rng(seed)
    member = member | dict(mass=mass)
    rows = np.empty((size, 2))
    shared = np.empty(size)
    for t in range(len(rows)):
        Z = ibp.sample(5, **member, random_state=rng)
        rows[t] = Z[[0, 4]].sum(axis=1)
        shared[t] = Z[1] @ Z[4].T
    for x in rows.T:
        assert abs(z_score(x, mass)) < 4
        assert abs(z_score((x - mass) ** 2, mass)) < 4
        assert abs(z_score(x == 0, math.exp(-mass))) < 4
    c, d = member.get("concentration", 1.0), member.get("discount", 0.0)
    assert abs(z_score(shared, mass * (1 - d) / (1 + c))) < 4


def test_same_seed_same_sample():
    first, second = (ibp.sample(20, 3.0, random_state=5) for _ in range(2))
    np.testing.assert_array_equal(first, second)


# -- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: ibp.sample(0, 1.0), "n must be an integer >= 1, got 0"),
        (lambda: ibp.sample(2.5, 1.0), "n must be an integer >= 1, got 2.5"),
        (lambda: ibp.sample(3, 0.0), "mass must be > 0, got 0.0"),
        (lambda: ibp.sample(3, np.nan), "mass must be finite and a number"),
        (lambda: ibp.sample(3, [1.0, 2.0]), "mass must be a single number"),
        (lambda: ibp.sample(3, 1.0, 0.0), "concentration must be > 0, got 0.0"),
        (lambda: ibp.sample(3, 1.0, -0.4, 0.3), "concentration must be > -discount = -0.3"),
        (lambda: ibp.sample(3, 1.0, discount=1.0), r"discount must be in \[0, 1\), got 1.0"),
        (lambda: ibp.sample(3, 1.0, ordering="labelled"), "ordering must be one of lof, arrival"),
        (lambda: ibp.log_prob([[1]], 1.0, ordering=None), "ordering must be one of lof, arr"),
        (lambda: ibp.log_prob([1, 0], 1.0), "Z must be two-dimensional, got shape"),
        (lambda: ibp.log_prob([[2]], 1.0), "Z must hold 0 and 1 only"),
        (lambda: ibp.log_prob([[np.nan]], 1.0), "Z must hold 0 and 1 only"),
        (lambda: ibp.log_prob(np.zeros((0, 3)), 1.0), "Z must have at least one row"),
        (lambda: ibp.log_prob([[1, 0], [1, 0]], 1.0), "got column 1 without a 1"),
        (lambda: ibp.new_rate(0, 1.0), "i must be an integer >= 1"),
        (lambda: ibp.log_predictive_existing(1, 1), "i must be an integer >= 2, got 1"),
        (lambda: ibp.log_predictive_existing(0, 3), "m must be >= 1, got 0"),
        (lambda: ibp.log_predictive_existing([1, 3], 3), "m must be <= i - 1 = 2, got 3"),
        (lambda: ibp.expected_features(3, [1.0, -1.0]), "mass must be > 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "moment", [ibp.expected_features, ibp.var_features, ibp.expected_edges, ibp.var_edges]
)
def test_moments_beyond_floats_are_infinite_without_a_warning(moment):
    assert moment(5, 1e308) == math.inf
