"""The compiled sampler against exact probabilities of tiny cases."""

from math import comb

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.special import gammaln
from scipy.stats import t

from checks.enumeration import canonical, set_partitions
from checks.infinite_factor_clusterer import make_moves
from checks.monte_carlo import z_score
from checks.proofs import proof
from skbnp.infinite_factor_clusterer._model import Prior, draw_joint
from skbnp.infinite_factor_clusterer._sampler import Sampler
from skbnp.laws import InverseGamma
from skbnp.likelihoods.sparse_loadings.layers import (
    log_inverse_gamma,
    log_links,
    log_normal,
    log_slab,
)


def log_marginal(x, shape, scale, precision=None, weight=None):
    """log density of a column whose variance, and mean if ``precision``, is integrated out."""
    weight = np.ones_like(x) if weight is None else weight
    n, total = len(x), weight.sum()
    squares, out = np.sum(weight * x**2), 0.5 * np.sum(np.log(weight))
    if precision is not None:
        squares -= np.sum(weight * x) ** 2 / (precision + total)
        out += 0.5 * np.log(precision / (precision + total))
    out += gammaln(shape + n / 2) - gammaln(shape) + shape * np.log(scale)
    return out - (shape + n / 2) * np.log(scale + squares / 2) - n / 2 * np.log(2 * np.pi)


def test_marginal_of_a_column():
    # M of equation (F5.1) against quadrature over (m, v).
    x, weight = np.array([0.3, -1.1, 0.8]), np.array([0.5, 1.3, 1.0])

    def density(m, v):
        return np.exp(
            np.sum(log_normal(x, m, v / weight))
            + log_normal(m, 0.0, v / 0.2)
            + log_inverse_gamma(v, 2.0, 1.0)
        )

    value = dblquad(density, 0, np.inf, -np.inf, np.inf, epsabs=1e-12, epsrel=1e-9)[0]
    assert np.log(value) == pytest.approx(log_marginal(x, 2.0, 1.0, 0.2, weight), abs=1e-7)


# Rows of all partitions of which the probabilities are known.
ROWS = np.array([[0.3, -0.2], [1.5, 0.4], [-0.1, 0.2], [-1.8, 0.9]])


def partition_probabilities(of_column, concentration=0.8):
    """Posterior of the 15 partitions of four rows, features independent given the partition.

    ``of_column(x, labels)`` is the log density of a feature given the partition.
    """
    logs = {}
    for labels in set_partitions(4):
        labels = np.array(labels)
        sizes = np.bincount(labels)
        logs[canonical(labels)] = (
            len(sizes) * np.log(concentration)
            + np.sum(gammaln(sizes))
            + sum(of_column(j, labels) for j in range(2))
        )
    top = max(logs.values())
    total = sum(np.exp(value - top) for value in logs.values())
    return {labels: np.exp(value - top) / total for labels, value in logs.items()}


def given_rates(rates):
    def of_column(j, labels):
        parts = [ROWS[labels == g, j] for g in np.unique(labels)]
        return sum(log_marginal(part, 2.0, rates[j]) for part in parts)

    return of_column


def test_partitions_of_the_specification():
    got = partition_probabilities(given_rates((0.3, 0.5)))
    assert len(got) == 15
    assert got[canonical([0, 0, 0, 0])] == pytest.approx(0.2493, abs=5e-5)
    assert got[canonical([0, 0, 0, 1])] == pytest.approx(0.0282, abs=5e-5)
    assert got[canonical([0, 0, 1, 0])] == pytest.approx(0.1554, abs=5e-5)


def sampled_rates(j, labels):
    """The same with h ~ Gamma(1, rate 5) integrated out."""

    def density(h):
        return 5.0 * np.exp(-5.0 * h + given_rates((h, h))(j, labels))

    return np.log(quad(density, 1e-6, np.inf, epsabs=0, epsrel=1e-9, limit=200)[0])


@proof(sweeps=(12_000, 120_000), seed=3, smoke="labels+energies")
@pytest.mark.parametrize(
    "moves", [("labels", "energies"), ("splits",), ("labels", "splits")], ids="+".join
)
def test_all_partitions_of_four_rows(moves, size, seed):
    # Null: long-run frequencies are the posterior probabilities; 15 figures, |z| < 4 on each.
    law = Prior(concentration=0.8, mass=1.0)
    rng = np.random.default_rng(0)
    while True:
        state, _ = draw_joint(law, 4, 2, rng)
        if state["loadings1"].shape[1] == 0:
            break
    sampler = Sampler(ROWS, law, state | {"filled": ROWS}, np.random.Philox(seed), n_split_merge=3)
    drawn = []
    for _ in range(size):
        for move in moves:
            make_moves(sampler, move)
        drawn.append(canonical(sampler.get_state()["label"]))
    for labels, probability in partition_probabilities(sampled_rates).items():
        hits = np.array([other == labels for other in drawn], dtype=float)
        assert abs(z_score(hits, probability)) < 4.0, labels


