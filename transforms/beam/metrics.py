"""Metrics: Beam's metrics, and counters of this process with the same names.

Beam's counters are correct sums; each runner shows these counters in its own way, often only when a job is
done. The counters of the process serve to watch a running job (`--prometheus`, `--otlp`). They count a bundle
again if it is retried. docs/reference/metrics.md lists the metrics for users.

Sizes
    A size, such as the bytes of a state, is in Beam both a distribution and a gauge. Dataflow shows
    distributions and no gauges. Flink gives the values of gauges to its reporters as numbers, and those of
    distributions as Java objects, which a reporter cannot read. Beam keeps one value of a gauge, the latest.
    So each shard has gauges of its own, whose names end in the shard's key. The sum of these gauges is right
    whichever worker has a shard, and after a restart.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Any

from apache_beam.metrics import Metrics

from ...core.rows.rows import Rows
from ..events import losses
from ..events.dead_letters import DeadLetters
from ..events.fields import RECORD_COUNTERS, Role
from . import progress
from .newest import Newest, NewestRows

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
    "added_partitions": "Partitions that a topic got while the job ran. They are read from their beginnings.",
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
"""Sizes of what machines hold now: Beam has a gauge of each shard, this process has the sum over shards."""

NEWEST_TIMES = {
    "newest_event_timestamp_seconds": "The greatest time of an event or a prediction that was read.",
    "newest_label_timestamp_seconds": "The greatest time of a label that was read.",
}
"""Times in seconds since 1970: Beam has a gauge of each partition of a stream, this process one of all
partitions.
"""

PARTITION_GAUGES = {
    "offset": "The place behind the last record that was read of a partition.",
    "lag": "The messages of a partition that wait to be read.",
    **NEWEST_TIMES,
}
"""Gauges that Beam has of each partition of a stream."""

_AGAIN_SECONDS = 10.0
"""After so many seconds a gauge of Beam is set again, even if its value is the same.

If a runner began a job again and kept the process, the runner has lost the value.
"""

Shard = tuple[Hashable, str]
"""A step, and the key of one of its shards."""

_lock = threading.Lock()
_totals: Counter[str] = Counter()
_letters: Counter[tuple[str, str]] = Counter()
_held: dict[Shard, dict[Hashable, Mapping[str, int]]] = {}
_told: dict[tuple[Shard, str], tuple[int, float]] = {}
_newest: NewestRows | None = None
_newest_times: dict[str, float] = {}


def letter_metrics(kind: str) -> str:
    """Return the namespace of the Beam distributions of dead letters' positions.

    Each reason has a distribution of its own.

    >>> letter_metrics("late"), letter_metrics("invalid")
    ('rocsteady.late', 'rocsteady.dead_letters')
    """
    return f"{METRICS_NAMESPACE}.{'dead_letters' if kind == 'invalid' else kind}"


def count_letters(letters: DeadLetters, role: losses.LossRole) -> None:
    """Count dead letters by kind and reason, with their positions; `role` is the role of their records."""
    progress.note_refused(letters, role)
    found: Counter[tuple[str, str]] = Counter()
    for kind, reason, position in letters.whys():
        _distribution(letter_metrics(kind), reason).update(position)
        found[kind, reason] += 1
    with _lock:
        _letters.update(found)
    if not progress.is_told():
        losses.tell(totals(), letters_now(), progress.example)


_counter: Callable[[str, str], Any] = cache(Metrics.counter)
_distribution: Callable[[str, str], Any] = cache(Metrics.distribution)
_gauge: Callable[[str, str], Any] = cache(Metrics.gauge)


def count(name: str, number: int) -> None:
    """Add a number to the job's counter in Beam, and to the counter of this process."""
    if number:
        _counter(METRICS_NAMESPACE, name).inc(number)
        with _lock:
            _totals[name] += number


def set_totals(counts: Mapping[str, int], letters: Mapping[tuple[str, str], int]) -> None:
    """Set the process's counters to the counts so far of a job without Beam.

    letters  the dead letters by kind and reason
    """
    with _lock:
        _totals.update({name: number - _totals[name] for name, number in counts.items()})
        _letters.update({why: number - _letters[why] for why, number in letters.items()})


