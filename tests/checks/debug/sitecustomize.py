"""What each process of ``make test-debug`` does first: reports nobody would see go to files.

Sanitizers write to the standard error stream, which pytest captures and a crash takes along; an
exception in a kernel that cannot raise is printed there and ignored. Both end up in
``$SKBNP_REPORTS``, from worker processes too, and any file there fails the run.
"""

import ctypes
import os
import sys
import traceback

REPORTS = os.environ["SKBNP_REPORTS"]

for library in os.environ.get("LD_PRELOAD", "").split():
    # Each runtime has a path of its own; the flag log_path sets only that of the first.
    set_report_path = ctypes.CDLL(library)["__sanitizer_set_report_path"]
    set_report_path(os.path.join(REPORTS, "sanitizer").encode())


def report(unraisable):
    """Keep what was ignored in a kernel: Cython says in which function."""
    sys.__unraisablehook__(unraisable)
    if "skbnp" in repr(unraisable.object):
        with open(os.path.join(REPORTS, f"ignored.{os.getpid()}"), "a") as file:
            print(f"ignored in {unraisable.object}:", file=file)
            traceback.print_exception(unraisable.exc_value, file=file)


sys.unraisablehook = report
