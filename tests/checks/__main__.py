"""`python -m tests.checks`: the checks that the working tree's change can break. See `tests.checks`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import ROOT, changed, ci, coverage, lines, minutes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.checks", description=__doc__)
    parser.add_argument("--since", metavar="REV", help="also what commits changed since the branch left REV")
    parser.add_argument("--list", action="store_true", help="print each test and why, and run nothing")
    commands = parser.add_subparsers(dest="command")
    whole = commands.add_parser("ci", help="what .ci/run does: the gate")
    whole.add_argument("--all", action="store_true", help="everything, without a budget")
    commands.add_parser("coverage", help="the branch coverage of each room, from the data of `coverage run`")
    commands.add_parser("lines", help="count the lines by room")
    commands.add_parser("minutes", help="renew the table of minutes in CONTRIBUTING.md")
    words = parser.parse_args(arguments)
    if words.command is not None and (words.since is not None or words.list):
        parser.error(f"--since and --list are for the checks without a command, and not for {words.command}")
    if words.command == "ci":
        return ci.main("all" if words.all else "gate")
    if words.command == "coverage":
        return coverage.main()
    if words.command == "lines":
        return lines.main(ROOT)
    if words.command == "minutes":
        return minutes.main()
    return changed.main(words.since, only_list=words.list)


if __name__ == "__main__":
    sys.exit(main())
