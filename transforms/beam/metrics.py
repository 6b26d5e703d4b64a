"""Metrics: Beam's metrics, and counters of this process with the same names.

Beam's counters are correct sums; each runner shows them in its own way, often only when a job is done. The
process's counters are for watching a running job (`--prometheus`). They count a retried bundle twice.
docs/reference/metrics.md lists the metrics for users.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Any

import numpy as np
from apache_beam.metrics import Metrics

from ...core.rows.rows import Rows
from ..events.dead_letters import DeadLetters
from ..events.fields import RECORD_COUNTERS, Role
from . import progress

METRICS_NAMESPACE = "rocsteady"

COUNTERS = {
    "events_read": "Events or predictions that were read; a record with several scores is one for each.",
    "events_applied": "Events that count in the rows.",
    "dead_letters": "Records that are no event: see the dead letters for the reasons.",
    "late": "Events that came further behind their source than --order allows.",
    "duplicate": "Events that --deduplicate, or a join, left out because they came before.",
    "unmatched": "Predictions for which no label came in time.",
    "events_tied": "Events whose order among others of the same time nothing in them says.",
    "events_in_other": "Events in a slice of others, beyond --slice-cap.",
    "evaluators_retired": "Times that a model or slice left memory after --idle-ttl of silence.",
    "labels_read": "Records of labels that were read.",
    "labels_used": "Labels that served a prediction.",
    "labels_invalid": "Records that are no label.",
    "labels_late": "Labels that came further behind their source than --order allows.",
    "labels_duplicate": "Labels that came before, or of whose id another one counts.",
    "labels_second": "Labels of whose id another one counts, with --second-label dead-letter.",
    "labels_unmatched": "Labels for which no prediction came in time.",
    "rows_written": "Rows of measures that were written.",
    "curves_written": "ROC curves that were written.",
    "pairs_compared": "Instances that a model and its champion have both scored.",
    "pairs_repeated": "Second events of a model with one id, which do not count in a comparison.",
    "pairs_contradicted": "Instances with another label in the model's event than in its champion's.",
    "pair_rows_written": "Rows of pairs that were written.",
    "roll_up_rows_written": "Roll-up rows that were written.",
    "alerts_opened": "Alerts that opened.",
    "alerts_closed": "Alerts that closed.",
    "alerts_capped": "Alerts that opened beyond a rule's cap, at most N a day, and were not told.",
    "alert_calls": "Calls of --alert-exec and --alert-post for alerts.",
    "alert_calls_failed": "Such calls by which the alert was not delivered.",
    "snapshots_written": "Times that the state of a shard was written as a whole.",
    "snapshot_bytes": "Bytes of the states that were written as a whole.",
    "log_bytes": "Bytes of records that were logged beside a state.",
    "rebuilds": "Times that a shard was rebuilt from its state: starts, failed bundles, a cache too small.",
    "instances_tested": "Times that a fold of a learner predicted an instance.",
    "instances_learnt": "Times that a fold of a learner learnt an instance, whatever its weight.",
    "learner_failures": "Times that a learner failed at an instance in a fold.",
    "unread_partitions": "Partitions that a topic got while the job ran: they are not read.",
}
"""Names of counters, of Beam and of the process, with their descriptions."""

GAUGES = {
    "evaluators": "Models and slices in memory.",
    "state_bytes": "Bytes of the state of all shards, if they were written as a whole now.",
    "predictions_waiting": "Predictions that wait for their labels.",
    "folds": "Folds of learners in memory.",
    "reports_waiting": "Reports of folds that wait for those of other learners or folds.",
    "pairs": "Pairs of models, with their slices, in memory.",
    "roll_up_groups": "Groups of models or slices that are rolled up.",
    "alert_series": "Models, slices and panes that rules watch.",
}
"""Sizes that machines hold now: a distribution over shards in Beam, the sum over shards in this process."""

_lock = threading.Lock()
_totals: Counter[str] = Counter()
_held: dict[Hashable, Mapping[str, int]] = {}
_newest: NewestRows | None = None
_newest_event: float | None = None


def letter_metrics(kind: str) -> str:
    """Return the namespace of the Beam distributions of dead letters' positions; each reason has one.

    >>> letter_metrics("late"), letter_metrics("invalid")
    ('rocsteady.late', 'rocsteady.dead_letters')
    """
    return f"{METRICS_NAMESPACE}.{'dead_letters' if kind == 'invalid' else kind}"


def count_letters(letters: DeadLetters) -> None:
    """Count dead letters by kind and reason, with their positions."""
    progress.note_refused(letters)
    for kind, reason, position in letters.whys():
        _distribution(letter_metrics(kind), reason).update(position)


_counter: Callable[[str, str], Any] = cache(Metrics.counter)
_distribution: Callable[[str, str], Any] = cache(Metrics.distribution)


def count(name: str, number: int) -> None:
    """Add a number to the job's counter in Beam, and to the counter of this process."""
    if number:
        _counter(METRICS_NAMESPACE, name).inc(number)
        with _lock:
            _totals[name] += number


