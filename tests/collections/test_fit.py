"""Fits of the mixture to collections: the same draws wherever rows are, and what follows."""

import pickle
from copy import copy
from functools import partial

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from checks.collections_rows import memory_map
from skbnp import DirichletProcessMixture
from skbnp.collections.tree import CELL
from skbnp.dirichlet_process_mixture import _collections
from skbnp.laws import Gamma
from skbnp.mcmc import diagnostics
from skbnp.plot import ClusterDisplay, ClusterProfileDisplay, CoclusteringDisplay
from skbnp.samplers import MixtureSampler
from skbnp.summaries.profiles import profiles

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:store=:UserWarning"
)
SIZES = {"n_chains": 2, "n_warmup": 3, "n_draws": 6, "random_state": 0, "covariance_type": "diag"}
N_KEPT = 600


@pytest.fixture(autouse=True)
def few_are_kept(monkeypatch):
    monkeypatch.setattr(_collections, "MOST_KEPT", N_KEPT)
    with dask.config.set(scheduler="synchronous"):
        yield


def table(n=2 * CELL + 500):
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=n)
    X = rng.normal(5.0 * np.eye(3)[group][:, :2], 1.0).astype(np.float32)
    X[rng.random(n) < 0.02, 1] = np.nan
    return X


X = table()


def fitted(stored, **changes):
    return DirichletProcessMixture(**SIZES | changes).fit(stored)


@pytest.fixture(scope="module")
def of_array():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_collections, "MOST_KEPT", N_KEPT)
        return fitted(da.from_array(X, chunks=(CELL, 2)))


def assert_same_draws(found, known):
    assert found.posterior_.traces.keys() == known.posterior_.traces.keys()
    for name, trace in known.posterior_.traces.items():
        assert found.posterior_.traces[name].tobytes() == trace.tobytes(), name
    for mine, theirs in zip(found.posterior_, known.posterior_, strict=True):
        assert mine.keys() == theirs.keys()
        for name, value in theirs.items():
            np.testing.assert_array_equal(mine[name], value)


@pytest.mark.parametrize(
    "stored",
    [
        da.from_array(X, chunks=X.shape),
        da.from_array(X, chunks=(10_000, 1)),
        da.from_array(X, chunks=(CELL, 2))[np.arange(len(X)) >= 0],
    ],
    ids=["one block", "other edges", "unknown lengths"],
)
def test_draws_do_not_depend_on_the_blocks(of_array, stored):
    assert_same_draws(fitted(stored), of_array)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_draws_do_not_depend_on_where_rows_are(of_array, n_jobs, tmp_path):
    found = fitted(memory_map(X, tmp_path), n_jobs=n_jobs)
    assert_same_draws(found, of_array)
    labels = found.labels_
    assert isinstance(labels, np.ndarray)
    np.testing.assert_array_equal(of_array.labels_.compute(), labels)


def test_labels_are_lazy_and_those_of_the_kept_rows_their_own(of_array):
    labels = of_array.labels_
    assert isinstance(labels, da.Array) and labels.dtype == np.intp
    assert labels.chunks == ((CELL, CELL, 500),)
    found, kept = labels.compute(), _collections.kept_rows(len(X))
    assert len(kept) == N_KEPT
    np.testing.assert_array_equal(found[kept], of_array._training_labels)
    others = np.setdiff1d(np.arange(len(X)), kept)
    np.testing.assert_array_equal(found[others], of_array.predict(X)[others])
    assert of_array.partition_info_["n_rows"] == N_KEPT
    assert of_array.partition_info_["n_samples"] == len(X)
    assert of_array.component_labels_.shape == (N_KEPT,)
    np.testing.assert_array_equal(of_array.kept_rows_, kept)


def test_blocks_of_draws_hold_all_rows(of_array):
    draw = of_array.posterior_[0, -1]
    assert draw["label"].shape == (N_KEPT,)
    assert draw["n_members"].sum() == len(X)
    assert (np.bincount(draw["label"], minlength=len(draw["n_members"])) <= draw["n_members"]).all()


