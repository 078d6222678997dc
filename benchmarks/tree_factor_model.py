"""TreeFactorModel beside the alternatives: one part for each kind of data, one for what it costs.

Prints Markdown tables and writes those of each part as JSON beside this file. What the figures are
is said in the file of the part.
"""

import argparse
import json
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from _report import markdown
from _tree_factor_model_cost import cost
from _tree_factor_model_faces import faces
from _tree_factor_model_patches import NORMALISATIONS, patches
from _tree_factor_model_photographs import photographs
from _tree_factor_model_populations import populations

# Name -> function of (folder of the data, short form?) that returns {heading: rows of a table}.
PARTS = {
    "patches": patches,
    "faces": faces,
    "photographs": photographs,
    "populations": populations,
    "cost": cost,
}


def main():
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--quick", action="store_true", help="fewer rows: hours become minutes")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=NORMALISATIONS,
        default=NORMALISATIONS,
        help="normalisations of the patches",
    )
    parser.add_argument("--splits", type=int, default=10, help="of the faces")
    arguments = parser.parse_args()
    parts = PARTS | {
        "patches": partial(patches, only=arguments.only),
        "faces": partial(faces, splits=arguments.splits),
    }
    if not arguments.data.exists():
        print(f"no {arguments.data}: left out is what needs it\n")
        parts = {"cost": cost}
    for name in parts:
        if name not in arguments.part:
            continue
        tables = parts[name](arguments.data, arguments.quick)
        for heading, rows in tables.items():
            print(f"\n### {heading}\n\n{markdown(rows)}\n", flush=True)
        path = Path(__file__).with_name(f"{Path(__file__).stem}_{name}.json")
        result = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "quick": arguments.quick, **tables}
        path.write_text(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
