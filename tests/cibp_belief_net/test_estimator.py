"""The estimator's promises: scikit-learn, units, files, resumed runs."""

import pickle
import warnings
from dataclasses import replace

import joblib
import networkx
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from checks.integrals import axis, product
from skbnp import CIBPBeliefNet
from skbnp.cibp_belief_net import _model
from skbnp.laws import Gamma, NormalGamma, Uniform
from skbnp.mcmc import io
from skbnp.mcmc.io import FileFormatError
from skbnp.samplers import BeliefNetSampler

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def start(**knobs):
    return BeliefNetSampler(**{"n_init_units": 3, **knobs})


def short(**changes):
    options = dict(
        max_layers=2, sampler=start(), n_chains=2, n_warmup=10, n_draws=8, predict_draws=4,
        n_temperatures=10, n_particles=2, random_state=0,
    )  # fmt: skip
    return CIBPBeliefNet(**(options | changes))


@pytest.mark.filterwarnings("ignore:X is constant:UserWarning", "ignore:.*row.s. of X:UserWarning")
@parametrize_with_checks(
    [
        short(max_layers=1, row_clusters=among, n_chains=1, n_warmup=4, n_draws=4)
        for among in (False, True)
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 25)
    X = rng.normal(size=(50, 2)) @ rng.normal(size=(2, 4)) + 3.0 * group[:, np.newaxis]
    X += 0.3 * rng.normal(size=X.shape)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


def answers(net, X):
    filled, std = net.impute(X, return_std=True, n_burn_in=3, n_passes=5)
    out = {
        "impute": filled,
        "std": std,
        "score_samples": net.score_samples(X),
        "transform": net.transform(X),
        "sample": net.sample(5, random_state=0),
        "widths": net.layer_widths_,
        "n_edges": net.n_edges_,
        **{f"network {name}": x for name, x in net.network().items() if name != "names"},
        **net.posterior_.traces,
    }
    for t, draw in enumerate(net.posterior_):
        out |= {f"draw {t} {name}": value for name, value in draw.items()}
    return out


def assert_same_answers(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert_array_equal(one[name], other[name], err_msg=name)


OPTIONS = [
    {},
    {"max_layers": 1},
    {"max_layers": 1, "row_clusters": True},
    {"max_layers": 2, "row_clusters": True},
    {"skip_connections": True, "max_layers": 3},
    {"visible": "sigmoid"},
    {"visible": "sigmoid", "max_layers": 1, "row_clusters": True, "feature_range": 0.5},
    {"feature_bounds": (-30, 30)},
    {"mass": [1.0, 0.5], "concentration": 2.0, "sampler": start(init="empty", birth="block")},
    {
        "mass": 0.7,
        "max_layers": None,
        "max_units": 15,
        "sampler": start(birth="prior", init="prior"),
    },
    {"sampler": start(activation_update="mtm", n_tries=3, n_activation_passes=1)},
    {"sampler": start(activation_update="ess")},
    {"sampler": start(activation_update="slice"), "max_layers": 1, "density": "importance"},
    {"sampler": start(activation_update="hmc"), "max_layers": 1, "density": "ais"},
    {"max_units": 0},
    {"mass": (Uniform(0, 3), 0.5), "noise_precision": Gamma(2, 1)},
    {
        "noise_floor": 0.5,
        "noise_precision": Gamma(2.0, Gamma(1.0, 2.0)),
        "weight_prior": NormalGamma(1.0, 2.0, 2.0, 3.0),
    },
]


@pytest.mark.filterwarnings("ignore:.*row.s. of X reach:UserWarning")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_gives_finite_answers(X, options):
    net = short(**options).fit(X)
    for name, value in answers(net, X).items():
        assert name == "network names" or np.isfinite(value).all(), name
    assert net.transform(X).shape == (50, net.layer_widths_[0] if net.n_layers_ else 0)
    assert len(net.layer_widths_) == net.n_layers_
    filled, std = net.impute(X, return_std=True, n_burn_in=2, n_passes=3)
    seen = ~np.isnan(X)
    assert_array_equal(filled[seen], X[seen])
    assert (std[seen] == 0).all() and (std[~seen] > 0).all()
    for draw in net.posterior_:
        _model.checked_state(draw, net._prior, len(X), draw=True)
    rows = np.full((1, 4), np.nan)
    assert net.score_samples(rows)[0] == 0.0
    assert np.isfinite(net.impute(rows, n_burn_in=1, n_passes=1)).all()


# -- the same draws ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"max_layers": 1, "row_clusters": True}], ids=str)
def test_the_same_whatever_the_jobs(X, options):
    one = answers(short(**options).fit(X), X)
    assert_same_answers(one, answers(short(n_jobs=2, **options).fit(X), X))


@pytest.mark.slow
def test_the_same_whatever_the_backend(X):
    one = answers(short().fit(X), X)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_same_answers(one, answers(short(n_jobs=2).fit(X), X))


@pytest.mark.parametrize("options", [{}, {"max_layers": 1, "row_clusters": True}], ids=str)
def test_clones_pickles_and_files(X, tmp_path, options):
    net = short(**options).fit(X)
    expected = answers(net, X)
    assert_same_answers(answers(clone(net).fit(X), X), expected)
    assert_same_answers(answers(pickle.loads(pickle.dumps(net)), X), expected)
    net.save(tmp_path / "net.skbnp")
    assert_same_answers(answers(CIBPBeliefNet.load(tmp_path / "net.skbnp"), X), expected)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"skip_connections": True, "visible": "sigmoid"},
        {"max_layers": 1, "row_clusters": True, "sampler": start(n_init_units=4)},
    ],
    ids=str,
)
def test_runs_go_on_with_the_same_draws(X, tmp_path, options):
    whole = answers(short(n_draws=16, **options).fit(X), X)
    short(n_draws=8, checkpoint=tmp_path, **options).fit(X)
    resumed = short(n_draws=16, checkpoint=tmp_path, **options).fit(X)
    assert_same_answers(whole, answers(resumed, X))
    warm = short(n_draws=8, warm_start=True, **options).fit(X)
    assert_same_answers(whole, answers(warm.set_params(n_draws=16).fit(X), X))


