"""The table of minutes in CONTRIBUTING, made from the steps."""

from __future__ import annotations

from . import ROOT
from .schedule import Step
from .steps import ALL, GATE

PAGE = ROOT / "CONTRIBUTING.md"
_HEAD = "| step | gate | `--all` |\n|---|---|---|\n"


def table() -> str:
    """Return the rows of the table: each step with its minutes in the gate and in --all."""
    gate, whole = ({step.name: step for step in steps} for steps in (GATE, ALL))
    names = list(dict.fromkeys([*gate, *whole]))
    return "".join(f"| {name}{_mark(gate.get(name) or whole[name])} | {_cell(gate.get(name))} | "
                   f"{_cell(whole.get(name))} |\n" for name in names)  # fmt: skip


def filled(page: str) -> str:
    """Return a page with a new table of minutes."""
    before, head, after = page.partition(_HEAD)
    if not head:
        raise ValueError(f"the page has no table that begins with {_HEAD.splitlines()[0]}")
    lines = after.splitlines(keepends=True)
    rows = next((number for number, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return before + head + table() + "".join(lines[rows:])


def main() -> int:
    """Write the table; return the exit status."""
    PAGE.write_text(filled(PAGE.read_text("utf-8")), "utf-8")
    return 0


def _mark(step: Step) -> str:
    return " (beside the others)" if step.beside else ""


def _cell(step: Step | None) -> str:
    return f"{step.minutes:g}" if step else ""
