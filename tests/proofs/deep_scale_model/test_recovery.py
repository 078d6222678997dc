"""The scale sampler from the start that ``fit`` makes, on data of a known structure."""

import numpy as np

from checks.deep_scale_model import make_sampler
from checks.proofs import proof, record
from skbnp.deep_scale_model._model import Prior


@proof(seed=6)
def test_groups_of_features_that_are_loud_together(seed):
    """Three factors of four features each: their number, who is of one, when they are loud."""
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(3), 4)
    truth = rng.normal(size=(300, 3))
    X = truth[:, group] * rng.normal(size=(300, 12)) + 0.2 * rng.normal(size=(300, 12))
    X[rng.random(X.shape) < 0.05] = np.nan
    start = {
        "loadings1": rng.normal(size=(12, 2)),
        "scores1": rng.normal(size=(300, 2)),
        "noise_variance": np.nanvar(X, axis=0),
        "location": np.zeros(12),
        "hyper": np.array([1.0, 0.0]),
    }
    sampler = make_sampler(Prior(), start, X, seed, n_anneal=60)
    shared, products = [], 0.0
    for step in range(160):
        sampler.sweep()
        if step < 80:
            sampler.adapt(step)
            continue
        draw = sampler.draw()
        w = draw["loadings1"]
        shared.append(np.sum((w != 0).sum(axis=0) > 1))
        products = products + np.abs(w @ w.T) / 80
    assert np.median(shared) in (3, 4)
    # Energies tell W W' alone, factors only up to a rotation.
    same = np.equal.outer(group, group)
    assert record(products[~same].mean() / products[same].mean()) < 0.5
    amplitude = np.abs(draw["scores1"] @ draw["loadings1"].T)
    for k in range(3):
        of_group = amplitude[:, group == k].mean(axis=1)
        assert record(np.corrcoef(of_group, np.abs(truth[:, k]))[0, 1]) > 0.6
