"""The benchmark scripts start: the code which they measure has not moved away from under them."""

import gzip
import inspect
import json
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import adjusted_rand_score

from checks.scripts import load_benchmark as load
from skbnp import BNPImputer, DirichletProcessMixture, TreeFactorModel
from skbnp.samplers import TreeSampler


@pytest.mark.parametrize("shape", ["full", "diag", "spherical"])
def test_mixture(monkeypatch, shape):
    module = load("dirichlet_process_mixture", monkeypatch)
    X, label = module.blobs(60, 3, 2)
    sampler = module.start_chain(X, label, shape)
    assert sampler.n_clusters >= 1


def test_number_of_draws(monkeypatch):
    module = load("number_of_draws", monkeypatch)
    X, label = module.generated(60, 2, 2, 0, 3.0)
    found = module.figures(X, label, 20, 4, 0)
    assert 0.5 < found["R-hat"] < 3 and 1 < found["effective draws"] < 400


def test_clusters_in_factors(monkeypatch):
    module = load("clusters_in_factors", monkeypatch)
    X, label = module.dense(4)
    assert (
        X.shape == (len(label), X.shape[1]) and 60 <= len(X) < 300 and set(label) <= set(range(5))
    )
    X, label = module.factors(21)
    assert X.shape == (393, 17) and set(label) == {0, 1}
    monkeypatch.setattr(module, "cpu_seconds", lambda fit, X: (fit(X), 1.0))
    short = dict(n_warmup=200, n_draws=20, n_chains=1)
    kind = partial(module.DirichletProcessMixture, **short)
    monkeypatch.setattr(module, "DirichletProcessMixture", kind)
    with pytest.warns(ConvergenceWarning):
        found, alone = (module.figures(X, label, compares) for compares in (True, False))
    assert found["ARI"] > 0.9 and alone["ARI"] < 0.1
    assert adjusted_rand_score(label, module.peer(X)) > 0.9


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


def test_tables_by_name(monkeypatch, tmp_path, capsys):
    tables = load("_tables", monkeypatch)
    shapes = {name: (X.shape, label) for name, X, label in tables.loaded(tables.TABLES, tmp_path)}
    sizes = dict(iris=(150, 4), wine=(178, 13), diabetes=(442, 10), digits8=(1797, 8))
    sizes |= dict(cancer=(569, 30), cancer10=(569, 10), cancer6=(569, 6), gaussian14=(138, 14))
    assert {name: shape for name, (shape, _) in shapes.items()} == sizes
    assert shapes["diabetes"][1] is None and len(set(shapes["digits8"][1])) == 10
    assert "no file of yeast" in capsys.readouterr().out

    X, label = tables.load("cancer6", tmp_path)
    covariance = np.cov(X.T, bias=True)
    np.testing.assert_allclose(covariance, np.diag(np.diag(covariance)), atol=1e-10)
    assert np.diag(covariance)[0] > np.diag(covariance)[-1] > 0.5
    X = tables.standardised(np.column_stack([X, np.full(len(X), 3.0)]))
    np.testing.assert_allclose(X.std(axis=0), [1] * 6 + [0])

    train, label_train, new, label_new = tables.split(X, label, tables.CHOICE_SEED)
    assert train.shape == (455, 7) and new.shape == (114, 7)
    assert sorted(np.concatenate([train, new])[:, 0]) == sorted(X[:, 0])
    assert label_train.sum() + label_new.sum() == label.sum()


def test_tables_from_files(monkeypatch, tmp_path):
    tables = load("_tables", monkeypatch)
    wines = "acid,quality,colour\n1.5,5,red\n2.5,6,white\n3.5,7,red\n"
    with gzip.open(tmp_path / "wine_quality.csv.gz", "wt") as file:
        file.write(wines)
    with gzip.open(tmp_path / "abalone.csv.gz", "wt") as file:
        file.write("sex,rings\nF,4\nI,5\nM,6\n")
    assert tables.load("redwine", tmp_path)[0].tolist() == [[1.5], [3.5]]
    assert tables.load("redwine with quality", tmp_path)[0].tolist() == [[1.5, 5], [3.5, 7]]
    assert tables.load("whitewine", tmp_path)[0].tolist() == [[2.5]]
    assert tables.load("abalone", tmp_path)[0].tolist() == [[1, 4], [2, 5], [0, 6]]
    reported = load("dirichlet_process_mixture_quality", monkeypatch).REAL
    assert not set(tables.REAL_FOR_CHOICES) & set(reported)


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


