"""Architectures and weights of convolutional networks by a chain whose law is the posterior.

`ExactChain` proposes what the search of `ICPConvClassifier` proposes, and moves weights by the
gradients of its kernel; it is what that search approximates. Null: one proposal leaves the joint
law of architecture, weights and labels as it is; and the frequencies of architectures are those of
the posterior. |z| < 4 each, false alarm 6e-5 each.
"""

import numpy as np
import pytest

from checks.convolution import random_images, small_prior
from checks.convolution_exact import ExactChain, statistics
from checks.joint_distribution import assert_z_scores_small, paired_one_step
from checks.monte_carlo import mcse_mean, z_score
from checks.proofs import proof
from skbnp.icp_network.convolution._model import log_graph

ALONE = {
    "all": (),
    "toggles": ("toggles",),
    "births": ("births", "deaths"),
    "splits": ("splits", "merges"),
}
# Faults, and the length of steps between rungs that shows each.
WRONG = {"a rung": 0.3, "gates": 0.3, "choices": 0.3, "no rejections": 2.0}
PRIOR = small_prior(
    (4, 4, 1), 2, n_bins=2, n_channels=1, mass=1.0, concentration=1.0, observed_popularity=1.0,
    max_units=6, weight_variance=4.0, readout_variance=10.0,
)  # fmt: skip
IMAGES = random_images(np.random.default_rng(0), PRIOR, 6)[1]
# What a move alone does not change.
CONSTANT = {"toggles": ("hidden", "below a half", "orders")}


def paired(size, seed, constant=(), **options):
    def make(rng):
        return ExactChain(PRIOR, IMAGES, None, rng, **options)

    def changing(chain):
        return {k: x for k, x in statistics(chain).items() if k not in constant}

    return paired_one_step(make, changing, size, seed=seed)


@proof(pairs=(1000, 20_000), seed=1, smoke="all-4")
@pytest.mark.parametrize("n_rungs", [1, 4, 8])
@pytest.mark.parametrize("moves", ALONE)
def test_annealed_jumps_keep_the_joint_law(moves, n_rungs, size, seed):
    z = paired(size, seed, CONSTANT.get(moves, ()), kinds=ALONE[moves], n_rungs=n_rungs)
    assert_z_scores_small(z)


@proof(pairs=(4000, 20_000), seed=2, wrong=True)
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_jumps_are_noticed(wrong, size, seed):
    z = paired(size, seed, wrong=wrong, step=WRONG[wrong])
    assert max(map(abs, z.values())) > 5, z


# -- all architectures of one hidden node -------------------------------------------------------

ONE = small_prior(
    (1, 1, 1), 2, n_bins=1, n_channels=1, mass=1.0, concentration=1.0, observed_popularity=1.0,
    max_units=1, weight_variance=16.0, readout_variance=10.0,
)  # fmt: skip
PIXELS = np.linspace(-1.5, 1.5, 8)
LABELS = np.array([0, 1, 1, 1, 0, 0, 0, 0])
# By edges into the output, from a node that sees the image or not: nodes are 0 the output, 1 the
# image, 2 the hidden one.
GRAPHS = {
    "nothing": [],
    "image": [(1, 0)],
    "dead": [(2, 0)],
    "image, dead": [(1, 0), (2, 0)],
    "node": [(1, 2), (2, 0)],
    "image, node": [(1, 0), (1, 2), (2, 0)],
}
N_PRIOR_DRAWS = 4_000_000


def likelihoods(edges, rng, n):
    """Of the labels, under weights from the prior."""
    shift = rng.normal(scale=np.sqrt(2.0), size=n)
    straight, bent = rng.normal(scale=np.sqrt(2.0 * ONE.readout_variance), size=(2, n))
    slope = rng.normal(scale=np.sqrt(ONE.weight_variance / 9), size=n)
    bias = rng.normal(size=n)
    total = np.zeros(n)
    for x, label in zip(PIXELS, LABELS, strict=True):
        logit = shift.copy()
        if (1, 0) in edges:
            logit += straight * x
        if (1, 2) in edges:
            logit += bent * np.maximum(bias + slope * x, 0.0)
        elif (2, 0) in edges:
            # A dead node says nothing.
            pass
        total -= np.logaddexp(0.0, -logit if label else logit)
    return np.exp(total)


def exact_probabilities():
    """Of each of `GRAPHS`, and their relative standard errors."""
    theta = (np.arange(2000) + 0.5) / 2000
    weight, error = {}, {}
    for t, (name, edges) in enumerate(GRAPHS.items()):
        found = likelihoods(edges, np.random.default_rng(t), N_PRIOR_DRAWS)
        hidden = [[]] if name in ("nothing", "image") else theta[::20, np.newaxis]
        prior = np.mean(
            [
                np.exp(log_graph(
                    {"order": np.array([0.0, 1.0, *order]),
                     "edges": np.array(edges, dtype=int).reshape(-1, 2)}, ONE
                ))
                for order in hidden
            ]
        )  # fmt: skip
        weight[name] = prior * found.mean()
        error[name] = found.std() / found.mean() / np.sqrt(len(found))
    total = sum(weight.values())
    return {name: w / total for name, w in weight.items()}, max(error.values())


@proof(sweeps=(6000, 60_000), seed=3)
@pytest.mark.parametrize("n_rungs", [1, 8])
def test_frequencies_of_architectures_are_their_probabilities(n_rungs, size, seed):
    expected, error = exact_probabilities()
    assert min(expected.values()) > 0.01
    chain = ExactChain(
        ONE, PIXELS.astype(np.float32)[:, np.newaxis], LABELS.astype(np.intp),
        np.random.default_rng(seed), n_rungs=n_rungs,
    )  # fmt: skip
    seen = []
    accepted = 0
    for _ in range(size):
        chain.sweep()
        accepted += chain.sweep_weights()
        pairs = {tuple(edge) for edge in chain.tensors.edges.tolist()}
        seen.append(next(name for name, edges in GRAPHS.items() if set(edges) == pairs))
    assert accepted > 0.5 * size and (chain.accepted[:3] > 50).all()
    seen = {name: np.array(seen) == name for name in GRAPHS}
    # Errors of what is expected are far below those of the chain.
    assert all(error * p < mcse_mean(seen[name]) / 3 for name, p in expected.items())
    z = {name: z_score(seen[name], p) for name, p in expected.items()}
    assert_z_scores_small(z)
