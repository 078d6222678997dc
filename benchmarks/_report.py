"""What the benchmark scripts share: clocks, summaries over repeats, Markdown."""

import time

import numpy as np


def seconds(function, *arguments):
    """Wall time of one call."""
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def cpu_seconds(function, *arguments):
    """Result of one call and the processor time it took, all threads together."""
    start = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - start


def mean_and_error(values):
    """Mean and its standard error over independent repeats."""
    values = np.asarray(values, dtype=float)
    return values.mean(), values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan


def markdown(rows):
    """A table of dicts as Markdown, numbers to three digits."""
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * len(rows[0])]
    for row in rows:
        cells = (f"{x:.3g}" if isinstance(x, float) else f"{x}" for x in row.values())
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
