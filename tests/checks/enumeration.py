"""All objects of a small size, for exact tests."""


def set_partitions(n):
    """Yield every partition of n items once, as a tuple of n labels in order of appearance.

    These are the restricted growth strings: the first label is 0 and no label exceeds the
    largest before it by more than 1. There are Bell(n): 1, 1, 2, 5, 15, 52, 203, 877, 4140, ...
    """
    if n == 0:
        yield ()
        return
    for labels in set_partitions(n - 1):
        for label in range(max(labels, default=-1) + 2):
            yield (*labels, label)


def canonical(labels):
    """The labels renamed 0, 1, ... in order of appearance, as a tuple of int."""
    name = {}
    return tuple(name.setdefault(label, len(name)) for label in labels)
