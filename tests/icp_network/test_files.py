"""Files of fitted networks: of version 0.1, damaged ones, and draws that do not fit."""

import numpy as np
import pytest

from checks.short_networks import answers, assert_same_answers, classifier, short
from skbnp import ICPNetwork, ICPNetworkClassifier, ICPNetworkRegressor
from skbnp.icp_network import _model
from skbnp.laws import Gamma, InverseGamma
from skbnp.mcmc import io
from skbnp.mcmc.io import FileFormatError
from skbnp.samplers import ICPSampler

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_damaged_files_are_refused(X, tmp_path):
    path = tmp_path / "net.skbnp"
    net = short().fit(X)
    net.save(path)
    data = path.read_bytes()
    for cut in (len(data) // 2, len(data) - 7):
        path.write_bytes(data[:cut])
        with pytest.raises(FileFormatError):
            ICPNetwork.load(path)


OLD = dict(
    mass="sample", mass_prior=None, concentration="sample", inverse_concentration_prior=(3, 2.0),
    observed_popularity=0.5, popularity_prior=None, weight_variance=None, bias_variance=2.0,
    noise_prior=None, hyperprior="default", max_hidden=7, moves="default",
    activation_update="slice", n_noise_slices=1, n_hmc=3, n_leapfrog=20, n_births=10, n_affine=1,
    n_rotations=0, n_init_units="auto", store_activations=False, n_fantasies=30, max_rows=None,
    init="auto", n_chains=2, n_warmup=3, n_draws=5, thin=1, n_jobs=None, random_state=0,
    warm_start=False, checkpoint=None, checkpoint_every=60.0, store="auto", predict_draws=100,
    verbose=0,
)  # fmt: skip
OF_COLUMNS = dict(
    visible="gaussian", feature_bounds=None, feature_range=0.95, observed_order=0.0,
    density="auto", n_importance=200, n_temperatures=60, n_particles=8,
)  # fmt: skip
OF_INPUTS = dict(feature_scaling="common", input_weight_variance=None)


@pytest.mark.parametrize("hyperprior", ["default", "paper"])
@pytest.mark.parametrize(
    ("kind", "own"),
    [(ICPNetwork, OF_COLUMNS), (ICPNetworkRegressor, OF_INPUTS), (ICPNetworkClassifier, OF_INPUTS)],
)
def test_parameters_of_older_files(kind, own, hyperprior):
    """Those of version 0.1, and the parameters that stand for the same model now."""
    new = kind(**kind._parameters_of_file(OLD | own | {"hyperprior": hyperprior}))
    new._validate_params()
    expected = {name: value for name, value in {**OLD, **own}.items() if name in new.get_params()}
    plain = hyperprior == "default"
    expected |= dict(
        mass=Gamma(1, 1) if plain else Gamma(0.5, 0.5), concentration=InverseGamma(3, 2),
        weight_variance=4.0 if plain else 1.0, max_units=7,
        noise_precision=Gamma(1, 0.1) if plain else Gamma(0.5, 0.5),
    )  # fmt: skip
    expected |= dict(max_work="auto" if kind is ICPNetwork else 15.0, missing_values=None)
    if kind is not ICPNetwork:
        expected |= dict(scaling="common", input_weight_variance=None if plain else 1.0)
    if kind is ICPNetworkClassifier:
        expected |= dict(probability_calibration=None)
    found = new.get_params(deep=False)
    knobs = found.pop("sampler").get_params()
    assert found == expected
    assert knobs == ICPSampler(activation_update="slice", n_affine=1).get_params()
    assert kind._parameters_of_file(new.get_params(deep=False)) == new.get_params(deep=False)


def older(prior):
    """The fields of a prior as version 0.1 has written them."""
    fields = {name: getattr(prior, name) for name in ("roles", "orders", "bias_variance")}
    fields |= {name: getattr(prior, name) for name in ("weight_variance", "input_weight_variance")}
    fields |= {"mass": None, "mass_prior": (prior.mass.shape, prior.mass.rate)}
    law = prior.concentration
    fields |= {"concentration": None, "inverse_concentration_prior": (law.shape, law.scale)}
    fields |= {"observed_popularity": prior.observed_popularity, "popularity_prior": (1.0, 1.0)}
    law = prior.noise_precision
    return fields | {"noise_prior": (law.shape, law.rate), "max_hidden": prior.max_units}


def test_older_files_answer_as_before(X, tmp_path, monkeypatch):
    options = OLD | OF_COLUMNS
    net = ICPNetwork(**ICPNetwork._parameters_of_file(options)).fit(X)
    # What version 0.1 has written: its parameters, and the prior with the fields of then.
    with monkeypatch.context() as patch:
        patch.setattr(_model.Prior, "to_data", older, raising=False)
        patch.setattr(ICPNetwork, "get_params", lambda self, deep: options)
        left_out = {*net._declared, "_callback_fit_ctx"}  # stays before scikit-learn 1.9
        fitted = {name: value for name, value in vars(net).items() if name not in left_out}
        content = {"parameters": options, "fitted": fitted}
        io.write(tmp_path / "old", "fitted ICPNetwork", content, net._types_in_files())
    loaded = ICPNetwork.load(tmp_path / "old")
    assert loaded._prior == net._prior
    assert_same_answers(answers(loaded, X), answers(net, X))
    loaded.save(tmp_path / "new")
    assert_same_answers(answers(ICPNetwork.load(tmp_path / "new"), X), answers(net, X))


@pytest.mark.parametrize(
    ("kind", "name", "words"),
    [
        (ICPNetwork, "mass_prior", "mass=Gamma"),
        (ICPNetwork, "inverse_concentration_prior", "concentration=InverseGamma"),
        (ICPNetwork, "popularity_prior", "observed_popularity=Gamma"),
        (ICPNetworkRegressor, "noise_prior", "noise_precision=Gamma"),
        (ICPNetworkRegressor, "hyperprior", "those of the paper are mass=Gamma\\(0.5, 0.5\\)"),
        (ICPNetworkClassifier, "max_hidden", "max_units"),
        (ICPNetworkClassifier, "feature_scaling", "scaling"),
        (ICPNetworkClassifier, "n_births", "sampler=ICPSampler\\(n_births=...\\)"),
    ],
)
def test_old_names_are_refused_with_the_new_one(kind, name, words):
    with pytest.raises(TypeError, match=f"'{name}'.*{words}"):
        kind(**{name: 1})


BAD_DRAWS = [
    ("edges", lambda x: x + 100),
    ("edges", lambda x: x[:, ::-1]),
    ("weights", lambda x: x[:-1]),
    ("order", lambda x: x + 2.0),
    ("unit_precision", lambda x: -x),
    ("biases", lambda x: np.full_like(x, np.nan)),
    ("hyper", lambda x: x[:1]),
]


@pytest.mark.parametrize(("name", "change"), BAD_DRAWS)
def test_draws_that_do_not_fit_are_refused(X, tmp_path, name, change):
    net = short().fit(X)
    net._reference = dict(net._reference)
    net._reference[name] = np.ascontiguousarray(change(net._reference[name]))
    net.save(tmp_path / "net.skbnp")
    with pytest.raises(FileFormatError, match="damaged"):
        ICPNetwork.load(tmp_path / "net.skbnp")


def test_attributes_that_do_not_fit_are_refused(Xy, tmp_path):
    X, _, labels = Xy
    path = tmp_path / "net.skbnp"
    net = classifier().fit(X, labels)
    for name, value in (
        ("classes_", net.classes_[:2]),
        ("n_features_in_", 2),
        ("_prior", _model.Prior(roles=("input",), orders=(1.0,))),
    ):
        before = getattr(net, name)
        setattr(net, name, value)
        net.save(path)
        with pytest.raises(FileFormatError, match="damaged"):
            ICPNetworkClassifier.load(path)
        setattr(net, name, before)
    net.save(path)
    with pytest.raises(FileFormatError, match="ICPNetworkClassifier"):
        ICPNetworkRegressor.load(path)
