"""Conjugate families: blocks of rows with running statistics, one family a file."""
