"""What one draw says of rows, against quadrature over the hidden units of tiny networks.

Rows are copies of one another but for their last digits, which give each random numbers of its
own, so estimates of them are independent; under the null a z-score is standard normal, and 4 is
exceeded once in 16,000.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import cKDTree

from checks.belief_draws import components_of, copies, dense, random_draw, z_score
from checks.integrals import sampled
from checks.slow import slow_where
from skbnp.cibp_belief_net import _predictive as predictive
from skbnp.cibp_belief_net import _predictive_laws as laws
from skbnp.likelihoods.nonlinear_gaussian._fantasies import Noise

NAN = np.nan


class Exact:
    """Integrals over a grid of the hidden units' pre-activations, at most three."""

    def __init__(self, draw, components):
        D = draw["widths"][0]
        n_hidden = draw["widths"].sum() - D
        grid = np.linspace(-14, 14, [2801, 401, 113][n_hidden - 1])
        a = np.stack(np.meshgrid(*[grid] * n_hidden, indexing="ij"), axis=-1)
        a = a.reshape(-1, n_hidden)
        self.u = np.tanh(a / 2)
        W, nu = dense(draw), draw["unit_precision"]
        mean = draw["biases"] + self.u @ W[D:]
        top = n_hidden if components is None else n_hidden - draw["widths"][-1]
        self.log_weight = n_hidden * np.log(grid[1] - grid[0]) + np.sum(
            log_normal(a[:, :top], mean[:, D : D + top], nu[D : D + top]), axis=1
        )
        if components is not None:
            self.log_weight += np.logaddexp.reduce(
                [
                    w + log_normal(a[:, top:], m, precision).sum(axis=1)
                    for w, m, precision in zip(*components, strict=True)
                ]
            )
        self.mean, self.nu = mean[:, :D], nu[:D]

    def row(self, x, visible="gaussian"):
        """Log density of the observed entries, two moments of the others, E[u]."""
        seen = ~np.isnan(x)
        terms = log_normal(x[seen], self.mean[:, seen], self.nu[seen])
        log_weight = self.log_weight + terms.sum(axis=1)
        log_density = np.logaddexp.reduce(log_weight)
        share = np.exp(log_weight - log_density)
        if visible == "gaussian":
            one, two = self.mean, self.mean**2 + 1 / self.nu
        else:
            z = np.linspace(-6, 6, 41)
            p = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
            one, two = np.zeros_like(self.mean), np.zeros_like(self.mean)
            for d in np.flatnonzero(~seen):
                for k in range(len(z)):
                    s = np.tanh(0.5 * (self.mean[:, d] + z[k] / np.sqrt(self.nu[d])))
                    one[:, d] += p[k] * s
                    two[:, d] += p[k] * s**2
        moments = (np.where(seen, 0.0, share @ x) for x in (one, two))
        return log_density, *moments, share @ self.u


def log_normal(x, mean, precision):
    return 0.5 * np.log(precision / (2 * np.pi)) - 0.5 * precision * (x - mean) ** 2


NETWORKS = {
    "one layer": (random_draw([3, 2], 0), [0.7, NAN, -1.5]),
    "one unit": (random_draw([2, 1], 1, share=1.0), [NAN, 0.4]),
    "two layers": (random_draw([3, 1, 1], 2, share=1.0), [1.2, 0.3, NAN]),
    "three layers": (random_draw([2, 1, 1, 1], 3, share=1.0), [-1.0, NAN]),
    "skip connections": (random_draw([3, 1, 2], 7, skip=True, share=1.0), [NAN, 0.5, -0.2]),
    "row clusters": (random_draw([3, 2], 5, n_clusters=3, share=1.0), [2.0, NAN, 0.1]),
    "row clusters, two layers": (
        random_draw([3, 1, 1], 6, n_clusters=3, share=1.0),
        [NAN, -1.0, 0.5],
    ),
}
ONE_LAYER = [name for name, (draw, _) in NETWORKS.items() if len(draw["widths"]) == 2]


@pytest.fixture(params=NETWORKS)
def network(request):
    draw, x = NETWORKS[request.param]
    components = components_of(draw)
    return draw, np.array(x), components, Exact(draw, components)


