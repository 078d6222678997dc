"""Moves of one layer of sparse loadings: each leaves its posterior given all else as it is."""
