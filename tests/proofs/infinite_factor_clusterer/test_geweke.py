"""Joint-distribution tests of the default sweep, then of each move alone; top="dp".

Null: a sweep leaves p(state, X) alone. About twenty-five statistics per configuration, |z| < 4 on
each: false alarm 6e-5 each. Every named wrong formula must be seen.
"""

import numpy as np
import pytest

from checks.infinite_factor_clusterer import FAULTS, MOVES, joint_draw, prior, statistics, varying
from checks.joint_distribution import (
    assert_z_scores_small,
    only,
    paired_one_step,
    successive_conditional,
)
from checks.proofs import proof
from skbnp.infinite_factor_clusterer._model import Prior
from skbnp.laws import Gamma, InverseGamma

HOLES = np.random.default_rng(3).random((5, 3)) < 0.3
DEEP = dict(max_layers=2, mass=1.5, mass_upper=1.0)
# The prior's options and those of the draw.
CONFIGURATIONS = {
    "default": ({}, {}),
    "holes": ({}, {"holes": HOLES}),
    "censored": ({}, {"limit": -0.3}),
    "students": (dict(tails="t"), {}),
    "students, holes": (dict(tails="t"), {"holes": HOLES}),
    "students, censored": (dict(tails="t"), {"limit": -0.3}),
    "shared noise": (dict(noise="shared"), {}),
    "shared noise, both means, students": (
        dict(noise="shared", means="both", tails="t"), {},
    ),
    "shared noise, means of features": (dict(noise="shared", means="feature"), {}),
    "both means": (dict(means="both"), {}),
    "both means, holes": (dict(means="both"), {"holes": HOLES}),
    "means of features": (dict(means="feature"), {}),
    "means of features, holes": (dict(means="feature"), {"holes": HOLES}),
    "sampled mass, given concentration": (
        dict(mass=Gamma(2.0, 2.0), concentration=0.7), {},
    ),
    "two layers": (DEEP, {}),
    "three layers, students, holes": (
        dict(DEEP, max_layers=3, tails="t"), {"holes": HOLES},
    ),
    "two layers, both means, shared noise": (dict(DEEP, means="both", noise="shared"), {}),
}  # fmt: skip


def configured(options, draw, **more):
    law = prior(**options)
    constant = set() if draw.keys() & {"holes", "limit"} else {"data", "alike"}
    of = statistics(law)
    names = set(varying(law, of(joint_draw(law, **draw)(np.random.default_rng(0))))) - constant
    return joint_draw(law, **draw, **more), only(of, lambda name: name in names)


@proof(pairs=(500, 40_000, 10_000), seed=(1, 2), smoke=("default", "students"))
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_sweep_paired(name, size, seed):
    assert_z_scores_small(paired_one_step(*configured(*CONFIGURATIONS[name]), size, seed=seed))


@proof(pairs=(500, 20_000), seed=3)
def test_the_laws_of_the_estimator(size, seed):
    # Its fourth moments are infinite: bounded statistics and logs do not mind.
    law = Prior()
    of = statistics(law)
    names = set(varying(law, of(joint_draw(law)(np.random.default_rng(0)))))
    names -= {"data", "alike", "factors^2", "links^2"}
    draw = joint_draw(law, n_samples=12, n_features=4)
    z = paired_one_step(draw, only(of, lambda name: name in names), size, seed=seed)
    assert_z_scores_small(z)


@proof(draws=(3000, 60_000), seed=1)
def test_sweep_and_simulated_data(size, seed):
    make, of = configured({}, {"n_samples": 4})
    assert_z_scores_small(successive_conditional(make, of, size, size // 2, seed=seed))


@proof(draws=(1000, 60_000), seed=(2, 1))
def test_sweep_and_simulated_data_of_students(size, seed):
    # T = 5, N = 3: clusters mix slowly.
    make, of = configured(dict(tails="t"), {})
    assert_z_scores_small(successive_conditional(make, of, size, size, thin=5, seed=seed))


# What a move alone may change.
TOUCHED = {
    "labels": {"clusters", "sizes", "noise of rows", "scores", "spread"},
    "tails": {"log weight", "tails", "scores"},
    "means": {"means", "scores", "spread", "residual"},
    "scores": {"scores", "spread", "residual", "data"},
    "energies": {"log noise", "log rate", "log energy", "means", "spread"},
    "loadings": {"links", "links^2", "loadings", "slab", "residual"},
    "births": {"factors", "factors^2", "links", "loadings", "log energy", "log noise", "scores"},
    "splits": {"clusters", "sizes", "log noise", "log energy", "means", "alike together"},
    "rescales": {"loadings", "slab", "log energy", "means", "scores"},
    "hyper": {"log concentration", "log mass"},
    "upper": {"layers", "upper factors", "upper links", "upper loadings", "upper scores"},
}


@proof(pairs=(500, 10_000), seed=(4, 7))
@pytest.mark.parametrize("move", MOVES)
def test_move_alone(move, size, seed):
    options = {"tails": "t", "mass": Gamma(2.0, 2.0)}
    if move == "upper":
        options = dict(DEEP, max_layers=3)
    if move == "splits":
        options = dict(means="both")
    make, of = configured(options, {"holes": HOLES}, step=move)
    of = only(of, lambda name: name in TOUCHED[move])
    assert_z_scores_small(paired_one_step(make, of, size, seed=seed))


# Where a wrong formula shows: the prior's options and those of the draw, the move, a statistic,
# how many pairs.
SEEN = {
    "no_determinant": (
        dict(mass=4.0, score_variance=InverseGamma(1.5, 1.0), concentration=3.0),
        {},
        "labels",
        "log noise",
        1200,
    ),
    "no_slice": ({}, {}, "labels", "clusters", 500),
    "blind_means": ({}, {}, "means", "spread", 500),
    "prior_scores": ({}, {}, "scores", "residual", 500),
    "unweighted": ({}, {"n_samples": 12}, "loadings", "residual", 800),
    "own_link": ({}, {}, "loadings", "links", 500),
    "birth_count": ({}, {"n_births": 4}, "births", "factors", 2500),
    "no_stretch": ({}, {}, "rescales", "slab", 500),
    "no_partition": ({}, {}, "splits", "clusters", 3000),
    "stale_noise": ({}, {}, "births", "factors", 1000),
    "free_division": ({}, {}, "splits", "clusters", 2000),
    "free_scores": ({}, {}, "splits", "clusters", 2500),
    "flat_upper": (dict(DEEP, mass_upper=3.0), {"n_births": 4}, "births", "spread", 2500),
}


@proof(seed=5, wrong=True)
@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_formulas_are_seen(fault, seed):
    options, draw, move, statistic, n = SEEN[fault]
    make, of = configured(options, draw, step=move, fault=fault)
    z = paired_one_step(make, only(of, lambda name: name == statistic), n, seed=seed)
    assert abs(z[statistic]) > 6.0