def test_labels_of_all_rows_in_a_draw_follow_from_its_record(of_array, tmp_path):
    draw, kept = of_array.posterior_[1, 2], _collections.kept_rows(len(X))
    lazy = of_array.draw_labels(1, 2)
    assert isinstance(lazy, da.Array) and lazy.chunks == ((CELL, CELL, 500),)
    labels = lazy.compute()
    assert labels.dtype == np.intp
    np.testing.assert_array_equal(labels[kept], draw["label"])
    # The pass has counted the same labels, all of them, where the rows were.
    assert np.bincount(labels).tolist() == draw["n_members"][:-1].tolist()
    for held in (X, da.from_array(X, chunks=(7000, 1)), memory_map(X, tmp_path)):
        np.testing.assert_array_equal(of_array.draw_labels(1, 2, held), labels)
    of_array.save(tmp_path / "file")
    loaded = DirichletProcessMixture.load(tmp_path / "file")
    np.testing.assert_array_equal(loaded.posterior_[1, 2]["label"], draw["label"])
    np.testing.assert_array_equal(loaded.draw_labels(1, 2, X), labels)
    assert loaded.posterior_[1, 2].keys() == draw.keys()
    with pytest.raises(ValueError, match="X must be given"):
        loaded.draw_labels(1, 2)
    with pytest.raises(ValueError, match=f"X must have the {len(X)} rows that fit saw, got 5"):
        loaded.draw_labels(1, 2, X[:5])
    stored = da.from_array(X)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        loaded.draw_labels(1, 2, stored[stored[:, 0] > -np.inf])


