"""Gaussian mixtures for the tests: the spec's cases, exact posteriors, samplers in a state."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from checks.enumeration import set_partitions
from skbnp.dirichlet_process_mixture import _model
from skbnp.dirichlet_process_mixture._sampler import FAULTS, Sampler
from skbnp.numerics.rng import sample_wishart
from skbnp.processes import crp

VECTORS = Path(__file__).parents[1] / "dirichlet_process_mixture" / "vectors.json"


def gaussian_cases():
    """The spec's cases for Gaussian families, by name."""
    cases = json.loads(VECTORS.read_text())
    return {case["name"]: case for case in cases if case["name"].startswith("gauss")}


def in_units(prior, center, scale):
    """The same prior for X * scale + center instead of X."""
    if prior.covariance_type == "full":
        covariance = prior.covariance * np.outer(scale, scale)
    elif prior.covariance_type == "diag":
        covariance = prior.covariance * scale**2
    else:
        # Spherical blocks stay spherical only under one common scale.
        covariance = prior.covariance * scale[0] ** 2
    return replace(prior, mean=prior.mean * scale + center, covariance=covariance)


def case_data(case):
    """X of a case, NaN for null."""
    return np.array(case["X"], dtype=float)


def case_prior(case):
    """The prior of a case, everything fixed."""
    hyper = case["hyper"]
    if case["family"] == "full":
        df, covariance = hyper["nu0"], np.array(hyper["Psi0"], dtype=float)
    else:
        df, covariance = 2 * hyper["a0"], 2 * np.array(hyper["b0"], dtype=float)
    return _model.Prior(
        covariance_type=case["family"],
        mean=np.array(hyper["m0"], dtype=float),
        mean_precision=hyper["kappa0"],
        degrees_of_freedom=df,
        covariance=covariance,
        n_components=case["n_components"],
        concentration=case["alpha"],
        discount=case["discount"],
        prior_scale=1.0,
    )


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
    them), and the marginal prior of feature 1 has one degree of freedom fewer (spec 4.7).
    """
    label = np.asarray(state["label"])
    first = _model.Prior(
        "full",
        prior.mean[:1],
        prior.mean_precision,
        prior.degrees_of_freedom - 1,
        prior.covariance[:1, :1],
    )
    total = _model.log_eppf(np.bincount(label), state["concentration"], state["discount"])
    for k in np.unique(label):
        block = X[label == k]
        complete = block[~np.isnan(block[:, 1])]
        total += _model.log_marginal(block[:, :1], first, 1.0)
        total += _model.log_marginal(complete, prior, 1.0)
        total -= _model.log_marginal(complete[:, :1], first, 1.0)
    return total


def exact_posterior(case, X=None):
    """All partitions of the rows, their posterior probabilities, and the log evidence."""
    X = case_data(case) if X is None else X
    prior = case_prior(case)
    missing = case["family"] == "full" and np.isnan(X).any()
    log_joint = log_joint_missing if missing else _model.log_joint
    partitions = list(set_partitions(len(X)))
    log_p = np.array([log_joint(case_state(case, label), X, prior) for label in partitions])
    log_p[np.isnan(log_p)] = -np.inf  # more blocks than components
    evidence = np.logaddexp.reduce(log_p)
    return partitions, np.exp(log_p - evidence), evidence


def make_sampler(X, prior, labels, seed=0, *, n_split_merge=4, fault="none", **start):
    """A sampler on X as it is; ``start`` may give concentration, discount, prior_scale."""
    bit_generator = np.random.default_rng(seed).bit_generator
    return Sampler(
        X,
        prior,
        labels,
        bit_generator,
        start=start,
        n_split_merge=n_split_merge,
        fault=FAULTS[fault],
    )


def state_of(sampler):
    """What ``_model.log_joint`` reads, from a sampler."""
    return {"label": sampler.labels, **{k: v for k, v in sampler.draw().items() if k != "label"}}


def draw_joint(prior, n, rng):
    """One exact draw of hyperparameters, partition and complete data: (state, X)."""
    shape, rate = prior.concentration_prior
    concentration = (
        rng.gamma(shape, 1 / rate) if prior.concentration is None else prior.concentration
    )
    discount = rng.beta(*prior.discount_prior) if prior.discount is None else prior.discount
    scale = rng.choice(prior.scale_grid)
    if prior.n_components:
        label = crp.sample(n, concentration, n_components=prior.n_components, random_state=rng)
    else:
        label = crp.sample(n, concentration, discount, random_state=rng)
    d = len(prior.mean)
    X = np.empty((n, d))
    for k in np.unique(label):
        rows = np.flatnonzero(label == k)
        if prior.covariance_type == "full":
            half = np.linalg.cholesky(np.linalg.inv(scale * prior.covariance))
            precision = sample_wishart(rng.bit_generator, prior.degrees_of_freedom, half, 1)[0]
            root = np.linalg.inv(np.linalg.cholesky(precision)).T
        else:
            a0, b0 = prior.degrees_of_freedom / 2, scale * np.asarray(prior.covariance) / 2
            root = np.diag(np.sqrt(np.broadcast_to(b0 / rng.gamma(a0, size=np.shape(b0)), d)))
        mean = prior.mean + root @ rng.standard_normal(d) / np.sqrt(prior.mean_precision)
        X[rows] = mean + rng.standard_normal((len(rows), d)) @ root.T
    state = {
        "label": label,
        "concentration": concentration,
        "discount": discount,
        "prior_scale": scale,
    }
    return state, X


def sampler_at(prior, state, X, missing=None, seed=0, **options):
    """A sampler in the state of ``draw_joint``; imputed cells hold the values that were drawn."""
    options |= {key: state[key] for key in ("concentration", "discount", "prior_scale")}
    if missing is None or not missing.any():
        return make_sampler(X, prior, state["label"], seed, **options)
    sampler = make_sampler(np.where(missing, np.nan, X), prior, state["label"], seed, **options)
    if prior.covariance_type == "full":
        complete = make_sampler(X, prior, state["label"], seed, **options).get_state()["family"]
        holed = sampler.get_state()
        means = {key: holed["family"][key] for key in ("missing_mean", "imputed_sum")}
        holed["family"] |= {**complete, **means, "X": X.copy()}
        sampler.set_state(holed)
    return sampler
