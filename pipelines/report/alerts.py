"""Alerts for the report: each alert once, with its opening and its closing, and the rows that it belongs to.

A file of alerts holds events: an alert opens, an alert closes. A closing names by `since_row` the row at
which its alert opened. So (rule, model, slice, pane, that row) pairs the two events. An alert without a
closing is still open. The opening of a closing may be in another file: `since_row` and `since_time` of the
closing are then its row and time.

An alert whose column is one of roll-up rows or of pair rows belongs to a group or a pair, and to its section.

Alerts have no `config`. A model that was evaluated under several settings has its alerts under each of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from ...core.alerts.columns import Kind, kind_of
from ...core.errors import InputError
from ...core.rows.pairs import models_of
from ..words import DASH, counted, number, stamp
from .classes.page_classes import CLASS, slice_of
from .data import MEANINGS
from .fleet.lines import Section
from .report_rows import ReportRows


class Event(NamedTuple):
    """The opening or the closing of an alert.

    row    the number of the row at which it happened
    time   the time of that row, microseconds UTC; None = null
    value  the value that decided, in that row; None = not known
    """

    row: int
    time: int | None
    value: float | None
    message: str


class Alert(NamedTuple):
    """One alert. `opened` has neither a value nor a message if only the closing is in the files.

    column  the column that the rule looked at, as the latest event names it
    pane    (start, end) of a Beam pane, microseconds UTC; None = null
    closed  None = the alert is still open
    """

    rule: str
    model: str
    slice: str
    pane: tuple[int | None, int | None]
    column: str
    opened: Event
    closed: Event | None

    @property
    def kind(self) -> Kind:
        """The kind of rows that the rule watches."""
        return kind_of([self.column])

    @property
    def latest(self) -> Event:
        """The latest event of the alert."""
        return self.closed or self.opened


def alerts_of(table: pa.Table, label: str = CLASS) -> list[Alert]:
    """Return each alert of a table: the open ones first, then the newest first. O(n log n).

    table  the columns of ALERT_SCHEMA; the slice of an alert of a class names the class, as on the page
    label  the column in such names (`PageClasses.label`)

    Raises InputError for a state that is neither "open" nor "closed".
    """
    micros = ("time", "since_time", "pane_start", "pane_end")
    names = ("rule", "state", "model", "slice", CLASS, "row", "since_row", "column", "value", "message")
    columns = {name: table.column(name) for name in (*names, *micros)}
    columns |= {name: columns[name].cast(pa.int64()) for name in micros}
    found: dict[tuple[Any, ...], Alert] = {}
    lines: list[dict[str, Any]] = pa.table(columns).to_pylist()
    for line in sorted(lines, key=lambda line: line["state"] != "open"):
        pane = line["pane_start"], line["pane_end"]
        rule, model, slice_name = (line[name] or "" for name in ("rule", "model", "slice"))
        slice_name = slice_of(slice_name, line[CLASS], label)
        value = line["value"]
        known = value if value is not None and math.isfinite(value) else None
        event = Event(int(line["row"]), line["time"], known, line["message"] or "")
        column = line["column"] or ""
        if line["state"] == "open":
            key = rule, model, slice_name, pane, event.row
            found[key] = Alert(rule, model, slice_name, pane, column, event, None)
        elif line["state"] == "closed":
            since = int(line["since_row"])
            unknown = Alert(
                rule, model, slice_name, pane, column, Event(since, line["since_time"], None, ""), None
            )
            key = rule, model, slice_name, pane, since
            found[key] = found.get(key, unknown)._replace(column=column, closed=event)
        else:
            raise InputError(
                f"an alert of the model {model!r} has the state {line['state']!r}, which is neither open nor "
                "closed; give a file that rocsteady evaluate --alerts wrote"
            )

    def place(alert: Alert) -> tuple[Any, ...]:
        at = alert.latest
        newest = math.inf if at.time is None else -at.time
        return alert.closed is not None, newest, -at.row, alert.model, alert.slice, alert.rule

    return sorted(found.values(), key=place)


class ShownAlerts(NamedTuple):
    """The alerts of a page.

    opened, still_open  numbers of alerts
    open_of_models      the number of open alerts of each model that has any, with those of its pairs
    lines               for the page's code, an alert each: [places of the model in `rows.models`, place of
                        the slice, model, rule, column, opening, closing or null, null]; an event is [row, seq
                        for each place, time, value, message], null = not known. Of a group or a pair the
                        last is [section, place in its chart, slice as text]. A group has no places, and the
                        model of a pair is its challenger
    cells               for the page's table, an alert each: (open, texts of the columns)
    note                a sentence on alerts that are left out, or ""
    """

    opened: int
    still_open: int
    open_of_models: dict[str, int]
    lines: list[list[Any]]
    cells: list[tuple[bool, tuple[str, ...]]]
    note: str


def shown_alerts(
    table: pa.Table, rows: ReportRows, most: int, *, dates: bool, sections: Sequence[Section] = ()
) -> ShownAlerts:
    """Return the alerts of the models, slices, groups and pairs of the page; `cells` holds `most` at most.

    O(n log n) in alerts, O(n) in rows.

    dates     times are written as dates
    sections  those on groups and on pairs
    """
    places: dict[str, list[int]] = {}
    for place, (model, _) in enumerate(rows.bases()):
        places.setdefault(model, []).append(place)
    slices = {name: place for place, name in enumerate(rows.slices)}
    charts = {_KINDS[one.name]: one for one in sections if one.name in _KINDS}
    alerts = alerts_of(table, CLASS if rows.classes is None else rows.classes.label)

    def is_shown(alert: Alert) -> bool:
        if alert.kind == "row":
            return alert.model in places and alert.slice in slices
        return alert.kind in charts and (alert.model, alert.slice) in charts[alert.kind].places

    def model_of(alert: Alert) -> str | None:
        """Return the model of the page that an alert is about: of a pair, its challenger."""
        if alert.kind == "pair row":
            return models_of(alert.model)[0]
        return alert.model if alert.kind == "row" else None

    kept = [alert for alert in alerts if is_shown(alert)]
    of_rows = [alert for alert in kept if alert.kind == "row"]
    wanted = {(place, slices[alert.slice]) for alert in of_rows for place in places[alert.model]}
    seqs = _seqs(rows, wanted)

    def told(alert: Alert, event: Event, at: list[int], part: int) -> list[Any]:
        keys = ((place, part, alert.pane[0], event.row) for place in at)
        return [event.row, [_seq_at(seqs, key, event.time) for key in keys], *event[1:]]

    def line(alert: Alert) -> list[Any]:
        of, part, elsewhere = model_of(alert), slices.get(alert.slice, -1), None
        at = [] if of is None else places.get(of, [])
        if alert.kind != "row":
            chart = charts[alert.kind]
            elsewhere = [chart.name, chart.places[alert.model, alert.slice], alert.slice]
        rows_at = at if elsewhere is None else []
        opened = told(alert, alert.opened, rows_at, part)
        closed = alert.closed and told(alert, alert.closed, rows_at, part)
        return [at, part, alert.model, alert.rule, alert.column, opened, closed, elsewhere]

    note = ""
    if others := len(alerts) - len(kept):
        note = (
            f"{counted(others, 'alert')} {'is' if others == 1 else 'are'} left out: the page does not have "
            "their models, slices, groups or pairs."
        )
    return ShownAlerts(
        len(kept),
        sum(alert.closed is None for alert in kept),
        dict(Counter(of for alert in kept if alert.closed is None and (of := model_of(alert)) is not None)),
        [line(alert) for alert in kept],
        [_cells(alert, dates) for alert in kept[:most]],
        note,
    )


_KINDS: dict[str, Kind] = {"roll_ups": "roll-up row", "pairs": "pair row"}
"""The kind of rows that a section shows."""


_Seqs = dict[tuple[int, int, int | None, int], tuple[int, int | None]]
"""By (model, slice, start of the pane, row number): the row's `seq` and its time."""


