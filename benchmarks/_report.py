"""What the benchmark scripts share: clocks, rows on growth, summaries over repeats, Markdown."""

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


def shortest(function, *arguments, repeats, wall=False):
    """Time of the shortest of a few calls: other work on the machine only ever adds to a time."""
    clock, times = time.perf_counter if wall else time.process_time, []
    for _ in range(repeats):
        start = clock()
        function(*arguments)
        times.append(clock() - start)
    return min(times)


def growth_row(values, times, heading, unit=1.0, of=None):
    """Sizes, times in a unit (1e3: milliseconds), the slope of their logarithms, the last ratio.

    ``heading`` is that of the times; ``of`` is what took them, where the table has several.
    """
    return {
        "from .. to": ", ".join(f"{value}" for value in values),
        **({} if of is None else {"time of": of}),
        heading: ", ".join(f"{unit * one:.3g}" for one in times),
        "slope": float(np.polyfit(np.log(values), np.log(times), 1)[0]),
        "last doubling": times[-1] / times[-2],
    }


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