def test_priors_of_the_mixture(monkeypatch, tmp_path):
    quality = load("dirichlet_process_mixture_quality", monkeypatch)
    iris = quality.loaded(["iris"], tmp_path)
    monkeypatch.setattr(quality, "loaded", lambda names, data: iris)
    short = partial(quality.DirichletProcessMixture, n_warmup=5, n_draws=10)
    monkeypatch.setattr(quality, "DirichletProcessMixture", short)
    (rows,) = quality.measure_priors(SimpleNamespace(data=tmp_path, quick=True)).values()
    assert [row["prior"] for row in rows] == [quality.LEARNED, quality.FIXED]
    gain = float(rows[0][f"minus {quality.FIXED}"].split()[0])
    learned, fixed = (float(row["log density"]) for row in rows)
    assert learned - fixed == pytest.approx(gain, abs=2e-3)


def test_choices_of_the_mixture(monkeypatch):
    choices = load("dirichlet_process_mixture_choices", monkeypatch)
    short = partial(choices.DirichletProcessMixture, n_warmup=5, n_draws=10)
    monkeypatch.setattr(choices, "DirichletProcessMixture", short)
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], 30)
    X = rng.normal(size=(60, 2)) + 9.0 * label[:, np.newaxis]
    runs = choices.compare([("gauss-2-2-60-61", X, label), ("golub5", X, None)], 0)
    assert len(runs) == 2 * len(choices.VARIANTS)
    assert runs[0]["group"] == "gauss, chain" and runs[-1]["group"] == "golub5"
    assert runs[0]["gain"] == 0.0 and runs[0]["ARI"] > 0.9
    lines = choices.summary(runs)
    assert [one["tables"] for one in lines[:: len(choices.VARIANTS)]] == [
        "gauss, chain",
        "golub5",
        "all",
    ]
    assert lines[-1]["ARI"] == runs[4]["ARI"]  # where there is a truth


def test_convergence_of_the_mixture(monkeypatch):
    convergence = load("dirichlet_process_mixture_convergence", monkeypatch)
    short = partial(convergence.DirichletProcessMixture, n_warmup=5, n_draws=10)
    monkeypatch.setattr(convergence, "DirichletProcessMixture", short)
    label = np.repeat([0, 1], 20)
    X = np.random.default_rng(0).normal(size=(40, 2)) + 9.0 * label[:, np.newaxis]
    line = convergence.figures("two", X, label, range(2))
    assert len(line["by seed"].split()) == 2 and float(line["ARI"]) > 0.5
    assert float(line["largest"]) >= float(line["R-hat n_clusters"])
    assert convergence.figures("two", X, None, range(1))["ARI"] == ""


def test_joining_of_components(monkeypatch):
    joining = load("joining_of_components", monkeypatch)
    X, label = joining.SETTINGS["a2: 4 clusters"].population.draw(80, seed=0)
    mixture = joining.DirichletProcessMixture(n_warmup=10, n_draws=10, random_state=0).fit(X)
    found, seconds = joining.partitions_of(mixture)
    assert all(partition.shape == (80,) for partition in found.values())
    assert seconds.keys() == {"labels", "left out"}
    runs = [
        joining.Run("A", "one", 1.0, 2, 2),
        joining.Run("A", joining.LEFT_OUT, 0.5, 2, 2),
        joining.Run("B", "two", 0.0, 4, 2),
        joining.Run("B", joining.LEFT_OUT, 0.5, 3, 2),
        joining.Run("iris, 10", "iris", 0.9, 3, 3),
    ]
    row = joining.row_of(("search", "none", "-", "-", "-"), runs)
    assert row["mean"] == 0.5 and row["one"] == 0.75 and row["two"] == 0.25 and row["iris"] == 0.9
    assert row["same number"] == 0.5 and row["clusters too many"] == 1.0


