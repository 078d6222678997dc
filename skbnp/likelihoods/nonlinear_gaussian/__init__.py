"""Squashed Gaussian units, the layers of belief networks: their activations given all else."""
