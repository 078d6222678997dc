"""Joint-distribution tests of the deep scale model's default sweep, then of each move alone.

Null: a sweep leaves p(state, X) alone. Ten to forty statistics per configuration, |z| < 4 on each:
false alarm 6e-5 each. Every named wrong formula must be seen, and the paper's printed moves too.
"""

import numpy as np
import pytest

from checks.deep_scale_model import FAULTS, MOVES, joint_draw, prior, statistics
from checks.joint_distribution import (
    assert_z_scores_small,
    only,
    paired_one_step,
    successive_conditional,
)
from checks.proofs import proof
from skbnp.laws import Gamma, InverseGamma, Normal


def holes(n_samples, n_features):
    return np.random.default_rng(5).random((n_samples, n_features)) < 0.4


SAMPLED = dict(mass=Gamma(3.0, 3.0), drift=Normal(0.0, 1.0), location_variance=2.0)
DEEP = dict(max_layers=2, mass_upper=1.0)
# Prior, number of samples and of features, options. The sampler's defaults are those of `fit`.
CONFIGURATIONS = {
    "default": (prior(), 4, 3, {}),
    "all sampled": (prior(**SAMPLED), 4, 3, {}),
    "fixed noise": (prior(noise_variance=np.array([0.3, 1.0, 2.0])), 4, 3, {}),
    "holes": (prior(**SAMPLED), 6, 3, {"holes": holes(6, 3)}),
    "two layers": (prior(**DEEP), 4, 3, {}),
    "two layers, wide": (prior(max_layers=2, mass=2.0, mass_upper=1.5), 5, 3, {}),
    "two layers, holes": (prior(**DEEP, **SAMPLED), 6, 3, {"holes": holes(6, 3)}),
    "three layers, all sampled": (
        prior(**SAMPLED, max_layers=3, mass_upper=1.5), 3, 3, {},
    ),
    "finite": (prior(birth_move="finite"), 4, 3, {}),
    "finite, two layers, all sampled": (prior(birth_move="finite", **DEEP, **SAMPLED), 4, 3, {}),
    "one feature": (prior(mass=1.5, **DEEP), 4, 1, {}),
    "more samples": (prior(**DEEP), 60, 4, {}),
}  # fmt: skip


def configured(name):
    law, n_samples, n_features, options = CONFIGURATIONS[name]
    of = statistics(law)
    if n_features == 1:
        # One feature has no shared factor.
        of = only(of, lambda statistic: statistic != "shared")
    return joint_draw(law, n_samples, n_features, **options), of


MANY = "more samples"


@proof(pairs=(800, 40_000, 10_000), seed=(1, 2), smoke=("default", "two layers"))
@pytest.mark.parametrize("name", [name for name in CONFIGURATIONS if name != MANY])
def test_sweep_paired(name, size, seed):
    assert_z_scores_small(paired_one_step(*configured(name), size, seed=seed))


@proof(pairs=(300, 10_000), seed=(1, 2))
def test_sweep_paired_of_many_samples(size, seed):
    assert_z_scores_small(paired_one_step(*configured(MANY), size, seed=seed))


@proof(draws=(600, 10_000), seed=(3, 4))
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_sweep_successive(name, size, seed):
    assert_z_scores_small(successive_conditional(*configured(name), size, thin=5, seed=seed))


