"""Print the lowest versions that pyproject.toml allows, one a line, as constraints for pip.

    python .ci/lowest.py [EXTRA or LIBRARY...] > constraints.txt

A library is one of the extra "test", by itself. Names that only other libraries ask for stay free.
"""

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"([\w.-]+)>=([\d.]+)")


def lowest(extras=()):
    """Name -> lowest version of what is required, with extras or without."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"]]
    optional = project["optional-dependencies"]
    for extra in extras:
        alone = [one for one in optional["test"] if one.startswith(f"{extra}>=")]
        asked += optional.get(extra, alone)
    found = {}
    for requirement in asked:
        matched = REQUIREMENT.fullmatch(requirement)
        if not matched:
            raise ValueError(f"{requirement!r} is not of the form name>=version")
        name, version = matched.groups()
        if found.setdefault(name, version) != version:
            raise ValueError(f"{name} has two lowest versions, {found[name]} and {version}")
    return found


if __name__ == "__main__":
    for name, version in lowest(sys.argv[1:]).items():
        print(f"{name}=={version}")
