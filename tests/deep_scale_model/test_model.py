"""The deep scale model's joint density and prior draws, against sums, integrals and moments."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

from checks.deep_scale_model import prior
from checks.monte_carlo import z_score
from checks.mutants import compiled
from skbnp.deep_scale_model import _model as model
from skbnp.laws import Gamma, InverseGamma, Law, Normal
from skbnp.likelihoods.sparse_loadings.layers import (
    log_inverse_gamma,
    log_links,
    log_normal,
    log_slab,
    upper_layers,
)
from skbnp.processes import ibp


def harmonic(n):
    return np.sum(1 / np.arange(1, n + 1))


def matrices(n_rows, n_columns):
    for cells in product((0.0, 1.0), repeat=n_rows * n_columns):
        yield np.array(cells).reshape(n_rows, n_columns)


# -- laws of links (D2.2, D3.1, D10.1) ----------------------------------------------------------


@pytest.mark.parametrize("n_columns", [0, 1, 2, 3])
def test_links_sum_to_the_law_of_their_number(n_columns):
    """Labelled matrices of K columns, none empty, have the Poisson probability of K."""
    total = sum(
        np.exp(log_links(Z, 0.7)) for Z in matrices(3, n_columns) if Z.any(axis=0).all()
    )  # fmt: skip
    assert_allclose(total, stats.poisson.pmf(n_columns, 0.7 * harmonic(3)), rtol=1e-12)


@pytest.mark.parametrize("n_columns", [0, 1, 2, 3])
def test_finite_links_sum_to_the_law_of_their_number(n_columns):
    total = sum(np.exp(model.log_finite_links(Z, 0.7)) for Z in matrices(3, n_columns))
    assert_allclose(total, stats.poisson.pmf(n_columns, 0.7 * harmonic(3)), rtol=1e-12)


def test_expected_factors_of_each_size():
    """Numbers of factors, singletons, links; the chance that a row has none."""
    rates = ibp.expected_features_of_size(16, 3.0)
    m = np.arange(1, 17)
    assert_allclose(rates.sum(), 10.142187, atol=5e-7)
    assert_allclose(rates[0], 3.0)
    assert_allclose(rates @ m, 48.0)
    assert_allclose(np.exp(-rates @ (m / 16)), np.exp(-3.0))


@pytest.mark.parametrize("others", [1, 2, 4])
def test_conditional_of_a_loading(others):
    """(D3.1): a t law, and odds m / (N - m) or (m + mass / K) / (N - m)."""
    rng = np.random.default_rng(others)
    a, b, w = 2.0, 1.0, 1.3
    rest = np.zeros((6, 1))
    rest[1 : 1 + others] = rng.normal(size=(others, 1))
    full = rest.copy()
    full[0] = w
    scale2 = (2 * b + np.sum(rest**2)) / (2 * a + others)
    law = InverseGamma(a, b)
    expected = stats.t.logpdf(w, 2 * a + others, scale=np.sqrt(scale2))
    assert_allclose(log_slab(full, law) - log_slab(rest, law), expected, rtol=1e-12)

    def density(log_variance):
        variance = np.exp(log_variance)
        values = np.sum(log_normal(full[full != 0], 0.0, variance))
        return np.exp(values + log_inverse_gamma(variance, a, b) + log_variance)

    total, _ = integrate.quad(density, -30, 30, epsabs=1e-13, limit=200)
    assert_allclose(np.exp(log_slab(full, law)), total, rtol=1e-8)
    odds = log_links(full, 0.8) - log_links(rest, 0.8)
    assert_allclose(odds, np.log(others / (6 - others)), rtol=1e-12)
    odds = model.log_finite_links(full, 0.8) - model.log_finite_links(rest, 0.8)
    assert_allclose(odds, np.log((others + 0.8) / (6 - others)), rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((3, 3, 16, 3.0), (0.069969, 1.257125)),
        ((5, 3, 16, 3.0), (0.101670, 0.832998)),
        ((10, 10, 16, 3.0), (0.035117, 0.232219)),
    ],
)
def test_printed_ratios(arguments, expected):
    """Equations 12 and 13 of the paper, (D10.3)."""
    printed_ratios = compiled("sparse_loadings", "faces").printed_ratios
    assert_allclose(printed_ratios(*arguments), expected, atol=5e-7)


# -- the joint density -------------------------------------------------------------------------


def drawn(law, n_samples=7, n_features=4, seed=0, layers=1):
    """A draw from the prior with at least so many layers."""
    rng = np.random.default_rng(seed)
    while True:
        state, X = model.draw_joint(law, n_samples, n_features, rng)
        if state["loadings1"].size and len(upper_layers(state)) >= layers - 1:
            return state, X


DEEP = prior(max_layers=2, mass=2.0, mass_upper=1.0, drift=Normal(0.0, 1.0), location_variance=2.0)


@pytest.mark.parametrize(
    ("law", "layers"), [(prior(), 1), (DEEP, 2), (prior(mass=Gamma(1.0, 1.0), max_layers=3), 1)]
)
def test_terms_cell_by_cell(law, layers):
    """The same density, one cell at a time, from SciPy's distributions."""
    state, X = drawn(law, layers=layers)
    X[1, 2] = np.nan
    mass, drift = state["hyper"]
    scores = [state["scores1"], *(y for _, y in upper_layers(state))]
    loadings = [state["loadings1"], *(w for w, _ in upper_layers(state))]
    total = 0.0
    for t, n in zip(*np.nonzero(~np.isnan(X)), strict=True):
        a = scores[0][t] @ loadings[0][n]
        spread = np.hypot(a, np.sqrt(state["noise_variance"][n]))
        total += stats.norm.logpdf(X[t, n], state["location"][n] + drift * a, spread)
    masses = [mass] + [law.mass_upper] * (law.max_layers - 1)
    n_rows = 4
    for number, (y, w) in enumerate(zip(scores, loadings, strict=True)):
        top = number + 1 == len(scores)
        a = np.zeros_like(y) if top else scores[number + 1] @ loadings[number + 1].T
        total += np.sum(stats.norm.logpdf(y, 0.0, np.sqrt(a**2 + 1)))
        total += ibp.log_prob(w != 0, masses[number], ordering="labelled")
        for column in w.T:
            on = column[column != 0]
            slab = law.loading_variance
            shape = slab.scale / slab.shape * np.eye(len(on))
            total += stats.multivariate_t.logpdf(on, np.zeros(len(on)), shape, 2 * slab.shape)
        n_rows = w.shape[1]
    if len(scores) < law.max_layers:
        total += stats.poisson.logpmf(0, law.mass_upper * harmonic(n_rows))
    noise = stats.invgamma(law.noise_variance.shape, scale=law.noise_variance.scale)
    total += np.sum(noise.logpdf(state["noise_variance"]))
    if law.location_variance:
        total += np.sum(stats.norm.logpdf(state["location"], 0, np.sqrt(law.location_variance)))
    if isinstance(law.drift, Law):
        total += stats.norm.logpdf(drift)
    if isinstance(law.mass, Law):
        total += stats.gamma.logpdf(mass, law.mass.shape, scale=1 / law.mass.rate)
    assert_allclose(model.log_joint(state, X, law), total, rtol=1e-10)


