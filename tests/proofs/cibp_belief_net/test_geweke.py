"""Joint-distribution tests of the sweep that ``fit`` runs, then of each move alone.

Null: a sweep leaves p(state, X) alone. About twenty statistics per configuration, |z| < 4 on each:
false alarm 6e-5 each. Every named wrong formula must be seen.
"""

import numpy as np
import pytest

from checks.cibp_belief_net import FAULTS, joint_draw, prior, statistics
from checks.joint_distribution import (
    assert_z_scores_small,
    only,
    paired_one_step,
    successive_conditional,
)
from checks.proofs import proof
from skbnp.laws import Gamma, NormalGamma, Uniform


def holes(n_samples, n_features):
    return np.random.default_rng(5).random((n_samples, n_features)) < 0.3


# Of the births, some or none.
NO_BIRTHS = dict.fromkeys(("prior_births", "block_births", "matched_births"), False)
FROM_PRIOR = NO_BIRTHS | {"prior_births": True}
IN_BLOCKS = NO_BIRTHS | {"block_births": True}
MATCHED = NO_BIRTHS | {"matched_births": True}

# Prior, number of rows, options.
CONFIGURATIONS = {
    # The sweep of `fit`: its births, at the rates that it has; then all births as often.
    "as fitted": (
        prior(), 3, {"birth_rate": 0.25, "block_rate": 0.1, "matched_births": False},
    ),
    "all births": (prior(), 3, {"birth_rate": 0.25, "block_rate": 0.1, "matched_rate": 0.25}),
    "default": (prior(), 3, {}),
    "holes": (prior(), 4, {"holes": holes(4, 2)}),
    "slice": (prior(), 3, {"activation_update": "slice"}),
    "hmc": (prior(), 3, {"activation_update": "hmc"}),
    "mtm": (prior(), 3, {"activation_update": "mtm"}),
    "ess": (prior(), 3, {"activation_update": "ess"}),
    "births from the prior": (prior(), 3, FROM_PRIOR),
    "births in blocks": (prior(3), 2, IN_BLOCKS),
    "matched births": (prior(), 3, MATCHED),
    "matched births, holes": (prior(), 4, MATCHED | {"holes": holes(4, 2)}),
    "matched births, a low bound": (prior(highest_precision=0.5), 3, MATCHED),
    "matched births, row clusters": (prior(max_layers=2, row_clusters=True), 4, MATCHED),
    "no births": (prior(3), 2, NO_BIRTHS),
    "skip connections": (prior(3, skip_connections=True), 3, {}),
    "skip connections, births from the prior": (
        prior(3, skip_connections=True), 3, FROM_PRIOR,
    ),
    "skip connections, births in blocks": (prior(3, skip_connections=True), 3, IN_BLOCKS),
    "skip connections, matched births": (prior(3, skip_connections=True), 3, MATCHED),
    "row clusters": (prior(max_layers=1, row_clusters=True), 4, {}),
    "row clusters, holes": (prior(max_layers=1, row_clusters=True), 4, {"holes": holes(4, 2)}),
    "row clusters, two layers": (prior(max_layers=2, row_clusters=True), 4, {}),
    "row clusters, two layers, holes": (
        prior(max_layers=2, row_clusters=True), 4, {"holes": holes(4, 2)},
    ),
    "row clusters, two layers, hmc": (
        prior(max_layers=2, row_clusters=True), 4, {"activation_update": "hmc"},
    ),
    "row clusters, skip connections": (
        prior(max_layers=2, row_clusters=True, skip_connections=True), 4, {},
    ),
    "given mass and concentration": (
        prior(mass=(1.0, 0.6), concentration=(1.2, 0.8)), 3, {},
    ),
    "given in some layers": (
        prior(mass=(Uniform(0, 1.2), 0.6), concentration=(1.2, Uniform(0.2, 0.8), 1.0)), 3, {},
    ),
    "given rate of the noise": (prior(noise_precision=Gamma(1.5, 1.2)), 3, {}),
    "unbounded": (prior(max_layers=None, max_units=12), 3, {}),
    "unbounded, few units": (prior(max_layers=None, max_units=3), 3, {}),
    # Layers of eight units and more, where "auto" has Hamiltonian passes at work.
    "wide": (prior(6, mass=(6.0, 0.6), concentration=(2.0, 1.0), max_layers=2), 5, {}),
    "no bound on the precisions": (prior(highest_precision=np.inf), 3, {}),
    "low bound on the precisions": (prior(highest_precision=0.5), 3, {}),
    "other laws": (
        prior(
            weight_prior=NormalGamma(0.5, 2.0, 3.0, 1.0),
            bias_prior=NormalGamma(-0.3, 0.5, 2.0, 1.0),
            noise_precision=Gamma(2.0, Gamma(3.0, 2.0)),
        ),
        3,
        {},
    ),
}  # fmt: skip


