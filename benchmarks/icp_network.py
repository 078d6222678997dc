"""ICPNetwork beside the alternatives: densities, predictions, cost.

Prints Markdown tables and writes those of each part as JSON beside this file. What the figures are
is said in the file of the part.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

from _icp_network_cost import cost
from _icp_network_density import METHODS, density
from _icp_network_sets import NAMES
from _icp_network_supervised import supervised
from _report import markdown
from threadpoolctl import threadpool_limits

# Name -> function of (folder of the data, short form?) that returns {heading: rows of a table}.
PARTS = {"density": density, "supervised": supervised, "cost": cost}


def main():
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help="within ten minutes")
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=METHODS,
        help="of the part density; figures of the others are those of the last run",
    )
    parser.add_argument("--sets", nargs="+", choices=NAMES, help="of the part density, likewise")
    arguments = parser.parse_args()
    if not arguments.data.exists():
        print(f"no {arguments.data}: left out is what needs it\n")
    for name in arguments.part:
        path = Path(__file__).with_name(f"{Path(__file__).stem}_{name}.json")
        options = {}
        if name == "density" and (arguments.methods or arguments.sets):
            options = {"methods": arguments.methods, "sets": arguments.sets or NAMES}
            if path.exists():
                options["known"] = json.loads(path.read_text())["figures"]
        with threadpool_limits(1, user_api="blas"):
            tables = PARTS[name](arguments.data, arguments.quick, **options)
        for heading, rows in tables.items():
            if heading != "figures":
                print(f"\n### {heading}\n\n{markdown(rows)}\n", flush=True)
        result = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "quick": arguments.quick, **tables}
        path.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
