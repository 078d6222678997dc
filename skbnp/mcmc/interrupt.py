"""Ctrl-C held back while chains are between two states that belong together."""

import signal
import threading


class HeldInterrupt:
    """Context in which the first Ctrl-C is only noted; a second one goes through.

    In any but the main thread, to which Python delivers signals, and inside another such context
    it does nothing.

    Attributes
    ----------
    requested : bool
        Whether Ctrl-C was pressed.
    """

    def __init__(self):
        self.requested = False
        self._outer = None

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            # Neither a handler set outside Python, nor SIG_IGN and SIG_DFL, can be called.
            if callable(handler) and not isinstance(
                getattr(handler, "__self__", None), HeldInterrupt
            ):
                self._outer = handler
                signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *exception):
        if self._outer is not None:
            signal.signal(signal.SIGINT, self._outer)

    def _note(self, signum, frame):
        if self.requested:
            self._outer(signum, frame)
        self.requested = True
