"""What holds for every test: Ctrl-C is heard, and no process outlives the test that started it."""

import gc
import os
import re
import signal

import pytest

from checks.callbacks import HAS_CALLBACKS

# Tests that kill and interrupt need other processes, which are made and ended by POSIX means.
POSIX = os.name == "posix"
if POSIX:
    from checks import processes

OF_POSIX = re.compile(r"^from checks(?:\.| import )(?:processes|watched|left_running)\b", re.M)

pytest_plugins = ["checks.proofs", "checks.cpu_seconds"]


def pytest_configure(config):
    # A shell without job control starts what runs in the background with SIGINT ignored, and all
    # that is started from there inherits it. This runs in pytest and in the workers of xdist.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if POSIX and not hasattr(config, "workerinput"):
        processes.end_with_this_one()


# Of progress alone, which is told by callbacks. Those of scikit-learn came with 1.9.
OF_CALLBACKS = re.compile(r"(?:tests/progress/.*|test_callbacks|test_progress)\.py$")


def pytest_ignore_collect(collection_path):
    if not HAS_CALLBACKS and OF_CALLBACKS.search(collection_path.as_posix()):
        return True
    if not POSIX and collection_path.suffix == ".py":
        text = collection_path.read_text(encoding="utf-8")
        return bool(OF_POSIX.search(text)) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    # Fifteen thousand tests stay until the end: there is nothing to find among them, then or later.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    if POSIX:
        processes.end_all()


@pytest.fixture
def no_sampling(monkeypatch):
    def run_chains(*args, **kwargs):
        pytest.fail("sampling began")

    monkeypatch.setattr("skbnp.estimators.chains.run_chains", run_chains)
