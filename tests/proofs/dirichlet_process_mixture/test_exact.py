"""The sampler against enumeration of all partitions, those of `vectors.json`.

One of them is printed in doc/mathematics/dirichlet_process_mixture, section 11.

Null: the chain's law is the exact posterior. Each reported probability has |z| < 4 with
autocorrelation-corrected errors; about 6 comparisons per case and move set, false alarm 6e-5 each.
"""

import numpy as np
import pytest

from checks.dirichlet_process_mixture import (
    case_data,
    case_prior,
    exact_posterior,
    make_sampler,
    partition_z_scores,
    vector_cases,
)
from checks.proofs import proof

CASES = vector_cases()


# Few rows one by one, so that the pass over all rows at once does the work.
SAMPLERS = {
    "collapsed": {},
    "gibbs one by one, alone": {"n_split_merge": 0},
    "split-merge alone": {"move": "split_merge"},
    "restricted gibbs": {"split_merge": "restricted_gibbs"},
    "restricted gibbs alone": {
        "split_merge": "restricted_gibbs",
        "move": "split_merge",
    },
    "parallel": {"algorithm": "parallel", "n_subset": 2},
    "parallel without split-merge": {
        "algorithm": "parallel",
        "n_subset": 1,
        "n_split_merge": 0,
    },
    "plain gibbs": {"algorithm": "gibbs", "n_split_merge": 1},
    "plain gibbs without split-merge": {"algorithm": "gibbs", "n_split_merge": 0},
}


def chain_z_scores(case, n_sweeps, seed, move=None, **options):
    """z-scores of a chain that starts with all rows in one block."""
    label = np.zeros(len(case["X"]), int)
    sampler = make_sampler(case_data(case), case_prior(case), label, seed=seed, **options)
    sweep = (lambda s: s.sweep()) if move is None else (lambda s: s.sweep_only(move))
    return partition_z_scores(sampler, sweep, exact_posterior(case), n_sweeps)


def applies(name, sampler):
    """Imputed cells are part of the state, and split-merge alone would leave them alone."""
    case, options = CASES[name], SAMPLERS[sampler]
    if options.get("algorithm") == "gibbs":
        return case["n_components"] is not None
    return not ("move" in options and case["family"] == "full" and "missing" in name)


@proof(sweeps=(10_000, 40_000), seed=7, smoke=("gauss-full DP-collapsed", "gauss-diag DP-parallel"))
@pytest.mark.parametrize(
    "name, sampler", [(name, s) for name in CASES for s in SAMPLERS if applies(name, s)]
)
def test_sampler_reaches_the_exact_posterior(name, sampler, size, seed):
    z = chain_z_scores(CASES[name], size, seed, **SAMPLERS[sampler])
    assert max(abs(value) for value in z.values()) < 4, z


@proof(seed=7, wrong=True)
@pytest.mark.parametrize(
    "name, fault, sampler",
    [
        ("gauss-full DP", "missing_normaliser", "collapsed"),
        ("gauss-diag DP", "missing_normaliser", "collapsed"),
        ("gauss-full PY", "split_state_count", "collapsed"),
        ("gauss-full DP", "uncounted_scan", "restricted gibbs alone"),
        ("gauss-full DP", "no_anchors", "parallel"),
        ("gauss-diag DP missing", "no_anchors", "parallel"),
        (
            "gauss-full finite Kmax=3",
            "undivided_weights",
            "plain gibbs without split-merge",
        ),
    ],
)
def test_a_wrong_formula_is_noticed(name, fault, sampler, seed):
    z = chain_z_scores(CASES[name], 40_000, seed, fault=fault, **SAMPLERS[sampler])
    assert max(abs(value) for value in z.values()) > 6, z


def test_plain_gibbs_is_for_finite_mixtures():
    case = CASES["gauss-full DP"]
    with pytest.raises(ValueError, match="algorithm='gibbs' must have a finite n_components"):
        make_sampler(case_data(case), case_prior(case), np.zeros(6, int), algorithm="gibbs")
    with pytest.raises(ValueError, match="algorithm must be one of"):
        make_sampler(case_data(case), case_prior(case), np.zeros(6, int), algorithm="slice")
