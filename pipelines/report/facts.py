"""The facts of a page: what the template shows, and what the page's code needs.

`page_facts` collects facts about rows, alerts and other tables. The HTML itself holds all facts that need no
JavaScript: the models evaluated, the counts of events, the changes, the latest values of the first models,
and the meaning of the measures. The code then replaces these parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...core.alerts.rules import Span
from ...core.rows.differences import FEWEST
from ...core.settings.periods import Period
from ...core.verdicts.series import Series
from ...core.version import __version__
from ..words import DASH, all_dates, share, short_day, stamp
from .alerts import shown_alerts
from .better import better_section
from .changes import NO_TEST, Change, change_of
from .classes.page_classes import CLASS_NUMBERS
from .comparisons import comparisons_of, means_of
from .data import (
    GROUPS,
    ROW_WORDS,
    ROWS_EXACT,
    WORST,
    curve_blocks,
    drawn_columns,
    meanings_of,
    null_reasons,
    row_blocks,
    script_json,
    thinned,
)
from .fleet import lines as of_lines
from .fleet.class_pairs import class_pairs
from .fleet.gaps import gaps_section, page_gaps
from .fleet.pairs import pairs_section
from .fleet.roll_ups import roll_ups_section
from .heatmap import heatmap_of
from .overview import LINES, overview_lines, overview_of, preselected
from .render import render
from .report_rows import NO_TABLES, EventCounters, ReportRows, Tables, applied_events
from .verdicts import judge_rows

TITLE = "How well the models rank and decide"
_TITLE_OF_ONE = "How well {} ranks and decides"

CARDS = 5
"""The most models whose "Best and worst" is in the HTML itself."""

TABLE_ROWS = 50
"""The most models whose latest values, and the most alerts, that are in the HTML itself."""

TABLE_CONTEXT = ("seq", "window_events", "prevalence")
"""The first columns of the table of latest values."""

TABLE_MEASURES = ("auc", "h", "ks", "brier", "kappa", "kappa_m")
"""The measures in the table of latest values."""

VERDICTS = {
    "changed": "change supported",
    "not shown": "no change shown",
    "cannot tell": "nothing to compare",
}
"""The words of a verdict (`Change.verdict`) on a model's card."""

_CURVES_ABOUT = (
    "The true positive rate against the false positive rate over all thresholds, and what share of events "
    "was positive at which score."
)


class PageFacts(NamedTuple):
    """What a page shows.

    shown   the facts of the template
    meta    what the page's code needs at once
    texts   JSON that the page's code reads when it needs it, by name
    blocks  numbers that the code unpacks when it needs them, packed, by name
    """

    shown: dict[str, Any]
    meta: dict[str, Any]
    texts: dict[str, str]
    blocks: dict[str, str]


def page_facts(
    rows: ReportRows,
    tables: Tables = NO_TABLES,
    *,
    title: str = TITLE,
    confidence: float = 0.95,
    reference: Span | Period | None = None,
    holds_rows: bool = True,
) -> PageFacts:
    """Return the facts of a page; without `holds_rows` of a page that draws all rows, and fetches them."""
    curves, counters, roll_ups, pairs = tables.curves, tables.counters, tables.roll_ups, tables.pairs
    base_of = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in rows.bases()))}
    if title == TITLE and len(base_of) == 1:
        title = _TITLE_OF_ONE.format(*base_of)
    whole = rows.whole_models()
    judged = judge_rows(rows, confidence, reference)
    series_by = {one.model: one.series for one in judged.models}
    series = [series_by[model][part] for model, part, _, _ in whole.tolist()]
    names = [rows.models[model] for model in whole[:, 0]]
    changes = [change_of(name, one, confidence) for name, one in zip(names, series, strict=True)]
    drawn = thinned(rows, [one.model for one in judged.models]) if holds_rows else rows
    listed, blocks, curve_note = curve_blocks(curves, rows)
    about_curves = f"{_CURVES_ABOUT} {curve_note}".strip()
    blocks |= row_blocks(drawn) if len(rows) and holds_rows else {}
    texts = {"changes": script_json(_changes(rows, whole[:, 0].tolist(), series, changes))}
    meta = _rows_meta(rows, drawn, base_of)
    gaps = page_gaps(rows, confidence, of_folds=tables.means is not None)
    sections = {
        "gaps": gaps_section(rows, gaps),
        "roll_ups": None
        if roll_ups is None
        else roll_ups_section(roll_ups, confidence, gaps.names_of_groups(rows)),
        "pairs": None if pairs is None else pairs_section(pairs, confidence),
    }
    for section in filter(None, sections.values()):
        blocks |= section.blocks(render)
    told_alerts = None
    if tables.alerts is not None:
        shown_sections = [*filter(None, sections.values())]
        told_alerts = shown_alerts(
            tables.alerts, rows, TABLE_ROWS, dates=meta["dates"], sections=shown_sections
        )
        texts["alerts"] = script_json(told_alerts.lines)
    opened = None if told_alerts is None else told_alerts.open_of_models
    overview = overview_of(
        rows, judged, confidence, reference, opened, None if counters is None else counters.of_models
    )
    heatmap = heatmap_of(rows, judged, gaps)
    if heatmap is not None:
        texts["heatmap"] = script_json(heatmap.cells)
    of_pairs = class_pairs(rows, [one.model for one in judged.models])
    if of_pairs is not None:
        texts["class_pairs_chart"] = script_json(of_pairs.chart)
    lines = overview_lines(overview, partial(render, "overview_line.html"))
    texts["overview"] = script_json(lines)
    better = None
    if tables.comparisons is not None or tables.means is not None:
        better = better_section(comparisons_of(tables.comparisons), means_of(tables.means))
        blocks |= better.blocks
    applied = applied_events(rows)
    held, time = rows.held, rows.columns["time"]
    wanted = (
        TABLE_MEASURES if rows.classes is None else (*TABLE_MEASURES[:1], *CLASS_NUMBERS, *TABLE_MEASURES[1:])
    )
    table_columns = (*TABLE_CONTEXT, *(name for name in wanted if name in held))
    meanings = meanings_of(rows)
    meta |= {
        "worst": preselected(judged),
        "overviewLines": LINES,
        "classPairs": of_pairs is not None,
        "heatmap": heatmap and {"models": heatmap.models, "groups": [of for _, of in heatmap.groups]},
        "level": confidence,
        "exact": len(drawn) <= ROWS_EXACT or not holds_rows,
        "curves": listed,
        "curvesAbout": about_curves,
        "groups": GROUPS,
        "measures": {name: meaning._asdict() for name, meaning in meanings.items()},
        "verdicts": VERDICTS,
        "confidence": share(confidence),
        "better": better and better.meta,
        "sections": {name: section.meta() for name, section in sections.items() if section},
        "linesAtOnce": of_lines.LINES,
    }
    shown = {
        "version": __version__,
        "title": title,
        "rows": rows,
        "overview": overview if len(rows) else None,
        "overview_lines": LINES,
        "worst": WORST,
        "exact": meta["exact"],
        "heatmap": heatmap,
        "class_pairs": of_pairs,
        "bases": len(base_of),
        "applied": applied,
        "first_time": np.fmin.reduce(time, initial=np.nan),
        "last_time": np.fmax.reduce(time, initial=np.nan),
        "counters": counters or EventCounters(),
        "alerts": told_alerts,
        "letters_given": counters is not None,
        "better": better and better.facts,
        **sections,
        "lines_at_once": of_lines.LINES,
        "models": len(whole),
        "fewest": FEWEST,
        "held": held,
        "false_changes": share(1 - confidence),
        "changes": changes[:CARDS],
        "verdicts": VERDICTS,
        "no_test": NO_TEST,
        "nulls": null_reasons(rows, drawn_columns(rows)) if len(rows) else {},
        "curves_about": about_curves if listed else curve_note,
        "latest": _latest(
            rows, ("auc_low", "auc_high", *table_columns), dates=meta["dates"], timed=meta["times"]
        ),
        "table_columns": table_columns,
        "confidence": share(confidence),
        "meanings": meanings,
        "row_words": ROW_WORDS,
        "drawn": len(drawn),
    }
    return PageFacts(shown, meta, texts, blocks)