@pytest.fixture(scope="module")
def with_draws():
    """With as many draws as leave-one-out needs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_collections, "MOST_KEPT", N_KEPT)
        options = dict(n_draws=16, covariance_type="full")
        return fitted(da.from_array(X[: CELL + 2000], chunks=(CELL // 2, 2)), **options)


def test_rows_are_left_out_lazily(with_draws):
    rows, model, kept = X[: CELL + 2000], with_draws, _collections.kept_rows(CELL + 2000)
    lazy = model.leave_one_out(max_draws=26, return_pareto_k=True)
    for one in lazy:
        assert isinstance(one, da.Array) and one.dtype == float
        assert one.chunks == ((CELL // 2, CELL // 2, 2000),)
    # Of the last block alone; its rows in memory are others that posterior_ knows of.
    density, pareto_k = dask.compute(*(one.blocks[2] for one in lazy))
    assert np.isfinite(density).all()
    others = da.from_array(rows, chunks=(len(rows) - 300, 2))
    again = model.leave_one_out(others, 26).blocks[1].compute()
    np.testing.assert_allclose(again, density[-300:], rtol=1e-9)
    chosen = model.posterior_.evenly_in_chains(26)
    assert len(chosen) == 13
    trace = model.posterior_.traces["log_density"][:, model.posterior_.stored[chosen]]
    known = model.posterior_.log_likelihood(26)
    found = diagnostics.loo_of_rows(known, diagnostics.efficiency(trace))
    late = kept >= CELL
    np.testing.assert_allclose(density[kept[late] - CELL], found[0][late], rtol=1e-9)
    np.testing.assert_allclose(pareto_k[kept[late] - CELL], found[1][late], rtol=1e-6, atol=1e-6)
    # A row is little of so many: its density is that of a new one, nearly.
    np.testing.assert_allclose(density, model.score_samples(rows[CELL:]), atol=0.05)


def test_rows_are_left_out_of_files(with_draws, tmp_path):
    rows = X[: CELL + 2000]
    with_draws.save(tmp_path / "file")
    loaded = DirichletProcessMixture.load(tmp_path / "file")
    with pytest.raises(ValueError, match="X must be given"):
        loaded.leave_one_out()
    with pytest.raises(ValueError, match=f"X must have the {len(rows)} rows that fit saw, got 5"):
        loaded.leave_one_out(rows[:5])
    for answer in (loaded.leave_one_out, partial(loaded.draw_labels, 0, 1)):
        with pytest.raises(ValueError, match="X has 3 features, but .* is expecting 2"):
            answer(X=np.c_[rows, rows[:, 0]])
        with pytest.raises(ValueError, match="X has 1 features, but .* is expecting 2"):
            answer(X=da.from_array(rows[:, :1]))
        with pytest.raises(ValueError, match="in their order, got another row 1[0-9]*$"):
            answer(X=rows[::-1])
        lazy = answer(X=da.from_array(rows + 1, chunks=(CELL, 2)))
        with pytest.raises(ValueError, match="X must have the rows that fit saw"):
            lazy.blocks[1].compute()
    with pytest.raises(ValueError, match="max_draws must be an integer >= 1, got 0"):
        loaded.leave_one_out(rows, max_draws=0)
    with pytest.raises(ValueError, match="loo needs at least 25 stored draws"):
        loaded.leave_one_out(rows, max_draws=24)
    loo = loaded.posterior_.loo(26)
    assert np.isfinite(loo.elpd) and len(loo.elpd_i) == N_KEPT


@pytest.mark.filterwarnings("ignore:Pareto's k")
def test_rows_in_memory_are_left_out_as_posterior_does(monkeypatch):
    monkeypatch.setattr(_collections, "MOST_KEPT", 1000)
    model = fitted(da.from_array(X[:900], chunks=(300, 2)), n_draws=20)
    loo = model.posterior_.loo(30)
    density, pareto_k = model.leave_one_out(max_draws=30, return_pareto_k=True)
    np.testing.assert_array_equal(density, loo.elpd_i)
    np.testing.assert_array_equal(pareto_k, loo.pareto_k)
    np.testing.assert_array_equal(model.kept_rows_, np.arange(900))
    np.testing.assert_array_equal(model.leave_one_out(X[:900], 30), density)
    for answer in (model.leave_one_out, partial(model.draw_labels, 0, 1)):
        with pytest.raises(ValueError, match="X must have the 900 rows that fit saw, got 10"):
            answer(X=X[:10])
        with pytest.raises(ValueError, match="X has 1 features"):
            answer(X=pd.DataFrame(X[:900, :1]))


@pytest.mark.parametrize("covariance_type", ["full", "spherical"])
def test_labels_and_imputations_of_kept_rows_are_those_of_the_chain(covariance_type):
    found = fitted(da.from_array(X, chunks=X.shape), covariance_type=covariance_type, n_draws=2)
    draw = pickle.loads(pickle.dumps(found)).posterior_[0, 1]
    kept = _collections.kept_rows(len(X))
    n_holes = np.isnan(X[kept]).sum()
    assert draw["label"].shape == (N_KEPT,) and not draw["label"].flags.writeable
    if covariance_type == "full":
        assert draw["imputed"].shape == (n_holes,) and np.isfinite(draw["imputed"]).all()
    else:
        assert draw.get("imputed") is None
    with pytest.raises(KeyError):
        draw["nothing"]
    np.testing.assert_array_equal(draw["label"], found.draw_labels(0, 1).compute()[kept])


def test_draws_hold_as_much_as_their_blocks(of_array):
    """Neither labels of the kept rows nor rows at hand."""
    draw = of_array.posterior_[0, -1]
    blocks = sum(np.size(value) for name, value in draw.items() if "record" not in name)
    assert sum(np.size(value) for value in draw.values()) < 3 * blocks + 20
    data = of_array.posterior_.final_states[0]
    assert "found" not in data and "subset" not in data["record"]


def test_a_damaged_record_is_refused(of_array, tmp_path):
    of_array.save(tmp_path / "file")
    draw = dict(of_array.posterior_[0, 0])
    for name, value in [
        ("record.anchor_row", draw["record.anchor_row"] + len(X)),
        ("record.anchor_place", draw["record.anchor_place"][:1]),
        ("record.blocks.n_members", draw["record.blocks.n_members"][:1]),
    ]:
        with pytest.raises(ValueError, match="record|anchor"):
            of_array._check_draw(draw | {name: value})


def test_clusters_are_found(of_array):
    assert of_array.n_clusters_ == 3
    shares = of_array.predict_proba(X[:200])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_a_block_without_kept_rows_counts_as_any_row(of_array):
    draw = copy(of_array.posterior_[0, -1])
    draw["label"], draw.companions = np.zeros_like(draw["label"]), None
    table = of_array._companion_table(draw)
    sizes = np.bincount(of_array._training_labels)
    assert len(table) == len(draw["n_members"]) - 1 > 1
    np.testing.assert_allclose(table, np.tile(sizes / sizes.sum(), (len(table), 1)))


def test_units_are_those_of_all_rows(of_array):
    np.testing.assert_allclose(of_array._units.scale, np.nanstd(X.astype(float), axis=0))
    np.testing.assert_allclose(of_array._units.center, np.nanmean(X.astype(float), axis=0))


def test_a_small_collection_is_taken_to_memory(monkeypatch):
    monkeypatch.setattr(_collections, "MOST_KEPT", 1000)
    small = X[:900]
    known, found = fitted(small), fitted(da.from_array(small, chunks=(300, 2)))
    assert_same_draws(found, known)
    assert isinstance(found.labels_, da.Array)
    np.testing.assert_array_equal(found.labels_.compute(), known.labels_)
    np.testing.assert_array_equal(found.X_imputed_, known.X_imputed_)
    assert found.partition_info_["n_rows"] == found.partition_info_["n_samples"] == 900


def test_a_small_file_is_as_a_table_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(_collections, "MOST_KEPT", 1000)
    known, found = fitted(X[:900]), fitted(memory_map(X[:900], tmp_path))
    assert_same_draws(found, known)
    for one in (found, pickle.loads(pickle.dumps(found))):
        assert isinstance(one.labels_, np.ndarray)
        np.testing.assert_array_equal(one.labels_, known.labels_)


def test_reports_tables_and_pictures(of_array):
    report = of_array.report()
    of = f"{N_KEPT} of {len(X):,} rows"
    assert report.title == f"DirichletProcessMixture: report on {of}, 2 columns"
    said = f"The model was fitted to {len(X):,} rows; this report counts {N_KEPT} of them, drawn at"
    assert said in report.sections["summary"].sentences[0]
    assert f"The table has {len(X):,} rows" in str(report)
    rows = {one["row"] for one in report.sections["rows"].table}
    assert rows == set(of_array.kept_rows_.astype(str))
    assert of_array.coclustering(rows=[0, 5]).shape == (2, 2)
    assert len(of_array.credible_ball().horizontal[0]) == N_KEPT
    display = CoclusteringDisplay.from_estimator(of_array, max_rows=50)
    assert display.probability.shape == (50, 50)
    assert of_array.sample(5, random_state=0)[0].shape == (5, 2)
    assert len(of_array.sample_missing(X[:4], n_tables=2)) == 2


def test_pictures_show_the_labels_of_the_rows_in_memory():
    found = fitted(X)
    labels = found._training_labels
    rows = found.kept_rows_[::-3]
    np.testing.assert_array_equal(
        ClusterDisplay.from_estimator(found, X[rows]).labels, labels[::-3]
    )
    display = ClusterProfileDisplay.from_estimator(found)
    known = profiles(found.posterior_.observed_data(), labels, [None, None])
    np.testing.assert_array_equal(display.difference, known.difference)


def test_arviz_has_the_rows_in_memory():
    pytest.importorskip("arviz")
    found = fitted(X, covariance_type="full")
    data = found.posterior_.to_arviz()
    assert data["posterior"]["label"].shape == (2, 6, N_KEPT)
    np.testing.assert_array_equal(
        data["posterior"]["label"].values[1, 3], found.posterior_[1, 3]["label"]
    )
    np.testing.assert_array_equal(
        data["constant_data"]["labels"].values, found.labels_[_collections.kept_rows(len(X))]
    )


def test_fit_predict_and_set_clone(of_array):
    stored = da.from_array(X, chunks=(CELL, 2))
    labels = clone(of_array).fit_predict(stored)
    np.testing.assert_array_equal(labels.compute(), of_array.labels_.compute())


def test_what_is_not_kept_says_what_to_do(of_array):
    for name in ("X_imputed_", "X_imputed_std_"):
        with pytest.raises(AttributeError, match=rf"{name} is not kept.*call impute\(X\)"):
            getattr(of_array, name)


def test_figures_of_kept_rows(of_array):
    found = of_array.posterior_.log_likelihood()
    assert found.shape[-1] == N_KEPT
    kept = X[_collections.kept_rows(len(X))]
    draws = found.reshape(-1, N_KEPT)
    mean = np.logaddexp.reduce(draws, axis=0) - np.log(len(draws))
    as_new = of_array.score_samples(kept)
    # A row is left out of what it is compared with, which is little of so many.
    assert (mean < as_new).all()
    np.testing.assert_allclose(mean, as_new, atol=0.02)


# -- files, going on


def test_a_loaded_estimator_answers_for_any_block(of_array, tmp_path):
    of_array.save(tmp_path / "file")
    loaded = DirichletProcessMixture.load(tmp_path / "file")
    stored = da.from_array(X, chunks=(CELL, 2))
    for name in ("predict", "predict_proba", "score_samples"):
        known = getattr(of_array, name)(stored[:500]).compute()
        np.testing.assert_array_equal(getattr(loaded, name)(stored[:500]).compute(), known)
    with pytest.raises(AttributeError, match=r"labels_ of the rows .* call predict\(X\)"):
        _ = loaded.labels_
    assert not hasattr(loaded, "labels_")


def test_pickles_hold_no_rows_of_files(of_array, tmp_path):
    found = fitted(memory_map(X, tmp_path))
    data = pickle.dumps(found)
    assert len(data) < X.nbytes
    again = pickle.loads(data)
    np.testing.assert_array_equal(again.predict(X[:50]), found.predict(X[:50]))
    lazy = pickle.loads(pickle.dumps(of_array))
    np.testing.assert_array_equal(lazy.labels_.compute(), of_array.labels_.compute())


def test_warm_start_and_checkpoint_go_on_with_the_same_draws(of_array, tmp_path):
    stored = da.from_array(X, chunks=(CELL, 2))
    first = DirichletProcessMixture(**SIZES | {"n_draws": 2}, warm_start=True).fit(stored)
    assert_same_draws(first.set_params(n_draws=6).fit(stored), of_array)
    begun = fitted(stored, n_draws=2, checkpoint=tmp_path)
    assert begun.posterior_.n_draws == 2
    # Another way to hold the same rows is the same data.
    other = da.from_array(X, chunks=(10_000, 2))
    resumed = fitted(other, checkpoint=tmp_path)
    assert resumed.posterior_.n_sweeps_run == 2 * 4
    assert_same_draws(resumed, of_array)
    assert max(path.stat().st_size for path in tmp_path.iterdir()) < 300_000


def test_other_rows_are_other_data(tmp_path):
    stored = da.from_array(X, chunks=(CELL, 2))
    fitted(stored, n_draws=1, checkpoint=tmp_path)
    changed = X.copy()
    others = np.setdiff1d(np.arange(len(X)), _collections.kept_rows(len(X)))
    changed[others[7], 0] += 1.0  # a row that is not kept
    fitted(da.from_array(changed, chunks=(CELL, 2)), n_draws=1, checkpoint=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


# -- tables of several kinds


def frame(n=CELL + 300):
    rng = np.random.default_rng(1)
    group = rng.integers(2, size=n)
    return pd.DataFrame(
        {
            "size": np.where(rng.random(n) < 0.05, np.nan, rng.normal(4.0 * group, 1.0)),
            "kind": pd.Categorical.from_codes((group + rng.integers(2, size=n)) % 3, list("abc")),
            "n": rng.poisson(1.0 + 3.0 * group),
            "flag": rng.random(n) < 0.2 + 0.5 * group,
        }
    )


def test_frames_by_names_and_categories():
    given = frame()
    stored = dd.from_pandas(given, npartitions=5)
    found = fitted(stored)
    assert list(found.families_) == ["gaussian", "categorical", "poisson", "bernoulli"]
    assert list(found.feature_names_in_) == list(given.columns)
    assert_same_draws(fitted(dd.from_pandas(given, npartitions=2)), found)
    assert isinstance(found.labels_, da.Array) and found.labels_.shape == (len(given),)
    assert found.labels_.compute().max() < found.n_clusters_
    assert found.impute(given[:20])["size"].notna().all()


def test_text_is_read_by_the_levels_of_the_kept_rows():
    given = frame()
    given["kind"] = given["kind"].astype(object)
    found = fitted(dd.from_pandas(given, npartitions=3))
    assert list(found.levels_[1]) == ["a", "b", "c"]
    stored, draw = dd.from_pandas(given, npartitions=4), found.posterior_[0, 0]
    for held in (None, stored, given):
        labels = np.asarray(found.draw_labels(0, 0, held))
        assert np.bincount(labels).tolist() == draw["n_members"][:-1].tolist()
    kept = set(_collections.kept_rows(len(given)))
    place = next(i for i in range(len(given) - 1, 0, -1) if i not in kept)
    given.loc[place, "kind"] = "d"
    with pytest.raises(ValueError, match=r"level 'd' in column 'kind'.*block 2 of X \(rows "):
        fitted(dd.from_pandas(given, npartitions=3))


# -- what is wrong


def test_algorithms_that_visit_rows_one_by_one_are_refused():
    with pytest.raises(ValueError, match="algorithm must be 'auto' or 'parallel' for a collection"):
        fitted(da.from_array(X, chunks=X.shape), sampler=MixtureSampler(algorithm="collapsed"))


def test_columns_are_judged_by_all_rows():
    empty = X.copy()
    empty[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"observed value in every column, got only NaN in column"):
        fitted(da.from_array(empty, chunks=(CELL, 2)))
    constant = X.copy()
    constant[:, 1] = 2.0
    with pytest.raises(ValueError, match="X must vary in every column"):
        fitted(da.from_array(constant, chunks=(CELL, 2)), covariance_type="full")
    infinite = X.copy()
    infinite[CELL + 3, 1] = np.inf
    with pytest.raises(ValueError, match="must not .*contain.*infin|infinity"):
        fitted(da.from_array(infinite, chunks=(CELL, 2)))


def test_rows_without_values_are_told_by_their_numbers_in_the_collection():
    holes = X.copy()
    holes[[3, CELL + 5]] = np.nan
    n_empty = np.isnan(holes).all(axis=1).sum()
    with pytest.warns(UserWarning, match=rf"X has {n_empty} row\(s\) with no observed value, row"):
        fitted(da.from_array(holes, chunks=(CELL, 2)), n_draws=1)


def test_a_fit_that_fails_leaves_the_estimator_as_it_was(of_array):
    model = clone(of_array)
    model.fit(da.from_array(X, chunks=(CELL, 2)))
    with pytest.raises(TypeError, match="dtype object"):
        model.fit(da.from_array(np.full((50, 2), None), chunks=(10, 2)))
    assert model.n_clusters_ == of_array.n_clusters_
    assert "_fitting" not in vars(model)
    np.testing.assert_array_equal(model.labels_.compute(), of_array.labels_.compute())


@pytest.mark.parametrize("law", [1.0, Gamma(1.0, 1.0)])
@pytest.mark.parametrize("covariance_type", ["full", "spherical"])
def test_models(covariance_type, law):
    found = fitted(
        da.from_array(X, chunks=(CELL, 2)),
        covariance_type=covariance_type,
        concentration=law,
        n_chains=1,
        n_draws=3,
    )
    assert np.isfinite(found.posterior_.traces["log_joint"]).all()
    assert np.isfinite(found.score(X[:50]))
