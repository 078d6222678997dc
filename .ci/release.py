"""Checks before a release is published; each ends with an error that says what is wrong.

python .ci/release.py v0.1.0         # is this tag that of the version, also where it is cited?
python .ci/release.py --sizes WHEEL...
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MOST_BYTES = 6_000_000


def version():
    """That of the package."""
    text = (ROOT / "skbnp" / "_version.py").read_text(encoding="utf-8")
    return re.search(r'__version__ = "(.+)"', text)[1]


def cited():
    """That of CITATION.cff."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    return re.search(r"^version: (.+)$", text, re.M)[1].strip("\"'")


def newest():
    """Version and what is said of it, of the first section of the changelog."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.search(r"^## (\S+) \((.+)\)$", text, re.M).groups()


def wrong_with(tag):
    """What keeps this tag from being a release, as sentences."""
    found = []
    if tag != f"v{version()}":
        found.append(f"the tag is {tag}, the version of the package {version()}")
    if re.search(r"[a-z]", version()):
        return found  # a release to try out; it is not cited
    if cited() != version():
        found.append(f"CITATION.cff says {cited()}, the package {version()}")
    if newest()[0] != version() or newest()[1] == "unreleased":
        found.append(f"the changelog begins with {' '.join(newest())}, not with {version()} (date)")
    return found


def too_large(wheels):
    """What keeps wheels from being published, as sentences."""
    sizes = {wheel.name: wheel.stat().st_size for wheel in wheels}
    return [f"{name} has {n / 1e6:.1f} MB" for name, n in sizes.items() if n > MOST_BYTES]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--sizes"]:
        wrong = too_large([Path(name) for name in sys.argv[2:]])
    else:
        wrong = wrong_with(*sys.argv[1:])
    sys.exit("\n".join(wrong) or 0)  # an empty text would be an error
