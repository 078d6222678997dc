"""Missing cells of the training rows; what all networks promise of them is in tests/contract."""

import numpy as np

from skbnp import CIBPBeliefNet


def test_states_without_moments_are_taken():
    """Those of version 0.1, to go on from."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    X[::5, 0] = np.nan
    net = CIBPBeliefNet(n_chains=1, n_warmup=4, n_draws=4, random_state=0).fit(X)
    sampler = net._prepare(X)(np.random.default_rng(0).bit_generator, 0)
    state = sampler.get_state()
    for name in ("n_imputed", "imputed_mean", "imputed_square"):
        del state["moves"]["missing"][name]
    sampler.set_state(state)
    assert sampler.move("missing").n_imputed == 0
