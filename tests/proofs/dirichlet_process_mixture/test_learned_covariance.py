"""Covariances that learn from one another: enumeration and joint-distribution tests.

Null: every update leaves p(Lam, delta, kappa0 | partition, X) alone, and the whole sweep the joint
law. |z| < 4 on each statistic: false alarm 6e-5 each. Every named wrong formula must be seen.
"""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import gamma, wishart

from checks.dirichlet_process_mixture import learned_prior, make_sampler, sampler_at
from checks.enumeration import set_partitions
from checks.joint_distribution import (
    assert_z_scores_small,
    paired_one_step,
    successive_conditional,
)
from checks.mixture_priors import learning_prior
from checks.monte_carlo import mcse_mean, z_score
from checks.proofs import proof, record
from skbnp.dirichlet_process_mixture import _model
from skbnp.dirichlet_process_mixture.moves.hyperparameters import LearnCovariance
from skbnp.laws import Gamma

N, D = 12, 2
KINDS = ["full", "diag", "spherical"]


def statistics(sampler):
    scalars = sampler.scalars()
    delta, kappa0 = np.log2(scalars["degrees_of_freedom"]), np.log2(scalars["mean_precision"])
    size, k = scalars["log_det_covariance"], scalars["n_clusters"]
    spread = np.log(np.nanmean(sampler.completed_data()[:, :D] ** 2))
    return {
        "clusters": k,
        "largest cluster": scalars["largest_cluster"],
        "first two rows together": float(sampler.labels[0] == sampler.labels[1]),
        "size": size,
        "size x clusters": size * k,
        "size x spread": size * spread,
        "degrees": delta,
        "degrees x size": delta * size,
        "degrees x spread": delta * spread,
        "degrees small": float(delta < 4),
        "kappa0": kappa0,
        "kappa0 x spread": kappa0 * spread,
        "log joint": sampler.log_joint(),
    }


def data_statistics(sampler):
    """The same and functions of X, for tests in which X changes."""
    X = sampler.completed_data()
    return statistics(sampler) | {
        "mean of tanh": float(np.nanmean(np.tanh(X))),
        "mean of tanh X1 tanh X2": float(np.nanmean(np.tanh(X[:, 0]) * np.tanh(X[:, 1]))),
        "log mean square": float(np.log(np.nanmean(X**2))),
    }


class Repeated:
    """A sampler whose sweep is one update, several times."""

    def __init__(self, sampler, move, n):
        self._sampler, self._move, self._n = sampler, move, n

    def sweep(self):
        for _ in range(self._n):
            self._sampler.sweep_only(self._move)

    def __getattr__(self, name):
        return getattr(self._sampler, name)


def joint_draw(prior, holes=0.0, n=N, move=None, repeats=1, **options):
    missing = np.random.default_rng(5).random((n, prior.n_features)) < holes

    def make(rng):
        state, X = _model.draw_joint(prior, n, rng)
        sampler = sampler_at(prior, state, X, missing, seed=int(rng.integers(2**62)), **options)
        return Repeated(sampler, move, repeats) if move else sampler

    return make


# -- enumeration ------------------------------------------------------------------------------

ROWS = np.array([[-1.1, 0.2], [-0.8, -0.4], [0.1, 0.9], [0.9, 1.2], [1.3, 0.7]])


def log_blocks(X, mean, kappa0, degrees, lam):
    """log m of every set of rows under single variances: dict from mask to the shape of lam."""
    out = {}
    for mask in range(1, 2 ** len(X)):
        x = X[[bool(mask >> i & 1) for i in range(len(X))]]
        n = x.shape[0]
        off = x.mean(axis=0) - mean
        gain = ((x - x.mean(axis=0)) ** 2).sum(axis=0) + kappa0 * n / (kappa0 + n) * off**2
        out[mask] = n, gain
    return {
        mask: (
            -n / 2 * np.log(2 * np.pi) + 0.5 * np.log(kappa0 / (kappa0 + n)),
            n,
            gain,
        )
        for mask, (n, gain) in out.items()
    }