def hold(step: Hashable, key: str, held: Mapping[str, int], pane: Hashable = None) -> None:
    """Set the gauges (GAUGES) of the machine of a shard's pane, in Beam and in this process. O(panes)."""
    shard = step, key
    for name, number in held.items():
        _distribution(METRICS_NAMESPACE, name).update(number)
    with _lock:
        panes = _held.setdefault(shard, {})
        panes[pane] = held
        sums = {name: sum(each[name] for each in panes.values()) for name in held} if len(panes) > 1 else held
    _tell(shard, sums)


def let_go(step: Hashable, key: str, pane: Hashable) -> None:
    """Remove the gauges of the machine of a shard's pane, which has ended."""
    shard = step, key
    with _lock:
        panes = _held.get(shard, {})
        gone = panes.pop(pane, {})
        sums = {name: sum(each[name] for each in panes.values()) for name in gone}
    _tell(shard, sums)


def _tell(shard: Shard, sums: Mapping[str, int]) -> None:
    """Set the gauges of a shard in Beam, if their values have changed or were set long ago."""
    now = time.monotonic()
    for name, number in sums.items():
        before, at = _told.get((shard, name), (None, now))
        if number != before or now - at > _AGAIN_SECONDS:
            _told[shard, name] = number, now
            set_gauge(name, shard[1], number)


def set_gauge(name: str, part: str, number: int) -> None:
    """Set Beam's gauge of a part of the job, such as a shard or a partition.

    The name of the gauge ends in the name of the part.
    """
    _gauge(METRICS_NAMESPACE, f"{name} {part}").set(number)


def see(rows: Rows) -> None:
    """Record new rows, if the last `reset` asked for the newest rows."""
    if _newest is not None and len(rows):
        with _lock:
            _newest.see(rows)


def reset(models: int | None = None) -> None:
    """Reset the counters before a job starts; from then on, keep newest rows if `models` says so.

    models  how many models, and how many slices, have their newest rows kept; None = keep no rows
    """
    global _newest
    with _lock:
        _newest_times.clear()
        _totals.clear()
        _letters.clear()
        _held.clear()
        _told.clear()
        _newest = None if models is None else NewestRows(models)


def note_times(least: int, greatest: int, role: Role = "event") -> None:
    """Keep the least and the greatest time of records of a role, in microseconds.

    Beam's distribution of all roles is `event_seconds`.
    """
    for micros in (least, greatest):
        _distribution(METRICS_NAMESPACE, "event_seconds").update(micros // 1_000_000)
    what = newest_of(role)
    with _lock:
        _newest_times[what] = max(greatest / 1e6, _newest_times.get(what, -float("inf")))


def newest_of(role: Role) -> str:
    """Return the name of the gauge of the greatest time of records of a role.

    >>> newest_of("label"), newest_of("prediction")
    ('newest_label_timestamp_seconds', 'newest_event_timestamp_seconds')
    """
    return f"newest_{'label' if role == 'label' else 'event'}_timestamp_seconds"


def newest_times() -> dict[str, float]:
    """Return the greatest times that were read, seconds since 1970, by the names of NEWEST_TIMES."""
    with _lock:
        return dict(_newest_times)


def totals() -> Counter[str]:
    """Return the counters of this process."""
    with _lock:
        return Counter(_totals)


def letters_now() -> list[tuple[str, str, int]]:
    """Return (kind, reason, number) of this process's dead letters."""
    return [(*why, number) for why, number in letters_by_reason().items()]


def letters_by_reason() -> Counter[tuple[str, str]]:
    """Return the number of this process's dead letters by kind and reason."""
    with _lock:
        return Counter(_letters)


def gauges() -> Counter[str]:
    """Return the gauges by name, each summed over the machines of this process."""
    with _lock:
        found: Counter[str] = Counter()
        for panes in _held.values():
            for held in panes.values():
                found.update(held)
        return found


def newest() -> Newest:
    """Return the numbers in the newest row of each model and slice that is kept."""
    with _lock:
        return Newest({}, {}) if _newest is None else _newest.now()


def count_records(
    role: Role, records: int, letters: DeadLetters, times: tuple[int, int] | None, size: int
) -> None:
    """Count the records that were read, their dead letters and bytes; keep their least and greatest time."""
    progress.add(records=records, dead_letters=len(letters), bytes=size)
    names = RECORD_COUNTERS[role]
    count(names["read"], records)
    if len(letters):
        kinds = letters.batch.column("kind").to_pylist()
        for kind in sorted({*kinds}):
            count(names[kind], kinds.count(kind))
        count_letters(letters, "label" if role == "label" else "event")
    if times is not None:
        note_times(*times, role)