@proof(sweeps=(12_000, 120_000), seed=4)
def test_links_of_one_factor(size, seed):
    # One factor, two features: which of them have a link, loadings and slab variance integrated.
    law = Prior(mass=1.0, concentration=1.0)
    rng = np.random.default_rng(8)
    while True:
        state, X = draw_joint(law, 6, 2, rng)
        if state["loadings1"].shape[1] == 1 and len(state["score_mean"]) == 2:
            break
    y, z = state["scores1"][:, 0], state["label"]
    weight = 1 / state["noise_variance"][z]

    def evidence(links, slab):
        out = law.loading_variance.log_density(slab)
        for j in np.flatnonzero(links):
            precision = np.sum(weight[:, j] * y**2) + 1 / slab
            side = np.sum(weight[:, j] * X[:, j] * y)
            out += side**2 / (2 * precision) - 0.5 * np.log(precision * slab)
        return np.exp(out)

    kinds = [(1, 0), (0, 1), (1, 1)]
    mass = []
    for links in kinds:
        prior = np.exp(log_links(np.array(links, float)[:, np.newaxis], law.mass))
        area = quad(lambda slab, links=links: evidence(links, slab), 0, np.inf, limit=200)[0]
        mass.append(prior * area)
    expected = np.array(mass) / np.sum(mass)
    sampler = Sampler(X, law, state, np.random.Philox(seed))
    drawn = []
    for _ in range(size):
        sampler.sweep_only("loadings")
        drawn.append(tuple((sampler.get_state()["loadings1"][:, 0] != 0).astype(int)))
    assert expected.min() > 0.02
    for links, probability in zip(kinds, expected, strict=True):
        assert abs(z_score(np.array([d == links for d in drawn], float), probability)) < 4.0


@proof(sweeps=(12_000, 120_000), seed=6)
def test_prior_is_kept_without_data(size, seed):
    # All cells missing: K ~ Poisson(mass H_N), links N mass in the mean, clusters of the process.
    law = Prior(mass=1.2, concentration=0.9)
    n, p = 5, 3
    state, _ = draw_joint(law, n, p, np.random.default_rng(1))
    sampler = Sampler(np.full((n, p), np.nan), law, state, np.random.Philox(seed), n_births=2)
    factors, links, clusters, singletons = [], [], [], []
    for _ in range(size):
        sampler.sweep()
        state = sampler.get_state()
        counts = np.count_nonzero(state["loadings1"], axis=0)
        factors.append(len(counts))
        links.append(counts.sum())
        singletons.append(np.sum(counts == 1))
        clusters.append(len(state["score_mean"]))
    harmonic = sum(1 / i for i in range(1, p + 1))
    assert abs(z_score(np.array(factors, float), 1.2 * harmonic)) < 4.0
    assert abs(z_score(np.array(factors, float) ** 2, (1.2 * harmonic) ** 2 + 1.2 * harmonic)) < 4.0
    assert abs(z_score(np.array(links, float), 1.2 * p)) < 4.0
    assert abs(z_score(np.array(singletons, float), 1.2)) < 4.0
    expected = sum(0.9 / (0.9 + i) for i in range(n))
    assert abs(z_score(np.array(clusters, float), expected)) < 4.0


def test_links_sum_over_columns():
    # lambda_m = mass (N - m)! (m - 1)! / N!: all columns together have mass H_N, equation (D1.3).
    n, mass = 16, 3.0
    rates = [
        comb(n, m) * mass * np.exp(gammaln(n - m + 1) + gammaln(m) - gammaln(n + 1))
        for m in range(1, n + 1)
    ]
    assert sum(rates) == pytest.approx(10.142187, abs=1e-6)
    one = log_links(np.eye(n)[:, :1], mass) - log_links(np.zeros((n, 0)), mass)
    assert np.exp(one) == pytest.approx(rates[0] / n)


def test_slab_is_a_t_law():
    # Equation (D3.1): the law of a loading given the others of its factor.
    others, w = np.array([0.3, -1.2, 0.7]), 2.5
    a, b = 2.0, 1.0
    full = log_slab(np.append(others, w)[:, np.newaxis], InverseGamma(a, b))
    conditional = full - log_slab(others[:, np.newaxis], InverseGamma(a, b))
    df = 2 * a + 3
    scale = np.sqrt((2 * b + np.sum(others**2)) / df)
    assert conditional == pytest.approx(t.logpdf(w, df, scale=scale), abs=1e-10)
    assert np.exp(conditional) == pytest.approx(0.01193, abs=5e-6)
