"""Dirichlet process, Pitman-Yor and finite mixtures."""

from skbnp.dirichlet_process_mixture._estimator import DirichletProcessMixture
from skbnp.dirichlet_process_mixture._sampler_settings import MixtureSampler

__all__ = ["DirichletProcessMixture", "MixtureSampler"]