def test_annealed_density_is_unbiased(network):
    draw, x, components, exact = network
    n = 4000
    found = predictive.log_densities(
        draw, copies(x, n), 11, components=components, method="ais", n_temperatures=6,
        n_particles=2,
    )  # fmt: skip
    assert z_score(np.exp(found - exact.row(x)[0]), 1.0) < 4


def test_annealed_density_of_defaults_is_near(network):
    draw, x, components, exact = network
    found = predictive.log_densities(draw, copies(x, 200), 1, components=components, method="ais")
    assert z_score(np.exp(found - exact.row(x)[0]), 1.0) < 4
    assert np.std(found) < 0.5


def test_density_by_fantasies_is_unbiased(network):
    draw, x, components, exact = network
    found = [
        predictive.densities_by_fantasies(draw, x[np.newaxis], Noise(seed, 100), components)[0]
        for seed in range(400)
    ]
    assert z_score(np.exp(np.array(found) - exact.row(x)[0]), 1.0)[0] < 4


def test_points_around_modes_are_unbiased(network):
    """Of eight fantasies so many are never near a row that they are enough."""
    draw, x, components, exact = network
    law = predictive.fantasies_of(draw, 3, 1, components, n_fantasies=8)
    log_density, one, two, _ = exact.row(x)
    found, n_effective = law.log_densities(copies(x, 2000), 3, 1, 20)
    assert z_score(np.exp(found - log_density), 1.0) < 4
    assert np.std(found) < 0.5
    assert 5 < np.median(n_effective) <= 20
    # Means over points are biased by one over their number.
    mean, variance = law.moments(copies(x, 50), 3, 1, 3000)
    missing = np.isnan(x)
    assert_array_equal(mean[:, ~missing], 0.0)
    assert_allclose(mean.mean(axis=0)[missing], one[missing], atol=0.02)
    assert_allclose((variance + mean**2).mean(axis=0)[missing], two[missing], rtol=0.02)


def test_density_is_unbiased_where_it_often_changes_to_points(network):
    """Judged by their own effective number fantasies would be kept where they are too high."""
    draw, x, components, exact = network
    found = [
        predictive.fantasies_of(draw, 3, t, components, n_fantasies=30).log_densities(
            x[np.newaxis], 3, t, 20
        )[0]
        for t in range(600)
    ]
    assert z_score(np.exp(np.array(found) - exact.row(x)[0]), 1.0)[0] < 4


def test_fantasies_do_not_depend_on_the_company_of_a_row(network):
    """To the last bit; rows near fantasies and far from them, and one that is nowhere."""
    draw, x, components, _ = network
    law = predictive.fantasies_of(draw, 3, 1, components)
    A = predictive.sample_rows(draw, 30, np.random.default_rng(0), components)
    A[::3, 0], A[::4] = NAN, 8.0 * A[::4]
    A[29], A[28] = np.full(len(x), 1e200), x
    log_density, n_effective = law.log_densities(A, 3, 1, 30)
    moments = law.moments(A, 3, 1, 30)
    assert (n_effective < 40).any() and (n_effective > 100).any()
    assert log_density[29] == -np.inf and np.isfinite(log_density[:29]).all()
    assert np.isfinite(moments).all()
    for i in range(30):
        assert_array_equal(law.log_densities(A[i : i + 1], 3, 1, 30)[0], log_density[i])
        assert_array_equal(
            law.moments(A[i : i + 1], 3, 1, 30), [part[i : i + 1] for part in moments]
        )


@pytest.mark.parametrize("widths", [[9, 3], [9, 3, 2]])
def test_laplace_is_near_in_many_columns(widths):
    draw = random_draw(widths, 4)
    A = predictive.sample_rows(draw, 30, np.random.default_rng(0))
    found = predictive.densities_by_laplace(draw, A, Noise(0, 200))
    wanted = predictive.log_densities(draw, A, 0, n_temperatures=300, n_particles=16, method="ais")
    assert abs(np.mean(found - wanted)) < 0.2
    assert np.std(found - wanted) < 0.5


