"""Tests hold when they are started in the background, and leave no process behind."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from checks.processes import Child

TESTS = Path(__file__).parents[1]
# With a worker, as `make test` has them, and without.
WORKERS = [("-n", "1"), ()]
IN_BACKGROUND = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]


def pytest_in_background(tests, workers):
    """A command that runs tests as a shell does in the background: with SIGINT ignored."""
    options = ["-q", "-p", "no:cacheprovider", "-c", str(TESTS.parent / "pyproject.toml")]
    names = [str(TESTS / test) for test in tests]
    return [*IN_BACKGROUND, sys.executable, "-m", "pytest", *options, *workers, *names]


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("workers", WORKERS)
def test_interrupts_with_sigint_ignored(workers):
    tests = [
        "mcmc/test_interrupt.py::test_after_the_warmup[toy-threading-2-False]",
        "mcmc/test_interrupt.py::test_other_threads_take_no_signals",
    ]
    command = pytest_in_background(tests, workers)
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("workers", WORKERS)
def test_nothing_is_left_of_a_killed_pytest(tmp_path, workers):
    """Neither in the pool of workers of the test itself, nor in that of another process."""
    environment = {**os.environ, "SKBNP_TEST_LOGS": str(tmp_path)}

    def left():
        mine = ("SKBNP_TEST_LOGS", str(tmp_path))
        found = psutil.process_iter(["environ", "cmdline", "status"])
        return [
            process.info["cmdline"]
            for process in found
            if mine in (process.info["environ"] or {}).items()
            and process.info["status"] != psutil.STATUS_ZOMBIE
        ]

    process = subprocess.Popen(
        pytest_in_background(["checks/left_running.py"], workers),
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 3 or process.poll() is not None)
        assert process.poll() is None
        assert len(left()) > 5
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not left())


class TestAChild:
    """It ends with the test that started it, also with one that fails."""

    started = []

    def test_one(self):
        self.started.append(Child(time.sleep, 1000))
        assert self.started[0].is_alive()

    def test_another(self):
        assert self.started
        assert not self.started[0].is_alive()
