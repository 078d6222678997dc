"""Sets of classes that are said to hold the label with a probability of 0.9, on simulated images.

Weights come from the prior of one architecture, labels from these weights; weights are then drawn
given 100 labels by stochastic-gradient HMC at temperature 1, which is exact but for the length of
its steps. A set takes the classes in the order of their probabilities, the last of them by a coin,
so that it holds exactly 0.9 in its own eyes. It must hold 0.87 to 0.93 of 100 new labels, as all
intervals of the library must; the error of the mean over 30 data sets is about 0.005.
"""

import numpy as np

from checks.convolution import random_images, small_prior
from checks.proofs import proof, record
from skbnp.icp_network.convolution._ensemble import make_weights
from skbnp.icp_network.convolution._images import LabelledImages, log_probabilities

PRIOR = small_prior(
    (4, 4, 1), 3, n_bins=2, n_channels=2, weight_variance=4.0, readout_variance=10.0
)
GRAPH = {
    "order": np.array([0.0, 1.0, 0.4, 0.8]),
    "edges": np.array([[1, 3], [3, 2], [1, 2], [2, 0], [1, 0]]),
}
N, N_NEW, N_DRAWS = 100, 100, 60
SETTINGS = dict(
    n_point_steps=0, point_rate=0.01, steps_per_draw=40, batch_size=100, step_length=0.02,
    friction=0.05,
)  # fmt: skip


def from_prior(rng):
    layout = PRIOR.layout(**GRAPH)
    z = rng.standard_normal(layout.n_weights)
    return GRAPH | {"weights": (z * layout.deviations).astype(np.float32)}


def coverage(seed, n_averaged):
    """Share of new labels that their sets hold."""
    rng = np.random.default_rng(seed)
    images = random_images(rng, PRIOR, N + N_NEW)[1]
    logits = log_probabilities(from_prior(rng), PRIOR, images)
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1).astype(np.intp)
    data = LabelledImages(images[:N], labels[:N], np.arange(N), np.arange(0))
    settings = SETTINGS | {"temperature": 1.0}
    seed_of_weights = int(rng.integers(2**31))
    chain = make_weights(seed_of_weights, from_prior(rng), PRIOR, data, settings)
    draws, _ = chain.run(N_DRAWS // 3, N_DRAWS)
    draws = draws[-n_averaged:]
    p = np.mean([np.exp(log_probabilities(draw, PRIOR, images[N:])) for draw in draws], axis=0)
    order = np.argsort(-p, axis=1)
    sorted_p = np.take_along_axis(p, order, axis=1)
    before = np.cumsum(sorted_p, axis=1) - sorted_p
    # With which probability each class is in the set.
    share = np.clip((0.9 - before) / sorted_p, 0.0, 1.0)
    place = np.argmax(order == labels[N:, np.newaxis], axis=1)
    return share[np.arange(N_NEW), place].mean()


def mean_coverage(size, seed, n_averaged):
    found = np.array([coverage((seed, t), n_averaged) for t in range(size)])
    record((found.mean() - 0.9) / (found.std(ddof=1) / np.sqrt(size)))
    return found.mean()


@proof(sets=(30, 200), seed=4)
def test_sets_hold_what_they_say(size, seed):
    assert 0.87 < mean_coverage(size, seed, N_DRAWS) < 0.93


@proof(sets=(30, 200), seed=5, wrong=True)
def test_sets_of_a_single_draw_hold_less(size, seed):
    assert mean_coverage(size, seed, 1) < 0.87
