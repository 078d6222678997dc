"""Missing cells of the training rows; what all networks promise of them is in tests/contract."""

import numpy as np
from numpy.testing import assert_array_equal

from skbnp import ICPNetwork


def test_a_column_with_children_says_what_was_drawn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 1)) + 0.5 * rng.normal(size=(40, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    net = ICPNetwork(n_chains=1, n_warmup=0, n_draws=1, observed_order="free", random_state=0).fit(
        X
    )
    sampler = net._prepare(X)(np.random.PCG64(3), 0)
    holes, n_parents = np.isnan(X).T, 0
    for _ in range(30):
        sampler.move("missing").forget()
        sampler.sweep()
        parents = np.unique(sampler.get_state()["edges"][:, 0])
        said = np.zeros(holes.shape)
        said[holes] = sampler.move("missing").imputed_mean
        drawn = sampler.visible_activations().T
        for column in parents[parents < 3]:
            n_parents += 1
            assert_array_equal(said[column, holes[column]], drawn[column, holes[column]])
    assert n_parents > 5
