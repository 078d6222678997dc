"""The moves of a chain, one class each, with its scratch; ``_sampler`` makes them in order."""