def one_variance(power, n, gain, degrees, lam):
    """log of a block's integral over a variance of n cells, for every lam; ``power`` is added."""
    a, b = (degrees + 2) / 2, degrees * lam / 2
    return (
        power + gammaln(a + n / 2) - gammaln(a) + a * np.log(b) - (a + n / 2) * np.log(b + gain / 2)
    )


def exact_single_variances(kind, X, prior, partitions):
    """log p(X, partition) with lam, delta and kappa0 integrated out: quadrature over log lam."""
    part = prior.gaussian
    d = X.shape[1]
    log_lam = np.linspace(-14.0, 7.0, 400)
    lam, step = np.exp(log_lam), log_lam[1] - log_lam[0]
    guess = np.atleast_1d(part.covariance if kind != "full" else part.covariance[0])
    weight = [gamma.logpdf(lam, 1.5, scale=r / 1.5) + log_lam + np.log(step) for r in guess]
    total = np.full((len(partitions), 0), 0.0)
    for degrees, kappa0 in product(part.degrees_grid, part.mean_precision_grid):
        blocks = log_blocks(X, part.mean, kappa0, degrees, lam)
        if kind == "spherical":
            value = {
                mask: one_variance(d * power, d * n, gain.sum(), degrees, lam)[None]
                for mask, (power, n, gain) in blocks.items()
            }
        else:
            value = {
                mask: np.array([one_variance(power, n, g, degrees, lam) for g in gain])
                for mask, (power, n, gain) in blocks.items()
            }
        column = [
            sum(
                logsumexp(sum(value[mask][j] for mask in masks) + weight[j])
                for j in range(len(weight))
            )
            for masks in partitions
        ]
        total = np.column_stack([total, column])
    return logsumexp(total, axis=1) - np.log(total.shape[1])


def masks_of(label):
    return [sum(1 << i for i, c in enumerate(label) if c == k) for k in set(label)]


def sampled_partitions(prior, X, n_sweeps, seed, **options):
    sampler = make_sampler(X, prior, np.zeros(len(X), dtype=int), seed=seed, **options)
    trace = np.empty(n_sweeps)
    for t in range(n_sweeps):
        sampler.sweep()
        trace[t] = sampler.n_clusters
    return trace


@proof(sweeps=(20_000, 200_000), seed=1)
@pytest.mark.parametrize(
    "kind, columns, options",
    [
        ("full", 1, {}),
        ("full", 1, {"algorithm": "parallel", "n_subset": 2}),
        ("diag", 2, {}),
        ("spherical", 2, {}),
        ("spherical", 2, {"algorithm": "parallel", "n_subset": 2}),
    ],
)
def test_enumeration_with_hyperparameters_integrated(kind, columns, options, size, seed):
    X = ROWS[:, :columns]
    guess = {"full": np.eye(1), "diag": np.ones(2), "spherical": np.array(1.0)}[kind]
    prior = learned_prior(kind, np.zeros(columns), guess, concentration=1.0)
    partitions = list(set_partitions(len(X)))
    log_p = exact_single_variances(kind, X, prior, [masks_of(label) for label in partitions])
    log_p += [_model.log_eppf(np.bincount(label), 1.0, 0.0) for label in partitions]
    p = np.exp(log_p - logsumexp(log_p))
    n_blocks = np.array([max(label) + 1 for label in partitions])
    trace = sampled_partitions(prior, X, size, seed, **options)
    for k in range(1, 6):
        expected = p[n_blocks == k].sum()
        assert abs(z_score((trace == k).astype(float), expected)) < 4, k


