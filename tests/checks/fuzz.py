"""Property-based tests: few examples and always the same ones, or many new ones on demand."""

import os

from hypothesis import HealthCheck, settings

# How many examples of each property; `make fuzz` sets it.
N_EXAMPLES = int(os.environ.get("SKBNP_FUZZ", 0))

some_examples = settings(
    max_examples=N_EXAMPLES or 25,
    derandomize=not N_EXAMPLES,
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
