"""Workers of a cluster that die at a moment that is chosen."""

import os
import signal

from distributed import WorkerPlugin

from skbnp.collections import work


def kinds_of(request):
    """What kind of round a request is of: a set of names."""
    task = getattr(request.task, "keywords", {}).get("name")
    if task == "divide":
        return {"pilot" if one["looks"] else "coin" for one in request.argument["proposals"]}
    return {task or request.task.__name__}


class KillsOnce(WorkerPlugin):
    """A plugin of `distributed` by which the first worker in a round of a kind kills itself.

    Parameters
    ----------
    kind : {"summary_of_cell", "pass_rows", "pilot", "coin"}
    flag : str
        A file that is made by whoever is the first, so that it is the last as well.
    """

    def __init__(self, kind, flag):
        self.kind, self.flag = kind, flag

    def setup(self, worker):
        answer = work._part

        def dying(found, where, batch):
            if self.kind in set().union(*map(kinds_of, batch.requests)) and self._is_first():
                os.kill(os.getpid(), signal.SIGKILL)
            return answer(found, where, batch)

        work._part = dying

    def _is_first(self):
        try:
            with open(self.flag, "x"):
                return True
        except FileExistsError:
            return False
