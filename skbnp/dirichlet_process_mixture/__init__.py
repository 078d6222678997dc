"""Dirichlet process, Pitman-Yor and finite mixtures."""

from skbnp.dirichlet_process_mixture._estimator import DirichletProcessMixture

__all__ = ["DirichletProcessMixture"]
