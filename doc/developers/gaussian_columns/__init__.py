"""Independent Gaussian columns: the toy model of the page `add_a_model`."""

from gaussian_columns._estimator import GaussianColumns

__all__ = ["GaussianColumns"]
