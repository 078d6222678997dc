"""The benchmark scripts start: the code which they measure has not moved away from under them."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def load(name, monkeypatch):
    """A script of the folder as a module."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("shape", ["full", "diag", "spherical"])
def test_mixture(monkeypatch, shape):
    module = load("dirichlet_process_mixture", monkeypatch)
    X, label = module.blobs(60, 3, 2)
    sampler = module.start_chain(X, label, shape)
    assert sampler.n_clusters >= 1


@pytest.mark.parametrize("shape", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("name", ["gaussian_density", "student_density"])
def test_densities_of_the_peer_integrate_to_one(monkeypatch, shape, name):
    peers = load("_peers", monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)) * [1.0, 0.5]
    options = {"n_components": 3, "covariance_type": shape}
    mixture = peers.fit_variational(X, options, seed=0)
    side = np.linspace(-20, 20, 801)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    total = np.exp(getattr(peers, name)(mixture, grid)).sum() * (side[1] - side[0]) ** 2
    assert abs(total - 1) < 0.01  # Student t tails reach beyond the grid


def test_quality(monkeypatch):
    quality = load("dirichlet_process_mixture_quality", monkeypatch)
    population = quality.SETTINGS["a2: 4 clusters"].population
    X, label = population.draw(60, seed=0)
    new, label_new = population.draw(40, seed=1)
    asked = np.concatenate([new, quality.within_rounding(new, 1e-9, seed=0)])
    for method in (quality.ours, quality.truth_of(population)):
        figures = quality.figures(method(X, asked, 0, True), label, label_new, len(new))
        assert figures["within rounding"] == pytest.approx(figures["log density"], abs=1e-6)
        assert -1 <= figures["ARI held out"] <= 1


def test_populations_are_calibrated(monkeypatch):
    quality = load("dirichlet_process_mixture_quality", monkeypatch)
    for setting, target in zip(quality.SETTINGS.values(), (-8.671, -1.7506), strict=True):
        new, _ = setting.population.draw(quality.HELD_OUT_ROWS, quality.HELD_OUT_SEED)
        assert setting.population.score_samples(new).mean() == pytest.approx(target, abs=1e-4)


def test_long_runs(monkeypatch):
    module = load("long_runs", monkeypatch)
    (row,) = module.files([(20, 5)], 1)
    assert row["stored draws"] == 20
    rows = module.checkpoints(30, {"n_warmup": 2, "n_draws": 5}, 2)
    assert [row["seconds between writes"] for row in rows] == [60.0, 1.0, 0.0]


def test_tree_factor_model(monkeypatch):
    module = load("tree_factor_model", monkeypatch)
    rng = np.random.default_rng(0)
    mean, root = rng.normal(size=4), rng.normal(size=(4, 4))
    exact = module.Gaussians(np.ones(1), mean[None], (root @ root.T)[None])
    x = rng.normal(size=(1, 4))
    x[0, 1] = np.nan
    seen, covariance = [0, 2, 3], root @ root.T
    gain = covariance[1, seen] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
    assert exact.impute(x)[0, 1] == pytest.approx(mean[1] + gain @ (x[0, seen] - mean[seen]))
    log_density = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(x[0, seen])
    assert exact.score_samples(x)[0] == pytest.approx(log_density)

    def patches(data, n_train, n_test):
        random = np.random.default_rng(0)
        return [random.integers(256, size=(n, 16)).astype(np.uint8) for n in (60, 10)]

    monkeypatch.setattr(module, "load_patches", patches)
    monkeypatch.setattr(module, "peers", lambda X, quick: {"one": lambda: module.one_gaussian(X)})
    monkeypatch.setattr(module, "OURS", {"tree, default": {"max_depth": 4}})
    rows, paired = module.table("raw", None, 60, 10, [0], True)
    assert [row["method"] for row in rows] == ["one", "tree, default"]
    assert all(np.isfinite(row["80%"]) and np.isfinite(row["ld50"]) for row in rows)
    assert len(paired) == 1
