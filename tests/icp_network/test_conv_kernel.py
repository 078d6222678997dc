"""The compiled convolutional network against NumPy in double precision."""

import numpy as np
import pytest

from checks.convolution import gradient, random_images, random_network, small_prior
from skbnp.icp_network.convolution._model import forward, log_joint, log_likelihood, network_of
from skbnp.numerics.linalg_single import product

SHAPES = [(8, 8, 1), (1, 1, 1), (3, 2, 1), (9, 5, 3), (28, 28, 1), (13, 4, 2), (1, 7, 1)]


def cases(seed):
    """Random networks of all shapes, with pooled edges and pooled readouts, and images."""
    rng = np.random.default_rng(seed)
    for t in range(50):
        prior = small_prior(SHAPES[t % len(SHAPES)], readout=(14, 4)[t % 2])
        state = random_network(rng, prior, int(rng.integers(5)))
        yield prior, state, random_images(rng, prior, int(rng.integers(1, 70)))


def test_products():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 3)).astype(np.float32), rng.normal(size=(3, 4)).astype(np.float32)
    np.testing.assert_allclose(product(a, b), a @ b, rtol=1e-6)
    np.testing.assert_allclose(product(a.T.copy(), b, trans_a=True), a @ b, rtol=1e-6)
    np.testing.assert_allclose(product(a, b.T.copy(), trans_b=True), a @ b, rtol=1e-6)


def test_forward_and_gradient_of_random_networks():
    sizes = set()
    for prior, state, (images, flat, labels) in cases(0):
        network, weights = network_of(state, prior)
        maps, logits = forward(state, images, prior)
        scale = np.abs(logits).max() + 1e-9
        np.testing.assert_allclose(network.logits(flat, weights), logits, atol=1e-5 * scale)
        for found, wanted in zip(network.maps(flat, weights), maps, strict=True):
            wanted = wanted.transpose(0, 2, 3, 1)
            np.testing.assert_allclose(found, wanted, atol=1e-5 * (np.abs(wanted).max() + 1e-9))
        total, slope = network.gradient(flat, labels, weights)
        assert total == pytest.approx(log_likelihood(state, images, labels, prior), rel=1e-5)
        wanted = gradient(state, images, labels, prior)
        np.testing.assert_allclose(slope, wanted, atol=1e-5 * np.abs(wanted).max())
        sizes.add(network.n_nodes)
    assert sizes >= {1, 2, 3, 4}


def test_the_gradient_is_that_of_differences():
    rng, step = np.random.default_rng(1), 1e-6
    for prior, state, (images, _, labels) in list(cases(1))[:14]:
        state = state | {"weights": state["weights"].astype(np.float64)}
        along = rng.standard_normal(len(state["weights"]))
        ends = [
            log_likelihood(state | {"weights": state["weights"] + h * along}, images, labels, prior)
            for h in (step, -step)
        ]
        slope = gradient(state, images, labels, prior) @ along
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope, rel=1e-4, abs=1e-4)


def test_rows_do_not_depend_on_their_chunk():
    """The last chunk is smaller; an image says the same wherever it stands, but for rounding."""
    rng = np.random.default_rng(2)
    prior = small_prior()
    state = random_network(rng, prior, 3)
    _, flat, labels = random_images(rng, prior, 2 * 32 + 5)
    network, weights = network_of(state, prior)
    whole = network.logits(flat, weights)
    for n in (1, 2, 31, 32, 33, 64, 69):
        np.testing.assert_allclose(network.logits(flat[:n], weights), whole[:n], rtol=1e-4)
        assert network.logits(flat[:n], weights).tobytes() == (
            network.logits(flat[:n], weights).tobytes()
        )
    alone = sum(network.gradient(flat[i : i + 1], labels[i : i + 1], weights)[0] for i in range(69))
    assert network.gradient(flat, labels, weights)[0] == pytest.approx(alone, rel=1e-5)


def test_the_same_bits_whatever_was_computed_before():
    rng = np.random.default_rng(3)
    prior = small_prior((9, 5, 3))
    state = random_network(rng, prior, 4)
    _, flat, labels = random_images(rng, prior, 50)
    network, weights = network_of(state, prior)
    total, slope = network.gradient(flat, labels, weights)
    network.gradient(10 * flat[::-1].copy(), labels, -weights)
    again, other = network.gradient(flat, labels, weights)
    assert again == total and slope.tobytes() == other.tobytes()


def test_without_images():
    prior = small_prior()
    network, weights = network_of(random_network(np.random.default_rng(0), prior, 2), prior)
    none = np.empty((0, 64), dtype=np.float32)
    assert network.logits(none, weights).shape == (0, 3)
    total, slope = network.gradient(none, np.empty(0, dtype=np.intp), weights)
    assert total == 0.0 and not slope.any()


@pytest.mark.parametrize("wrong", ["pixels", "weights", "labels", "classes"])
def test_what_does_not_fit_is_refused(wrong):
    rng = np.random.default_rng(0)
    prior = small_prior()
    network, weights = network_of(random_network(rng, prior, 2), prior)
    _, flat, labels = random_images(rng, prior, 4)
    if wrong == "pixels":
        flat = flat[:, :-1].copy()
    elif wrong == "weights":
        weights = weights[:-1].copy()
    elif wrong == "labels":
        labels = labels[:-1].copy()
    else:
        labels = labels + 3
    with pytest.raises(ValueError, match="must have"):
        network.gradient(flat, labels, weights)


def test_joint_density_by_loops():
    rng = np.random.default_rng(5)
    prior = small_prior((3, 2, 1))
    state = random_network(rng, prior, 3)
    images, _, labels = random_images(rng, prior, 4)
    terms = log_joint(state, images, labels, prior, terms=True)
    layout = prior.layout(state["order"], state["edges"])
    total = 0.0
    for weight, deviation in zip(state["weights"], layout.deviations, strict=True):
        total -= 0.5 * np.log(2 * np.pi * deviation**2) + 0.5 * float(weight) ** 2 / deviation**2
    assert terms["weights"] == pytest.approx(total)
    assert log_joint(state, images, labels, prior) == pytest.approx(sum(terms.values()))
    _, logits = forward(state, images, prior)
    pairs = zip(logits, labels, strict=True)
    total = sum(row[label] - np.log(np.sum(np.exp(row))) for row, label in pairs)
    assert terms["labels"] == pytest.approx(total)
