"""How long a run takes, told to whoever waits for it."""

import math
import time


class Clock:
    """Counts sweeps, times blocks and tells the user how long it will take."""

    def __init__(self, n_chains, n_swept, n_sweeps, verbose, of_what=""):
        self.of_what = of_what
        self.n_chains = n_chains
        self.n_sweeps = n_sweeps
        self.verbose = verbose
        self.n_swept = self._n_at_start = n_swept
        self._started = self._last = time.perf_counter()
        self._after_first = None
        self._has_told = False

    def block_done(self, n_sweeps):
        """Count the sweeps of a block that ends now; return its duration."""
        now = time.perf_counter()
        seconds, self._last = now - self._last, now
        self.n_swept += n_sweeps
        if self._after_first is None:
            self._after_first = (now, self.n_swept)
        self._tell(now - self._started, self._remaining(now))
        return seconds

    def _remaining(self, now):
        """Expected seconds to the end; start-up is in the first block, so leave it out."""
        then, n_then = self._after_first
        if self.n_swept == n_then:
            then, n_then = self._started, self._n_at_start
        if self.n_swept == n_then:
            return math.inf
        return (now - then) / (self.n_swept - n_then) * (self.n_sweeps - self.n_swept)

    def _tell(self, elapsed, remaining):
        if self.verbose >= 1 and not self._has_told and self.n_swept - self._n_at_start >= 10:
            total = _duration(elapsed + remaining)
            print(
                f"{self.n_chains} chains of {self.n_sweeps - self._n_at_start} sweeps"
                f"{self.of_what}: about {total} in all",
                flush=True,
            )
            self._has_told = True
        if self.verbose >= 2:
            print(
                f"sweep {self.n_swept} of {self.n_sweeps}: {_duration(elapsed)}, "
                f"about {_duration(remaining)} left",
                flush=True,
            )


def _duration(seconds):
    """Seconds as a person says them."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
