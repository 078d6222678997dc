"""Dirichlet process, Pitman-Yor and finite mixtures."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skbnp.dirichlet_process_mixture._estimator import DirichletProcessMixture
    from skbnp.dirichlet_process_mixture._sampler_settings import MixtureSampler

__all__ = ["DirichletProcessMixture", "MixtureSampler"]


def __getattr__(name):
    # Workers that read rows need kernels of this package, and nothing that estimators import.
    if name == "DirichletProcessMixture":
        from skbnp.dirichlet_process_mixture._estimator import DirichletProcessMixture as found
    elif name == "MixtureSampler":
        from skbnp.dirichlet_process_mixture._sampler_settings import MixtureSampler as found
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