def test_memory_of_predictions(monkeypatch):
    memory = load("prediction_memory", monkeypatch)
    name = "TreeFactorModel"
    lines = list(memory.measure(name, memory.ESTIMATORS[name], [20, 40]))
    assert [line["method"] for line in lines] == list(memory.METHODS)
    assert all(len(line["MB beside the answer"].split(", ")) == 2 for line in lines)


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


def test_exact_conditional_means(monkeypatch):
    module = load("_gaussians", monkeypatch)
    rng = np.random.default_rng(0)
    mean, root = rng.normal(size=4), rng.normal(size=(4, 4))
    covariance = root @ root.T
    exact = module.Gaussians(np.ones(1), mean[None], covariance[None])
    x = rng.normal(size=(3, 4))
    x[[0, 2], 1] = np.nan
    seen = [0, 2, 3]
    gain = covariance[1, seen] @ np.linalg.inv(covariance[np.ix_(seen, seen)])
    filled = exact.impute(x)
    assert np.array_equal(filled[1], x[1])
    assert filled[2, 1] == pytest.approx(mean[1] + gain @ (x[2, seen] - mean[seen]))
    of_seen = multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)])
    log_density = [
        of_seen.logpdf(x[0, seen]),
        multivariate_normal(mean, covariance).logpdf(x[1]),
        of_seen.logpdf(x[2, seen]),
    ]
    np.testing.assert_allclose(exact.score_samples(x), log_density)
    two = module.pooled([exact, exact])
    np.testing.assert_allclose(two.score_samples(x), log_density)
    np.testing.assert_allclose(two.impute(x), filled)


def test_importance(monkeypatch):
    module = load("_cibp_belief_net_importance", monkeypatch)
    monkeypatch.setattr(module, "N_REFERENCE", 2000)
    X = np.random.default_rng(0).normal(size=(module.N_TRAIN + 5, 1))
    options = {"n_importance": 50, "proposals": (1.0, 0.0, 0.1)}
    row = module.line([module.case_of(X, True, 1)], {"points": 50}, **options)
    assert row["points"] == 50 and 0.0 < row["sd"] < 1.0 and row["ms a row"] > 0.0


def test_patches(monkeypatch):
    module = load("_tree_factor_model_patches", monkeypatch)

    def few(data, n_train, n_test):
        random = np.random.default_rng(0)
        return [random.integers(256, size=(n, 16)).astype(np.uint8) for n in (60, 10)]

    monkeypatch.setattr(module, "load_patches", few)
    everything = module.peers(np.zeros((1, 16)), True)
    monkeypatch.setattr(
        module,
        "peers",
        lambda X, quick: {
            "one": lambda: module.one_gaussian(X),
            "zero": everything["predict zero"],
        },
    )
    monkeypatch.setattr(module, "OURS", {module.DEFAULT: {"max_depth": 4}})
    tables = module.patches(None, True, only=["unit"])
    rows, paired, of_all = tables.values()
    assert [row["method"] for row in rows] == ["one", "zero", module.DEFAULT]
    assert all(np.isfinite(row["80%"]) for row in rows)
    assert np.isfinite(rows[0]["ld50"]) and np.isnan(rows[1]["ld50"])
    assert len(paired) == 2
    assert len(of_all) == len(rows) + len(module.PUBLISHED)
    assert of_all[-1]["50%"] == pytest.approx(0.5 * rows[-1]["50%"])


