"""Nonparametric prior processes, one module each: laws, samplers and moments."""
