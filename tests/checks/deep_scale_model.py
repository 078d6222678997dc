"""Small deep scale models drawn from their prior, and what tests compare of them."""

import numpy as np

from checks.joint_distribution import Moves
from checks.mutants import compiled
from skbnp.deep_scale_model._model import Prior, draw_joint
from skbnp.deep_scale_model._sampler import Sampler
from skbnp.laws import InverseGamma, Law
from skbnp.likelihoods.sparse_loadings.layers import inflation, upper_layers

# Moves of the chain, those of layers one by one.
MOVES = ("links", "births", "split_merges", "scores", "scales", "noise", "location", "mass")
# Wrong formulas: what has them, and the class in tests/mutants.
FAULTS = {
    "own_link": ("links", "OwnLink"),
    "blind_scores": ("grid", "BlindScores"),
    "no_count": ("births", "NoCount"),
    "no_pairs": ("splits", "NoPairs"),
    "no_jacobian": ("scales", "NoJacobian"),
    "printed_position": ("finite", "PrintedPosition"),
    "same_rate": ("finite", "SameRate"),
    "repeated": ("finite", "Repeated"),
    "stale_rows": ("LAYER", "StaleRows"),
    "one_pass": ("scores", "OnePass"),
}


def mutant(fault):
    """The sampler with a wrong formula of `FAULTS`; "none": the shipped one."""
    if fault == "none":
        return Sampler
    part, name = FAULTS[fault]
    wrong = getattr(compiled("deep_scale_model"), name)
    if part == "LAYER":
        changed = {"STATE": type("StateMutant", (Sampler.STATE,), {"LAYER": wrong})}
    else:
        schedule, moves = Sampler.SCHEDULE, Sampler.SCHEDULE.MOVES | {part: wrong}
        changed = {"SCHEDULE": type("ScheduleMutant", (schedule,), {"MOVES": moves})}
    return type("SamplerMutant", (Sampler,), changed)


def prior(**changes):
    """A prior whose loadings and noise have moments."""
    options = dict(
        mass=1.0,
        loading_variance=InverseGamma(4.0, 3.0),
        noise_variance=InverseGamma(5.0, 4.0),
    )
    return Prior(**(options | changes))


def make_sampler(law, state, X, seed=0, *, holes=None, fault="none", only=None, **options):
    """A sampler in a state; ``holes`` are missing cells, ``only`` the moves of a sweep."""
    X = X.copy()
    if holes is not None:
        X[holes] = np.nan
    generator = np.random.PCG64(seed)
    sampler = mutant(fault)(X, law, state, generator, **options)
    return sampler if only is None else Moves(sampler, only)


def joint_draw(law, n_samples, n_features, **options):
    """make_joint_draw of `checks.joint_distribution`: rng -> sampler."""

    def make(rng):
        state, X = draw_joint(law, n_samples, n_features, rng)
        return make_sampler(law, state, X, rng.integers(2**63), **options)

    return make


def bounded(x):
    """Mean of x / (1 + x), 1/2 for none."""
    return float(np.mean(x / (1 + x))) if np.size(x) else 0.5


def statistics(law):
    """What the joint-distribution tests look at: sampler -> dict of floats."""

    def function(sampler):
        state, X = sampler.get_state(), sampler.data()
        out = of_layer("", state["loadings1"])
        seen = ~np.isnan(X)
        a = state["scores1"] @ state["loadings1"].T
        a2 = a**2
        floor = state["noise_variance"]
        away = X - state["location"] - state["hyper"][1] * a
        y2 = state["scores1"] ** 2
        out |= {
            "y^2": bounded(y2),
            "log y^2": float(np.sum(np.log(1 + y2))),
            "a^2": bounded(a2[seen]),
            "misfit": bounded((away**2 / (a2 + floor))[seen]),
            "x^2 by a^2": float(np.mean(np.tanh(X**2) * np.tanh(a2), where=seen)),
            "y^2 by links": float(np.tanh(y2.sum(axis=0)) @ (state["loadings1"] != 0).sum(axis=0)),
        }
        if isinstance(law.noise_variance, Law):
            bound = np.tanh(X**2) * np.tanh(floor)
            out["x^2 by floor"] = float(np.mean(bound, where=seen))
            out["log s^2"] = float(np.mean(np.log(floor)))
            out["squared log s^2"] = float(np.mean(np.log(floor) ** 2))
        if law.is_finite:
            out["columns"] = float(len(state["loadings1"].T))
            out["squared columns"] = out["columns"] ** 2
            # Near their means, so that it is the covariance that shows.
            out["columns by factors"] = (out["columns"] - 3.0) * (out["factors"] - 1.5)
        if isinstance(law.drift, Law):
            c = np.tanh(state["hyper"][1])
            out["drift"], out["squared drift"] = float(c), float(c**2)
        if law.location_variance > 0:
            mu = state["location"]
            out["location"] = float(np.mean(np.tanh(mu)))
            out["x by location"] = float(np.mean(np.tanh(X) * np.tanh(mu), where=seen))
        if isinstance(law.mass, Law):
            out["mass"], out["squared mass"] = state["hyper"][0], state["hyper"][0] ** 2
        if law.max_layers > 1:
            upper = upper_layers(state)
            v = inflation(state)
            out["layers"] = float(len(upper))
            out["y^2 by v"] = float(np.sum(np.tanh(y2) * np.tanh(v - 1)))
            out["y^2 over v"] = bounded(y2 / v)
            for number in range(law.max_layers - 1):
                loadings = upper[number][0] if number < len(upper) else np.zeros((0, 0))
                out |= of_layer(f" {number + 2}", loadings)
            top = np.concatenate([scores.ravel() ** 2 for _, scores in upper] or [np.zeros(0)])
            out["upper y^2"] = float(np.sum(np.tanh(top)))
        return out

    return function


def of_layer(name, loadings):
    """Statistics of one layer's loadings; ``name`` ends theirs."""
    m = np.count_nonzero(loadings, axis=0)
    active = float(np.sum(m > 0))
    return {
        f"factors{name}": active,
        f"squared factors{name}": active**2,
        f"links{name}": float(m.sum()),
        f"squared links{name}": float(m.sum() ** 2),
        f"shared{name}": float(np.sum(m > 1)),
        f"log |W|^2{name}": float(np.log(1 + np.sum(loadings**2))),
        f"|W|{name}": bounded(np.abs(loadings[loadings != 0])),
    }