@pytest.mark.parametrize(
    "visible", slow_where(["gaussian", "sigmoid"], lambda visible: visible == "sigmoid")
)
def test_inner_chain_matches_quadrature(network, visible):
    """Means over rows of 40 kept passes; clusters of one layer are expanded, see below."""
    draw, x, components, exact = network
    if components is not None and len(draw["widths"]) == 2:
        pytest.skip("one layer with row clusters is expanded around modes")
    A = copies(x, 400 if components is None else 100)
    # Where there are clusters a chain is slow to forget in which one it started.
    n_burn_in = 50 if components is None else 1500
    args = {"seed": 5, "components": components, "n_burn_in": n_burn_in, "n_kept": 40}
    first, variance = predictive.imputed_moments(draw, A, visible, **args)
    _, one, two, u = exact.row(x, visible)
    # Second moments, which are unbiased where chains are short.
    missing, second = np.isnan(x), variance + first**2
    assert_array_equal(first[:, ~missing], 0.0)
    assert np.all(z_score(first[:, missing], one[missing]) < 4)
    assert np.all(z_score(second[:, missing], two[missing]) < 4)
    if visible == "gaussian":
        start = 0
        for layer, width in enumerate(draw["widths"][1:], start=1):
            found = predictive.expected_activations(draw, A, layer, **args)
            assert np.all(z_score(found, u[start : start + width]) < 4)
            start += width


@pytest.mark.parametrize("name", ONE_LAYER)
def test_expansions_are_near_quadrature(name):
    """Means over Laplace's approximation: tolerances, not errors. With tight units it is closer.

    Densities are corrected by importance sampling.
    """
    draw, pattern = NETWORKS[name]
    missing = np.isnan(pattern)
    for factor, tolerance in ((1.0, 0.12), (30.0, 0.02)):
        tight = draw | {"unit_precision": factor * draw["unit_precision"]}
        if "cluster_precision" in draw:
            tight["cluster_precision"] = factor * draw["cluster_precision"]
        components = components_of(tight)
        exact = Exact(tight, components)
        x = predictive.sample_rows(tight, 1, np.random.default_rng(1), components)[0]
        x[missing] = NAN
        for visible in ("gaussian", "sigmoid"):
            log_density, one, two, u = exact.row(x, visible)
            A = copies(x, 200)
            found = predictive.log_densities(tight, A, 0, components=components)
            assert z_score(np.exp(found - log_density), 1.0) < 4
            if components is None:
                continue
            args = {"seed": 1, "components": components}
            first, variance = predictive.imputed_moments(tight, A, visible, **args)
            assert_allclose(first.mean(axis=0), one, atol=tolerance)
            assert_allclose((variance + first**2).mean(axis=0), two, rtol=2 * tolerance)
            found = predictive.expected_activations(tight, A, 1, **args)
            assert_allclose(found.mean(axis=0), u, atol=tolerance)


@pytest.mark.parametrize("name", ONE_LAYER)
def test_importance_sampling_corrects_expansions(name):
    draw, x = NETWORKS[name]
    components = components_of(draw)
    found = predictive.log_densities(
        draw, copies(x, 2000), 7, components=components, method="importance",
        n_importance=50,
    )  # fmt: skip
    exact = Exact(draw, components).row(np.array(x))[0]
    assert z_score(np.exp(found - exact), 1.0) < 4


WITHOUT_CLUSTERS = [name for name in NETWORKS if "clusters" not in name]


@pytest.mark.parametrize("name", WITHOUT_CLUSTERS)
def test_points_around_modes_of_all_layers_are_unbiased(name):
    draw, x = NETWORKS[name]
    exact = Exact(draw, None).row(np.array(x))[0]
    A = copies(x, 2000)
    found, n_effective = predictive.densities_around_modes(draw, A, 7, 0, 30)
    assert z_score(np.exp(found - exact), 1.0) < 4
    assert 5 < np.median(n_effective) <= 30
    # Next to any place, also one far from all modes.
    n_units = len(draw["biases"])
    for place in (np.zeros(n_units), np.linspace(-9.0, 9.0, n_units)):
        near = np.tile(place, (2000, 1))
        found, _ = predictive.densities_around_modes(draw, A, 8, 0, 30, near)
        assert z_score(np.exp(found - exact), 1.0) < 4


