"""Answers for collections are those for tables in memory, bit for bit, and lazy for Dask."""

import pickle
import threading

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from checks.collections_rows import memory_map
from skbnp import DirichletProcessMixture

METHODS = ["predict", "predict_proba", "novelty_proba", "score_samples", "transform", "impute"]
SIZES = {"n_chains": 1, "n_warmup": 20, "n_draws": 50, "random_state": 0}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def synchronous():
    with dask.config.set(scheduler="synchronous"):
        yield


def training(n=80):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (n // 2, 3)), rng.normal(6, 1, (n - n // 2, 3))])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.fixture(scope="module")
def model():
    return DirichletProcessMixture(**SIZES).fit(training())


@pytest.fixture(scope="module")
def rows():
    """New rows, and training rows among them."""
    rng = np.random.default_rng(1)
    X = rng.normal(3, 3, (2500, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    X[900:980] = training()
    return X


def same_bits(found, known):
    assert type(found) is type(known)
    assert found.dtype == known.dtype and found.shape == known.shape
    assert found.tobytes() == known.tobytes()


@pytest.mark.parametrize("chunks", [(1000, 3), (777, 2), (2500, 3)])
@pytest.mark.parametrize("name", METHODS)
def test_of_dask_arrays(model, rows, name, chunks):
    known = getattr(model, name)(rows)
    found = getattr(model, name)(da.from_array(rows, chunks=chunks))
    assert isinstance(found, da.Array)
    assert (found.shape, found.dtype, found.ndim) == (known.shape, known.dtype, known.ndim)
    assert found.chunks[0] == da.from_array(rows, chunks=chunks).chunks[0]
    same_bits(found.compute(), known)


@pytest.mark.parametrize("name", METHODS)
def test_of_memory_maps(model, rows, name, tmp_path):
    same_bits(getattr(model, name)(memory_map(rows, tmp_path)), getattr(model, name)(rows))


@pytest.mark.parametrize("name", ["predict", "impute"])
def test_of_files_in_pieces(model, rows, name, tmp_path):
    known = getattr(model, name)(rows)
    zarr, h5py = pytest.importorskip("zarr"), pytest.importorskip("h5py")
    stored = zarr.create_array(tmp_path / "z", shape=rows.shape, chunks=(700, 2), dtype=rows.dtype)
    stored[:] = rows
    same_bits(getattr(model, name)(stored), known)
    with h5py.File(tmp_path / "h", "w") as file:
        same_bits(getattr(model, name)(file.create_dataset("X", data=rows)), known)


def test_scores_and_deviations(model, rows, tmp_path):
    stored = da.from_array(rows, chunks=(999, 3))
    assert model.score(stored) == model.score(rows) == model.score(memory_map(rows, tmp_path))
    known = model.impute(rows, return_std=True)
    for found in (
        dask.compute(*model.impute(stored, return_std=True)),
        dask.compute(*model.impute(stored, True)),
        model.impute(X=memory_map(rows, tmp_path), return_std=True),
    ):
        same_bits(found[0], known[0])
        same_bits(found[1], known[1])


def test_nothing_is_computed_before_it_is_asked_for(model):
    def fail(block):
        raise AssertionError("a block has been read")

    stored = da.ones((50, 3), chunks=(10, 3)).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    for name in METHODS:
        found = getattr(model, name)(stored)
        with pytest.raises(AssertionError, match="a block has been read"):
            found.compute()


def test_the_fitted_state_is_in_the_graph_once(model):
    """A graph of more blocks is larger by what their tasks take, which is little."""
    n_bytes = {}
    for n in (20, 220):
        graph = dict(model.predict(da.ones((n, 3), chunks=(1, 3))).__dask_graph__())
        n_bytes[n] = sum(len(pickle.dumps(task)) for task in graph.values())
    of_state = len(pickle.dumps(model))
    assert n_bytes[20] > of_state / 2
    assert n_bytes[220] - n_bytes[20] < 200 * of_state / 10


@pytest.mark.parametrize("name", METHODS)
def test_unknown_lengths_and_blocks_without_rows(model, rows, name):
    stored = da.from_array(rows, chunks=(500, 3))
    some = stored[stored[:, 0] > 4.0]
    known = getattr(model, name)(rows[rows[:, 0] > 4.0])
    same_bits(getattr(model, name)(some).compute(), known)
    none = stored[stored[:, 0] > 1e9]
    assert len(getattr(model, name)(none).compute()) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_dtypes(model, dtype):
    X = np.random.default_rng(2).normal(3, 3, (40, 3)).astype(dtype)
    for name in METHODS:
        found = getattr(model, name)(da.from_array(X, chunks=(15, 3)))
        known = getattr(model, name)(X)
        assert found.dtype == known.dtype
        same_bits(found.compute(), known)


def test_shares_in_frames_where_set_output_asks_for_them(rows):
    model = DirichletProcessMixture(**SIZES).fit(training()).set_output(transform="pandas")
    stored = da.from_array(rows[:100], chunks=(30, 3))
    found = model.transform(stored)
    assert isinstance(found, dd.DataFrame)
    pd.testing.assert_frame_equal(
        found.compute().reset_index(drop=True), model.transform(rows[:100])
    )
    assert isinstance(model.predict_proba(stored), da.Array)


# -- frames


def frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": np.where(rng.random(n) < 0.1, np.nan, rng.normal(0, 1, n)),
            "n": pd.array(np.where(rng.random(n) < 0.2, None, rng.integers(0, 5, n)), "Int64"),
            "y": rng.normal(5, 1, n).astype(np.float32),
            "kind": pd.Categorical.from_codes(rng.integers(-1, 3, n), ["a", "b", "c"]),
        },
        index=pd.Index(np.arange(n) * 3, name="case"),
    )


@pytest.fixture(scope="module")
def of_frame():
    return DirichletProcessMixture(**SIZES).fit(frame())


@pytest.mark.parametrize("name", ["predict", "novelty_proba", "score_samples"])
def test_numbers_of_the_rows_of_frames(of_frame, name):
    new = frame(100, seed=1)
    found = getattr(of_frame, name)(dd.from_pandas(new, npartitions=4))
    known = getattr(of_frame, name)(new)
    assert isinstance(found, dd.Series) and found.dtype == known.dtype
    series = found.compute()
    same_bits(series.to_numpy(), known)
    pd.testing.assert_index_equal(series.index, new.index)


@pytest.mark.parametrize("name", ["predict_proba", "transform"])
def test_shares_of_the_rows_of_frames(of_frame, name):
    new = frame(100, seed=1)
    found = getattr(of_frame, name)(dd.from_pandas(new, npartitions=4))
    assert list(found.columns) == list(of_frame.get_feature_names_out())
    shares = found.compute()
    np.testing.assert_array_equal(shares.to_numpy(), getattr(of_frame, name)(new))
    pd.testing.assert_index_equal(shares.index, new.index)


def test_filled_frames_keep_columns_index_and_kinds(of_frame):
    new = frame(100, seed=1)
    stored = dd.from_pandas(new, npartitions=4)
    filled, std = of_frame.impute(stored, return_std=True)
    known, known_std = of_frame.impute(new, return_std=True)
    found = filled.compute()
    assert found.dtypes.to_dict() == filled.dtypes.to_dict()
    pd.testing.assert_frame_equal(found, known, check_dtype=False)
    assert found.dtypes["kind"] == new.dtypes["kind"] and found.dtypes["y"] == np.float32
    pd.testing.assert_frame_equal(std.compute(), known_std)


def test_partitions_without_rows(of_frame):
    stored = dd.from_pandas(frame(100, seed=1), npartitions=4)
    some = stored.map_partitions(lambda part: part[part.index < 60])
    for name in METHODS:
        known = getattr(of_frame, name)(frame(100, seed=1).iloc[:20])
        found = getattr(of_frame, name)(some).compute()
        assert len(found) == 20
        if name != "impute":
            np.testing.assert_array_equal(found.to_numpy(), known)


# -- what is wrong, at once


def test_wrong_tables_are_refused_at_once(model, of_frame):
    with pytest.raises(ValueError, match="X has 2 features, but .* is expecting 3"):
        model.predict(da.ones((5, 2)))
    with pytest.raises(ValueError, match="2 dimensions, got 1"):
        model.predict(da.ones(5))
    with pytest.raises(ValueError, match="feature names should match"):
        of_frame.predict(dd.from_pandas(frame().rename(columns={"x": "z"}), npartitions=2))
    with pytest.raises(NotFittedError):
        DirichletProcessMixture().predict(da.ones((5, 3)))


def test_a_level_that_fit_has_not_seen_is_named(of_frame):
    new = frame(50, seed=1)
    new["kind"] = new["kind"].cat.add_categories("d").fillna("d")
    with pytest.raises(ValueError, match="level 'd' in column 'kind', unseen in fit"):
        of_frame.predict(dd.from_pandas(new, npartitions=2)).compute()


def test_blocks_in_several_threads(model, rows):
    stored = da.from_array(rows, chunks=(100, 3))
    found = model.predict_proba(stored).compute(scheduler="threads", num_workers=3)
    same_bits(found, model.predict_proba(rows))
    assert threading.active_count() < 50
