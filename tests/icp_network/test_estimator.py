"""The estimators' promises: scikit-learn, units, files, resumed runs."""

import pickle
import warnings

import joblib
import networkx
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from checks.icp_network import PAPER
from checks.short_networks import (
    answers,
    assert_same_answers,
    classifier,
    regressor,
    short,
)
from skbnp import ICPNetwork, ICPNetworkRegressor
from skbnp.icp_network import _model
from skbnp.laws import Gamma, InverseGamma

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


SMALLEST = dict(n_chains=1, n_warmup=4, n_draws=4, predict_draws=4, n_init_units=1)


@pytest.mark.filterwarnings("ignore:X is constant:UserWarning")
@parametrize_with_checks([short(**SMALLEST), regressor(**SMALLEST), classifier(**SMALLEST)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


OPTIONS = [
    {},
    {"observed_order": "free"},
    {"observed_order": [0.0, None, 0.7], "density": "importance"},
    {"visible": "sigmoid", "density": "fantasies"},
    {"visible": "sigmoid", "feature_bounds": (-30, 30), "feature_range": 0.5, "density": "ais"},
    {"mass": 2.0, "concentration": 2.0, "observed_popularity": 1.5, "init": "prior"},
    {"moves": "paper", "init": "empty", **PAPER},
    {"activation_update": "slice", "init": "two-level", "n_noise_slices": 0},
    {"activation_update": "mtm", "init": "gaussianised", "n_hmc": 0},
    {"max_units": 0},
    {"max_units": 2, "noise_precision": Gamma(2, 1), "weight_variance": 1.0, "bias_variance": 0.5},
    {"max_rows": 25, "mass": Gamma(2, 2), "concentration": InverseGamma(3, 3)},
]


@pytest.mark.filterwarnings("ignore:Most rows have the weight:UserWarning")
@pytest.mark.filterwarnings("ignore:.*row.s. of X reach:UserWarning")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_gives_finite_answers(X, options):
    net = short(**options).fit(X)
    answer = answers(net, X)
    for name, value in answer.items():
        assert name == "network names" or np.isfinite(value).all(), name
    assert answer["transform"].shape == (40, net.n_hidden_)
    seen = ~np.isnan(X)
    assert_array_equal(answer["impute"][seen], X[seen])
    assert (answer["std"][seen] == 0).all() and (answer["std"][~seen] > 0).all()
    for draw in net.posterior_:
        _model.checked_state(draw, net._prior, len(X), draw=True)
    rows = np.full((1, 3), np.nan)
    assert net.score_samples(rows)[0] == 0.0
    assert np.isfinite(net.impute(rows)).all()


@pytest.mark.parametrize("options", [{}, {"init": "empty"}, {"init": "prior", "max_units": 5}])
def test_supervised_options_give_finite_answers(Xy, options):
    X, Y, labels = Xy
    net = regressor(**options).fit(X, Y)
    mean, std = net.predict(X, return_std=True)
    assert mean.shape == std.shape == (40, 2) and (std > 0).all()
    assert net.sample_y(X, 3, random_state=0).shape == (40, 2, 3)
    single = regressor(**options).fit(X, Y[:, 0])
    assert single.predict(X).shape == (40,)
    assert single.sample_y(X, 3, random_state=0).shape == (40, 3)
    for y in (labels, labels == "bee"):
        net = classifier(**options).fit(X, y)
        probability = net.predict_proba(X)
        assert_allclose(probability.sum(axis=1), 1.0)
        assert (probability > 0).all()
        assert_array_equal(net.predict(X), net.classes_[probability.argmax(axis=1)])


# -- the same draws ---------------------------------------------------------------------------


def everyone(X, Xy, **options):
    """Each estimator, its data and target."""
    full, Y, labels = Xy
    return [
        (short(**options), X, None),
        (short(observed_order="free", visible="sigmoid", **options), X, None),
        (regressor(**options), full, Y),
        (classifier(**options), full, labels),
    ]


@pytest.mark.filterwarnings("ignore:.*row.s. of X reach:UserWarning")
def test_the_same_whatever_the_jobs_and_the_backend(X, Xy):
    for net, data, y in everyone(X, Xy, n_warmup=4, n_draws=4):
        one = answers(net.fit(data, y), data, y)
        assert_same_answers(one, answers(clone(net).set_params(n_jobs=2).fit(data, y), data, y))
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert_same_answers(one, answers(clone(net).set_params(n_jobs=2).fit(data, y), data, y))


def test_pickles_and_files(X, Xy, tmp_path):
    for net, data, y in everyone(X, Xy, n_warmup=4, n_draws=4):
        expected = answers(net.fit(data, y), data, y)
        assert_same_answers(answers(pickle.loads(pickle.dumps(net)), data, y), expected)
        net.save(tmp_path / "net.skbnp")
        loaded = type(net).load(tmp_path / "net.skbnp")
        assert_same_answers(answers(loaded, data, y), expected)
        assert np.isfinite(loaded.posterior_.log_likelihood()).all()


def test_runs_go_on_with_the_same_draws(X, Xy, tmp_path):
    for i, (net, data, y) in enumerate(everyone(X, Xy, n_warmup=4, n_draws=8, init="prior")):
        whole = answers(net.fit(data, y), data, y)
        half = clone(net).set_params(n_draws=4, checkpoint=tmp_path / str(i)).fit(data, y)
        assert half.posterior_.n_sweeps_run == 16
        resumed = clone(half).set_params(n_draws=8).fit(data, y)
        assert resumed.posterior_.n_sweeps_run == 8
        assert_same_answers(whole, answers(resumed, data, y))
        warm = clone(net).set_params(n_draws=4, warm_start=True).fit(data, y)
        assert_same_answers(whole, answers(warm.set_params(n_draws=8).fit(data, y), data, y))


def test_another_target_is_another_run(Xy):
    X, Y, labels = Xy
    net = regressor(warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="differs in data"):
        net.fit(X, Y + 1.0)
    net = classifier(warm_start=True).fit(X, labels)
    with pytest.raises(ValueError, match="differs in data"):
        net.fit(X, np.char.add(labels, "s"))


def test_max_rows_is_the_same_choice_for_every_seed(X):
    one, other = (short(max_rows=20, random_state=seed).fit(X) for seed in (0, 1))
    rows = one._training_rows.table
    assert_array_equal(rows, other._training_rows.table)
    assert len(rows) == 20 and all((row == X).any(axis=1).any() for row in rows)
    assert len(short(max_rows=100).fit(X)._training_rows.table) == 40


# -- units ------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"visible": "sigmoid"}], ids=str)
def test_powers_of_two_give_identical_draws(X, options):
    factors = 2.0 ** np.array([-20, 3, 30])
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


def test_powers_of_two_of_features_and_targets(Xy):
    X, Y, _ = Xy
    one, other = regressor().fit(X, Y), regressor().fit(X * 1024.0, Y * [0.25, 4096.0])
    pairs = zip(
        other.predict(X * 1024.0, return_std=True), one.predict(X, return_std=True), strict=True
    )
    for got, expected in pairs:
        assert_allclose(got, expected * [0.25, 4096.0], rtol=1e-9)


@pytest.mark.parametrize(
    "n_rows, work", [(20, 20 / 3), (100, 20 / 3), (150, 10), (1000, 200 / 3), (9000, 100)]
)
def test_work_follows_the_rows(n_rows, work):
    X = np.zeros((n_rows, 2))
    assert ICPNetwork()._work_allowed(X) == pytest.approx(work)
    assert ICPNetwork(max_work=2)._work_allowed(X) == 2.0
    assert ICPNetwork()._auto_n_chains(X) == (4 if n_rows <= 1000 else 3)


def test_points_of_importance_sampling_follow_the_columns():
    rng = np.random.default_rng(0)
    options = dict(n_chains=1, n_warmup=2, n_draws=4, random_state=0)
    for n_columns, density, n_points in ((8, "auto", 64), (8, "importance", 400), (9, "auto", 400)):
        net = ICPNetwork(density=density, **options).fit(rng.normal(size=(30, n_columns)))
        rows = rng.normal(size=(3, n_columns)) + 4.0
        auto, given = (
            net.set_params(n_importance=n).score_samples(rows) for n in ("auto", n_points)
        )
        assert_allclose(auto, given, rtol=0.0)
        assert (net.set_params(n_importance=10).score_samples(rows) != given).any()


@pytest.mark.parametrize("kind", [regressor, classifier])
def test_one_scale_for_all_features(Xy, kind):
    X, Y, labels = Xy
    y = Y if kind is regressor else labels
    spread = kind(scaling="common").fit(X * [1.0, 2.0, 4.0], y)._input_units.scale
    assert_allclose(spread, np.sqrt(np.mean(np.var(X * [1.0, 2.0, 4.0], axis=0))), rtol=1e-12)
    # Columns of one spread are scaled alike whatever is asked for.
    signs = np.where(np.argsort(np.argsort(X, axis=0), axis=0) < len(X) // 2, -1.0, 1.0)
    one, other = (kind(scaling=how).fit(signs, y) for how in ("each", "common"))
    answer = "predict" if kind is regressor else "predict_proba"
    assert_array_equal(getattr(one, answer)(X), getattr(other, answer)(X))
    # What the columns are multiplied by does not matter if it is one number.
    one, other = (kind(scaling="common").fit(X * c, y) for c in (1.0, 1024.0))
    assert_allclose(getattr(one, answer)(X), getattr(other, answer)(X * 1024.0), rtol=1e-9)


@pytest.mark.parametrize("kind", [regressor, classifier])
def test_columns_of_one_range_keep_their_spreads(Xy, kind):
    X, Y, labels = Xy
    y = Y if kind is regressor else labels
    levels = np.clip(np.rint(np.abs(X) * [1.0, 2.0, 4.0]), 0.0, 3.0)
    levels[0], levels[1, 1:] = 0.0, 3.0
    for table, expected in (
        (levels, "common"), (levels * [1.0, 1.0, 0.5], "common"),
        (levels * [1.0, 2.0, 4.0], "each"), (levels + [0.0, 0.0, 1.0], "each"),
        (levels[:, :1], "each"),
    ):  # fmt: skip
        auto, told = (
            kind(scaling=how, max_units=0, init="empty", **SMALLEST).fit(table, y)
            for how in ("auto", expected)
        )
        assert_array_equal(auto._input_units.scale, told._input_units.scale)


def test_prior_of_weights_from_features(Xy):
    X, Y, labels = Xy
    d = X.shape[1]
    for kind, y in ((regressor, Y), (classifier, labels)):
        for options, hidden, inputs in (
            ({}, 4.0, 4.0 / d),
            ({"weight_variance": 9.0}, 9.0, 9.0 / d),
            ({"input_weight_variance": 0.5}, 4.0, 0.5),
            (PAPER | {"input_weight_variance": 1.0}, 1.0, 1.0),
        ):
            law = kind(**SMALLEST | options).fit(X, y)._prior
            assert (law.weight_variance, law.input_weight_variance) == (hidden, inputs)


@pytest.mark.parametrize("visible", ["gaussian", "sigmoid"])
def test_log_joint_is_in_the_units_of_x(X, visible):
    net = short(visible=visible, n_chains=1).fit(X)
    end = net.posterior_.final_states[0]
    expected = _model.log_joint(end, net._prior) + net._units.log_jacobian(X).sum()
    # Missing cells are a part of the state.
    assert_allclose(net.posterior_.traces["log_joint"][0, -1], expected, rtol=1e-10)


def test_standardised_columns_without_hidden_nodes_are_normal():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(800, 2)) * [3.0, 0.01] + [100.0, -5.0]
    net = short(max_units=0, n_warmup=50, n_draws=50, predict_draws=50).fit(X[:600])
    entropy = 1 + np.log(2 * np.pi) + np.log(3.0) + np.log(0.01)
    assert net.score(X[600:]) == pytest.approx(-entropy, abs=0.2)
    filled, std = net.impute([[np.nan, -5.0]], return_std=True)
    assert filled[0, 0] == pytest.approx(100.0, abs=0.5)
    assert std[0, 0] == pytest.approx(3.0, rel=0.1)


def test_densities_of_one_column_integrate_to_one():
    X = np.random.default_rng(2).normal(size=(40, 1)) ** 3
    for options in ({}, {"visible": "sigmoid"}):
        net = short(density="fantasies", **options).fit(X)
        if options:
            low, high = net._units.center - net._units.scale, net._units.center + net._units.scale
            grid = np.linspace(low[0], high[0], 4003)[1:-1]
        else:
            grid = np.linspace(-60.0, 60.0, 4001)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Most rows have the weight")
            density = np.exp(net.score_samples(grid[:, np.newaxis]))
        assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=0.01)


def test_rows_beyond_the_range_of_sigmoid_columns(X):
    net = short(visible="sigmoid").fit(X)
    far = np.nan_to_num(X[:4])
    far[1, 2] = 1e3
    with pytest.warns(UserWarning, match="1 row.s. of X reach .* have density 0"):
        density = net.score_samples(far)
    assert_array_equal(np.isneginf(density), [False, True, False, False])
    far[1, 0] = np.nan
    with pytest.warns(UserWarning, match="1 row.s. of X reach .* clipped"):
        filled = net.impute(far)
    assert filled[1, 2] == 1e3 and np.isfinite(filled).all()
    with pytest.warns(UserWarning, match="clipped"):
        assert np.isfinite(net.transform(far)).all()


def test_constant_columns_are_set_aside(X, Xy):
    with_constant = np.column_stack([X[:, :1], np.full(40, 7.0), X[:, 1:]])
    with_constant[3, 1] = np.nan
    with pytest.warns(UserWarning, match=r"X is constant in column\(s\) 1, set aside"):
        net = short().fit(with_constant)
    filled, std = net.impute(with_constant, return_std=True)
    assert filled[3, 1] == 7.0 and std[3, 1] == 0.0
    assert (net.sample(5, random_state=0)[:, 1] == 7.0).all()
    network = net.network()
    assert np.isnan(network["biases"][1]) and network["order"][1] == 0.0
    assert not (network["edges"] == 1).any()
    assert net.edge_probabilities().shape == (4, 4)

    full, Y, _ = Xy
    full = np.column_stack([np.zeros(40), full])
    with pytest.warns(UserWarning, match=r"X is constant in column\(s\) 0, set aside$") as caught:
        net = regressor().fit(full, np.column_stack([Y, np.full(40, 3.0)]))
    assert sum("set aside" in str(w.message) for w in caught) == 2
    mean, std = net.predict(full, return_std=True)
    assert (mean[:, 2] == 3.0).all() and (std[:, 2] == 0.0).all() and (std[:, :2] > 0).all()
    network = net.network()
    assert network["names"] == ["y0", "y1", "y2", "x0", "x1", "x2", "x3"]
    assert_array_equal(network["order"][:7], [0, 0, 0, 1, 1, 1, 1])
    assert not np.isin(network["edges"], [2, 3]).any()
    other = full + [[9.0, 0.0, 0.0, 0.0]]
    assert_array_equal(net.predict(other), mean)


# -- what is kept -----------------------------------------------------------------------------


def test_traces_and_the_reference(X):
    net = short().fit(X)
    names = {"log_joint", "n_hidden", "n_edges", "depth", "mass", "concentration"}
    assert names <= net.posterior_.traces.keys()
    for t, draw in enumerate(net.posterior_):
        at = divmod(t, 8)
        assert net.posterior_.traces["n_hidden"][at] == len(draw["order"]) - 3
        assert net.posterior_.traces["n_edges"][at] == len(draw["edges"])
    best = divmod(int(np.argmax(net.posterior_.traces["log_joint"])), 8)
    for name, value in (("n_hidden", net.n_hidden_), ("n_edges", net.n_edges_)):
        assert net.posterior_.traces[name][best] == value
    assert net.posterior_.traces["depth"][best] == net.depth_


@pytest.mark.filterwarnings("ignore:.*Pareto:UserWarning")
def test_leave_one_out(X, Xy):
    for net, data, y in everyone(X, Xy, n_warmup=4, n_draws=15):
        loo = net.fit(data, y).posterior_.loo()
        assert np.isfinite(loo.elpd) and len(loo.elpd_i) == 40
        assert len(net.posterior_.observed_data()) == 40


def test_log_likelihoods_of_targets_are_in_their_units(Xy):
    X, Y, labels = Xy
    net = regressor(n_fantasies=4000, n_draws=1, n_chains=1).fit(X, Y[:, 0])
    mean, std = net.predict(X, return_std=True)
    # Of a unimodal predictive law within some nats: the scale is right.
    normal = -0.5 * ((Y[:, 0] - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)
    got = net.posterior_.log_likelihood()[0, 0]
    assert np.median(np.abs(got - normal)) < 1.0
    net = classifier(n_draws=1, n_chains=1, probability_calibration=None).fit(X, labels)
    probability = net.predict_proba(X)[np.arange(40), np.searchsorted(net.classes_, labels)]
    assert_allclose(np.exp(net.posterior_.log_likelihood()[0, 0]), probability, atol=0.1)


def test_densities_of_targets_without_hidden_nodes_are_exact(Xy):
    """Inputs go in as they are, and have no density of their own."""
    X, Y, _ = Xy
    net = regressor(max_units=0, n_draws=1, n_chains=1, init="empty").fit(X, Y[:, 0])
    mean, std = net.predict(X, return_std=True)
    assert_allclose(
        net.posterior_.log_likelihood()[0, 0],
        -0.5 * ((Y[:, 0] - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi),
        rtol=1e-9,
    )


def test_noise_is_not_lost_far_from_the_training_rows(Xy):
    X, Y, _ = Xy
    net = regressor(max_units=0, n_draws=1, n_chains=1, init="empty").fit(X, Y[:, 0])
    _, near = net.predict(X[:1], return_std=True)
    _, far = net.predict(1e9 * X[:1], return_std=True)
    assert far >= 0.999 * near


def test_chains_in_threads_leave_the_filters_of_warnings_alone(X):
    before = list(warnings.filters)
    for seed in range(3):
        with pytest.warns(ConvergenceWarning, match="chains may not have converged"):
            short(n_chains=4, n_jobs=2, n_draws=8, random_state=seed).fit(X)
        assert warnings.filters == before


def test_rows_that_are_left_out_may_not_take_a_class_or_a_value_along(X, Xy):
    with pytest.raises(ValueError, match="max_rows must leave rows of every class, got 2"):
        classifier(max_rows=2).fit(np.nan_to_num(X), np.arange(len(X)) % 3)
    rare = np.column_stack([X, np.arange(len(X)) == 0])
    with pytest.raises(ValueError, match="max_rows must leave values.*got 5"):
        short(max_rows=5).fit(rare)


def test_a_mass_beyond_what_fits_is_sampled(X):
    net = short(mass=1e4, concentration=1.0, max_units=20).fit(X)
    assert np.isfinite(net.posterior_.traces["log_joint"]).all()


def test_networks(X, Xy):
    frame = pd.DataFrame(X, columns=list("abc"))
    full, Y, labels = Xy
    for net, names in (
        (short(observed_order="free").fit(frame), ["a", "b", "c"]),
        (regressor().fit(full, Y[:, 0]), ["y", "x0", "x1", "x2"]),
        (classifier().fit(frame.fillna(0.0), labels), ["ant", "bee", "cat", "a", "b", "c"]),
        (classifier().fit(full, labels == "cat"), ["True", "x0", "x1", "x2"]),
        (regressor().fit(pd.DataFrame(full), Y[:, 0]), ["y", "0", "1", "2"]),
    ):
        for draw in (None, net.posterior_[1, 3]):
            network, graph = net.network(draw), net.structure_graph(draw)
            assert network["names"] == names
            assert len(graph) == len(network["order"]) == len(network["biases"])
            assert graph.number_of_edges() == len(network["edges"])
            assert networkx.is_directed_acyclic_graph(graph)
            assert [graph.nodes[k]["name"] for k in range(len(names))] == names
            for (parent, child), weight in zip(network["edges"], network["weights"], strict=True):
                assert network["order"][parent] > network["order"][child]
                assert graph.edges[parent, child]["weight"] == weight
        assert net.depth_ == networkx.dag_longest_path_length(net.structure_graph(), weight=None)


def test_probabilities_of_edges_and_ancestors(X):
    net = short(observed_order="free", observed_popularity=5.0, n_warmup=30).fit(X)
    edges, ancestors = np.zeros((2, 3, 3))
    for draw in net.posterior_:
        graph = net.structure_graph(draw)
        for child in range(3):
            above = networkx.ancestors(graph, child)
            ancestors[[k for k in above if k < 3], child] += 1 / 16
            edges[[k for k in graph.predecessors(child) if k < 3], child] += 1 / 16
    assert_allclose(net.edge_probabilities(), edges, atol=1e-12)
    assert_allclose(net.ancestor_probabilities(), ancestors, atol=1e-12)
    assert 0 < edges.sum() <= ancestors.sum()


def test_pandas_and_names(X, Xy):
    frame = pd.DataFrame(X, columns=list("abc"))
    net = short(mass=2.0).set_output(transform="pandas").fit(frame)
    out = net.transform(frame)
    assert list(out.columns) == list(net.get_feature_names_out())
    assert list(out.columns) == [f"unit{k}" for k in range(net.n_hidden_)]
    full, Y, _ = Xy
    net = regressor().fit(pd.DataFrame(full, columns=list("abc")), pd.Series(Y[:, 0]))
    assert_array_equal(net.predict(pd.DataFrame(full, columns=list("abc"))).shape, (40,))
    with pytest.raises(ValueError, match="feature names"):
        net.predict(pd.DataFrame(full, columns=list("xyz")))


def test_searches_and_pipelines(X, Xy):
    folds = KFold(2, shuffle=True, random_state=0)
    places = {"max_units": [0, 3], "sampler__n_births": [1, 2]}
    search = GridSearchCV(short(**SMALLEST), places, cv=folds).fit(X)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    full, Y, labels = Xy
    for net, y in ((regressor(**SMALLEST), Y), (classifier(**SMALLEST), labels)):
        scores = cross_val_score(make_pipeline(StandardScaler(), net), full, y, cv=folds)
        assert np.isfinite(scores).all()


def test_warns_of_too_few_fantasies(X):
    net = short(density="fantasies", n_fantasies=3).fit(X)
    with pytest.warns(UserWarning, match="fewer than 5 fantasies"):
        net.score_samples(X)


def test_noise_at_its_bound_is_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    short = dict(n_chains=2, n_warmup=60, n_draws=20, random_state=0)

    def warnings_of(y, **options):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ICPNetworkRegressor(**short | options).fit(X, y)
        return [str(one.message) for one in caught if "allows for" in str(one.message)]

    exact = X @ [1.0, 2.0]
    (message,) = warnings_of(exact)
    deviation = exact.std() * np.sqrt(0.03 / (1.0 + 30.0))
    assert f"noise of y is about the least that noise_precision={Gamma(1.0, 0.03)}" in message
    assert f"60 rows, a standard deviation of {deviation:.2g}" in message
    assert "noise_precision=Gamma(1, 3e-05) say" in message
    noisy = exact + 0.05 * rng.normal(size=60)
    assert warnings_of(noisy)
    assert not warnings_of(noisy, noise_precision=Gamma(1.0, 1e-4))
    # Of targets the one that has little.
    (message,) = warnings_of(np.column_stack([rng.normal(size=60), exact]))
    assert "noise of y1 is" in message and f"deviation of {deviation:.2g}:" in message
    # Beside a constant one.
    (message,) = warnings_of(np.column_stack([np.full(60, 2.0), exact]))
    assert "noise of y1 is about" in message and f"deviation of {deviation:.2g}:" in message
    # Nothing lower can be given.
    assert not warnings_of(exact, noise_precision=Gamma(1.0, 1e-6))
    # Its own node has little, those above it have much.
    assert not warnings_of(rng.exponential(size=60) ** 3)


def test_fewest_sweeps_that_take_more_than_the_work():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    net = ICPNetworkRegressor(max_work=0.01, n_chains=1, random_state=0)
    with pytest.warns(UserWarning, match=r"fewest sweeps that are made, 140, take about .*=0.01"):
        net.fit(X, y)
    assert net.n_warmup_ + net.n_draws_ == 140
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        net.set_params(n_warmup=5, n_draws=5).fit(X, y)
    assert not [one for one in caught if "fewest" in str(one.message)]


@pytest.mark.parametrize("unit", ["datetime64[D]", "timedelta64[D]"])
def test_dates_are_no_targets(unit):
    y = np.arange(20).astype(unit)
    with pytest.raises(ValueError, match="y must hold numbers, got dates"):
        ICPNetworkRegressor().fit(np.arange(40.0).reshape(20, 2), y)


def test_the_report_has_the_noise_of_hidden_nodes_too():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.exponential(size=100) ** 2
    net = ICPNetworkRegressor(n_chains=2, n_warmup=100, n_draws=10, random_state=0).fit(X, y)
    _, std = net.predict(X, return_std=True)
    # What predictions leave of the target, without what draws differ by.
    assert net._about_target()["noise"].mean() > 0.3 * np.mean(std**2) / y.var()
    own = np.mean([1.0 / draw["unit_precision"][0] for draw in net._prediction_draws()])
    assert net._about_target()["noise"].mean() > own
