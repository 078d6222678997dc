"""ICPNetwork beside the alternatives: densities, predictions, cost.

Prints Markdown tables and writes those of each part as JSON beside this file. What the figures are
is said in the file of the part.
"""

import json
from functools import partial

from _command import command_line, path_beside, run_parts
from _icp_network_cost import cost
from _icp_network_density import METHODS, density
from _icp_network_sets import NAMES
from _icp_network_supervised import supervised

# Name -> function of (folder of the data, short form?) that returns {heading: rows of a table}.
PARTS = {"density": density, "supervised": supervised, "cost": cost}


def main():
    """Run, print, write."""
    parser = command_line(__doc__, "within ten minutes", parts=PARTS)
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        help="of the part density; figures of the others are those of the last run",
    )
    parser.add_argument("--sets", nargs="+", choices=NAMES, help="of the part density, likewise")
    arguments = parser.parse_args()
    parts = {name: PARTS[name] for name in arguments.part}
    if "density" in parts and (arguments.methods or arguments.sets):
        options = {"methods": arguments.methods, "sets": arguments.sets or NAMES}
        path = path_beside(__file__, "density")
        if path.exists():
            options["known"] = json.loads(path.read_text())["figures"]
        parts["density"] = partial(density, **options)
    run_parts(__file__, parts, arguments.data, arguments.quick)


if __name__ == "__main__":
    main()
