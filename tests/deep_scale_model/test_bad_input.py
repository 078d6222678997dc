"""Bad input: an error that names the parameter, the rule and the value, before any sampling."""

import re
import warnings

import numpy as np
import pytest

from skbnp import DeepScaleModel
from skbnp.laws import Gamma, InverseGamma, Normal
from skbnp.samplers import DeepScaleSampler

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore:X should have a column of kurtosis:UserWarning",
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2)) @ [[1.0, 1.0], [0.2, -0.2]]


def short(**options):
    defaults = dict(n_chains=2, n_warmup=5, n_draws=5, random_state=0)
    return DeepScaleModel(**(defaults | options))


# parameters, the one to blame, the rule, the value as the message shows it
BAD_PARAMETERS = [
    ({"noise_variance": "sample"}, "noise_variance", "InverseGamma(shape=2.0", "'sample'"),
    ({"noise_variance": 0.0}, "noise_variance", "take a small number such as", "0.0"),
    ({"noise_variance": [0.1, 0.0]}, "noise_variance", "must be > 0", "[0.1, 0.0]"),
    ({"noise_variance": [0.1] * 3}, "noise_variance", "2 numbers", "[0.1, 0.1, 0.1]"),
    ({"noise_variance": [0.1, np.nan]}, "noise_variance", "finite", "nan"),
    ({"noise_variance": 1e-60}, "noise_variance", "variances of X", "1e-60"),
    (
        {"noise_variance": InverseGamma(2, 1e-8)},
        "noise_variance",
        "scale of noise_variance must",
        "1e-08",
    ),
    (
        {"noise_variance": InverseGamma(2, Gamma(1, 1))},
        *(
            "noise_variance",
            "scale of noise_variance must",
            "Gamma(shape=1.0, rate=1.0)",
        ),
    ),
    ({"drift": "infer"}, "drift", "'skbnp.laws.Normal'", "'infer'"),
    ({"drift": "sample"}, "drift", "write drift=Normal(location, variance)", "'sample'"),
    ({"drift": (0.0, 2.0)}, "drift", "write drift=Normal(0.0, 2.0)", "(0.0, 2.0)"),
    ({"drift": Normal(0.0, 1e7)}, "drift", "a variance from 1e-06", "variance=10000000.0"),
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
OF_THE_SAMPLER = {"schedule", "n_init_factors"}


@pytest.mark.parametrize("options, name, rule, value", BAD_PARAMETERS, ids=str)
def test_bad_parameters(no_sampling, options, name, rule, value):
    if name in OF_THE_SAMPLER:
        options = {"sampler": DeepScaleSampler(**options)}
    with pytest.raises(ValueError) as caught:
        short(**options).fit(X)
    message = str(caught.value)
    assert name in message and rule in message and value in message


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("noise", r"noise_variance=s\*\*2"),
        ("noise_shape", r"noise_variance=InverseGamma\(shape, 0.1\)"),
        ("schedule", r"sampler=DeepScaleSampler\(schedule=...\)"),
        ("n_init_factors", r"sampler=DeepScaleSampler\(n_init_factors=...\)"),
    ],
)
def test_older_names_say_the_new_ones(name, now):
    with pytest.raises(TypeError, match=f"{name}.*: .*{now}"):
        DeepScaleModel(**{name: 1})


def test_numbers_of_any_type():
    model = short(drift=0, sampler=DeepScaleSampler(n_init_factors=np.int64(2)))
    assert model.fit(X)._prior.drift == 0.0
    assert short(noise_variance=1).fit(X)._prior.noise_variance.shape == (2,)


# -- what is worth a warning


def test_data_without_scale_structure():
    uniform = np.random.default_rng(0).random((200, 3))
    with pytest.warns(UserWarning, match=r"kurtosis > 3 .* expect no factors"):
        short().fit(uniform)


def test_correlated_data():
    rng = np.random.default_rng(0)
    bursts = (2 * rng.normal(size=(200, 1)) + 0.1) * rng.normal(size=(200, 3))
    said = r"X is correlated in column\(s\) 0, 2: .* a correlation of -0\.[67]\d\..*TreeFactorModel"

    def warned(X, **options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            short(**options).fit(X)
        return [str(one.message) for one in caught if "correlated" in str(one.message)]

    assert not warned(bursts)
    bursts[:, 2] = 0.5 * bursts[:, 2] - bursts[:, 0]
    (message,) = warned(bursts)
    assert re.match(said, message)
    assert not warned(bursts, drift=0.5)
    assert not warned(bursts[:20])  # may be chance
    rng = np.random.default_rng(1)
    assert not warned(np.exp(2.0 * rng.normal(size=(300, 4))))  # most rows are below each mean
    assert not warned((rng.random((300, 4)) < 0.1).astype(float))
    bursts[::3, 0] = np.nan
    assert len(warned(bursts)) == 1


def test_data_off_their_center():
    with pytest.warns(UserWarning, match=r"X should be centred where center=False.*column\(s\) 1"):
        short(center=False).fit(X + [0.0, 9.0])


def test_warnings_name_the_callers_line():
    with pytest.warns(UserWarning) as caught:
        short(center=False).fit(np.insert(X + [0.0, 9.0], 1, 3.0, axis=1))
    assert all(one.filename == __file__ for one in caught)