@pytest.mark.slow
def test_cost(monkeypatch):
    module = load("_tree_factor_model_cost", monkeypatch)
    n_branches, time = module.one_size(60, 8, 4, 2)
    assert n_branches >= 1 and time > 0
    X = module.planted(80, 64, 4, 2)
    assert [row["same draws"] for row in module.threads(X)] == [True, True]
    for row in module.share_of_products(X):
        assert 1 <= row["branches a row considers"] <= row["branches"]
        assert row["products, s"] > 0
    assert [row["move"] for row in module.share_of_moves(X)] == list(module.MOVES)
    for row in module.densities(quick=True):
        assert row["us a row"] > 0 and row["branches"] >= 1


def test_populations(monkeypatch):
    module = load("_tree_factor_model_populations", monkeypatch)
    rng = np.random.default_rng(0)
    place = np.repeat(["Han", "Italian", "Maya"], 20)
    X = 3.0 * rng.normal(size=(3, 12))[np.repeat([0, 1, 2], 20)] + rng.normal(size=(60, 12))
    X[rng.random(X.shape) < 0.1] = np.nan
    monkeypatch.setattr(module, "load_genotypes", lambda data: (X, place, place))
    monkeypatch.setattr(module, "N_LOCI", {"all": 12, "few": 8})
    monkeypatch.setattr(module, "N_COMPONENTS", 3)
    monkeypatch.setattr(module, "N_RUNS", 2)
    sampler = TreeSampler(init="kmeans", init_children=(3, 1))
    options = {"max_depth": 4, "sampler": sampler, "n_jobs": 1}
    monkeypatch.setattr(module, "TREES", {"tree": {"branch_levels": (2, 4)}})
    monkeypatch.setattr(module, "TREE", module.TREE | options)
    (rows,) = module.populations(None, True).values()
    methods = {row["method"]: row for row in rows}
    upper, lower = (methods[f"tree, branches below level {level}"] for level in (2, 4))
    assert upper["ARI, regions"] > 0.9 and upper["China on one"] > 0.9
    assert lower["between runs"] > 0.9
    draw = {
        "parent": [-1, 0, 0, 1],
        "level": [1, 2, 2, 3],
        "leaf_node": [3, 2],
        "branch": [0, 1, 1],
    }
    draw = {name: np.array(value) for name, value in draw.items()}
    assert module.nodes_at(draw, 2).tolist() == [1, 2, 2]
    assert module.nodes_at(draw, 4).tolist() == [0, 1, 1]


@pytest.mark.slow
def test_photographs(monkeypatch):
    module = load("_tree_factor_model_photographs", monkeypatch)
    monkeypatch.setattr(module, "CROP", np.s_[100:124, 100:124])
    monkeypatch.setattr(module, "N_OWN", 100)
    everything = module.methods

    def few(given, berkeley, quick):
        found = everything(given, berkeley[:100], quick)
        names = ("griddata, linear", "IterativeImputer, own", "tree, own")
        return {name: found[name] for name in names}

    monkeypatch.setattr(module, "methods", few)
    monkeypatch.setattr(
        module,
        "load_patches",
        lambda *_: [np.random.default_rng(0).integers(256, size=(100, 64)).astype(np.uint8)],
    )
    (rows,) = module.photographs(None, True).values()
    assert [float(row["PSNR, dB"]) > 10 for row in rows] == [True] * 3


def test_parts_of_tree_factor_model(monkeypatch, capsys, tmp_path):
    module = load("tree_factor_model", monkeypatch)
    monkeypatch.setattr(module, "__file__", str(tmp_path / "tree_factor_model.py"))
    rows = [{"method": "none", "50%": 1.0}]
    for part in module.PARTS:
        monkeypatch.setitem(module.PARTS, part, lambda data, quick: {"a table": rows})
    monkeypatch.setattr(module, "patches", lambda data, quick, only: {"another": rows})
    monkeypatch.setattr(module, "faces", lambda data, quick, splits: {f"{splits} splits": rows})
    command = ["tree_factor_model.py", "--quick", "--splits", "3", "--data"]
    monkeypatch.setattr(module, "cost", lambda data, quick: {"no data": rows})
    monkeypatch.setattr(sys, "argv", [*command, str(tmp_path / "nowhere")])
    module.main()
    assert "### no data" in capsys.readouterr().out
    assert len(list(tmp_path.iterdir())) == 1
    monkeypatch.setattr(sys, "argv", [*command, str(tmp_path)])
    module.main()
    shown = capsys.readouterr().out
    assert "### another" in shown and "### 3 splits" in shown
    assert len(list(tmp_path.iterdir())) == len(module.PARTS)


