"""What holds for every test: Ctrl-C is heard, and no process outlives the test that started it."""

import gc
import signal

import pytest

from checks import processes

pytest_plugins = ["checks.proofs", "checks.cpu_seconds"]


def pytest_configure(config):
    # A shell without job control starts what runs in the background with SIGINT ignored, and all
    # that is started from there inherits it. This runs in pytest and in the workers of xdist.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        processes.end_with_this_one()


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
    processes.end_all()


@pytest.fixture
def no_sampling(monkeypatch):
    def run_chains(*args, **kwargs):
        pytest.fail("sampling began")

    monkeypatch.setattr("skbnp.estimators.chains.run_chains", run_chains)
