"""Squashed Gaussian units of networks: their weights, activations and precisions."""