def test_low_rank_gaussians(monkeypatch):
    module = load("_imputers", monkeypatch)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(300, 6))
    model = module.LowRank.of_complete(rows, 2)
    covariance = model.loadings.T @ model.loadings + model.variance * np.eye(6)
    np.testing.assert_allclose(np.linalg.slogdet(covariance)[1], best_log_det(rows, 2))
    better = model.improved(rows)  # of complete rows the closed form is a fixed point
    other = better.loadings.T @ better.loadings + better.variance * np.eye(6)
    np.testing.assert_allclose(other, covariance * (1 - 1 / len(rows)), rtol=0.05, atol=1e-3)
    holed = np.where(np.arange(6) < 2, np.nan, rows[:5])
    gain = covariance[:2, 2:] @ np.linalg.inv(covariance[2:, 2:])
    expected = model.center[:2] + (rows[:5, 2:] - model.center[2:]) @ gain.T
    np.testing.assert_allclose(model.expected(holed)[:, :2], expected)


def best_log_det(rows, n_factors):
    """Log determinant of the covariance of highest likelihood, divisor n - 1."""
    values = np.linalg.eigvalsh(np.cov(rows.T))[::-1]
    rest = values[n_factors:]
    return np.log(values[:n_factors]).sum() + len(rest) * np.log(rest.mean())


def test_tasks_of_holes(monkeypatch):
    module = load("_imputers", monkeypatch)
    monkeypatch.setattr(module, "FACTORS_WITH_HOLES", module.FACTORS[:2])
    rng = np.random.default_rng(0)
    train, test = rng.random((100, 64)), rng.random((9, 64))
    task = module.lower_half(train, test, (16, 4))
    for part in (task, task.validation):
        assert np.array_equal(np.isnan(part.holed), part.asked)
        assert part.asked[:, 32:].all() and not part.asked[:, :32].any()
    assert len(task.validation.known) == 80 and len(task.validation.truth) == 20
    assert task.square_errors(task.truth + 0.1) == pytest.approx(0.01)
    task = module.scattered(train, 0.2, rng)
    part = task.validation
    assert np.array_equal(np.isnan(task.holed), task.asked)
    assert np.array_equal(np.isnan(part.holed), task.asked | part.asked)
    assert not np.any(task.asked & part.asked)  # what is asked for in the end chooses nothing
    for name, method in module.PEERS.items():
        if name != "ridge":
            filled, _ = method(task)
            assert np.array_equal(filled[~task.asked], train[~task.asked])
            assert np.all(np.isfinite(filled))


def test_calibration_of_missing_cells(monkeypatch):
    module = load("calibration_of_missing_cells", monkeypatch)
    truth, holes = module.holed(np.random.default_rng(0).normal(size=(60, 3)), 10, 50)
    options = dict(n_chains=2, n_warmup=20, n_draws=50, random_state=0)
    cells, chains = module.one_table(truth, holes, options)
    assert [line["rows"] for line in cells] == ["training", "new", "new, learned from all cells"]
    assert all(0.6 < line[name] <= 1 for line in cells for name in ("draws", "deviations"))
    assert [line["training rows"] for line in chains] == ["20 % missing", "complete"]
    assert all(line["sweeps"] == "20 + 50" and line["R-hat n_clusters"] > 0.9 for line in chains)


