"""Compiled leaves: random numbers, linear algebra, special functions. They know no model."""