def configured(name):
    law, n_samples, options = CONFIGURATIONS[name]
    of = statistics(law)
    if name == "no births":
        # Whatever is born stays: the numbers of units do not change.
        of = only(of, lambda statistic: statistic not in ("width 1", "hidden units", "layers"))
    return joint_draw(law, n_samples, **options), of


@proof(
    pairs=(250, 40_000, 10_000),
    seed=(1, 2),
    smoke=("as fitted", "row clusters", "skip connections"),
)
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_sweep_paired(name, size, seed):
    law, (make, of) = CONFIGURATIONS[name][0], configured(name)
    if law.row_clusters and law.max_layers == 1:
        # No unit has a precision of its own.
        of = only(of, lambda statistic: statistic != "hidden nu")
    assert_z_scores_small(paired_one_step(make, of, size, seed=seed))


# Without births the number of units stays that of the chain's start: it never sees the joint law.
ERGODIC = [name for name in CONFIGURATIONS if "holes" not in name and name != "no births"]


@proof(draws=(600, 10_000), seed=(3, 4))
@pytest.mark.parametrize("name", ERGODIC)
def test_sweep_successive(name, size, seed):
    assert_z_scores_small(successive_conditional(*configured(name), size, thin=4, seed=seed))


# What a move changes, by the beginnings of the statistics' names.
BIRTHS = (
    *("width", "hidden", "layers", "edges", "visible edges", "squared", "skip"),
    *("nu", "sum tanh", "misfit", "data by mean"),
)
TOUCHED = {
    "activations": ("hidden u^2", "u0 u1", "misfit", "data by mean"),
    "rows": BIRTHS,
    "matched_births": tuple(name for name in BIRTHS if name != "skip"),
    "noncentred": (*("hidden nu", "hidden u^2", "u0 u1", "sum tanh", "misfit", "data by mean"),),
    "clusters": ("clusters", "together", "s", "cluster"),
    "missing": ("misfit", "data by mean"),
    "hyper": ("tanh mu_w", "rho", "b_nu", "mass", "concentration"),
}


@proof(pairs=(300, 10_000), seed=(5, 7))
@pytest.mark.parametrize(
    "move, options",
    [
        ("activations", {}),
        ("rows", {}),
        ("rows", {"skip_connections": True}),
        ("rows", {"max_layers": 1, "row_clusters": True}),
        ("matched_births", {}),
        ("matched_births", {"skip_connections": True}),
        ("matched_births", {"max_layers": 1, "row_clusters": True}),
        ("matched_births", {"max_layers": 2, "row_clusters": True}),
        ("matched_births", {"highest_precision": 0.5}),
        ("noncentred", {}),
        ("noncentred", {"skip_connections": True}),
        ("noncentred", {"max_layers": 2, "row_clusters": True}),
        ("noncentred", {"highest_precision": 0.5}),
        ("noncentred", {"mass": (3.0,), "concentration": (2.0,)}),
        ("clusters", {"max_layers": 1, "row_clusters": True}),
        ("missing", {}),
        ("hyper", {}),
        ("hyper", {"skip_connections": True}),
    ],
)
def test_each_move_alone_paired(move, options, size, seed):
    law = prior(3, **options)
    make = joint_draw(law, 4, only=(move,), holes=holes(4, 3) if move == "missing" else None)
    names = TOUCHED[move]

    def is_touched(name):
        if name == "hidden nu" and law.row_clusters and law.max_layers == 1:
            # No unit has a precision of its own.
            return False
        if name == "s":
            return move != "noncentred"
        return name.startswith(tuple(n for n in names if n != "s"))

    touched = only(statistics(law), is_touched)
    assert_z_scores_small(paired_one_step(make, touched, size, seed=seed))


