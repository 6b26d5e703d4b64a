"""The section "Champion and challengers": rows of pairs, a line for each pair and slice, and a chart."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ....core.arrays import FloatArray
from ....core.rows.columns import reasons_by_measure
from ....core.rows.pairs import BETTER, CONTRADICTED, UNDECIDED, WORSE, pair_name
from ...words import all_dates, counted, p_value, share, stamp
from ..report_rows import floats
from .lines import Section, banded, signed, signed_interval
from .tables import Series, drawn, last_rows, numbers, series_of_table

_LEAST_RANGE = 0.02

_COUNTED = {WORSE: WORSE, UNDECIDED: UNDECIDED, CONTRADICTED: "contradicted, as the difference has changed"}
"""How the sentence tells a verdict that is not "better"."""

_NAMED = 5
"""The most challengers of a verdict that the sentence names."""

_DRAWN = ("difference", "difference_low", "difference_high", "anytime_low", "anytime_high", "seq")
_PLACES = {CONTRADICTED: 0, WORSE: 1, BETTER: 2, UNDECIDED: 3}


class PairLine(NamedTuple):
    """A line of the table: the texts of one pair and slice, from its latest row.

    place       of the pair in the chart
    state       "worse", "better", or "" as the style knows them
    verdict     in words; `since` says from which row on
    why         what to know of the verdict, or why there is none; "" without a remark
    difference  in the window, with its interval
    anytime     the interval that holds at all rows
    only        how many instances one of the models alone scored
    """

    place: int
    model: str
    against: str
    part: str
    config: str
    state: str
    verdict: str
    since: str
    why: str
    difference: str
    interval: str
    p: str
    spark: str
    anytime: str
    events: str
    only_model: int
    only_against: int

    @property
    def words(self) -> str:
        """The text that the line is found by."""
        return f"{self.model}\n{self.against}\n{self.part}\n{self.verdict}"


def pairs_section(table: pa.Table, confidence: float) -> Section | None:
    """Return the facts of the section; None without rows.

    table       rows of pairs (PAIR_SCHEMA)
    confidence  the level of their intervals
    """
    if not table.num_rows:
        return None
    series = series_of_table(table, ["model", "against", "slice"])
    last = last_rows(table, series)

    def rank(place: int) -> tuple[Any, ...]:
        row = last[place]
        return bool(row["slice"]), _PLACES.get(row["verdict"], 4), series[place].names

    places = sorted(range(len(series)), key=rank)
    series, last = [series[place] for place in places], [last[place] for place in places]
    columns = {name: floats(table.column(name)) for name in (*_DRAWN, "due", "time", "pane_end")}
    due, time, end = (columns.pop(name) for name in ("due", "time", "pane_end"))
    # A row on a grid of times describes its grid point; a row of a pane without a time has the pane's end.
    columns["time"] = np.where(np.isnan(due), np.where(np.isnan(time), end, time), due)
    dates = all_dates(columns["time"])
    verdicts = table.column("verdict")
    lines = [
        _line(place, one, row, columns, verdicts, dates=dates)
        for place, (one, row) in enumerate(zip(series, last, strict=True))
    ]
    facts = {
        "confidence": share(confidence),
        "alpha": share(1 - confidence),
        "names": [_name(line) for line in lines],
    }
    named = {(pair_name(one.model, one.against), one.part): one.place for one in lines}
    return Section("pairs", "pair", [_about(last)], lines, facts, _chart(series, columns, lines), named)


def _name(line: PairLine) -> str:
    part = f", {line.part}" if line.part else ""
    return f"{line.model} against {line.against}{part}{f' {line.config}' if line.config else ''}"


def _line(
    place: int,
    one: Series,
    row: dict[str, Any],
    columns: dict[str, FloatArray],
    verdicts: pa.ChunkedArray,
    *,
    dates: bool,
) -> PairLine:
    verdict, since = row["verdict"] or UNDECIDED, ""
    if verdict != UNDECIDED:
        given = np.array(verdicts.take(pa.array(one.rows)).to_pylist(), object)
        other = np.flatnonzero(given != verdict)
        first = one.rows[other[-1] + 1 if len(other) else 0]
        moment = columns["time"][first]
        when = "" if np.isnan(moment) else f"since {stamp(moment, dates=dates)}, "
        since = f"{when}after {columns['seq'][first]:,.0f} instances"
    known = row["anytime_low"] is not None
    why = [reason] if (reason := reasons_by_measure(row["reason"]).get("anytime_low")) else []
    if not row["seq"]:
        why = ["no instance was scored by both models"]
    elif verdict == UNDECIDED and known:
        why = ["the any-time interval holds 0", *why]
    across = columns["seq" if np.isnan(columns["time"][one.rows]).any() else "time"]
    ends = [columns[f"difference{end}"] for end in ("", "_low", "_high")]
    config = one.names[3] if len(one.names) > 3 else ""
    return PairLine(
        place,
        row["model"] or "",
        row["against"] or "",
        row["slice"] or "",
        config,
        verdict if verdict in (BETTER, WORSE) else "",
        verdict,
        since,
        "; ".join(why),
        "\u2013" if row["difference"] is None else signed(row["difference"]),
        signed_interval(row["difference_low"], row["difference_high"]),
        p_value(row["p"]),
        banded(across, ends, one.rows, _LEAST_RANGE, level=0.0),
        signed_interval(row["anytime_low"], row["anytime_high"]) or "\u2013",
        f"{row['seq']:,}",
        row["only_model"] or 0,
        row["only_against"] or 0,
    )


def _about(last: list[dict[str, Any]]) -> str:
    """Return how many challengers are better and worse than their champion, in a sentence."""
    whole = [row for row in last if not row["slice"]] or last
    counts = Counter(row["verdict"] or UNDECIDED for row in whole)
    if len(whole) == 1:
        (row,) = whole
        told = {
            BETTER: f"{row['model']} ranks better than {row['against']}",
            WORSE: f"{row['model']} ranks worse than {row['against']}",
            CONTRADICTED: f"The difference between {row['model']} and {row['against']} has changed",
        }
        undecided = f"It is undecided which of {row['model']} and {row['against']} ranks better"
        after = counted(row["seq"], "instance")
        return f"{told.get(row['verdict'], undecided)}, after {after} that both scored."
    champions = {row["against"] for row in whole}
    than = f"than {champions.pop()}" if len(champions) == 1 else "than their champions"
    rank = "ranks" if counts[BETTER] == 1 else "rank"
    parts = [f"{counts[BETTER]:,} of {len(whole):,} challengers {rank} better {than}{_named(whole, BETTER)}"]
    parts += [
        f"{counts[one]:,} {_COUNTED[one]}{_named(whole, one)}"
        for one in (WORSE, UNDECIDED, CONTRADICTED)
        if counts[one]
    ]
    return "; ".join(parts) + "."


def _named(rows: list[dict[str, Any]], verdict: str) -> str:
    """Return the challengers with a verdict behind a colon; "" for none, and for too many to name."""
    names = list(dict.fromkeys(row["model"] for row in rows if (row["verdict"] or UNDECIDED) == verdict))
    return f": {', '.join(names)}" if 0 < len(names) <= _NAMED else ""


def _chart(series: list[Series], columns: dict[str, FloatArray], lines: list[PairLine]) -> dict[str, Any]:
    """Return what the chart draws: for each pair times in milliseconds, instances, and columns by name."""
    kept, step = drawn(series)
    rows_of_all = np.concatenate([one.rows for one in series])
    timed = not np.isnan(columns["time"][rows_of_all]).any()
    listed = [
        {
            "name": _name(line),
            "time": numbers(columns["time"] / 1000, rows, 0),
            **{name: numbers(columns[name], rows) for name in _DRAWN},
        }
        for line, rows in zip(lines, kept, strict=True)
    ]
    return {"step": step, "timed": timed, "series": listed}
