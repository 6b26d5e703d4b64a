"""`python -m tests.checks`: the checks that the working tree's change can break. See `tests.checks`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from . import ci, minutes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.checks", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    whole = commands.add_parser("ci", help="what .ci/run does: the gate")
    whole.add_argument("--all", action="store_true", help="everything, without a budget")
    commands.add_parser("minutes", help="renew the table of minutes in CONTRIBUTING.md")
    words = parser.parse_args(arguments)
    if words.command == "ci":
        return ci.main("all" if words.all else "gate")
    if words.command == "minutes":
        return minutes.main()
    raise AssertionError(words)


if __name__ == "__main__":
    sys.exit(main())
