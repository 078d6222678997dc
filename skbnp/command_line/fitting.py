"""A fit as the command line shows it: progress, warnings as notes, what an interrupt leaves."""

import sys
import warnings
from contextlib import contextmanager

from skbnp.command_line.errors import BadInput, in_words, refusing

# What is wrong with the chains, of which a note names so much.
_MOST_PROBLEMS = 2


def fit(model, X, arguments, path, ignored=()):
    """Fit an estimator to what a file holds.

    Parameters
    ----------
    model : estimator
    X : frame or ndarray
    arguments : argparse.Namespace
        Of a command that has the options of `add_chain_options`.
    path : Path
        The file, for messages.
    ignored : tuple of str
        Beginnings of warnings that are not passed on.

    Returns
    -------
    model : estimator

    Raises
    ------
    BadInput
        If the estimator refuses X, a parameter or the checkpoint.
    KeyboardInterrupt
        If Ctrl-C has cut the run short; finished draws are in the checkpoint.
    """
    show_progress(model, arguments)
    with notes(ignored):
        with refusing(path):
            model.fit(X)
        check_is_whole(model, arguments)
    return model


def check_is_whole(model, arguments):
    """Raise a KeyboardInterrupt if Ctrl-C has cut the run of a fitted model short."""
    posterior = model.posterior_
    if posterior.interrupted:
        kept = "nothing is kept: --checkpoint DIR would have kept them"
        if arguments.checkpoint is not None:
            kept = f"they are in {arguments.checkpoint}, and the same command goes on from there"
        raise KeyboardInterrupt(f"with {posterior.n_draws} draws of each chain; {kept}")


def show_progress(model, arguments):
    """A progress bar on the standard error, if that is a terminal."""
    if arguments.quiet or not sys.stderr.isatty():
        return
    try:
        import rich
    except ImportError:
        note("no progress bar, rich is not installed: pip install 'skbnp[cli]'")
        return
    try:
        from skbnp.progress import ProgressBar
    except ImportError as error:
        note(f"no progress bar: {error}")
        return
    rich.reconfigure(stderr=True)
    model.set_callbacks(ProgressBar())


# -- notes


@contextmanager
def notes(ignored=()):
    """Context that passes warnings on as notes at its end, unless they begin with one of these.

    Bad input and an interrupt are worth one line, which is not theirs.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        except (BadInput, KeyboardInterrupt):
            caught.clear()
            raise
        finally:
            said = [_short(one.message) for one in caught if issubclass(one.category, UserWarning)]
            for message in dict.fromkeys(said):
                if not message.startswith(tuple(ignored)):
                    note(in_words(message))


def note(message):
    """Print a line to the standard error."""
    print(f"note: {message}", file=sys.stderr, flush=True)


def _short(warning):
    """What a warning says; one of chains has a short form, with the first of their problems."""
    short = getattr(warning, "short", None)
    return str(warning) if short is None else short(_MOST_PROBLEMS)
