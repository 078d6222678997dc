"""The search over architectures, and draws of weights."""

from itertools import count

import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov

from checks.convolution import gradient, random_images, random_network, small_prior
from checks.monte_carlo import z_score
from skbnp.icp_network.convolution._ensemble import MOST_HALVINGS, Weights, make_weights
from skbnp.icp_network.convolution._evidence import KeptLabels, LearntLabels
from skbnp.icp_network.convolution._folds import N_FOLDS, Folds
from skbnp.icp_network.convolution._images import (
    LabelledImages,
    channels_first,
    folds_of,
    kept_apart,
    shared_out,
)
from skbnp.icp_network.convolution._model import draw_graph, log_joint, log_likelihood
from skbnp.icp_network.convolution._sampler import (
    Architecture,
    Sampler,
    Search,
    make_sampler,
    start_graph,
)
from skbnp.icp_network.convolution._training import Training
from skbnp.processes import icp

SEARCH = dict(n_start_steps=5, n_steps=2, batch_size=10, learning_rate=0.02)
WEIGHTS = dict(
    n_point_steps=200,
    point_rate=0.01,
    steps_per_draw=10,
    batch_size=10,
    step_length=0.02,
    friction=0.05,
    temperature=1.0,
)


def data_of(prior, n=24, seed=0, keep=True):
    """Images whose labels say which of them is the brightest."""
    rng = np.random.default_rng(seed)
    images, flat, labels = random_images(rng, prior, n)
    flat += labels[:, np.newaxis].astype(np.float32)
    kept = kept_apart(labels, rng) if keep else np.arange(0)
    return LabelledImages(flat, labels, np.setdiff1d(np.arange(n), kept), kept)


def chain_of(prior, data, seed=0, inits=("chain",), rule=KeptLabels, **settings):
    bits = np.random.default_rng(seed).bit_generator
    options = SEARCH | settings
    return make_sampler(bits, 0, data=data, prior=prior, inits=inits, rule=rule, settings=options)


# -- gradients and steps ------------------------------------------------------------------------


def test_the_slope_is_that_of_the_log_posterior():
    """Of a whole batch: the gradient in z of log likelihood and prior."""
    rng = np.random.default_rng(0)
    prior = small_prior((5, 4, 1))
    state = random_network(rng, prior, 3)
    images, flat, labels = random_images(rng, prior, 20)
    layout = prior.layout(state["order"], state["edges"])
    z = state["weights"] / layout.deviations
    rows = np.arange(20)
    training = Training(layout, flat, labels, rows, z, np.random.default_rng(0).bit_generator)
    wanted = layout.deviations * gradient(state, images, labels, prior) - z
    np.testing.assert_allclose(training.slope(20), wanted, atol=2e-5 * np.abs(wanted).max())


def test_slopes_of_batches_average_to_that_of_all():
    """Batches go through all rows, each of them once."""
    rng = np.random.default_rng(1)
    prior = small_prior((5, 4, 1))
    state = random_network(rng, prior, 3)
    _, flat, labels = random_images(rng, prior, 20)
    layout = prior.layout(state["order"], state["edges"])
    z = state["weights"] / layout.deviations
    of_all, of_parts = (
        Training(layout, flat, labels, np.arange(20), z, np.random.default_rng(0).bit_generator)
        for _ in range(2)
    )
    mean = np.mean([of_parts.slope(5).astype(float) for _ in range(4)], axis=0)
    whole = of_all.slope(20)
    np.testing.assert_allclose(mean, whole, atol=1e-4 * np.abs(whole).max())


def test_adam_climbs():
    prior = small_prior()
    data = data_of(prior, 60)
    rng = np.random.default_rng(2)
    layout = prior.layout(**start_graph("chain", prior, rng))
    training = Training(
        layout, data.images, data.labels, data.learnt, rng.standard_normal(layout.n_weights),
        rng.bit_generator,
    )  # fmt: skip
    before = training.log_likelihood(data.learnt)
    training.climb(200, 20, 0.02)
    assert training.log_likelihood(data.learnt) > before + 20


@pytest.mark.parametrize("temperature", [1.0, 0.25])
def test_without_images_draws_are_those_of_the_tempered_prior(temperature):
    """z ~ N(0, temperature), but for errors of the order of the step."""
    prior = small_prior((2, 2, 1), n_classes=2)
    rng = np.random.default_rng(3)
    layout = prior.layout(**start_graph("chain", prior, rng))
    none = np.empty((0, 4), dtype=np.float32), np.empty(0, dtype=np.intp), np.empty(0, np.intp)
    training = Training(layout, *none, np.zeros(layout.n_weights), rng.bit_generator)
    training.wander(2000, 10, 0.05, 0.05, temperature)
    squares = []
    for _ in range(400):
        training.wander(100, 10, 0.05, 0.05, temperature)
        squares.append(np.mean(np.asarray(training.z) ** 2))
    # Momentum and place are a linear recursion, whose variance is known.
    a, e = 0.05, 0.05
    step = np.array([[1 - a, -e], [e * (1 - a), 1 - e * e]])
    noise = 2 * a * temperature * np.outer([1.0, e], [1.0, e])
    exact = solve_discrete_lyapunov(step, noise)[1, 1]
    assert exact == pytest.approx(temperature, rel=0.03)
    assert abs(z_score(squares, exact)) < 4


