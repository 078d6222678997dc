"""New branches in prediction, against branches drawn from the prior outright."""

import numpy as np
import pytest
from scipy.special import logsumexp

from checks.tree_factor_model import STRUCTURES, make_sampler, prior_of
from skbnp import TreeFactorModel
from skbnp.tree_factor_model import _model, _predictive
from skbnp.tree_factor_model._new_branches import with_new_branches
from skbnp.tree_factor_model._rows import Rows

CASES = [
    ("mixture", {}),
    ("tree", {}),
    ("tree", {"branch_scale": "loadings"}),
    ("tree", {"branch_scale": "whole", "tails": "t"}),
    ("mixture", {"branch_scale": "noise", "tails": "t", "tail_df": "shared"}),
]
cases = pytest.mark.parametrize("structure, prior", CASES)


def drawn(structure, **prior):
    """A draw of a short chain on six rows of two features, and its prior."""
    p = prior_of(structure, **prior)
    state, X = _model.draw_joint(p, 6, np.random.default_rng(0))
    sampler = make_sampler(X, p, state)
    sampler.sweep()
    return sampler.draw(), p


@pytest.mark.parametrize("structure", STRUCTURES)
def test_weights_of_old_and_new_branches_sum_to_one(structure):
    draw, p = drawn(structure, branch_scale="loadings")
    more = with_new_branches(draw, p, 3, np.random.default_rng(1))
    weight = _predictive.log_branch_weights(more)
    assert logsumexp(weight) == pytest.approx(0.0, abs=1e-12)
    old = weight[: len(draw["leaf_node"])]
    assert np.allclose(old - logsumexp(old), _predictive.log_branch_weights(draw))
    assert (len(weight) > len(old)) == (structure != "single")
    paths = _predictive.branch_paths(more)
    assert np.array_equal(paths[: len(old)], _predictive.branch_paths(draw))


@cases
def test_density_of_a_row_in_a_new_branch(structure, prior):
    """Its mean over tails, loadings and mean integrated out or drawn: |z| < 4.

    Drawn outright: the prior's simulation of one row, from a histogram's cell around the row.
    """
    draw, p = drawn(structure, **prior)
    rng = np.random.default_rng(2)
    row, half = np.array([[0.4, -0.3]]), 0.25
    n = 1500
    # Integrated: probability of the cell by a grid of densities.
    grid = np.stack(np.meshgrid(*[np.linspace(-half, half, 9)] * 2), axis=-1).reshape(-1, 2) + row
    more = with_new_branches(draw, p, n, rng)
    n_old = len(draw["leaf_node"])
    density = np.exp(_predictive.log_densities(Rows(grid), more)[:, n_old:])
    weights = np.array([1, 4, 2, 4, 2, 4, 2, 4, 1]) * (2 * half / 24)
    cell = np.outer(weights, weights).ravel() @ density
    log_weight = more["log_weight"][n_old:]
    total = np.exp(logsumexp(log_weight))
    integrated = cell * np.exp(log_weight) / total * len(cell)
    # Drawn: a fresh tail with loadings and mean, then the row.
    sampled = outright(draw, p, more, 20_000, rng)
    hits = (np.abs(sampled - row) < half).all(axis=1)
    difference = integrated.mean() - hits.mean()
    se = np.sqrt(integrated.var() / len(integrated) + hits.var() / len(hits))
    assert abs(difference / se) < 4


def outright(draw, p, more, n, rng):
    """Rows of new branches, everything drawn: where they leave by the weights of ``more``."""
    n_old, depth = len(draw["leaf_node"]), p.max_depth
    weight = np.exp(more["log_weight"][n_old:])
    chosen = rng.choice(len(weight), size=n, p=weight / weight.sum())
    paths = _predictive.branch_paths(more)[n_old:]
    log_tau = _model.log_precisions(draw)
    nu, out = p.local_shrinkage_df, np.empty((n, p.n_features))
    for i, path in enumerate(paths[chosen]):
        shared = [node for node in path if node < len(log_tau)]
        kappa, psi, u = 1.0, np.ones(depth), 1.0
        if p.has_noise_scale:
            kappa = rng.gamma(p.noise_scale_shape, 1 / p.noise_scale_shape)
        if p.has_score_precision:
            psi = rng.gamma(p.score_precision_shape, 1 / p.score_precision_shape, size=depth)
        elif p.branch_scale == "whole":
            psi *= kappa
        if p.tails == "t":
            df = draw["tail_df"][0]
            if p.tail_df == "branch":
                df = rng.choice(_model.DF_GRID[0], p=np.exp(_model.DF_GRID[1]))
            u = max(rng.gamma(df / 2, 2 / df), 1e-300)
        y = rng.standard_normal(p.n_features) / np.sqrt(draw["mean_precision"])
        above = log_tau[shared[-1]] if shared else 0.0
        for h in range(depth):
            x = rng.standard_normal() / np.sqrt(psi[h] * u)
            if h < len(shared):
                y += x * draw["loadings"][shared[h]]
                continue
            above += np.log(rng.gamma(p.shrinkage_root if h == 0 else p.shrinkage))
            phi = rng.gamma(nu / 2, 2 / nu, size=p.n_features)
            y += x * rng.standard_normal(p.n_features) / np.sqrt(phi * np.exp(above))
        noise = np.sqrt(kappa * u * draw["noise_precision"])
        out[i] = y + rng.standard_normal(p.n_features) / noise
    return out


def test_estimator_gives_unusual_rows_more_density():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3))
    model = TreeFactorModel(
        structure="mixture", max_depth=2, n_chains=1, n_warmup=30, n_draws=10, random_state=0
    )
    with pytest.warns(UserWarning):
        model.fit(X)
    far = np.full((1, 3), 30.0)
    dropped = model.score_samples(far)[0]
    model.set_params(new_branch="prior")
    assert model.score_samples(far)[0] > dropped + 10.0
    assert model.score_samples(far)[0] == model.score_samples(far)[0]
    near = X[:5]
    filled = model.impute(np.where(np.arange(3) == 1, np.nan, near))
    assert np.isfinite(filled).all()
    assert np.isfinite(model.sample(20, random_state=0)).all()
    Phi = rng.standard_normal((2, 3))
    assert model.invert(Phi, near @ Phi.T).shape == near.shape


def test_new_branches_take_what_the_chinese_restaurant_gives_them():
    """alpha / (n + alpha)."""
    draw, p = drawn("mixture", concentration=(2.0,))
    more = with_new_branches(draw, p, 4, np.random.default_rng(5))
    new = logsumexp(more["log_weight"][len(draw["leaf_node"]) :])
    assert np.exp(new) == pytest.approx(2.0 / 8.0)