def test_signs_and_orders_that_say_nothing():
    state, X = drawn(DEEP, layers=2)
    joint = model.log_joint(state, X, DEEP)
    k = state["loadings1"].shape[1]
    sign, order = np.where(np.arange(k) == 0, -1.0, 1.0), np.arange(k)[::-1]
    flipped = {**state, "loadings1": state["loadings1"] * sign, "scores1": state["scores1"] * sign}
    moved = {
        **state,
        "loadings1": state["loadings1"][:, order],
        "scores1": state["scores1"][:, order],
        "loadings2": state["loadings2"][order],
    }
    for other in (flipped, moved):
        assert_allclose(model.log_joint(other, X, DEEP), joint, atol=1e-9)
    law = prior()
    state, X = drawn(law)
    rows = np.array([[-1.0], [1.0], [1.0], [-1.0]])
    other = {**state, "loadings1": state["loadings1"] * rows}
    assert_allclose(model.log_joint(other, X, law), model.log_joint(state, X, law), atol=1e-9)


def test_rotations_leave_the_data_alone():
    law = prior(mass=3.0)
    state, X = drawn(law, seed=2)
    k = state["loadings1"].shape[1]
    assert k > 1
    turn = stats.ortho_group.rvs(k, random_state=1)
    other = {**state, "loadings1": state["loadings1"] @ turn, "scores1": state["scores1"] @ turn}
    for term in ("data", "scores"):
        one, two = (model.log_joint(s, X, law, terms=True)[term] for s in (state, other))
        assert_allclose(one, two, atol=1e-9)


# -- draws from the prior (items 7, 8 and 10) ---------------------------------------------------