# -- the search ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [KeptLabels, LearntLabels])
def test_the_joint_density_is_that_of_the_model(rule):
    prior = small_prior((4, 4, 1))
    data = data_of(prior, keep=rule is KeptLabels)
    chain = chain_of(prior, data, rule=rule)
    for _ in range(10):
        chain.sweep()
        images = data.images.reshape(-1, 1, 4, 4)
        wanted = log_joint(chain.draw(), images, data.labels, prior)
        assert chain.log_joint() == pytest.approx(wanted, rel=1e-5, abs=1e-3)
        kept = log_likelihood(chain.draw(), images[data.kept], data.labels[data.kept], prior)
        assert chain.scalars()["log_kept"] == pytest.approx(kept, rel=1e-4, abs=1e-3)


def test_without_labels_to_judge_by_the_search_samples_the_process():
    prior = small_prior((2, 2, 1), n_classes=2, mass=1.0, observed_popularity=1.0)
    data = data_of(prior, 6, keep=False)
    chain = chain_of(prior, data, seed=1, inits=("prior",), n_start_steps=0, n_steps=0)
    n_hidden = []
    for _ in range(6000):
        chain.sweep()
        n_hidden.append(len(chain.state.order) - 2)
    exact = icp.expected_hidden([0.0, 1.0], mass=1.0, concentration=1.0, max_hidden=40)
    assert abs(z_score(n_hidden, exact)) < 4


def test_labels_that_are_kept_apart_reach_no_gradient():
    """Other labels there change the evidence alone."""
    prior = small_prior((4, 4, 1))
    data = data_of(prior, 40)
    poisoned = data.labels.copy()
    poisoned[data.kept] = (poisoned[data.kept] + 1) % 3
    other = LabelledImages(data.images, poisoned, data.learnt, data.kept)
    rng = np.random.default_rng(4)
    graph = draw_graph(prior, rng)
    found = []
    for one in (data, other):
        bits = np.random.default_rng(0).bit_generator
        state = Architecture(one, prior, graph, bits)
        chain = Sampler(state, KeptLabels, SEARCH, bits)
        z = chain.move("search")._fitted(state.layout, state.z, 20)
        found.append(z)
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1][0] == found[1][1][0] and found[0][1][1] != found[1][1][1]


def test_tensors_that_stay_keep_their_weights():
    prior = small_prior((4, 4, 1))
    chain = chain_of(prior, data_of(prior), n_steps=0, inits=("prior",))
    chain.sweep()
    for _ in range(200):
        state = chain.state
        before = state.keys(state.layout, state.names), state.z
        chain.sweep()
        after = state.keys(state.layout, state.names)
        for key in before[0].keys() & after.keys():
            np.testing.assert_array_equal(state.z[after[key]], before[1][before[0][key]])


@pytest.fixture
def overfitting(monkeypatch):
    """Training that makes labels learnt the likelier, and those kept apart the less so."""
    times = count()

    def fitted(self, layout, z, n_steps):
        likelihood = 1e4 * next(times)
        return z, (likelihood, -likelihood)

    monkeypatch.setattr(Search, "_fitted", fitted)


@pytest.mark.parametrize("rule", [KeptLabels, LearntLabels])
def test_the_rule_decides(overfitting, rule):
    prior = small_prior((4, 4, 1))
    chain = chain_of(prior, data_of(prior), rule=rule)
    for _ in range(50):
        chain.sweep()
    if rule is KeptLabels:
        assert chain.state.learnt == chain.state.kept == 0.0
    else:
        assert chain.state.learnt == -chain.state.kept > 1e5


@pytest.mark.parametrize("rule", [KeptLabels, LearntLabels])
def test_the_papers_rule_trains_from_the_prior_on(overfitting, rule):
    """Where a live edge changes; the other leaves tensors that stay as they are."""
    prior = small_prior((4, 4, 1))
    chain = chain_of(prior, data_of(prior), rule=rule)
    chain.sweep()
    state, n_changed = chain.state, 0
    for _ in range(100):
        # Any proposal is likelier than this.
        state.learnt = state.kept = -1e9
        before, old = state.keys(state.layout, state.names), state.z
        chain.sweep()
        after = state.keys(state.layout, state.names)
        is_new = before.keys() != after.keys()
        n_changed += is_new
        for key in before.keys() & after.keys():
            stays = np.array_equal(state.z[after[key]], old[before[key]])
            assert stays is not (is_new and rule is LearntLabels)
    assert n_changed > 20


