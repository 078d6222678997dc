import multiprocessing
import threading
import time

import joblib
import numpy as np
import pytest

from skbnp.mcmc.rows import available_threads, for_row_blocks, row_blocks


@pytest.mark.parametrize("n_rows", [0, 1, 1023, 1024, 1025, 5000])
def test_blocks_cover_all_rows_once(n_rows):
    blocks = row_blocks(n_rows)
    rows = [i for block in blocks for i in range(block.start, block.stop)]
    assert rows == list(range(n_rows))
    assert all(block.stop - block.start == 1024 for block in blocks[:-1])


def test_block_size():
    assert row_blocks(5, size=2) == [slice(0, 2), slice(2, 4), slice(4, 5)]


@pytest.mark.parametrize("n_threads", [1, 2, 3, 50])
def test_results_come_in_block_order(n_threads):
    def slow_at_first(start, stop):
        time.sleep(0.01 if start == 0 else 0)
        return start, stop

    results = for_row_blocks(slow_at_first, 3000, n_threads=n_threads)
    assert results == [(0, 1024), (1024, 2048), (2048, 3000)]


def test_sums_do_not_depend_on_threads():
    x = np.random.default_rng(0).normal(size=10_000)
    sums = [
        sum(for_row_blocks(lambda start, stop: x[start:stop].sum(), x.size, n_threads=n_threads))
        for n_threads in (1, 2, 5)
    ]
    assert sums[0] == sums[1] == sums[2]


def test_threads_are_used():
    met = threading.Barrier(2, timeout=5)  # broken, and an error, if one thread does all
    for_row_blocks(lambda start, stop: met.wait(), 2048, n_threads=2)


def test_no_rows():
    assert for_row_blocks(None, 0, n_threads=4) == []


@pytest.mark.parametrize("n_threads", [1, 3])
def test_exceptions_propagate(n_threads):
    def fail(start, stop):
        if start >= 1024:
            raise ZeroDivisionError(f"rows from {start}")

    with pytest.raises(ZeroDivisionError, match="rows from"):
        for_row_blocks(fail, 4096, n_threads=n_threads)


def test_all_threads_rest_after_an_exception():
    finished = []

    def first_fails(start, stop):
        if start == 0:
            raise ValueError
        time.sleep(0.05)
        finished.append(start)

    with pytest.raises(ValueError):
        for_row_blocks(first_fails, 2048, n_threads=2)
    assert finished == [1024]


def test_calls_nest():
    def inner(start, stop):
        return sum(for_row_blocks(lambda a, b: b - a, 3000, n_threads=2))

    assert for_row_blocks(inner, 3000, n_threads=2) == [3000] * 3


def _in_child(queue):
    queue.put(for_row_blocks(lambda start, stop: stop - start, 2048, n_threads=2))


@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork"
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_forked_process_has_threads_of_its_own():
    for_row_blocks(lambda start, stop: None, 2048, n_threads=2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,), daemon=True)
    child.start()
    assert queue.get(timeout=10) == [1024, 1024]
    child.join()


def test_available_threads(monkeypatch):
    monkeypatch.setattr("skbnp.mcmc.rows.cpu_count", lambda: 4)
    assert available_threads() == 1
    assert available_threads(1) == 1
    assert available_threads(3) == 3
    assert available_threads(100) == 4
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert available_threads() == 2
    assert available_threads(-1) == min(4, joblib.cpu_count())
