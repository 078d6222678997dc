"""Fitted estimators as files: the same answers in a fresh process, and tampered files refused."""

import dataclasses
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from checks.callbacks import NEEDS_CALLBACKS
from checks.saved import answers
from checks.toy_samplers import TaskLog
from checks.watched import ToyModel, table_with_holes
from skbnp import DirichletProcessMixture, TreeFactorModel
from skbnp.dirichlet_process_mixture._model import Prior
from skbnp.dirichlet_process_mixture._training_rows import TrainingRows
from skbnp.laws import Beta, Gamma, Grid, ShiftedBetaNegativeBinomial
from skbnp.mcmc import Posterior, io
from skbnp.numerics.states import is_same
from skbnp.samplers import MixtureSampler
from skbnp.tables.labels import index_to_data

SMALL = {"n_chains": 2, "n_warmup": 10, "n_draws": 10}
ignore_convergence = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning"
)
pytestmark = ignore_convergence


def plain_table():
    return table_with_holes(), {}


def frame_of_floats():
    X = pd.DataFrame(table_with_holes(), columns=["a", "b", "ü"])
    return X, {"random_state": np.random.RandomState(4), "covariance_type": "diag"}


def mixed_table():
    random = np.random.default_rng(1)
    half = np.arange(60) < 30
    X = pd.DataFrame(
        {
            "size": random.normal(size=60) + 4 * half,
            "city": pd.Categorical(np.where(half, "Oslo", "Bern"), ["Oslo", "Rome", "Bern"]),
            "grade": pd.Categorical(random.choice([3, 1, 2], 60), [3, 1, 2], ordered=True),
            "text": np.where(random.random(60) < 0.5, "x", "y").astype(object),
            "count": random.poisson(3 + 5 * half).astype(float),
            "flag": pd.array(random.random(60) < 0.3, dtype="boolean"),
        }
    )
    for column, rows in zip(X, [[1, 2], [3], [], [4], [5, 6], []], strict=True):
        X.loc[rows, column] = None
    return X, {"family": {"count": "poisson", "flag": "bernoulli"}, "random_state": 0}


def binary_array():
    X = (np.random.default_rng(0).random((40, 4)) < 0.4).astype(float)
    X[3, 1] = np.nan
    return X, {"family": "bernoulli", "discount": Beta(1, 9), "n_jobs": 2}


def many_options():
    sampler = MixtureSampler(algorithm="gibbs")
    options = {"sampler": sampler, "n_components": 4, "covariance_type": "spherical"}
    options |= {"mean_prior": [0.0, 1.0, 0.0], "concentration": 1.5, "point_estimate": "map"}
    return table_with_holes(), {**options, "thin": 2, "store": 0.1, "predict_draws": 7}


