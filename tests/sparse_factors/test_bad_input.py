"""Bad input of the estimators with sparse factors: refused by name, rule and value, unsampled."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from skbnp import DeepScaleModel, InfiniteFactorClusterer
from skbnp.laws import Beta, Gamma, InverseGamma
from skbnp.samplers import DeepScaleSampler, FactorClustererSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:X should have a column of kurtosis:UserWarning",
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2)) @ [[1.0, 1.0], [0.2, -0.2]]
KINDS = [InfiniteFactorClusterer, DeepScaleModel]
PREDICT_METHODS = ["predict", "predict_proba", "transform", "score_samples", "score", "impute"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def short(kind, **options):
    return kind(**(dict(n_chains=2, n_warmup=5, n_draws=5, random_state=0) | options))


# -- data


# name: (X, words of the message)
BAD_X = {
    "infinite": (np.where(X == X[3, 1], np.inf, X), ["X", "infinity"]),
    "below no limit": (np.where(X == X[3, 1], -np.inf, X), ["X", "infinity"]),
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
@every_kind
def test_bad_training_data(no_sampling, kind, name):
    data, words = BAD_X[name]
    with pytest.raises(ValueError) as caught:
        short(kind).fit(data)
    for word in words:
        assert word in str(caught.value)


@every_kind
def test_sparse_says_what_to_do(kind):
    with pytest.raises(TypeError, match=r"[Ss]parse.*toarray"):
        short(kind).fit(sparse.csr_matrix(X))


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def fitted(request):
    return short(request.param).fit(X)


@pytest.mark.parametrize("method", PREDICT_METHODS)
@every_kind
def test_before_fit(kind, method):
    with pytest.raises(NotFittedError):
        getattr(short(kind), method)(X)


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


# -- parameters


RANGE = "must be a number from 1e-06 to 1e+06"
# parameters, the one to blame, the rule, the value as the message shows it
BAD_PARAMETERS = [
    ({"max_layers": 0}, "max_layers", "[1, 8]", "0"),
    ({"max_layers": 9}, "max_layers", "[1, 8]", "9"),
    ({"max_layers": True}, "max_layers", "bool", "True"),
    ({"mass": 0.0}, "mass", "[1e-06, 10000.0]", "0.0"),
    ({"mass": "infer"}, "mass", "'skbnp.laws.Gamma'", "'infer'"),
    ({"mass": "sample"}, "mass", "write mass=Gamma(shape=1.0, rate=1.0)", "'sample'"),
    ({"mass": (1.0, 2.0)}, "mass", "write mass=Gamma(1.0, 2.0)", "(1.0, 2.0)"),
    ({"mass": Beta(1, 1)}, "mass", "'skbnp.laws.Gamma'", "Beta(a=1.0, b=1.0)"),
    ({"mass": Gamma(1.0, 1e-7)}, "mass", f"rate of mass {RANGE}", "rate=1e-07"),
    ({"mass": Gamma(1.0, Gamma(1, 1))}, "mass", f"rate of mass {RANGE}", "rate=Gamma("),
    ({"mass_upper": 0.0}, "mass_upper", "(0.0, 1.0]", "0.0"),
    ({"mass_upper": 3.0}, "mass_upper", "(0.0, 1.0]", "3.0"),
    ({"loading_variance": 2.0}, "loading_variance", "'skbnp.laws.InverseGamma'", "2.0"),
    (
        {"loading_variance": InverseGamma(1e-7, 1.0)},
        *("loading_variance", f"shape of loading_variance {RANGE}", "shape=1e-07"),
    ),
    (
        {"loading_variance": InverseGamma(1.0, Gamma(1, 1))},
        *(
            "loading_variance",
            f"scale of loading_variance {RANGE}",
            "scale=Gamma(",
        ),
    ),
    ({"scaling": True}, "scaling", "'none'", "True"),
    ({"scaling": "common"}, "scaling", "'each'", "'common'"),
    ({"n_chains": 0}, "n_chains", "[1, inf)", "0"),
    ({"n_draws": 0}, "n_draws", "[1, inf)", "0"),
    ({"sampler": 3}, "sampler", "Sampler", "3"),
]


@pytest.mark.parametrize("options, name, rule, value", BAD_PARAMETERS, ids=str)
@every_kind
def test_bad_parameters(no_sampling, kind, options, name, rule, value):
    with pytest.raises(ValueError) as caught:
        short(kind, **options).fit(X)
    message = str(caught.value)
    assert name in message and rule in message and value in message


SETTINGS = [
    ({"n_births": -1}, "n_births", "[0, 10000]", "-1"),
    ({"n_births": "none"}, "n_births", "int", "'none'"),
    ({"n_births": True}, "n_births", "bool", "True"),
    ({"n_split_merge": 1.5}, "n_split_merge", "int", "1.5"),
]


@pytest.mark.parametrize("options, name, rule, value", SETTINGS, ids=str)
@pytest.mark.parametrize("place", [0, 1])
def test_bad_settings_of_the_sampler(no_sampling, place, options, name, rule, value):
    sampler = [FactorClustererSampler, DeepScaleSampler][place](**options)
    with pytest.raises(ValueError) as caught:
        short(KINDS[place], sampler=sampler).fit(X)
    message = str(caught.value)
    assert name in message and rule in message and value in message


@every_kind
@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("mass_prior", r"mass=Gamma\(shape, rate\)"),
        ("slab_shape", r"loading_variance=InverseGamma\(shape, scale\)"),
        ("slab_scale", r"loading_variance=InverseGamma\(shape, scale\)"),
        ("standardize", 'scaling="each" for True'),
        ("n_births", r"sampler=\w+\(n_births=...\)"),
        ("n_split_merges", r"sampler=\w+\(n_split_merge=...\)"),
    ],
)
def test_older_names_say_the_new_ones(kind, name, now):
    with pytest.raises(TypeError, match=f"{name}.*: .*{now}"):
        kind(**{name: 1})


@every_kind
def test_numbers_of_any_type(kind):
    model = short(kind, mass=np.float32(2.0), max_layers=np.int64(2), mass_upper=1)
    assert model.fit(X)._prior.mass == 2.0