@proof(sweeps=(20_000, 200_000), seed=1)
def test_enumeration_of_matrices(size, seed):
    """Two columns: Lam, delta and kappa0 integrated out by draws from the prior."""
    prior = learned_prior(
        "full", np.zeros(2), np.array([[1.0, 0.3], [0.3, 1.0]]), concentration=1.0
    )
    part, n_draws, n_batches = prior.gaussian, 40_000, 40
    rng = np.random.default_rng(4)
    lam = wishart.rvs(4, np.asarray(part.covariance) / 4, size=n_draws, random_state=rng)
    degrees = rng.choice(part.degrees_grid, n_draws)
    kappa0 = rng.choice(part.mean_precision_grid, n_draws)
    nu = degrees + 3
    psi0 = degrees[:, None, None] * lam
    log_m = {}
    for mask in range(1, 2 ** len(ROWS)):
        x = ROWS[[bool(mask >> i & 1) for i in range(len(ROWS))]]
        n, center = len(x), x.mean(axis=0)
        shift = (kappa0 * n / (kappa0 + n))[:, None, None] * np.outer(center, center)
        psi = psi0 + (x - center).T @ (x - center) + shift
        log_m[mask] = (
            -n * np.log(np.pi)
            + sum(gammaln((nu + n - j) / 2) - gammaln((nu - j) / 2) for j in range(2))
            + nu / 2 * np.log(np.linalg.det(psi0))
            - (nu + n) / 2 * np.log(np.linalg.det(psi))
            + np.log(kappa0 / (kappa0 + n))
        )
    partitions = list(set_partitions(len(ROWS)))
    eppf = [_model.log_eppf(np.bincount(label), 1.0, 0.0) for label in partitions]
    likelihood = np.array(
        [
            e + sum(log_m[mask] for mask in masks_of(label))
            for e, label in zip(eppf, partitions, strict=True)
        ]
    )
    level = likelihood.max()
    by_batch = np.exp(likelihood - level).reshape(len(partitions), n_batches, -1).mean(axis=2)
    n_blocks = np.array([max(label) + 1 for label in partitions])
    mean = by_batch.mean(axis=1)
    trace = sampled_partitions(prior, ROWS, size, seed)
    for k in range(1, 6):
        expected = mean[n_blocks == k].sum() / mean.sum()
        # The ratio's error, from batches.
        off = by_batch[n_blocks == k].sum(axis=0) - expected * by_batch.sum(axis=0)
        error = off.std(ddof=1) / np.sqrt(n_batches) / mean.sum()
        spread = np.hypot(error, mcse_mean((trace == k).astype(float)))
        assert error < 0.01
        assert abs(record(((trace == k).mean() - expected) / spread)) < 4, k


# -- joint distribution -----------------------------------------------------------------------

CONFIGURATIONS = {
    **{kind: ({"kind": kind}, {}) for kind in KINDS},
    **{f"{kind}, holes": ({"kind": kind}, {"holes": 0.25}) for kind in KINDS},
    **{f"{kind}, mixed": ({"kind": kind, "mixed": True}, {"holes": 0.1}) for kind in KINDS},
    **{
        f"{kind}, parallel": ({"kind": kind}, {"algorithm": "parallel", "n_subset": 3})
        for kind in KINDS
    },
    "full, parallel, holes": (
        {"kind": "full"},
        {"algorithm": "parallel", "n_subset": 3, "holes": 0.25},
    ),
    "full, finite": ({"kind": "full", "discount": 0.0, "n_components": 3}, {}),
    "full, plain gibbs": (
        {"kind": "full", "discount": 0.0, "n_components": 3},
        {"algorithm": "gibbs", "holes": 0.25},
    ),
    "diag, plain gibbs": (
        {"kind": "diag", "discount": 0.0, "n_components": 3},
        {"algorithm": "gibbs"},
    ),
    "full, kappa0 fixed": ({"kind": "full", "mean_precision": 0.125}, {}),
}


def moving(name, z_of):
    """Without the statistics that the configuration holds fixed."""
    if "kappa0 fixed" not in name:
        return z_of
    return lambda sampler: {k: v for k, v in z_of(sampler).items() if "kappa0" not in k}


