"""States of the mixture in checkpoints: taken back as they are, refused where they cannot be."""

import numpy as np
import pytest

from checks.answers import assert_same_answers
from checks.slow import slow_where
from checks.watched import fit, table_with_holes
from skbnp.mcmc import io
from skbnp.samplers import MixtureSampler

X = table_with_holes()


def mixed_table():
    X = table_with_holes()
    X[:, 1] = np.round(np.abs(X[:, 1]))
    X[:, 2] = X[:, 2] > 0
    return X


MIXTURES = {
    "full": (X, {}),
    "diag": (X, {"covariance_type": "diag"}),
    "gibbs": (
        X,
        {
            "covariance_type": "diag",
            "sampler": MixtureSampler(algorithm="gibbs"),
            "n_components": 3,
        },
    ),
    "parallel": (
        X,
        {"covariance_type": "spherical", "sampler": MixtureSampler(algorithm="parallel")},
    ),
    "mixed": (mixed_table(), {"family": ["gaussian", "poisson", "bernoulli"]}),
}


def families_of(state):
    """The family's state, or those of its parts."""
    family = state["family"]
    return [family[name] for name in family if name.startswith("part")] or [family]


def every_array(change):
    """Each array of the state, family and parts included, changed alone."""

    def changes(state):
        for holder in (state, *families_of(state), *state["moves"].values()):
            for name, value in list(holder.items()):
                if isinstance(value, np.ndarray) and value.size:
                    holder[name] = change(value)
                    yield name
                    holder[name] = value

    return changes


def gibbs_of(state):
    """The state of the move of single rows, nothing where there is none."""
    return state["moves"].get("gibbs", {})


def set_to(name, value, holder=lambda state: state):
    def changes(state):
        if name not in holder(state):
            return  # not every mixture has it
        old = holder(state)[name]
        holder(state)[name] = value
        yield name
        holder(state)[name] = old

    return changes


def counts_of_cells(shift):
    def changes(state):
        for family in families_of(state):
            for name in ("count", "cells", "observed_count"):
                if name in family:
                    old = family[name]
                    family[name] = np.clip(old + shift, 0, len(X))
                    yield name
                    family[name] = old

    return changes


STATES = {
    "arrays one longer": every_array(lambda x: np.concatenate([x, np.zeros_like(x[:1])] * 2)),
    "arrays of one dimension more": every_array(lambda x: x[np.newaxis]),
    "arrays of another type": every_array(lambda x: x.astype(np.float32)),
    "no arrays": every_array(lambda x: None),
    "label too large": set_to("label", np.full(len(X), 10**6)),
    "label negative": set_to("label", np.full(len(X), -1)),
    "all in one": set_to("label", np.zeros(len(X), dtype=np.intp)),
    "no order": set_to("order", np.zeros(len(X), dtype=np.intp), gibbs_of),
    "order beyond": set_to("order", np.arange(len(X)) + 1, gibbs_of),
    "more accepted than proposed": set_to("accepted", np.array([10**9]), gibbs_of),
    "unknown move": set_to("moves", {"jump": {}}),
    "no clusters": set_to("n_clusters", 0),
    "many clusters": set_to("n_clusters", 10**9),
    "clusters in text": set_to("n_clusters", "2"),
    "sweeps below zero": set_to("n_sweeps", -1),
    "concentration": set_to("concentration", np.inf),
    "scale": set_to("scale", -1.0, lambda state: state["family"]),
    "more cells": counts_of_cells(+1),
    "fewer cells": counts_of_cells(-1),
    "another bit generator": set_to("bit_generator", np.random.MT19937(0).state),
    "no bit generator": set_to("bit_generator", None),
    "no state": lambda state: iter([state.clear()]),
}


@pytest.fixture(
    scope="module", params=slow_where(MIXTURES, lambda name: name not in ("full", "mixed"))
)
def begun_mixture(request, tmp_path_factory):
    table, options = MIXTURES[request.param]
    directory = tmp_path_factory.mktemp("checkpoints")
    run = {"n_chains": 2, "n_warmup": 3, "n_draws": 3, "checkpoint": directory, **options}
    fit("mixture", table, **run)
    (path,) = directory.iterdir()
    return path, table, {**run, "n_draws": 5}


@pytest.mark.parametrize("name", slow_where(MIXTURES, lambda name: name not in ("full", "mixed")))
def test_every_state_is_taken_back(tmp_path, name):
    table, options = MIXTURES[name]
    run = {"n_chains": 3, "n_warmup": 30, "n_draws": 90, "thin": 2, **options}
    expected, _ = fit("mixture", table, **run)
    for n_draws in (1, 40, 90):
        found, n_run = fit("mixture", table, **{**run, "n_draws": n_draws}, checkpoint=tmp_path)
    assert n_run == 3 * 2 * 50
    assert_same_answers(found, expected)


@pytest.mark.parametrize("how", STATES)
def test_tampered_states(begun_mixture, how):
    path, table, run = begun_mixture
    whole = path.read_bytes()
    content = io.read(path, "checkpoint")
    try:
        for name in STATES[how](content["posterior"]["ends"][1]["state"]):
            io.write(path, "checkpoint", content)
            with pytest.raises(
                ValueError, match="chain 1 cannot go on from its last state|concentration holds inf"
            ):
                fit("mixture", table, **run)
                pytest.fail(f"went on with another {name}")
    finally:
        path.write_bytes(whole)
