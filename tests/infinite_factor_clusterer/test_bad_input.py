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
    "ignore:X should have a column of kurtosis:UserWarning",
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
@pytest.mark.parametrize("top", ["dp", "gaussian"])
@pytest.mark.parametrize("name", BAD_X)
def test_bad_training_data(no_sampling, name, top):
    data, words = BAD_X[name]
    with pytest.raises(ValueError) as caught:
        short(top=top).fit(data)
    for word in words:
        assert word in str(caught.value)


def test_sparse_says_what_to_do():
    with pytest.raises(TypeError, match=r"[Ss]parse.*toarray"):
        short().fit(sparse.csr_matrix(X))


PAIR, G = "two positive numbers", {"top": "gaussian"}
# parameters, the one to blame, the rule, the value as the message shows it
BAD_PARAMETERS = [
    ({"top": "student"}, "top", "'gaussian'", "'student'"),
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
    ({"noise": "sample"}, "noise", "'cluster', 'shared'", "'sample'"),
    ({"noise": 0.1}, "noise", "'auto', 'cluster' or 'shared'", "0.1"),
    ({"noise": -0.1}, "noise", "[0.0, inf)", "-0.1"),
    ({"noise": "cluster", **G}, "noise", "'sample'", "'cluster'"),
    ({"noise": 0.0, **G}, "noise", "take a small number such as noise=1e-3", "0.0"),
    ({"noise": [0.1, 0.0], **G}, "noise", "must be > 0", "[0.1, 0.0]"),
    ({"noise": [0.1] * 3, **G}, "noise", "2 numbers", "[0.1, 0.1, 0.1]"),
    ({"noise": [0.1, np.nan], **G}, "noise", "finite", "nan"),
    ({"noise": 1e-30, **G}, "noise", "standard deviations of X", "1e-30"),
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
    ({"n_births": "none"}, "n_births", "'auto'", "'none'"),
    ({"n_split_merges": 1.5}, "n_split_merges", "int", "1.5"),
    ({"drift": "infer", **G}, "drift", "'sample'", "'infer'"),
    ({"center": "mode", **G}, "center", "'median'", "'mode'"),
    ({"center": True, **G}, "center", "False", "True"),
    ({"birth_move": "reversible", **G}, "birth_move", "'pan-han'", "'reversible'"),
    ({"schedule": "layerwise", **G}, "schedule", "'greedy'", "'layerwise'"),
    ({"signed": 1, **G}, "signed", "bool", "1"),
    ({"signed": True, **G}, "signed", "must have a drift", "True"),
    ({"transform_output": "energy", **G}, "transform_output", "'log_energy'", "'energy'"),
    ({"transform_output": "mean", **G}, "transform_output", "must have a drift", "'mean'"),
    ({"standardize": 1.0}, "standardize", "bool", "1.0"),
    ({"n_init_factors": -1, **G}, "n_init_factors", "[0, 1000]", "-1"),
    ({"n_chains": 0}, "n_chains", "[1, inf)", "0"),
    ({"n_draws": 0}, "n_draws", "[1, inf)", "0"),
]


@pytest.mark.parametrize("options, name, rule, value", BAD_PARAMETERS, ids=str)
def test_bad_parameters(no_sampling, options, name, rule, value):
    with pytest.raises(ValueError) as caught:
        short(**options).fit(X)
    message = str(caught.value)
    assert name in message.split("must")[0] + message and rule in message and value in message


# Parameters of one setting, not at their defaults.
OF_MIXTURES = {
    "concentration": 2.0, "concentration_prior": (2.0, 1.0), "score_shape": 3.0,
    "score_scale": 2.0, "score_precision": 1.0, "noise_rate_prior": [2.0, 5.0], "means": "both",
    "tails": "student", "merge_overlap": None, "detection_limit": [0.0, 1.0], "n_init_clusters": 4,
}  # fmt: skip
OF_GAUSSIANS = {
    "drift": 1.0, "center": False, "birth_move": "finite", "schedule": "greedy", "signed": True,
    "transform_output": "mean", "n_init_factors": 3,
}  # fmt: skip


@pytest.mark.parametrize("name", [*OF_MIXTURES, *OF_GAUSSIANS])
def test_parameters_of_the_other_setting(no_sampling, name):
    top, others = ("gaussian", OF_MIXTURES) if name in OF_MIXTURES else ("dp", OF_GAUSSIANS)
    with pytest.raises(ValueError, match=f"^{name} must be left at its default .*top='{top}'"):
        short(top=top, **{name: others[name]}).fit(X)


def test_defaults_may_be_written_in_other_ways():
    short(top="gaussian", concentration_prior=[1, 1], n_init_clusters=[2, 4, 8, 16]).fit(X)
    short(drift=0, n_init_factors=np.int64(2)).fit(X)


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


def test_a_gaussian_top_knows_nothing_new():
    with pytest.raises(ValueError, match="novelty_score must have top='dp', got top='gaussian'"):
        short(top="gaussian").fit(X).novelty_score(X)


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


def test_data_without_scale_structure():
    uniform = np.random.default_rng(0).random((200, 3))
    with pytest.warns(UserWarning, match=r"kurtosis > 3 .* expect no factors"):
        short(top="gaussian").fit(uniform)


def test_data_off_their_center():
    with pytest.warns(UserWarning, match=r"X should be centred where center=False.*column\(s\) 1"):
        short(top="gaussian", center=False).fit(X + [0.0, 9.0])


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
        short(top="gaussian", center=False).fit(np.insert(X + [0.0, 9.0], 1, 3.0, axis=1))
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


def test_a_fitted_clusterer_stays_what_it_is():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ifc = InfiniteFactorClusterer(n_chains=1, n_warmup=2, n_draws=4, random_state=0).fit(X)
    before = ifc.predict_proba(X)
    assert np.array_equal(ifc.set_params(top="gaussian").predict_proba(X), before)


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


def test_a_series_as_limit_of_the_other_setting():
    with pytest.raises(ValueError, match="detection_limit must be left at its default"):
        InfiniteFactorClusterer(top="gaussian", detection_limit=pd.Series([0.0, 0.0])).fit(X)
