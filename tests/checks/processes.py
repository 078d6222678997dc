"""Other processes to run a fit in, and to send signals to.

They are forked from a server that has imported the library, so that one starts in milliseconds.
What they run is named by its module, so it lives in `checks`.
"""

import multiprocessing
import os
import signal
import sys
import traceback
from contextlib import suppress
from multiprocessing import forkserver
from unittest import mock

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["checks.watched"])


class Child:
    """A process of its own group that calls a function and sends back what it returns."""

    def __init__(self, function, *args, **options):
        # The server looks for what to import on this path alone.
        with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))):
            forkserver.ensure_running()
        self._receiver, sender = _context.Pipe(duplex=False)
        self._process = _context.Process(target=_run, args=(sender, function, args, options))
        self._process.start()
        sender.close()

    @property
    def pid(self):
        return self._process.pid

    def is_alive(self):
        return self._process.is_alive()

    def kill(self, signum=signal.SIGKILL, group=False):
        """Send a signal, to all processes that this one has started too if they are wanted."""
        try:
            (os.killpg if group else os.kill)(self.pid, signum)
        except ProcessLookupError:
            if not self.is_alive():
                raise
            os.kill(self.pid, signum)  # so young that it has neither a group nor children

    def wait(self, timeout=60):
        """Wait for the end; return the exit code."""
        self._process.join(timeout)
        assert not self.is_alive(), "the process has not ended"
        return self._process.exitcode

    def result(self, timeout=60):
        """What the function returned; its exception as a RuntimeError with the traceback."""
        assert self._receiver.poll(timeout), "the process has not answered"
        value, error = self._receiver.recv()
        with suppress(ProcessLookupError):  # pools of workers outlive their owner
            self.kill(group=True)
        self.wait()
        if error:
            raise RuntimeError(error)
        return value


def _run(sender, function, args, options):
    os.setsid()
    try:
        answer = function(*args, **options), None
    except BaseException:
        answer = None, traceback.format_exc()
    sender.send(answer)
