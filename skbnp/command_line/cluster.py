"""Cluster the rows of a table whose number of clusters nobody knows.

Few different numbers are levels, other small integers from 0 or 1 on are counts, all other numbers
are real, True and False, 0 and 1 are binary, everything else is categorical; --family says
otherwise. Empty cells are missing.

Beside FILE.csv come FILE_clusters.csv, the table with three more columns: the cluster of each row,
the probability that the row belongs to it, and novelty, that of being unlike all others; and a
picture, FILE_clusters.png.
"""

import re
import warnings
from pathlib import Path

import numpy as np

from skbnp.command_line.arguments import (
    REPORTS,
    add_chain_options,
    add_report_option,
    chain_options,
    check_ending,
    check_outputs,
    say,
    write_report,
    writing,
)
from skbnp.command_line.errors import BadInput, report_in_words, require, text_of
from skbnp.command_line.fitting import fit
from skbnp.command_line.tables import (
    add_table_options,
    check_columns,
    check_output_table,
    default_output,
    read_table,
    unpacked,
    with_columns,
    write_table,
)

INPUT = "FILE"
EXAMPLE = "skbnp cluster people.csv --index id --family visits=poisson --report people.html"
_PICTURES = (".png", ".svg", ".pdf", ".jpg")
# As the mixture has them, which is imported when it is fitted: --help stays quick.
_FAMILIES = ("gaussian", "bernoulli", "categorical", "poisson")
# Decimals of probabilities.
_DECIMALS = 4


def add_options(parser):
    """What this command understands."""
    add_table_options(parser)
    group = parser.add_argument_group("the clusters")
    group.add_argument(
        "--family",
        nargs="+",
        default=[],
        metavar="COLUMN=FAMILY",
        help=f"{', '.join(_FAMILIES[:-1])} or {_FAMILIES[-1]}",
    )
    group.add_argument(
        "--covariance",
        default="full",
        choices=["full", "diag", "spherical"],
        help="of the clusters in real columns (default: full); diag for more than twenty of them",
    )
    group = parser.add_argument_group("what is written")
    group.add_argument("--output", type=Path, metavar="FILE", help="the table with its clusters")
    group.add_argument(
        "--probabilities", action="store_true", help="with a column for each cluster"
    )
    group.add_argument(
        "--picture", type=Path, metavar="FILE", help=f"{', '.join(_PICTURES)} (default: .png)"
    )
    group.add_argument("--no-picture", action="store_true")
    add_report_option(group)
    group.add_argument(
        "--save", type=Path, metavar="FILE", help="the mixture, for DirichletProcessMixture.load"
    )
    add_chain_options(parser)


def run(arguments):
    """Read, fit, write, tell."""
    output, picture = _outputs(arguments)
    families = _families(arguments)
    table = read_table(arguments, families)
    check_columns(families, table.data, arguments.file)
    written = re.compile(r"cluster\d*|probability|novelty")
    for name in filter(written.fullmatch, table.frame.columns.astype(str)):
        raise BadInput(
            f"{table.path} has a column {name!r} already, as the answer may have: rename it"
        )
    mixture = _fitted(table, families, arguments)
    write_table(_with_clusters(table, mixture, arguments, output), output, table)
    say(arguments, f"wrote {output}")
    if picture is not None:
        _draw(table.data, mixture, picture)
        say(arguments, f"wrote {picture}")
    if arguments.save is not None:
        with writing(arguments.save):
            mixture.save(arguments.save)
        say(arguments, f"wrote {arguments.save}")
    if arguments.report is not None or not arguments.quiet:
        report = report_in_words(mixture.report())
        write_report(report, arguments)
        say(arguments, f"\n{text_of(report)}")


def _outputs(arguments):
    """Files for the table and the picture, or None for the picture, all outputs checked."""
    output = arguments.output or default_output(arguments.file, "clusters")
    picture = arguments.picture
    if arguments.no_picture:
        if picture is not None:
            raise BadInput("--picture and --no-picture contradict each other")
    else:
        picture = picture or unpacked(output).with_suffix(".png")
        require("matplotlib")
    check_output_table("--output", output)
    check_ending("--picture", picture, _PICTURES)
    check_ending("--report", arguments.report, REPORTS)
    written = {"--output": output, "--picture": picture}
    written |= {"--report": arguments.report, "--save": arguments.save}
    check_outputs(written, [arguments.file])
    return output, picture


def _families(arguments):
    """Family by column, as they are given."""
    families = {}
    for pair in arguments.family:
        name, _, family = pair.rpartition("=")
        if family not in _FAMILIES:
            of = ", ".join(_FAMILIES)
            raise BadInput(f"--family must be COLUMN=FAMILY, of {of}, got {pair!r}")
        families[name] = family
    return families


def _fitted(table, families, arguments):
    from skbnp.dirichlet_process_mixture import DirichletProcessMixture

    mixture = DirichletProcessMixture(
        family=families or "auto",
        covariance_type=arguments.covariance,
        **chain_options(arguments),
    )
    return fit(mixture, table.data, arguments, table.path)


def _with_clusters(table, mixture, arguments, path):
    """The table with a line for each row: its cluster, and how sure that is."""
    proba = mixture.predict_proba(table.data)
    columns = {
        "cluster": mixture.labels_,
        "probability": proba[np.arange(len(proba)), mixture.labels_],
        "novelty": mixture.novelty_proba(table.data),
    }
    if arguments.probabilities:
        columns |= dict(zip(mixture.get_feature_names_out(), proba.T, strict=True))
    return with_columns(
        table, {name: np.round(column, _DECIMALS) for name, column in columns.items()}, path
    )


def _draw(data, mixture, path):
    """Clusters in one or two real columns, if any, beside how often rows were together."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from skbnp.plot import ClusterDisplay, CoclusteringDisplay, save_figure, style

    real = np.flatnonzero(mixture.families_ == "gaussian")[:2]
    n_axes = 2 if len(real) else 1
    with plt.style.context(style()):
        figure, axes = plt.subplots(1, n_axes, figsize=(6 * n_axes, 5), squeeze=False)
        CoclusteringDisplay.from_estimator(mixture, ax=axes[0, -1])
        if len(real):
            ClusterDisplay.from_estimator(mixture, data, columns=real, ax=axes[0, 0])
    with writing(path), warnings.catch_warnings():
        # A letter that the font lacks is an empty box.
        warnings.filterwarnings("ignore", r"Glyph .* missing from")
        # Names of axes may reach beyond a figure of one panel.
        save_figure(figure, path, bbox_inches="tight")
    plt.close(figure)
