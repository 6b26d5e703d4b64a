"""The exit status of a job, and the rules of --fail-if that decide it.

A script sees from the exit status of a job that ran to its end whether rows can be trusted:

    0  Events were applied, or the input has no records.
    1  A file of a followed folder could not be read.
    3  Records came, and none of them was applied. Records of an imported state do not count here.
    4  Events were applied, and a rule of `--fail-if` holds for the counters of the job.

Outputs are written in all these cases.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from ...core.errors import ConfigError
from ...core.process.console import say
from ...core.process.near_names import near_names
from ...transforms.beam.metrics import COUNTERS
from ..sums import EVENTS, LABELS, own_applied, own_waiting
from ..words import counted

FILE_UNREAD = 1
NOTHING_APPLIED = 3
RULE_HOLDS = 4

_COMPARES: dict[str, Callable[[Decimal, Decimal], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
}  # fmt: skip

_RULE = re.compile(r"\s*([a-z_ ]*[a-z_])\s*(>=|<=|>|<)\s*(\d+(?:\.\d+)?)\s*(%?)\s*", re.IGNORECASE)

_WORDS = {
    "read": "events_read",
    "applied": "events_applied",
    "invalid": "dead_letters",
    "duplicates": "duplicate",
    "rows": "rows_written",
}
"""The names of counters in the summary line or in dead letters, by the counter's own name, if both differ."""

_SHARES = frozenset(
    (
        "events_applied", "dead_letters", "late", "duplicate", "unmatched", "events_tied", "labels_used",
        "labels_invalid", "labels_late", "labels_duplicate", "labels_second", "labels_unmatched",
    )
)  # fmt: skip
"""Counters that a rule may compare as percentages: each counts a record at most once."""


class FailRule(NamedTuple):
    """A comparison of a counter with a number; the exit status is 4 if the comparison holds.

    percent  whether the number is a percentage of the events read, or for label counters of the labels read
    """

    text: str
    counter: str
    compare: str
    number: Decimal
    percent: bool

    @property
    def _whole(self) -> str:
        return "labels_read" if self.counter.startswith("labels") else "events_read"

    def holds(self, counts: Mapping[str, int]) -> bool:
        """Return whether the rule holds, in exact arithmetic. A percentage of zero records never holds."""
        count, limit = Decimal(counts.get(self.counter, 0)), self.number
        if self.percent:
            whole = counts.get(self._whole, 0)
            if not whole:
                return False
            count, limit = count * 100, limit * whole
        return _COMPARES[self.compare](count, limit)

    def said(self, counts: Mapping[str, int]) -> str:
        """Return a sentence with the values that the rule compared."""
        count, whole = counts.get(self.counter, 0), counts.get(self._whole, 0)
        told = f"{self.counter} is {count:,}"
        if self.percent:
            told += f" of {whole:,} {self._whole.replace('_', ' ')}, which is {100 * count / whole:.3g}%"
        return f"--fail-if {self.text!r}: {told}"


def parse_fail_rule(text: str) -> FailRule:
    """Read a rule, such as "dead_letters > 1%". Raises ConfigError for a text that is no rule.

    >>> rule = parse_fail_rule("dead letters > 1%")
    >>> rule.counter, rule.holds({"events_read": 200, "dead_letters": 2}), rule.holds({"dead_letters": 3})
    ('dead_letters', False, False)
    """
    found = _RULE.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"--fail-if {text!r}: give COUNTER > NUMBER, or >=, < or <=, or a percentage, such as "
            "'dead_letters > 1%'"
        )
    word = "_".join(found[1].lower().split())
    counter = _WORDS.get(word, word)
    if counter not in COUNTERS:
        near = near_names(word, [*COUNTERS, *_WORDS])
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(_WORDS)} and others:"
        raise ConfigError(f"--fail-if {text!r}: {hint} docs/reference/metrics.md has all counters")
    if found[4] and counter not in _SHARES:
        raise ConfigError(
            f"--fail-if {text!r}: {counter} is no share of the records that are read; give a number without %"
        )
    return FailRule(text, counter, found[2], Decimal(found[3]), bool(found[4]))


def _applied(counts: Mapping[str, int], applied: str) -> int:
    """Return how many records were applied, without those of an imported state."""
    if counts.get(EVENTS.taken_up, 0) or counts.get(LABELS.taken_up, 0):
        return own_applied(counts)
    return counts.get(applied, 0)


def status_of(
    counts: Mapping[str, int],
    rules: Sequence[FailRule],
    applied: str = "events_applied",
    *,
    goes_on: bool = False,
    unread: int = 0,
) -> int:
    """Return the exit status of a job by its counters, and print on stderr why the status is not 0.

    applied  the name of the counter of applied events: "events_applied", "instances_tested"
    goes_on  whether the job was stopped, not ended: records may then wait in its state
    unread   the number of files that could not be read to their ends

    Records of the job that are kept in an export are neither applied nor lost. Events of an imported state,
    applied or kept, do not make the status 0.
    """
    came = counts.get("events_read", 0) + counts.get("labels_read", 0)
    why = [rule.said(counts) for rule in rules if rule.holds(counts)]
    status = RULE_HOLDS if why else 0
    if unread:
        status = FILE_UNREAD
    elif came and not own_waiting(counts) and not goes_on and not _applied(counts, applied):
        status = NOTHING_APPLIED
        what = f"{counted(came, 'record')} none was applied"
        before = counts.get(applied, 0)
        why.append(
            f"nothing that the job read was evaluated: of {what}, and {before:,} of the imported state"
            if before
            else f"nothing was evaluated, as of {what}"
        )
    for reason in why:
        say(f"{reason}; the exit status is {status}")
    if unread:
        what = "1 file, or a part of one," if unread == 1 else f"{unread} files, or parts of them,"
        say(f"{what} could not be read: see the dead letters")
    return status