@pytest.mark.parametrize("name", [name for name in WITHOUT_CLUSTERS if name not in ONE_LAYER])
def test_density_of_many_layers_is_unbiased(name):
    draw, x = NETWORKS[name]
    exact = Exact(draw, None).row(np.array(x))[0]
    rough = dict(n_temperatures=6, n_particles=2)
    found, share = predictive.judged_densities(draw, copies(x, 2000), 5, **rough)
    assert z_score(np.exp(found - exact), 1.0) < 4
    annealed, alone = predictive.judged_densities(draw, copies(x, 2000), 5, method="ais", **rough)
    points = predictive.log_densities(draw, copies(x, 2000), 5, method="importance")
    assert_allclose(np.exp(found), 0.9 * np.exp(annealed) + 0.1 * np.exp(points))
    assert (share < np.maximum(alone, 1 / 3)).all()


def test_points_find_what_annealing_misses():
    """Of ten columns with little noise four particles are ten nats too low."""
    draw = random_draw([10, 3, 2], 0, share=1.0)
    draw["unit_precision"] = np.where(np.arange(15) < 10, 1e6, draw["unit_precision"])
    A = predictive.sample_rows(draw, 20, np.random.default_rng(0))
    exact, _ = predictive.densities_around_modes(draw, A, 1, 0, 20_000)
    annealed = predictive.log_densities(draw, A, 0, method="ais")
    assert np.mean(annealed - exact) < -8.0
    assert np.mean(predictive.log_densities(draw, A, 0) - exact) > -4.0


def test_density_of_very_many_units_is_annealed_alone():
    draw = random_draw([10, 127, 2], 0)
    A = predictive.sample_rows(draw, 2, np.random.default_rng(0))
    annealed = predictive.log_densities(draw, A, 0, method="ais", n_temperatures=5)
    assert_array_equal(predictive.log_densities(draw, A, 0, n_temperatures=5), annealed)


@pytest.mark.parametrize("name", ["one layer", "row clusters", "skip connections"])
def test_density_of_one_entry_integrates_to_one(name):
    draw, _ = NETWORKS[name]
    x = np.linspace(-12, 12, 241)
    A = np.full((len(x), 3), NAN)
    A[:, 1] = x
    components = components_of(draw)
    for method in ("auto", "ais", "importance"):

        def density(rows, seed, method=method):
            args = {"components": components, "method": method, "n_temperatures": 30}
            return np.exp(predictive.log_densities(draw, rows, seed, **args))

        integral, error = sampled(density, A, np.full(len(x), x[1] - x[0]))
        assert error < 0.0025
        assert integral == pytest.approx(1.0, abs=0.01)


def test_components_that_are_screened_out_count():
    """Of 60 components 15 are expanded; the density is that of all, by quadrature."""
    draw = random_draw([3, 2], 8, n_clusters=59)
    components = components_of(draw)
    exact = Exact(draw, components)
    for x in ([0.5, -0.3, 1.0], [NAN, 2.0, NAN]):
        found = predictive.log_densities(
            draw, copies(np.array(x), 400), 0, components=components, method="importance"
        )
        assert z_score(np.exp(found - exact.row(np.array(x))[0]), 1.0) < 4


def saturating_draw(noise):
    """Two units that are always near -1 or 1: rows of four spots, two of them wide apart."""
    draw = random_draw([2, 2], 0, share=1.1)
    draw |= {
        "weights": np.array([2.0, 0.3, 0.5, 2.5])[: len(draw["weights"])],
        "biases": np.array([0.2, -0.1, 0.0, 1.0]),
        "unit_precision": np.array([noise**-2, noise**-2, 0.02, 0.05]),
    }
    return draw


def near_means(draw, rows, distance):
    """Which rows are so near a mean that the units can give; the density of others is nothing."""
    edges, weights = np.asarray(draw["edges"]), draw["weights"]
    W = np.zeros((2, 2))
    W[edges[:, 1], edges[:, 0] - 2] = weights
    u = np.linspace(-1.0, 1.0, 60)
    means = np.stack(np.meshgrid(u, u), axis=-1).reshape(-1, 2) @ W.T + draw["biases"][:2]
    # The lattice of means is finer than the room to spare.
    near = cKDTree(means).query(rows)[0]
    return near < distance + np.abs(W).sum() * (u[1] - u[0])


