"""Every benchmark script can be loaded, and has the options that `make bench-all` gives it."""

import json
import re
import sys
from datetime import date
from types import SimpleNamespace

import pytest

from checks.scripts import BENCHMARKS
from checks.scripts import load_benchmark as load

SCRIPTS = sorted(path.stem for path in BENCHMARKS.glob("[!_]*.py"))
READS_DATA = re.compile(r"\b(arguments|args|options)\.data\b")


def help_of(name, monkeypatch, capsys):
    """What a script says of its options, on one line; nothing runs."""
    module = load(name, monkeypatch)
    monkeypatch.setattr(sys, "argv", [f"{name}.py", "--help"])
    with pytest.raises(SystemExit) as stopped:
        module.main()
    assert stopped.value.code == 0
    return " ".join(capsys.readouterr().out.split())


def test_there_are_scripts():
    assert len(SCRIPTS) > 25 and {"advice", "overview", "whole_numbers"} <= set(SCRIPTS)


@pytest.mark.parametrize("name", SCRIPTS)
def test_options_of_all(monkeypatch, capsys, name):
    shown = help_of(name, monkeypatch, capsys)
    assert re.search(r" --quick \w", shown), "its short form is not said"
    assert re.search(r" --data DATA \w", shown)
    source = (BENCHMARKS / f"{name}.py").read_text(encoding="utf-8")
    assert ("--data DATA not used" in shown) != bool(READS_DATA.search(source))


def test_every_script_has_the_shared_parser():
    for path in BENCHMARKS.glob("*.py"):
        if path.stem not in ("_command", "_compare_builds"):  # the latter has two folders to name
            assert "ArgumentParser(" not in path.read_text(encoding="utf-8"), path.stem


def test_command_line(monkeypatch, tmp_path):
    command = load("_command", monkeypatch)
    parts = {"one": None, "two": None}
    parser = command.command_line("First line.\n\nMore.", "less", parts=parts)
    given = parser.parse_args([])
    assert (given.part, given.data, given.quick) == (["one", "two"], command.DATA, False)
    assert command.DATA == BENCHMARKS.parent.parent / "shared" / "data"
    given = parser.parse_args(["--part", "two", "--data", str(tmp_path), "--quick"])
    assert (given.part, given.data, given.quick) == (["two"], tmp_path, True)
    assert parser.description == "First line."
    with pytest.raises(SystemExit):
        parser.parse_args(["--part", "three"])
    assert not hasattr(command.command_line("Line.", "less").parse_args([]), "part")


@pytest.mark.parametrize("there", [True, False])
def test_parts_are_printed_and_written(monkeypatch, capsys, tmp_path, there):
    command = load("_command", monkeypatch)
    asked, data = [], tmp_path if there else tmp_path / "nowhere"

    def part(data, quick):
        asked.append((data, quick))
        return {"a table": [{"x": 0.12345}], "figures": [{"y": 2.0}]}

    command.run_parts(tmp_path / "script.py", {"one": part, "two": part}, data, True)
    assert asked == [(data, True)] * 2
    shown = capsys.readouterr().out
    assert shown.count("### a table\n\n| x |\n|---|\n| 0.123 |") == 2 and "figures" not in shown
    assert (f"no {data}: left out" in shown) != there
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "script_one.json",
        "script_two.json",
    ]
    found = json.loads((tmp_path / "script_one.json").read_text())
    assert date.fromisoformat(found.pop("date")) and found.pop("quick") is True
    assert found == {"a table": [{"x": 0.12345}], "figures": [{"y": 2.0}]}
    assert command.path_beside(tmp_path / "script.py") == tmp_path / "script.json"


def test_shortest(monkeypatch):
    report = load("_report", monkeypatch)
    now = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0])
    other = iter([0.0, 5.0])
    clocks = SimpleNamespace(process_time=lambda: next(now), perf_counter=lambda: next(other))
    monkeypatch.setattr(report, "time", clocks)
    asked = []
    assert report.shortest(asked.append, "x", repeats=3) == 1.0 and asked == ["x"] * 3
    assert report.shortest(asked.append, "x", repeats=1, wall=True) == 5.0


def test_rows_on_growth(monkeypatch):
    report = load("_report", monkeypatch)
    row = report.growth_row([10, 20, 40], [0.001, 0.004, 0.016], "sweep, ms", 1e3)
    assert list(row) == ["from .. to", "sweep, ms", "slope", "last doubling"]
    assert (row["from .. to"], row["sweep, ms"]) == ("10, 20, 40", "1, 4, 16")
    assert row["slope"] == pytest.approx(2.0) and row["last doubling"] == pytest.approx(4.0)
    row = report.growth_row([1, 2], [3.0, 3.0], "s", of="births")
    assert list(row)[:3] == ["from .. to", "time of", "s"] and row["time of"] == "births"
