"""Chains that are in a sweep ask together, and nobody waits for one that is not."""

import threading

import pytest

from skbnp.collections.meeting import Meeting

# Seconds that a thread is waited for: what takes longer hangs.
LONG = 30.0


def run_all(*functions):
    """Each in a thread; all must come to an end. Returns the errors."""
    errors = []

    def guarded(function):
        try:
            function()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(one,), daemon=True) for one in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
    assert not any(thread.is_alive() for thread in threads), "somebody waits forever"
    return errors


class Log:
    """Serves requests and keeps the batches."""

    def __init__(self):
        self.batches = []

    def __call__(self, requests):
        self.batches.append(sorted(requests))
        return [10 * request for request in requests]


def test_requests_of_all_chains_go_together():
    log, start = Log(), threading.Barrier(3)
    meeting, answers = Meeting(log, n_chains=3), {}

    def chain(number):
        with meeting.sweep():
            start.wait()  # all are inside
            answers[number] = [meeting.ask(10 * t + number) for t in range(5)]

    assert run_all(*(lambda c=c: chain(c) for c in range(3))) == []
    assert log.batches == [[10 * t + c for c in range(3)] for t in range(5)]
    assert answers == {c: [10 * (10 * t + c) for t in range(5)] for c in range(3)}
    assert meeting.n_sweeps == 3


def test_nobody_waits_for_a_chain_that_has_left_or_failed():
    log, start = Log(), threading.Barrier(3)
    meeting = Meeting(log, n_chains=3)

    def stays():
        with meeting.sweep():
            start.wait()
            for t in range(4):
                assert meeting.ask(t) == 10 * t

    def leaves():
        with meeting.sweep():
            start.wait()
            meeting.ask(100)

    def fails():
        with meeting.sweep():
            start.wait()
            raise ArithmeticError("a chain is ill")

    errors = run_all(stays, leaves, fails)
    assert [type(error) for error in errors] == [ArithmeticError]
    assert log.batches == [[0, 100], [1], [2], [3]]


def test_the_error_of_a_batch_reaches_all_who_asked_and_the_next_is_served():
    start, n_served = threading.Barrier(2), []

    def serve(requests):
        n_served.append(len(requests))
        if len(n_served) == 1:
            raise OSError("no such row")
        return requests

    meeting = Meeting(serve, n_chains=2)

    def chain():
        with meeting.sweep():
            start.wait()
            with pytest.raises(OSError, match="no such row"):
                meeting.ask(1)
            assert meeting.ask(2) == 2

    assert run_all(chain, chain) == []
    assert n_served == [2, 2]


def test_an_interrupt_of_the_chain_that_serves_frees_all():
    start, seen = threading.Barrier(2), []

    def serve(requests):
        raise KeyboardInterrupt

    meeting = Meeting(serve, n_chains=2)

    def chain():
        try:
            with meeting.sweep():
                start.wait()
                meeting.ask(1)
        except KeyboardInterrupt:
            seen.append(True)

    assert run_all(chain, chain) == []
    assert seen == [True, True]


def test_a_chain_that_comes_while_others_are_served_asks_with_them_next():
    entered, go_on, log = threading.Event(), threading.Event(), Log()

    def serve(requests):
        if requests == [1]:
            entered.set()
            go_on.wait(LONG)
        return log(requests)

    meeting = Meeting(serve, n_chains=2)

    def first():
        with meeting.sweep():
            meeting.ask(1)
            meeting.ask(2)

    def second():
        entered.wait(LONG)
        with meeting.sweep():
            threading.Timer(0.05, go_on.set).start()
            meeting.ask(3)

    assert run_all(first, second) == []
    assert log.batches == [[1], [2, 3]]


def test_requests_of_no_sweep_are_served():
    log = Log()
    meeting = Meeting(log, n_chains=4)
    assert meeting.ask(7) == 70
    assert log.batches == [[7]]
