"""Cases in other processes, so that one that crashes or hangs is told like any other finding.

``python tests/fuzz/search.py 1000`` examines the first thousand cases of every class.
"""

import argparse
import faulthandler
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from checks.processes import Child, end_with_this_one
from fuzz import files
from fuzz.cases import KINDS, case
from fuzz.oracle import faults

# A case takes a fraction of a second.
_SECONDS_PER_CASE = 60
_BATCH = 50

# Functions of the name of a class and a seed: what is wrong there, in words.
LOOKS = {
    "cases": lambda name, seed: faults(case(name, seed)),
    "files": files.damaged_file,
    "checkpoints": files.damaged_checkpoint,
    "forgeries": files.forged_file,
    "forged checkpoints": files.forged_checkpoint,
}


def findings(name, seeds, look="cases"):
    """What is wrong with a class, a list of (seed, words), where one of `LOOKS` looks at it."""
    seeds, found = list(seeds), []
    with tempfile.TemporaryDirectory() as directory:
        while seeds:
            batch, seeds = seeds[:_BATCH], seeds[_BATCH:]
            log = Path(directory) / "log"
            log.unlink(missing_ok=True)
            child = Child(_look, look, name, batch, log)
            try:
                child.result(timeout=_SECONDS_PER_CASE * (len(batch) + 1))
            except EOFError:
                # It died: go on after the case that killed it.
                child.wait()
            begun = _read(log)
            found += [(seed, word) for seed, words in begun for word in words or []]
            last, words = begun[-1]
            if words is None:
                trace = log.with_suffix(".trace").read_text()
                found.append((last, f"crash or hang: {trace[:2000]}"))
                seeds = [seed for seed in batch if seed > last] + seeds
    return found


def _read(log):
    """Each seed that was begun with what was found, None if the case did not end."""
    begun = {}
    for line in log.read_text().splitlines():
        seed, words = json.loads(line)
        begun[seed] = words
    return list(begun.items())


def _look(look, name, seeds, log):
    with open(log, "a") as file, open(log.with_suffix(".trace"), "w") as trace:
        faulthandler.enable(trace)
        for seed in seeds:
            print(json.dumps([seed, None]), file=file, flush=True)
            faulthandler.dump_traceback_later(_SECONDS_PER_CASE, exit=True, file=trace)
            print(json.dumps([seed, LOOKS[look](name, seed)]), file=file, flush=True)
            faulthandler.cancel_dump_traceback_later()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n_cases", type=int)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--look", choices=LOOKS, default="cases")
    parser.add_argument("--only", choices=KINDS, nargs="+", default=list(KINDS))
    options = parser.parse_args()
    end_with_this_one()
    n_found = 0
    for name in options.only:
        seeds = range(options.first, options.first + options.n_cases)
        began = time.monotonic()
        found = findings(name, seeds, options.look)
        n_found += len(found)
        seconds = time.monotonic() - began
        print(f"{name}: seeds {seeds[0]} to {seeds[-1]}, {seconds:.0f} s, {len(found)} findings")
        for seed, words in found:
            print(f"  seed {seed}: {words}")
        sys.stdout.flush()
    sys.exit(n_found > 0)


if __name__ == "__main__":
    main()
