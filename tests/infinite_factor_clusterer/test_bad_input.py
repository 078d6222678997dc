"""Bad input: an error that names the parameter, the rule and the value, before any sampling."""

import warnings
from copy import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from skbnp import InfiniteFactorClusterer
from skbnp.laws import Beta, Gamma, InverseGamma
from skbnp.samplers import FactorClustererSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2)) @ [[1.0, 1.0], [0.2, -0.2]]


def short(**options):
    defaults = dict(n_chains=2, n_warmup=5, n_draws=5, random_state=0)
    return InfiniteFactorClusterer(**(defaults | options))


def with_value(value, column=1):
    changed = X.copy()
    changed[3, column] = value
    return changed


# parameters, the one to blame, the rule, the value as the message shows it
BAD_PARAMETERS = [
    ({"concentration": -1.0}, "concentration", "[1e-06, 100.0]", "-1.0"),
    (
        {"concentration": Gamma(1, 1e-7)},
        "concentration",
        "rate of concentration must",
        "rate=1e-07",
    ),
    ({"concentration": Gamma(1000, 0.1)}, "concentration", "a mean (shape / rate) <= 100", "1000"),
    ({"score_variance": 1.0}, "score_variance", "'skbnp.laws.InverseGamma'", "1.0"),
    (
        {"score_variance": InverseGamma(1, 1e7)},
        "score_variance",
        "scale of score_variance must",
        "10000000",
    ),
    ({"mean_precision_prior": 0.0}, "mean_precision_prior", "[1e-06, 1000000.0]", "0.0"),
    ({"noise": "sample"}, "noise", "'cluster'", "'sample'"),
    ({"noise": 0.1}, "noise", "'cluster'", "0.1"),
    ({"noise_variance": 0.1}, "noise_variance", "'skbnp.laws.InverseGamma'", "0.1"),
    ({"noise_variance": InverseGamma(2, 1)}, "noise_variance", "a Gamma law for its scale", "1.0"),
    (
        {"noise_variance": InverseGamma(2, Beta(1, 1))},
        *("noise_variance", "a Gamma law for its scale", "Beta(a=1.0, b=1.0)"),
    ),
    (
        {"noise_variance": InverseGamma(2, Gamma(1e-7, 1))},
        *("noise_variance", "shape of scale of noise_variance must be", "shape=1e-07"),
    ),
    ({"means": "none"}, "means", "'factor'", "'none'"),
    ({"tails": "student"}, "tails", "'t'", "'student'"),
    ({"merge_overlap": 0.0}, "merge_overlap", "(0.0, 1.0]", "0.0"),
    ({"merge_overlap": 1.5}, "merge_overlap", "(0.0, 1.0]", "1.5"),
    ({"detection_limit": "low"}, "detection_limit", "float", "'low'"),
    ({"detection_limit": [1.0] * 3}, "detection_limit", "2 numbers", "[1.0, 1.0, 1.0]"),
    ({"detection_limit": [1.0, np.nan]}, "detection_limit", "finite", "nan"),
    ({"n_init_clusters": 0}, "n_init_clusters", "[1, inf)", "0"),
    ({"n_init_clusters": ()}, "n_init_clusters", "a sequence", "()"),
    ({"n_init_clusters": (2, 0)}, "n_init_clusters", "a sequence", "(2, 0)"),
    ({"n_init_clusters": (2, 2.5)}, "n_init_clusters", "a sequence", "2.5"),
]


@pytest.mark.parametrize("options, name, rule, value", BAD_PARAMETERS, ids=str)
def test_bad_parameters(no_sampling, options, name, rule, value):
    if name == "n_init_clusters":
        options = {"sampler": FactorClustererSampler(**options)}
    with pytest.raises(ValueError) as caught:
        short(**options).fit(X)
    message = str(caught.value)
    assert name in message and rule in message and value in message


def test_a_sequence_may_be_a_list():
    short(sampler=FactorClustererSampler(n_init_clusters=[2, 4, 8, 16])).fit(X)


@pytest.mark.parametrize("name", ["top", "drift", "signed"])
def test_parameters_that_went_to_the_scale_model(name):
    with pytest.raises(TypeError, match=f"{name}.*DeepScaleModel"):
        InfiniteFactorClusterer(**{name: "gaussian"})


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("concentration_prior", r"concentration=Gamma\(shape, rate\)"),
        ("score_shape", r"score_variance=InverseGamma\(shape, scale\)"),
        ("score_precision", "mean_precision_prior"),
        ("noise_rate_prior", r"noise_variance=InverseGamma\(shape, Gamma\(shape, rate\)\)"),
        ("n_init_clusters", r"sampler=FactorClustererSampler\(n_init_clusters=...\)"),
    ],
)
def test_older_names_say_the_new_ones(name, now):
    with pytest.raises(TypeError, match=f"{name}.*: .*{now}"):
        InfiniteFactorClusterer(**{name: 1})


def test_cells_that_are_no_readings(no_sampling):
    with pytest.raises(ValueError, match="X must be finite, NaN where missing or -inf"):
        short(detection_limit=-5.0).fit(with_value(np.inf))


@pytest.fixture(scope="module")
def fitted():
    return short().fit(X)


def test_novelty_of_bad_rows(fitted):
    with pytest.raises(NotFittedError):
        short().novelty_proba(X)
    with pytest.raises(ValueError, match="X must be within 1e.50 standard deviations"):
        fitted.novelty_proba([[1e200, 0.0]])


# -- what is worth a warning


def test_rows_without_values():
    holes = X.copy()
    holes[4] = np.nan
    with pytest.warns(UserWarning, match=r"1 row\(s\) with no observed value, row\(s\) 4"):
        short().fit(holes)


def test_chains_that_disagree(fitted):
    draws = list(fitted.posterior_)
    merged = [np.zeros(30, dtype=int)] * 5 + [np.arange(30) % 3] * 5
    assert fitted._usual_numbers(draws, merged) == [1, 3]
    other = copy(fitted)
    other.partition_info_ = {"n_clusters_of_chains": [1, 3], "support": [0.9, 0.4, 0.7]}
    with pytest.warns(ConvergenceWarning) as caught:
        other._judge_chains()
    said = " ".join(str(one.message) for one in caught)
    assert "the chains have 1, 3 clusters; labels_ rest on" in said
    assert "Fewer than half of the draws have clusters like 1 of labels_, 40% have one" in said
    other.partition_info_ = {"n_clusters_of_chains": [3, 3], "support": [0.9, 0.5, 0.7]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="The chains may not have converged")
        other._judge_chains()


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


def test_cells_below_the_limit_are_no_marks(recwarn):
    rng = np.random.default_rng(0)
    table = -60.0 + 10.0 * rng.normal(size=(30, 3))
    weak, strange = table.copy(), table.copy()
    weak[:5, 1] = -1000.0
    strange[:5, 1] = 1000.0
    short(detection_limit=-90.0).fit(weak)
    assert not [one for one in recwarn if "marks of what was not measured" in str(one.message)]
    advice = "make it -inf and give detection_limit if it says that a reading was too weak, say "
    for model, table, value in (
        (short(), weak, "-1000"),
        (short(detection_limit=-90.0), strange, "1000"),
    ):
        with pytest.warns(
            UserWarning, match=f"X has {value} in column.s. 1, far from all"
        ) as found:
            model.fit(table)
        assert f"{advice}missing_values={value} if" in str(found[0].message)