# What each move changes.
LINKS = ("links", "squared links", "shared", "log |W|^2", "|W|", "a^2", "misfit", "x^2 by a^2")
SCORES = ("y^2", "log y^2", "a^2", "misfit", "x^2 by a^2", "y^2 by links")
TOUCHED = {
    "links": LINKS,
    "births": ("factors", "squared factors", *LINKS[:2], *LINKS[3:], *SCORES),
    "split_merges": ("factors", "squared factors", "shared", *SCORES),
    "scores": SCORES,
    "scales": ("log |W|^2", "|W|", "y^2", "log y^2", "y^2 by links"),
    "noise": ("log s^2", "squared log s^2", "x^2 by floor", "misfit"),
    "location": ("location", "x by location", "drift", "squared drift", "misfit"),
    "mass": ("mass", "squared mass"),
}
UPPER = ("factors 2", "links 2", "log |W|^2 2", "y^2 by v", "y^2 over v", "upper y^2")
WIDE = prior(max_layers=2, mass=2.0, mass_upper=1.5)
FINITE = prior(birth_move="finite", **SAMPLED)
ALONE = [
    *((move, prior(**SAMPLED), TOUCHED[move]) for move in MOVES),
    ("links", FINITE, TOUCHED["links"]),
    ("births", FINITE, ("columns", "squared columns", "log y^2")),
    ("mass", FINITE, TOUCHED["mass"]),
    ("links", WIDE, ("links 2", "log |W|^2 2", "y^2 by v", "y^2 over v")),
    ("births", WIDE, UPPER),
    ("split_merges", WIDE, UPPER),
    ("scores", WIDE, ("y^2 by v", "y^2 over v", "upper y^2")),
    ("scales", WIDE, ("log |W|^2 2", "y^2 over v", "upper y^2")),
]


def alone(case):
    move, law, names = ALONE[case]
    make = joint_draw(law, 4, 4, only=(move,) * 3)
    return make, only(statistics(law), lambda name: name in names)


@proof(pairs=(600, 10_000), seed=(5, 7))
@pytest.mark.parametrize("case", range(len(ALONE)), ids=lambda case: ALONE[case][0])
def test_each_move_alone_paired(case, size, seed):
    assert_z_scores_small(paired_one_step(*alone(case), size, seed=seed))


# Case that shows a wrong formula: prior, samples, features, options, pairs, what shows it.
SHOWN = {
    "own_link": (prior(mass=2.0), 2, 4, {"only": ("links",) * 10}, 600, ("links", "shared")),
    "blind_scores": (
        prior(noise_variance=InverseGamma(5.0, 0.1)), 12, 2, {"only": ("births",) * 3}, 400,
        ("factors", "log y^2"),
    ),
    "no_count": (prior(mass=3.0), 2, 2, {"only": ("births",)}, 500, ("factors", "links")),
    "no_pairs": (prior(mass=3.0), 2, 3, {"only": ("split_merges",)}, 300, ("factors", "shared")),
    "no_jacobian": (prior(), 20, 3, {"only": ("scales",) * 20}, 400, ("log |W|^2", "log y^2")),
    "printed_position": (FINITE, 2, 3, {"only": ("births",)}, 400, ("columns",)),
    "same_rate": (
        prior(birth_move="finite"), 1, 10, {"only": ("births",) * 5}, 1200,
        ("columns", "columns by factors"),
    ),
    "repeated": (prior(birth_move="finite"), 1, 3, {"only": ("births",)}, 2400, ("columns",)),
    "stale_rows": (WIDE, 2, 3, {"only": ("births",) * 3}, 1200, ("links 2", "shared 2")),
    "one_pass": (WIDE, 4, 3, {"only": ("scores",)}, 400, ("y^2 by v", "log y^2")),
}  # fmt: skip


def test_every_fault_has_its_case():
    assert SHOWN.keys() == FAULTS.keys()


def shown(fault, injected, seed, n_times=1):
    law, n_samples, n_features, options, n, names = SHOWN[fault]
    make = joint_draw(law, n_samples, n_features, fault=injected, **options)
    of = only(statistics(law), lambda name: name in names)
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


@proof(seed=8, wrong=True)
def test_printed_moves_leave_no_law_alone(seed):
    """Columns go, factors too."""
    law = prior(birth_move="pan-han")
    z = paired_one_step(joint_draw(law, 4, 3), statistics(law), 1500, seed=seed)
    assert abs(z["columns"]) > 20, z