def test_missing_cells(monkeypatch):
    module = load("missing_cells", monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) + rng.normal(size=(60, 3))
    monkeypatch.setattr(module, "N_IMPUTATIONS", 2)
    rows = module.run("one", X, 45, dict(n_chains=2, n_warmup=3, n_draws=5))
    assert len(rows) == 12 and all(0 < row["rmse"] < 3 for row in rows)
    # One draw has all the weight either way: then both are the same.
    model = module.MODELS["tree"](n_chains=1, n_warmup=3, n_draws=1, random_state=0).fit(X)
    rows = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    mean, std = model.impute(rows, return_std=True)
    np.testing.assert_allclose(module.by_density(model, rows), [mean, std])
    # Training rows are weighed like others, not looked up.
    model = module.MODELS["mixture"](n_chains=1, n_warmup=3, n_draws=5, random_state=0).fit(rows)
    known = module.by_density(model, rows)
    np.testing.assert_allclose(known, module.by_density(model, rows + 1e-12), rtol=1e-6, atol=1e-6)
    assert not np.allclose(known[0], model.X_imputed_)


def test_builds_are_compared_by_turns(monkeypatch):
    module = load("_compare_builds", monkeypatch)
    asked = []

    def run(which):
        asked.append(which)
        return {"a case": (2.0, 3.0)[which] + len(asked)}

    ((row,)) = [module.compared(run, 2)]
    assert asked == [0, 1, 1, 0]
    assert row[0]["new / old"] == pytest.approx(5.0 / 3.0)
    # Every case runs, as short as can be.
    monkeypatch.setattr(module, "CASES", {"tree": module.CASES["tree"]})
    found = module.times(["tree"], 10_000)
    assert set(found) == {"tree", "tree, rows", "tree, one row"} and min(found.values()) > 0
    slow = {"a case": 1.0, "another": 1.0}
    monkeypatch.setattr(module, "times_of", lambda build, **_: slow | {"a case": float(build)})
    monkeypatch.setattr(sys, "argv", ["_compare_builds.py", "1.0", "1.2", "--rounds", "1"])
    with pytest.raises(SystemExit, match="slower by more than a tenth: a case$"):
        module.main()
    monkeypatch.setattr(sys, "argv", ["_compare_builds.py", "1.0", "1.05", "--rounds", "1"])
    module.main()


@pytest.mark.slow
def test_overview(monkeypatch, capsys, tmp_path):
    module = load("overview", monkeypatch)
    monkeypatch.setattr(module, "imports", lambda: [module.ratio("import", "mixture", 2.0, 1.0)])
    monkeypatch.setattr(module, "tree_sweep", lambda quick: [])
    monkeypatch.setattr(module, "HISTORY", tmp_path / "ratios.jsonl")
    arguments = ["overview.py", "--quick", "--record", "--estimators", "TreeFactorModel"]
    monkeypatch.setattr(sys, "argv", arguments)
    module.main()
    module.main()
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert {line[0].lstrip("| ") for line in lines} >= {"sweep", "rows", "one row", "fit", "import"}
    first, second = (json.loads(line) for line in (tmp_path / "ratios.jsonl").open())
    assert first["ratios"].keys() == second["ratios"].keys()
    assert first["ratios"]["import: mixture"] == 2.0 and min(first["ratios"].values()) > 0


def test_first_table(monkeypatch, capsys):
    module = load("first_table", monkeypatch)
    table, kind = module.animals(200)
    assert table.shape == (200, 12) and len(set(kind)) == module.N_KINDS
    assert abs(table.isna().to_numpy()[:, 2:].mean() - module.HOLES) < 0.02
    line, model, messages = module.measure(200, 0, n_chains=2, n_warmup=20, n_draws=20)
    assert line["columns"] == 10 and line["dropped"] == "captured, animal"
    assert [names for names, _ in messages] == [["captured"], ["animal"]]
    assert line["ARI"] > 0.5 and line["clusters"] == model.n_clusters_ <= module.N_ROWS / 50
    # The whole script, as short as can be.
    short = partial(module.DirichletProcessMixture, n_chains=2)
    monkeypatch.setattr(module, "DirichletProcessMixture", short)
    monkeypatch.setattr(sys, "argv", ["first_table.py", "--quick"])
    module.main()
    shown = capsys.readouterr().out
    assert "dropped animal, as the message said" in shown and "What to do next" in shown


