"""The command line on the files of an empty folder: in this process, or in one of its own."""

import gzip
import subprocess
import sys
from argparse import Namespace
from dataclasses import dataclass

import pytest

from skbnp.command_line import main, tables

GIVEN = {
    "columns": None,
    "drop": [],
    "index": None,
    "text": [],
    "marks": [],
    "sep": None,
    "decimal": ".",
    "encoding": "utf-8",
    "thousands": None,
    "no_header": False,
}


@dataclass
class Ended:
    """How a command has ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def skbnp(tmp_path, monkeypatch, capsys):
    """Run a command in this process, in the folder of the test."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        try:
            code = main([str(one) for one in arguments])
        except SystemExit as end:
            code = end.code
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture
def process(tmp_path):
    """Run a command in a process of its own, in the folder of the test."""

    def run(*arguments):
        command = [sys.executable, "-m", "skbnp", *map(str, arguments)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
        return Ended(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def refused(skbnp, tmp_path):
    """Check that a command refuses its input: in one line, with code 2, nothing written."""

    def run(*arguments):
        before = sorted(tmp_path.rglob("*"))
        ended = skbnp(*arguments)
        assert ended.code == 2, ended
        assert ended.out == ""
        assert ended.err.startswith(f"skbnp {arguments[0]}: ") and ended.err.count("\n") == 1
        assert "Traceback" not in ended.err
        assert sorted(tmp_path.rglob("*")) == before
        return ended.err

    return run


@pytest.fixture
def read(tmp_path):
    """A table from a text, or from a file that is there."""

    def read(content, name="a.csv", families=None, **given):
        if content is not None:
            with (gzip.open if name.endswith(".gz") else open)(tmp_path / name, "wb") as file:
                file.write(content.encode(given.get("encoding", "utf-8")))
        arguments = Namespace(**{**GIVEN, **given, "file": tmp_path / name})
        return tables.read_table(arguments, families)

    return read
