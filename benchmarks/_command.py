"""The command line of the scripts, the parts that they run, and the files that they write."""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

from _report import markdown
from threadpoolctl import threadpool_limits

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
# Chains of an estimator that only shows that a script runs.
SHORT = {"n_chains": 2, "n_warmup": 20, "n_draws": 20}


def command_line(doc, quick, *, parts=None, reads_data=True):
    """A parser with the options that every script has; a script adds its own.

    Parameters
    ----------
    doc : str
        That of the script; its first line is shown.
    quick : str
        What the short form is.
    parts : dict, optional
        By name; ``--part`` chooses some of them.
    reads_data : bool
        Otherwise ``--data`` is taken, so that one command serves all scripts, and is not used.
    """
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    if parts is not None:
        parser.add_argument("--part", nargs="+", choices=parts, default=list(parts))
    said = "folder of the data sets" if reads_data else "not used: all data are at hand"
    parser.add_argument("--data", type=Path, default=DATA, help=said)
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser


def run_parts(script, parts, data, quick, blas_threads=1):
    """Print the tables of each part, and write them beside the script.

    A part is a function of the folder of the data and of whether the short form is asked for. It
    returns {heading: rows of a table}; "figures" are written and not printed. Without a number of
    ``blas_threads`` there are as many as elsewhere.
    """
    if not data.exists():
        print(f"no {data}: left out is what needs it\n")
    for name, part in parts.items():
        with threadpool_limits(blas_threads, user_api="blas"):
            tables = part(data, quick)
        for heading, rows in tables.items():
            if heading != "figures":
                print(f"\n### {heading}\n\n{markdown(rows)}\n", flush=True)
        write(path_beside(script, name), quick, tables)


def path_beside(script, part=None):
    """Where the results of a script are written, or those of one of its parts."""
    script = Path(script)
    return script.with_name(f"{script.stem}_{part}.json" if part else f"{script.stem}.json")


def write(path, quick, tables):
    """The tables as JSON, with the day and whether they are those of the short form."""
    result = {"date": f"{datetime.now(UTC):%Y-%m-%d}", "quick": quick, **tables}
    path.write_text(json.dumps(result, indent=1) + "\n")