@proof(pairs=(500, 40_000, 10_000), seed=(1, 6), smoke=("full", "full, parallel, holes"))
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_default_sweep_paired(name, size, seed):
    prior, options = CONFIGURATIONS[name]
    make = joint_draw(learning_prior(**prior), **options)
    assert_z_scores_small(paired_one_step(make, moving(name, statistics), size, seed=seed))


@proof(pairs=(2000, 40_000), seed=2)
@pytest.mark.parametrize("algorithm", ["collapsed", "parallel"])
def test_default_sweep_paired_many_clusters(algorithm, size, seed):
    prior = learning_prior("full", concentration=Gamma(40.0, 2.0), discount=0.0)
    make = joint_draw(prior, n=40, algorithm=algorithm, n_subset=5)
    assert np.mean([make(np.random.default_rng(t)).n_clusters for t in range(20)]) > 8
    assert_z_scores_small(paired_one_step(make, statistics, size, seed=seed))


MOVES = {
    "covariance": ("size", "degrees x size", "log joint"),
    "degrees_of_freedom": ("degrees", "log joint"),
    "degrees_and_size": ("size", "degrees", "log joint"),
    "covariance_size": ("size", "degrees x size", "log joint"),
    "mean_precision": ("kappa0", "log joint"),
    "learned_covariance": ("size", "degrees", "kappa0", "log joint"),
}


def touched_by(move):
    return lambda sampler: {
        k: v for k, v in statistics(sampler).items() if k.startswith(MOVES[move])
    }


def test_all_updates_are_tested():
    assert set(LearnCovariance.STEPS) | {"learned_covariance"} == set(MOVES)


@proof(pairs=(3000, 10_000), seed=3)
@pytest.mark.parametrize("move, kind", list(product(MOVES, KINDS)))
def test_each_update_alone_paired(move, kind, size, seed):
    make = joint_draw(learning_prior(kind), move=move, repeats=5)
    assert_z_scores_small(paired_one_step(make, touched_by(move), size, seed=seed))


@proof(pairs=(400, 4000), seed=7)
def test_covariance_of_more_blocks_than_are_summed_at_once(size, seed):
    prior = learning_prior("full", concentration=Gamma(4000.0, 2.0), discount=0.0)
    make = joint_draw(prior, n=200, move="covariance", repeats=5)
    assert np.mean([make(np.random.default_rng(t)).n_clusters for t in range(5)]) > 150
    assert_z_scores_small(paired_one_step(make, touched_by("covariance"), size, seed=seed))


@proof(seed=4, wrong=True)
@pytest.mark.parametrize(
    "fault, move, kind",
    [
        (fault, move, kind)
        for (fault, move), kind in product(
            [
                ("covariance_without_degrees", "covariance"),
                ("degrees_without_determinant", "degrees_of_freedom"),
                ("size_without_jacobian", "degrees_and_size"),
                ("size_without_jacobian", "covariance_size"),
                ("mean_precision_without_power", "mean_precision"),
            ],
            KINDS,
        )
    ],
)
def test_a_wrong_formula_is_noticed(fault, move, kind, seed):
    repeats = {"covariance_size": 40, "degrees_and_size": 200}.get(move, 1)
    make = joint_draw(learning_prior(kind), move=move, repeats=repeats, fault=fault)
    z = paired_one_step(make, touched_by(move), 1500, seed=seed)
    assert max(map(abs, z.values())) > 6, z


@proof(draws=(8000, 30_000), seed=5)
@pytest.mark.parametrize(
    "name", ["full, holes", "diag", "full, parallel, holes", "full, plain gibbs"]
)
def test_default_sweep_successive(name, size, seed):
    prior, options = CONFIGURATIONS[name]
    make = joint_draw(learning_prior(**prior), **options)
    assert_z_scores_small(successive_conditional(make, data_statistics, size, thin=2, seed=seed))