def assert_same_bits(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert type(value) is type(other[name]), name
        if isinstance(value, pd.DataFrame):
            pd.testing.assert_frame_equal(value, other[name], check_exact=True, obj=name)
        else:
            np.testing.assert_array_equal(value, other[name], err_msg=name)
            assert getattr(value, "dtype", None) == getattr(other[name], "dtype", None), name


@pytest.mark.parametrize(
    "tables",
    [
        pytest.param([mixed_table], id="frame of mixed columns"),
        pytest.param([plain_table, many_options], id="arrays", marks=pytest.mark.slow),
        pytest.param([frame_of_floats, binary_array], id="others", marks=pytest.mark.slow),
    ],
)
def test_same_answers_in_a_fresh_process(tables, tmp_path):
    expected = {}
    for make in tables:
        X, options = make()
        place = tmp_path / make.__name__
        mixture = DirichletProcessMixture(
            **{"random_state": 0, **SMALL, "n_draws": 26, **options}
        ).fit(X)
        assert mixture.save(f"{place}.skbnp") is mixture
        expected[place] = answers(mixture, X)
        with open(f"{place}.X", "wb") as file:
            pickle.dump(X, file)
    subprocess.run(
        [sys.executable, "-c", "from checks.saved import main; main()", *map(str, expected)],
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    for place, wanted in expected.items():
        with open(f"{place}.answers", "rb") as file:
            assert_same_bits(pickle.load(file), wanted)


@pytest.fixture(scope="module")
def fitted():
    X, options = mixed_table()
    return DirichletProcessMixture(**{**SMALL, **options}).fit(X)


@pytest.fixture(scope="module")
def gaussian():
    return DirichletProcessMixture(**SMALL, random_state=0).fit(table_with_holes())


def test_loaded_estimator_is_an_estimator(fitted, tmp_path, monkeypatch):
    X, _ = mixed_table()
    fitted.set_output(transform="pandas")
    fitted.save(tmp_path / "file")
    loaded = DirichletProcessMixture.load(tmp_path / "file")
    pd.testing.assert_frame_equal(fitted.transform(X), loaded.transform(X))
    assert list(loaded.feature_names_in_) == list(X.columns)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X.rename(columns={"size": "other"}))
    with monkeypatch.context() as later:
        then = time.time() + 5000
        later.setattr(time, "time", lambda: then)
        loaded.save(tmp_path / "again")
    assert (tmp_path / "file").read_bytes() == (tmp_path / "again").read_bytes()


def test_loaded_estimator_goes_on(gaussian, tmp_path):
    X = table_with_holes()
    whole = DirichletProcessMixture(**{**SMALL, "n_draws": 25}, random_state=0).fit(X)
    gaussian.save(tmp_path / "file")
    loaded = DirichletProcessMixture.load(tmp_path / "file")
    loaded.set_params(warm_start=True, n_draws=25).fit(X)
    assert loaded.posterior_.n_sweeps_run == 2 * 15
    assert_same_bits(answers(loaded, X), answers(whole.set_params(warm_start=True), X))


@pytest.mark.parametrize("bad", [{"family": len}, {"mean_prior": object()}])
def test_parameters_that_are_no_data(gaussian, tmp_path, bad):
    mixture = DirichletProcessMixture.load(gaussian.save(tmp_path / "file") and tmp_path / "file")
    before = (tmp_path / "file").read_bytes()
    with pytest.raises(TypeError, match="cannot be saved as data"):
        mixture.set_params(**bad).save(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == before


@NEEDS_CALLBACKS
def test_callbacks_stay_behind(tmp_path):
    mixture = DirichletProcessMixture(**SMALL, random_state=0)
    mixture.set_callbacks(TaskLog(tmp_path / "log")).fit(table_with_holes())
    loaded = DirichletProcessMixture.load(mixture.save(tmp_path / "f") and tmp_path / "f")
    lines = (tmp_path / "log").read_text()
    loaded.set_params(n_draws=11, warm_start=True).fit(table_with_holes())
    assert (tmp_path / "log").read_text() == lines


# -- tampered files


def spoil(mixture, path, change):
    """A file of the mixture after a change to what it holds."""
    mixture.save(path)
    types = mixture._types_in_files()
    content = io.read(path, "fitted DirichletProcessMixture", types)
    change(content)
    io.write(path, "fitted DirichletProcessMixture", content, types)


def set_fitted(name, value):
    return lambda content: content["fitted"].update({name: value})


def set_parameter(name, value):
    return lambda content: content["parameters"].update({name: value})


def set_draw(name, function):
    """Replace an array of one draw."""

    def change(content):
        posterior = content["fitted"]["posterior_"]
        draw = posterior._draws[1][3]
        draw[name] = function(draw[name].copy() if hasattr(draw[name], "copy") else draw[name])

    return change


def set_cell(index, value):
    def function(array):
        array[index] = value
        return array

    return function


def set_prior(**fields):
    def change(content):
        prior = content["fitted"]["_prior"]
        part = dataclasses.replace(prior.parts[0], **fields)
        content["fitted"]["_prior"] = dataclasses.replace(prior, parts=(part, *prior.parts[1:]))

    return change


def set_units(**fields):
    def change(content):
        units = dataclasses.replace(content["fitted"]["_units"], **fields)
        content["fitted"]["_units"] = units

    return change


def set_cells(**fields):
    def change(content):
        cells = content["fitted"]["_training_cells"]
        content["fitted"]["_training_cells"] = dataclasses.replace(cells, **fields)

    return change


def of_version_0_1(content):
    """Parameters as they were called then."""
    parameters = content["parameters"]
    for name in ("sampler", "n_components", "concentration", "discount", "prior_scale"):
        del parameters[name]
    parameters |= {"algorithm": "collapsed", "n_split_merge": 3, "split_merge": "sequential"}
    parameters |= {"n_components": None, "n_components_prior": (1, 4, 3), "prior_scale": "sample"}
    parameters |= {"concentration": "sample", "concentration_prior": (2.0, 3.0)}
    parameters |= {"discount": 0.25, "discount_prior": (1.0, 9.0)}
    parameters |= {"bernoulli_prior": (0.5, 1.5), "poisson_prior": (2, 3)}


def test_parameters_of_version_0_1_become_those_of_now(gaussian, tmp_path):
    spoil(gaussian, tmp_path / "file", of_version_0_1)
    loaded = DirichletProcessMixture.load(tmp_path / "file")
    assert loaded.concentration == Gamma(2, 3) and loaded.discount == 0.25
    assert (loaded.bernoulli_prior, loaded.poisson_prior) == (Beta(0.5, 1.5), Gamma(2, 3))
    assert loaded.n_components is None and loaded.prior_scale == Grid(0.5 ** np.arange(13))
    assert (
        loaded.sampler.get_params()
        == MixtureSampler(algorithm="collapsed", n_split_merge=3).get_params()
    )


def test_priors_and_rows_of_version_0_1_become_those_of_now(gaussian):
    rows, prior = gaussian._training_rows, gaussian._prior
    of_then = {"n_components": None, "n_components_prior": None, "concentration": None}
    of_then |= {"concentration_prior": (1.0, 1.0), "discount": 0.0, "discount_prior": (1.0, 9.0)}
    found = Prior.from_data({"parts": prior.parts, "prior_scale": None, **of_then})
    assert is_same(found, prior)
    finite = of_then | {"n_components_prior": (1, 4, 3), "concentration": 2.0, "prior_scale": 0.5}
    found = Prior.from_data({"parts": prior.parts, **finite})
    assert found.components_law == ShiftedBetaNegativeBinomial(1, 4, 3)
    assert (found.concentration, found.prior_scale) == (2.0, 0.5)
    units = {"center": rows.units.center, "scale": rows.units.scale}
    older = TrainingRows.from_data({"X": rows.X, "prior": prior, **units})
    fitted = gaussian._fitted_of_file({"_center": 0, "_scale": 0, "_training_rows": older})
    assert set(fitted) == {"_training_rows", "_units"}
    np.testing.assert_array_equal(fitted["_units"].scale, rows.units.scale)
    np.testing.assert_array_equal(older.observed_data(), rows.observed_data())


def last_block_with_members(content):
    draw = content["fitted"]["posterior_"]._draws[0][0]
    label = draw["label"].copy()
    label[0] = len(draw["n_members"]) - 1
    draw["label"] = label
    draw["n_members"] = np.bincount(label, minlength=len(draw["n_members"]))


class Other:
    """Not among the classes of a mixture."""

    def to_data(self):
        return {}


TAMPERED = {
    "no content": lambda content: content.clear(),
    "no parameters": lambda content: content.pop("parameters"),
    "parameters are a list": lambda content: content.update(parameters=[1]),
    "unknown parameter": set_parameter("os", "system"),
    "parameter out of range": set_parameter("n_chains", -1),
    "parameter of another type": set_parameter("n_draws", "all"),
    "no posterior": lambda content: content["fitted"].pop("posterior_"),
    "posterior is text": set_fitted("posterior_", "text"),
    "class": set_fitted("__class__", "object"),
    "array interface": set_fitted("__array_interface__", {"data": (8, False), "shape": (9,)}),
    "is fitted": set_fitted("__sklearn_is_fitted__", True),
    "method": set_fitted("predict", "mine"),
    "private method": set_fitted("_check_new", "mine"),
    "property": set_fitted("X_imputed_", np.zeros(3)),
    "parameter among the fitted": set_fitted("n_jobs", 7),
    "no identifier": set_fitted("a b", 1),
    "label out of range": set_draw("label", set_cell(0, 200)),
    "label elsewhere": set_draw("label", lambda x: (x + 1).astype(x.dtype)),
    "labels negative": set_draw("label", lambda x: -1 - x.astype(np.int32)),
    "labels of floats": set_draw("label", lambda x: x.astype(float)),
    "too few labels": set_draw("label", lambda x: x[1:].copy()),
    "n_members too many": set_draw("n_members", lambda x: np.r_[x, 0]),
    "n_members wrong": set_draw("n_members", lambda x: x[::-1].copy()),
    "n_members negative": set_draw("n_members", set_cell(-1, -1)),
    "n_members of floats": set_draw("n_members", lambda x: x.astype(float)),
    "last block with members": last_block_with_members,
    "mean of other shape": set_draw("mean", lambda x: x[:, :-1].copy()),
    "mean of one block": set_draw("mean", lambda x: x[:1].copy()),
    "mean of float32": set_draw("mean", lambda x: x.astype(np.float32)),
    "factor flat": set_draw("factor", lambda x: x.reshape(-1).copy()),
    "labels_ short": set_fitted("labels_", np.zeros(3, dtype=int)),
    "labels_ huge": set_fitted("labels_", np.full(60, 10**12)),
    "labels_ negative": set_fitted("labels_", np.full(60, -1)),
    "n_clusters_ huge": set_fitted("n_clusters_", 10**12),
    "n_features_in_ huge": set_fitted("n_features_in_", 10**12),
    "n_features_in_ wrong": set_fitted("n_features_in_", 2),
    "scale of the units short": set_units(scale=np.ones(1)),
    "units of other columns": set_units(columns=np.arange(2)),
    "units of columns beyond": set_units(columns=np.array([0, 1, 7])),
    "_units is None": set_fitted("_units", None),
    "_prior is None": set_fitted("_prior", None),
    "prior of columns beyond": set_prior(columns=np.array([0, 1, 7])),
    "prior of negative columns": set_prior(columns=np.array([0, 1, -1])),
    "prior mean short": set_prior(mean=np.zeros(1)),
    "prior covariance short": set_prior(covariance=np.eye(1)),
    "covariance of another type": set_prior(covariance_type="diag"),
    "covariance of no type": set_prior(covariance_type="none"),
    "training cells of other rows": set_cells(X=np.zeros((2, 2))),
    "training cells of fewer rows": set_cells(mean=np.zeros(2)),
    "means of cells infinite": set_cells(mean=np.full(12, np.inf)),
    "variances of cells negative": set_cells(variance=np.full(12, -1.0)),
    "cells of other columns": set_cells(columns=np.array([0, 2, 1])),
    "families_ wrong": set_fitted("families_", np.array(["poisson"] * 3)),
    "_training_rows missing": lambda content: content["fitted"].pop("_training_rows"),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_tampered_files(gaussian, tmp_path, how):
    path = tmp_path / "file"
    spoil(gaussian, path, lambda content: None)
    DirichletProcessMixture.load(path)
    spoil(gaussian, path, TAMPERED[how])
    with pytest.raises(io.FileFormatError, match="file"):
        DirichletProcessMixture.load(path)


def spoil_table(**changes):
    def change(content):
        table = content["fitted"]["_table"]
        vars(table).update(
            {name: function(getattr(table, name)) for name, function in changes.items()}
        )

    return change


def spoil_form(**changes):
    def change(content):
        content["fitted"]["_form"] = dataclasses.replace(content["fitted"]["_form"], **changes)

    return change


TAMPERED_TABLES = {
    "no form": set_fitted("_form", None),
    "form of no library": spoil_form(kind="nobody's"),
    "names of fewer columns": spoil_form(names=index_to_data(pd.Index(["a"]), "names")),
    "names of no type": spoil_form(names={"type": "none", "names": [None]}),
    "dtypes of fewer columns": spoil_form(dtypes=("float64",)),
    "categories of no index": spoil_form(dtypes=({"categories": 3, "ordered": True},) * 6),
    "index of fewer rows": spoil_form(index=index_to_data(pd.RangeIndex(59), "an index")),
    "index without end": spoil_form(index=index_to_data(pd.RangeIndex(10**12), "an index")),
    "index of codes beyond": spoil_form(
        index={
            "type": "multi",
            "names": [None],
            "levels": [index_to_data(pd.Index(["a"]), "an index")],
            "codes": [np.full(60, 7)],
        }
    ),
    "one family fewer": spoil_table(
        families=lambda x: x[1:], levels=lambda x: x[1:], labels=lambda x: x[1:]
    ),
    "another family": spoil_table(families=lambda x: ["poisson", *x[1:]]),
    "no family": spoil_table(families=lambda x: ["none", *x[1:]]),
    "a level more": spoil_table(levels=lambda x: [x[0], np.append(x[1], "?"), *x[2:]]),
    "a level fewer": spoil_table(levels=lambda x: [x[0], x[1][:1], *x[2:]]),
    "no levels": spoil_table(levels=lambda x: [None] * len(x)),
    "no table": set_fitted("_table", None),
    "level_count short": set_draw("level_count", lambda x: x[:, 1:].copy()),
    "cells short": set_draw("cells", lambda x: x[:, :0].copy()),
}


@pytest.mark.parametrize("how", TAMPERED_TABLES)
def test_tampered_mixed_tables(fitted, tmp_path, how):
    path = tmp_path / "file"
    spoil(fitted, path, lambda content: None)
    DirichletProcessMixture.load(path)
    spoil(fitted, path, TAMPERED_TABLES[how])
    with pytest.raises(io.FileFormatError, match="file"):
        DirichletProcessMixture.load(path)


def test_only_classes_of_the_mixture_are_made(gaussian, tmp_path):
    path = tmp_path / "file"
    gaussian.save(path)
    types = (*gaussian._types_in_files(), Other)
    content = io.read(path, "fitted DirichletProcessMixture", types)
    content["fitted"]["extra_"] = Other()
    io.write(path, "fitted DirichletProcessMixture", content, types)
    with pytest.raises(io.FileFormatError, match="an object of the type 'Other'"):
        DirichletProcessMixture.load(path)


def test_content_that_is_no_dict(tmp_path):
    io.write(tmp_path / "file", "fitted DirichletProcessMixture", [1, 2])
    with pytest.raises(io.FileFormatError, match="file is damaged"):
        DirichletProcessMixture.load(tmp_path / "file")


def test_files_of_other_kinds(gaussian, tmp_path):
    gaussian.posterior_.save(tmp_path / "posterior")
    with pytest.raises(io.FileFormatError, match="holds a posterior, not a fitted Dirichlet"):
        DirichletProcessMixture.load(tmp_path / "posterior")
    gaussian.save(tmp_path / "mixture")
    with pytest.raises(io.FileFormatError, match="holds a fitted DirichletProcessMixture, not a"):
        Posterior.load(tmp_path / "mixture")
    ToyModel(n_draws=2).fit(np.zeros((2, 2))).save(tmp_path / "toy")
    with pytest.raises(io.FileFormatError, match="a fitted ToyModel, not a fitted Dirichlet"):
        DirichletProcessMixture.load(tmp_path / "toy")
    tree = TreeFactorModel(max_depth=1, n_chains=1, n_warmup=1, n_draws=1)
    with pytest.warns(UserWarning):
        tree.fit(np.random.default_rng(0).standard_normal((8, 2))).save(tmp_path / "tree")
    with pytest.raises(io.FileFormatError, match="a fitted TreeFactorModel, not a fitted Diri"):
        DirichletProcessMixture.load(tmp_path / "tree")
    with pytest.raises(io.FileFormatError, match="a fitted Dirichlet.*, not a fitted TreeFactor"):
        TreeFactorModel.load(tmp_path / "mixture")


def test_cut_off_and_flipped(gaussian, tmp_path):
    path, X = tmp_path / "file", table_with_holes()
    gaussian.save(path)
    whole, scores = path.read_bytes(), gaussian.score_samples(X)
    for length in np.linspace(0, len(whole) - 1, 50).astype(int):
        path.write_bytes(whole[:length])
        with pytest.raises(io.FileFormatError, match="file"):
            DirichletProcessMixture.load(path)
    random = np.random.default_rng(0)
    for _ in range(100):
        damaged = bytearray(whole)
        damaged[random.integers(len(whole))] ^= 1 << random.integers(8)
        path.write_bytes(damaged)
        try:
            loaded = DirichletProcessMixture.load(path)
        except io.FileFormatError:
            continue
        np.testing.assert_array_equal(loaded.score_samples(X), scores)
