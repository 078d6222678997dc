"""Proposals to change the graph of a convolutional network, without any likelihood."""

import numpy as np
import pytest

from checks.convolution import small_prior
from checks.monte_carlo import z_score
from skbnp.icp_network.convolution._model import draw_graph, log_graph
from skbnp.icp_network.convolution._structure import KINDS, Structure
from skbnp.processes import icp

PRIORS = [(1.0, 1.0, 1.0), (2.0, 0.7, 2.0)]


def structure(hyper=PRIORS[1], seed=0, **options):
    mass, concentration, popularity = hyper
    prior = small_prior(
        mass=mass, concentration=concentration, observed_popularity=popularity, **options
    )
    rng = np.random.default_rng(seed)
    return prior, Structure(prior, draw_graph(prior, rng), rng.bit_generator), rng


def state_of(chain):
    order, edges, _ = chain.arrays()
    return {"order": order, "edges": edges}


def put_back(chain, state, names):
    chain.put(state["order"], state["edges"], chain.hyper(), names)


def test_the_density_is_that_of_the_process():
    for seed in range(20):
        prior, chain, _ = structure(seed=seed)
        assert chain.log_density() == pytest.approx(log_graph(state_of(chain), prior), abs=1e-9)


@pytest.mark.parametrize("hyper", [pytest.param(PRIORS[0], marks=pytest.mark.slow), PRIORS[1]])
def test_without_likelihood_chains_sample_the_process(hyper):
    """Accepted by their log ratio alone; expected numbers are those in closed form."""
    prior, chain, rng = structure(hyper, seed=1)
    n_hidden, n_edges, accepted = [], [], np.zeros(len(KINDS))
    for _ in range(25_000):
        state, names = state_of(chain), chain.arrays()[2]
        kind, ratio = chain.propose()
        if np.log1p(-rng.random()) < ratio:
            accepted[kind] += 1
        else:
            put_back(chain, state, names)
        order, edges, _ = chain.arrays()
        n_hidden.append(len(order) - 2)
        n_edges.append(len(edges))
    chain.graph.check_invariant()
    assert (accepted > 50).all()
    options = dict(mass=hyper[0], concentration=hyper[1], max_hidden=prior.max_units)
    hidden = icp.expected_hidden([0.0, 1.0], **options)
    edges = sum(icp.expected_edges([0.0, 1.0], observed_popularity=hyper[2], **options))
    assert abs(z_score(n_hidden, hidden)) < 4
    assert abs(z_score(n_edges, edges)) < 4


@pytest.mark.parametrize("kind", ["births", "splits"])
def test_ratios_there_and_back_cancel(kind):
    """A node that came is taken away by the move that undoes it: minus the same log ratio."""
    there, back = [], []
    for seed in range(60):
        _, chain, _ = structure(seed=seed)
        before = state_of(chain)
        ratio = chain.propose_only(KINDS.index(kind))
        if ratio == -np.inf:
            continue
        name = int(chain.arrays()[2].max())
        there.append(ratio)
        back.append(chain.remove(name) if kind == "births" else chain.merge(name))
        after = state_of(chain)
        for field, value in before.items():
            np.testing.assert_array_equal(after[field], value)
    assert len(there) > 30
    np.testing.assert_allclose(there, -np.array(back), atol=1e-9)


def test_a_toggle_is_undone_by_a_toggle():
    for seed in range(40):
        _, chain, _ = structure(seed=seed)
        before = chain.log_density()
        ratio = chain.propose_only(KINDS.index("toggles"))
        if ratio > -np.inf:
            assert ratio == pytest.approx(chain.log_density() - before, abs=1e-9)


def test_names_last_as_long_as_nodes():
    _, chain, rng = structure(seed=3)
    order_of = {}
    for _ in range(500):
        state, names = state_of(chain), chain.arrays()[2]
        kind, ratio = chain.propose()
        if np.log1p(-rng.random()) >= ratio:
            put_back(chain, state, names)
        order, _, names = chain.arrays()
        assert len(np.unique(names)) == len(names) and names[:2].tolist() == [0, 1]
        for name, theta in zip(names.tolist(), order.tolist(), strict=True):
            if KINDS[kind] != "orders":
                assert order_of.get(name, theta) == theta
            order_of[name] = theta


def test_no_more_nodes_than_max_units():
    _, chain, rng = structure(max_units=2, seed=4)
    for _ in range(2000):
        state, names = state_of(chain), chain.arrays()[2]
        _, ratio = chain.propose()
        if np.log1p(-rng.random()) >= ratio:
            put_back(chain, state, names)
        assert chain.graph.n_hidden <= 2


def test_nothing_depends_on_slots():
    """A graph that is put in anew stands in other slots; what is proposed is the same."""
    _, chain, _ = structure(seed=5)
    _, other, _ = structure(seed=5)
    for _ in range(300):
        state, names = state_of(other), other.arrays()[2]
        put_back(other, state, np.arange(len(names)))
        assert chain.propose() == other.propose()
        for one, two in zip(chain.arrays()[:2], other.arrays()[:2], strict=True):
            np.testing.assert_array_equal(one, two)
