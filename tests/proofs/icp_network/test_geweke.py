"""Joint-distribution tests of the sweep that ``fit`` runs, then of each move alone.

Null: a sweep leaves p(state, X) alone. About twenty statistics per configuration, |z| < 4 on each:
false alarm 6e-5 each. Every named wrong formula must be seen.
"""

import numpy as np
import pytest

from checks.icp_network import FAULTS, joint_draw, prior, statistics
from checks.joint_distribution import (
    assert_z_scores_small,
    only,
    paired_one_step,
    successive_conditional,
)
from checks.proofs import proof
from skbnp.icp_network._sampler import Sampler
from skbnp.laws import Gamma, InverseGamma


def holes(n_samples, n_observed):
    return np.random.default_rng(5).random((n_samples, n_observed)) < 0.3


def given(mass, concentration, popularity=1.0):
    return dict(mass=mass, concentration=concentration, observed_popularity=popularity)


TWO, THREE = ("gaussian",) * 2, ("gaussian",) * 3
FREE = (None, None)
# Prior, number of rows, options. The defaults of the sampler are those of `fit`.
CONFIGURATIONS = {
    "default": (prior(), 3, {}),
    "holes": (prior(), 4, {"holes": holes(4, 2)}),
    "free orders": (prior(TWO, FREE), 3, {}),
    "free orders, holes": (prior(TWO, FREE), 4, {"holes": holes(4, 2)}),
    "mixed orders": (prior(THREE, (None, 0.4, 0.0)), 3, {}),
    "supervised": (prior(("gaussian", "input")), 3, {}),
    "two outputs, two inputs": (prior((*TWO, "input", "input")), 3, {}),
    "binary": (prior(("latent", "input", "input")), 4, {}),
    "three classes": (prior(("latent",) * 3 + ("input",)), 4, {}),
    "paper": (prior(), 3, {"moves": "paper"}),
    "paper, free orders, holes": (
        prior(TWO, FREE), 4, {"moves": "paper", "holes": holes(4, 2)},
    ),
    "paper, supervised": (prior(("gaussian", "input")), 3, {"moves": "paper"}),
    "paper, binary": (prior(("latent", "input")), 4, {"moves": "paper"}),
    "slice": (prior(), 3, {"activation_update": "slice"}),
    "mtm": (prior(), 3, {"activation_update": "mtm"}),
    "reshapes": (prior(), 3, {"n_affine": 3, "n_rotations": 3}),
    "few nodes": (prior(TWO, FREE, max_units=2, mass=Gamma(3.0, 1.5)), 3, {}),
    "settling": (prior(TWO, FREE), 3, {"n_settle": 1}),
    "dense": (prior(TWO, **given(3.0, 0.5)), 3, {}),
    "sparse": (prior(TWO, **given(1.5, 8.0)), 3, {}),
    "popular": (prior(THREE, (None, None, 0.0), **given(1.0, 1.0, 6.0)), 3, {}),
    "the estimator's laws": (
        prior(
            mass=Gamma(1.0, 1.0), concentration=InverseGamma(2.0, 2.0),
            observed_popularity=Gamma(1.0, 1.0), noise_precision=Gamma(1.0, 0.1), max_units=200,
        ),
        3,
        {"step": 0.05},
    ),
    "more rows than a block": (prior(**given(1.5, 1.0)), 150, {"step": 0.05}),
}  # fmt: skip


def configured(name):
    law, n_samples, options = CONFIGURATIONS[name]
    of = statistics(law)
    if "n_settle" in options:
        of = only(of, lambda statistic: statistic != "hidden")
    return joint_draw(law, n_samples, **options), of


MANY, SPARSE = "more rows than a block", "sparse"


@proof(pairs=(400, 40_000, 10_000), seed=(1, 2), smoke=("default", "supervised", "three classes"))
@pytest.mark.parametrize("name", [name for name in CONFIGURATIONS if name not in (MANY, SPARSE)])
def test_sweep_paired(name, size, seed):
    assert_z_scores_small(paired_one_step(*configured(name), size, seed=seed))


@proof(pairs=(1600, 40_000), seed=(1, 2))
def test_sweep_paired_of_sparse_networks(size, seed):
    # z = 4.03 on the orphans with 400 pairs; -1.0 and -0.3 with 6,000 of two seeds.
    assert_z_scores_small(paired_one_step(*configured(SPARSE), size, seed=seed))