@pytest.mark.parametrize("rule", [KeptLabels, LearntLabels])
def test_a_chain_that_is_put_back_goes_on_alike(rule):
    prior = small_prior((4, 4, 1))
    data = data_of(prior)
    one = chain_of(prior, data, rule=rule)
    other = chain_of(prior, data, seed=9, inits=("prior",), rule=rule)
    for _ in range(20):
        one.sweep()
    other.set_state(one.get_state())
    for _ in range(20):
        one.sweep()
        other.sweep()
        assert one.log_joint() == other.log_joint()
    for name, value in one.draw().items():
        np.testing.assert_array_equal(other.draw()[name], value)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: {"order": s["order"][::-1].copy()},
        lambda s: {"edges": s["edges"][:, ::-1].copy()},
        lambda s: {"edges": s["edges"] + 50},
        lambda s: {"z": s["z"][:-1]},
        lambda s: {"z": np.full_like(s["z"], np.nan)},
        lambda s: {"is_trained": 3},
    ],
)
def test_states_that_cannot_be_are_refused(change):
    prior = small_prior((4, 4, 1))
    chain = chain_of(prior, data_of(prior))
    chain.sweep()
    state = chain.get_state()
    with pytest.raises(ValueError, match=r"state|order|edges"):
        chain.set_state(state | change(state))
    chain.sweep()


@pytest.mark.parametrize("n_bins", [1, 2, 4])
@pytest.mark.parametrize("max_units", [0, 1, 40])
def test_starts(n_bins, max_units):
    prior = small_prior((16, 16, 1), n_bins=n_bins, max_units=max_units)
    graph = start_graph("chain", prior, None)
    layout = prior.layout(**graph)
    assert layout.n_live == min(2, max_units)
    bins = [prior.bin_of(theta) for theta in graph["order"][2:]]
    assert bins == ([min(1, n_bins - 1), 0] if max_units > 1 else [0] * max_units)
    empty = start_graph("empty", prior, None)
    assert prior.layout(**empty).n_live_edges == 1


def test_kept_rows_are_a_quarter_of_each_class():
    labels = np.repeat([0, 1, 2], [40, 20, 8])
    kept = kept_apart(labels, np.random.default_rng(0))
    assert np.bincount(labels[kept]).tolist() == [10, 5, 2]
    labels = np.arange(10)
    assert len(kept_apart(labels, np.random.default_rng(0))) == 0
    labels = np.repeat(np.arange(10), 2)
    assert len(kept_apart(labels, np.random.default_rng(0))) == 5


def test_channels_come_first():
    X = np.arange(2 * 3 * 4 * 2, dtype=float).reshape(2, 3, 4, 2)
    found = channels_first(X.reshape(2, -1), (3, 4, 2)).reshape(2, 2, 3, 4)
    np.testing.assert_array_equal(found, X.transpose(0, 3, 1, 2))


# -- weights ------------------------------------------------------------------------------------


def weights_of(prior, data, **settings):
    rng = np.random.default_rng(0)
    draw = random_network(rng, prior, 2)
    return make_weights(1, draw, prior, data, WEIGHTS | settings)


def test_draws_of_weights_are_of_one_network_and_differ():
    prior = small_prior((4, 4, 1))
    data = data_of(prior)
    chain = weights_of(prior, data)
    draws, traces = chain.run(2, 5)
    assert len(draws) == 5 and {len(x) for x in traces.values()} == {5}
    assert len({draw["weights"].tobytes() for draw in draws}) == 5
    images = data.images.reshape(-1, 1, 4, 4)
    fit = log_likelihood(draws[-1], images, data.labels, prior)
    assert traces["log_labels"][-1] == pytest.approx(fit, rel=1e-4, abs=1e-3)


def test_steps_that_are_too_long_are_halved_and_then_given_up():
    prior = small_prior((4, 4, 1))
    chain = weights_of(prior, data_of(prior, 200), step_length=1.0, temperature=100.0)
    draws, traces = chain.run(0, 6)
    assert traces["n_halvings"][-1] == MOST_HALVINGS + 1
    assert isinstance(chain.state, Weights)
    np.testing.assert_array_equal(chain.state.z, chain.state.point)
    assert all(np.isfinite(draw["weights"]).all() for draw in draws)


