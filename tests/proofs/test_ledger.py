"""Every proof has been run at its long size, with the sources as they are today."""

from pathlib import Path

import pytest

from checks.proofs import LEDGER, PROOFS, TESTS, Ledger, unproved

FILES = sorted(
    path.relative_to(TESTS).as_posix()
    for path in TESTS.rglob("test_*.py")
    if path.parent.name != "checks" and "\n@proof(" in path.read_text(encoding="utf-8")
)
FOLDERS = sorted({file.rpartition("/")[0] for file in FILES})


@pytest.mark.parametrize("folder", FOLDERS)
def test_proofs_are_in_the_ledger(request, folder):
    proofs = [
        one for one in request.config.stash[PROOFS].values() if one.name.startswith(f"{folder}/")
    ]
    collected = {one.name.partition("::")[0] for one in proofs}
    if missing := {file for file in FILES if file.startswith(f"{folder}/")} - collected:
        pytest.skip(f"not collected: {', '.join(sorted(missing))}")

    entries = Ledger(LEDGER).entries()
    without = unproved(proofs, entries)
    names = {one.name for one in proofs}
    gone = [name for name in sorted(entries) if name.startswith(f"{folder}/") and name not in names]
    assert not without, f"{len(without)} proofs are due, {without[0]} first; run: make prove"
    assert not gone, f"no proofs of these names; take their lines out of {LEDGER}: {gone}"


def test_smoke_proofs_are_there(request):
    proofs = request.config.stash[PROOFS].values()
    asked = {(one.path, one.function, name) for one in proofs for name in one.asked}
    there = {(one.path, one.function, one.parameters) for one in proofs}
    assert not asked - there


def test_the_ledger_is_sorted_and_within_the_limits():
    entries = Ledger(LEDGER).entries()
    lines = LEDGER.read_text(encoding="utf-8").splitlines() if LEDGER.exists() else []
    assert len(lines) == len(entries)
    assert list(entries) == sorted(entries)
    for name, entry in entries.items():
        large = entry["largest_z"] >= 4.0
        assert large == entry.get("wrong", False), f"{name}: |z| = {entry['largest_z']}"
        assert (TESTS / Path(name.partition("::")[0])).is_file(), f"{name}: no such file"
