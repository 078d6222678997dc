"""Bad input: an error that names the parameter, the rule and the value, before any sampling."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from checks.refusals import OF_CHAINS, assert_refused, over
from skbnp import CIBPBeliefNet
from skbnp.laws import Gamma, InverseGamma, NormalGamma, Uniform
from skbnp.samplers import BeliefNetSampler

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2)) @ [[1.0, 1.0], [0.2, -0.2]]
PREDICT_METHODS = ["transform", "score_samples", "score", "impute"]


def short(**options):
    return CIBPBeliefNet(
        **{
            **dict(max_layers=1, n_chains=2, n_warmup=5, n_draws=5, random_state=0),
            "sampler": BeliefNetSampler(n_init_units=2),
            **options,
        }
    )


def with_value(value, column=1):
    changed = X.copy()
    changed[3, column] = value
    return changed


# name: (X, type of error, words of the message)
BAD_X = {
    "infinite": (with_value(np.inf), ValueError, ["X", "infinity"]),
    "all-NaN column": (
        np.column_stack([X, np.full(30, np.nan)]),
        ValueError,
        ["X", "observed value in every column", "column(s) 2"],
    ),
    "named all-NaN column": (
        pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, np.nan]}),
        ValueError,
        ["X", "every column", "column(s) 'b'"],
    ),
    "strings": ([["a", "b"], ["c", "d"]], ValueError, ["X", "numbers", "'a'"]),
    "complex": (X + 1j, ValueError, ["Complex data not supported"]),
    "one dimension": (X[:, 0], ValueError, ["2D array", "1D array"]),
    "three dimensions": (X[None], ValueError, ["dim 3", "<= 2"]),
    "None": (None, ValueError, ["2D array"]),
    "no rows": (X[:0], ValueError, ["0 sample(s)", "minimum of 1"]),
    "one row": (X[:1], ValueError, ["X", "at least 2 samples", "n_samples = 1"]),
    "no columns": (X[:, :0], ValueError, ["0 feature(s)", "minimum of 1"]),
    "nothing that varies": (X * 0.0, ValueError, ["X", "a column that is not constant"]),
    "beyond floats": ([[1.7e308, 0.0], [1.6e308, 1.0]], ValueError, ["X", "floats"]),
}


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:X is constant:UserWarning")
@pytest.mark.parametrize("name", BAD_X)
def test_bad_training_data(no_sampling, name):
    data, error, words = BAD_X[name]
    with pytest.raises(error) as caught:
        short().fit(data)
    for word in words:
        assert word in str(caught.value)


def test_sparse_says_what_to_do():
    with pytest.raises(TypeError, match=r"[Ss]parse.*toarray"):
        short().fit(sparse.csr_matrix(X))


LAYERS = "numbers from 1e-6 to 1e4 or of laws Uniform(low, high) with 0 <= low < high <= 1e4"
LAW, NUMBER = "must be a law", "[1e-06, 10000.0]"
AT = "a location from -1e6 to 1e6"


def sampler(**knobs):
    return {"sampler": BeliefNetSampler(**knobs)}


# parameters, the one to blame, the rule, the value as the message shows it
BAD_PARAMETERS = [
    *OF_CHAINS,
    ({"max_layers": 0}, "max_layers", "[1, 100000]", "0"),
    ({"max_layers": 2.5}, "max_layers", "int", "2.5"),
    ({"max_layers": "deep"}, "max_layers", "None", "'deep'"),
    ({"max_layers": True}, "max_layers", "bool", "True"),
    ({"max_layers": None, "row_clusters": True, "mass": 1.0}, "max_layers", "a number", "None"),
    ({"max_units": -1}, "max_units", "[0, 100000]", "-1"),
    ({"max_units": None}, "max_units", "int", "None"),
    ({"mass": 0.0}, "mass", NUMBER, "0.0"),
    ({"mass": "sample"}, "mass", "a number or a law", "'sample': write mass=Uniform(low, high)"),
    ({"mass": "auto"}, "mass", "skbnp.laws.Uniform", "'auto'"),
    ({"mass": [1.0, -1.0]}, "mass", LAYERS, "[1.0, -1.0]"),
    ({"mass": []}, "mass", LAYERS, "[]"),
    ({"mass": ["a"]}, "mass", LAYERS, "['a']"),
    ({"mass": np.nan}, "mass", NUMBER, "nan"),
    ({"mass": [True]}, "mass", LAYERS, "[True]"),
    ({"mass": ((0, 20), (0, 2))}, "mass", LAYERS, "((0, 20), (0, 2))"),
    ({"mass": Uniform(-1, 2)}, "mass", LAYERS, "Uniform(low=-1.0, high=2.0)"),
    ({"mass": (1.0, Uniform(0, 2e4))}, "mass", LAYERS, "(1.0, Uniform(low=0.0, high=20000.0))"),
    ({"mass": Gamma(1, 1)}, "mass", "skbnp.laws.Uniform", "Gamma(shape=1.0, rate=1.0)"),
    ({"mass": (Gamma(1, 1), 1.0)}, "mass", LAYERS, "(Gamma(shape=1.0, rate=1.0), 1.0)"),
    ({"mass": None}, "mass", "skbnp.laws.Uniform", "None"),
    ({"concentration": -1.0}, "concentration", NUMBER, "-1.0"),
    ({"concentration": (1.0, np.inf)}, "concentration", LAYERS, "inf"),
    ({"concentration": Uniform(-2, -1)}, "concentration", LAYERS, "Uniform(low=-2.0, high=-1.0)"),
    ({"weight_prior": (0, 1, 2)}, "weight_prior", LAW, "(0, 1, 2): write weight_prior="),
    ({"weight_prior": (0, 1, 2, 2)}, "weight_prior", LAW, "weight_prior=NormalGamma(0, 1, 2, 2)"),
    ({"weight_prior": NormalGamma(1e9, 1, 2, 2)}, "weight_prior", AT, "1000000000.0"),
    ({"weight_prior": NormalGamma(0, 1, 2, 1e7)}, "weight_prior", "a rate from 1e-6", "10000000.0"),
    ({"weight_prior": "flat"}, "weight_prior", "skbnp.laws.NormalGamma", "'flat'"),
    ({"bias_prior": NormalGamma(0, 1e-9, 2, 2)}, "bias_prior", "a kappa from 1e-6 to 1e6", "1e-09"),
    ({"bias_prior": 1.0}, "bias_prior", "skbnp.laws.NormalGamma", "1.0"),
    ({"noise_precision": (1.0, 1.0)}, "noise_precision", LAW, "Gamma(shape=1.0, rate=Gamma("),
    ({"noise_precision": 1.0}, "noise_precision", "skbnp.laws.Gamma", "1.0"),
    ({"noise_precision": Gamma(1e-9, 1)}, "noise_precision", "a shape from 1e-6 to 1e6", "1e-09"),
    ({"noise_precision": Gamma(1, 1e9)}, "noise_precision", "a rate from 1e-6", "1000000000.0"),
    (
        {"noise_precision": Gamma(1, Gamma(1e9, 1))}, "rate of noise_precision",
        "a shape from 1e-6 to 1e6", "1000000000.0",
    ),
    (
        {"noise_precision": Gamma(1, InverseGamma(1, 1))}, "rate of noise_precision",
        "a law Gamma", "InverseGamma(shape=1.0, scale=1.0)",
    ),
    (
        {"noise_precision": Gamma(1, Gamma(1, Gamma(1, 1)))}, "rate of noise_precision",
        "a number as its rate", "Gamma(shape=1.0, rate=Gamma(",
    ),
    ({"noise_floor": 0.0}, "noise_floor", "[1e-06, 1000.0]", "0.0"),
    ({"noise_floor": "auto"}, "noise_floor", "float", "'auto'"),
    ({"visible": "binary"}, "visible", "'sigmoid'", "'binary'"),
    ({"feature_bounds": 3.0}, "feature_bounds", "tuple", "3.0"),
    ({"feature_bounds": (0.0, 1.0, 2.0)}, "feature_bounds", "a pair", "(0.0, 1.0, 2.0)"),
    ({"feature_bounds": (9.0, -9.0)}, "feature_bounds", "the first below the second", "9.0"),
    ({"feature_bounds": (-np.inf, 9.0)}, "feature_bounds", "finite", "-inf"),
    ({"feature_bounds": ([0.0] * 3, 9.0)}, "feature_bounds", "arrays of 2 numbers", "0.0"),
    ({"feature_bounds": ("a", 9.0)}, "feature_bounds", "numbers", "'a'"),
    ({"feature_bounds": (-0.1, 0.1)}, "feature_bounds", "hold all of X", "(-0.1, 0.1)"),
    (
        {"feature_bounds": (-9.0, 9.0), "visible": "gaussian"}, "feature_bounds",
        "None where visible='gaussian'", "(-9.0, 9.0)",
    ),
    ({"feature_range": 1.0}, "feature_range", "[1e-06, 0.999]", "1.0"),
    ({"feature_range": 0.0}, "feature_range", "[1e-06, 0.999]", "0.0"),
    ({"dequantise": "yes"}, "dequantise", "'auto'", "'yes'"),
    ({"skip_connections": "no"}, "skip_connections", "bool", "'no'"),
    ({"row_clusters": 2.0}, "row_clusters", "bool", "2.0"),
    ({"row_concentration": 0.0}, "row_concentration", "[1e-06, 1000000.0]", "0.0"),
    ({"sampler": "slice"}, "sampler", "BeliefNetSampler", "'slice'"),
    (sampler(activation_update="gibbs"), "activation_update", "'slice'", "'gibbs'"),
    (sampler(n_activation_passes=0), "n_activation_passes", "[1, 10000]", "0"),
    (sampler(n_tries=0), "n_tries", "[1, 1000000]", "0"),
    (sampler(birth="none"), "birth", "'block'", "'none'"),
    (sampler(init="random"), "init", "'pca'", "'random'"),
    (sampler(n_init_units=0), "n_init_units", "[1, 1000000]", "0"),
    (sampler(n_init_units=True), "n_init_units", "bool", "True"),
    ({"density": "exact"}, "density", "'importance'", "'exact'"),
    ({"density": "laplace"}, "density", "'importance'", "'laplace'"),
    (
        {"density": "importance", "max_layers": 2, "row_clusters": True},
        *("density", "max_layers=1 where row_clusters=True", "2"),
    ),
    ({"n_temperatures": 0}, "n_temperatures", "[1, 1000000]", "0"),
    ({"n_particles": 0}, "n_particles", "[1, 1000000]", "0"),
    ({"n_chains": True}, "n_chains", "bool", "True"),
    ({"interval_calibration": "loo"}, "interval_calibration", "'holes'", "'loo'"),
    ({"max_work": 0}, "max_work", "(0.0, inf)", "0"),
    ({"max_work": np.nan}, "max_work", "float", "nan"),
    ({"max_work": "none"}, "max_work", "'auto'", "'none'"),
]  # fmt: skip


@over(BAD_PARAMETERS)
def test_bad_parameter(no_sampling, parameters, name, rule, value):
    assert_refused(lambda: short(**parameters).fit(X), name, rule, value)


def test_every_parameter_is_in_the_table():
    names = {name.removeprefix("rate of ") for _, name, _, _ in BAD_PARAMETERS}
    assert names == {name.removeprefix("sampler__") for name in short().get_params()}


ACCEPTED = [
    {"mass": 2, "concentration": [1, 2.5]},
    {"mass": np.float32(0.5)},
    {"mass": [Uniform(0, 1), 0.5]},
    {"mass": Uniform(0, 1), "concentration": (1.0, Uniform(0, 1))},
    {"weight_prior": NormalGamma(1, 1, 1, 1), "bias_prior": NormalGamma(-3.0, 0.5, 2, 2)},
    {"noise_precision": Gamma(2, 0.5)},
    {"sampler": BeliefNetSampler(activation_update="ess", birth="prior")},
    {"sampler": None},
    {"max_layers": np.int64(2)},
    {"feature_bounds": [np.full(2, -9), 9]},
    {"dequantise": True},
    {"n_jobs": -1},
    {"random_state": np.random.RandomState(0)},
    {"n_draws": np.int32(5), "store": "all"},
]


@pytest.mark.parametrize("parameters", ACCEPTED, ids=lambda p: ", ".join(p))
def test_good_parameter(parameters):
    assert np.isfinite(short(**parameters).fit(X).score_samples(X)).all()


# -- prediction -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return short().fit(X)


BAD_NEW_X = {
    "infinite": (with_value(np.inf), ["X", "infinity"]),
    "strings": ([["a", "b"]], ["X", "numbers", "'a'"]),
    "too narrow": (X[:, :1], ["X has 1 features", "expecting 2 features"]),
    "too wide": (np.ones((1, 3)), ["X has 3 features", "expecting 2 features"]),
    "no rows": (X[:0], ["0 sample(s)", "minimum of 1"]),
    "one dimension": (X[0], ["2D array", "1D array"]),
    "complex": (X + 1j, ["Complex data not supported"]),
}


@pytest.mark.parametrize("name", BAD_NEW_X)
@pytest.mark.parametrize("method", PREDICT_METHODS)
def test_bad_new_data(fitted, method, name):
    data, words = BAD_NEW_X[name]
    with pytest.raises(ValueError) as caught:
        getattr(fitted, method)(data)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.filterwarnings("ignore:.*row.s. of X reach:UserWarning")
@pytest.mark.parametrize("visible", ["gaussian", "sigmoid"])
@pytest.mark.parametrize("value", [1e6, -1e50, 1e150, -1.7e308])
def test_far_new_data(visible, value):
    """An answer or an error that names X, never NaN."""
    net = short(visible=visible).fit(X)
    far = with_value(value)
    for method in PREDICT_METHODS:
        try:
            answer = getattr(net, method)(far)
        except ValueError as error:
            assert "X must" in str(error)
        else:
            assert not np.isnan(answer).any(), method
    far[3, 0] = np.nan
    try:
        answer = net.impute(far)
    except ValueError as error:
        assert "X must" in str(error)
    else:
        assert not np.isnan(answer).any()


@pytest.mark.parametrize("method", PREDICT_METHODS)
def test_not_fitted(method):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(short(), method)(X)


def test_not_fitted_without_data():
    for ask in ("sample", "get_feature_names_out", "network", "structure_graph"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(short(), ask)()


@pytest.mark.parametrize("method", PREDICT_METHODS)
@pytest.mark.parametrize("name, value", [("predict_draws", 0), ("n_jobs", 0)])
def test_parameters_of_prediction_changed_to_wrong(method, name, value):
    changed = short().fit(X).set_params(**{name: value})
    with pytest.raises(ValueError, match=rf"'{name}'.*\[1, inf\).*Got {value}"):
        getattr(changed, method)(X)


def test_parameters_of_the_model_changed_after_fit():
    """Predictions are those of the model that was fitted."""
    holes = with_value(np.nan)
    net = short(max_layers=2, mass=[2.0, 1.0]).fit(X)
    expected = net.score_samples(holes), net.impute(holes), net.sample(3, random_state=0)
    net.set_params(max_layers=1, visible="sigmoid", row_clusters=True, mass=9.0)
    np.testing.assert_array_equal(net.score_samples(holes), expected[0])
    np.testing.assert_array_equal(net.impute(holes), expected[1])
    np.testing.assert_array_equal(net.sample(3, random_state=0), expected[2])
    with pytest.raises(ValueError, match="prior='rows' must have max_layers=1, got max_layers=2"):
        net.impute(holes, prior="rows")
    # Of the network that was fitted, which has no row clusters.
    net.set_params(density="importance")
    assert np.isfinite(net.score_samples(holes)).all()
    net = short(max_layers=2, row_clusters=True).fit(X)
    net.set_params(density="importance", row_clusters=False)
    with pytest.raises(ValueError, match="max_layers=1 where row_clusters=True, got 2"):
        net.score_samples(holes)


@pytest.mark.parametrize("value", [0, -1, 1.5, "3", None, True])
def test_bad_number_of_samples(fitted, value):
    with pytest.raises(ValueError, match=f"n_samples must be an integer >= 1, got {value!r}"):
        fitted.sample(value)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"prior": "data"}, "prior must be 'network' or 'rows', got 'data'"),
        ({"n_burn_in": -1}, "n_burn_in must be an integer >= 0, got -1"),
        ({"n_passes": 0}, "n_passes must be an integer >= 1, got 0"),
        ({"n_passes": 1.5}, "n_passes must be an integer >= 1, got 1.5"),
        ({"n_burn_in": True}, "n_burn_in must be an integer >= 0, got True"),
    ],
)
def test_bad_arguments_of_impute(fitted, options, message):
    with pytest.raises(ValueError, match=message):
        fitted.impute(with_value(np.nan), **options)


def test_names_must_be_those_of_fit():
    named = short().fit(pd.DataFrame(X, columns=["a", "b"]))
    with pytest.raises(ValueError, match="feature names"):
        named.transform(pd.DataFrame(X, columns=["b", "a"]))


# -- what is possible but doubtful ------------------------------------------------------------


def test_unbounded_networks_warn_of_their_depth(no_sampling):
    for options in ({}, {"mass": [1.0, 2.0]}, {"mass": 1.6}):
        with pytest.warns(UserWarning, match="max_layers=None should have a mass of at most 1.5"):
            try:
                short(max_layers=None, **options).fit(X)
            except pytest.fail.Exception:
                pass
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with pytest.raises(pytest.fail.Exception):
            short(max_layers=None, mass=[9.0, 1.0]).fit(X)


def test_rows_without_a_cell_warn():
    holed = X.copy()
    holed[[3, 8]] = np.nan
    with pytest.warns(UserWarning, match=r"2 row\(s\) with no observed value"):
        net = short().fit(holed)
    assert np.isfinite(net.impute(holed)).all()


def test_constant_columns_are_named(no_sampling):
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=7.0)
    with pytest.warns(UserWarning, match="X is constant in column.s. 'c'"):
        with pytest.raises(pytest.fail.Exception):
            short().fit(frame)


def test_many_features_warn(no_sampling, monkeypatch):
    monkeypatch.setattr("skbnp.cibp_belief_net._estimator._MANY_FEATURES", 1)
    with pytest.warns(UserWarning, match="X has 2 features, and a sweep costs in proportion"):
        with pytest.raises(pytest.fail.Exception):
            short().fit(X)