@pytest.mark.parametrize("noise", slow_where([0.2, 0.05], lambda noise: noise < 0.1))
def test_units_that_saturate(noise):
    """A normal law around one mode misses the other side: the integral was 0.66 on moons.

    Of one seed the integral has a standard deviation of .010 (noise .2) and .008, by 24 seeds.
    """
    draw = saturating_draw(noise)
    # As far apart as the noise is wide: the rule is right to 1e-8.
    x = np.linspace(-5.0, 5.0, 51 if noise > 0.1 else 201)
    A = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1).reshape(-1, 2)
    A, n_seeds = A[near_means(draw, A, 6 * noise)], 10 if noise > 0.1 else 3
    density = np.exp([predictive.log_densities(draw, A, seed) for seed in range(n_seeds)])
    integral = density.sum(axis=1).mean() * (x[1] - x[0]) ** 2
    assert integral == pytest.approx(1.0, abs=4 * 0.01 / n_seeds**0.5)
    assert integral == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("seed", slow_where([0, 1], lambda seed: seed > 0))
def test_rows_do_not_depend_on_their_company(seed):
    """Rows one by one, in another order or in threads: the same up to rounding."""
    rng = np.random.default_rng(seed)
    for draw in (
        random_draw([6, 3, 2], seed, skip=True),
        random_draw([6, 9], seed),
        random_draw([6, 3], seed, n_clusters=20),
        random_draw([6, 3, 2], seed, n_clusters=4),
    ):
        A = rng.standard_normal((120, 6))
        A[rng.random(A.shape) < 0.3] = NAN
        A[110:, :2] = NAN
        A[:20] = rng.standard_normal((20, 6))
        components = components_of(draw)

        def answers(rows, draw=draw, components=components):
            args = {"seed": 9, "t": 4, "components": components}
            return np.column_stack(
                [
                    *predictive.imputed_moments(draw, rows, "sigmoid", **args),
                    predictive.log_densities(draw, rows, **args, n_temperatures=20),
                    predictive.expected_activations(draw, rows, 1, **args),
                ]
            )

        together = answers(A)
        assert np.isfinite(together).all()
        one_by_one = np.vstack([answers(A[i : i + 1]) for i in range(0, 120, 6)])
        assert_allclose(together[::6], one_by_one, atol=1e-9)
        order = rng.permutation(120)
        with ThreadPoolExecutor(3) as pool:
            blocks = list(pool.map(answers, np.split(A[order], 3)))
        assert_allclose(together[order], np.vstack(blocks), atol=1e-9)
        assert_array_equal(together, answers(A))


def test_prior_of_rows():
    """Components at the training rows' activations; a known row finds its own again."""
    draw = random_draw([8, 2], 3)
    log_weight, mean, precision = components = laws.row_components(draw)
    assert_allclose(np.exp(log_weight).sum(), 1.0)
    assert_array_equal(mean, draw["activations"])
    assert_allclose(precision[0] * 0.09 * mean.var(axis=0), 1.0)
    exact = Exact(draw, components)
    x = np.array([0.5, NAN, -1.0, 0.2, NAN, NAN, 0.3, 1.0])
    first, _ = predictive.imputed_moments(
        draw, copies(x, 50), "gaussian", seed=0, components=components
    )
    assert_allclose(first.mean(axis=0), exact.row(x)[1], atol=0.1)
    with pytest.raises(ValueError, match="at most one hidden layer, got 2"):
        laws.row_components(NETWORKS["two layers"][0])


def test_samples_have_the_networks_law(network):
    """Moments of sampled rows and of their products against quadrature."""
    draw, x, components, exact = network
    n = 40_000
    a = predictive.sample_rows(draw, n, np.random.default_rng(2), components)
    assert a.shape == (n, len(x))
    share = np.exp(exact.log_weight)
    assert_allclose(share.sum(), 1.0, atol=1e-6)
    assert np.all(z_score(a, share @ exact.mean) < 4)
    for i in range(len(x)):
        for j in range(i, len(x)):
            product = share @ (exact.mean[:, i] * exact.mean[:, j])
            product += (i == j) / exact.nu[i]
            assert z_score(a[:, [i]] * a[:, [j]], product)[0] < 4


def test_no_hidden_units():
    draw = random_draw([3], 0)
    A = np.array([[0.5, NAN, 1.0], [NAN, NAN, NAN]])
    log_density = log_normal(A, draw["biases"], draw["unit_precision"])
    for method in ("auto", "ais", "importance"):
        found = predictive.log_densities(draw, A, 0, method=method)
        assert_allclose(found, np.nansum(log_density, axis=1))
    first, variance = predictive.imputed_moments(draw, A, "gaussian", seed=0)
    b, nu, missing = draw["biases"], draw["unit_precision"], np.isnan(A)
    assert_allclose(first, np.where(missing, b, 0.0))
    assert_allclose(variance, np.where(missing, 1 / nu, 0.0))
    a = predictive.sample_rows(draw, 5, np.random.default_rng(0))
    assert a.shape == (5, 3)
    assert not laws.has_row_clusters(draw | {"cluster_mean": np.zeros((2, 0))})


