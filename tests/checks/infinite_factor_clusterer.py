"""Samplers of the mixture of sparse factors in states drawn from the prior, and statistics."""

import numpy as np

from checks.mutants import compiled, with_moves
from skbnp.infinite_factor_clusterer._model import Prior, draw_joint
from skbnp.infinite_factor_clusterer._sampler import Sampler
from skbnp.laws import Gamma, InverseGamma, Law
from skbnp.likelihoods.sparse_loadings.layers import inflation, upper_layers

# What leaves the posterior as it is by itself: a move and those that draw what it integrates out.
MOVES = {
    "labels": ("labels", "tails", "scores"),
    "tails": ("tails", "scores"),
    "means": ("means", "scores"),
    "scores": ("scores",),
    "energies": ("energies",),
    "loadings": ("loadings",),
    "births": ("births",),
    "splits": ("splits", "energies"),
    "rescales": ("rescales",),
    "hyper": ("hyper",),
    "upper": ("upper",),
}

# Wrong formulas: the move that has them, and the class in tests/mutants.
FAULTS = {
    "no_determinant": ("ROW_LAW", "NoDeterminant"),
    "no_slice": ("labels", "NoSlice"),
    "blind_means": ("means", "BlindMeans"),
    "prior_scores": ("scores", "PriorScores"),
    "unweighted": ("loadings", "Unweighted"),
    "own_link": ("loadings", "OwnLink"),
    "birth_count": ("births", "BirthCount"),
    "stale_noise": ("births", "StaleNoise"),
    "flat_upper": ("births", "FlatUpper"),
    "no_stretch": ("rescales", "NoStretch"),
    "no_partition": ("splits", "NoPartition"),
    "free_division": ("splits", "FreeDivision"),
    "free_scores": ("LAUNCH", "FreeScores"),
}


def mutant(fault):
    """The sampler with a wrong formula of `FAULTS`; "none": the shipped one."""
    if fault == "none":
        return Sampler
    part, name = FAULTS[fault]
    wrong = getattr(compiled("infinite_factor_clusterer"), name)
    if part.isupper():
        return type("SamplerMutant", (Sampler,), {part: wrong})
    return with_moves(Sampler, **{part: wrong})


def make_moves(sampler, name):
    """A move of `MOVES`, as far as the sampler has it."""
    known = {move.NAME for move in sampler.moves}
    for part in MOVES[name]:
        if part in known:
            sampler.sweep_only(part)


def prior(**options):
    """A prior whose statistics have moments."""
    law = dict(
        mass=1.0,
        loading_variance=InverseGamma(4.0, 3.0),
        score_variance=InverseGamma(4.0, 3.0),
        noise_variance=InverseGamma(4.0, Gamma(3.0, 1.0)),
        offset_precision=Gamma(3.0, 6.0),
    )
    return Prior(**(law | options))


def joint_draw(
    law, n_samples=5, n_features=3, holes=None, limit=None, step=None, fault="none", **options
):
    """``make_joint_draw`` of the joint-distribution tests; ``step`` is a move's name, or None.

    ``holes`` are missing cells; readings below ``limit`` are seen to be that and no more.
    """

    def make(rng):
        state, X = draw_joint(law, n_samples, n_features, rng)
        limits = None
        if holes is not None:
            X = np.where(holes, np.nan, X)
        if limit is not None:
            limits = np.full(n_features, limit)
            X = np.where(X < limit, -np.inf, X)
        bits = np.random.Philox(rng.integers(2**63))
        sampler = mutant(fault)(X, law, state, bits, limit=limits, **options)
        return sampler if step is None else OneMove(sampler, step)

    return make


class OneMove:
    """A sampler whose sweep is one of its moves."""

    def __init__(self, sampler, move):
        self.sampler, self.move = sampler, move

    def sweep(self):
        make_moves(self.sampler, self.move)

    def __getattr__(self, name):
        return getattr(self.sampler, name)


def statistics(law):
    """Bounded functions and logs of the state and of the data; a function of a sampler."""

    def of(sampler):
        state = sampler.get_state()
        z, W, X = state["label"], state["loadings1"], state["filled"]
        y, m, v = state["scores1"], state["score_mean"], state["score_variance"]
        s, h = state["noise_variance"], state["noise_rate"]
        concentration, mass, offset_precision, df = state["hyper"]
        n_factors, sizes = W.shape[1], np.bincount(z)
        links = np.count_nonzero(W)
        alike = np.tanh(X @ X.T)
        pairs = np.triu_indices(len(X), 1)
        together = z[pairs[0]] == z[pairs[1]]
        weight = state["row_precision"][:, np.newaxis]
        off = np.log((y - m[z]) ** 2 * weight / v[z] + 1e-3)
        out = {
            "factors": n_factors,
            "factors^2": n_factors**2,
            "links": links,
            "links^2": links**2,
            "loadings": np.log1p(np.sum(W**2)),
            "slab": np.sum(np.log(state["slab_variance"])),
            "clusters": len(sizes),
            "sizes": np.sum(sizes**2),
            "log noise": np.mean(np.log(s)),
            "log noise^2": np.mean(np.log(s) ** 2),
            "noise of rows": np.mean(np.log(s[0 if law.noise == "shared" else z])),
            "log rate": np.mean(np.log(h)),
            "log energy": np.sum(np.log(v)),
            "energy of rows": np.sum(np.log(v[z])),
            "means": np.sum(np.tanh(m**2)),
            "scores": np.sum(np.tanh(y**2)),
            "spread": np.sum(off),
            "data": np.mean(np.log(X**2 + 1e-6)),
            "alike": np.mean(alike[pairs]),
            "alike together": np.sum(alike[pairs][together]),
            "log concentration": np.log(concentration),
            "log mass": np.log(mass),
            "log offset precision": np.log(offset_precision),
            "offset": np.mean(np.tanh(state["offset"] ** 2)),
            "log weight": np.mean(np.log(state["row_precision"])),
            "tails": 1 / df,
            "factor x cluster": n_factors * len(sizes),
            "residual": np.mean(np.tanh((X - y @ W.T - state["offset"][z]) ** 2)),
        }
        layers, u = upper_layers(state), inflation(state)
        out["layers"] = len(layers)
        out["upper factors"] = layers[0][0].shape[1] if layers else 0
        out["upper links"] = sum(np.count_nonzero(w) for w, _ in layers)
        out["upper loadings"] = sum(np.log1p(np.sum(w**2)) for w, _ in layers)
        squares = (y - m[z]) ** 2 * weight / v[z]
        # Scores that fit what the layer above says of them.
        out["upper spread"] = np.sum(np.tanh(squares / u) * np.log(u))
        out["upper scores"] = sum(np.sum(np.tanh(a**2)) for _, a in layers)
        return out

    return of


def varying(law, names):
    """Which of the statistics vary under the law."""
    still = set()
    if not isinstance(law.concentration, Law):
        still.add("log concentration")
    if not isinstance(law.mass, Law):
        still.add("log mass")
    if law.means == "factor":
        still |= {"log offset precision", "offset"}
    if law.means == "feature":
        still.add("means")
    if law.tails == "gaussian":
        still |= {"log weight", "tails"}
    if law.max_layers < 3:
        still.add("layers" if law.max_layers < 2 else "")
    if law.max_layers < 2:
        still |= {"upper factors", "upper links", "upper loadings", "upper scores", "upper spread"}
    return [name for name in names if name not in still]
