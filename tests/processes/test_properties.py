"""What holds for all arguments of the processes: laws, moments, and errors in words."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from checks.fuzz import some_examples
from skbnp.processes import cibp, crp, ibp, icp, multiplicative_gamma, ncrp

seeds = st.integers(0, 2**32 - 1)
positive = st.floats(0.01, 50.0)
discounts = st.sampled_from([0.0, 1e-9, 0.2, 0.5, 0.9, 0.999])
wild = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=2),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from([0, -1, 1, 2**31, 2**53 + 1, 1e-300, 1e300, 1e308, -0.0, 5e-324]),
    st.lists(st.floats(), max_size=3),
    st.lists(st.integers(-3, 5), max_size=4),
    st.lists(st.lists(st.integers(-1, 2), max_size=3), max_size=3),
    st.lists(st.integers(2**60, 2**66), max_size=2),
)


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The documented one: a network that never ends is cut.
        warnings.filterwarnings("ignore", "the sample was cut at")
        yield


def members():
    """Arguments of one member of the Chinese restaurant's family."""
    infinite = st.fixed_dictionaries({"concentration": positive, "discount": discounts})
    finite = st.tuples(positive, st.integers(1, 6)).map(
        lambda x: {"concentration": x[0], "n_components": x[1]}
    )
    return st.one_of(infinite, finite)


def partitions(n):
    """All partitions of n items, labels in order of appearance."""
    if n == 0:
        yield ()
        return
    for first in partitions(n - 1):
        for label in range(max(first, default=-1) + 2):
            yield (*first, label)


# -- Chinese restaurant -----------------------------------------------------------------------


@some_examples
@given(st.integers(1, 6), members())
def test_crp_sums_to_one_and_has_its_moments(n, member):
    every = list(partitions(n))
    p = np.exp([crp.log_prob(one, **member) for one in every])
    n_blocks = np.array([max(one) + 1 for one in every])
    assert p.sum() == pytest.approx(1.0)
    mean = p @ n_blocks
    assert crp.expected_blocks(n, **member) == pytest.approx(mean)
    assert crp.var_blocks(n, **member) == pytest.approx(p @ (n_blocks - mean) ** 2, abs=1e-9)
    pmf = np.bincount(n_blocks, p, minlength=n + 1)[1:]
    np.testing.assert_allclose(crp.pmf_blocks(n, **member), pmf, atol=1e-12)
    sizes = [np.bincount(np.bincount(one), minlength=n + 1)[1:] for one in every]
    np.testing.assert_allclose(crp.expected_block_sizes(n, **member), p @ sizes, atol=1e-9)


@some_examples
@given(st.integers(1, 40), members(), seeds)
def test_crp_draws_are_partitions_that_have_a_probability(n, member, seed):
    labels = crp.sample(n, **member, random_state=seed)
    assert labels.shape == (n,) and labels[0] == 0
    assert (np.diff(np.maximum.accumulate(labels)) <= 1).all()
    log_p = crp.log_prob(labels, **member)
    assert np.isfinite(log_p) and log_p <= 1e-9
    # Neither names nor order of the items matter.
    random = np.random.default_rng(seed)
    other = random.permutation(1000)[labels][random.permutation(n)]
    assert crp.log_prob(other, **member) == pytest.approx(log_p)
    sizes = np.bincount(labels)
    assert crp.log_prob_sizes(sizes, **member) == pytest.approx(log_p)
    # One item after the other.
    chain = 0.0
    for i in range(n):
        here = np.bincount(labels[:i], minlength=0)
        chain += crp.log_predictive(here, **member)[labels[i]]
    assert chain == pytest.approx(log_p, abs=1e-8)
    assert np.exp(crp.log_predictive(sizes, **member)).sum() == pytest.approx(1.0)
    weights = crp.posterior_weights(sizes, **member, random_state=seed)
    assert weights.sum() == pytest.approx(1.0) and (weights >= 0.0).all()
    sticks, rest = crp.stick_breaking(5, **member, random_state=seed)
    assert sticks.sum() + rest == pytest.approx(1.0)


@some_examples
@given(
    st.sampled_from([2, 7, 100, 4096, 4097, 10**5, 2**31, 2**45]), st.floats(0.05, 0.95), members()
)
def test_concentration_and_expected_blocks_are_inverses(n, share, member):
    member.pop("concentration")
    limit = crp.expected_blocks(n, 1e200, **member)
    assume(limit > 1.0 + 1e-6)
    target = 1.0 + share * (min(limit, 1000.0) - 1.0)
    found = crp.concentration_for_expected_blocks(n, target, **member)
    # Close to -discount the float that is returned has few digits of the difference left.
    rounding = 1e-14 / max(found + member.get("discount", 0.0), 1e-14)
    assert crp.expected_blocks(n, found, **member) == pytest.approx(target, rel=1e-6 + rounding)
    if found > 0:
        assert crp.expected_blocks(n, 2 * found, **member) > target
        assert crp.expected_blocks(n + 1, found, **member) >= target * (1 - 1e-6)