@proof(pairs=(100, 3000), seed=(1, 2))
def test_sweep_paired_of_more_rows_than_a_block(size, seed):
    assert_z_scores_small(paired_one_step(*configured(MANY), size, seed=seed))


SUCCESSIVE = ["default", "free orders", "supervised", "three classes", "paper, supervised"]


@proof(draws=(500, 20_000), seed=(3, 4))
@pytest.mark.parametrize("name", SUCCESSIVE)
def test_sweep_successive(name, size, seed):
    assert_z_scores_small(successive_conditional(*configured(name), size, thin=4, seed=seed))


# What a move changes.
ROWS = ("hidden u^2", "hidden misfit", "misfit", "data by mean", "u0 by hidden")
GRAPH = (
    *("edges", "squared children", "one child", "orphans", "parents of the first", "depth"),
    *("sum tanh W", "W^2", "input W^2"),
)
NUMBER = (
    *("hidden", "order of hidden", "lowest hidden", "highest hidden", "hidden rho"),
    *("sum tanh b", "rho", "misfit", "hidden u^2"),
)
ORDERS = ("order of hidden", "lowest hidden", "highest hidden")
OBSERVED = ("observed edges", "observed squared children")
TOUCHED = {
    "noises": ROWS,
    "trajectories": (
        *ROWS,
        "latents",
        "sum tanh W",
        "W^2",
        "input W^2",
        "sum tanh b",
        "rho",
        "hidden rho",
    ),
    "edges": (*GRAPH, *OBSERVED, "sum tanh b", "rho", "hidden rho", "misfit", "hidden misfit"),
    "activations": ROWS,
    "latents": ("latents", "misfit", "data by mean"),
    "births": (*GRAPH, *NUMBER),
    "splits": (
        *("hidden", "edges", "order of hidden", "depth", "sum tanh W", "input W^2", "hidden u^2"),
    ),
    "swaps": (
        *("squared children", "one child", "orphans", "parents of the first", "depth"),
        *("sum tanh W", "W^2", "sum tanh b", "misfit", "hidden misfit", "data by mean"),
        *("order of free", "product of free", *OBSERVED),
    ),
    "orders": ORDERS,
    "proposed_orders": ORDERS,
    "affine": ("sum tanh W", "W^2", "sum tanh b", "hidden rho", "hidden u^2", "u0 by hidden"),
    "rotations": ("hidden u^2", "misfit", "u0 by hidden", "sum tanh W", "W^2", "sum tanh b"),
    "hyper": ("mass", "log alpha", "log phi"),
}
MIXED = prior(THREE, (None, None, 0.0))
SUPERVISED = prior(("gaussian", "gaussian", "input"))
ALONE = [
    ("noises", prior(TWO, FREE), {"holes": holes(4, 2)}),
    ("noises", SUPERVISED, {}),
    ("trajectories", MIXED, {}),
    ("trajectories", SUPERVISED, {}),
    ("trajectories", prior(("latent",) * 3 + ("input",)), {}),
    ("trajectories", prior(("latent", "input")), {}),
    ("edges", MIXED, {}),
    ("edges", SUPERVISED, {}),
    ("activations", prior(TWO, FREE), {"holes": holes(4, 2)}),
    ("latents", prior(("latent",) * 3 + ("input",)), {}),
    ("latents", prior(("latent", "input")), {}),
    ("births", MIXED, {}),
    ("births", SUPERVISED, {}),
    ("births", prior(max_units=2, mass=Gamma(3.0, 1.5)), {}),
    ("births", SUPERVISED, {"moves": "paper"}),
    ("splits", SUPERVISED, {}),
    (
        "swaps",
        prior(THREE, (None,) * 3, noise_precision=Gamma(1.0, 1.0), **given(1.5, 1.0, 3.0)),
        {},
    ),
    ("orders", MIXED, {}),
    ("proposed_orders", MIXED, {"moves": "paper"}),
    ("affine", SUPERVISED, {"n_affine": 1}),
    ("rotations", prior(THREE, **given(1.5, 2.0)), {"n_rotations": 1}),
    ("hyper", MIXED, {}),
]  # fmt: skip


def alone(case):
    move, law, options = ALONE[case]
    n_times = 5 if move in ("swaps", "splits", "affine", "rotations") else 1
    make = joint_draw(law, 4, only=(move,) * n_times, **options)
    touched = set(TOUCHED[move])
    if options.get("moves") == "paper":
        touched.discard("input W^2")  # the paper's births are of nodes without parents
    return make, only(statistics(law), lambda name: name in touched)


