"""The split-merge kernels on four rows: the exact transition matrix against compiled steps."""

from itertools import permutations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln
from scipy.stats import chi2, norm

from checks.dirichlet_process_mixture import UNSCALED, gaussian_prior, make_sampler
from checks.enumeration import canonical, set_partitions
from checks.proofs import proof, record
from skbnp.dirichlet_process_mixture import _model
from skbnp.laws import ShiftedBetaNegativeBinomial
from skbnp.processes import mfm

X = np.array([[-1.0, -0.7], [-0.6, -1.1], [0.9, 0.8], [1.3, 0.4]])
PARTITIONS = list(set_partitions(4))
LAW = ShiftedBetaNegativeBinomial(2.0, 2.0, 4.0)
FAMILIES = {
    "dirichlet process": {"concentration": 1.0},
    "pitman-yor": {"concentration": 0.5, "discount": 0.4},
    "finite": {"concentration": 1.5, "n_components": 3},
    "finite mixtures": {"concentration": 0.6, "n_components": LAW},
}


def prior_of(family):
    return gaussian_prior(
        "full", np.zeros(2), 0.2, 4.0, np.eye(2), prior_scale=1.0, **FAMILIES[family]
    )


def discount_of(prior):
    if prior.components_law:
        return -prior.concentration
    return -prior.concentration / prior.n_components if prior.n_components else prior.discount


def chance_of_first(prior, a, b, row):
    """Probability that a row joins block a rather than b."""
    discount = discount_of(prior)
    weight = [
        (len(block) - discount)
        * np.exp(
            _model.log_marginal(X[[*block, row]], prior, UNSCALED)
            - _model.log_marginal(X[block], prior, UNSCALED)
        )
        for block in (a, b)
    ]
    return weight[0] / sum(weight)


def sequential(prior, i, j, others):
    """Every order of the others: (its probability, [(block of i, block of j, probability)])."""
    orders = list(permutations(others))
    for order in orders:
        ways = [([i], [j], 1.0)]
        for row in order:
            longer = []
            for a, b, p in ways:
                q = chance_of_first(prior, a, b, row)
                longer += [([*a, row], b, p * q), (a, [*b, row], p * (1 - q))]
            ways = longer
        yield 1 / len(orders), ways


def restricted_gibbs(prior, i, j, others, n_scans=5):
    """The same for every state of the others before the last scan."""
    states = list(product([0, 1], repeat=len(others)))

    def blocks(state, without=None):
        sides = [[i], [j]]
        for row, side in zip(others, state, strict=True):
            if row != without:
                sides[side].append(row)
        return sides

    def scan(state):
        """Probability of every state after a scan."""
        p = {state: 1.0}
        for t, row in enumerate(others):
            after = {}
            for s, weight in p.items():
                q = chance_of_first(prior, *blocks(s, row), row)
                for side, chance in enumerate((q, 1 - q)):
                    new = (*s[:t], side, *s[t + 1 :])
                    after[new] = after.get(new, 0.0) + weight * chance
            p = after
        return p

    step = {state: scan(state) for state in states}
    launch = dict.fromkeys(states, 1 / len(states))
    for _ in range(n_scans):
        launch = {s: sum(launch[r] * step[r].get(s, 0.0) for r in states) for s in states}
    for state in states:
        yield launch[state], [(*blocks(s), q) for s, q in step[state].items()]


DIVISIONS = {"sequential": sequential, "restricted_gibbs": restricted_gibbs}


def log_ratio(prior, a, b, n_merged, log_q):
    """log r of equation (M4.3)."""
    discount = discount_of(prior)

    def rising(n):
        return gammaln(n - discount) - gammaln(1 - discount)

    if prior.components_law:
        law = (len(X), prior.concentration, prior.components_law)
        merged, split = mfm.log_coefficient([n_merged, n_merged + 1], *law)
        log_opening = np.log(prior.concentration) + split - merged
    else:
        opening = max(prior.concentration + discount * n_merged, 0.0)
        if opening < 1e-12:
            return -np.inf
        log_opening = np.log(opening)
    return (
        log_opening
        + rising(len(a))
        + rising(len(b))
        - rising(len(a) + len(b))
        + _model.log_marginal(X[a], prior, UNSCALED)
        + _model.log_marginal(X[b], prior, UNSCALED)
        - _model.log_marginal(X[a + b], prior, UNSCALED)
        - log_q
    )