@some_examples
@given(
    st.sampled_from([4096, 4097, 9000]),
    st.sampled_from([1e-8, 0.3, 5.0, 1e4, 1e9, 1e60, 1e200]),
    st.one_of(discounts.map(lambda d: {"discount": d}), st.sampled_from([1, 2, 9, 10**9]).map(
        lambda m: {"n_components": m}
    )),
)  # fmt: skip
def test_expected_blocks_beyond_the_recursion(n, concentration, member):
    d = -concentration / member["n_components"] if "n_components" in member else member["discount"]
    mean = 1.0
    for m in range(1, n):
        mean += max(concentration + d * mean, 0.0) / (m + concentration)
    assert crp.expected_blocks(n, concentration, **member) == pytest.approx(mean, rel=1e-10)


@some_examples
@given(st.lists(st.integers(1, 2**40), min_size=1, max_size=5), members(), seeds)
def test_crp_parameters_stay_in_range(sizes, member, seed):
    most = member.get("n_components")
    assume(most is None or len(sizes) <= most)
    value = crp.sample_concentration(sizes, **member, random_state=seed)
    assert 0.0 < value < np.inf
    if member.get("discount"):
        assert 0.0 < crp.sample_discount(sizes, **member, random_state=seed) < 1.0


# -- Indian buffets ---------------------------------------------------------------------------


@some_examples
@given(st.integers(1, 12), positive, st.floats(0.1, 10.0), discounts, seeds)
def test_ibp_draws_and_moments(n, mass, c, d, seed):
    Z = ibp.sample(n, mass, c, d, random_state=seed)
    assert Z.shape[0] == n and Z.any(axis=0).all()
    log_p = ibp.log_prob(Z, mass, c, d, ordering="unordered")
    assert np.isfinite(log_p)
    # Neither rows nor columns have an order there.
    random = np.random.default_rng(seed)
    other = Z[random.permutation(n)][:, random.permutation(Z.shape[1])]
    assert ibp.log_prob(other, mass, c, d, ordering="unordered") == pytest.approx(log_p)
    mean = ibp.expected_features(n, mass, c, d)
    assert ibp.var_features(n, mass, c, d) == mean > 0
    assert ibp.expected_features_of_size(n, mass, c, d).sum() == pytest.approx(mean)
    of_size = ibp.expected_features_of_size(n, mass, c, d) @ np.arange(1, n + 1)
    assert of_size == pytest.approx(ibp.expected_edges(n, mass, c, d))
    assert ibp.expected_features(n + 1, mass, c, d) >= mean


@some_examples
@given(st.integers(1, 2), st.floats(0.01, 0.4), st.floats(0.2, 5.0), discounts)
def test_ibp_sums_to_one(n, mass, c, d):
    # Over all matrices in left-ordered form, by how many columns there are of each kind.
    most = 9
    kinds = [k for k in itertools.product([1, 0], repeat=n) if any(k)]
    total = 0.0
    for counts in itertools.product(range(most), repeat=len(kinds)):
        columns = [kind for kind, count in zip(kinds, counts, strict=True) for _ in range(count)]
        Z = np.array(columns, dtype=int).reshape(-1, n).T
        total += np.exp(ibp.log_prob(Z, mass, c, d))
    assert total == pytest.approx(1.0, abs=1e-5)


@some_examples
@given(st.integers(1, 5), st.floats(0.05, 1.2), st.floats(0.1, 4.0), st.integers(1, 4), seeds)
def test_cibp_draws_have_a_probability(n, mass, c, depth, seed):
    Zs = cibp.sample(n, mass, c, max_depth=depth, random_state=seed)
    assert len(Zs) <= depth and Zs[0].shape[0] == n
    assert np.isfinite(cibp.log_prob(Zs, mass, c, max_depth=depth))
    widths = cibp.expected_widths(n, depth, mass, c, max_depth=depth)
    assert (widths >= 0).all()
    cdf = cibp.depth_cdf(n, depth, mass, c, max_depth=depth)
    assert (np.diff(cdf) >= -1e-12).all() and cdf[-1] == pytest.approx(1.0)