def test_every_move_is_tested_alone():
    # One looks at missing cells and changes nothing.
    assert {move for move, *_ in ALONE} | {"missing"} == Sampler.MOVES.keys()


@proof(pairs=(500, 10_000), seed=(5, 7))
@pytest.mark.parametrize("case", range(len(ALONE)), ids=lambda case: ALONE[case][0])
def test_each_move_alone_paired(case, size, seed):
    assert_z_scores_small(paired_one_step(*alone(case), size, seed=seed))


PLAIN = prior(**given(1.5, 1.0))
PAPER_BIRTHS = {"moves": "paper", "only": ("births",)}
# Case that shows a wrong formula, its rows, options, pairs, and the statistics that show it.
SHOWN = {
    "printed_constant": (PLAIN, 1, {}, 300, ("hidden", "edges")),
    "printed_ratio": (PLAIN, 1, PAPER_BIRTHS, 200, ("hidden", "edges")),
    "wrong_up": (
        prior(("gaussian",), **given(1.5, 1.0)), 1, PAPER_BIRTHS, 800, ("hidden", "edges"),
    ),
    "singletons_stay": (PLAIN, 1, {"only": ("edges",)}, 300, ("one child", "edges")),
    # Seen only where an observed node may be a parent.
    "observed_stay": (
        prior(THREE, (0.0, None, None), **given(0.5, 2.0)), 1, {"only": ("edges",)}, 1000,
        ("depth", "observed edges"),
    ),
    # At a small concentration deaths are accepted whatever the gap.
    "wrong_gap": (
        prior(("gaussian",), max_units=40, **given(1.5, 8.0)), 0,
        {**PAPER_BIRTHS, "n_births": 100}, 4000, ("rho", "W^2", "hidden"),
    ),
    "own_edge": (PLAIN, 1, {}, 600, ("squared children", "edges")),
    "no_descent": (
        prior(("gaussian", "gaussian", "input"), **given(2.0, 1.0)), 1, {}, 300,
        ("hidden", "orphans"),
    ),
    "no_jacobian": (PLAIN, 3, {"only": ("births",)}, 400, ("rho", "hidden")),
    # Grid proposals are so near the law that only sharp children tell.
    "no_grid": (
        prior(
            ("gaussian",) * 4, weight_variance=100.0, noise_precision=Gamma(2.0, 0.3),
            **given(1.5, 1.0),
        ),
        6, {"only": ("activations",) * 5}, 2000, ("misfit", "data by mean"),
    ),
    "no_log_scale": (PLAIN, 3, {"only": ("trajectories",)}, 300, ("rho", "hidden rho")),
    "no_stretch": (
        prior(noise_precision=Gamma(1.0, 1.0), **given(2.0, 1.0)), 1,
        {"only": ("affine",) * 20, "n_affine": 1}, 3000, ("hidden rho", "hidden u^2"),
    ),
    "kept_rivals": (
        prior(("latent",) * 3 + ("input",), **given(1.5, 1.0)), 3,
        {"only": ("trajectories",) * 3}, 300, ("misfit", "data by mean", "latents"),
    ),
    "one_variance": (
        prior(("gaussian", "gaussian", "input"), **given(1.5, 1.0)), 3, {"only": ("edges",)}, 300,
        ("input W^2",),
    ),
    "plain_mass": (prior(concentration=4.0), 0, {"only": ("hyper",)}, 300, ("mass",)),
}  # fmt: skip


def test_every_fault_has_its_case():
    assert SHOWN.keys() == set(FAULTS)


def shown(fault, injected, seed, n_times=1):
    law, n_samples, options, n, names = SHOWN[fault]
    of = only(statistics(law), lambda name: name in names)
    make = joint_draw(law, n_samples, fault=injected, **options)
    return paired_one_step(make, of, n_times * n, seed=seed)


@proof(seed=6, wrong=True)
@pytest.mark.parametrize("fault", SHOWN)
def test_a_wrong_formula_is_noticed(fault, seed):
    z = shown(fault, fault, seed)
    assert max(map(abs, z.values())) > 6, z


@proof(times=(1, 10), seed=6)
@pytest.mark.parametrize("fault", SHOWN)
def test_and_the_right_one_passes_the_same_test(fault, size, seed):
    assert_z_scores_small(shown(fault, "none", seed, size))
