"""Covariances that learn from one another: the log joint, enumeration, joint-distribution tests.

Null: every update leaves p(Lam, delta, kappa0 | partition, X) alone, and the whole sweep the joint
law. |z| < 4 on each statistic: false alarm 6e-5 each. Every named wrong formula must be seen.
"""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import gammaln, logsumexp
from scipy.stats import gamma, wishart

from checks.dirichlet_process_mixture import learned_prior, make_sampler, sampler_at, state_of
from checks.enumeration import set_partitions
from checks.joint_distribution import (
    assert_z_scores_small,
    paired_one_step,
    successive_conditional,
)
from checks.monte_carlo import mcse_mean
from checks.proofs import proof
from checks.slow import slow_where
from skbnp import DirichletProcessMixture
from skbnp.dirichlet_process_mixture import _model
from skbnp.dirichlet_process_mixture.moves.hyperparameters import LearnCovariance

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N, D = 12, 2
KINDS = ["full", "diag", "spherical"]
GUESS = {
    "full": np.array([[1.0, 0.4], [0.4, 0.8]]),
    "diag": np.array([1.0, 0.6]),
    "spherical": np.array(0.8),
}


def prior_of(kind, mean_precision=None, mixed=False, **changes):
    defaults = {
        "concentration": None,
        "concentration_prior": (2.0, 2.0),
        "discount": None,
        "discount_prior": (2.0, 4.0),
    }
    prior = learned_prior(
        kind, np.array([0.3, -0.2]), GUESS[kind], mean_precision, **(defaults | changes)
    )
    if not mixed:
        return prior
    levels = _model.CategoricalPrior(np.array([2]), (np.array([0.5, 0.5, 1.0]),))
    return _model.Prior((*prior.parts, levels), **(defaults | changes))


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