def test_moments_of_data():
    """Moments in closed form given loadings and noise; everything there is lies in energies."""
    W, s2 = np.array([[1, 0.5], [0.7, 0], [-0.4, 1.2]]), np.array([0.3, 0.2, 0.1])
    rng = np.random.default_rng(0)
    state = {
        "loadings1": W,
        "scores1": rng.normal(size=(1_000_000, 2)),
        "noise_variance": s2,
        "location": np.zeros(3),
        "hyper": np.array([1.0, 0.0]),
    }
    x2 = model.draw_data(state, rng) ** 2
    for x, expected in zip(x2.T, (1.55, 0.69, 1.70), strict=True):
        assert abs(np.mean(x) - expected) < 4 * np.std(x) / 1000
    for x, expected in zip(x2.T**2, (16.5825, 2.8689, 24.03), strict=True):
        assert abs(np.mean(x) - expected) < 4 * np.std(x) / 1000
    both = (x2[:, 0] - 1.55) * (x2[:, 2] - 1.70)
    assert abs(np.mean(both) - 0.08) < 4 * np.std(both) / 1000


@pytest.mark.parametrize(("x", "expected"), [(0.1, 0.878483), (1.0, 0.118413), (3.0, 0.005878488)])
def test_one_link_without_noise_has_a_bessel_density(x, expected):
    w = 0.8
    exact = special.k0(x / w) / (np.pi * w)
    assert_allclose(exact, expected, rtol=5e-6)
    law = prior(noise_variance=np.array([1e-12]))

    def integrand(log_score):
        y = np.exp(log_score)
        state = {
            "loadings1": np.array([[w]]),
            "scores1": np.array([[y]]),
            "noise_variance": law.noise_variance,
            "location": np.zeros(1),
            "hyper": np.array([1.0, 0.0]),
        }
        parts = model.log_joint(state, np.array([[x]]), law, terms=True)
        return 2 * y * np.exp(parts["data"] + parts["scores"])

    total, _ = integrate.quad(integrand, -20, 5, limit=200)
    assert_allclose(total, exact, rtol=1e-6)


@pytest.mark.parametrize(("mass", "printed"), [(0.3, 0.91), (0.5, 1.55)])
def test_depth_of_draws(mass, printed):
    """Mathematics, section 13.4: the chain K_l+1 ~ Poisson(mass H_K_l) from 16 features."""
    most = 60
    steps = np.array([stats.poisson.pmf(np.arange(most), mass * harmonic(k)) for k in range(most)])
    width, depth, capped = np.eye(most)[16], 0.0, 0.0
    for layer in range(100):
        width = width @ steps
        depth += 1 - width[0]
        capped += (1 - width[0]) * (layer < 8)
    assert abs(depth - printed) < 0.005
    law, rng = prior(mass=mass, mass_upper=mass, max_layers=8), np.random.default_rng(1)
    depths = []
    for _ in range(1500):
        state, _ = model.draw_joint(law, 1, 16, rng)
        depths.append(len(upper_layers(state)) + (state["loadings1"].shape[1] > 0))
    assert abs(z_score(depths, capped)) < 4


@pytest.mark.parametrize("birth_move", ["singleton", "finite"])
def test_numbers_of_factors(birth_move):
    law, rng = prior(birth_move=birth_move), np.random.default_rng(2)
    states = [model.draw_joint(law, 1, 3, rng)[0]["loadings1"] for _ in range(2000)]
    assert abs(z_score([w.shape[1] for w in states], 11 / 6)) < 4
    if birth_move == "singleton":
        assert abs(z_score([np.count_nonzero(w) for w in states], 3.0)) < 4


# -- states from outside ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"loadings1": np.zeros((3, 1))}, "loadings1"),
        ({"scores1": np.zeros((5, 1))}, "scores1"),
        ({"noise_variance": np.array([1.0, 0.0, 1.0, 1.0])}, "noise_variance"),
        ({"location": np.ones(4)}, "location"),
        ({"hyper": np.array([2.0, 0.0])}, "hyper"),
        ({"hyper": np.array([1.0, 0.5])}, "hyper"),
        ({"loadings2": np.ones((1, 1)), "scores2": np.ones((7, 1))}, "layers"),
    ],
)
def test_states_that_do_not_fit(changes, named):
    law = prior()
    state, _ = drawn(law)
    model.checked_state(state, law, 7, 4)
    with pytest.raises(ValueError, match=named):
        model.checked_state({**state, **changes}, law, 7, 4)


def test_an_empty_factor_is_for_finite_laws():
    state, _ = drawn(prior())
    state["loadings1"] = np.zeros_like(state["loadings1"])
    model.checked_state(state, prior(birth_move="finite"), 7, 4)
    with pytest.raises(ValueError, match="empty factor"):
        model.checked_state(state, prior(), 7, 4)