def test_a_resumed_run_may_have_fewer_units_than_its_start(tmp_path):
    """Principal components that the chain lets go of: the state is smaller than the start's."""
    X = np.random.default_rng(0).normal(size=(30, 12))
    options = dict(sampler=start(n_init_units=12), mass=0.01, n_warmup=200, max_layers=1)
    whole = short(n_draws=16, **options).fit(X)
    assert max(whole.posterior_.traces["n_units"][:, 7]) < 8
    short(n_draws=8, checkpoint=tmp_path, **options).fit(X)
    resumed = short(n_draws=16, checkpoint=tmp_path, **options).fit(X)
    assert_same_answers(answers(whole, X), answers(resumed, X))


def test_rows_in_any_company(X):
    """What is said of a row depends on the row alone."""
    for options in ({}, {"max_layers": 1}, {"max_layers": 1, "row_clusters": True}):
        net = short(**options).fit(X)
        whole, order = net.impute(X), np.random.default_rng(1).permutation(50)
        assert_allclose(net.impute(X[order]), whole[order], atol=1e-7)
        assert_allclose(net.impute(X[:7]), whole[:7], atol=1e-7)
        density = net.score_samples(X)
        assert_allclose(net.score_samples(X[order]), density[order], atol=1e-7)


# -- the units of X ---------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"visible": "sigmoid"}], ids=str)
def test_powers_of_two_give_identical_draws(X, options):
    factors = 2.0 ** np.array([-20, 3, 0, 30])
    one, other = short(**options).fit(X), short(**options).fit(X * factors)
    for a, b in zip(one.posterior_, other.posterior_, strict=True):
        for name in a:
            assert_array_equal(a[name], b[name], err_msg=name)
    shift = np.where(np.isnan(X), 0.0, np.log(factors)).sum(axis=1)
    assert_allclose(other.score_samples(X * factors) + shift, one.score_samples(X), atol=1e-8)
    pairs = zip(
        other.impute(X * factors, return_std=True), one.impute(X, return_std=True), strict=True
    )
    for got, expected in pairs:
        assert_allclose(got, expected * factors, rtol=1e-9)
    assert_allclose(other.sample(9, 1), one.sample(9, 1) * factors, rtol=1e-9)


@pytest.mark.parametrize("visible", ["gaussian", "sigmoid"])
def test_log_joint_is_in_the_units_of_x(X, visible):
    net = short(visible=visible, n_chains=1).fit(X)
    end = net.posterior_.final_states[0]
    expected = _model.log_joint(end, net._prior) + net._units.log_jacobian(X).sum()
    assert_allclose(net.posterior_.traces["log_joint"][0, -1], expected, rtol=1e-10)
    # By hand, of the scaling and of s^-1.
    units = net._units
    x = (X - units.center) / units.scale
    slope = np.log(units.scale) + (np.log((1 - x**2) / 2) if visible == "sigmoid" else 0.0)
    assert_allclose(units.log_jacobian(X), -np.where(np.isnan(X), 0.0, slope).sum(axis=1))


