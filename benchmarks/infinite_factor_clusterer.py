"""InfiniteFactorClusterer beside the alternatives: numbers of factors, clusters, starts, cost.

Prints Markdown tables and writes those of each part as JSON beside this file. What the figures are
is said in the file of the part.
"""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

from _infinite_factor_clusterer_clusters import clusters
from _infinite_factor_clusterer_cost import cost
from _infinite_factor_clusterer_figure2 import figure2
from _infinite_factor_clusterer_starts import starts
from _report import markdown
from threadpoolctl import threadpool_limits

# Name -> function of (folder of the data, short form?) that returns {heading: rows of a table}.
PARTS = {"figure2": figure2, "clusters": clusters, "starts": starts, "cost": cost}


def main():
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help="within ten minutes")
    arguments = parser.parse_args()
    if not arguments.data.exists():
        print(f"no {arguments.data}: left out is what needs it\n")
    for name in arguments.part:
        with threadpool_limits(1, user_api="blas"):
            tables = PARTS[name](arguments.data, arguments.quick)
        for heading, rows in tables.items():
            if heading != "figures":
                print(f"\n### {heading}\n\n{markdown(rows)}\n", flush=True)
        path = Path(__file__).with_name(f"{Path(__file__).stem}_{name}.json")
        result = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "quick": arguments.quick, **tables}
        path.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