def set_totals(counts: Mapping[str, int]) -> None:
    """Set the process's counters to the counts so far of a job without Beam."""
    with _lock:
        _totals.update({name: number - _totals[name] for name, number in counts.items()})


def hold(place: Hashable, held: Mapping[str, int]) -> None:
    """Set the gauges (GAUGES) of the machine at a place, in Beam and in this process."""
    for name, number in held.items():
        _distribution(METRICS_NAMESPACE, name).update(number)
    with _lock:
        _held[place] = held


def see(rows: Rows) -> None:
    """Record new rows, if the last `reset` asked for the newest rows."""
    if _newest is not None and len(rows):
        with _lock:
            _newest.see(rows)


def reset(models: int | None = None) -> None:
    """Reset the counters before a job starts; from then on, keep the newest rows of `models` models.

    models  None = keep the newest rows of no model
    """
    global _newest, _newest_event
    with _lock:
        _newest_event = None
        _totals.clear()
        _held.clear()
        _newest = None if models is None else NewestRows(models)


def note_times(least: int, greatest: int) -> None:
    """Note the least and the greatest event time, microseconds; Beam's distribution is `event_seconds`."""
    global _newest_event
    for micros in (least, greatest):
        _distribution(METRICS_NAMESPACE, "event_seconds").update(micros // 1_000_000)
    with _lock:
        _newest_event = max(greatest / 1e6, -float("inf") if _newest_event is None else _newest_event)


def newest_event() -> float | None:
    """Return the greatest event time that was read, seconds since 1970; None without times."""
    return _newest_event


def totals() -> Counter[str]:
    """Return the counters of this process."""
    with _lock:
        return Counter(_totals)


def gauges() -> Counter[str]:
    """Return the gauges by name, each summed over the machines of this process."""
    with _lock:
        found: Counter[str] = Counter()
        for held in _held.values():
            found.update(held)
        return found


def newest() -> tuple[dict[str, dict[str, float]], int]:
    """Return the numbers in each model's newest row, and how many rows had models beyond the bound."""
    with _lock:
        return ({}, 0) if _newest is None else (dict(_newest.by_model), _newest.beyond)


class NewestRows:
    """The NEWEST_COLUMNS of the newest row of each of the first `models` models. O(keys) a batch of rows."""

    def __init__(self, models: int) -> None:
        self._models = models
        self.by_model: dict[str, dict[str, float]] = {}
        self.beyond = 0

    def see(self, rows: Rows) -> None:
        """Take in rows, which are in order for each model; rows of slices are ignored."""
        codes, behind = np.unique(rows.key_codes[::-1], return_index=True)
        columns = [
            rows.integer(name) if name == "window_events" else rows.number(name) for name in NEWEST_COLUMNS
        ]
        for code, back in zip(codes.tolist(), behind.tolist(), strict=True):
            model, of_slice = rows.keys[code]
            if of_slice:
                continue
            if model not in self.by_model and len(self.by_model) >= self._models:
                self.beyond += int(np.count_nonzero(rows.key_codes == code))
                continue
            row = len(rows) - 1 - back
            self.by_model[model] = {
                name: float(column[row]) for name, column in zip(NEWEST_COLUMNS, columns, strict=True)
            }


NEWEST_COLUMNS = {
    "auc": "Area under the ROC curve, of the model's newest row; NaN where undefined.",
    "auc_low": "Lower end of the AUC's interval.",
    "auc_high": "Upper end of the AUC's interval.",
    "h": "H-measure, of the model's newest row; NaN where undefined.",
    "window_events": "Events in the window of the model's newest row.",
}
"""Columns of a model's newest row, with their descriptions."""


def count_records(
    role: Role, records: int, letters: DeadLetters, times: tuple[int, int] | None, size: int
) -> None:
    """Count the records that were read, their dead letters and bytes; note the least and greatest time."""
    progress.add(records=records, dead_letters=len(letters), bytes=size)
    names = RECORD_COUNTERS[role]
    count(names["read"], records)
    if len(letters):
        kinds = letters.batch.column("kind").to_pylist()
        for kind in sorted({*kinds}):
            count(names[kind], kinds.count(kind))
        count_letters(letters)
    if times is not None:
        note_times(*times)
