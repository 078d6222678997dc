"""TreeFactorModel beside the alternatives: one part for each kind of data, one for what it costs.

Prints Markdown tables and writes those of each part as JSON beside this file. What the figures are
is said in the file of the part.
"""

from functools import partial

from _command import command_line, run_parts
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
    parser = command_line(__doc__, "fewer rows: hours become minutes", parts=PARTS)
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
        parts = {"cost": cost}
    parts = {name: part for name, part in parts.items() if name in arguments.part}
    # Peers have all cores, as the chains have; the part on cost limits itself.
    run_parts(__file__, parts, arguments.data, arguments.quick, blas_threads=None)


if __name__ == "__main__":
    main()