def test_rows_without_entries_and_no_rows(network):
    draw, x, components, exact = network
    for A in (np.full((2, len(x)), NAN), np.zeros((0, len(x)))):
        deep = len(draw["widths"]) > 2 and components is not None
        for method in ("auto", "ais") if deep else ("auto", "ais", "importance"):
            found = predictive.log_densities(draw, A, 0, components=components, method=method)
            assert found.shape == (len(A),)
            assert_allclose(found, 0.0, atol=1e-9)
        first, _ = predictive.imputed_moments(draw, A, "gaussian", seed=0, components=components)
        assert first.shape == A.shape and np.isfinite(first).all()
        u = predictive.expected_activations(draw, A, 1, seed=0, components=components)
        assert u.shape == (len(A), draw["widths"][1])
    assert predictive.sample_rows(draw, 0, np.random.default_rng(0), components).shape == (
        0,
        len(x),
    )


def test_extreme_networks_give_numbers():
    """Units next to noiseless or next to free, weights of 1e3, entries up to 1e100."""
    A = np.array([[1e100, -1e100, NAN], [1e8, NAN, 0.0], [NAN, NAN, 1e-300], [3.0, 0.0, -40.0]])
    for widths, n_clusters in (([3, 4], 0), ([3, 4], 5), ([3, 2, 2], 0), ([3, 2, 2], 3)):
        for size in (1e-8, 1e3):
            for precision in (1e-6, 1e4):
                draw = random_draw(widths, 0, n_clusters=n_clusters, size=size)
                draw["unit_precision"] = np.full(sum(widths), precision)
                components = components_of(draw)
                args = {"seed": 0, "components": components}
                for visible in ("gaussian", "sigmoid"):
                    for moment in predictive.imputed_moments(
                        draw, A, visible, n_burn_in=5, n_kept=5, **args
                    ):
                        assert np.isfinite(moment).all()
                for method in ("auto", "ais"):
                    found = predictive.log_densities(draw, A, method=method, **args)
                    assert not np.isnan(found).any()
                    assert np.isfinite(found[1:]).all()
                assert np.isfinite(predictive.expected_activations(draw, A, 1, **args)).all()


def test_bad_arguments():
    draw, x = NETWORKS["two layers"]
    A = np.array([x])
    with pytest.raises(ValueError, match="method must be"):
        predictive.log_densities(draw, A, 0, method="exact")
    clustered, _ = NETWORKS["row clusters, two layers"]
    with pytest.raises(ValueError, match="with row clusters needs one hidden layer, got 2"):
        predictive.log_densities(
            clustered, A, 0, components=components_of(clustered), method="importance"
        )
    with pytest.raises(ValueError, match="layer must be in 1..2"):
        predictive.expected_activations(draw, A, 3, seed=0)
    with pytest.raises(ValueError, match="visible must be"):
        predictive.imputed_moments(draw, A, "binary", seed=0)
    with pytest.raises(ValueError, match="A must be finite"):
        predictive.log_densities(draw, np.array([[np.inf, 0.0, NAN]]), 0)
    with pytest.raises(ValueError, match="row clusters needs components"):
        predictive.log_densities(NETWORKS["row clusters"][0], A, 0)


@pytest.mark.parametrize("of_draw", ["log_densities", "imputed_moments"])
def test_a_row_that_nothing_explains_is_named(of_draw):
    """Weights that are not a number were once an index of -1: memory that is not ours."""
    draw = random_draw((2, 2, 2), 0, n_clusters=3)
    A = np.array([[0.0, NAN], [1.5e308, NAN], [NAN, 1.0]])
    options = {"method": "ais"} if of_draw == "log_densities" else {"visible": "gaussian"}
    with np.errstate(all="ignore"), pytest.raises(ArithmeticError, match="row 1"):
        getattr(predictive, of_draw)(draw, A, seed=0, components=components_of(draw), **options)