def test_standardised_columns_without_hidden_units_are_normal():
    """No hidden unit: each column normal, with the posterior of its bias and precision."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 2)) * [3.0, 0.01] + [100.0, -5.0]
    net = short(max_units=0, n_warmup=50, n_draws=50, predict_draws=50).fit(X[:1500])
    entropy = 1 + np.log(2 * np.pi) + np.log(3.0) + np.log(0.01)
    assert net.score(X[1500:]) == pytest.approx(-entropy, abs=0.1)
    filled, std = net.impute([[np.nan, -5.0]], return_std=True)
    assert filled[0, 0] == pytest.approx(100.0, abs=0.5)
    assert std[0, 0] == pytest.approx(3.0, rel=0.1)
    sample = net.sample(3000, random_state=0)
    assert_allclose((sample.mean(axis=0) - [100.0, -5.0]) / [3.0, 0.01], 0.0, atol=0.15)
    assert_allclose(sample.std(axis=0), [3.0, 0.01], rtol=0.1)


@pytest.mark.parametrize("visible", ["gaussian", "sigmoid"])
def test_densities_of_one_column_integrate_to_one(visible):
    X = np.random.default_rng(2).normal(size=(40, 1)) ** 3
    net = short(max_layers=1, density="importance", visible=visible).fit(X)
    if visible == "sigmoid":
        low, high = net._units.center - net._units.scale, net._units.center + net._units.scale
        grid = np.linspace(low[0], high[0], 4003)[1:-1]
    else:
        grid = np.linspace(-60.0, 60.0, 4001)
    density = np.exp(net.score_samples(grid[:, np.newaxis]))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=0.01)


def test_densities_that_rest_on_one_particle_are_named():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 12)) + 0.03 * rng.normal(size=(40, 12))
    net = short(density="ais", n_warmup=40, n_particles=4).fit(X)
    with pytest.warns(
        UserWarning, match=r"the log density of \d+ of \d+ row.s. may be low by half a nat"
    ):
        net.set_params(n_temperatures=2).score_samples(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net.set_params(n_temperatures=400).score_samples(X[:5])
        net.set_params(n_temperatures=2, n_particles=1).score_samples(X)  # of one nothing is known


def test_rows_beyond_the_range_of_sigmoid_units(X):
    net = short(visible="sigmoid").fit(X)
    assert net.visible_ == "sigmoid"
    far = np.nan_to_num(X[:4])
    far[1, 2] = 1e3
    far[2, 0] = np.nan
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        density = net.score_samples(far)
    assert [str(w.message) for w in caught] == [
        "1 row(s) of X reach beyond the range of the training data or feature_bounds and have "
        "density 0"
    ]
    assert_array_equal(np.isneginf(density), [False, True, False, False])
    with pytest.warns(UserWarning, match="1 row.s. of X reach .* clipped") as caught:
        far[1, 0] = np.nan
        filled = net.impute(far, n_burn_in=1, n_passes=2)
    assert len(caught) == 1
    assert filled[1, 2] == 1e3 and np.isfinite(filled).all()
    with pytest.warns(UserWarning, match="clipped"):
        assert np.isfinite(net.transform(far)).all()
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    sample = net.sample(200, random_state=0)
    middle, half = (low + high) / 2, (high - low) / 2 / 0.9
    assert (np.abs(sample - middle) <= half * (1 + 1e-9)).all()


def test_feature_bounds(X):
    x = np.nan_to_num(X)
    low, high = x.min(axis=0) - 1, x.max(axis=0) + np.arange(4)
    net = short(feature_bounds=(low, high)).fit(x)
    assert net.visible_ == "sigmoid"
    assert_allclose(net._units.center, (low + high) / 2)
    assert_allclose(net._units.scale, (high - low) / 2 / 0.9)
    scalar = short(feature_bounds=(x.min(), x.max() + 1)).fit(x)
    assert_allclose(scalar._units.scale, (x.max() + 1 - x.min()) / 2 / 0.9)
    assert short().fit(x).visible_ == "gaussian"


def test_dequantise():
    """Half of a column at one value: without jitter its unit goes for the bound."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    X[:, 0] = np.where(rng.random(60) < 0.6, 0.0, rng.integers(1, 5, size=60))
    net = short().fit(X)
    step_variance = 1 / 12
    assert_allclose(net._units.scale[0] ** 2, X[:, 0].var() + step_variance)
    assert_allclose(net._units.scale[1] ** 2, X[:, 1].var())
    plain = short(dequantise=False).fit(X)
    assert_allclose(plain._units.scale**2, X.var(axis=0))
    assert_array_equal(net.impute(X), X)


