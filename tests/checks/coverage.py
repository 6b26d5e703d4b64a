"""The table of branch coverage by room, from the data of a plain run under `coverage`.

    coverage run -m pytest
    python -m tests.checks coverage

Only what Python runs is counted: numba compiles the kernels, so their lines count as missing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

FOLDERS = ("core", "transforms", "pipelines", "runners")


def room_of(path: str) -> str | None:
    """Return the room of a file of the package, such as "core/rows"; None for a file of no folder."""
    parts = PurePosixPath(path.replace("\\", "/")).parts
    for place in range(len(parts) - 1, 0, -1):
        if parts[place - 1] == "rocsteady" and parts[place] in FOLDERS:
            return "/".join((parts[place], parts[place + 1].removesuffix(".py")))
    return None


def rooms(report: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return how many lines and branches of each room were run, and how many there are.

    report  what `coverage json` writes; its paths are absolute, or begin with the package's folder
    """
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for path, file in report["files"].items():
        room, summary = room_of(path), file["summary"]
        if room is not None:
            found[room][0] += summary["covered_lines"] + summary["covered_branches"]
            found[room][1] += summary["num_statements"] + summary["num_branches"]
    return {room: (ran, total) for room, (ran, total) in sorted(found.items())}


def table(found: Mapping[str, tuple[int, int]]) -> str:
    """Return a line for each room: its share in percent, what ran, and what there is."""
    return "".join(
        f"{room:32} {100 * ran / max(total, 1):6.2f} % {ran:6} of {total:6}\n"
        for room, (ran, total) in found.items()
    )


def main() -> int:
    """Join the data of all processes, and print the table; return the exit status."""
    coverage = [sys.executable, "-m", "coverage"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "coverage.json"
        for words in (["combine", "-q"], ["json", "-q", "-o", str(file)]):
            ran = subprocess.run([*coverage, *words], check=False)
            # without new data files, the data that was joined before is read again
            if ran.returncode and words[0] == "json":
                return ran.returncode
        sys.stdout.write(table(rooms(json.loads(file.read_text("utf-8")))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
