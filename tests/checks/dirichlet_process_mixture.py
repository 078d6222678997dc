"""Gaussian mixtures for the tests: cases of known posteriors, samplers in a state, mutants."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from checks.enumeration import canonical, set_partitions
from checks.monte_carlo import z_score
from checks.mutants import compiled, with_moves, with_state
from skbnp.dirichlet_process_mixture import _model
from skbnp.dirichlet_process_mixture._sampler import Sampler
from skbnp.dirichlet_process_mixture.families import CategoricalPrior, GaussianPrior, PoissonPrior
from skbnp.processes.mfm import FiniteMixtures

VECTORS = Path(__file__).parents[1] / "dirichlet_process_mixture" / "vectors.json"


# What a state says of a prior whose scale is fixed to 1.
UNSCALED = {"prior_scale": 1.0}


def vector_cases():
    """Cases with their exact posteriors, by name."""
    return {case["name"]: case for case in json.loads(VECTORS.read_text())}


def gaussian_cases():
    """Those for Gaussian families."""
    return {name: case for name, case in vector_cases().items() if name.startswith("gauss")}


def gaussian_prior(kind, mean, mean_precision, degrees_of_freedom, covariance, **of_partition):
    """A prior for a table of real columns alone."""
    part = GaussianPrior(
        np.arange(len(mean)), kind, mean, mean_precision, degrees_of_freedom, covariance
    )
    return _model.Prior((part,), **of_partition)


def learned_prior(kind, mean, guess, mean_precision=None, **of_partition):
    """The same with learned covariances around a guess; kappa0 sampled unless it is given."""
    return gaussian_prior(kind, mean, mean_precision, None, guess, **of_partition)


def in_units(prior, center, scale):
    """The same prior for X * scale + center instead of X."""
    part = prior.gaussian
    if part.covariance_type == "full":
        covariance = part.covariance * np.outer(scale, scale)
    elif part.covariance_type == "diag":
        covariance = part.covariance * scale**2
    else:
        # Spherical blocks stay spherical only under one common scale.
        covariance = part.covariance * scale[0] ** 2
    part = replace(part, mean=part.mean * scale + center, covariance=covariance)
    return replace(prior, parts=(part,))


def case_data(case):
    """X of a case, NaN for null."""
    return np.array(case["X"], dtype=float)


def case_prior(case):
    """The prior of a case, everything fixed."""
    return _model.Prior(
        (case_part(case),),
        n_components=case["n_components"],
        concentration=case["alpha"],
        discount=case["discount"],
        prior_scale=1.0,
    )


def case_part(case):
    """The prior of the case's columns."""
    hyper, columns = case["hyper"], np.arange(len(case["X"][0]))
    if case["family"] == "bernoulli":
        pairs = zip(hyper["b"], hyper["a"], strict=True)
        return CategoricalPrior(columns, tuple(np.array(pair) for pair in pairs))
    if case["family"] == "categorical":
        counts = tuple(np.array(g, dtype=float) for g in hyper["conc"])
        return CategoricalPrior(columns, counts)
    if case["family"] == "poisson":
        return PoissonPrior(columns, np.array(hyper["shape"]), np.array(hyper["rate"]))
    if case["family"] == "full":
        df, covariance = hyper["nu0"], np.array(hyper["Psi0"], dtype=float)
    else:
        df, covariance = 2 * hyper["a0"], 2 * np.array(hyper["b0"], dtype=float)
    mean = np.array(hyper["m0"], dtype=float)
    return GaussianPrior(columns, case["family"], mean, hyper["kappa0"], df, covariance)


def case_state(case, label):
    return {
        "label": np.asarray(label),
        "concentration": case["alpha"],
        "discount": case["discount"],
        "prior_scale": 1.0,
    }


def log_joint_missing(state, X, prior):
    """The log joint where full-covariance data lack cells of the second of two features only.

    The pattern is monotone, so m(X) = m_1(feature 1 of all rows) m(complete rows) / m_1(of
    them), and the marginal prior of feature 1 has one degree of freedom fewer.
    """
    label = np.asarray(state["label"])
    part = prior.gaussian
    first = gaussian_prior(
        "full",
        part.mean[:1],
        part.mean_precision,
        part.degrees_of_freedom - 1,
        part.covariance[:1, :1],
    )
    total = _model.log_eppf(np.bincount(label), state["concentration"], state["discount"])
    for k in np.unique(label):
        block = X[label == k]
        complete = block[~np.isnan(block[:, 1])]
        total += _model.log_marginal(block[:, :1], first, state)
        total += _model.log_marginal(complete, prior, state)
        total -= _model.log_marginal(complete[:, :1], first, state)
    return total


def exact_posterior(case, X=None):
    """All partitions of the rows, their posterior probabilities, and the log evidence."""
    X = case_data(case) if X is None else X
    missing = case["family"] == "full" and np.isnan(X).any()
    return enumerate_posterior(
        X, case_prior(case), log_joint_missing if missing else _model.log_joint
    )


def enumerate_posterior(X, prior, log_joint=_model.log_joint):
    """The same for a prior whose hyperparameters are fixed."""
    state = {
        "concentration": prior.concentration,
        "discount": prior.discount,
        **prior.start(),
    }
    partitions = list(set_partitions(len(X)))
    log_p = np.array(
        [log_joint({"label": np.asarray(label), **state}, X, prior) for label in partitions]
    )
    log_p[np.isnan(log_p)] = -np.inf  # more blocks than components
    evidence = np.logaddexp.reduce(log_p)
    return partitions, np.exp(log_p - evidence), evidence