def test_constant_columns_are_set_aside(X):
    X = np.column_stack([X, np.full(50, 7.0)])
    X[3, 4] = np.nan
    with pytest.warns(UserWarning, match=r"X is constant in column\(s\) 4, set aside"):
        net = short().fit(X)
    filled, std = net.impute(X, return_std=True, n_burn_in=1, n_passes=2)
    assert filled[3, 4] == 7.0 and std[3, 4] == 0.0
    assert (net.sample(5, random_state=0)[:, 4] == 7.0).all()
    other = X.copy()
    other[:, 4] = 9.0
    assert_allclose(net.score_samples(other), net.score_samples(X), atol=1e-7)
    network = net.network()
    assert np.isnan(network["biases"][4]) and network["layer"][4] == 0
    assert not (network["edges"] == 4).any()


def test_prior_of_rows(X):
    net = short(max_layers=1).fit(X)
    by_rows, std = net.impute(X, return_std=True, prior="rows")
    seen = ~np.isnan(X)
    assert_array_equal(by_rows[seen], X[seen])
    assert np.isfinite(by_rows).all() and (std[~seen] > 0).all()
    assert (by_rows[~seen] != net.impute(X)[~seen]).any()


# -- what is kept -----------------------------------------------------------------------------


def test_traces_and_acceptance(X):
    net = short().fit(X)
    names = {"log_joint", "n_layers", "n_units", "n_edges", "width1", "visible_edges"}
    assert names <= net.posterior_.traces.keys()
    assert "n_clusters" not in net.posterior_.traces
    for t, draw in enumerate(net.posterior_):
        chain, at = divmod(t, 8)
        assert net.posterior_.traces["n_units"][chain, at] == draw["widths"][1:].sum()
        assert net.posterior_.traces["n_edges"][chain, at] == len(draw["edges"])
    assert {"edges", "births", "deaths", "blocks"} <= net.posterior_.acceptance.keys()
    best = np.argmax(net.posterior_.traces["log_joint"])
    draw = net.posterior_[divmod(int(best), 8)]
    assert_array_equal(net.layer_widths_, draw["widths"][1:])
    clustered = short(max_layers=1, row_clusters=True).fit(X)
    assert (clustered.posterior_.traces["n_clusters"] >= 1).all()


def test_leave_one_out(X):
    net = short(max_layers=1, n_draws=15).fit(X)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Pareto")
        loo = net.posterior_.loo()
    assert np.isfinite(loo.elpd)
    assert len(loo.elpd_i) == 50
    with pytest.raises((ValueError, AttributeError, TypeError), match="row|loo|likelihood"):
        short(max_layers=1, row_clusters=True).fit(X).posterior_.loo()


def test_networks(X):
    frame = pd.DataFrame(X, columns=list("abcd"))
    net = short(max_layers=2, skip_connections=True).fit(frame)
    for draw in (None, net.posterior_[1, 3]):
        network, graph = net.network(draw), net.structure_graph(draw)
        widths = (net._reference if draw is None else draw)["widths"]
        assert_array_equal(np.bincount(network["layer"]), widths)
        assert len(graph) == widths.sum() and graph.number_of_edges() == len(network["edges"])
        assert networkx.is_directed_acyclic_graph(graph)
        assert [graph.nodes[k]["name"] for k in range(4)] == list("abcd")
        for (parent, child), weight in zip(network["edges"], network["weights"], strict=True):
            assert network["layer"][parent] > network["layer"][child]
            assert graph.edges[parent, child]["weight"] == weight


def test_pandas_and_names(X):
    frame = pd.DataFrame(X, columns=list("abcd"))
    net = short(max_layers=1, mass=2.0).set_output(transform="pandas").fit(frame)
    out = net.transform(frame)
    assert list(out.columns) == list(net.get_feature_names_out())
    assert list(out.columns) == [f"unit{k}" for k in range(net.layer_widths_[0])]


