"""Gaussian networks of unknown structure under the Indian chefs process."""
