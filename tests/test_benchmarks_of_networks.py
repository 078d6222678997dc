"""The benchmark scripts of networks and of the clusterer start, and those of all defaults."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from checks.scripts import load_benchmark as load


def test_cost_of_cibp_belief_net(monkeypatch):
    module = load("_cibp_belief_net_cost", monkeypatch)
    sampler = module.chain((8, 5, 3), 40)
    assert np.isfinite(sampler.log_joint())
    state = sampler.get_state()
    by_hand = [
        sum(
            weight**2 * state["unit_precision"][child] / 4 / state["unit_precision"][unit]
            for (parent, child), weight in zip(state["edges"], state["weights"], strict=True)
            if parent == unit
        )
        for unit in (13, 14, 15)
    ]
    assert module.pull(state) == pytest.approx(np.median(by_hand))
    found = module.effective_draws(sampler, 40)
    assert found["draw, ms"] > 0 and found["ESS / s"] > 0
    assert module.sweep_seconds(sampler) > 0 and module.product_seconds(40, 8, 5) > 0


def test_networks_in_many_columns(monkeypatch):
    module = load("networks_in_many_columns", monkeypatch)
    rows = np.random.default_rng(0).normal(size=(80, 9)) @ np.triu(np.ones((9, 9)))
    monkeypatch.setattr(module, "load", lambda *_: (rows, None))
    for estimator, densities in module.DENSITIES.items():
        with pytest.warns(UserWarning):
            found = module.line("made up", None, 0, estimator, True)
        mean = [float(found[density].split()[0]) for density in densities]
        assert np.isfinite(mean).all() and min(mean) > -30.0
        assert found["estimator"] == estimator.__name__ and found["auto, ms"] > 0


def test_images_with_holes(monkeypatch):
    module = load("_cibp_belief_net_images", monkeypatch)
    rng = np.random.default_rng(0)

    def few(name, data, seed):
        rows = rng.random((40, 1)) * np.ones(16) + 0.1 * rng.random((40, 16))
        return rows[:30] / 1.1, rows[30:] / 1.1, (4, 4)

    monkeypatch.setattr(module, "load_images", few)
    monkeypatch.setattr(module, "PEERS", {name: module.PEERS[name] for name in ("mean", "ridge")})
    monkeypatch.setattr(module, "SHORT", {**module.SHORT, "n_warmup": 10})
    for part, n_methods in ((module.halves, 4), (module.cells, 3)):
        rows, paired = part(Path("nowhere"), True).values()
        assert len(rows) == n_methods and len(paired) == n_methods - 1
        assert rows[-1]["method"] == module.ROW_CLUSTERS
        errors = [float(row["error, %"].split()[0]) for row in rows]
        assert max(errors[-2:]) < errors[0]  # less than by means


def test_densities_of_cibp_belief_net(monkeypatch):
    module = load("_cibp_belief_net_density", monkeypatch)
    rng = np.random.default_rng(0)
    rows, fantasies = rng.normal(size=(200, 2)), rng.normal(size=(5000, 2))
    exact = multivariate_normal(np.zeros(2), np.eye(2)).logpdf(rows).mean()
    assert module.by_nearest(fantasies, rows).mean() == pytest.approx(exact, abs=0.1)
    pixels = np.linspace(1e-6, 1 - 1e-6, 20001)[:, np.newaxis]
    train = rng.random((50, 3)) ** 2
    monkeypatch.setattr(module, "FACTORS", (1,))
    # A density of pixels is one for each of them: hold two, and integrate over the third.
    others = np.repeat(train[:1, 1:], len(pixels), axis=0)
    joint = np.exp(module.scaled_factors(train, np.column_stack([pixels, others])))
    scaled = 2 * np.arctanh(0.9 * (2 * train[:1] - 1))
    factors = module.Factors(2 * np.arctanh(0.9 * (2 * train - 1)), (1,)).model
    covariance = factors.get_covariance()[1:, 1:]
    pair = multivariate_normal(factors.mean_[1:], covariance).pdf(scaled[0, 1:])
    pair *= np.prod(3.6 / (1 - (0.9 * (2 * train[0, 1:] - 1)) ** 2))
    assert np.trapezoid(joint, pixels[:, 0]) <= pair * (1 + 1e-6)
    assert np.trapezoid(joint, pixels[:, 0]) > 0.8 * pair  # but for what lies beyond the range

    monkeypatch.setattr(module, "LONG", {**module.LONG, "n_warmup": 5, "n_draws": 5})
    monkeypatch.setattr(module, "TABLES", {"Two Moons": lambda seed: (rows[:60], rows[60:90])})
    every = module.methods(True)
    chosen = {name: every[name] for name in ("one Gaussian", module.FACTOR_ANALYSIS)}
    monkeypatch.setattr(module, "methods", lambda quick: chosen)
    assert [row["method"] for row in module.small_tables(True)] == list(chosen)


def test_ablation_of_cibp_belief_net(monkeypatch):
    module = load("_cibp_belief_net_ablation", monkeypatch)
    X = np.random.default_rng(0).integers(0, 17, size=(65, 64)).astype(float)
    short = dict(n_chains=1, n_warmup=3, n_draws=1, thin=1, sampler__n_init_units=4)
    for name in ("as it is", "no swaps of parents", "the same, one layer, prior='rows'"):
        errors = module.square_errors(module.CHANGES[name] | short, X[:60], X[60:])
        assert errors.shape == (5,) and np.isfinite(errors).all()


def test_hellinger_distance(monkeypatch):
    hellinger_kde = load("_hellinger", monkeypatch).hellinger_kde
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(700, 3)), 0.3 + rng.normal(size=(700, 3)) * [1.0, 2.0, 0.5]
    rows = np.concatenate([A, B])
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    bandwidth = 700 ** (-1 / 7)
    log_p, log_q = (
        np.log([np.exp(-np.sum((x - side) ** 2, axis=1) / (2 * bandwidth**2)).mean() for x in rows])
        for side in (rows[:700], rows[700:])
    )
    naive = np.sqrt(1 - np.mean(1 / np.cosh((log_p - log_q) / 2)))
    assert hellinger_kde(A, B) == pytest.approx(naive, rel=1e-9)
    assert hellinger_kde(B, A) == pytest.approx(naive, rel=1e-9)
    assert hellinger_kde(10 * A - 3, 10 * B - 3) == pytest.approx(naive, rel=1e-9)
    assert hellinger_kde(A, A) == 0.0
    assert hellinger_kde(A, A + 1e3) == pytest.approx(1.0, abs=1e-3)


def test_hellinger_distance_of_gaussians(monkeypatch):
    """With many rows it is that of the blurred densities, which are Gaussians too."""
    hellinger_kde = load("_hellinger", monkeypatch).hellinger_kde
    rng = np.random.default_rng(1)
    n, shift = 4000, 1.0
    A, B = rng.normal(size=(n, 1)), shift + rng.normal(size=(n, 1))
    variance = 1 + (n ** (-1 / 5)) ** 2 * (1 + shift**2 / 4)
    exact = np.sqrt(1 - np.exp(-(shift**2) / (8 * variance)))
    assert hellinger_kde(A, B) == pytest.approx(exact, rel=0.05)


def test_sets_of_icp_network(monkeypatch):
    sets = load("_icp_network_sets", monkeypatch)
    train, test = sets.load("pinwheel", None, 0, 1000)
    assert train.shape == test.shape == (1000, 2)
    np.testing.assert_allclose(train.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(train.std(axis=0), 1)
    assert not np.array_equal(train, test)
    np.testing.assert_allclose(np.hypot(*sets.ring(5000, 0).T).std(), 0.1, rtol=0.05)
    # Turned back, the rows are five arms along which the first coordinate runs.
    rows = sets.pinwheel(5000, 1) / 10
    radius = np.hypot(*rows.T)
    angle = np.arctan2(-rows[:, 1], rows[:, 0]) - 0.25 * np.exp(radius)
    aside = radius * np.sin((angle + np.pi / 5) % (2 * np.pi / 5) - np.pi / 5)
    assert np.median(np.abs(aside)) == pytest.approx(0.67 * 0.1, rel=0.1)


def test_tables_of_icp_network(monkeypatch, tmp_path):
    module = load("_icp_network_density", monkeypatch)
    monkeypatch.setattr(module, "FEW_ROWS", 60)
    names = ["baseline", "one Gaussian", "kernel density", "mixture by BIC"]
    tables = module.density(tmp_path / "none", True, names, sets=("ring", "geyser"))
    assert {row["set"] for row in tables["figures"]} == {"ring"}
    figures = {row["method"]: row for row in tables["figures"]}
    assert figures["baseline"]["distance"] < figures["one Gaussian"]["distance"]
    assert np.isnan(figures["baseline"]["log density"])
    row = tables["density: Hellinger distance over that of the baseline"][0]
    assert row["ICP, printed"] == "1.29" and row["ICP"] == "" and float(row["one Gaussian"]) > 1
    # A second run of some methods keeps the others' figures.
    monkeypatch.setattr(module, "SHORT", module.SHORT | {"n_warmup": 4, "n_draws": 4})
    again = module.density(
        tmp_path / "none", True, ["extended CIBP"], tables["figures"], sets=("ring",)
    )
    assert len(again["figures"]) == 5
    assert np.isfinite(again["figures"][-1]["log density"])


def test_cost_of_icp_network(monkeypatch):
    module = load("_icp_network_cost", monkeypatch)
    sampler = module.chain(3, 4, 30, n_settle=5)
    sampler.sweep()
    assert sampler.state.graph.n_hidden == 4 and np.isfinite(sampler.log_joint())
    sampler = module.chain(3, 4, 0, n_noise_slices=0, n_hmc=0)
    assert module.structural_sweeps(sampler, 3) > 3 * (3 + module.N_PROPOSALS)
    assert [row["part of a sweep"] for row in module.kinds(True)] == list(module.STRUCTURE)


def test_supervised_icp_networks(monkeypatch):
    module = load("_icp_network_supervised", monkeypatch)
    monkeypatch.setattr(module, "SHORT", module.SHORT | {"n_warmup": 5, "n_draws": 4})
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(60, 2)), rng.normal(size=60)
    y = 3.0 * X[:, 0] + 0.1 * noise
    for fit in (module.ridge, module.network_regressor):
        mean, spread = fit(X[:40], y[:40], X[40:], True)
        assert np.mean((mean - y[40:]) ** 2) < y.var()
        assert (spread > 0).all()
    label = (y > 0).astype(int)
    for fit in (module.logistic, module.network_classifier):
        proba = fit(X[:40], label[:40], X[40:], True)
        assert np.mean(proba.argmax(axis=1) == label[40:]) > 0.7


def test_peers_of_the_supervised_networks(monkeypatch):
    module = load("_icp_network_supervised", monkeypatch)
    monkeypatch.setattr(module, "kernels", lambda quick: {"C": [1.0], "gamma": ["scale"]})
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(60, 2)), rng.normal(size=60)
    y = 3.0 * X[:, 0] + 0.1 * noise
    for fit in (module.support_vectors, module.boosted, module.gaussian_process):
        mean, spread = fit(X[:40], y[:40], X[40:], True)
        assert np.mean((mean - y[40:]) ** 2) < y.var()
        assert (spread > 0).all()
    label = (y > 0).astype(int)
    classifiers = module.support_vector_classifier, module.boosted_classifier
    for fit in (*classifiers, module.process_classifier):
        proba = fit(X[:40], label[:40], X[40:], True)
        assert np.mean(proba.argmax(axis=1) == label[40:]) > 0.7


def test_defaults(monkeypatch, tmp_path):
    module = load("defaults", monkeypatch)
    arguments = SimpleNamespace(
        data=tmp_path, seeds=[0], quick=True, estimators=["TreeFactorModel"],
        chains=dict(n_chains=2, n_warmup=3, n_draws=2),
    )  # fmt: skip
    monkeypatch.setattr(module, "DENSITIES", [
        ("iris", module.iris, module.TreeFactorModel, -2.0, module.factors),
    ])  # fmt: skip
    (line,) = module.density(arguments)
    assert line["nats a row"] == line["mean"] and float(line["mean"]) < 0
    monkeypatch.setattr(module, "PEERS", {"KNN": module.PEERS["KNN"]})
    lines = module.cells(arguments)
    assert [line["method"] for line in lines] == ["KNN", "TreeFactorModel"] * 2
    assert all(0 < line["error"] < 8 for line in lines)
    (line,) = module.times(arguments)
    assert line["estimator"] == "TreeFactorModel" and 0 < line["impute"] < 1e4


def test_sets_of_the_clusterer(monkeypatch, tmp_path):
    sets = load("_infinite_factor_clusterer_sets", monkeypatch)
    for name in sets.SYNTHETIC:
        X, label, new, label_new = sets.load(name, tmp_path / "none", 1)
        assert X.shape == new.shape == (600, 12)
        assert set(label) == set(label_new) == set(range(4))
        np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(X.std(axis=0), 1)
    # A loud feature has its own size, whichever cluster it is in.
    rows, label = sets.bursts("disjoint bursts", 0, 20_000)
    size = np.array([rows[label == g].std(axis=0) for g in range(4)])
    np.testing.assert_allclose(size, np.where(np.kron(np.eye(4), np.ones(3)), 7.0, 1.0), rtol=0.05)
    rows, label = sets.bursts("overlapping bursts", 0, 20_000)
    size = np.array([rows[label == g].std(axis=0) for g in range(4)])
    assert (np.sum(size > 2, axis=1) == 6).all()


def test_clusters_and_densities_of_the_clusterer(monkeypatch, tmp_path):
    module = load("_infinite_factor_clusterer_clusters", monkeypatch)
    monkeypatch.setattr(module, "SHORT", {"n_chains": 1, "n_warmup": 3, "n_draws": 4})
    monkeypatch.setattr(sys.modules["_infinite_factor_clusterer_sets"], "N_ROWS", 200)
    monkeypatch.setitem(module.METHODS, module.BIC, module.gaussians("diag"))
    methods = ["k-means, true K", "GaussianMixture diag, true K", module.BIC, "HDBSCAN"]
    tables = module.clusters(tmp_path / "none", True, [*methods, module.OURS])
    assert len(tables["figures"]) == 2 * 5
    figures = {run["method"]: run for run in tables["figures"]}
    assert figures["GaussianMixture diag, true K"]["ARI"] > 0.9
    assert np.isfinite(figures[module.OURS]["log density"])
    assert np.isnan(figures["HDBSCAN"]["ARI held out"])
    (verdict,) = tables["clusters: what was asked"]
    assert verdict["ARI asked"] == 0.95


def test_numbers_of_factors(monkeypatch):
    module = load("_infinite_factor_clusterer_figure2", monkeypatch)
    X, loadings = module.draw_data(5, 0)
    assert X.shape == (200, 16) and loadings.shape == (16, 5)
    dead = ~loadings.any(axis=1)
    np.testing.assert_allclose(X[:, dead].std(axis=0), module.FLOOR, rtol=0.2)
    runs = []
    for sampler in module.SAMPLERS:
        found = module.found_factors(X, sampler, 10, 0, n_sweeps=4, n_anneal=2)
        assert found[0] >= found[1] >= found[2] >= 0
        keys = ("found columns", "found active", "found shared")
        for start in module.STARTS:
            run = dict(zip(keys, found, strict=True))
            runs.append(run | {"K": 5, "sampler": sampler, "start": start, "CPU s": 1.0})
    runs = [run | {"active": 4, "shared": 3} for run in runs]
    assert len(module.errors(runs)) == 6
    assert module.by_columns(2 * runs)[0]["active"] == 4


def test_cost_of_the_clusterer(monkeypatch):
    module = load("_infinite_factor_clusterer_cost", monkeypatch)
    for chain in (module.mixture_chain, module.scale_chain):
        sampler = chain(60, 5, 2, 3)
        sampler.sweep()
        assert np.isfinite(sampler.log_joint())
