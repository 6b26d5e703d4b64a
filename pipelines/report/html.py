"""The page: a template, filled with words and tables that stand by themselves, and with data and code.

What can be said without JavaScript is in the HTML itself: what was evaluated, what became of the events,
what changed, the latest values of the first models, what the measures mean. The code then takes those
places over. All text that comes from data goes through `html.escape`, or through `script_json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources

import numpy as np

from ...core.errors import ConfigError
from ...core.version import __version__
from ..words import NONE, all_dates, counted, day, number, stamp, with_interval
from .changes import Change
from .measures import CONTEXT, MEANINGS, ROW_WORDS
from .rows import EventCounters, ReportRows

SCRIPTS = (
    "data.js",
    "state.js",
    "charts.js",
    "ranges.js",
    "better.js",
    "over_time.js",
    "slices.js",
    "curves.js",
    "table.js",
    "page.js",
)
"""Read one after another, as one script."""

CARDS = 5
"""Models of which "What changed" is in the HTML itself."""

TABLE_ROWS = 50
"""Models whose latest values are in the HTML itself."""

TABLE_MEASURES = ("auc", "h", "ks", "brier", "kappa", "kappa_m")

KINDS = {
    "invalid": "could not be read, or lacked what an event needs",
    "late": "came after the results of its time were final",
    "unmatched": "a prediction without its label, or a label without its prediction, when the wait was over",
    "duplicate": "had come before",
}
"""Why events do not count, in a few words each; the first kind is counted as "Dead letters"."""

LOST = tuple(kind for kind in KINDS if kind != "invalid")
"""Kinds with a number of their own, where there is any."""

VERDICTS = {
    "changed": "change supported",
    "not shown": "no change shown",
    "cannot tell": "nothing to compare",
}
"""What stands on a model's card."""


def asset(name: str) -> str:
    """Return a source of the page."""
    return (resources.files(__package__) / "page" / name).read_text("utf-8")


def plotly_source() -> str:
    """Return the plotting library's code. Raises ConfigError where it is not installed."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ConfigError(
            "the report is drawn by plotly, which is not installed; pip install 'rocsteady[report]'"
        ) from None
    return str(get_plotlyjs())


def page(fields: Mapping[str, str]) -> str:
    """Fill the template; every `{{name}}` in it is a field, and what fields hold is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: fields[match.group(1)], asset("page.html"))


def script() -> str:
    """Return the page's code as one script."""
    code = "\n".join(asset(name) for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{code}\n}})();'


def lead(rows: ReportRows, applied: int | None) -> str:
    """Say in a sentence what was evaluated."""
    if not len(rows):
        return "There are no rows to show: the files have their columns and nothing else."
    slices = len([name for name in rows.slices if name])
    parts = [counted(len({name for name, _ in rows.bases()}), "model")]
    if rows.ways:
        parts[0] += f" in {counted(len(rows.ways), 'way')} ({'; '.join(rows.ways)})"
    if slices:
        parts.append(counted(slices, "slice"))
    parts.append(counted(rows.total, "row") + " of measures")
    said = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
    if applied is not None:
        said += f" over {counted(applied, 'event')}"
    windows = rows.columns["window_events"]
    said += f", at most {np.nanmax(windows):,.0f} events in a window"
    time = rows.columns["time"]
    if not np.isnan(time).all():
        said += f", from {day(np.nanmin(time))} to {day(np.nanmax(time))}"
    return f"{said}."


def counters_html(counters: EventCounters, *, given: bool) -> str:
    """Return what became of the events as a list of numbers, with the reasons to unfold."""
    tiles = [("Events read", counters.read), ("Applied", counters.applied)]
    if given:
        tiles.append(("Dead letters", counters.total("invalid")))
        tiles += [(kind.capitalize(), count) for kind in LOST if (count := counters.total(kind))]
    shown = "".join(
        f"<div><dt>{label}</dt><dd>{count:,}</dd></div>" for label, count in tiles if count is not None
    )
    if not given:
        return (
            f'<dl class="counters">{shown}<div class="absent"><dt>Dead, late, unmatched, duplicate</dt>'
            '<dd class="none">not given</dd></div></dl><p class="hint">Keep events that could not count with '
            "<code>rocsteady evaluate --dead-letters FILE</code>, and give that file here as "
            "<code>--dead-letters FILE</code>.</p>"
        )
    told = f'<dl class="counters">{shown}</dl>'
    if counters.lost:
        items = "".join(
            f"<li>{count:,} &times; {escape(reason)} ({escape(kind)})</li>"
            for kind, reason, count in counters.lost[:30]
        )
        more = len(counters.lost) - 30
        items += f"<li>and {counted(more, 'more reason')}</li>" if more > 0 else ""
        kinds = "; ".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items())
        told += (
            f'<details class="reasons"><summary>Why events did not count</summary><ul>{items}</ul>'
            f'<p class="hint">{kinds}.</p></details>'
        )
    return told