def _rows_meta(rows: ReportRows, drawn: ReportRows, base_of: dict[str, int]) -> dict[str, Any]:
    """Return the facts about the rows that the page's code needs."""
    bases = rows.bases() if rows.ways else []
    held = drawn.held if len(rows) else set()
    return {
        "models": rows.models,
        "bases": [base_of[name] for name, _ in bases],
        "ways": rows.ways,
        "wayOf": [way for _, way in bases],
        "slices": rows.slices,
        "parts": rows.part_words,
        "series": drawn.series.tolist(),
        "kept": len(drawn),
        "columns": [name for name in rows.columns if name in held],
        "drawn": [name for name in drawn_columns(drawn) if name in held],
        "times": bool(len(rows)) and not np.isnan(rows.columns["time"]).any(),
        "dates": all_dates(rows.columns["time"]),
        "panes": "pane_start" in rows.held,
        "reasons": rows.reasons,
    }


def _changes(
    rows: ReportRows, models: Sequence[int], series: Sequence[Series], changes: Sequence[Change]
) -> list[dict[str, Any] | None]:
    """Return each model's change as the page shows it; points are [seq, time, auc]."""

    def point(of: Series, row: int) -> list[float | None] | None:
        if row < 0:
            return None
        time = float(of.time[row])
        return [int(of.seq[row]), None if math.isnan(time) else time, float(of.auc[row])]

    found = {
        model: {**change._asdict(), "worst": point(one, change.worst), "best": point(one, change.best)}
        for model, one, change in zip(models, series, changes, strict=True)
    }
    return [found.get(model) for model in range(len(rows.models))]


class _Latest(NamedTuple):
    """The last row of a model: its time and reason as texts, and its values.

    values  by column; where the last row has null, the last value that is not null
    since   by column: the moment of such an earlier value, as a text
    """

    model: str
    time: str
    values: dict[str, float]
    since: dict[str, str]
    reason: str | None


def _latest(rows: ReportRows, names: Iterable[str], *, dates: bool, timed: bool) -> list[_Latest]:
    """Return the last rows of the first whole models, with the columns `names`. `timed`: all have times."""
    lines = []
    for model, _, first, stop in rows.whole_models()[:TABLE_ROWS].tolist():
        end = stop - 1
        values, since = {}, {}
        for name in names:
            column = rows.columns[name][first:stop]
            known = np.flatnonzero(~np.isnan(column))
            at = first + int(known[-1]) if len(known) else end
            values[name] = float(rows.columns[name][at])
            if at == end:
                continue
            times = rows.columns["time"]
            since[name] = (
                short_day(times[at], times[end]) if timed else f"event {rows.columns['seq'][at]:,.0f}"
            )
            if name == "auc":  # its interval is of the same row
                values |= {side: float(rows.columns[side][at]) for side in ("auc_low", "auc_high")}
        time, code = rows.columns["time"][end], rows.reason_codes[end]
        lines.append(
            _Latest(
                rows.models[model],
                DASH if math.isnan(time) else stamp(time, dates=dates),
                values,
                since,
                rows.reasons[code] if code >= 0 else None,
            )
        )
    return lines
