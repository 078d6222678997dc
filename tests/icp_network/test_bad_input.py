"""Bad input: an error that names the parameter, the rule and the value, before any sampling."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from checks.icp_network import KNOBS, with_sampler
from checks.refusals import OF_CHAINS, assert_refused, over
from skbnp import ICPNetwork, ICPNetworkClassifier, ICPNetworkRegressor
from skbnp.laws import Gamma, InverseGamma

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2)) @ [[1.0, 1.0], [0.2, -0.2]]
Y, LABELS = np.sin(X[:, 0]), X[:, 0] > 0
CHAIN = dict(
    n_chains=2, n_warmup=5, n_draws=5, n_hmc=1, n_leapfrog=3, n_init_units=2, n_fantasies=20,
    random_state=0,
)  # fmt: skip
CLASSES = [ICPNetwork, ICPNetworkRegressor, ICPNetworkClassifier]


def short(kind=ICPNetwork, **options):
    return kind(**with_sampler({**CHAIN, **options}))


def target_of(kind):
    return {ICPNetwork: None, ICPNetworkRegressor: Y, ICPNetworkClassifier: LABELS}[kind]


def with_value(value, column=1):
    changed = X.copy()
    changed[3, column] = value
    return changed


# name: (X, words of the message)
BAD_X = {
    "infinite": (with_value(np.inf), ["X", "infinity"]),
    "strings": ([["a", "b"], ["c", "d"]] * 15, ["X", "'a'"]),
    "complex": (X + 1j, ["Complex data not supported"]),
    "one dimension": (X[:, 0], ["2D array", "1D array"]),
    "no rows": (X[:0], ["0 sample(s)", "minimum of 1"]),
    "no columns": (X[:, :0], ["0 feature(s)", "minimum of 1"]),
    "nothing that varies": (X * 0.0, ["X", "a column that is not constant"]),
}


@pytest.mark.filterwarnings("ignore:X is constant:UserWarning")
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("name", BAD_X)
def test_bad_training_data(no_sampling, kind, name):
    data, words = BAD_X[name]
    with pytest.raises(ValueError) as caught:
        short(kind).fit(data, target_of(kind))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid:RuntimeWarning")
@pytest.mark.parametrize("kind", CLASSES)
def test_other_bad_training_data(no_sampling, kind):
    y = target_of(kind)
    with pytest.raises(ValueError, match="at least 2 samples, got n_samples = 1"):
        short(kind).fit(X[:1], None if y is None else y[:1])
    with pytest.raises(TypeError, match=r"[Ss]parse.*toarray"):
        short(kind).fit(sparse.csr_matrix(X), y)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="X must .* floats can hold"):
        short(kind).fit([[1.7e308, 0.0], [-1.6e308, 1.0]] * 15, y)


def test_columns_of_nan(no_sampling):
    frame = pd.DataFrame(np.column_stack([X, np.full(30, np.nan)]), columns=list("abc"))
    with pytest.raises(ValueError, match=r"every column, got only NaN in column\(s\) 'c'"):
        short().fit(frame)
    holes = X.copy()
    holes[:29, 0] = np.nan
    with pytest.raises(ValueError, match="max_rows must leave values.*every column"):
        short(max_rows=2).fit(holes)


@pytest.mark.parametrize("shape", [(), (2,)])
def test_a_target_far_from_all_others_is_named(shape):
    y = np.random.default_rng(1).normal(size=(30, *shape))

    def said(y):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            short(ICPNetworkRegressor).fit(X, y)
        return [text for one in caught if "farther from the" in (text := str(one.message))]

    # Nor the tail of a lognormal law, nor a target that is rarely not 0.
    for usual in (y, np.exp(2 * y), np.where(y > 1.0, 1e3, 0.0)):
        assert not said(usual)
    y.flat[5] = 1e4
    (text,) = said(y)
    assert text.startswith("y has 1 value(s) farther from the middle nine tenths")


@pytest.mark.parametrize("kind", [ICPNetworkRegressor, ICPNetworkClassifier])
def test_nan_is_refused_with_a_target(no_sampling, kind):
    with pytest.raises(ValueError, match="X must not hold missing cells.*1: fill them before"):
        short(kind).fit(with_value(np.nan), target_of(kind))


# name: (class, y, words of the message)
BAD_Y = {
    "none": (ICPNetworkRegressor, None, ["requires y to be passed, but the target y is None"]),
    "no labels": (ICPNetworkClassifier, None, ["requires y to be passed"]),
    "short": (ICPNetworkRegressor, Y[:-1], ["inconsistent numbers of samples", "[30, 29]"]),
    "few labels": (ICPNetworkClassifier, LABELS[:-1], ["inconsistent numbers of samples"]),
    "NaN": (ICPNetworkRegressor, np.where(Y > 0, np.nan, Y), ["y contains NaN"]),
    "infinite": (ICPNetworkRegressor, np.where(Y > 0, np.inf, Y), ["y contains infinity"]),
    "both infinities": (ICPNetworkRegressor, np.where(Y > 0, np.inf, -np.inf), ["infinity"]),
    "strings": (ICPNetworkRegressor, ["a"] * 30, ["'a'"]),
    "constant": (ICPNetworkRegressor, Y * 0.0, ["y must have a column that is not constant"]),
    "three dimensions": (ICPNetworkRegressor, Y[:, None, None], ["dim 3"]),
    "one class": (ICPNetworkClassifier, LABELS | True, ["y must have at least 2 classes", "1"]),
    "a label of NaN": (ICPNetworkClassifier, np.where(LABELS, np.nan, 0.0), ["y contains NaN"]),
    "a label missing": (ICPNetworkClassifier, ["a", "b", None] * 10, ["y must not hold missing"]),
    "a label of NA": (ICPNetworkClassifier, ["a", "b", pd.NA] * 10, ["y must not hold missing"]),
    "real labels": (ICPNetworkClassifier, Y, ["Unknown label type", "continuous"]),
    "many labels": (ICPNetworkClassifier, np.ones((30, 2), dtype=int), ["1d array"]),
}


@pytest.mark.parametrize("name", BAD_Y)
def test_bad_targets(no_sampling, name):
    kind, y, words = BAD_Y[name]
    with pytest.raises(ValueError) as caught:
        short(kind).fit(X, y)
    for word in words:
        assert word in str(caught.value), str(caught.value)


NUMBERS, PLACES = "a number from 1e-06 to 1e+06", "a number from 0 to 1 or 2 of them or None"
# parameters, the one to blame, the rule, the value as the message shows it
BAD_PARAMETERS = [
    *OF_CHAINS,
    ({"mass": 0.0}, "mass", "[1e-06, 10000.0]", "0.0"),
    ({"mass": "auto"}, "mass", "Gamma", "'auto'"),
    ({"mass": "sample"}, "mass", "a number or a law", "'sample': write mass=Gamma(shape=1.0"),
    ({"mass": (2.0, 1.0)}, "mass", "a number or a law", "write mass=Gamma(2.0, 1.0), from"),
    ({"mass": InverseGamma(1, 1)}, "mass", "Gamma", "InverseGamma(shape=1.0, scale=1.0)"),
    ({"mass": Gamma(1e-7, 1)}, "mass", f"shape of mass must be {NUMBERS}", "1e-07"),
    ({"mass": Gamma(1, Gamma(1, 1))}, "mass", f"rate of mass must be {NUMBERS}", "rate=Gamma"),
    ({"mass": True}, "mass", "bool", "True"),
    ({"concentration": -1.0}, "concentration", "[1e-06, 10000.0]", "-1.0"),
    ({"concentration": Gamma(2, 2)}, "concentration", "InverseGamma", "Gamma(shape=2.0"),
    ({"concentration": InverseGamma(2, 1e7)}, "concentration", "scale of", "10000000.0"),
    ({"observed_popularity": np.nan}, "observed_popularity", "", "nan"),
    ({"observed_popularity": Gamma(1, 1e7)}, "observed_popularity", "rate of", "10000000.0"),
    ({"weight_variance": None}, "weight_variance", "float", "None"),
    ({"weight_variance": 0.0}, "weight_variance", "[1e-06, 1000000.0]", "0.0"),
    ({"bias_variance": "wide"}, "bias_variance", "float", "'wide'"),
    ({"noise_precision": 3.0}, "noise_precision", "Gamma", "3.0"),
    ({"noise_precision": (1, 2, 3)}, "noise_precision", "a law", "Gamma(shape=1.0, rate=0.1)"),
    ({"noise_precision": Gamma(1, Gamma(1, 1))}, "noise_precision", NUMBERS, "rate=Gamma"),
    ({"max_units": -1}, "max_units", "[0, 10000]", "-1"),
    ({"max_units": None}, "max_units", "int", "None"),
    ({"visible": "binary"}, "visible", "'sigmoid'", "'binary'"),
    ({"feature_bounds": (9.0, -9.0), "visible": "sigmoid"}, "feature_bounds", "below", "9.0"),
    ({"feature_bounds": (-0.1, 0.1), "visible": "sigmoid"}, "feature_bounds", "hold all", "0.1"),
    (
        {"feature_bounds": (-9.0, 9.0), "visible": "gaussian"}, "feature_bounds",
        "None where visible='gaussian'", "-9.0",
    ),
    ({"feature_range": 1.0}, "feature_range", "[1e-06, 0.999]", "1.0"),
    ({"observed_order": 1.5}, "observed_order", "[0.0, 1.0]", "1.5"),
    ({"observed_order": [0.0, 0.0, 0.0]}, "observed_order", PLACES, "[0.0, 0.0, 0.0]"),
    ({"observed_order": [0.0, 2.0]}, "observed_order", PLACES, "2.0"),
    ({"observed_order": [0.0, "free"]}, "observed_order", PLACES, "'free'"),
    ({"observed_order": "fixed"}, "observed_order", "'free'", "'fixed'"),
    ({"sampler": "fast"}, "sampler", "ICPSampler", "'fast'"),
    ({"moves": "all"}, "moves", "'paper'", "'all'"),
    ({"activation_update": "gibbs"}, "activation_update", "'grid'", "'gibbs'"),
    ({"n_noise_slices": -1}, "n_noise_slices", "[0, 10000]", "-1"),
    ({"n_hmc": -1}, "n_hmc", "[0, 10000]", "-1"),
    ({"n_leapfrog": 0}, "n_leapfrog", "[1, 10000]", "0"),
    ({"n_births": 1.5}, "n_births", "int", "1.5"),
    ({"n_affine": -1}, "n_affine", "[0, 10000]", "-1"),
    ({"n_rotations": -1}, "n_rotations", "[0, 10000]", "-1"),
    ({"init": "network"}, "init", "'gaussianised', 'two-level'", "'network'"),
    ({"init": "prior", "max_units": 0, "mass": 50.0}, "max_units", "room", "0"),
    ({"n_init_units": 0}, "n_init_units", "[1, 1000000]", "0"),
    ({"n_fantasies": 1}, "n_fantasies", "[2, 1000000]", "1"),
    ({"density": "exact"}, "density", "'importance'", "'exact'"),
    ({"n_importance": 0}, "n_importance", "[1, 1000000]", "0"),
    ({"n_temperatures": 0}, "n_temperatures", "[1, 1000000]", "0"),
    ({"n_particles": 0}, "n_particles", "[1, 1000000]", "0"),
    ({"store_activations": 2}, "store_activations", "bool", "2"),
    ({"max_rows": 1}, "max_rows", "[2, inf)", "1"),
    ({"max_work": 0}, "max_work", "(0.0, inf)", "0"),
    ({"max_work": np.nan}, "max_work", "float", "nan"),
]  # fmt: skip


@over(BAD_PARAMETERS)
def test_bad_parameter(no_sampling, parameters, name, rule, value):
    assert_refused(lambda: short(**parameters).fit(X), name, rule, value)


# The same, of parameters that only the supervised networks have.
BAD_OF_INPUTS = [
    ({"scaling": "standard"}, "scaling", "'common'", "'standard'"),
    ({"scaling": None}, "scaling", "'each'", "None"),
    ({"input_weight_variance": 0.0}, "input_weight_variance", "[1e-06, 1000000.0]", "0.0"),
    ({"input_weight_variance": "auto"}, "input_weight_variance", "float", "'auto'"),
]


@pytest.mark.parametrize("kind", CLASSES[1:])
@over(BAD_OF_INPUTS)
def test_bad_parameter_of_inputs(no_sampling, kind, parameters, name, rule, value):
    model = short(kind, **parameters)
    assert_refused(lambda: model.fit(X, target_of(kind)), name, rule, value)


def test_every_parameter_is_in_a_table():
    named = {name for _, name, _, _ in BAD_PARAMETERS}
    assert named == set(short().get_params(deep=False)) | KNOBS
    of_inputs = {name for _, name, _, _ in BAD_OF_INPUTS}
    of_classes = {ICPNetworkClassifier: {"probability_calibration"}}
    for kind in CLASSES[1:]:
        own = of_classes.get(kind, set())
        assert set(short(kind).get_params(deep=False)) - named == of_inputs | own


@pytest.mark.parametrize("value", ["sigmoid", 1.0, True])
def test_ways_of_calibrating(no_sampling, value):
    model = short(ICPNetworkClassifier, probability_calibration=value)
    assert_refused(lambda: model.fit(X, LABELS), "probability_calibration", "'loo'", repr(value))


@pytest.mark.parametrize("kind", CLASSES[1:])
def test_starts_of_supervised_networks(no_sampling, kind):
    with pytest.raises(ValueError, match="init of sampler .*'network'.* got 'gaussianised'"):
        short(kind, init="gaussianised").fit(X, target_of(kind))


ACCEPTED = [
    {"mass": 2, "concentration": np.float32(0.5), "observed_popularity": np.int64(1)},
    {"mass": Gamma(1, 2), "noise_precision": Gamma(*np.array([1.0, 2.0]))},
    {"observed_order": 1}, {"observed_order": np.array([0.0, 0.5])}, {"observed_order": (None, 1)},
    {"feature_bounds": [np.full(2, -9), 9], "visible": "sigmoid"},
    {"feature_bounds": (-9, 9)},
    {"n_jobs": -1, "n_init_units": "auto"}, {"random_state": np.random.RandomState(0)},
    {"n_affine": 2, "n_rotations": 1, "store": "all"},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*row.s. of X reach:UserWarning")
@pytest.mark.parametrize("parameters", ACCEPTED, ids=lambda p: ", ".join(p))
def test_good_parameter(parameters):
    assert np.isfinite(short(**parameters).fit(X).score_samples(X)).all()


def test_stored_activations():
    net = short(store_activations=True).fit(X)
    for draw in net.posterior_:
        assert draw["pre_activations"].shape == (30, len(draw["order"]) - 2)


# -- prediction -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {kind: short(kind).fit(X, target_of(kind)) for kind in CLASSES}


METHODS = [
    *[(ICPNetwork, name) for name in ("transform", "score_samples", "score", "impute")],
    *[(ICPNetworkRegressor, name) for name in ("predict", "sample_y")],
    *[(ICPNetworkClassifier, name) for name in ("predict", "predict_proba")],
]
BAD_NEW_X = {
    "infinite": (with_value(np.inf), ["X", "infinity"]),
    "strings": ([["a", "b"]], ["X", "'a'"]),
    "too narrow": (X[:, :1], ["X has 1 features", "expecting 2 features"]),
    "no rows": (X[:0], ["0 sample(s)", "minimum of 1"]),
    "one dimension": (X[0], ["2D array", "1D array"]),
}


@pytest.mark.parametrize("name", BAD_NEW_X)
@pytest.mark.parametrize(("kind", "method"), METHODS)
def test_bad_new_data(fitted, kind, method, name):
    data, words = BAD_NEW_X[name]
    with pytest.raises(ValueError) as caught:
        getattr(fitted[kind], method)(data)
    for word in words:
        assert word in str(caught.value)
    if kind is not ICPNetwork:
        with pytest.raises(ValueError, match="X must not hold missing cells.*1: fill them before"):
            getattr(fitted[kind], method)(with_value(np.nan))


@pytest.mark.filterwarnings("ignore:.*row.s. of X reach:UserWarning")
@pytest.mark.parametrize("value", [1e6, -1e50, 1e150, -1.7e308])
def test_far_new_data(fitted, value):
    """An answer or an error that names X, never NaN."""
    sigmoid = short(visible="sigmoid").fit(X)
    free = short(observed_order="free", density="importance").fit(X)
    nets = [(fitted[kind], method) for kind, method in METHODS]
    nets += [(net, name) for net in (sigmoid, free) for _, name in METHODS[:4]]
    for net, method in nets:
        far = with_value(value)
        try:
            answer = getattr(net, method)(far)
        except ValueError as error:
            assert "X must" in str(error)
        else:
            assert not np.isnan(answer).any(), method
        if isinstance(net, ICPNetwork):
            far[3, 0] = np.nan
            try:
                assert not np.isnan(net.impute(far)).any()
            except ValueError as error:
                assert "X must" in str(error)


def test_counts_of_samples(fitted):
    for n_samples in (0, 1.5, True, "many"):
        with pytest.raises(ValueError, match="n_samples must be an integer >= 1"):
            fitted[ICPNetwork].sample(n_samples)
        with pytest.raises(ValueError, match="n_samples must be an integer >= 1"):
            fitted[ICPNetworkRegressor].sample_y(X, n_samples)


@pytest.mark.parametrize(("kind", "method"), METHODS)
def test_unfitted(kind, method):
    with pytest.raises(NotFittedError):
        getattr(short(kind), method)(X)


def test_unfitted_networks():
    for name in ("network", "structure_graph", "edge_probabilities", "ancestor_probabilities",
                 "sample", "get_feature_names_out"):  # fmt: skip
        with pytest.raises(NotFittedError):
            getattr(short(), name)()


def test_a_refused_fit_leaves_the_old_one():
    net = short(ICPNetworkClassifier).fit(X, LABELS)
    before = net.predict_proba(X)
    with pytest.raises(ValueError, match="at least 2 classes"):
        net.fit(X, LABELS | True)
    np.testing.assert_array_equal(net.predict_proba(X), before)
