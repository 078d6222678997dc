"""The moves of the deep scale model: its layers, and the scalars of the first."""
