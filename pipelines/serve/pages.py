"""What a page says at one moment: its HTML, and the texts that its code fetches."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
from plotly.offline import get_plotlyjs

from ...core.alerts.rules import Span
from ...core.settings.periods import Period
from ...core.version import __version__
from ..report.data import DRAWN, script_json
from ..report.facts import TITLE, page_facts
from ..report.render import asset, render
from ..report.rows import ReportRows
from ..words import counted
from .history import History


@dataclass
class Look:
    """How a page shows rows.

    reference   what the latest windows are compared with; None: all earlier windows
    confidence  the level of the intervals of the rows
    alerted     whether alerts are followed
    held        the columns that had a value at any time: a page never loses one
    """

    title: str = TITLE
    confidence: float = 0.95
    reference: Span | Period | None = None
    alerted: bool = False
    held: dict[str, None] = field(default_factory=dict)


class Latest(NamedTuple):
    """The latest row of a model or slice; None = null.

    time        as the page shows it: of a row on a grid of times, its grid point
    event_time  of the last event; both are microseconds
    """

    model: str
    slice: str
    seq: float | None
    time: float | None
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    h: float | None
    window_events: float | None
    evidence: float | None
    event_time: float | None


class Page(NamedTuple):
    """A page as of `position` rows of an epoch.

    words   the number of the page in its run
    texts   what the page's code fetches, by name, packed
    names   the columns that the page shows
    latest  the latest row of each series
    """

    epoch: str
    position: int
    words: int
    html: bytes
    texts: dict[str, bytes]
    names: tuple[str, ...]
    latest: list[Latest]


def page_of(
    rows: ReportRows,
    alerts: pa.Table | None,
    look: Look,
    *,
    epoch: str,
    words: int,
    remarks: Sequence[str],
) -> Page:
    """Return the page about rows. O(n log n) in rows."""
    facts = page_facts(
        rows,
        alerts=alerts,
        title=look.title,
        confidence=look.confidence,
        reference=look.reference,
        holds_rows=False,
    )
    meta = facts.meta
    look.held.update(dict.fromkeys(meta["columns"]))
    meta["columns"] = [name for name in rows.columns if name in look.held]
    meta["drawn"] = [name for name in DRAWN if name in look.held]
    texts = {name: base64.b64decode(block) for name, block in facts.blocks.items()}
    meta |= {
        "at": f"{epoch}-{len(rows)}",
        "words": words,
        "texts": [*texts, *facts.texts],
        "structure": _structure(meta, facts.shown),
        "plotly": _digest(plotly_script())[:12],
    }
    html = render("page.html", blocks={}, meta=script_json(meta), live=[*remarks], **facts.shown).encode()
    texts |= {name: gzip.compress(text.encode(), 1, mtime=0) for name, text in facts.texts.items()}
    return Page(epoch, len(rows), words, html, texts, (*meta["columns"], "reason"), _latest(rows))


def remarks_of(history: History, troubles: Mapping[str, str]) -> list[str]:
    """Return the sentences at the foot of a page: which rows the page has, and which errors happened."""
    told = [f"The page has all {counted(history.came, 'row')} that came."]
    if history.newest is not None:
        sentence = (
            f"{history.came:,} rows came, and this page has {len(history):,} of them: the newest "
            f"{history.newest:,} of every series, and of older rows every second, fourth, eighth, ... the "
            "older the fewer. Values are as they came. The verdicts use the rows that the page has."
        )
        told = [sentence]
    if history.beyond:
        told.append(
            f"{counted(history.beyond, 'row')} of further models and slices left out: the page has room for "
            f"{len(history.series):,} series."
        )
    if history.differing:
        told.append(
            f"{counted(history.differing, 'row')} came again with other values, and the first stays: two "
            "jobs write to one place, or a job was started anew without its state."
        )
    return [*told, *troubles.values()]


def _structure(meta: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    """Return a digest of which sections, controls and charts a page has: they are made once, by its code."""
    parts = [
        bool(meta["series"]), meta["columns"], meta["drawn"], meta["times"], meta["panes"],
        meta["heatmap"] and len(meta["heatmap"]["groups"]), shown["alerts"] is not None, __version__,
        [name for name, section in meta["sections"].items() if section["lines"]],
    ]  # fmt: skip
    return _digest(json.dumps(parts).encode())[:16]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _latest(rows: ReportRows) -> list[Latest]:
    ends = rows.series[:, 3] - 1
    names = Latest._fields[2:]
    all_columns = rows.columns | {"event_time": rows.event_times}
    columns = [all_columns[name][ends].tolist() for name in names]
    return [
        Latest(
            rows.models[model],
            rows.slices[part],
            *(None if math.isnan(value) else value for value in values),
        )
        for (model, part, *_), *values in zip(rows.series.tolist(), *columns, strict=True)
    ]


@cache
def page_script() -> bytes:
    """Return the code of a served page."""
    return render("scripts.js", live=True).encode()


@cache
def page_style() -> bytes:
    """Return the style of a served page."""
    return (asset("style.css") + asset("lines.css") + asset("live.css")).encode()


@cache
def plotly_script() -> bytes:
    """Return the code of the plotting library."""
    return str(get_plotlyjs()).encode()
