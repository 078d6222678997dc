"""Other processes to run a fit in, and to send signals to.

They are forked from a server that has imported the library, so that one starts in milliseconds.
What they run is named by its module, so it lives in `checks`.
"""

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
import uuid
from contextlib import suppress
from multiprocessing import forkserver
from unittest import mock

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["checks.watched"])
_started = []

_MARK = "SKBNP_TEST_RUN"
# It waits for the end of its standard input, which is that of the process with the other end.
# A process may be about to start another one when it is killed, so it looks until there is none.
_GUARD = """
import sys, time
mark = sys.argv[1:]
sys.stdin.read()
import psutil
is_left = True
while is_left:
    is_left = False
    for process in psutil.process_iter(["environ", "status"]):
        is_marked = (process.info["environ"] or {}).get(mark[0]) == mark[1]
        if is_marked and process.info["status"] != psutil.STATUS_ZOMBIE:
            is_left = True
            try:
                process.kill()
            except psutil.Error:
                pass
    time.sleep(0.05)
"""


class Child:
    """A process of its own group that calls a function and sends back what it returns."""

    def __init__(self, function, *args, **options):
        # The server looks for what to import on this path alone.
        with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, sys.path))):
            forkserver.ensure_running()
        self._receiver, sender = _context.Pipe(duplex=False)
        self._process = _context.Process(target=_run, args=(sender, function, args, options))
        self._process.start()
        _started.append(self)
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
        self.end()
        if error:
            raise RuntimeError(error)
        return value

    def end(self):
        """Kill whatever is left of it; pools of workers outlive their owner."""
        with suppress(ProcessLookupError):
            self.kill(group=True)
        self.wait()


def end_with_this_one():
    """Kill all that this process starts from now on once it is gone, however it ends.

    Workers of loky wait for minutes for an owner that was killed, and a fit does not look for it.
    """
    mark = uuid.uuid4().hex
    environment = {name: value for name, value in os.environ.items() if name != _MARK}
    guard = subprocess.Popen(
        [sys.executable, "-c", _GUARD, _MARK, mark],
        stdin=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    os.environ[_MARK] = mark
    atexit.register(guard.communicate)


def end_all():
    """Kill all that `Child` has started and that is still there."""
    while _started:
        _started.pop().end()


def _run(sender, function, args, options):
    os.setsid()
    try:
        answer = function(*args, **options), None
    except BaseException:
        answer = None, traceback.format_exc()
    sender.send(answer)