# -- the log joint ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind, mixed", list(product(KINDS, [False, True])))
def test_log_joint_is_the_reference(kind, mixed):
    prior, rng = prior_of(kind, mixed=mixed), np.random.default_rng(0)
    for _ in range(3):
        state, X = _model.draw_joint(prior, N, rng)
        sampler = sampler_at(prior, state, X)
        assert_allclose(sampler.log_joint(), _model.log_joint(state, X, prior), rtol=1e-10)
        for _ in range(20):
            sampler.sweep()
        now = state_of(sampler)
        assert_allclose(sampler.log_joint(), _model.log_joint(now, X, prior), rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_prior_of_the_covariance_is_scipys(kind):
    prior = prior_of(kind)
    part, state = prior.gaussian, prior.gaussian.draw_base(np.random.default_rng(1))
    uniform = -np.log(len(part.degrees_grid) * len(part.mean_precision_grid))
    if kind == "full":
        expected = wishart.logpdf(state["covariance"], D + 2, GUESS[kind] / (D + 2))
    else:
        scale = np.atleast_1d(GUESS[kind]) / 1.5
        expected = gamma.logpdf(state["covariance"], 1.5, scale=scale).sum()
    assert_allclose(part.log_base(state), expected + uniform, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_trace_is_the_reference_in_units_of_x(kind):
    """The density of the hyperparameters is in standardised units, that of X in its own."""
    X = np.random.default_rng(5).normal(size=(30, 2)) * [1e-3, 1e4] + [0, -2e4]
    options = dict(n_chains=1, n_warmup=5, n_draws=5, random_state=0)
    dpm = DirichletProcessMixture(covariance_type=kind, **options).fit(X)
    standard, jacobian = (
        (X - dpm._units.center) / dpm._units.scale,
        30 * np.log(dpm._units.scale).sum(),
    )
    for t in range(5):
        expected = _model.log_joint(dpm.posterior_[0, t], standard, dpm._prior) - jacobian
        assert_allclose(dpm.posterior_.traces["log_joint"][0, t], expected, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_columns_without_a_spread_of_their_own(kind):
    """Clusters constant in a column draw the common covariance to 0: it stays above a floor."""
    rng = np.random.default_rng(6)
    X = np.column_stack([rng.integers(2, size=60), rng.normal(size=60)]).astype(float)
    X = np.column_stack([X, X[:, 1]])
    dpm = DirichletProcessMixture(
        covariance_type=kind, n_chains=2, n_warmup=200, n_draws=50, random_state=0
    ).fit(X)
    part, lowest = dpm._prior.gaussian, []
    for t in range(50):
        lam = dpm.posterior_[0, t]["covariance"]
        if kind == "full":
            lam = np.linalg.eigvals(np.linalg.solve(part.covariance, lam)).real
        lowest.append(np.min(lam))
    assert min(lowest) > 2.0**-24
    assert np.isfinite(dpm.score_samples(X)).all()
    assert np.isfinite(dpm.posterior_.traces["log_joint"]).all()


@pytest.mark.parametrize("kind, mean_precision", [*product(KINDS, [None]), ("full", 0.125)])
def test_slots_follow_the_prior(kind, mean_precision):
    """After many updates the running statistics are those of slots built from their rows."""
    prior, rng = prior_of(kind, mean_precision), np.random.default_rng(2)
    state, X = _model.draw_joint(prior, 30, rng)
    sampler = sampler_at(prior, state, X, n_split_merge=0)
    for _ in range(49):  # the sweep after this one builds them anew
        sampler.sweep()
    draw = sampler.draw()
    start = {key: value for key, value in draw.items() if key in prior.start()}
    anew = make_sampler(X, prior, sampler.labels, **start).draw()
    order = [np.flatnonzero(sampler.labels == k)[0] for k in range(sampler.n_clusters)]
    places = [*(anew["label"][i] for i in order), sampler.n_clusters]
    for name in ("mean", "factor", "rate"):
        if name in draw:
            assert_allclose(draw[name], anew[name][places], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_is_restored_bit_for_bit(kind):
    prior = prior_of(kind, mixed=True)
    state, X = _model.draw_joint(prior, N, np.random.default_rng(3))
    sampler = sampler_at(prior, state, X)
    for _ in range(7):
        sampler.sweep()
    other = make_sampler(X, prior, np.zeros(N, dtype=int))
    other.set_state(sampler.get_state())
    for _ in range(5):
        sampler.sweep()
        other.sweep()
    assert sampler.log_joint() == other.log_joint()
    assert sampler.acceptance() == other.acceptance()
    assert_array_equal(sampler.labels, other.labels)


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


def sampled_partitions(prior, X, n_sweeps, **options):
    sampler = make_sampler(X, prior, np.zeros(len(X), dtype=int), seed=1, **options)
    trace = np.empty(n_sweeps)
    for t in range(n_sweeps):
        sampler.sweep()
        trace[t] = sampler.n_clusters
    return trace


@pytest.mark.parametrize(
    "kind, columns, options",
    slow_where(
        [
            ("full", 1, {}),
            ("full", 1, {"algorithm": "parallel", "n_subset": 2}),
            ("diag", 2, {}),
            ("spherical", 2, {}),
            ("spherical", 2, {"algorithm": "parallel", "n_subset": 2}),
        ],
        lambda case: bool(case[2]),
    ),
)
def test_enumeration_with_hyperparameters_integrated(kind, columns, options):
    X = ROWS[:, :columns]
    guess = {"full": np.eye(1), "diag": np.ones(2), "spherical": np.array(1.0)}[kind]
    prior = learned_prior(kind, np.zeros(columns), guess, concentration=1.0)
    partitions = list(set_partitions(len(X)))
    log_p = exact_single_variances(kind, X, prior, [masks_of(label) for label in partitions])
    log_p += [_model.log_eppf(np.bincount(label), 1.0, 0.0) for label in partitions]
    p = np.exp(log_p - logsumexp(log_p))
    n_blocks = np.array([max(label) + 1 for label in partitions])
    trace = sampled_partitions(prior, X, 20_000, **options)
    for k in range(1, 6):
        expected = p[n_blocks == k].sum()
        assert abs((trace == k).mean() - expected) < 4 * mcse_mean((trace == k).astype(float)), k


def test_enumeration_of_matrices():
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
    trace = sampled_partitions(prior, ROWS, 20_000)
    for k in range(1, 6):
        expected = mean[n_blocks == k].sum() / mean.sum()
        # The ratio's error, from batches.
        off = by_batch[n_blocks == k].sum(axis=0) - expected * by_batch.sum(axis=0)
        error = off.std(ddof=1) / np.sqrt(n_batches) / mean.sum()
        spread = np.hypot(error, mcse_mean((trace == k).astype(float)))
        assert error < 0.01 and abs((trace == k).mean() - expected) < 4 * spread, k


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
# What these have, others have one by one.
COMBINED = {
    "full, parallel",
    "diag, holes",
    "diag, mixed",
    "spherical, mixed",
    "diag, parallel",
    "spherical, holes",
    "spherical, parallel",
    "full, finite",
    "diag, plain gibbs",
    "full, kappa0 fixed",
}


def moving(name, z_of):
    """Without the statistics that the configuration holds fixed."""
    if "kappa0 fixed" not in name:
        return z_of
    return lambda sampler: {k: v for k, v in z_of(sampler).items() if "kappa0" not in k}


@proof(pairs=(3000, 50_000), seed=(1, 6), smoke=("full", "full, parallel, holes"))
@pytest.mark.parametrize("name", slow_where(CONFIGURATIONS, COMBINED.__contains__))
def test_default_sweep_paired(name, size, seed):
    prior, options = CONFIGURATIONS[name]
    make = joint_draw(prior_of(**prior), **options)
    assert_z_scores_small(paired_one_step(make, moving(name, statistics), size, seed=seed))


@proof(pairs=(2000, 40_000), seed=2)
@pytest.mark.parametrize(
    "algorithm", ["collapsed", pytest.param("parallel", marks=pytest.mark.slow)]
)
def test_default_sweep_paired_many_clusters(algorithm, size, seed):
    prior = prior_of("full", concentration_prior=(40.0, 2.0), discount=0.0)
    make = joint_draw(prior, n=40, algorithm=algorithm, n_subset=5)
    assert np.mean([make(np.random.default_rng(t)).n_clusters for t in range(20)]) > 8
    assert_z_scores_small(paired_one_step(make, statistics, size, seed=seed))


MOVES = {
    "covariance": ("size", "degrees x size", "log joint"),
    "degrees_of_freedom": ("degrees", "log joint"),
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


@proof(pairs=(3000, 40_000), seed=3)
@pytest.mark.parametrize(
    "move, kind", slow_where(product(MOVES, KINDS), lambda case: case[0] == "learned_covariance")
)
def test_each_update_alone_paired(move, kind, size, seed):
    make = joint_draw(prior_of(kind), move=move, repeats=5)
    assert_z_scores_small(paired_one_step(make, touched_by(move), size, seed=seed))


@proof(pairs=(400, 4000), seed=7)
def test_covariance_of_more_blocks_than_are_summed_at_once(size, seed):
    prior = prior_of("full", concentration_prior=(4000.0, 2.0), discount=0.0)
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
                ("size_without_jacobian", "covariance_size"),
                ("mean_precision_without_power", "mean_precision"),
            ],
            KINDS,
        )
    ],
)
def test_a_wrong_formula_is_noticed(fault, move, kind, seed):
    repeats = 40 if move == "covariance_size" else 1
    make = joint_draw(prior_of(kind), move=move, repeats=repeats, fault=fault)
    z = paired_one_step(make, touched_by(move), 1500, seed=seed)
    assert max(map(abs, z.values())) > 6, z


@proof(draws=(8000, 50_000), seed=5)
@pytest.mark.parametrize(
    "name",
    slow_where(
        ["full, holes", "diag", "full, parallel, holes", "full, plain gibbs"],
        lambda name: name != "full, holes",
    ),
)
def test_default_sweep_successive(name, size, seed):
    prior, options = CONFIGURATIONS[name]
    make = joint_draw(prior_of(**prior), **options)
    assert_z_scores_small(successive_conditional(make, data_statistics, size, thin=2, seed=seed))