def test_what_reports_call_sure(monkeypatch, capsys):
    module = load("report", monkeypatch)
    monkeypatch.setattr(module, "SEPARATIONS", (4.0,))
    make = partial(module.mixture, n_rows=80, n_kinds=2)
    monkeypatch.setattr(module, "mixture", make)
    monkeypatch.setattr(module, "DirichletProcessMixture", partial(
        module.DirichletProcessMixture, n_chains=1
    ))  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["report.py", "--quick", "--tables", "1"])
    module.main()
    assert capsys.readouterr().out.count("|---") > 10
    given = module.shares(
        {"together": 4, "truly together": 3, "apart": 2, "truly apart": 2, "sure rows": 0,
         "sure right": 0, "sure expected": 0, "doubtful rows": 2, "doubtful right": 1,
         "doubtful expected": 1.2, "noise named": 0}
    )  # fmt: skip
    assert given["of them in truth"] == 0.75 and given["their mean p"] == 0.6
    assert np.isnan(given["right"])


def test_images_beside_rivals(monkeypatch, tmp_path):
    if "use_legacy_attributes" not in inspect.signature(LogisticRegressionCV).parameters:
        pytest.skip("benchmarks are for the newest scikit-learn")
    module = load("icp_conv_classifier", monkeypatch)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 16)), np.arange(60) % 2
    X[y == 1] += 1.0
    parts = X[:40], X[40:], y[:40], y[40:]
    for name in ("SVC", "LogisticRegression, tuned"):
        accuracy, loss, alone, seconds = module.figures_of(module.METHODS[name], parts, True)
        assert accuracy > 0.8 and loss < 0.6 and np.isnan(alone) and seconds > 0
    found = module.figures_of(module.METHODS["search of the paper"], parts, True)
    assert found[0] > 0.8 and found[2] > 0.6
    with pytest.raises(SystemExit, match="name the folder of the data by --data"):
        module.mnist(SimpleNamespace(data=tmp_path, quick=True))


def test_gradients_of_images_are_timed(monkeypatch, capsys):
    module = load("icp_conv_classifier", monkeypatch)
    rows = module.gradients(True)
    assert len(rows) == 3 and all(ours > 0 for _, _, ours, _ in rows)
    module.print_gradients(rows)
    assert capsys.readouterr().out.count("| 20 |") == 3


def test_advice(monkeypatch):
    module = load("advice", monkeypatch)
    short = dict(n_chains=2, n_warmup=4, n_draws=4)
    monkeypatch.setattr(module, "default_model", lambda X: TreeFactorModel(**short))
    monkeypatch.setattr(
        module, "BNPImputer", partial(BNPImputer, estimator=TreeFactorModel(**short))
    )
    mixture = partial(DirichletProcessMixture, **short)
    monkeypatch.setattr(module, "DirichletProcessMixture", mixture)
    X = np.random.default_rng(0).normal(size=(40, 1)) + np.random.default_rng(1).normal(
        size=(40, 3)
    )
    found = module.cells(X, 0, 2)
    assert found["r_hat_ x1"] > 1.0 and found["error x2"] < 2.0
    of_few = module.few_rows(module.correlated(X, 0), 3, 0)
    assert module.line("one", [of_few])["least"] == of_few["full - diag"]


def test_coclustering(monkeypatch, capsys):
    module = load("coclustering", monkeypatch)
    kind = partial(module.DirichletProcessMixture, n_warmup=20, n_draws=40, n_chains=1)
    monkeypatch.setattr(module, "DirichletProcessMixture", kind)
    monkeypatch.setattr(sys, "argv", ["coclustering.py", "--tables", "2"])
    module.main()
    out = capsys.readouterr().out
    assert "| 0.9 to 1 |" in out and "mean squared error, components:" in out
