"""Run chains of any sampler and keep their draws. Arrays in, arrays out."""

from skbnp.mcmc.advance import NonFiniteLogJointError
from skbnp.mcmc.posterior import Posterior
from skbnp.mcmc.runner import run_chains

__all__ = ["NonFiniteLogJointError", "Posterior", "run_chains"]
