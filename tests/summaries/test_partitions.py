"""Losses against their definitions, the search against all partitions of small sets."""

import json
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import betaln, gammaln, multigammaln, xlogy

from checks.enumeration import canonical, set_partitions
from checks.partitions import noisy_draws
from checks.slow import slow_where
from skbnp.summaries import _strategy
from skbnp.summaries._draws import merge_rows, number_draws
from skbnp.summaries._losses import loss_table
from skbnp.summaries.partitions import (
    central_draw,
    coclustering,
    companion_table,
    consensus_partition,
    expected_loss,
    relabel_by_size,
)

VECTORS = Path(__file__).parents[1] / "dirichlet_process_mixture" / "vectors.json"
CASES = {case["name"]: case for case in json.loads(VECTORS.read_text())}
LOSSES = ["vi", "binder"]


# -- The losses by their definitions ----------------------------------------------------------


def variation_of_information(a, b):
    """2 H(a, b) - H(a) - H(b), in nats."""

    def entropy(*labels):
        share = np.unique(np.column_stack(labels), axis=0, return_counts=True)[1] / len(a)
        return -np.sum(share * np.log(share))

    return 2 * entropy(a, b) - entropy(a) - entropy(b)


def discordant_pairs(a, b):
    return sum((a[i] == a[j]) != (b[i] == b[j]) for i, j in combinations(range(len(a)), 2))


def brute_force(partition, labels, loss, weights=None):
    distance = variation_of_information if loss == "vi" else discordant_pairs
    return np.average([distance(partition, draw) for draw in labels], weights=weights)


def random_draws(seed, n_draws, n, n_clusters):
    return np.random.default_rng(seed).integers(n_clusters, size=(n_draws, n))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(10))
