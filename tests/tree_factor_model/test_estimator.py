"""The estimator's promises: scikit-learn, units, files, resumed runs, bad input."""

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from skbnp import TreeFactorModel
from skbnp.laws import Beta, Gamma, InverseGamma
from skbnp.mcmc import io
from skbnp.mcmc.io import FileFormatError
from skbnp.samplers import TreeSampler
from skbnp.tree_factor_model import _model
from skbnp.tree_factor_model._predictive import inverted, prepared
from skbnp.tree_factor_model._rows import Rows

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore:X is constant:UserWarning"
)


def short(**changes):
    options = dict(n_chains=2, n_warmup=8, n_draws=6, predict_draws=6, random_state=0)
    return TreeFactorModel(**(options | changes))


@parametrize_with_checks([short(n_chains=1, n_warmup=4, n_draws=4)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        short(structure="single"),
        short(structure="mixture", sampler=TreeSampler(path_update="collapsed")),
    ]
)
def test_scikit_learn_checks_of_options(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    D = rng.normal(size=(2, 2, 4))
    X = np.concatenate([rng.normal(size=(40, 2)) @ D[k] + 3 * k for k in range(2)])
    X += 0.3 * rng.normal(size=X.shape)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


FREE_RATE = Gamma(1.0, Gamma(2.0, 1.0))


def answers(model, X):
    return {
        "branches of draws": np.array([draw["branch"] for draw in model.posterior_]),
        **model.posterior_.traces,
        "labels_": model.labels_,
        **model.tree_,
        "predict_proba": model.predict_proba(X),
        "transform": model.transform(X),
        "score_samples": model.score_samples(X),
        "impute": np.stack(model.impute(X, return_std=True)),
        "invert": model.invert(np.eye(4)[:2], np.nan_to_num(X[:5, :2])),
        "sample": model.sample(5, random_state=0),
    }


def assert_same_answers(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert_array_equal(one[name], other[name], err_msg=name)


OPTIONS = [
    {},
    {"structure": "single"},
    {"structure": "mixture", "sampler": TreeSampler(path_update="collapsed")},
    {"branch_levels": (1, 2), "branch_scale": "none", "noise": "isotropic"},
    {"branch_levels": (0, 2), "concentration": [1.0, 0.5], "scaling": "each"},
    {"branch_scale": "whole", "noise_precision": FREE_RATE, "sampler": TreeSampler(init="single")},
    {"branch_scale": "whole", "sampler": TreeSampler(init="em")},
    {"structure": "single", "sampler": TreeSampler(init="em")},
    {"branch_levels": (1, 2), "sampler": TreeSampler(init="kmeans", init_children=(3, 2))},
    {"structure": "mixture", "sampler": TreeSampler(init="kmeans")},
    {"sampler": TreeSampler(path_update="collapsed", birth="prior")},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_gives_finite_answers(X, options):
    model = short(**options).fit(X)
    for name, value in answers(model, X).items():
        assert np.isfinite(value).all(), name
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.transform(X).shape == (80, len(model.tree_["parent"]))
    filled, std = model.impute(X, return_std=True)
    seen = ~np.isnan(X)
    assert_array_equal(filled[seen], X[seen])
    assert (std[seen] == 0).all() and (std[~seen] > 0).all()
    assert model.tree_["leaf_count"].sum() == 80
    assert_array_equal(np.bincount(model.component_labels_), model.tree_["leaf_count"])


def test_the_same_whatever_the_jobs(X):
    one = short().fit(X)
    assert_same_answers(answers(one, X), answers(short(n_jobs=2).fit(X), X))
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_same_answers(answers(one, X), answers(short(n_jobs=2).fit(X), X))


def test_clones_pickles_and_files(X, tmp_path):
    model = short().fit(X)
    expected = answers(model, X)
    assert_same_answers(answers(clone(model).fit(X), X), expected)
    assert_same_answers(answers(pickle.loads(pickle.dumps(model)), X), expected)
    model.save(tmp_path / "model.skbnp")
    assert_same_answers(answers(TreeFactorModel.load(tmp_path / "model.skbnp"), X), expected)


@pytest.mark.parametrize("path_update", ["slice", "collapsed"])
def test_runs_go_on_with_the_same_draws(X, tmp_path, path_update):
    options = dict(sampler=TreeSampler(path_update=path_update), structure="tree")
    whole = short(n_draws=20, **options).fit(X)
    short(n_draws=10, checkpoint=tmp_path, **options).fit(X)
    resumed = short(n_draws=20, checkpoint=tmp_path, **options).fit(X)
    assert_same_answers(answers(whole, X), answers(resumed, X))
    warm = short(n_draws=10, warm_start=True, **options).fit(X)
    assert_same_answers(answers(whole, X), answers(warm.set_params(n_draws=20).fit(X), X))


def test_a_damaged_draw_is_refused(X, tmp_path):
    model = short().fit(X)
    draw = model.posterior_[0, 0]
    damaged = {**draw, "leaf_node": draw["leaf_node"] + 1000}
    with pytest.raises(ValueError, match="leaf_node of the state must be < "):
        model._check_draw(damaged)
    with pytest.raises(ValueError, match="leaf_count of the state must count"):
        model._check_draw({**draw, "leaf_count": draw["leaf_count"] + 1})
    model._reference = damaged
    model.save(tmp_path / "damaged.skbnp")
    with pytest.raises(FileFormatError, match="leaf_node"):
        TreeFactorModel.load(tmp_path / "damaged.skbnp")


# What version 0.1 called parameters, with its defaults, and what came since.
BEFORE = dict(
    branch_depth=None, tail="gaussian", path_update="slice", birth="integrated", init="auto",
    init_children="auto", concentration="sample", concentration_prior=(2.0, 2.0),
    noise_prior=(1.0, 0.3), noise_rate_prior=None, mean_precision_prior=(1.0, 1.0),
    score_precision_prior=1.0, noise_scale_prior=1.0, scale="global",
)  # fmt: skip
SINCE = {
    "merge_overlap",
    *("tails", "scaling", "sampler", "noise_precision", "mean_precision"),
    *("score_precision_shape", "noise_scale_shape"),
}
# The same settings before and now.
OLDER = [
    ({}, {}),
    (
        {"branch_depth": 4, "tail": "t", "scale": "column", "init": "kmeans", "init_children": 2},
        {
            "branch_levels": (1, 2, 3),
            "tails": "t",
            "scaling": "each",
            "sampler": TreeSampler(init="kmeans", init_children=2),
        },
    ),
    (
        {
            "concentration": [1.0, 2.0],
            "noise_prior": (2.0, 0.5),
            "noise_rate_prior": (3.0, 1.0),
            "mean_precision_prior": (2.0, 1.0),
            "score_precision_prior": 2.0,
            "noise_scale_prior": 3.0,
        },
        {
            "concentration": [1.0, 2.0],
            "noise_precision": Gamma(2.0, Gamma(3.0, 1.0)),
            "mean_precision": Gamma(2.0, 1.0),
            "score_precision_shape": 2.0,
            "noise_scale_shape": 3.0,
        },
    ),
    (
        {"concentration_prior": (3.0, 1.0), "path_update": "collapsed", "birth": "prior"},
        {
            "concentration": Gamma(3.0, 1.0),
            "sampler": TreeSampler(path_update="collapsed", birth="prior"),
        },
    ),
]


def older(name, data):
    """An object that a file names so and holds as these data."""
    return type(name, (), {"to_data": lambda self: data})()


@pytest.mark.parametrize("before, now", OLDER, ids=["defaults", "shape", "numbers", "law"])
def test_files_of_version_0_1(X, tmp_path, before, now):
    # One scale for all columns was the default, and a given rate of the noise's law.
    before_now = {
        "scaling": "common", "noise_precision": Gamma(1.0, 0.3), "merge_overlap": None,
    }  # fmt: skip
    model = short(n_warmup=3, n_draws=3, **before_now | now).fit(X)
    model.save(tmp_path / "now")
    kind, types = "fitted TreeFactorModel", TreeFactorModel._types_in_files()
    content = io.read(tmp_path / "now", kind, types)
    given = BEFORE | {"branch_levels": "auto"} | before
    kept = {name: x for name, x in content["parameters"].items() if name not in SINCE}
    content["parameters"] = kept | given
    fitted = content["fitted"]
    prior = vars(fitted["_prior"])
    kept = {name: x for name, x in prior.items() if name not in SINCE}
    kept |= {name: given[name] for name in given if name == "tail" or name.endswith("_prior")}
    if given["concentration"] == "sample":
        kept["concentration"] = None
    units = fitted.pop("_units")
    assert_array_equal(fitted["labels_"], fitted.pop("component_labels_"))
    del fitted["partition_info_"]
    fitted |= {"_center": units.center, "_scale": units.scale}
    rows = {"X": fitted["_training_rows"].X, "center": units.center, "scale": units.scale}
    fitted |= {"_prior": older("Prior", kept), "_training_rows": older("TrainingRows", rows)}
    types = {one.__name__: one for one in types}
    types |= {type(one).__name__: type(one) for one in fitted.values()}
    io.write(tmp_path / "before", kind, content, types.values())
    loaded = TreeFactorModel.load(tmp_path / "before")
    # Of an older file clusters are branches, whatever the parameter has.
    assert loaded.merge_overlap == 0.1
    assert loaded.coclustering([0, 1]).shape == (2, 2)
    loaded.set_params(merge_overlap=None)
    assert repr(loaded) == repr(model.set_params(sampler=model._sampler_settings()))
    assert loaded._prior == model._prior
    assert_same_answers(answers(loaded, X), answers(model, X))


@pytest.mark.parametrize("scaling", ["common", "each"])
def test_units_of_x(X, scaling):
    """Powers of two give identical draws; densities and moments follow the units."""
    factors = np.full(4, 2.0**10) if scaling == "common" else 2.0 ** np.array([-20, 3, 0, 30])
    one, other = short(scaling=scaling).fit(X), short(scaling=scaling).fit(X * factors)
    for a, b in zip(one.posterior_, other.posterior_, strict=True):
        assert_array_equal(a["loadings"], b["loadings"])
    shift = np.where(np.isnan(X), 0.0, np.log(factors)).sum(axis=1)
    assert_allclose(other.score_samples(X * factors) + shift, one.score_samples(X), atol=1e-9)
    for got, expected in zip(
        other.impute(X * factors, return_std=True), one.impute(X, return_std=True), strict=True
    ):
        assert_allclose(got, expected * factors, rtol=1e-9)
    assert_allclose(other.tree_["leaf_mean"], one.tree_["leaf_mean"] * factors, rtol=1e-9)


def test_log_joint_is_in_the_units_of_x(X):
    """The trace equals the reference density of the data in its own units, to 1e-10."""
    model = short(n_chains=1).fit(X)
    end = model.posterior_.final_states[0]
    standard = (X - model._units.center) / model._units.scale
    jacobian = np.sum(~np.isnan(X), axis=0) @ np.log(model._units.scale)
    expected = _model.log_joint(end, standard, model._prior) - jacobian
    assert_allclose(model.posterior_.traces["log_joint"][0, -1], expected, rtol=1e-10)


def test_score_of_complete_rows_is_a_density():
    """Against the empirical cross-entropy of a Gaussian in two dimensions."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 2)) @ np.array([[2.0, 1.0], [0.0, 0.5]]) + [5.0, -3.0]
    model = short(structure="single", n_warmup=100, n_draws=50, predict_draws=50).fit(X[:2000])
    S = np.array([[2.0, 1.0], [0.0, 0.5]])
    entropy = 1 + np.log(2 * np.pi) + np.log(np.abs(np.linalg.det(S)))
    assert model.score(X[2000:]) == pytest.approx(-entropy, abs=0.08)


def test_pandas_and_names(X):
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = short().set_output(transform="pandas").fit(frame)
    out = model.transform(frame)
    assert list(out.columns) == list(model.get_feature_names_out())
    assert out.columns[0] == "factor0"


def test_grid_search(X):
    model = short(sampler=TreeSampler())
    grid = {"max_depth": [1, 4], "sampler__init": ["kmeans", "single"]}
    search = GridSearchCV(model, grid, cv=KFold(2, shuffle=True)).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_rows_without_entries(X):
    model = short().fit(X)
    empty = np.full((1, 4), np.nan)
    assert model.score_samples(empty)[0] == 0.0
    assert np.isfinite(model.impute(empty)).all()
    assert_allclose(model.predict_proba(empty)[0].sum(), 1.0)


@pytest.mark.filterwarnings("ignore:X has:UserWarning")
@pytest.mark.parametrize("structure", ["tree", "single", "mixture"])
@pytest.mark.parametrize(
    "name",
    ["two rows", "one feature", "wide", "identical", "constant", "tiny", "huge", "tight", "empty"],
)
def test_torture(name, structure):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(30, 3))
    X = {
        "two rows": X[:2],
        "one feature": X[:, :1],
        "wide": rng.normal(size=(8, 40)),
        "identical": np.repeat(X[:1], 2000, axis=0),
        "constant": X * [1.0, 0.0, 1.0],
        "tiny": X * 1e-8,
        "huge": X * 1e8,
        "tight": np.concatenate([X * 1e-3, X * 1e-3 + 1.0]),
        "empty": np.where(np.arange(30)[:, None] % 3 == 0, np.nan, X),
    }[name]
    model = short(structure=structure).fit(X)
    holes = np.where(rng.random(X.shape) < 0.5, np.nan, X)
    for value in (model.score_samples(holes), model.impute(holes), model.transform(holes)):
        assert np.isfinite(value).all()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"shrinkage": 1.4}, "shrinkage"),
        ({"shrinkage_root": 0.0}, "shrinkage_root"),
        ({"local_shrinkage_df": 0.0}, "local_shrinkage_df"),
        ({"max_depth": 0}, "max_depth"),
        ({"max_depth": True}, "max_depth must not be a bool"),
        ({"structure": "forest"}, "structure"),
        ({"branch_levels": (1, 9)}, "branch_levels must be from 0 to max_depth = 4"),
        ({"branch_levels": (2, 1)}, "branch_levels must be ascending integers"),
        ({"branch_levels": ()}, "branch_levels must be ascending integers, at least one"),
        ({"branch_levels": (1.0,)}, "branch_levels must be ascending integers"),
        ({"structure": "single", "branch_levels": (1,)}, "must not be given for structure='sing"),
        ({"concentration": [1.0]}, "one number for each of the 2 branching levels"),
        (
            {"sampler": TreeSampler(init_children=[2])},
            "one integer >= 1 for each of the 2 branching levels",
        ),
        (
            {"sampler": TreeSampler(init_children=[2, 0])},
            "one integer >= 1 for each of the 2 branching levels",
        ),
        ({"concentration": 1e5}, "concentration must be from 1e-10 to 1e4"),
        ({"concentration": 0.0}, "concentration"),
        ({"noise_precision": (1.0, 0.3)}, r"write noise_precision=Gamma\(shape=1.0, rate=G"),
        ({"noise_precision": Gamma(1, Beta(1, 1))}, "rate of noise_precision must be Gamma of two"),
        ({"noise_precision": Gamma(1, FREE_RATE)}, "rate of noise_precision must be Gamma of two"),
        ({"noise_precision": InverseGamma(1, 1)}, "noise_precision"),
        ({"noise_precision": Gamma(0.4, Gamma(0.5, 1))}, "must add up to at least 1"),
        (
            {"noise_precision": Gamma(1, Gamma(1, 1e4))},
            "must be above 0.001 with a probability",
        ),
        ({"mean_precision": FREE_RATE}, "mean_precision must be Gamma of two numbers"),
        ({"mean_precision": 1.0}, "mean_precision"),
        ({"concentration": FREE_RATE}, "concentration must be Gamma of two numbers"),
        ({"concentration": Beta(1, 1)}, "concentration"),
        ({"concentration": "sample"}, "write concentration=Gamma"),
        ({"score_precision_shape": -1.0}, "score_precision_shape"),
        ({"sampler": TreeSampler(init="far")}, "init"),
        ({"sampler": TreeSampler(init_children=True)}, "init_children must not be a bool"),
        ({"concentration_decay": 0.0}, "concentration_decay"),
    ],
)
def test_bad_parameters_are_named(X, change, message):
    with pytest.raises(ValueError, match=message):
        short(**change).fit(X)


@pytest.mark.parametrize("noise", ["diagonal", "isotropic"])
def test_columns_that_follow_from_others(noise):
    """Without its least value the rate would go to 0, and the precision to infinity."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    X[::7, 2] = np.nan
    follows, constant = X.copy(), X.copy()
    follows[:, 3] = 2.0 - follows[:, 0]
    constant[:, 1] = 5.0
    for table in (follows, constant):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model = short(noise=noise, n_warmup=200).fit(table)
        states = model.posterior_.final_states
        assert min(state["noise_rate"] for state in states) >= _model.LEAST_NOISE_RATE
        assert max(state["noise_precision"].max() for state in states) < 1e6
        assert np.isfinite(model.score(table))


def test_what_follows_from_other_columns_is_filled_with_little_doubt():
    """A fixed rate of 0.3 says of 200 rows that there is noise of 5 % of a column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 5)) + rng.normal(size=(200, 5))
    X = np.column_stack([X, X[:, :3].sum(axis=1)])
    holes = X[:20].copy()
    holes[:, 5] = np.nan
    model = TreeFactorModel(n_chains=2, random_state=0)
    deviations = {}
    for name, law in (("sampled", model.noise_precision), ("given", Gamma(1.0, 0.3))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fitted = clone(model).set_params(noise_precision=law).fit(X)
        filled, std = fitted.impute(holes, return_std=True)
        z = (filled - X[:20])[:, 5] / std[:, 5]
        assert np.abs(z).max() < 5.0
        deviations[name] = std[:, 5].mean() / X[:, 5].std()
    assert deviations["sampled"] < 0.2 * deviations["given"]


def test_bad_data_and_arguments(X):
    with pytest.raises(ValueError, match="at least 2 samples"):
        short().fit(X[:1])
    with pytest.raises(ValueError, match="infinity"):
        short().fit(np.where(np.isnan(X), np.inf, X))
    with pytest.raises(ValueError, match="observed value in every column"):
        short().fit(X * [1.0, np.nan, 1.0, 1.0])
    model = short().fit(X)
    with pytest.raises(ValueError, match="Phi must have 4 columns"):
        model.invert(np.ones((2, 3)), np.ones((1, 2)))
    with pytest.raises(ValueError, match="Phi must have 4 columns and v one for each"):
        model.invert(np.ones((2, 4)), np.ones((1, 3)))
    with pytest.raises(ValueError, match="linearly independent"):
        model.invert(np.ones((2, 4)), np.ones((1, 2)))
    with pytest.raises(ValueError, match="noise_var must be a number >= 0"):
        model.invert(np.eye(4)[:2], np.ones((1, 2)), noise_var=-1.0)
    with pytest.raises(ValueError, match="v must be within about 1e"):
        model.invert(np.eye(4)[:2], np.full((1, 2), 1e160))
    model.set_params(new_branch="x")
    for ask in (model.sample, lambda: model.invert(np.eye(4)[:2], np.ones((1, 2)))):
        with pytest.raises(ValueError, match="new_branch"):
            ask()
    model.set_params(new_branch="drop")
    with pytest.raises(ValueError, match="standard deviations of the training data"):
        model.predict(X * 1e60)
    with pytest.raises(ValueError, match="n_samples must be an integer >= 1"):
        model.sample(0)


def test_a_selection_of_columns_as_measurements_is_imputation(X):
    """Both weigh all draws alike, unlike the density."""
    model = short().fit(X)
    row = np.array([0.5, np.nan, -1.0, np.nan])
    seen = ~np.isnan(row)
    back = model.invert(np.eye(4)[seen], row[seen])
    assert_allclose(back, model.impute(row[np.newaxis])[0], rtol=1e-8, atol=1e-8)
    by_draw = []
    for draw in model._prediction_draws():
        v = ((row - model._units.center) / model._units.scale)[np.newaxis, seen]
        by_draw.append(inverted(np.eye(4)[seen], v, 0.0, draw)[0])
    expected = np.mean(by_draw, axis=0) * model._units.scale + model._units.center
    assert_allclose(back, expected, rtol=1e-9)


@pytest.mark.parametrize(
    "change", [{"shrinkage": 1.8}, {"shrinkage_root": 1.0}, {"local_shrinkage_df": 2.0}]
)
def test_priors_without_variances_warn(X, change):
    with pytest.warns(UserWarning, match=next(iter(change))):
        short(**change).fit(X)


@pytest.mark.parametrize(
    "shape, options, depth, levels, init",
    [
        ((60, 6), {}, 6, (3, 6), "em"),
        ((59, 6), {}, 6, (1, 2), "kmeans"),
        ((30, 50), {}, 10, (1, 2), "kmeans"),
        ((240, 50), {}, 40, (1, 2), "kmeans"),
        ((300, 50), {"branch_levels": (25,)}, 50, (25,), "kmeans"),
        ((90, 50), {"branch_levels": (1, 2, 3)}, 15, (1, 2, 3), "kmeans"),
        ((30, 50), {"structure": "mixture"}, 10, (0,), "kmeans"),
        ((30, 50), {"structure": "single"}, 10, (), "single"),
        ((30, 50), {"sampler": TreeSampler(init="klines"), "max_depth": 20}, 20, (1, 2), "klines"),
        ((20, 2), {"max_depth": 1}, 1, (1,), "em"),
        ((9, 1), {}, 1, (1,), "kmeans"),
        ((30, 50), {"branch_levels": (20,)}, 20, (20,), "kmeans"),
    ],
)
def test_shape_and_start_follow_rows_per_feature(shape, options, depth, levels, init):
    X = np.random.default_rng(3).normal(size=shape)
    model = short(n_chains=1, n_warmup=1, n_draws=1, **options).fit(X)
    assert model.max_depth_ == depth
    assert model.branch_levels_ == levels
    assert model.init_ == init


def test_constant_columns_warn(X):
    with pytest.warns(UserWarning, match=r"constant in column\(s\) 1"):
        short().fit(np.where([False, True, False, False], 1.0, X))


def test_densities_under_many_chains_are_means_over_more_draws():
    X = np.random.default_rng(0).normal(size=(30, 4))
    for n_chains, n_used in ((7, 4), (8, 20)):
        model = short(n_chains=n_chains, n_warmup=2, n_draws=3, predict_draws=4).fit(X)
        draws = model.posterior_.evenly_spaced(n_used)
        densities = np.exp([
            model._log_density_of(prepared(draw), t, Rows(model._modelled(X)))
            for t, draw in enumerate(draws)
        ])  # fmt: skip
        expected = np.log(densities.mean(axis=0)) + model._log_jacobian(X)
        assert_allclose(model.score_samples(X), expected, rtol=1e-10)
        # Asked again, of rows that stand alone, and with another number.
        assert_allclose(
            [model.score_samples(row[np.newaxis])[0] for row in X], expected, rtol=1e-10
        )
        other = model.set_params(predict_draws=1).score_samples(X)
        assert not np.allclose(other, expected, rtol=1e-4)