@some_examples
@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4),
    st.floats(0.05, 2.0), st.floats(0.2, 4.0), st.floats(0.2, 4.0), seeds,
)  # fmt: skip
def test_icp_draws_have_a_probability(orders, mass, c, popularity, seed):
    order, Z = icp.sample(orders, mass, c, popularity, random_state=seed)
    child, parent = Z.nonzero()
    assert (order[parent] > order[child]).all()
    assert np.isfinite(icp.log_prob(order, Z, len(orders), mass, c, popularity))
    pmf = icp.hidden_pmf(orders, mass, c)
    assert pmf.sum() == pytest.approx(1.0, abs=1e-9) and (pmf > -1e-12).all()
    mean = pmf @ np.arange(len(pmf))
    assert icp.expected_hidden(orders, mass, c) == pytest.approx(mean, abs=1e-8)


# -- trees and shrinkage ----------------------------------------------------------------------


@some_examples
@given(st.integers(1, 20), st.integers(1, 4), positive, discounts, seeds)
def test_ncrp_draws_have_a_probability(n, depth, concentration, d, seed):
    paths = ncrp.sample(n, depth, concentration, d, random_state=seed)
    assert paths.shape == (n, depth)
    log_p = ncrp.log_prob(paths, concentration, d)
    assert np.isfinite(log_p) and log_p <= 1e-9
    shuffled = paths[np.random.default_rng(seed).permutation(n)]
    assert ncrp.log_prob(shuffled, concentration, d) == pytest.approx(log_p)
    nodes = ncrp.expected_nodes(n, depth, concentration, d)
    assert (np.diff(nodes) >= -1e-9).all() and (nodes >= 1 - 1e-9).all() and (nodes <= n).all()


@some_examples
@given(st.integers(1, 12), st.floats(0.5, 8.0), st.floats(1.6, 8.0), seeds)
def test_multiplicative_gamma_draws(n, root, shrinkage, seed):
    delta, tau = multiplicative_gamma.sample(n, root, shrinkage, random_state=seed)
    assert delta.shape == tau.shape == (n,)
    np.testing.assert_allclose(tau, np.cumprod(delta))
    assert np.isfinite(multiplicative_gamma.log_prob(delta, root, shrinkage)).all()
    assert (np.diff(multiplicative_gamma.expected_log_precision(n, root, shrinkage)) > 0).all()


# -- arguments of any kind --------------------------------------------------------------------

# Small numbers of rows and layers, where the others may be anything: a law is a table.
FUNCTIONS = {
    "crp.sample": (crp.sample, 4),
    "crp.log_prob": (crp.log_prob, 4),
    "crp.log_prob_sizes": (crp.log_prob_sizes, 4),
    "crp.log_predictive": (crp.log_predictive, 4),
    "crp.expected_blocks": (crp.expected_blocks, 4),
    "crp.var_blocks": (crp.var_blocks, 4),
    "crp.pmf_blocks": (crp.pmf_blocks, 4),
    "crp.expected_block_sizes": (crp.expected_block_sizes, 4),
    "crp.stick_breaking": (crp.stick_breaking, 4),
    "crp.posterior_weights": (crp.posterior_weights, 4),
    "crp.concentration_for_expected_blocks": (crp.concentration_for_expected_blocks, 4),
    "crp.sample_concentration": (crp.sample_concentration, 5),
    "crp.sample_discount": (crp.sample_discount, 4),
    "ibp.sample": (ibp.sample, 4),
    "ibp.log_prob": (ibp.log_prob, 4),
    "ibp.log_predictive_existing": (ibp.log_predictive_existing, 4),
    "ibp.new_rate": (ibp.new_rate, 4),
    "ibp.expected_features": (ibp.expected_features, 4),
    "ibp.expected_features_of_size": (ibp.expected_features_of_size, 4),
    "cibp.expected_widths": (cibp.expected_widths, 4),
    "cibp.log_prob": (cibp.log_prob, 3),
    "icp.expected_hidden": (icp.expected_hidden, 3),
    "ncrp.sample": (ncrp.sample, 4),
    "ncrp.log_prob": (ncrp.log_prob, 3),
    "multiplicative_gamma.sample": (multiplicative_gamma.sample, 3),
    "multiplicative_gamma.log_prob": (multiplicative_gamma.log_prob, 3),
}
small = st.one_of(st.integers(-1, 6), wild.filter(lambda x: not _is_large(x)))


def _is_large(value):
    """Whether a number of rows would take long, by right: a loop over as many items."""
    return isinstance(value, (int, float)) and 10**4 < value < 2**31


@pytest.mark.parametrize("name", FUNCTIONS)
@some_examples
@given(data=st.data())
def test_any_arguments_give_numbers_or_an_error_in_words(name, data):
    function, n_arguments = FUNCTIONS[name]
    arguments = [data.draw(st.one_of(small, positive)) for _ in range(n_arguments)]
    try:
        found = function(*arguments)
    except (ValueError, TypeError) as error:
        assert str(error)
        return
    for part in found if isinstance(found, tuple) else (found,):
        assert not np.isnan(np.asarray(part, dtype=np.float64)).any()
