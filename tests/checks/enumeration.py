"""All partitions of a small set, for tests against exact sums."""


def set_partitions(n):
    """Yield every partition of 0..n-1 once, as a tuple of labels numbered by first row."""

    def extend(labels, n_blocks):
        if len(labels) == n:
            yield labels
            return
        for k in range(n_blocks + 1):
            yield from extend(labels + (k,), max(n_blocks, k + 1))

    yield from extend((), 0)


def canonical(labels):
    """The same partition with labels numbered by first row."""
    number = {}
    return tuple(number.setdefault(label, len(number)) for label in labels)
