"""Bad input: an error that names the parameter, the rule and the value, before any sampling."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from checks.refusals import OF_CHAINS, assert_refused, over
from skbnp import DirichletProcessMixture
from skbnp.laws import Beta, Gamma, Grid, ShiftedBetaNegativeBinomial
from skbnp.samplers import MixtureSampler

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(0, 1, (15, 2)), RNG.normal(8, 1, (15, 2))])
PREDICT_METHODS = [
    "predict",
    "predict_proba",
    "novelty_proba",
    "transform",
    "score_samples",
    "score",
    "impute",
]


def dpm(**options):
    return DirichletProcessMixture(
        **{**dict(n_chains=2, n_warmup=5, n_draws=5, random_state=0), **options}
    )


def with_value(value, column=1):
    changed = X.copy()
    changed[3, column] = value
    return changed


# name: (X, type of error, words of the message)
BAD_X = {
    "infinite": (with_value(np.inf), ValueError, ["X", "infinity"]),
    "minus infinite": (with_value(-np.inf), ValueError, ["X", "infinity"]),
    "all-NaN column": (
        np.column_stack([X, np.full(30, np.nan)]),
        ValueError,
        ["X", "observed value in every column", "column(s) 2"],
    ),
    "all NaN": (np.full((4, 2), np.nan), ValueError, ["X", "every column", "column(s) 0, 1"]),
    "named all-NaN column": (
        pd.DataFrame({"a": [1.0, 2.0], "b": [np.nan, np.nan]}),
        ValueError,
        ["X", "every column", "column(s) 'b'"],
    ),
    "strings": ([["a", "b"], ["c", "d"]], ValueError, ["X", "numbers", "'a'"]),
    "string in an array": (
        np.array([["1.0", "x"], ["2.0", "y"]]),
        ValueError,
        ["X", "numbers", "'x'"],
    ),
    "objects": (np.array([[{}, 1], [2, 3]], dtype=object), TypeError, ["number", "dict"]),
    "complex": (X + 1j, ValueError, ["Complex data not supported"]),
    "one dimension": (X[:, 0], ValueError, ["2D array", "1D array"]),
    "three dimensions": (X[None], ValueError, ["dim 3", "<= 2"]),
    "scalar": (3.0, ValueError, ["2D array", "scalar array"]),
    "None": (None, ValueError, ["2D array"]),
    "ragged": ([[1.0, 2.0], [3.0]], ValueError, ["inhomogeneous"]),
    "no rows": (X[:0], ValueError, ["0 sample(s)", "minimum of 1"]),
    "no columns": (X[:, :0], ValueError, ["0 feature(s)", "minimum of 1"]),
    "beyond floats": ([[1.7e308, 0.0], [1.6e308, 1.0]], ValueError, ["X", "floats"]),
}


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
@pytest.mark.parametrize("name", BAD_X)
def test_bad_training_data(no_sampling, name):
    data, error, words = BAD_X[name]
    with pytest.raises(error) as caught:
        dpm().fit(data)
    for word in words:
        assert word in str(caught.value)


I2 = [[1.0, 0.0], [0.0, 1.0]]
SAMPLED = {"n_components": ShiftedBetaNegativeBinomial(1, 4, 3)}
GIBBS = MixtureSampler(algorithm="gibbs")
HIERARCHICAL = Gamma(1.0, Gamma(1.0, 1.0))
DIAG, SPHERICAL, FULL = ({"covariance_type": kind} for kind in ("diag", "spherical", "full"))

# parameters, the one to blame, the rule, the value as the message shows it
BAD_PARAMETERS = [
    *OF_CHAINS,
    ({"family": "normal"}, "family", "'gaussian'", "'normal'"),
    ({"family": None}, "family", "'gaussian'", "None"),
    ({"family": ["poisson"]}, "family", "one entry per column, 2", "1"),
    ({"family": ["gaussian", "normal"]}, "family", "one of", "'normal'"),
    ({"family": {"a": "poisson"}}, "family", "name columns", "'a'"),
    ({"bernoulli_prior": (1.0, 2.0)}, "bernoulli_prior", "be a law", "prior=Beta(1.0, 2.0)"),
    ({"bernoulli_prior": Gamma(1, 1)}, "bernoulli_prior", "Beta", "Gamma(shape=1.0, rate=1.0)"),
    ({"bernoulli_prior": 1.0}, "bernoulli_prior", "Beta", "1.0"),
    ({"categorical_prior": 0.0}, "categorical_prior", "[1e-10", "0.0"),
    ({"categorical_prior": "auto"}, "categorical_prior", "float", "'auto'"),
    ({"poisson_prior": (1.0, 2.0)}, "poisson_prior", "be a law", "poisson_prior=Gamma(1.0, 2.0)"),
    ({"poisson_prior": HIERARCHICAL}, "poisson_prior", "must be a number", "rate=Gamma"),
    ({"sampler": "gibbs"}, "sampler", "MixtureSampler", "'gibbs'"),
    ({"sampler": MixtureSampler}, "sampler", "MixtureSampler", "class"),
    ({"sampler": MixtureSampler(algorithm="fast")}, "algorithm", "'parallel'", "'fast'"),
    ({"sampler": GIBBS}, "n_components", "up to 10000", "None"),
    ({"sampler": GIBBS, "n_components": 10**6}, "n_components", "up to 10000", "1000000"),
    ({"sampler": MixtureSampler(split_merge="jain")}, "split_merge", "'sequential'", "'jain'"),
    ({"merge_overlap": 0.0}, "merge_overlap", "(0.0, 1.0]", "0.0"),
    ({"merge_overlap": 1.5}, "merge_overlap", "(0.0, 1.0]", "1.5"),
    ({"merge_overlap": True}, "merge_overlap", "bool", "True"),
    ({"n_components": 0}, "n_components", "[1, ", "0"),
    ({"n_components": -3}, "n_components", "[1, ", "-3"),
    ({"n_components": 2.5}, "n_components", "int", "2.5"),
    ({"n_components": "auto"}, "n_components", "int", "'auto'"),
    ({"n_components": 10**30}, "n_components", "1000000000000000]", str(10**30)),
    ({"n_components": True}, "n_components", "bool", "True"),
    ({"n_components": "many"}, "n_components", "ShiftedBetaNegativeBinomial", "'many'"),
    (
        {"n_components": "sample"},
        "n_components",
        "or a law",
        "=ShiftedBetaNegativeBinomial(a, b, c)",
    ),
    ({"n_components": (1, 4, 3)}, "n_components", "or a law", "NegativeBinomial(1, 4, 3)"),
    ({"n_components": Gamma(1, 1)}, "n_components", "ShiftedBetaNegativeBinomial", "Gamma"),
    ({"sampler": GIBBS, **SAMPLED}, "n_components", "up to 10000", "ShiftedBeta"),
    ({"component_concentration": 0.0, **SAMPLED}, "component_concentration", "[1e-10", "0.0"),
    ({"component_concentration": "sample"}, "component_concentration", "float", "'sample'"),
    ({"component_concentration": 2.0}, "component_concentration", "1.0 unless", "2.0"),
    ({"concentration": 2.0, **SAMPLED}, "concentration", "must be its default", "2.0"),
    ({"discount": 0.2, **SAMPLED}, "discount", "must be 0", "0.2"),
    ({"covariance_type": "tied"}, "covariance_type", "'spherical'", "'tied'"),
    ({"covariance_type": None}, "covariance_type", "'spherical'", "None"),
    ({"concentration": "auto"}, "concentration", "Gamma", "'auto'"),
    ({"concentration": "sample"}, "concentration", "or a law", "=Gamma(shape=1.0, rate=1.0)"),
    ({"concentration": None}, "concentration", "Gamma", "None"),
    ({"concentration": (1, 2)}, "concentration", "or a law", "concentration=Gamma(1, 2)"),
    ({"concentration": Beta(1, 1)}, "concentration", "Gamma", "Beta(a=1.0, b=1.0)"),
    ({"concentration": HIERARCHICAL}, "concentration", "must be a number", "rate=Gamma"),
    ({"concentration": np.nan}, "concentration", "float", "nan"),
    ({"concentration": np.inf}, "concentration", "float", "inf"),
    ({"concentration": 0}, "concentration", "> 0", "0"),
    ({"concentration": -0.5}, "concentration", "> 0", "-0.5"),
    ({"concentration": -2}, "concentration", "(-1.0, inf)", "-2"),
    ({"concentration": True}, "concentration", "bool", "True"),
    ({"concentration": -0.3, "discount": 0.3}, "concentration", "> -0.3", "-0.3"),
    ({"concentration": -0.1, "discount": Beta(1, 9)}, "concentration", "> 0", "-0.1"),
    ({"concentration": -0.1, "n_components": 3}, "concentration", "> 0", "-0.1"),
    ({"discount": 1.0}, "discount", "[0.0, 1.0)", "1.0"),
    ({"discount": -0.1}, "discount", "[0.0, 1.0)", "-0.1"),
    ({"discount": np.nan}, "discount", "[0.0, 1.0)", "nan"),
    ({"discount": "auto"}, "discount", "Beta", "'auto'"),
    ({"discount": "sample"}, "discount", "or a law", "discount=Beta(a, b)"),
    ({"discount": None}, "discount", "Beta", "None"),
    ({"discount": (1, 9)}, "discount", "or a law", "discount=Beta(1, 9)"),
    ({"discount": 0.2, "n_components": 3}, "discount", "must be 0", "0.2"),
    ({"discount": Beta(1, 9), "n_components": 3}, "discount", "must be 0", "Beta(a=1.0, b=9.0)"),
    ({"prior_scale": 1.0}, "prior_scale", "default", "1.0"),
    ({"prior_scale": Grid([1.0])}, "prior_scale", "default", "1.0"),
    ({"prior_scale": Grid([1.0, 0.0])}, "prior_scale", "from 1e-100", "0.0"),
    ({"prior_scale": 0}, "prior_scale", "[1e-100, ", "0"),
    ({"prior_scale": -1.0}, "prior_scale", "[1e-100, ", "-1.0"),
    ({"prior_scale": np.nan}, "prior_scale", "float", "nan"),
    ({"prior_scale": "auto"}, "prior_scale", "Grid", "'auto'"),
    ({"mean_precision_prior": 0}, "mean_precision_prior", "[1e-100, ", "0"),
    ({"mean_precision_prior": -1}, "mean_precision_prior", "[1e-100, ", "-1"),
    ({"mean_precision_prior": np.inf}, "mean_precision_prior", "[1e-100, ", "inf"),
    ({"mean_precision_prior": "sample"}, "mean_precision_prior", "float", "'sample'"),
    ({"degrees_of_freedom_prior": 0}, "degrees_of_freedom_prior", "[1e-06, 100000000.0]", "0"),
    ({"degrees_of_freedom_prior": "a"}, "degrees_of_freedom_prior", "float", "'a'"),
    (
        {"degrees_of_freedom_prior": np.inf},
        "degrees_of_freedom_prior",
        "[1e-06, 100000000.0]",
        "inf",
    ),
    ({"degrees_of_freedom_prior": 1}, "degrees_of_freedom_prior", "> n_features - 1 = 1", "1"),
    ({"mean_prior": 3.0}, "mean_prior", "array-like", "3.0"),
    ({"mean_prior": "zero"}, "mean_prior", "array-like", "'zero'"),
    ({"mean_prior": [1.0]}, "mean_prior", "shape (2,)", "(1,)"),
    ({"mean_prior": [1.0, 2.0, 3.0]}, "mean_prior", "shape (2,)", "(3,)"),
    ({"mean_prior": [[1.0, 2.0]]}, "mean_prior", "shape (2,)", "(1, 2)"),
    ({"mean_prior": [np.nan, 1.0]}, "mean_prior", "finite", "nan"),
    ({"mean_prior": [np.inf, 1.0]}, "mean_prior", "finite", "inf"),
    ({"mean_prior": ["a", 1.0]}, "mean_prior", "numbers", "'a'"),
    ({"mean_prior": ["1", "2"]}, "mean_prior", "numbers", "'1'"),
    ({"mean_prior": [1j, 2.0]}, "mean_prior", "numbers", "1j"),
    ({"mean_prior": {"a": 1}}, "mean_prior", "numbers", "'a'"),
    ({"mean_prior": [[1.0], [2.0, 3.0]]}, "mean_prior", "numbers", "3.0"),
    ({"mean_prior": [1e200, 0.0]}, "mean_prior", "within 1e+06 standard deviations", "e+199"),
    ({"mean_prior": [0.0, -1e8]}, "mean_prior", "within 1e+06 standard deviations", "e+07"),
    ({"covariance_prior": "full"}, "covariance_prior", "array-like", "'full'"),
    ({"covariance_prior": -1.0}, "covariance_prior", "(0.0, inf)", "-1.0"),
    ({"covariance_prior": 1.0}, "covariance_prior", "shape (2, 2)", "()"),
    ({"covariance_prior": np.eye(3)}, "covariance_prior", "shape (2, 2)", "(3, 3)"),
    ({"covariance_prior": [1.0, 1.0]}, "covariance_prior", "shape (2, 2)", "(2,)"),
    ({"covariance_prior": I2, **DIAG}, "covariance_prior", "shape (2,)", "(2, 2)"),
    ({"covariance_prior": [1.0], **DIAG}, "covariance_prior", "shape (2,)", "(1,)"),
    ({"covariance_prior": 1.0, **DIAG}, "covariance_prior", "shape (2,)", "()"),
    ({"covariance_prior": [1.0, 1.0], **SPHERICAL}, "covariance_prior", "shape ()", "(2,)"),
    ({"covariance_prior": I2, **SPHERICAL}, "covariance_prior", "shape ()", "(2, 2)"),
    ({"covariance_prior": [1.0, -2.0], **DIAG}, "covariance_prior", "positive", "-2.0"),
    ({"covariance_prior": [1.0, 0.0], **DIAG}, "covariance_prior", "positive", "0.0"),
    ({"covariance_prior": [[1, 2], [2, 1]]}, "covariance_prior", "positive definite", "-1"),
    ({"covariance_prior": [[1, 1], [1, 1]]}, "covariance_prior", "positive definite", "eigenvalue"),
    ({"covariance_prior": [[1, 0], [0, 0]]}, "covariance_prior", "positive definite", "0"),
    ({"covariance_prior": [[1, 0], [0, -3]]}, "covariance_prior", "positive definite", "-3"),
    ({"covariance_prior": [[1, 0.5], [0.4, 1]]}, "covariance_prior", "symmetric", "0.4"),
    ({"covariance_prior": [[1, np.nan], [0, 1]]}, "covariance_prior", "finite", "nan"),
    ({"covariance_prior": np.eye(2) * 1j}, "covariance_prior", "numbers", "1.j"),
    ({"covariance_prior": [[1], [0, 1]]}, "covariance_prior", "numbers", "[1]"),
    ({"covariance_prior": np.eye(2) * 1e300}, "covariance_prior", "1e+100 times", "e+298"),
    ({"covariance_prior": 1e-300, **SPHERICAL}, "covariance_prior", "1e-100", "e-30"),
    ({"sampler": MixtureSampler(n_split_merge=-1)}, "n_split_merge", "[0, 1000000000]", "-1"),
    ({"sampler": MixtureSampler(n_split_merge=1.5)}, "n_split_merge", "int", "1.5"),
    ({"sampler": MixtureSampler(n_split_merge="many")}, "n_split_merge", "'auto'", "'many'"),
    ({"point_estimate": "mean"}, "point_estimate", "'binder'", "'mean'"),
    ({"n_chains": "many"}, "n_chains", "int", "'many'"),
    ({"n_chains": True}, "n_chains", "bool", "True"),
    ({"n_warmup": 1.5}, "n_warmup", "int", "1.5"),
    ({"n_warmup": "long"}, "n_warmup", "'auto'", "'long'"),
    ({"n_draws": None}, "n_draws", "'auto'", "None"),
    ({"thin": "most"}, "thin", "'auto'", "'most'"),
    ({"max_work": 0}, "max_work", "(0.0, inf)", "0"),
    ({"max_work": -1.0}, "max_work", "(0.0, inf)", "-1.0"),
    ({"max_work": np.nan}, "max_work", "float", "nan"),
    ({"max_work": "auto"}, "max_work", "float", "'auto'"),
    ({"n_jobs": 1.5}, "n_jobs", "int", "1.5"),
    ({"random_state": "a"}, "random_state", "RandomState", "'a'"),
    ({"random_state": np.random.default_rng(0)}, "random_state", "RandomState", "Generator"),
    ({"checkpoint_every": "auto"}, "checkpoint_every", "float", "'auto'"),
    ({"store": "none"}, "store", "'auto'", "'none'"),
    ({"predict_draws": 2.5}, "predict_draws", "int", "2.5"),
    ({"verbose": "yes"}, "verbose", "int", "'yes'"),
]


@over(BAD_PARAMETERS)
def test_bad_parameter(no_sampling, parameters, name, rule, value):
    assert_refused(lambda: dpm(**parameters).fit(X), name, rule, value)


def test_every_parameter_is_in_the_table():
    names = dpm(sampler=MixtureSampler()).get_params()
    found = {name for _, name, _, _ in BAD_PARAMETERS}
    assert found == {name.removeprefix("sampler__") for name in names}


ACCEPTED = [
    {"covariance_prior": [[1e-16, 0.5], [0.5, 1e16]]},  # correlation 0.5 in distant units
    {"covariance_prior": np.linalg.inv([[2.0, 0.3], [0.3, 1.0]])},
    {"covariance_prior": [[1.0, 1e-14], [0.0, 1.0]]},  # asymmetric by rounding
    {"covariance_prior": [1, 2], **DIAG},
    {"covariance_prior": 2, **SPHERICAL},
    {"covariance_prior": np.float32(2), **SPHERICAL},
    {"mean_prior": pd.Series([1, 2])},
    {"concentration": -0.2, "discount": 0.3},
    {"concentration": np.float32(0.5)},
    {"concentration": Gamma(1, 2)},
    {"prior_scale": Grid([2, 1, 0.3]), "degrees_of_freedom_prior": 5.0},
    {"sampler": MixtureSampler(n_split_merge=3)},
    {"n_components": np.int32(3)},
    {"degrees_of_freedom_prior": 1.5},
    {"degrees_of_freedom_prior": 0.5, **DIAG},
    {"n_jobs": -1},
    {"verbose": False},
]


@pytest.mark.parametrize("parameters", ACCEPTED)
def test_good_parameter(parameters):
    fitted = dpm(**parameters).fit(X)
    assert np.isfinite(fitted.score_samples(X)).all()


# -- prediction


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dpm().fit(pd.DataFrame(X, columns=["a", "b"]).to_numpy())


BAD_NEW_X = {
    "infinite": (with_value(np.inf), ValueError, ["X", "infinity"]),
    "strings": ([["a", "b"]], ValueError, ["X", "numbers", "'a'"]),
    "too narrow": (X[:, :1], ValueError, ["X has 1 features", "expecting 2 features"]),
    "too wide": (np.ones((1, 3)), ValueError, ["X has 3 features", "expecting 2 features"]),
    "no rows": (X[:0], ValueError, ["0 sample(s)", "minimum of 1"]),
    "one dimension": (X[0], ValueError, ["2D array", "1D array"]),
    "complex": (X + 1j, ValueError, ["Complex data not supported"]),
    "beyond squares": (
        with_value(-1e200),
        ValueError,
        ["X", "1e+50 standard deviations", "e+199"],
    ),
    "beyond floats": (with_value(1.7e308), ValueError, ["X", "1e+50 standard deviations", "e+"]),
}


@pytest.mark.parametrize("name", BAD_NEW_X)
@pytest.mark.parametrize("method", PREDICT_METHODS)
def test_bad_new_data(fitted, method, name):
    data, error, words = BAD_NEW_X[name]
    with pytest.raises(error) as caught:
        getattr(fitted, method)(data)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("method", PREDICT_METHODS)
def test_not_fitted(method):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(dpm(), method)(X)


def test_not_fitted_without_data():
    with pytest.raises(NotFittedError, match="not fitted"):
        dpm().sample()
    with pytest.raises(NotFittedError, match="not fitted"):
        dpm().get_feature_names_out()


@pytest.mark.parametrize("method", PREDICT_METHODS)
@pytest.mark.parametrize("name, value", [("predict_draws", 0), ("n_jobs", 0)])
def test_parameters_of_prediction_changed_to_wrong(method, name, value):
    changed = dpm().fit(X).set_params(**{name: value})
    with pytest.raises(ValueError, match=rf"'{name}'.*\[1, inf\).*Got {value}"):
        getattr(changed, method)(X)


def test_parameters_of_the_model_changed_after_fit():
    """Predictions are those of the model that was fitted."""
    changed = dpm().fit(X)
    expected = changed.score_samples(X), changed.sample(3, random_state=0)[0]
    changed.set_params(covariance_type="diag", n_components=2, prior_scale=3.0)
    np.testing.assert_array_equal(changed.score_samples(X), expected[0])
    np.testing.assert_array_equal(changed.sample(3, random_state=0)[0], expected[1])


@pytest.mark.parametrize("value", [0, -1, 1.5, "3", None, True])
def test_bad_number_of_samples(fitted, value):
    with pytest.raises(ValueError, match=f"n_samples must be an integer >= 1, got {value!r}"):
        fitted.sample(value)


def test_names_must_be_those_of_fit():
    named = dpm().fit(pd.DataFrame(X, columns=["a", "b"]))
    with pytest.raises(ValueError, match="feature names"):
        named.predict(pd.DataFrame(X, columns=["b", "a"]))


# -- what is possible but doubtful


CONSTANT = np.column_stack([X, np.full(30, 7.0)])


def test_constant_column(no_sampling):
    with pytest.raises(ValueError, match=r"vary in every column.*'full'.*constant column\(s\) 2"):
        dpm().fit(CONSTANT)
    with pytest.raises(ValueError, match=r"vary in every column.*constant column\(s\) 'c'"):
        dpm().fit(pd.DataFrame(CONSTANT, columns=["a", "b", "c"]))


@pytest.mark.parametrize(
    "kind, advice", [("diag", "scale 1$"), ("spherical", "remove them.*small and many$")]
)
def test_constant_column_warns(kind, advice):
    message = rf"vary in every column.*constant column\(s\) 2.*{advice}"
    with pytest.warns(UserWarning, match=message):
        fitted = dpm(covariance_type=kind).fit(CONSTANT)
    assert np.isfinite(fitted.score_samples(CONSTANT)).all()


@pytest.mark.parametrize("step", [0.0, 1e-6])
def test_columns_that_follow_from_others_warn(recwarn, step):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)) * [1.0, 10.0, 100.0, 1.0]
    X = np.c_[X, X[:, 0] + X[:, 1]]
    X = np.round(X / step) * step if step else X
    X[3, 2] = np.nan
    few = dict(n_chains=1, n_warmup=1, n_draws=1)
    with pytest.warns(UserWarning, match=r"linearly dependent column\(s\) 0, 1, 4: densities"):
        DirichletProcessMixture(**few).fit(X)
    recwarn.clear()
    DirichletProcessMixture(**few).fit(X[:, :4])
    DirichletProcessMixture(**few).fit(X + 1e-2 * rng.normal(size=X.shape))
    DirichletProcessMixture(covariance_type="diag", **few).fit(X)
    DirichletProcessMixture(**few).fit(X[:20])  # too few rows to tell
    assert not [one for one in recwarn if "dependent" in str(one.message)]


def test_a_row_far_out_is_named_and_no_column(recwarn):
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[7] = 1e6
    X[20, 1] = np.nan
    few = dict(n_chains=1, n_warmup=1, n_draws=1)
    with pytest.warns(
        UserWarning, match=r"X has 1 row\(s\) so far out, row\(s\) 7, that columns seem"
    ):
        DirichletProcessMixture(**few).fit(X)
    assert not [one for one in recwarn if "linearly dependent" in str(one.message)]
    # Columns that do follow from others are named, far row or not.
    X[:, 2] = X[:, 0] - 2.0 * X[:, 1]
    with pytest.warns(UserWarning, match=r"linearly dependent column\(s\) 0, 1, 2: densities"):
        DirichletProcessMixture(**few).fit(X)


def test_constant_column_with_a_covariance_prior(recwarn):
    fitted = dpm(covariance_prior=np.eye(3)).fit(CONSTANT)
    assert np.isfinite(fitted.score_samples(CONSTANT)).all()
    assert not [w for w in recwarn if "vary" in str(w.message)]


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_rows_without_a_cell_warn(kind):
    holed = X.copy()
    holed[[3, 8]] = np.nan
    with pytest.warns(UserWarning, match=r"2 row\(s\) with no observed value"):
        fitted = dpm(covariance_type=kind).fit(holed)
    assert np.isfinite(fitted.X_imputed_).all()


def test_many_features_warn():
    wide = RNG.normal(size=(20, 12))
    with pytest.warns(UserWarning, match="20 rows to learn covariances of 12 columns.*'diag'"):
        dpm().fit(wide)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        dpm(covariance_type="diag").fit(wide)
        dpm().fit(RNG.normal(size=(130, 12)))


def test_rows_without_a_cell_and_few_degrees_of_freedom(no_sampling):
    X = np.random.default_rng(0).normal(size=(40, 2))
    X[[3, 7]] = np.nan
    dpm = DirichletProcessMixture(degrees_of_freedom_prior=1.001)
    with pytest.warns(UserWarning), pytest.raises(ValueError, match=r"degrees_of_.*>= .*1\.001"):
        dpm.fit(X)