def test_transform_of_higher_layers(X):
    net = short(mass=[2.0, 2.0], concentration=2.0, sampler=start(n_init_units=4), n_warmup=30).fit(
        X
    )
    for layer in range(1, net.n_layers_ + 1):
        u = net.transform(X, layer=layer)
        assert u.shape == (50, net.layer_widths_[layer - 1])
        assert (np.abs(u) <= 1).all()
    with pytest.raises(ValueError, match="layer must be at most n_layers_"):
        net.transform(X, layer=net.n_layers_ + 1)
    for wrong in (0, 1.5, True):
        with pytest.raises(ValueError, match="layer must be an integer >= 1"):
            net.transform(X, layer=wrong)


def test_grid_search(X):
    grid = {"max_layers": [1, 2], "sampler__birth": ["prior", "block"], "mass": [Uniform(0, 2)]}
    search = GridSearchCV(short(), grid, cv=KFold(2, shuffle=True)).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# -- files ------------------------------------------------------------------------------------


def test_damaged_files_are_refused(X, tmp_path):
    path = tmp_path / "net.skbnp"
    net = short().fit(X)
    net.save(path)
    data = path.read_bytes()
    for cut in (len(data) // 2, len(data) - 7):
        path.write_bytes(data[:cut])
        with pytest.raises(FileFormatError):
            CIBPBeliefNet.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(FileFormatError):
        CIBPBeliefNet.load(path)


# What constructors of version 0.1 had, and what its priors held.
OLD_LAWS = {
    "max_depth": 2, "max_units": 2000, "mass": "sample", "mass_bounds": ((0, 3), (0, 2)),
    "concentration": [1.0, 2.0], "concentration_bounds": ((0, 20), (0, 2)),
    "weight_prior": (0, 1, 2, 2), "bias_prior": [0, 1, 2, 2], "noise_prior": (1, 2, 1),
}  # fmt: skip
OLD_PRIOR = {
    "n_features": 4, "max_depth": 2, "max_units": 2000, "mass": None,
    "mass_bounds": ((0.0, 3.0), (0.0, 2.0)), "concentration": (1.0, 2.0),
    "concentration_bounds": ((0.0, 20.0), (0.0, 2.0)), "weight_prior": (0.0, 1.0, 2.0, 2.0),
    "bias_prior": (0.0, 1.0, 2.0, 2.0), "noise_prior": (1.0, 2.0, 1.0), "highest_precision": 1e4,
    "skip_connections": False, "row_clusters": False, "row_concentration": 5.0,
    "cluster_prior": (0.2, 2.0, 1.0, 1.0),
}  # fmt: skip
OLD_KNOBS = {
    "activation_update": "auto", "n_activation_passes": 2, "n_tries": 5, "birth": "block",
    "init": "pca", "n_init_units": 3,
}  # fmt: skip


def test_files_of_version_0_1(X, tmp_path, monkeypatch):
    new = {
        "mass": (Uniform(0, 3), Uniform(0, 2)), "concentration": [1.0, 2.0],
        "noise_precision": Gamma(1, Gamma(2, 1)), "sampler": start(birth="block"),
    }  # fmt: skip
    net = short(**new).fit(X)
    old = {name: x for name, x in net.get_params(deep=False).items() if name not in new}
    del old["max_layers"]
    fitted = {name: x for name, x in vars(net).items() if name in net._fitted_attributes}
    content = {"parameters": old | OLD_LAWS | OLD_KNOBS, "fitted": fitted}
    monkeypatch.setattr(_model.Prior, "to_data", lambda prior: OLD_PRIOR, raising=False)
    io.write(tmp_path / "old.skbnp", "fitted CIBPBeliefNet", content, net._types_in_files())
    monkeypatch.undo()
    loaded = CIBPBeliefNet.load(tmp_path / "old.skbnp")
    assert loaded._prior == net._prior
    for name, value in short(**new).get_params().items():
        if name != "sampler":
            assert getattr(loaded, name, value) == value, name
    assert loaded.sampler.get_params() == net.sampler.get_params()
    assert_same_answers(answers(loaded, X), answers(net, X))


OLD_NAMES = {
    **{"max_depth": "it is max_layers now", "mass_bounds": r"mass=\(Uniform\(0, 20\), Uniform"},
    **{"concentration_bounds": r"concentration=\(Uniform", "noise_prior": "noise_precision=Gamma"},
    **{
        name: rf"sampler=BeliefNetSampler\({name}=\.\.\.\), from skbnp.samplers"
        for name in OLD_KNOBS
    },
}


@pytest.mark.parametrize("name", OLD_NAMES)
def test_old_names_say_what_to_write(name):
    with pytest.raises(TypeError, match=OLD_NAMES[name]):
        CIBPBeliefNet(**{name: 1})


DAMAGES = {
    "edges to nowhere": ("edges", lambda e: e + 1000, "join units that there are"),
    "widths": ("widths", lambda w: w + 1, "widths of the state"),
    "weights": ("weights", lambda w: w[:-1], "weights of the state must have shape"),
    "biases": ("biases", lambda b: b * np.nan, "biases of the state must be finite"),
    "precisions": ("unit_precision", lambda nu: -nu, "unit_precision of the state"),
    "activations": ("activations", lambda a: a[:, :-1], "activations of the state"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_draws_are_refused(X, tmp_path, name):
    key, change, message = DAMAGES[name]
    net = short().fit(X)
    draw = net.posterior_[0, 0]
    with pytest.raises(ValueError, match=message):
        net._check_draw({**draw, key: change(draw[key])})
    reference = net._reference
    net._reference = {**reference, key: change(reference[key])}
    net.save(tmp_path / "damaged.skbnp")
    # What is not a number is refused as the file is read.
    with pytest.raises(FileFormatError, match=f"{message}|{key} holds nan"):
        CIBPBeliefNet.load(tmp_path / "damaged.skbnp")


def test_damaged_clusters_are_refused(X):
    net = short(max_layers=1, row_clusters=True).fit(X)
    draw = net.posterior_[0, 0]
    for key, change, message in (
        ("row_cluster", lambda z: z + 1, "number the clusters without a gap"),
        ("cluster_count", lambda n: n + 1, "cluster_count of the state must count"),
        ("cluster_mean", lambda m: m[:-1], "cluster_mean of the state must have shape"),
    ):
        with pytest.raises(ValueError, match=message):
            net._check_draw({**draw, key: change(draw[key])})


DAMAGED_ATTRIBUTES = {
    "columns": ("_units", "columns", lambda c: c + 100, "columns that there are"),
    "scale": ("_units", "scale", lambda s: s[:-1], "scale of the units"),
    "constant": ("_units", "constant", lambda c: c[:-1], "constant of the units"),
    "rows": ("_training_rows", "X", lambda x: x[:, :-1], "training rows"),
    "depth": ("_prior", "max_layers", lambda d: -1, "max_layers of the prior"),
    "mass": ("_prior", "mass", lambda m: (-1.0,), "mass must be of numbers from 1e-6"),
    "noise": ("_prior", "noise_precision", lambda g: 1.0, "noise_precision must be a law Gamma"),
    "units": ("_prior", "max_units", lambda u: 10**9, "max_units of the prior"),
    "features": ("_prior", "n_features", lambda d: d + 1, "prior must be one of 4 features"),
}


@pytest.mark.parametrize("name", DAMAGED_ATTRIBUTES)
def test_damaged_attributes_are_refused(X, tmp_path, name):
    attribute, field, change, message = DAMAGED_ATTRIBUTES[name]
    net = short().fit(X)
    value = getattr(net, attribute)
    setattr(net, attribute, replace(value, **{field: change(getattr(value, field))}))
    net.save(tmp_path / "damaged.skbnp")
    with pytest.raises(FileFormatError, match=message):
        CIBPBeliefNet.load(tmp_path / "damaged.skbnp")


@pytest.mark.parametrize("density", ["auto", pytest.param("importance", marks=pytest.mark.slow)])
def test_densities_of_moons_integrate_to_one(density):
    """Units that saturate: a normal law around a mode of each row gave 0.66 to 0.98.

    A twentieth of 3,700 grid points has the weight, in two draws each, with a standard deviation
    of up to a half: an error of 0.003 for the integral.
    """
    t = np.random.default_rng(0).uniform(0.0, np.pi, 200)
    X = np.column_stack([np.cos(t), np.sin(t)])
    X[100:] = [1.0, 0.5] - X[100:]
    X += 0.08 * np.random.default_rng(1).normal(size=X.shape)
    net = short(max_layers=1, density=density, n_chains=1, n_warmup=400, predict_draws=2).fit(X)
    rows, weight = product([axis(x, 61, 3.0) for x in X.T])
    assert np.exp(net.score_samples(rows)) @ weight == pytest.approx(1.0, abs=0.01)
