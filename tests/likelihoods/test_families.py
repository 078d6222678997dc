"""The kernels' statistics and densities against ratios of marginal likelihoods in NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from checks.families import (
    DISCRETE,
    GAUSSIAN,
    KINDS,
    PRODUCTS,
    N,
    NormalInverseGamma,
    NormalInverseWishart,
    ProductFamily,
    setting,
)


def random_blocks(n_blocks, rng):
    """Disjoint blocks of the rows but the first five, among them an empty one."""
    label = rng.integers(n_blocks, size=N)
    label[:5] = -1
    blocks = [np.flatnonzero(label == k) for k in range(n_blocks)]
    blocks[rng.integers(n_blocks)] = np.array([], dtype=int)
    return blocks


def assert_same_state(a, b):
    """Two states equal bit for bit; that of a product holds those of its parts."""
    assert a.keys() == b.keys()
    for name in a:
        if isinstance(a[name], dict):
            assert_same_state(a[name], b[name])
        else:
            assert_array_equal(a[name], b[name], err_msg=name)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("d", [1, 2, 8])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_blocks", [1, 2, 4, 5, 9])
def test_predictive_is_a_ratio_of_marginals(kind, d, holes, n_blocks):
    """To 1e-10; all ways in which a kernel asks, empty blocks included."""
    case = setting(kind, d, holes)
    family, X = case.family, case.X
    blocks = random_blocks(n_blocks, np.random.default_rng(n_blocks))
    for k, rows in enumerate(blocks):
        family.build(k, rows)
        assert_allclose(family.marginal(k), case.log_m(X[rows], 0.6), atol=1e-10, rtol=1e-12)
    for i in range(5):
        ratio = [case.log_m(X[[*b, i]], 0.6) - case.log_m(X[b], 0.6) for b in blocks]
        assert_allclose(family.predictives(n_blocks, i), ratio, atol=1e-10)
        assert_allclose([family.predictive(k, i) for k in range(n_blocks)], ratio, atol=1e-10)
    for k, rows in enumerate(blocks):
        for i in rows:
            rest = rows[rows != i]
            expected = case.log_m(X[rows], 0.6) - case.log_m(X[rest], 0.6)
            assert_allclose(family.own_predictive(k, i), expected, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_more_rows_than_the_table_has(kind):
    """Constants of so many rows share places: 6, 70 and 134 rows have the same one."""
    case = setting(kind, 3, n=8)
    family, X = case.family, case.X
    blocks = [np.resize(np.arange(5), n) for n in (6, 70, 134)]
    for k, rows in enumerate(blocks):
        family.build(k, rows)
    for _ in range(2):
        for k, rows in enumerate(blocks):
            log_m, rest = case.log_m(X[rows], 0.6), rows[1:]
            assert_allclose(family.marginal(k), log_m, rtol=1e-10)
            ratio = case.log_m(X[[*rows, 7]], 0.6) - log_m
            assert_allclose(family.predictive(k, 7), ratio, atol=1e-8)
            own = log_m - case.log_m(X[rest], 0.6)
            assert_allclose(family.own_predictive(k, rows[0]), own, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_that_change_are_seen(kind):
    """Copies kept side by side for speed follow every change of their blocks."""
    case = setting(kind, 3)
    family, X, log_m = case.family, case.X, case.log_m
    blocks = random_blocks(6, np.random.default_rng(1))
    for k, rows in enumerate(blocks):
        family.build(k, rows)
    for t in range(5):
        k = t % 6
        family.predictives(6, 0)
        family.add_row(k, 1)
        blocks[k] = np.append(blocks[k], 1)
        expected = [log_m(X[[*b, 0]], 0.6) - log_m(X[b], 0.6) for b in blocks]
        assert_allclose(family.predictives(6, 0), expected, atol=1e-10)
        scale = 0.6 / 2 ** (t + 1)
        assert not family.rescale(6, scale)
        assert family.scale == (scale if family.scaled else 1.0)
        expected = [log_m(X[[*b, 0]], scale) - log_m(X[b], scale) for b in blocks]
        assert_allclose(family.predictives(6, 0), expected, atol=1e-9)
        assert not family.rescale(6, 0.6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_is_scored_anew_when_its_block_has_changed(kind):
    """What ``predictives`` has found of a row serves ``own_predictive`` while it is true."""
    case = setting(kind, 3)
    family, X, log_m = case.family, case.X, case.log_m
    blocks = [list(range(4)), list(range(4, 9))]
    for k, rows in enumerate(blocks):
        family.build(k, rows)

    def assert_is_right(i):
        rest = [j for j in blocks[0] if j != i]
        expected = log_m(X[blocks[0]], 0.6) - log_m(X[rest], 0.6)
        assert_allclose(family.own_predictive(0, i), expected, atol=1e-9)

    family.predictives(2, 2)
    assert_is_right(2)
    assert_is_right(1)  # another row
    family.add_row(0, 10)
    blocks[0].append(10)
    assert_is_right(2)  # another block
    family.predictives(2, 2)
    assert not family.rescale(2, 0.6)
    assert_is_right(2)
    family.predictives(1, 10)  # a row that is not of this block
    assert_is_right(2)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_of_the_scale(kind):
    """They differ by log m at each scale, and add to what is there."""
    case = setting(kind, 2)
    blocks = random_blocks(4, np.random.default_rng(2))
    for k, rows in enumerate(blocks):
        case.family.build(k, rows)
    grid = 2.0 ** -np.arange(4.0)
    expected = [sum(case.log_m(case.X[rows], scale) for rows in blocks) for scale in grid]
    weights = case.family.scale_weights(len(blocks), grid)
    assert_allclose(np.diff(weights), np.diff(expected), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_slots_that_come_later_know_the_scale(kind):
    """More slots than a part had asked for, after a change of the scale."""
    case = setting(kind, 2)
    case.family.build(0, range(10, 20))
    case.family.rescale(1, 0.125)
    n_slots = 3 * case.family.n_slots + 1
    case.family.build(n_slots, [])
    expected = case.log_m(case.X[:1], 0.125)
    assert_allclose(case.family.predictives(n_slots, 0)[1:], expected, atol=1e-10)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_add_then_remove_restores(kind, holes):
    family = setting(kind, 4, holes).family
    family.build(0, range(10, 20))
    before = family.blocks(1)
    for i in range(10):
        family.add_row(0, i)
    for i in np.random.default_rng(2).permutation(10):
        assert not family.remove_row(0, i)
    for name, value in family.blocks(1).items():
        upper = np.triu if name == "factor" else np.asarray
        assert_allclose(upper(value[0]), upper(before[name][0]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", [*DISCRETE, "counts"])
def test_counts_come_and_go_without_a_trace(kind):
    """Exactly, whatever came between, also what is kept beside the counts."""
    case = setting(kind, 7, 0.2)
    case.family.build(0, range(10, 20))
    before, marginal = case.family.get_state(1), case.family.marginal(0)
    predictives = [case.family.predictive(0, i) for i in range(N)]
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows = rng.permutation(N)[:10]
        for i in rows:
            case.family.add_row(0, i)
        for i in rng.permutation(rows):
            case.family.remove_row(0, i)
    assert_same_state(case.family.get_state(1), before)
    assert case.family.marginal(0) == marginal
    assert [case.family.predictive(0, i) for i in range(N)] == predictives


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_rows_does_not_matter(kind):
    family = setting(kind, 4, 0.2).family
    values = []
    for order in np.random.default_rng(3).permuted([range(30)] * 5, axis=1):
        family.build(0, order)
        values.append(family.marginal(0))
    assert_allclose(values, values[0], rtol=0.0 if kind in (*DISCRETE, "counts") else 1e-12)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_state_goes_round(kind, holes):
    """Bit for bit, into a family that has done other things meanwhile."""
    case = setting(kind, 3, holes)
    rng = np.random.default_rng(4)
    family, other = case.family, case.new
    for k, rows in enumerate(random_blocks(5, rng)):
        family.build(k, rows)
    family.rescale(5, 0.15)
    for i in range(5):
        family.impute(1, i, rng.bit_generator)
    other.build(11, range(20))
    other.impute(11, 3, rng.bit_generator)
    state = family.get_state(5)
    other.set_state(state, 5)
    for t in range(2):
        assert_same_state(other.get_state(5), family.get_state(5))
        assert_array_equal(other.completed(), family.completed())
        for i in range(5):
            assert_array_equal(other.predictives(6, i), family.predictives(6, i))
            assert_array_equal(other.missing_means(i), family.missing_means(i))
        for k in range(6):
            assert other.marginal(k) == family.marginal(k)
        for one in (family, other):  # and they go on alike
            one.add_row(t, t)
            one.impute(2, 4, np.random.default_rng(t).bit_generator)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_without_a_cell(kind):
    """They change no density but that of their number."""
    case = setting(kind, 2, holes=1.0)
    family = case.family
    family.build(0, range(10, 20))
    family.build(1, [])
    assert_allclose(family.predictives(2, 0, observed=True), 0.0, atol=1e-12)
    if not np.isnan(case.X).all():
        return  # imputed cells are data
    assert_allclose(family.predictives(2, 0), 0.0, atol=1e-12)
    assert_allclose(family.own_predictive(0, 10), 0.0, atol=1e-12)
    assert_allclose(family.marginal(0), 0.0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_with_the_same_holes_stand_together(kind):
    case = setting(kind, 2, holes=0.4)
    order = case.family.row_order()
    assert_array_equal(np.sort(order), np.arange(N))
    if kind == "counts":
        assert_array_equal(order, np.arange(N))  # nothing is imputed
        return
    part = case.family.parts[0] if kind == "mixed" else case.family
    missing = [tuple(part.missing_features(i)) for i in order]
    changes = sum(a != b for a, b in zip(missing[1:], missing[:-1], strict=True))
    assert changes == len(set(missing)) - 1


@pytest.mark.parametrize("kind", GAUSSIAN)
def test_a_removal_that_loses_its_digits_says_so(kind):
    """A row 1e9 away leaves a tight block: the kernel must build it from its rows."""
    X = np.concatenate([np.random.default_rng(4).normal(size=(6, 2)) * 1e-3, [[1e9, 1e9]]])
    mean, covariance = np.zeros(2), {"full": np.eye(2), "diag": np.ones(2), "spherical": 1.0}[kind]
    if kind == "full":
        family = NormalInverseWishart(X, mean, 0.3, 4.0, covariance, 1e-6)
    else:
        shared = kind == "spherical"
        family = NormalInverseGamma(X, mean, 0.3, 2.0, covariance, 1e-6, shared)
    family.build(0, range(7))
    assert np.isnan(family.own_predictive(0, 6))
    assert family.remove_row(0, 6)


@pytest.mark.parametrize("unit", [1e-140, 1e-60, 1e60, 1e140])
def test_determinants_beyond_the_range_of_a_double(unit):
    """In another unit a row's density is that of its cells, divided by the unit's power."""
    d, rng = 8, np.random.default_rng(3)
    X, mean, covariance = rng.normal(size=(N, d)), rng.normal(size=d), np.diag(rng.uniform(1, 2, d))
    plain = NormalInverseWishart(X, mean, 0.3, d + 2.0, covariance, 0.6)
    other = NormalInverseWishart(unit * X, unit * mean, 0.3, d + 2.0, unit**2 * covariance, 0.6)
    shift = d * np.log(unit)
    for family in (plain, other):
        family.build(0, range(12))
        family.build(1, range(12, 20))
        family.remove_row(1, 15)
        family.merge_blocks(0, 1, 2)
    for k, n in enumerate((12, 7, 19)):
        assert_allclose(other.marginal(k), plain.marginal(k) - n * shift, rtol=1e-10)
        assert_allclose(other.predictive(k, 30), plain.predictive(k, 30) - shift, rtol=1e-10)
    assert_allclose(other.predictives(3, 30), plain.predictives(3, 30) - shift, rtol=1e-10)


@pytest.mark.parametrize("d", [2, 5])
def test_observed_cells_of_a_full_block(d):
    """t with the same degrees of freedom: integrate a completed row over its missing cell."""
    case = setting("full", d, 0.3, seed=5)
    family, X = case.family, case.X
    family.build(0, range(5, 20))
    family.build(1, [])
    i = next(i for i in range(5) if len(family.missing_features(i)) == 1)
    j = family.missing_features(i)[0]
    y = np.sinh(np.linspace(-12, 12, 2_001))
    for k, rows in enumerate([np.arange(5, 20), np.array([], dtype=int)]):
        log_p = np.empty(len(y))
        for t, value in enumerate(y):
            row = X[i].copy()
            row[j] = value
            log_p[t] = case.log_m(np.vstack([X[rows], row]), 0.6)
        log_p -= case.log_m(X[rows], 0.6)
        total = np.log(np.trapezoid(np.exp(log_p), y))
        assert_allclose(family.predictives(2, i, observed=True)[k], total, atol=1e-4)


@pytest.mark.parametrize("kind", PRODUCTS)
def test_a_product_is_its_parts(kind):
    """Densities add up, statistics and imputations are those of the parts."""
    case = setting(kind, 2, holes=0.3)
    family = case.family
    blocks = random_blocks(4, np.random.default_rng(6))
    for k, rows in enumerate(blocks):
        family.build(k, rows)
    for i in range(5):
        for observed in (False, True):
            parts = sum(part.predictives(4, i, observed=observed) for part in family.parts)
            assert_allclose(family.predictives(4, i, observed=observed), parts, rtol=1e-14)
    merged = family.blocks(4)
    assert_array_equal(merged["n_members"], [len(rows) for rows in blocks])
    for part in family.parts:
        for name, value in part.blocks(4).items():
            assert_array_equal(merged[name], value)
    assert family.n_features == sum(part.n_features for part in family.parts)
    assert len(family.impute(0, 0, np.random.default_rng(0).bit_generator)) == sum(
        len(part.missing_means(0)) for part in family.parts
    )


def test_a_spoiled_part_spoils_the_slot():
    """And the rows then build all parts anew."""
    mixed = setting("mixed", 2).family
    X = np.concatenate([np.random.default_rng(4).normal(size=(N - 1, 2)) * 1e-3, [[1e9, 1e9]]])
    tight = NormalInverseGamma(X, np.zeros(2), 0.3, 2.0, np.ones(2), 1e-6, False)
    family = ProductFamily([tight, *mixed.parts[1:]], [[0, 3], [1, 4], [2, 5]])
    family.build(0, range(20, N))
    assert np.isnan(family.own_predictive(0, N - 1))
    assert family.remove_row(0, N - 1)
    family.build(0, range(20, N - 1))
    family.build(1, range(20, N - 1))
    assert family.marginal(0) == family.marginal(1)


def test_parts_that_do_not_fit_together():
    categorical, poisson, diag = (
        setting(kind, 2).family for kind in ("categorical", "poisson", "diag")
    )
    for parts, columns, message in [
        ([], [], "at least one"),
        ([categorical], [[0, 1], [2]], "as many parts as columns"),
        ([categorical, poisson], [[0, 1], [2]], "as many features"),
        ([categorical, poisson], [[0, 1], [1, 2]], "each of 0..3 once"),
        ([categorical, setting("poisson", 2, n=7).family], [[0, 1], [2, 3]], "same rows"),
        ([diag, setting("full", 2).family], [[0, 1], [2, 3]], "names of statistics"),
    ]:
        with pytest.raises(ValueError, match=message):
            ProductFamily(parts, columns)


@pytest.mark.parametrize("holes", [0.0, 0.3])
@pytest.mark.parametrize("kind", KINDS)
def test_merged_blocks(kind, holes):
    """The block of the rows of both, also with an empty one."""
    case = setting(kind, 3, holes)
    family = case.family
    for first, second in [(range(5, 20), range(20, 23)), (range(4), []), ([], range(7))]:
        family.build(0, first)
        family.build(1, second)
        family.build(2, [*first, *second])
        expected, log_m = family.blocks(3), family.marginal(2)
        family.build(2, [30])
        assert not family.merge_blocks(0, 1, 2)
        assert_allclose(family.marginal(2), log_m, rtol=1e-11)
        for name, value in family.blocks(3).items():
            upper = np.triu if name == "factor" else np.asarray
            assert_allclose(upper(value[2]), upper(expected[name][2]), rtol=1e-9, atol=1e-10)
        predictive = family.predictives(3, 39)[2]
        family.build(2, [*first, *second])
        assert_allclose(predictive, family.predictives(3, 39)[2], rtol=1e-9)
