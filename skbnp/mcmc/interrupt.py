"""Ctrl-C held back while chains are between two states that belong together."""

import signal
import threading


class HeldInterrupt:
    """Context in which the first Ctrl-C is only noted; a second one goes through.

    In any but the main thread, to which Python delivers signals, it does nothing. Inside another
    such context it leaves the signal to that one.
    """

    def __init__(self):
        self._requested = False
        self._handler = None
        self._around = None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            around = getattr(handler, "__self__", None)
            if isinstance(around, HeldInterrupt):
                self._around = around
            # Neither a handler set outside Python, nor SIG_IGN and SIG_DFL, can be called.
            elif callable(handler):
                self._handler = handler
                signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *exception):
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)

    @property
    def requested(self):
        """Whether Ctrl-C was pressed, in a context around this one included."""
        return self._requested or (self._around is not None and self._around.requested)

    def _note(self, signum, frame):
        if self._requested:
            self._handler(signum, frame)
        self._requested = True
