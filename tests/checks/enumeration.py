"""All objects of a small size, for exact tests."""

from itertools import product


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


def nested_partitions(n, depth):
    """Yield every tree of paths of n items once, as a tuple of n paths of ``depth`` labels.

    Children are numbered below each parent in order of appearance. There are 60 of 4 items with
    two levels, 12 of 3.
    """
    for labels in set_partitions(n):
        if depth == 1:
            yield tuple((label,) for label in labels)
            continue
        blocks = [[i for i in range(n) if labels[i] == k] for k in range(max(labels) + 1)]
        for tails in product(*(nested_partitions(len(block), depth - 1) for block in blocks)):
            paths = [None] * n
            for k, (block, tail) in enumerate(zip(blocks, tails, strict=True)):
                for i, rest in zip(block, tail, strict=True):
                    paths[i] = (k, *rest)
            yield tuple(paths)


def canonical_paths(paths):
    """The children renamed 0, 1, ... below each parent in order of appearance, as tuples."""
    name = {}
    renamed = []
    for path in paths:
        out = ()
        for label in path:
            siblings = name.setdefault(out, {})
            out = (*out, siblings.setdefault(label, len(siblings)))
        renamed.append(out)
    return tuple(renamed)
