"""Bad input: an error that names the parameter, the rule and the value, before any sampling."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from skbnp import InfiniteFactorClusterer

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2)) @ [[1.0, 1.0], [0.2, -0.2]]
PREDICT_METHODS = [
    *("predict", "predict_proba", "novelty_score", "transform", "score_samples", "score"),
    "impute",
]


def short(**options):
    defaults = dict(n_chains=2, n_warmup=5, n_draws=5, random_state=0)
    return InfiniteFactorClusterer(**(defaults | options))


def with_value(value, column=1):
    changed = X.copy()
    changed[3, column] = value
    return changed


# name: (X, words of the message)
BAD_X = {
    "infinite": (with_value(np.inf), ["X", "infinity"]),
    "below no limit": (with_value(-np.inf), ["X", "infinity"]),
    "all-NaN column": (np.column_stack([X, np.full(30, np.nan)]), ["every column", "column(s) 2"]),
    "strings": ([["a", "b"], ["c", "d"]], ["X", "numbers", "'a'"]),
    "complex": (X + 1j, ["Complex data not supported"]),
    "one dimension": (X[:, 0], ["2D array", "1D array"]),
    "no rows": (X[:0], ["0 sample(s)", "minimum of 1"]),
    "one row": (X[:1], ["X", "at least 2 samples", "n_samples = 1"]),
    "no columns": (X[:, :0], ["0 feature(s)", "minimum of 1"]),
    "nothing that varies": (X * 0.0, ["X", "a column that is not constant"]),
    "beyond floats": ([[1.7e308, 0.0], [1.6e308, 1.0], [1.7e308, 2.0]], ["X", "floats"]),
}


@pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning", "ignore:invalid:RuntimeWarning")
@pytest.mark.parametrize("name", BAD_X)
def test_bad_training_data(no_sampling, name):
    data, words = BAD_X[name]
    with pytest.raises(ValueError) as caught:
        short().fit(data)
    for word in words:
        assert word in str(caught.value)


def test_sparse_says_what_to_do():
    with pytest.raises(TypeError, match=r"[Ss]parse.*toarray"):
        short().fit(sparse.csr_matrix(X))


PAIR = "two positive numbers"
# parameters, the one to blame, the rule, the value as the message shows it
BAD_PARAMETERS = [
    ({"max_layers": 0}, "max_layers", "[1, 8]", "0"),
    ({"max_layers": 9}, "max_layers", "[1, 8]", "9"),
    ({"max_layers": True}, "max_layers", "bool", "True"),
    ({"mass": 0.0}, "mass", "[1e-06, 10000.0]", "0.0"),
    ({"mass": "infer"}, "mass", "'sample'", "'infer'"),
    ({"mass_prior": (1.0,)}, "mass_prior", PAIR, "(1.0,)"),
    ({"mass_prior": (1.0, True)}, "mass_prior", PAIR, "True"),
    ({"mass_upper": 0.0}, "mass_upper", "(0.0, 1.0]", "0.0"),
    ({"mass_upper": 3.0}, "mass_upper", "(0.0, 1.0]", "3.0"),
    ({"slab_shape": 0.0}, "slab_shape", "[1e-06, 1000000.0]", "0.0"),
    ({"slab_scale": "wide"}, "slab_scale", "float", "'wide'"),
    ({"concentration": -1.0}, "concentration", "[1e-06, 100.0]", "-1.0"),
    ({"concentration_prior": (0, 1)}, "concentration_prior", PAIR, "(0, 1)"),
    ({"score_shape": -1.0}, "score_shape", "[1e-06, 1000000.0]", "-1.0"),
    ({"score_scale": np.nan}, "score_scale", "", "nan"),
    ({"score_precision": 0.0}, "score_precision", "[1e-06, 1000000.0]", "0.0"),
    ({"noise": "sample"}, "noise", "'cluster'", "'sample'"),
    ({"noise": 0.1}, "noise", "'cluster'", "0.1"),
    ({"noise_shape": 0.0}, "noise_shape", "[1e-06, 1000000.0]", "0.0"),
    ({"noise_rate_prior": 5.0}, "noise_rate_prior", "tuple", "5.0"),
    ({"means": "none"}, "means", "'factor'", "'none'"),
    ({"tails": "cauchy"}, "tails", "'student'", "'cauchy'"),
    ({"merge_overlap": 0.0}, "merge_overlap", "(0.0, 1.0]", "0.0"),
    ({"merge_overlap": 1.5}, "merge_overlap", "(0.0, 1.0]", "1.5"),
    ({"detection_limit": "low"}, "detection_limit", "float", "'low'"),
    ({"detection_limit": [1.0] * 3}, "detection_limit", "2 numbers", "[1.0, 1.0, 1.0]"),
    ({"detection_limit": [1.0, np.nan]}, "detection_limit", "finite", "nan"),
    ({"n_init_clusters": 0}, "n_init_clusters", "[1, inf)", "0"),
    ({"n_init_clusters": ()}, "n_init_clusters", "a sequence", "()"),
    ({"n_init_clusters": (2, 0)}, "n_init_clusters", "a sequence", "(2, 0)"),
    ({"n_init_clusters": (2, 2.5)}, "n_init_clusters", "a sequence", "2.5"),
    ({"n_births": -1}, "n_births", "[0, 10000]", "-1"),
    ({"n_births": "none"}, "n_births", "int", "'none'"),
    ({"n_split_merges": 1.5}, "n_split_merges", "int", "1.5"),
    ({"standardize": 1.0}, "standardize", "bool", "1.0"),
    ({"n_chains": 0}, "n_chains", "[1, inf)", "0"),
    ({"n_draws": 0}, "n_draws", "[1, inf)", "0"),
]


@pytest.mark.parametrize("options, name, rule, value", BAD_PARAMETERS, ids=str)
def test_bad_parameters(no_sampling, options, name, rule, value):
    with pytest.raises(ValueError) as caught:
        short(**options).fit(X)
    message = str(caught.value)
    assert name in message.split("must")[0] + message and rule in message and value in message


def test_a_sequence_may_be_a_list():
    short(concentration_prior=[1, 1], n_init_clusters=[2, 4, 8, 16]).fit(X)


@pytest.mark.parametrize("name", ["top", "drift", "signed"])
def test_parameters_that_went_to_the_scale_model(name):
    with pytest.raises(TypeError, match=f"{name}.*DeepScaleModel"):
        InfiniteFactorClusterer(**{name: "gaussian"})


def test_cells_that_are_no_readings(no_sampling):
    with pytest.raises(ValueError, match="X must be finite, NaN where missing or -inf"):
        short(detection_limit=-5.0).fit(with_value(np.inf))


@pytest.mark.parametrize("method", PREDICT_METHODS)
def test_before_fit(method):
    with pytest.raises(NotFittedError):
        getattr(short(), method)(X)


@pytest.fixture(scope="module")
def fitted():
    return short().fit(X)


@pytest.mark.parametrize("method", PREDICT_METHODS)
def test_bad_new_data(fitted, method):
    ask = getattr(fitted, method)
    with pytest.raises(ValueError, match="3 features.*expecting 2"):
        ask(np.ones((2, 3)))
    with pytest.raises(ValueError, match="infinity"):
        ask([[np.inf, 0.0]])
    with pytest.raises(ValueError, match="X must be within 1e.50 standard deviations"):
        ask([[1e200, 0.0]])


@pytest.mark.parametrize("n_samples", [0, -1, 1.5, True, "3", None])
def test_bad_sample_sizes(fitted, n_samples):
    with pytest.raises(ValueError, match="n_samples must be an integer >= 1, got"):
        fitted.sample(n_samples)


def test_a_refused_fit_leaves_the_last_one(fitted):
    before = fitted.predict_proba(X)
    with pytest.raises(ValueError):
        fitted.fit(X * 0.0)
    np.testing.assert_array_equal(fitted.predict_proba(X), before)


# -- what is worth a warning


def test_rows_without_values():
    holes = X.copy()
    holes[4] = np.nan
    with pytest.warns(UserWarning, match=r"1 row\(s\) with no observed value, row\(s\) 4"):
        short().fit(holes)


def test_chains_that_disagree(fitted):
    draws = list(fitted.posterior_)
    merged = [np.zeros(30, dtype=int)] * 5 + [np.arange(30) % 3] * 5
    with pytest.warns(ConvergenceWarning, match="the chains have 1, 3 clusters; labels_ rest on"):
        fitted._warn_if_chains_disagree(draws, merged)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted._warn_if_chains_disagree(draws, merged[:1] * 10)


def test_warnings_name_the_callers_line():
    with pytest.warns(UserWarning) as caught:
        short().fit(np.insert(X, 1, 3.0, axis=1))
    assert all(one.filename == __file__ for one in caught)


def test_frames_with_names():
    frame = pd.DataFrame({"a": X[:, 0], "b": np.full(30, 2.0), "c": X[:, 1]})
    with pytest.warns(UserWarning, match=r"X is constant in column\(s\) 'b', set aside"):
        short().fit(frame)


def test_readings_that_are_all_below_the_limit():
    with pytest.raises(ValueError, match="not constant above detection_limit"):
        InfiniteFactorClusterer(detection_limit=0.0).fit(-1.0 - np.eye(5))


def test_errors_of_x_keep_its_name_beside_a_limit():
    with pytest.raises(ValueError, match="X must hold numbers"):
        InfiniteFactorClusterer(detection_limit=0.0).fit([["a", "b"], ["c", "d"]])


def test_a_limit_that_float32_cannot_hold():
    readings = np.where(X < 0.0, -99.7, X)
    for table in (readings, readings.astype(np.float32)):
        ifc = InfiniteFactorClusterer(
            detection_limit=-99.7, n_chains=1, n_warmup=2, n_draws=4, random_state=0
        ).fit(table)
        assert np.isneginf(ifc._training_rows.X).sum() == np.sum(X < 0.0)


def test_a_limit_set_after_the_fit_waits_for_the_next():
    ifc = InfiniteFactorClusterer(n_chains=1, n_warmup=2, n_draws=4, random_state=0).fit(X)
    ifc.set_params(detection_limit=0.0)
    with pytest.raises(ValueError, match="infinity"):
        ifc.predict(np.full((1, X.shape[1]), -np.inf))
