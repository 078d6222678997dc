"""Where chains meet: requests of all chains that are in a sweep are answered together."""

import threading
import time
from contextlib import contextmanager

# Seconds that chains wait for one that is between two sweeps: a part of what the last batch took,
# and at most so many.
_PATIENCE, _MOST_PATIENCE = 0.25, 1.0


class Meeting:
    """Collects requests and has them served in batches.

    A batch goes off as soon as every chain that is inside a sweep waits for an answer. A chain that
    leaves, fails or is interrupted is no longer inside, so nobody waits for it. What a chain is
    told does not depend on which requests came with its own.

    Parameters
    ----------
    serve : callable
        ``serve(requests)`` returns their values. It runs in the thread of one of those who asked.
    n_chains : int, default=1
        Chains that there are: for those between two sweeps the others wait a moment.
    """

    def __init__(self, serve, n_chains=1):
        self._serve, self.n_chains = serve, n_chains
        self._changed = threading.Condition()
        self._inside = set()
        self._pending = []
        self._is_serving = False
        self._seconds = 0.0
        self.n_sweeps = 0

    @contextmanager
    def sweep(self):
        """While a chain is in a sweep, in the thread that makes it."""
        me = threading.get_ident()
        with self._changed:
            self._inside.add(me)
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._inside.discard(me)
                self.n_sweeps += 1
                self._changed.notify_all()

    def ask(self, request):
        """The value of a request, from a thread that is in a sweep or from any other."""
        ticket = _Ticket(request)
        with self._changed:
            self._pending.append(ticket)
            self._changed.notify_all()
        # Whoever sees that nobody is missing serves all, then wakes the others.
        while self._waits(ticket):
            self._serve_pending()
        if ticket.error is not None:
            raise ticket.error
        return ticket.value

    def _waits(self, ticket):
        """Wait until the ticket is answered, False, or until this thread has to serve, True."""
        deadline = time.monotonic() + min(_PATIENCE * self._seconds, _MOST_PATIENCE)
        with self._changed:
            while True:
                if ticket.is_done:
                    return False
                left = None
                if not self._is_serving and self._nobody_is_missing():
                    left = deadline - time.monotonic()
                    if left <= 0 or len(self._inside) >= self.n_chains or not self._inside:
                        self._is_serving = True
                        return True
                self._changed.wait(left)

    def _nobody_is_missing(self):
        return self._inside <= {ticket.thread for ticket in self._pending}

    def _serve_pending(self):
        with self._changed:
            batch, self._pending = self._pending, []
        began, error = time.monotonic(), None
        try:
            values = self._serve([ticket.request for ticket in batch])
        except BaseException as raised:
            error, values = raised, [None] * len(batch)
        with self._changed:
            for ticket, value in zip(batch, values, strict=True):
                ticket.value, ticket.error, ticket.is_done = value, error, True
            self._seconds = time.monotonic() - began
            self._is_serving = False
            self._changed.notify_all()


class _Ticket:
    """A request on its way."""

    def __init__(self, request):
        self.request, self.thread = request, threading.get_ident()
        self.value = self.error = None
        self.is_done = False
