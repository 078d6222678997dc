"""Weights of the averaged architectures, and the power that their probabilities are raised to."""

import numpy as np

from skbnp.icp_network.convolution._ensemble import MOST_HALVINGS, make_weights
from skbnp.icp_network.convolution._folds import Folds
from skbnp.mcmc.caller import warn
from skbnp.mcmc.posterior import Posterior

# Steps between kept weights, the share of them that is dropped, and steps of Adam before.
_STEPS_PER_DRAW, _DROPPED, _POINT_STEPS, _POINT_RATE = 40, 0.2, 200, 0.01
# What tells the seeds of weights from those of the chains, which are numbered from 0.
_KEY_OF_WEIGHTS, _KEY_OF_FOLDS = 2**32 - 2, 2**32 - 3


class WeightsMixin:
    """Draws weights of the architectures that the search has found."""

    def _drawn_weights(self, data):
        """Draws of the weights of some architectures: a chain of each."""
        settings = self._sampler_settings()
        chosen = self._chosen_draws_of_chains()
        n_all = max(1, settings.n_weight_steps // _STEPS_PER_DRAW)
        n_dropped = int(np.ceil(_DROPPED * n_all)) if n_all > 1 else 0
        length = n_dropped, n_all - n_dropped
        options = settings.get_params(deep=False) | {
            "n_point_steps": _POINT_STEPS if settings.n_start_steps else 0,
            "point_rate": _POINT_RATE,
            "steps_per_draw": min(_STEPS_PER_DRAW, settings.n_weight_steps),
            "temperature": float(self.temperature),
        }
        seeds = self._seeds(_KEY_OF_WEIGHTS, len(chosen))

        def of_one(t, _):
            return make_weights(seeds[t], chosen[t], self._prior, data, options).run(*length)

        found = self._by_blocks(of_one, len(chosen), size=1)
        posterior = Posterior(
            [draws for draws, _ in found],
            {name: [traces[name] for _, traces in found] for name in found[0][1]},
            n_warmup=n_dropped,
            sweeps_per_draw=1,
            seed=self.seed_,
        )
        lost = np.flatnonzero((posterior.traces["n_halvings"] > MOST_HALVINGS).any(axis=1))
        if len(lost):
            warn(
                f"Steps of {len(lost)} of {len(chosen)} networks were too long, and they stay at "
                "the weights that they were trained to; lower step_length of sampler"
            )
        self.power_ = 1.0
        if self.probability_calibration == "folds":
            # From the prior on, as the first network of a chain.
            start = {"n_point_steps": settings.n_start_steps, "point_rate": settings.learning_rate}
            self.power_ = self._best_power(data, chosen, options | start, length)
        return posterior

    def _best_power(self, data, networks, options, length):
        """The power with which training images are predicted best that weights have not seen."""
        folds = Folds(data, self._prior, networks, np.random.default_rng(self.seed_))
        seeds = self._seeds(_KEY_OF_FOLDS, folds.n_chains)

        def of_one(t, _):
            return folds.left_out(t, seeds[t], options, *length)

        return folds.power(self._by_blocks(of_one, folds.n_chains, size=1))

    def _seeds(self, key, n):
        return np.random.SeedSequence(self.seed_, spawn_key=(key,)).spawn(n)