def test_networks_whose_nodes_have_died_are_put_back():
    """What they say is not far less likely than by frequencies, but it is the same everywhere."""
    prior = small_prior((4, 4, 1))
    graph = {"order": np.array([0.0, 1.0, 0.9]), "edges": np.array([[1, 2], [2, 0]])}
    layout = prior.layout(**graph)
    state = make_weights(
        1, graph | {"weights": np.zeros(layout.n_weights)}, prior, data_of(prior, 40), WEIGHTS
    ).state
    assert layout.tensors[0][0] == ("bias", 2) and not state.is_lost()
    state.z[:2] = -10.0
    state.fit = 1.2 * state.fit_of_frequencies
    assert state.is_lost()
    state.z[:2] = 10.0
    state.z[2:] = np.random.default_rng(0).normal(size=len(state.z) - 2)
    assert not state.is_lost()
    state.fit = 4.0 * state.fit_of_frequencies
    assert state.is_lost()


def test_steps_are_shorter_for_many_images():
    prior = small_prior((4, 4, 1))
    scales = [weights_of(prior, data_of(prior, n)).state.step_scale for n in (24, 500, 2000)]
    assert scales == [1.0, 1.0, 0.5]


def test_chains_share_the_draws_evenly():
    assert shared_out(8, [300, 300]) == [4, 4]
    assert shared_out(8, [5, 2, 300]) == [3, 2, 3]
    assert shared_out(2, [4, 4, 4]) == [1, 1, 0]
    assert shared_out(3, [1, 1, 1]) == [1, 1, 1]


# -- folds --------------------------------------------------------------------------------------


def folds_and_networks(n_networks=2):
    prior = small_prior((4, 4, 1))
    data = data_of(prior, 60, keep=False)
    rng = np.random.default_rng(0)
    networks = [random_network(rng, prior, 2) for _ in range(n_networks)]
    return Folds(data, prior, networks, np.random.default_rng(1)), data, prior, networks


def left_out(folds, t):
    options = WEIGHTS | {"n_point_steps": 20, "temperature": 0.3}
    return folds.left_out(t, np.random.SeedSequence(t), options, 1, 3)


def test_folds_have_as_many_rows_of_each_class():
    labels = np.repeat([0, 1, 2, 3], [41, 22, 8, 1])
    fold = folds_of(labels, 4, np.random.default_rng(0))
    assert np.ptp(np.bincount(fold, minlength=4)) <= 1
    for label in range(4):
        assert np.ptp(np.bincount(fold[labels == label], minlength=4)) <= 1
    assert not np.array_equal(fold, folds_of(labels, 4, np.random.default_rng(1)))


def test_labels_of_a_fold_reach_none_of_its_weights():
    """Other labels there change nothing; those of another row do."""
    folds, data, prior, networks = folds_and_networks()
    rows, probability = left_out(folds, 1)
    for others, changes in ((rows, False), (np.setdiff1d(np.arange(60), rows)[:1], True)):
        labels = data.labels.copy()
        labels[others] = (labels[others] + 1) % 3
        poisoned = LabelledImages(data.images, labels, data.learnt, data.kept)
        again = Folds(poisoned, prior, networks, np.random.default_rng(1))
        again._fold = folds._fold
        found = left_out(again, 1)
        np.testing.assert_array_equal(found[0], rows)
        assert np.array_equal(found[1], probability) is not changes


def test_weights_without_a_fold_start_from_the_prior():
    """Those of the search have seen its labels."""
    folds, data, prior, networks = folds_and_networks()
    moved = [network | {"weights": network["weights"] + 1} for network in networks]
    other = Folds(data, prior, moved, np.random.default_rng(1))
    np.testing.assert_array_equal(left_out(folds, 0)[1], left_out(other, 0)[1])


@pytest.mark.parametrize("n_networks", [1, 3, 6])
def test_each_row_is_left_out(n_networks):
    folds, data, _, _ = folds_and_networks(n_networks)
    assert folds.n_chains == max(n_networks, N_FOLDS)
    found = [left_out(folds, t) for t in range(folds.n_chains)]
    assert set(np.concatenate([rows for rows, _ in found])) == set(range(60))
    for rows, probability in found:
        assert probability.shape == (len(rows), 3)
        np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert folds.power(found) >= 1.0


def test_the_power_is_that_which_the_labels_follow():
    """Labels of sharper probabilities than are said; rows that two chains leave out average."""
    prior = small_prior((1, 1, 1))
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=20_000)
    sharp = p**2 / np.sum(p**2, axis=1, keepdims=True)
    labels = (sharp.cumsum(axis=1) < rng.uniform(size=(len(p), 1))).sum(axis=1)
    data = LabelledImages(np.zeros((len(p), 1), np.float32), labels, np.arange(len(p)), None)
    folds = Folds(data, prior, [None], rng)
    rows, shift = np.arange(len(p)), 0.5 * p[:, [1, 2, 0]]
    found = [(rows[::-1], (p + shift)[::-1]), (rows, p - shift)]
    assert folds.power(found) == pytest.approx(2.0, abs=0.05)
