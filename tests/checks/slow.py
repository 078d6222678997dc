"""Parameters whose tests wait for ``make test-slow``."""

import pytest


def slow_where(parameters, is_slow):
    """The same parameters under the same ids; those for which ``is_slow`` holds are slow tests."""
    return [
        pytest.param(*(one if isinstance(one, tuple) else (one,)), marks=pytest.mark.slow)
        if is_slow(one)
        else one
        for one in parameters
    ]
