"""Moves of the scale kernel against integrals, and the prior recovered without data.

Null: long-run frequencies are the exact probabilities; z-scores allow for autocorrelation, |z| < 4.
"""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from checks.deep_scale_model import make_sampler, prior
from checks.monte_carlo import z_score
from checks.proofs import proof
from skbnp.deep_scale_model import _model as model
from skbnp.laws import Gamma, Normal


def column_laws(state, X, law):
    """Probabilities of which of two features have a link to one factor, all else as it is.

    By quadrature over the loadings, which the factor's common variance couples.
    """
    w = np.sinh(np.linspace(-6, 6, 1201))
    width = np.gradient(w)
    y, s2 = state["scores1"], state["noise_variance"]
    height = []
    for n in range(2):
        a = w[:, np.newaxis] * y[:, 0]
        cells = stats.norm.logpdf(X[:, n], state["hyper"][1] * a, np.sqrt(a**2 + s2[n]))
        height.append(cells.sum(axis=1))
    none = [np.sum(stats.norm.logpdf(X[:, n], 0.0, np.sqrt(s2[n]))) for n in range(2)]
    slab = law.loading_variance
    df, scale2 = 2 * slab.shape, slab.scale / slab.shape
    alone = stats.t.logpdf(w, df, scale=np.sqrt(scale2))
    pair = np.stack(np.meshgrid(w, w, indexing="ij"), axis=-1)
    both = stats.multivariate_t.logpdf(pair, np.zeros(2), scale2 * np.eye(2), df)
    integrals = {
        (1, 0): np.log(np.exp(height[0] + alone) @ width) + none[1],
        (0, 1): np.log(np.exp(height[1] + alone) @ width) + none[0],
        (1, 1): np.log(width @ np.exp(np.add.outer(*height) + both) @ width),
        (0, 0): none[0] + none[1],
    }
    log_law = model.log_finite_links if law.is_finite else model.log_links
    logs = {}
    for links, value in integrals.items():
        if any(links) or law.is_finite:
            Z = np.array(links, dtype=float)[:, np.newaxis]
            logs[links] = value + log_law(Z, state["hyper"][0])
    top = max(logs.values())
    total = sum(np.exp(value - top) for value in logs.values())
    return {links: np.exp(value - top) / total for links, value in logs.items()}


@proof(sweeps=(20_000, 200_000), seed=(0, 1), smoke="singleton-0.0")
@pytest.mark.parametrize("drift", [0.0, 0.8])
@pytest.mark.parametrize("birth_move", ["singleton", "finite"])
def test_links_of_one_factor(birth_move, drift, size, seed):
    """Item 4: how often each feature has its link, the conditional of loadings bimodal."""
    law = prior(birth_move=birth_move, drift=drift)
    rng = np.random.default_rng(1)
    state = {
        "loadings1": np.array([[0.8], [-0.7]]),
        "scores1": rng.normal(size=(5, 1)),
        "noise_variance": np.array([0.5, 0.8]),
        "location": np.zeros(2),
        "hyper": np.array([1.0, drift]),
    }
    X = model.draw_data(state, rng)
    exact = column_laws(state, X, law)
    assert min(exact.values()) > 0.02
    sampler = make_sampler(law, state, X, seed)
    found = []
    for _ in range(size):
        sampler.sweep_only("links")
        found.append(sampler.get_state()["loadings1"][:, 0] != 0)
    found = np.array(found)
    for links, probability in exact.items():
        assert abs(z_score((found == links).all(axis=1).astype(float), probability)) < 4


def test_moves_that_are_refused_change_nothing():
    """Item 5: columns, rows above and amplitudes are as they were, bit for bit."""
    law = prior(mass=3.0, max_layers=3, mass_upper=2.0)
    rng = np.random.default_rng(3)
    n_refused = 0
    for seed in range(120):
        state, X = model.draw_joint(law, 6, 4, rng)
        sampler = make_sampler(law, state, X, seed, n_births=1, n_split_merge=1)
        for move in ("births", "split_merges") * 5:
            before, accepted = sampler.get_state(), sum(a for a, _ in moves(sampler))
            joint = sampler.log_joint()
            sampler.sweep_only(move)
            if sum(a for a, _ in moves(sampler)) > accepted:
                continue
            n_refused += 1
            after = sampler.get_state()
            assert sampler.log_joint() == joint
            for name in before:
                if name[:4] in ("load", "scor"):
                    assert_array_equal(after[name], before[name])
    assert n_refused > 50


@pytest.mark.parametrize("birth_move", ["singleton", "finite", "pan-han"])
def test_no_factor_at_all(birth_move):
    """Nothing comes back under the printed moves, in a few sweeps under others: section 13.5."""
    law = prior(birth_move=birth_move, mass=2.0)
    state, X = model.draw_joint(law, 6, 4, np.random.default_rng(0))
    state |= {"loadings1": np.zeros((4, 0)), "scores1": np.zeros((6, 0))}
    sampler = make_sampler(law, state, X)
    for _ in range(30):
        sampler.sweep()
    n_columns = sampler.get_state()["loadings1"].shape[1]
    assert n_columns == 0 if birth_move == "pan-han" else n_columns > 0


def moves(sampler):
    counts = sampler.acceptance()
    return [counts[name] for name in ("births", "deaths", "splits", "merges")]


@proof(sweeps=(8000, 80_000), seed=4)
@pytest.mark.parametrize("birth_move", ["singleton", "finite"])
def test_prior_without_data(birth_move, size, seed):
    """All cells missing: numbers of factors and links, noise and mass have their prior moments."""
    law = prior(
        birth_move=birth_move, mass=Gamma(4.0, 4.0), drift=Normal(0.0, 1.0), max_layers=2,
        mass_upper=0.7,
    )  # fmt: skip
    rng = np.random.default_rng(2)
    state, X = model.draw_joint(law, 5, 3, rng)
    sampler = make_sampler(law, state, np.full_like(X, np.nan), seed)
    trace = []
    for _ in range(size):
        sampler.sweep()
        state = sampler.get_state()
        mass, drift = state["hyper"]
        n_links = np.count_nonzero(state["loadings1"])
        K = state["loadings1"].shape[1]
        upper = sampler.scalars()["n_layers"] == 2
        noise = 1 / state["noise_variance"][0]
        trace.append([K, n_links, K * (K - 1), mass, drift, drift**2, noise, upper])
    trace = np.array(trace).T
    # K is Poisson(11/6 mass), mass has the mean 1 and the variance 1/4.
    expected = [11 / 6, 3.0, (11 / 6) ** 2 * 1.25, 1.0, 0.0, 1.0, 5 / 4]
    if birth_move == "finite":
        trace, expected = np.delete(trace, 1, axis=0), np.delete(expected, 1)
    for values, mean in zip(trace, expected, strict=False):
        assert abs(z_score(values, mean)) < 4
    # P(K_2 > 0) = 1 - E exp(-0.7 H_K), K negative binomial.
    k = np.arange(60)
    law_of_k = stats.nbinom.pmf(k, 4.0, 4.0 / (4.0 + 11 / 6))
    harmonic = np.append(0.0, np.cumsum(1 / np.arange(1.0, 60.0)))
    assert abs(z_score(trace[-1], 1 - law_of_k @ np.exp(-0.7 * harmonic))) < 4
