"""CIBPBeliefNet beside the alternatives: holes, densities, cost.

Prints Markdown tables and writes those of each part as JSON beside this file. What the figures are
is said in the file of the part.
"""

from _cibp_belief_net_ablation import ablation
from _cibp_belief_net_cost import activations, cost
from _cibp_belief_net_density import density
from _cibp_belief_net_images import cells, halves
from _cibp_belief_net_importance import importance
from _command import command_line, run_parts

# Name -> function of (folder of the data, short form?) that returns {heading: rows of a table}.
PARTS = {
    "ablation": ablation,
    "halves": halves,
    "cells": cells,
    "density": density,
    "importance": importance,
    "activations": activations,
    "cost": cost,
}


def main():
    """Run, print, write."""
    parser = command_line(__doc__, "minutes, digits of scikit-learn alone", parts=PARTS)
    arguments = parser.parse_args()
    parts = {name: PARTS[name] for name in arguments.part}
    run_parts(__file__, parts, arguments.data, arguments.quick)


if __name__ == "__main__":
    main()
