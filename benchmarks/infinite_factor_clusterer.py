"""InfiniteFactorClusterer beside the alternatives: numbers of factors, clusters, starts, cost.

Prints Markdown tables and writes those of each part as JSON beside this file. What the figures are
is said in the file of the part.
"""

from _command import command_line, run_parts
from _infinite_factor_clusterer_clusters import clusters
from _infinite_factor_clusterer_cost import cost
from _infinite_factor_clusterer_figure2 import figure2
from _infinite_factor_clusterer_starts import starts

# Name -> function of (folder of the data, short form?) that returns {heading: rows of a table}.
PARTS = {"figure2": figure2, "clusters": clusters, "starts": starts, "cost": cost}


def main():
    """Run, print, write."""
    arguments = command_line(__doc__, "within ten minutes", parts=PARTS).parse_args()
    parts = {name: PARTS[name] for name in arguments.part}
    run_parts(__file__, parts, arguments.data, arguments.quick)


if __name__ == "__main__":
    main()
