"""What both callbacks share: who shows, in which process, and how the news get there."""

import threading
from abc import ABC, abstractmethod
from pickle import UnpicklingError

from skbnp.mcmc.caller import warn

try:
    from sklearn.callback._transport import close_listener, open_listener, send
except ImportError as error:
    raise ImportError(
        "progress bars and logs need scikit-learn 1.9 or newer; verbose=1 prints where fits stand"
    ) from error

# What shows the fits of this process, by the address at which it listens. Not on the callback,
# which travels to worker processes.
_displays = {}
# scikit-learn keeps one connection of a process to each listener, and several fits of a nested
# search may run in threads of it.
_sending = threading.Lock()


class ProgressCallback(ABC):
    """Hands what fits tell by ``on_progress`` to a display of the process that began the run.

    A run is a fit of the outermost estimator, a search for one. The fits within it may run in other
    threads and processes; several at a time each have a name, the path of their tasks.
    """

    # Fits within searches and pipelines, at any depth.
    max_propagation_depth = None

    def __init__(self):
        # How to reach the display of each run that goes on.
        self._listeners = {}
        self._is_lost = False

    @abstractmethod
    def _make_display(self, name):
        """The display of a run of the estimator of that name: `tell`, `fit_done` and `close`."""

    def setup(self, estimator, context):
        """Begin to show a run."""
        self._is_lost = False
        listener = open_listener(lambda news: _show(listener.address, *news))
        # `teardown` follows whatever happens from here on.
        self._listeners[context.root_uuid] = listener
        _displays[listener.address] = self._make_display(context.estimator_name)

    def teardown(self, estimator, context):
        """End it, whether it has succeeded or not."""
        listener = self._listeners.pop(context.root_uuid, None)
        if listener is not None:
            close_listener(listener)
            display = _displays.pop(listener.address, None)
            if display is not None:
                display.close()

    def on_fit_task_begin(self, estimator, context):  # noqa: B027
        """Nothing: a fit is shown once it says where it stands."""

    def on_fit_task_end(self, estimator, context):
        """Let the display know of the end of a fit."""
        if context.task_name not in ("chain", "sweep"):
            self._send(context, "fit_done", _path(context))

    def on_progress(self, estimator, context, progress):
        """Show where a fit stands.

        Parameters
        ----------
        estimator : estimator instance
        context : sklearn.callback.CallbackContext
            Of the task that is its fit.
        progress : Progress
        """
        self._send(context, "tell", _path(context), _label(context), progress)

    def _send(self, context, *message):
        listener = self._listeners.get(context.root_uuid)
        if listener is None or self._is_lost:
            return
        try:
            with _sending:
                send(listener, message)
        except (OSError, EOFError, UnpicklingError) as error:
            # The fit matters more than the news of it.
            self._is_lost = True
            warn(f"the progress of a fit on another machine cannot be shown here: {error!r}")


def _show(address, method, *arguments):
    getattr(_displays[address], method)(*arguments)


def _path(context):
    """Places of a task and of those around it, from the outermost."""
    above = () if context.parent is None else _path(context.parent)
    return (*above, context.task_id)


def _label(context):
    """Which part of a run a fit is, in words; empty where it is all of it."""
    if context.parent is None:
        return ""
    above, task, siblings = _label(context.parent), context.source_task_name, context.parent
    if task is None:
        return above
    if siblings.max_subtasks and not siblings.sequential_subtasks:
        task = f"{task} {context.task_id + 1} of {siblings.max_subtasks}"
    return f"{above}{task}: "
