"""What is typed after a command: options that commands share, and checks of files to write."""

import argparse
import os
from contextlib import contextmanager
from pathlib import Path

from skbnp.command_line.errors import BadInput

REPORTS = (".html", ".htm")  # endings of a page


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def __init__(self, **options):
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options
        )

    def error(self, message):
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help says more)\n")


def whole(least):
    """A type of whole numbers from `least` on."""

    def read(text):
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be >= {least}, got {text}")
        return value

    read.__name__ = "whole number"  # for messages of argparse
    return read


def cores(text):
    """A number of cores, -1 for all of them."""
    value = int(text)
    if value == 0:
        raise argparse.ArgumentTypeError("must be 1 or more, or -1 for all cores, got 0")
    return value


cores.__name__ = "whole number"


def add_chain_options(parser, chains=None, warmup=None, draws=None):
    """Options of the sampling; a default of None is that of the model."""

    def shown(default):
        return "as the data ask for" if default is None else default

    group = parser.add_argument_group("sampling")
    group.add_argument(
        "--chains",
        type=whole(1),
        default=chains,
        metavar="N",
        help=f"independent chains (default: {shown(chains)})",
    )
    group.add_argument(
        "--warmup",
        type=whole(0),
        default=warmup,
        metavar="N",
        help=f"sweeps before the first draw (default: {shown(warmup)})",
    )
    group.add_argument(
        "--draws",
        type=whole(1),
        default=draws,
        metavar="N",
        help=f"draws per chain (default: {shown(draws)})",
    )
    group.add_argument(
        "--jobs", type=cores, default=-1, metavar="N", help="cores, -1: all (default)"
    )
    group.add_argument(
        "--seed", type=whole(0), default=0, metavar="N", help="the same seed, the same draws"
    )
    group.add_argument(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="keep the draws there; the same command goes on from them after Ctrl-C or a kill",
    )


def chain_options(arguments):
    """Parameters of an estimator, from the options of `add_chain_options`."""
    given = {
        "n_chains": arguments.chains,
        "n_warmup": arguments.warmup,
        "n_draws": arguments.draws,
        "n_jobs": arguments.jobs,
        "random_state": arguments.seed,
        "checkpoint": arguments.checkpoint,
    }
    return {name: value for name, value in given.items() if value is not None}


def add_report_option(group):
    """A page of what was found."""
    group.add_argument(
        "--report", type=Path, metavar="FILE", help="what was found and how sure it is, .html"
    )


def add_common_options(parser):
    """What every command understands."""
    parser.add_argument(
        "--quiet", action="store_true", help="say nothing but notes and errors; no progress bar"
    )
    parser.add_argument("--debug", action="store_true", help="show where an error came from")


def write_report(report, arguments):
    """Write the page that `--report` asks for, if it does."""
    if arguments.report is not None:
        page = report.to_html()
        with writing(arguments.report):
            arguments.report.write_text(page, encoding="utf-8")
        say(arguments, f"wrote {arguments.report}")


def say(arguments, text):
    """Print, unless nothing is to be said."""
    if not arguments.quiet:
        print(text, flush=True)


# -- files


@contextmanager
def writing(path):
    """Context in which a file that cannot be written is bad input."""
    try:
        yield
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error}") from error


def check_outputs(outputs, inputs):
    """Raise a BadInput unless these files can be written and are no input.

    Parameters
    ----------
    outputs : dict of str to Path or None
        By the option that names each.
    inputs : list of Path
    """
    taken = {path.resolve(): f"the input {path}" for path in inputs}
    for option, path in outputs.items():
        if path is None:
            continue
        for other, what in taken.items():
            is_link = path.exists() and other.exists() and path.samefile(other)
            if path.resolve() == other or is_link:
                raise BadInput(f"{option} {path} would overwrite {what}")
        taken[path.resolve()] = f"that of {option}"
        if path.is_dir():
            raise BadInput(f"{option} must be a file, and {path} is a folder")
        if not path.absolute().parent.is_dir():
            raise BadInput(f"{option} {path}: there is no folder {path.parent}")
        if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            raise BadInput(f"{option} {path} cannot be written: permission denied")


def check_ending(option, path, endings):
    """Raise a BadInput unless a path, where there is one, ends as its format is called."""
    if path is not None and path.suffix.lower() not in endings:
        raise BadInput(f"{option} must end in {' or '.join(endings)}, got {path}")


def check_is_there(path):
    """Raise a BadInput unless there is such a file or folder."""
    if not path.exists():
        raise BadInput(f"cannot read {path}: there is no such file")