def partition_z_scores(sampler, sweep, exact, n_sweeps):
    """z of P(K = k) and of the three most probable partitions; exact as above.

    Values of K expected, or missed, fewer than 40 times are left out: their error is not normal.
    """
    partitions, p, _ = exact
    trace = np.empty((n_sweeps, sampler.n_samples), dtype=int)
    for t in range(n_sweeps):
        sweep(sampler)
        trace[t] = sampler.labels
    visited = [canonical(label) for label in trace.tolist()]
    n_blocks = np.array([max(label) + 1 for label in visited])
    exact_k = np.array([max(label) + 1 for label in partitions])
    z = {}
    for k in range(1, sampler.n_samples + 1):
        probability = p[exact_k == k].sum()
        if 40 <= probability * n_sweeps <= n_sweeps - 40:
            z[f"K={k}"] = z_score((n_blocks == k).astype(float), probability)
    for i in np.argsort(-p)[:3]:
        z[partitions[i]] = z_score(np.array([v == partitions[i] for v in visited], float), p[i])
    return z


START = (
    "concentration",
    "discount",
    "prior_scale",
    "mean_precision",
    "degrees_of_freedom",
    "covariance",
)


def mutant(fault):
    """The sampler with a wrong formula, or as it is for "none"."""
    if fault == "none":
        return Sampler
    if fault == "coefficient_of_one_more_row":
        return with_state(Sampler, law_of=_law_of_one_more_row)
    wrong = compiled("dirichlet_process_mixture")
    if fault == "narrow_imputation":
        return with_state(
            Sampler,
            family_of=lambda state, X, part, start: part.kernel(X, start, wrong.NarrowImputation),
        )
    if fault == "coefficient_of_one_more_block":
        return with_state(Sampler, law_of=_law_of_one_more_block)
    if fault in COVARIANCE_FAULTS:
        ending = COVARIANCE_FAULTS[fault]
        full, rates = (getattr(wrong, f"{what}Without{ending}") for what in ("Full", "Rates"))
        return with_state(
            Sampler,
            covariance_of=lambda state, family, part: (
                full if part.covariance_type == "full" else rates
            )(family, part),
        )
    move, name = MOVE_FAULTS[fault]
    return with_moves(Sampler, **{move: getattr(wrong, name)})


# Wrong formulas: the move that has them, and the class in tests/mutants.
MOVE_FAULTS = {
    "missing_normaliser": ("gibbs", "MissingNormaliser"),
    "swapped_beta": ("concentration", "SwappedBeta"),
    "dp_concentration": ("concentration", "DirichletProcessForFinite"),
    "adaptive_split_merge": ("split_merge", "AdaptiveSplitMerge"),
    "split_state_count": ("split_merge", "SplitStateCount"),
    "uncounted_scan": ("split_merge", "UncountedScan"),
    "unscaled_prior": ("prior_scale", "UnscaledPrior"),
    "no_anchors": ("all_rows", "NoAnchors"),
    "undivided_weights": ("all_rows", "UndividedWeights"),
}
COVARIANCE_FAULTS = {
    "covariance_without_degrees": "Degrees",
    "degrees_without_determinant": "Determinant",
    "size_without_jacobian": "Jacobian",
    "mean_precision_without_power": "Power",
}


def _law_of_one_more_row(state, prior, start):
    law = Sampler.STATE.law_of(state, prior, start)
    return FiniteMixtures(state.n_samples + 1, law.concentration, prior.components_law)


def _law_of_one_more_block(state, prior, start):
    law = Sampler.STATE.law_of(state, prior, start)
    kind = compiled("dirichlet_process_mixture").OneMoreBlock
    return kind(state.n_samples, law.concentration, prior.components_law)


def make_sampler(X, prior, labels, seed=0, *, n_split_merge=4, fault="none", **options):
    """A sampler on X as it is; options are those of ``Sampler`` or the keys of ``START``."""
    bit_generator = np.random.default_rng(seed).bit_generator
    start = {key: options.pop(key) for key in START if key in options}
    return mutant(fault)(
        X, prior, labels, bit_generator, start=start, n_split_merge=n_split_merge, **options
    )


def state_of(sampler):
    """What ``_model.log_joint`` reads, from a sampler."""
    return {"label": sampler.labels, **{k: v for k, v in sampler.draw().items() if k != "label"}}


def sampler_at(prior, state, X, missing=None, seed=0, **options):
    """A sampler in the state of ``_model.draw_joint``; imputed cells hold what was drawn."""
    options |= {key: state[key] for key in START if key in state}
    if missing is None or not missing.any():
        return make_sampler(X, prior, state["label"], seed, **options)
    sampler = make_sampler(np.where(missing, np.nan, X), prior, state["label"], seed, **options)
    if prior.gaussian is not None and prior.gaussian.covariance_type == "full":
        complete = make_sampler(X, prior, state["label"], seed, **options).get_state()["family"]
        holed = sampler.get_state()
        # Of a table of several kinds, the real columns are the first part.
        old, new = (f.get("part0", f) for f in (holed["family"], complete))
        real = prior.gaussian.columns
        imputed = X[:, real][missing[:, real]]
        moments = {name: old[name] for name in old if name.startswith(("missing", "imputed"))}
        old.update({**new, **moments, "imputed": imputed})
        sampler.set_state(holed)
    return sampler