# Case that shows a wrong formula, its rows, options, pairs, and the statistics that show it.
SHOWN = {
    "printed_ratio": (
        prior(3, mass=(0.8,), concentration=(1.5,), max_layers=2), 3, {}, 300,
        ("width 1", "edges", "hidden units"),
    ),
    "inverted_rate": (
        prior(3, mass=(0.8,), concentration=(1.5,), max_layers=2), 3, {}, 300,
        ("width 1", "edges", "hidden units"),
    ),
    # Several units with one and the same child.
    "squared_count": (
        prior(2, mass=(3.0,), concentration=(4.0,), max_layers=1), 1, FROM_PRIOR, 400,
        ("width 1", "edges"),
    ),
    "no_survivor_rule": (
        prior(4, skip_connections=True, mass=(1.5, 1.2), concentration=(1.0, 1.0)), 2,
        {"matched_births": False}, 500,
        ("hidden units", "edges"),
    ),
    "own_count": (
        prior(3, mass=(0.8,), concentration=(1.5,), max_layers=2), 3, {}, 700,
        ("squared children", "visible edges"),
    ),
    "no_truncation": (prior(3, highest_precision=0.5), 3, {}, 300, ("b_nu",)),
    "stale_laws": (
        prior(3, max_layers=1, row_clusters=True, mass=(2.0,), concentration=(2.0,)), 6, {}, 700,
        ("cluster nu", "cluster misfit"),
    ),
    "no_urn": (
        prior(8, mass=(3.0,), concentration=(1.0,), max_layers=1), 2,
        NO_BIRTHS, 700, ("edges", "squared children"),
    ),
    "no_pivot": (
        prior(6, mass=(1.5,), concentration=(2.0,), max_layers=1), 2, IN_BLOCKS, 1000,
        ("width 1", "edges"),
    ),
    "alone_for_free": (
        prior(3, mass=(2.0, 1.5), concentration=(1.5, 1.5), max_layers=2), 2, MATCHED, 1000,
        ("width 1", "edges", "hidden units"),
    ),
    "no_jacobian": (
        prior(
            3, mass=(3.0,), concentration=(3.0,), max_layers=1,
            weight_prior=NormalGamma(0.0, 1.0, 3.0, 6.0),
        ),
        1, MATCHED, 2000, ("width 1", "edges", "nu"),
    ),
    "no_logarithm": (
        prior(3, mass=(3.0,), concentration=(2.0,), max_layers=2), 3, {}, 500, ("hidden nu",),
    ),
    "same_place": (
        prior(3, mass=(3.0,), concentration=(2.0,), max_layers=2), 10, {}, 2000,
        ("hidden nu", "hidden u^2", "misfit"),
    ),
}  # fmt: skip


def test_every_fault_has_its_case():
    assert SHOWN.keys() == FAULTS.keys()


@proof(seed=6, wrong=True)
@pytest.mark.parametrize("fault", SHOWN)
def test_a_wrong_formula_is_noticed(fault, seed):
    law, n_samples, options, n, names = SHOWN[fault]
    shown = only(statistics(law), lambda name: name in names)
    z = paired_one_step(joint_draw(law, n_samples, fault=fault, **options), shown, n, seed=seed)
    assert max(map(abs, z.values())) > 6, z


@proof(times=(1, 10), seed=6)
@pytest.mark.parametrize("fault", SHOWN)
def test_and_the_right_one_passes_the_same_test(fault, size, seed):
    law, n_samples, options, n, names = SHOWN[fault]
    shown = only(statistics(law), lambda name: name in names)
    z = paired_one_step(joint_draw(law, n_samples, **options), shown, size * n, seed=seed)
    assert_z_scores_small(z)
