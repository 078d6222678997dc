"""CPU seconds of each test, of processes that it has started too: pytest's ``--cpu-seconds=2``.

Wall time says little where tests share two cores with one another. A run with the option fails when
a test takes more than that many CPU seconds, and lists those that do. What a test is the first to
ask for, a fixture of a session say, is told apart: another test would have paid for it.
"""

import os

import pytest

SHARED = "setup and teardown"


def pytest_addoption(parser):
    parser.addoption(
        "--cpu-seconds", type=float, metavar="N", help="fail when a test takes more CPU seconds"
    )


def pytest_configure(config):
    if (limit := config.getoption("cpu_seconds")) is None:
        return
    config.pluginmanager.register(Meter(), "meter of CPU seconds")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Judge(limit), "judge of CPU seconds")


def spent():
    """CPU seconds of this process and of those it has waited for."""
    return sum(os.times()[:4])


class Meter:
    """Adds what each phase of a test took to its report, in the process that runs it."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item):
        return (yield from self._measured(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item):
        return (yield from self._measured(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item):
        return (yield from self._measured(item))

    def _measured(self, item):
        start = spent()
        try:
            return (yield)
        finally:
            item.stash[_TAKEN] = spent() - start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item):
        report = yield
        report.cpu_seconds = item.stash.get(_TAKEN, 0.0)
        return report


_TAKEN = pytest.StashKey()


class Judge:
    """Collects the reports of all workers and says which tests took too long."""

    def __init__(self, limit):
        self.limit, self.calls, self.shared = limit, {}, {}

    def pytest_runtest_logreport(self, report):
        kind = self.calls if report.when == "call" else self.shared
        kind[report.nodeid] = kind.get(report.nodeid, 0.0) + getattr(report, "cpu_seconds", 0.0)

    def slow(self, kind):
        """Those above the limit, the slowest first."""
        found = [(seconds, name) for name, seconds in kind.items() if seconds > self.limit]
        return sorted(found, reverse=True)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        if self.slow(self.calls) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        for seconds, name in self.slow(self.calls):
            terminalreporter.write_line(f"{seconds:7.2f} CPU seconds: {name}")
        for seconds, name in self.slow(self.shared):
            terminalreporter.write_line(f"{seconds:7.2f} CPU seconds, {SHARED}: {name}")
        by_file = {}
        for kind in (self.calls, self.shared):
            for name, seconds in kind.items():
                file = name.partition("::")[0]
                by_file[file] = by_file.get(file, 0.0) + seconds
        for file, seconds in sorted(by_file.items(), key=lambda one: -one[1])[:20]:
            terminalreporter.write_line(f"{seconds:7.1f} CPU seconds in {file}")
        total = sum(by_file.values())
        terminalreporter.write_line(
            f"{len(self.slow(self.calls))} of {len(self.calls)} tests took more than "
            f"{self.limit:g} CPU seconds; {total:.0f} in all"
        )