def test_expected_loss_is_its_definition(loss, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    labels = random_draws(seed, 7, n, int(rng.integers(1, n + 2)))
    partition = rng.integers(3, size=n)
    weights = rng.random(7)
    assert_allclose(
        expected_loss(partition, labels, loss), brute_force(partition, labels, loss), atol=1e-12
    )
    assert_allclose(
        expected_loss(partition, labels, loss, weights=weights),
        brute_force(partition, labels, loss, weights),
        atol=1e-12,
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_expected_loss_does_not_depend_on_names_or_order(loss):
    rng = np.random.default_rng(0)
    labels = noisy_draws(0)
    partition = labels[0] % 3
    expected = expected_loss(partition, labels, loss)
    renamed = np.array([rng.permutation(50)[draw] - 20 for draw in labels])
    far_apart = labels * 10**12 - 7
    order = rng.permutation(labels.shape[1])
    assert expected_loss(partition, renamed, loss) == expected
    assert expected_loss(partition, far_apart, loss) == expected
    assert expected_loss(5 - partition, labels, loss) == expected
    assert_allclose(expected_loss(partition[order], labels[:, order], loss), expected)


def test_expected_loss_accepts_any_integers():
    labels = noisy_draws(1)
    expected = expected_loss(labels[0], labels)
    for dtype in (np.int8, np.uint16, np.int32, np.uint64):
        assert expected_loss(labels[0].astype(dtype), labels.astype(dtype)) == expected
    assert expected_loss(labels[0], list(labels)) == expected
    assert expected_loss(labels[0], [draw.tolist() for draw in labels]) == expected
    mixed = [draw.astype(np.uint8 if m % 2 else np.int64) for m, draw in enumerate(labels)]
    assert expected_loss(labels[0], mixed) == expected
    fortran = np.asfortranarray(labels)
    fortran.flags.writeable = False
    assert expected_loss(labels[0], fortran) == expected
    assert expected_loss(labels[0][::2], labels[:, ::2]) > 0


def test_range_of_labels_may_exceed_their_type():
    """-100 to 100 fits into 8 bits, its width does not."""
    labels = np.random.default_rng(0).choice([-100, -1, 0, 100], size=(6, 50))
    narrow = labels.astype(np.int8)
    assert expected_loss(labels[0], narrow) == expected_loss(labels[0], labels)
    assert_array_equal(coclustering(narrow), coclustering(labels))
    unsigned = labels.astype(np.uint64)  # from near 0 to near 2^64
    assert expected_loss(labels[0], unsigned) == expected_loss(labels[0], labels)
    for other in (narrow, unsigned, list(narrow)):
        here = consensus_partition(labels, random_state=0)
        there = consensus_partition(other, random_state=0)
        assert_array_equal(here[0], there[0])
        assert here[1:] == there[1:]


# -- The search -------------------------------------------------------------------------------


@cache
def all_distances(n, loss):
    """All partitions of n rows, and the distance of any two."""
    labels = np.array(list(set_partitions(n)))
    member = (labels[:, None, :] == np.arange(n)[:, None]).astype(float)  # (partition, block, row)
    overlap = np.einsum("aki,bci->abkc", member, member, optimize=True)
    f = xlogy(overlap, overlap) / n if loss == "vi" else overlap * (overlap - 1) / 2
    shared = f.sum(axis=(2, 3))
    own = np.diag(shared)
    return labels, own[:, None] + own - 2 * shared


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n", slow_where([2, 3, 4, 5, 6, 7], lambda n: n == 7))
def test_search_finds_the_optimum_of_random_posteriors(loss, n):
    labels, distance = all_distances(n, loss)
    for seed in range(20):
        rng = np.random.default_rng([n, seed])
        weights = rng.dirichlet(np.full(len(labels), 0.02 + 0.2 * (seed % 3)))
        partition, expected, _ = consensus_partition(
            labels, loss, max_draws=None, weights=weights, random_state=seed
        )
        assert_allclose(expected, min(distance @ weights), atol=1e-12)
        assert_allclose(expected_loss(partition, labels, loss, weights=weights), expected)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_search_finds_the_optimum_of_few_draws(loss, seed):
    labels = random_draws(seed, 5, 7, 4)
    labels[:, 3] = labels[:, 5]  # rows that become one item of weight 2
    best = min(expected_loss(candidate, labels, loss) for candidate in set_partitions(7))
    partition, expected, info = consensus_partition(labels, loss, random_state=0)
    assert_allclose(expected, best, atol=1e-12)
    assert_allclose(expected_loss(partition, labels, loss), expected, atol=1e-12)
    assert info["n_items"] <= 6


def log_eppf(labels, concentration, discount):
    """Pitman-Yor, P.1.1; a negative discount is the finite mixture."""
    size = np.bincount(labels)
    k, n = len(size), len(labels)
    new = concentration + discount * np.arange(1, k)
    if np.any(new <= 1e-12):
        return -np.inf
    return (
        np.sum(np.log(new))
        - np.sum(np.log(concentration + np.arange(1, n)))
        + np.sum(gammaln(size - discount) - gammaln(1 - discount))
    )


def log_marginal(X, family, hyper):
    """log m of the rows of one block, section 1.1 of the specification; NaN only in "diag"."""
    n, d = X.shape
    if family == "full":
        kappa0, nu0, psi0 = hyper["kappa0"], hyper["nu0"], np.array(hyper["Psi0"])
        off = X.mean(axis=0) - hyper["m0"]
        psi = psi0 + np.cov(X.T, bias=True) * n + kappa0 * n / (kappa0 + n) * np.outer(off, off)
        return (
            -0.5 * n * d * np.log(np.pi)
            + multigammaln(0.5 * (nu0 + n), d)
            - multigammaln(0.5 * nu0, d)
            + 0.5 * nu0 * np.linalg.slogdet(psi0)[1]
            - 0.5 * (nu0 + n) * np.linalg.slogdet(psi)[1]
            + 0.5 * d * np.log(kappa0 / (kappa0 + n))
        )
    if family in ("diag", "spherical"):
        kappa0, a0, b0 = hyper["kappa0"], hyper["a0"], np.array(hyper["b0"])
        n_cells = np.sum(~np.isnan(X), axis=0)
        mean = np.nansum(X, axis=0) / np.maximum(n_cells, 1)
        off = mean - hyper["m0"]
        more = 0.5 * np.nansum((X - mean) ** 2, axis=0)
        more += 0.5 * kappa0 * n_cells * off**2 / (kappa0 + n_cells)
        shrink = 0.5 * np.sum(np.log(kappa0 / (kappa0 + n_cells)))
        if family == "spherical":
            n_cells, more = n_cells.sum(keepdims=True), more.sum(keepdims=True)
        return shrink + np.sum(
            -0.5 * n_cells * np.log(2 * np.pi)
            + gammaln(a0 + 0.5 * n_cells)
            - gammaln(a0)
            + a0 * np.log(b0)
            - (a0 + 0.5 * n_cells) * np.log(b0 + more)
        )
    if family == "bernoulli":
        a, b = np.array(hyper["a"]), np.array(hyper["b"])
        return np.sum(betaln(a + X.sum(axis=0), b + n - X.sum(axis=0)) - betaln(a, b))
    if family == "poisson":
        a, b, total = np.array(hyper["shape"]), np.array(hyper["rate"]), X.sum(axis=0)
        return np.sum(
            gammaln(a + total) - gammaln(a) + a * np.log(b) - (a + total) * np.log(b + n)
        ) - np.sum(gammaln(X + 1))
    assert family == "categorical"
    value = 0.0
    for j, g in enumerate(map(np.array, hyper["conc"])):
        count = np.bincount(X[:, j].astype(int), minlength=len(g))
        value += gammaln(g.sum()) - gammaln(g.sum() + n) + np.sum(gammaln(g + count) - gammaln(g))
    return value


def exact_posterior(case):
    """All partitions, their posterior probabilities and the log evidence."""
    X = np.array(case["X"], dtype=float)
    n_components = case["n_components"]
    discount = -case["alpha"] / n_components if n_components else case["discount"]
    labels = np.array(list(set_partitions(len(X))))
    log_joint = np.array(
        [
            log_eppf(draw, case["alpha"], discount)
            + sum(
                log_marginal(X[draw == k], case["family"], case["hyper"])
                for k in range(draw.max() + 1)
            )
            for draw in labels
        ]
    )
    evidence = np.logaddexp.reduce(log_joint)
    return labels, np.exp(log_joint - evidence), evidence


@pytest.mark.parametrize("name", [name for name in CASES if "monotone" not in name])
def test_search_finds_the_optimum_of_the_exact_posterior(name):
    case = CASES[name]
    labels, probability, evidence = exact_posterior(case)
    assert_allclose(evidence, case["log_evidence"], atol=1e-7)
    assert_allclose(coclustering(labels, weights=probability), case["coclustering"], atol=1e-7)
    for loss in LOSSES:
        best, best_loss = case[f"{loss}_optimal"]
        partition, expected, _ = consensus_partition(
            labels, loss, max_draws=None, weights=probability, random_state=0
        )
        assert canonical(partition) == canonical(best)
        assert_allclose(expected, best_loss, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(5))
def test_search_is_never_worse_than_a_draw(loss, seed):
    labels = noisy_draws(seed, noise=0.9)
    expected = consensus_partition(labels, loss, n_runs=1, random_state=seed)[1]
    assert expected <= min(expected_loss(draw, labels, loss) for draw in labels) + 1e-12


@pytest.mark.parametrize("loss", LOSSES)
def test_result_is_a_local_optimum(loss):
    labels = noisy_draws(3, n=60)
    partition, expected, _ = consensus_partition(labels, loss, random_state=0)
    for i in range(60):
        for k in range(partition.max() + 2):
            moved = partition.copy()
            moved[i] = k
            assert expected_loss(moved, labels, loss) >= expected - 1e-9


def test_search_recovers_the_centre_of_noisy_draws():
    labels = noisy_draws(5, n_draws=100, noise=0.2)
    partition, _, info = consensus_partition(labels, random_state=0)
    majority = np.array([np.bincount(column).argmax() for column in labels.T])
    assert canonical(partition) == canonical(majority)
    # All runs find the same, and four of them are enough.
    assert info["n_runs"] == 4 and not info["truncated"]


def test_single_rows_and_one_block_are_looked_at():
    """Four draws that have nothing to do with one another."""
    rng = np.random.default_rng(0)
    labels = np.repeat(rng.integers(12, size=(4, 200)), 20, axis=0)
    single, one = np.arange(200), np.zeros(200, dtype=int)
    best = consensus_partition(labels, "binder", random_state=0)[1]
    assert best <= expected_loss(single, labels, "binder") + 1e-9
    found = consensus_partition(labels, "binder", max_clusters=50, random_state=0)
    assert found[0].max() < 50
    assert expected_loss(single, labels, "binder") < found[1]
    # With so little work only some of the draws are used, and its own expected loss is of these.
    little, *_ = consensus_partition(labels, "vi", max_work=1e5, random_state=0)
    assert expected_loss(little, labels, "vi") <= expected_loss(one, labels, "vi") + 1e-12


@pytest.mark.parametrize("noise, rebuilds", [(0.2, {1}), (0.9, set(range(2, 17)))])
def test_runs_that_find_the_same_rebuild_once(monkeypatch, noise, rebuilds):
    """The first of them does, and each that finds something else."""
    of_run, called = _strategy._rebuild, []

    def counted(search, generator):
        called.append(search.total())
        return of_run(search, generator)

    monkeypatch.setattr(_strategy, "_rebuild", counted)
    consensus_partition(noisy_draws(5, n_draws=100, noise=noise), random_state=0)
    assert len(called) in rebuilds


@pytest.mark.parametrize("seed", range(4))
def test_runs_agree_that_there_is_no_loss_at_all(seed):
    """But for rounding, of which nothing is a small part."""
    labels = np.tile(np.random.default_rng(seed).integers(4, size=60), (50, 1))
    _, expected, info = consensus_partition(labels, random_state=seed)
    assert info["n_runs"] == 4 and expected == pytest.approx(0.0, abs=1e-12)


def test_search_goes_on_where_runs_disagree():
    labels = noisy_draws(2, n=60, noise=0.9)
    _, expected, info = consensus_partition(labels, "binder", random_state=0)
    first = consensus_partition(labels, "binder", n_runs=1, random_state=0)[1]
    assert info["n_runs"] == 16 and not info["truncated"] and expected < first


@pytest.mark.parametrize("loss", LOSSES)
def test_names_of_the_draws_change_nothing(loss):
    rng = np.random.default_rng(0)
    labels = noisy_draws(1)
    renamed = np.array([rng.permutation(10)[draw] for draw in labels])
    here = consensus_partition(labels, loss, random_state=3)
    there = consensus_partition(renamed, loss, random_state=3)
    assert_array_equal(here[0], there[0])
    assert here[1:] == there[1:]


@pytest.mark.parametrize("loss", LOSSES)
def test_order_of_the_rows_changes_no_loss(loss):
    labels = noisy_draws(2, noise=0.2)
    order = np.random.default_rng(0).permutation(labels.shape[1])
    partition, expected, _ = consensus_partition(labels, loss, random_state=0)
    permuted, permuted_loss, _ = consensus_partition(labels[:, order], loss, random_state=0)
    assert_allclose(permuted_loss, expected)
    assert canonical(permuted) == canonical(partition[order])


@pytest.mark.parametrize("loss", LOSSES)
def test_merged_items_give_the_unmerged_result(loss):
    labels = np.repeat(noisy_draws(4, n=40), [1, 2, 3, 10] * 10, axis=1)
    draws = number_draws(labels)[0]
    item, first, weight = merge_rows(np.ascontiguousarray(draws.T))
    merged = np.ascontiguousarray(draws[:, first])
    assert len(weight) <= 40 and weight.sum() == 160
    assert_array_equal(merged[:, item], draws)
    assert_array_equal(np.bincount(item), weight)

    def search(draws, weight):
        tables = loss_table(loss, 160)
        share = np.full(len(draws), 1 / len(draws))
        generator, limits = np.random.default_rng(0), _strategy.Limits(16, 12, None)
        return _strategy.search_items(
            draws, weight, share, tables, limits, _strategy.UNBOUNDED, generator
        )[:2]

    best, total = search(merged, weight)
    unmerged, unmerged_total = search(draws, np.ones(160, dtype=np.intc))
    assert_allclose(total, unmerged_total)
    assert canonical(best[item]) == canonical(unmerged)


def test_repeated_draws_count_as_often():
    labels = noisy_draws(6, n_draws=5)
    times = [1, 4, 2, 1, 3]
    repeated = consensus_partition(np.repeat(labels, times, axis=0), random_state=0)
    weighted = consensus_partition(labels, weights=times, random_state=0)
    assert_array_equal(repeated[0], weighted[0])
    assert_allclose(repeated[1], weighted[1])
    assert repeated[2]["n_draws"] == 11 and repeated[2]["n_distinct"] == 5


@pytest.mark.parametrize("loss", LOSSES)
def test_work_is_bounded_and_the_result_stays_valid(loss):
    labels = noisy_draws(7, noise=0.9)
    reading = _strategy.PACKING * labels.size
    one_draw = one_trial_at_most = labels.size
    unbounded = consensus_partition(labels, loss, random_state=0)
    assert not unbounded[2]["truncated"]
    for share in [0, 1e-4, 0.001, 0.01, 0.1, 0.3, 0.9]:
        max_work = int(share * unbounded[2]["work"])
        partition, expected, info = consensus_partition(
            labels, loss, max_work=max_work, random_state=0
        )
        assert info["truncated"]
        assert info["work"] <= max(max_work, reading + one_draw) + one_trial_at_most
        used = labels[np.linspace(0, len(labels) - 1, info["n_draws"]).round().astype(int)]
        assert_allclose(expected_loss(partition, used, loss), expected)
        if info["n_draws"] == len(labels):
            assert expected >= unbounded[1] - 1e-12
        again = consensus_partition(labels, loss, max_work=max_work, random_state=0)
        assert_array_equal(again[0], partition)
    partition, expected, info = consensus_partition(
        labels, loss, max_work=10 * unbounded[2]["work"], random_state=0
    )
    assert_array_equal(partition, unbounded[0])
    assert not info["truncated"]


def test_little_work_means_few_draws():
    labels = noisy_draws(7, n_draws=60)
    assert consensus_partition(labels, max_work=0)[2]["n_draws"] == _strategy.MIN_DRAWS
    enough = 2 * _strategy.PACKING * labels.size
    assert consensus_partition(labels, max_work=enough // 2)[2]["n_draws"] == 30
    assert consensus_partition(labels, max_work=enough)[2]["n_draws"] == 60


def test_same_seed_same_result():
    labels = noisy_draws(8, noise=1.0)
    first = consensus_partition(labels, random_state=7)
    assert_array_equal(consensus_partition(labels, random_state=7)[0], first[0])
    assert_array_equal(
        consensus_partition(labels, random_state=np.random.default_rng(7))[0], first[0]
    )
    for make in (np.random.default_rng, np.random.RandomState):
        here, there = (consensus_partition(labels, random_state=make(5)) for _ in range(2))
        assert_array_equal(here[0], there[0])
        assert here[1:] == there[1:]


def test_draws_are_thinned_evenly():
    labels = noisy_draws(9, n_draws=100)
    partition, expected, info = consensus_partition(labels, max_draws=10, random_state=0)
    assert info["n_draws"] == 10
    used = labels[np.linspace(0, 99, 10).round().astype(int)]
    assert_allclose(expected_loss(partition, used), expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_max_clusters(loss):
    labels = noisy_draws(10, n_clusters=6)
    for most in (1, 2, 4):
        partition, expected, info = consensus_partition(
            labels, loss, max_clusters=most, random_state=0
        )
        assert partition.max() < most and info["max_clusters"] == most
        assert_allclose(expected_loss(partition, labels, loss), expected)


def test_tables_that_do_not_fit_use_fewer_draws(monkeypatch):
    monkeypatch.setattr(_strategy, "MAX_CELLS", 4000)
    labels = np.random.default_rng(0).integers(30, size=(50, 200))
    partition, expected, info = consensus_partition(labels, random_state=0)
    assert info["n_draws"] < 50 and info["n_draws"] * 30 * info["max_clusters"] <= 4000


@pytest.mark.parametrize("loss", LOSSES)
def test_degenerate_posteriors(loss):
    one_row = consensus_partition(np.zeros((4, 1), dtype=int), loss, random_state=0)
    assert one_row[0].tolist() == [0] and one_row[1] == 0.0

    draw = np.array([2, 2, 0, 1, 1, 1])
    partition, expected, info = consensus_partition(np.tile(draw, (9, 1)), loss, random_state=0)
    assert partition.tolist() == [1, 1, 2, 0, 0, 0] and expected == 0.0
    assert info["n_items"] == 3 and info["n_distinct"] == 1

    singletons = np.tile(np.arange(8), (3, 1))
    assert consensus_partition(singletons, loss, random_state=0)[0].tolist() == list(range(8))

    one_block = np.zeros((3, 8), dtype=int)
    partition, expected, info = consensus_partition(one_block, loss, random_state=0)
    assert partition.tolist() == [0] * 8 and expected == 0.0 and info["n_items"] == 1

    single_draw = consensus_partition(draw[None, :], loss, random_state=0)
    assert single_draw[0].tolist() == [1, 1, 2, 0, 0, 0]


def test_half_singletons_half_one_block():
    n = 10
    labels = np.array([[0] * n, list(range(n))])
    for loss in LOSSES:
        partition, expected, _ = consensus_partition(labels, loss, random_state=0)
        assert expected <= min(expected_loss(draw, labels, loss) for draw in labels) + 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [0, 1]}, "labels must have shape"),
        ({"labels": np.zeros((0, 3), dtype=int)}, "labels must have shape"),
        ({"labels": [[0, 1], [0, 1, 2]]}, r"labels must have shape .* got \(\(2,\), \(3,\)\)"),
        ({"labels": []}, "labels must have shape"),
        ({"labels": [[0.0, 1.0]]}, "labels must be integers, got dtype float64"),
        ({"loss": "ari"}, "loss must be 'vi' or 'binder', got 'ari'"),
        ({"n_runs": 0}, "n_runs must be an integer >= 1, got 0"),
        ({"n_runs": None}, "n_runs must be an integer >= 1, got None"),
        ({"max_clusters": 1.5}, "max_clusters must be an integer >= 1, got 1.5"),
        ({"max_draws": -3}, "max_draws must be an integer >= 1, got -3"),
        ({"max_work": -1}, "max_work must be >= 0, got -1"),
        ({"weights": [1.0]}, "weights must have shape"),
        ({"weights": [1.0, -1.0]}, "weights must be finite and >= 0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        consensus_partition(**{"labels": [[0, 0, 1], [0, 1, 1]], **arguments})


def test_expected_loss_checks_the_partition():
    with pytest.raises(ValueError, match="one label per column"):
        expected_loss([0, 1], [[0, 0, 1]])
    with pytest.raises(ValueError, match="partition must hold integers, got dtype float64"):
        expected_loss([0.0, 1.5, 1.0], [[0, 0, 1]])


# -- Tables -----------------------------------------------------------------------------------


def test_relabel_by_size():
    assert relabel_by_size([5, 5, -2, 7, 7, 7, 9]).tolist() == [1, 1, 2, 0, 0, 0, 3]
    assert relabel_by_size([3, 1, 1, 3]).tolist() == [0, 1, 1, 0]
    assert relabel_by_size([4]).tolist() == [0]
    assert relabel_by_size(["b", "a", "a"]).tolist() == [1, 0, 0]
    assert relabel_by_size([10**15, -5, -5]).tolist() == [1, 0, 0]


def test_companion_table():
    draw = np.array([0, 0, 0, 1, 1, 3])
    reference = np.array([0, 0, 1, 1, 1, 2])
    table = companion_table(draw, 4, reference, 3)
    expected = [[2 / 3, 1 / 3, 0], [0, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert_allclose(table, expected)


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_loss_table_covers_an_item_on_top_of_its_own_cluster(loss):
    """The search looks up f(size + weight) with size and weight up to n each."""
    f, step = loss_table(loss, 5)
    assert len(f) > 10 and len(step) > 10


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_central_draw_has_the_least_expected_loss_of_all_draws(loss):
    rng = np.random.default_rng(11)
    truth = np.repeat(np.arange(3), 10)
    noisy = (0.3, 0.03, 0.2, 0.3)
    labels = [np.where(rng.random(30) < p, rng.integers(3, size=30), truth) for p in noisy]
    losses = [expected_loss(draw, labels, loss) for draw in labels]
    assert central_draw(labels, loss) == np.argmin(losses) == 1
    assert central_draw([labels[2]] * 3, loss) == 0
    with pytest.raises(ValueError, match="loss"):
        central_draw(labels, "none")


@pytest.mark.parametrize(
    "function", [central_draw, consensus_partition, coclustering, relabel_by_size]
)
def test_a_masked_label_is_none(function):
    labels = np.ma.MaskedArray([[0, 1, 1], [0, 0, 1]], mask=[[0, 0, 1], [0, 0, 0]])
    with pytest.raises(ValueError, match="must not be masked|must have a label for every row"):
        function(labels[0] if function is relabel_by_size else labels)


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        ([[0, 1], [1, 1]], r"partition must have shape \(n,\), n >= 1, got \(2, 2\)"),
        ([], r"partition must have shape \(n,\), n >= 1, got \(0,\)"),
        (None, r"partition must have shape \(n,\), n >= 1, got \(\)"),
        ([0.0, np.nan, np.nan], "partition must have a label for every row, got a missing one"),
        (np.array([0, None], dtype=object), "partition must hold labels that can be sorted"),
    ],
)
def test_no_partition_to_relabel(partition, message):
    with pytest.raises(ValueError, match=message):
        relabel_by_size(partition)


def test_labels_of_any_layout_and_kind_are_relabelled():
    table = np.array([[7, 0], [2, 0], [2, 0]])
    for partition in (table[:, 0], ["b", "a", "a"], [0.5, 0.1, 0.1], [True, False, False]):
        assert_array_equal(relabel_by_size(partition), [1, 0, 0])
