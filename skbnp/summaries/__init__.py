"""Summaries of posterior draws and of what several tables say: pure functions of arrays."""

from skbnp.summaries.pooling import Pooled, pool

__all__ = ["Pooled", "pool"]
