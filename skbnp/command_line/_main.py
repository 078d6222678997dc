"""The entry point: finds the command, runs it, and turns what goes wrong into an exit code."""

import os
import sys
import traceback
from importlib import import_module

from skbnp._version import __version__
from skbnp.command_line.arguments import Parser, add_common_options
from skbnp.command_line.errors import BadInput

GOOD, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

# Each is a module beside this one: `INPUT`, `EXAMPLE`, `add_options(parser)` and
# `run(arguments)`.
COMMANDS = {
    "cluster": "clusters of the rows of a table",
    "impute": "fill the missing cells of a table",
    "inpaint": "fill the missing pixels of a picture, from the pixels that are left",
    "complete": "fill the missing pixels of a folder of pictures, from what they have in common",
}


def main(argv=None):
    """Run a command.

    Parameters
    ----------
    argv : list of str or None
        What follows the name of the program; None stands for that of this process.

    Returns
    -------
    code : int
        0 when all went well, 1 when the fit ended with an error, 2 for wrong usage or bad input,
        130 after Ctrl-C.

    Raises
    ------
    SystemExit
        With code 0 after ``--help`` and ``--version``, with code 2 for wrong usage.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Who read our output has left: nothing more can be said, at the end of Python either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED


def _run(argv):
    """Exit code of a command."""
    if not argv or argv[0] not in COMMANDS:
        _parser_of_all().parse_args(argv or ["--help"])
        raise AssertionError("unreachable: a command is required")
    name = argv[0]
    command = import_module(f"skbnp.command_line.{name}")
    arguments = _parser_of(name, command).parse_args(argv[1:])
    try:
        command.run(arguments)
    except KeyboardInterrupt as error:
        return _end(name, arguments, f"interrupted {error}".rstrip(), INTERRUPTED)
    except BadInput as error:
        return _end(name, arguments, str(error), BAD_INPUT)
    except BrokenPipeError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        return _end(name, arguments, f"ended with an error: {what}", FAILED)
    return GOOD


def _end(name, arguments, message, code):
    """Say in one line why a command ends."""
    if arguments.debug:
        traceback.print_exc()
    print(f"skbnp {name}: {' '.join(message.split())}", file=sys.stderr, flush=True)
    return code


def _parser_of(name, command):
    """The parser of one command."""
    parser = Parser(
        prog=f"skbnp {name}",
        usage=f"skbnp {name} {command.INPUT} [options]",
        description=command.__doc__,
        epilog=f"example:\n  {command.EXAMPLE}",
    )
    command.add_options(parser)
    add_common_options(parser)
    return parser


def _parser_of_all():
    """The parser that knows the names of the commands alone."""
    parser = Parser(
        prog="skbnp",
        usage="skbnp COMMAND FILE [options]",
        description="Bayesian nonparametrics for tables and pictures.",
        epilog="commands:\n"
        + "\n".join(f"  {name:9} {what}" for name, what in COMMANDS.items())
        + "\n\nskbnp COMMAND --help says more.\n\nexample:\n  skbnp cluster people.csv --drop id",
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="one of those below")
    parser.add_argument("--version", action="version", version=f"skbnp {__version__}")
    return parser