def notes_html(notes: Sequence[str]) -> str:
    """Return what a reader must know before reading on."""
    told = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f'<div class="note" role="note">{told}</div>' if told else ""


def changes_html(changes: Sequence[Change]) -> str:
    """Return the first models' cards."""
    return "".join(
        f'<article class="card"><h3>{escape(one.model)}<span class="badge'
        f'{" changed" if one.verdict == "changed" else ""}">{VERDICTS[one.verdict]}</span></h3>'
        f"{figures_html(one.figures)}<p{_title(one.exact)}>{escape(one.text)}</p></article>"
        for one in changes[:CARDS]
    )


def _title(text: str) -> str:
    return f' title="{escape(text)}"' if text else ""


def figures_html(figures: str) -> str:
    """Return the two values that a card begins with."""
    return f'<p class="figures">{escape(figures)}</p>' if figures else ""


def latest_html(rows: ReportRows, confidence: str) -> str:
    """Return the table of latest values, of the first whole models."""
    held = [name for name in TABLE_MEASURES if not np.isnan(rows.columns[name]).all()]
    columns = ["seq", "window_events", "prevalence", *held]
    labels = {"seq": "Events applied", "window_events": "In window"}
    interval = not np.isnan(rows.columns["auc_low"]).all()
    if interval:
        labels["auc"] = f"AUC [{confidence} interval]"
    timed, dates = not np.isnan(rows.columns["time"]).all(), all_dates(rows.columns["time"])
    whole = rows.whole_models()[:TABLE_ROWS]
    reasoned = bool(len(whole)) and bool((rows.reason_codes[whole[:, 3] - 1] >= 0).any())
    head = ["Model", *(["Time (UTC)"] if timed else [])]
    head += [labels.get(name) or MEANINGS[name].label for name in columns]
    lines = []
    for model, _, _, stop in whole.tolist():
        last = stop - 1
        time = rows.columns["time"][last]
        cells = [f'<th scope="row">{escape(rows.models[model])}</th>']
        if timed:
            cells.append(f"<td>{NONE if np.isnan(time) else stamp(time, dates=dates)}</td>")
        for name in columns:
            digits = "count" if name == "seq" else MEANINGS[name].digits
            text = number(rows.columns[name][last], digits)
            if name == "auc" and interval:
                text = with_interval(*(rows.columns[end][last] for end in ("auc", "auc_low", "auc_high")))
            cells.append(f"<td>{text}</td>")
        if reasoned:
            code = rows.reason_codes[last]
            cells.append(f'<td class="text reason">{escape(rows.reasons[code]) if code >= 0 else ""}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    if not lines:
        lines = [f'<tr><td class="text" colspan="{len(head)}">No rows.</td></tr>']
    head += ["Reason"] if reasoned else []
    titles = "".join(f'<th scope="col">{title}</th>' for title in head)
    return f'<table id="latest-table"><thead><tr>{titles}</tr></thead><tbody>{"".join(lines)}</tbody></table>'


def null_html(nulls: Mapping[str, str]) -> str:
    """Return which measures have no chart, and why."""
    if not nulls:
        return ""
    by_reason: dict[str, list[str]] = {}
    for name, reason in nulls.items():
        by_reason.setdefault(reason, []).append(MEANINGS[name].label)
    said = "; ".join(f"{', '.join(labels)} ({escape(reason)})" for reason, labels in by_reason.items())
    return f'<p class="nulls">Null in every row, so not drawn: {said}.</p>'


def meanings_html() -> str:
    """Return a sentence for every measure."""
    shown = [name for name in MEANINGS if name not in CONTEXT] + list(CONTEXT)
    words = [(name, MEANINGS[name].label, MEANINGS[name].sentence) for name in shown]
    words += [(name, name.capitalize(), said) for name, said in ROW_WORDS.items()]
    items = "".join(
        f"<div><dt>{escape(label)}<code>{name}</code></dt><dd>{escape(sentence)}</dd></div>"
        for name, label, sentence in words
    )
    return f'<dl class="meanings">{items}</dl>'


def foot_html(rows: ReportRows, drawn: int) -> str:
    """Return the version, the settings' hashes, and what was left out."""
    said = [f"Made by rocsteady {__version__}."]
    if rows.configs:
        said.append(f"Settings (column config): {escape(', '.join(rows.configs[:12]))}.")
    if drawn < rows.total:
        said.append(
            f"{drawn:,} of {rows.total:,} rows are drawn: the first and the last of every series, and of the "
            "others those with the extremes of AUC, H-measure, KS and kappa-m."
        )
    else:
        said.append(
            f"All {rows.total:,} rows are in this page; a chart too narrow for its rows draws the extremes "
            "of every pixel."
        )
    said.append("Times are UTC. Charts are drawn by plotly.js (MIT), which is in this page.")
    return "".join(f"<p>{sentence}</p>" for sentence in said)
