"""Squashed Gaussian units, the nodes of networks: activations given all else, rows given a draw."""