def _seqs(rows: ReportRows, wanted: set[tuple[int, int]]) -> _Seqs:
    """Return the rows of the wanted series."""
    found: _Seqs = {}
    columns = [rows.columns[name] for name in ("pane_start", "row", "seq", "time")]
    for model, of, first, stop in rows.series.tolist():
        if (model, of) not in wanted:
            continue
        for pane, row, seq, time in zip(*(values[first:stop].tolist() for values in columns), strict=True):
            if not math.isnan(row):
                key = model, of, None if math.isnan(pane) else int(pane), int(row)
                found[key] = int(seq), None if math.isnan(time) else int(time)
    return found


def _seq_at(seqs: _Seqs, key: tuple[int, int, int | None, int], time: int | None) -> int | None:
    """Return the `seq` of an event's row; None if the row is of another time, and so of other settings."""
    seq, of = seqs.get(key, (None, None))
    return None if time is not None and of is not None and of != time else seq


def _cells(alert: Alert, dates: bool) -> tuple[bool, tuple[str, ...]]:
    """Return whether an alert is open, and its model, slice, rule, moments, value and message as texts."""
    value = alert.latest.value
    digits = MEANINGS[alert.column].digits if alert.column in MEANINGS else "score"
    everything = "\u2013" if alert.kind == "roll-up row" else "all events"

    def moment(event: Event | None) -> str:
        if event is None:
            return "still open"
        return f"row {event.row:,}" if event.time is None else stamp(event.time, dates=dates)

    told = DASH if value is None else f"{alert.column} {number(value, digits)}"
    return alert.closed is None, (
        alert.model,
        alert.slice or everything,
        alert.rule,
        moment(alert.opened),
        moment(alert.closed),
        told,
        alert.latest.message,
    )