def transition_matrix(prior, division="sequential"):
    """All random choices enumerated: ordered pairs, auxiliary draws, divisions."""
    index = {label: t for t, label in enumerate(PARTITIONS)}
    P = np.zeros((15, 15))
    for s, label in enumerate(PARTITIONS):
        n_blocks = max(label) + 1
        for i, j in permutations(range(4), 2):
            others = [t for t in range(4) if t not in (i, j) and label[t] in (label[i], label[j])]
            for p_auxiliary, ways in DIVISIONS[division](prior, i, j, others):
                for a, b, q in ways:
                    if q == 0:
                        continue
                    new = list(label)
                    if label[i] == label[j]:
                        for t in b:
                            new[t] = n_blocks
                        r = np.exp(min(0.0, log_ratio(prior, a, b, n_blocks, np.log(q))))
                        weight = p_auxiliary * q
                    else:
                        if any(label[t] != label[i] for t in a) or any(
                            label[t] != label[j] for t in b
                        ):
                            continue  # the forced pass takes the present labels alone
                        for t in b:
                            new[t] = label[i]
                        r = np.exp(min(0.0, -log_ratio(prior, a, b, n_blocks - 1, np.log(q))))
                        weight = p_auxiliary
                    P[s, index[canonical(new)]] += weight * r / 12
                    P[s, s] += weight * (1 - r) / 12
    return P


def exact(prior):
    log_p = [
        _model.log_joint(
            {
                "label": label,
                "concentration": prior.concentration,
                "discount": prior.discount,
                "prior_scale": 1.0,
            },
            X,
            prior,
        )
        for label in PARTITIONS
    ]
    p = np.exp(np.array(log_p) - np.nanmax(log_p))
    p[~np.isfinite(p)] = 0
    return p / p.sum()


@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("family", FAMILIES)
def test_matrix_leaves_the_posterior_alone(family, division):
    prior = prior_of(family)
    P, p = transition_matrix(prior, division), exact(prior)
    assert_allclose(P.sum(axis=1), 1, atol=1e-14)
    assert_allclose(p @ P, p, atol=1e-14)
    flow = p[:, None] * P
    assert_allclose(flow, flow.T, atol=1e-14)


def p_value(family, n_steps, seed, division="sequential", fault="none"):
    """Chi-square of the compiled kernel's steps from every partition against the exact matrix."""
    prior = prior_of(family)
    P, p = transition_matrix(prior, division), exact(prior)
    total = degrees = 0
    for s, label in enumerate(PARTITIONS):
        if p[s] == 0:
            continue
        sampler = make_sampler(
            X, prior, label, seed=15 * seed + s, fault=fault, n_split_merge=1, split_merge=division
        )
        start = sampler.get_state()
        counts = np.zeros(15)
        for _ in range(n_steps):
            bits = sampler.get_state()["bit_generator"]
            sampler.set_state({**start, "bit_generator": bits})
            sampler.sweep_only("split_merge")
            counts[PARTITIONS.index(canonical(sampler.labels.tolist()))] += 1
        expected = n_steps * P[s]
        assert counts[expected < 1e-10].sum() == 0
        common = expected > 5
        rare_counts, rare = counts[~common].sum(), expected[~common].sum()
        total += np.sum((counts[common] - expected[common]) ** 2 / expected[common])
        total += (rare_counts - rare) ** 2 / rare if rare > 1 else 0.0
        degrees += common.sum() - 1 + (rare > 1)
    p = chi2.sf(total, degrees)
    record(norm.isf(max(p, 1e-300) / 2))
    return p


@proof(steps=(500, 40_000), seed=(0, 1))
@pytest.mark.parametrize("family, division", list(product(FAMILIES, DIVISIONS)))
def test_compiled_steps_follow_the_matrix(family, division, size, seed):
    """False alarm 6e-5, as |z| < 4."""
    assert p_value(family, size, seed, division) > 6e-5


@proof(seed=0, wrong=True)
def test_a_wrong_count_of_blocks_is_noticed(seed):
    assert p_value("pitman-yor", 4000, seed, fault="split_state_count") < 1e-6


@proof(seed=0, wrong=True)
def test_a_scan_left_out_of_the_ratio_is_noticed(seed):
    assert p_value("pitman-yor", 4000, seed, "restricted_gibbs", "uncounted_scan") < 1e-6


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="split_merge must be one of"):
        make_sampler(X, prior_of("finite"), np.zeros(4, int), split_merge="random")
