"""A new chain."""

import numpy as np

from skbnp.cibp_belief_net._sampler import Sampler
from skbnp.cibp_belief_net._start import start_state


def make_sampler(bit_generator, chain, *, X, units, step, prior, init, n_init_units, **options):
    """The sampler of one chain on X; runs where the chain runs."""
    rng = np.random.Generator(bit_generator)
    if step.any():
        X = X + (rng.random(X.shape) - 0.5) * step
    visible = units.to_visible(X)
    state = start_state(visible, prior, rng, init, n_init_units)
    return Sampler(
        visible,
        prior,
        state,
        bit_generator,
        log_jacobian=float(units.log_jacobian(X).sum()),
        squashes_cells=units.visible == "sigmoid",
        **options,
    )
