"""Bad input: an error that names the parameter, the rule and the value, before any sampling."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from skbnp import DeepScaleModel

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:X should have a column of kurtosis:UserWarning",
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2)) @ [[1.0, 1.0], [0.2, -0.2]]
PREDICT_METHODS = ["predict", "predict_proba", "transform", "score_samples", "score", "impute"]


def short(**options):
    defaults = dict(n_chains=2, n_warmup=5, n_draws=5, random_state=0)
    return DeepScaleModel(**(defaults | options))


def with_value(value, column=1):
    changed = X.copy()
    changed[3, column] = value
    return changed


# name: (X, words of the message)
BAD_X = {
    "infinite": (with_value(np.inf), ["X", "infinity"]),
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
    ({"noise_shape": 0.0}, "noise_shape", "[1e-06, 1000000.0]", "0.0"),
    ({"n_split_merges": 1.5}, "n_split_merges", "int", "1.5"),
    ({"standardize": 1.0}, "standardize", "bool", "1.0"),
    ({"n_chains": 0}, "n_chains", "[1, inf)", "0"),
    ({"n_draws": 0}, "n_draws", "[1, inf)", "0"),
    ({"noise": "cluster"}, "noise", "'sample'", "'cluster'"),
    ({"noise": 0.0}, "noise", "take a small number such as noise=1e-3", "0.0"),
    ({"noise": [0.1, 0.0]}, "noise", "must be > 0", "[0.1, 0.0]"),
    ({"noise": [0.1] * 3}, "noise", "2 numbers", "[0.1, 0.1, 0.1]"),
    ({"noise": [0.1, np.nan]}, "noise", "finite", "nan"),
    ({"noise": 1e-30}, "noise", "standard deviations of X", "1e-30"),
    ({"drift": "infer"}, "drift", "'sample'", "'infer'"),
    ({"center": "mode"}, "center", "'median'", "'mode'"),
    ({"center": True}, "center", "False", "True"),
    ({"birth_move": "reversible"}, "birth_move", "'pan-han'", "'reversible'"),
    ({"schedule": "layerwise"}, "schedule", "'greedy'", "'layerwise'"),
    ({"signed": 1}, "signed", "bool", "1"),
    ({"signed": True}, "signed", "must have a drift", "True"),
    ({"transform_output": "energy"}, "transform_output", "'log_energy'", "'energy'"),
    ({"transform_output": "mean"}, "transform_output", "must have a drift", "'mean'"),
    ({"n_init_factors": -1}, "n_init_factors", "[0, 1000]", "-1"),
]


@pytest.mark.parametrize("options, name, rule, value", BAD_PARAMETERS, ids=str)
def test_bad_parameters(no_sampling, options, name, rule, value):
    with pytest.raises(ValueError) as caught:
        short(**options).fit(X)
    message = str(caught.value)
    assert name in message.split("must")[0] + message and rule in message and value in message


def test_numbers_of_any_type():
    short(drift=0, n_init_factors=np.int64(2), mass_prior=[1, 1]).fit(X)


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


def test_data_without_scale_structure():
    uniform = np.random.default_rng(0).random((200, 3))
    with pytest.warns(UserWarning, match=r"kurtosis > 3 .* expect no factors"):
        short().fit(uniform)


def test_data_off_their_center():
    with pytest.warns(UserWarning, match=r"X should be centred where center=False.*column\(s\) 1"):
        short(center=False).fit(X + [0.0, 9.0])


def test_warnings_name_the_callers_line():
    with pytest.warns(UserWarning) as caught:
        short(center=False).fit(np.insert(X + [0.0, 9.0], 1, 3.0, axis=1))
    assert all(one.filename == __file__ for one in caught)
