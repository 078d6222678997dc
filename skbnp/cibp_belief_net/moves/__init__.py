"""Moves of the chains, one in each file; ``rows`` and ``_sampler`` have their order."""
