"""How each model is sampled: the values that the parameter ``sampler`` of its estimator takes."""

__all__ = []
