"""Annealed importance sampling of rows: unbiased, and how far it is trusted."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special

from checks.belief_draws import components_of, copies, random_draw, z_score
from skbnp.cibp_belief_net import _predictive as predictive


def test_annealed_density_of_a_wide_layer_is_unbiased():
    """Hamiltonian steps in place of slices, beside importance sampling around modes."""
    draw = random_draw([5, 9], 2)
    x, n = predictive.sample_rows(draw, 1, np.random.default_rng(1))[0], 4000
    rough = {"n_temperatures": 25, "n_particles": 4}
    found = predictive.log_densities(draw, copies(x, n), 3, method="ais", **rough)
    wanted = predictive.log_densities(draw, copies(x, n), 4, method="importance")
    exact = special.logsumexp(wanted) - np.log(n)
    error = np.std(np.exp(wanted - exact)) / np.sqrt(n)
    assert error < 0.005
    assert z_score(np.exp(found - exact), 1.0) < 4


def test_half_of_the_points_is_judged_by_the_other(monkeypatch):
    """By itself a half would stay where it happens to be high."""
    draw = random_draw([9, 3], 4)
    A = predictive.sample_rows(draw, 3, np.random.default_rng(0))
    halves = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    n_effective = np.array([[9.0, 9.0], [2.0, 9.0], [9.0, 2.0]])
    monkeypatch.setattr(predictive, "importance", lambda *_: (halves.copy(), n_effective))
    monkeypatch.setattr(
        predictive, "annealed", lambda net, rows, *_: np.full((2, len(rows)), [[7.0], [0.5]])
    )
    plain = predictive.log_densities(draw, A, 0, method="importance")
    found = predictive.log_densities(draw, A, 0)
    wanted = [np.logaddexp(0.0, 1.0), np.logaddexp(2.0, 7.0), np.logaddexp(7.0, 5.0)]
    assert_allclose(found - plain, wanted - np.logaddexp(*halves.T), atol=1e-12)
    assert_array_equal(predictive.judged_densities(draw, A, 0)[1], [0.0, 0.5, 0.5])


def test_how_many_particles_count():
    """Nearly all where the likelihood is flat, about one where it is steep and they are few."""
    draw = random_draw([6, 4, 2], 5)
    A = predictive.sample_rows(draw, 20, np.random.default_rng(0))
    flat, steep = (
        draw | {"unit_precision": np.where(np.arange(12) < 6, nu, draw["unit_precision"])}
        for nu in (1e-4, 1e6)
    )
    options = {"method": "ais", "n_temperatures": 10, "n_particles": 8}
    found = [predictive.judged_densities(one, A, 0, **options)[1] for one in (flat, steep)]
    assert np.all(found[0] < 1 / 7.5) and np.median(found[1]) > 1 / 1.2
    assert np.all(found[1] <= 1 + 1e-12)
    exact = predictive.judged_densities(random_draw([6], 5), A, 0)
    assert_array_equal(exact[1], np.zeros(20))


def test_annealing_finds_the_cluster_of_a_row():
    """Of 60 clusters and 40 features one counts: particles from all alike miss it by many nats."""
    draw = random_draw([40, 6], 1, n_clusters=60)
    components = components_of(draw)
    A = predictive.sample_rows(draw, 40, np.random.default_rng(0), components)
    annealed, corrected = (
        predictive.log_densities(draw, A, 0, components=components, method=method)
        for method in ("ais", "importance")
    )
    assert np.abs(annealed - corrected).mean() < 0.5
