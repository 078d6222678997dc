"""Sums over cells of rows that are the same to the last bit however cells are shared out.

Cells are leaves of a binary tree that depends on their number alone. Whoever has a run of
neighbouring cells adds what it can, and the rest is added where the runs meet.
"""

# Rows of a cell.
CELL = 16_384


class Node:
    """What came of cells index * 2**level to (index + 1) * 2**level, as far as there are such.

    Attributes
    ----------
    level, index : int
    value : object
    """

    __slots__ = ("index", "level", "value")

    def __init__(self, level, index, value):
        self.level, self.index, self.value = level, index, value


def fold(nodes, combine):
    """Combine neighbours that are the two halves of a node, as long as there are any.

    Parameters
    ----------
    nodes : iterable of Node
        In the order of their cells, without gaps.
    combine : callable
        ``combine(left, right)`` returns the value of both.

    Returns
    -------
    nodes : list of Node
    """
    found = []
    for node in nodes:
        while found and _are_halves(found[-1], node):
            left = found.pop()
            node = Node(node.level + 1, left.index // 2, combine(left.value, node.value))
        found.append(node)
    return found


def leaves(values, first_cell):
    """Nodes of single cells.

    Parameters
    ----------
    values : iterable
        One value a cell.
    first_cell : int
        Number of the first of them.
    """
    return [Node(0, first_cell + t, value) for t, value in enumerate(values)]


def total(nodes, combine):
    """The value of all cells, from nodes that hold all of them in their order."""
    found = fold(nodes, combine)
    # What is left are ever smaller nodes: the last have no right neighbour.
    value = found[-1].value
    for node in reversed(found[:-1]):
        value = combine(node.value, value)
    return value


def _are_halves(left, right):
    return left.level == right.level and left.index % 2 == 0 and right.index == left.index + 1
