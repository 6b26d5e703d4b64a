"""The content of a page at one moment: its HTML, and the blocks that its code fetches."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from plotly.offline import get_plotlyjs

from ...core.alerts.rules import Span
from ...core.settings.periods import Period
from ...core.version import __version__
from ..report.data import CURVE_BLOCKS, drawn_columns, script_json
from ..report.facts import TITLE, page_facts
from ..report.render import asset, render
from ..report.report_rows import ReportRows, Tables
from ..words import counted
from .gathered import Gathered
from .history import History


@dataclass
class Look:
    """The settings by which a page shows rows.

    reference   the reference of the latest windows; None = all earlier windows
    confidence  the level of the intervals of the rows
    followed    the tables that are followed beside the rows: "alerts", "roll-ups", "pairs", "curves"
    chart_first whether the large chart stands before the overview
    held        the columns that have had a value at some time, because a page never loses one
    """

    title: str = TITLE
    confidence: float = 0.95
    reference: Span | Period | None = None
    followed: tuple[str, ...] = ()
    chart_first: bool = False
    held: dict[str, None] = field(default_factory=dict)


class Latest(NamedTuple):
    """The latest row of a model or slice; None = null.

    time        as the page shows it: for a row on a grid of times, its grid point
    event_time  the time of the last event; both are microseconds
    class_      the class of the row; "" = the row is of a model with classes, and its AUC is the macro AUC.
                None = the model has one score
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
    class_: str | None = None

    def told(self) -> dict[str, Any]:
        """Return the row in the form that the API gives; only rows of models with classes have a `class`."""
        fields = self._asdict()
        name = fields.pop("class_")
        return fields if name is None else fields | {"class": name or None}


class Page(NamedTuple):
    """A page as of `position` rows of an epoch.

    words   the number of the page in its run
    texts   the blocks besides the columns that the page's code fetches, by name, packed
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
    gathered: Gathered,
    look: Look,
    *,
    epoch: str,
    words: int,
    remarks: Sequence[str],
) -> Page:
    """Return the page about rows, and about the other tables that were gathered. O(n log n) in rows."""
    curves = gathered.curves
    facts = page_facts(
        rows,
        Tables(
            alerts=gathered.alerts,
            counters=gathered.counters,
            curves=None if curves is None else curves.table,
            **{what.replace("-", "_"): history.table for what, history in gathered.beside.items()},
        ),
        title=look.title,
        confidence=look.confidence,
        reference=look.reference,
        holds_rows=False,
    )
    meta = facts.meta
    look.held.update(dict.fromkeys(meta["columns"]))
    meta["columns"] = [name for name in rows.columns if name in look.held]
    meta["drawn"] = [name for name in drawn_columns(rows) if name in look.held]
    texts = {name: gzip.compress(text.encode(), 1, mtime=0) for name, text in facts.texts.items()}
    texts |= {name: base64.b64decode(block) for name, block in facts.blocks.items()}
    of_curves = {name: texts.pop(name) for name in [*texts] if name in CURVE_BLOCKS}
    meta |= {
        "at": f"{epoch}-{len(rows)}",
        "words": words,
        "texts": [*texts],
        "curvesAt": _digest(b"".join(of_curves.values()))[:12] if of_curves else None,
        "structure": _structure(meta, facts.shown),
        "plotly": _digest(plotly_script())[:12],
    }
    html = render(
        "page.html", blocks={}, meta=script_json(meta), live=[*remarks], curved=curves is not None,
        plotly_styles=plotly_styles(), chart_first=look.chart_first, **facts.shown,
    ).encode()  # fmt: skip
    texts |= {f"{name}-{meta['curvesAt']}": block for name, block in of_curves.items()}
    return Page(epoch, len(rows), words, html, texts, (*meta["columns"], "reason"), _latest(rows))


def remarks_of(gathered: Gathered) -> list[str]:
    """Return the sentences at the foot of a page: which rows the page has, and which errors occurred."""
    history, curves = gathered.history, gathered.curves
    all_there = f"The page has all {counted(history.came, 'row')} that came."
    told = [*([] if history.newest is not None else [all_there]), *_left_out(history, "row")]
    if history.newest is not None:
        told.append("The verdicts use the rows that the page has.")
    for what, held in gathered.beside.items():
        told += _left_out(held, {"roll-ups": "roll-up row", "pairs": "pair row"}[what])
    if curves is not None and len(curves) < curves.came:
        told.append(f"{counted(curves.came, 'curve')} came, and this page has the newest {len(curves):,}.")
    return [*told, *gathered.troubles.values()]


def _left_out(history: History, noun: str) -> Iterator[str]:
    """Yield sentences on the rows that came but are not in a history."""
    if history.newest is not None:
        yield (
            f"{counted(history.came, noun)} came, and this page has {len(history):,} of them: the newest "
            f"{history.newest:,} of every series, and of older rows every second, fourth, eighth, ... the "
            "older the fewer. Values are as they came."
        )
    if history.beyond:
        yield (
            f"{counted(history.beyond, noun)} of further series left out: the page has room for "
            f"{len(history.series):,} series."
        )
    if history.differing:
        yield (
            f"{counted(history.differing, noun)} came again with other values, and the first stays: two "
            "jobs write to one place, or a job was started anew without its state."
        )


def _structure(meta: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    """Return a digest of the sections and axes that a page has, because its code makes them only once."""
    parts = [
        bool(meta["series"]), meta["times"], meta["panes"], [*meta["sections"]], __version__,
        meta["heatmap"] and len(meta["heatmap"]["groups"]), meta["classPairs"], shown["alerts"] is not None,
    ]  # fmt: skip
    return _digest(json.dumps(parts).encode())[:16]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _latest(rows: ReportRows) -> list[Latest]:
    ends = rows.series[:, 3] - 1
    names = Latest._fields[2:-1]
    slices = {part: (name, None if rows.classes is None else "") for part, name in enumerate(rows.slices)}
    if rows.classes is not None:
        slices |= {part: of for of, part in rows.classes.places.items()}
    all_columns = rows.columns | {"event_time": rows.event_times}
    columns = [all_columns[name][ends].tolist() for name in names]
    return [
        Latest._make(
            [
                rows.models[model],
                slices[part][0],
                *(None if math.isnan(value) else value for value in values),
                slices[part][1],
            ]
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


_STYLE_ELEMENT = re.compile(
    r'if\(!document\.getElementById\("(\w+)"\)\)\{var \w+=document\.createElement\("style"\)'
)


@cache
def plotly_styles() -> list[str]:
    """Return the ids of the style elements that the plotting library makes if no element has the id.

    They are for maps, which the page does not draw, and its policy forbids style elements.
    """
    return _STYLE_ELEMENT.findall(plotly_script().decode())


@cache
def plotly_script() -> bytes:
    """Return the code of the plotting library."""
    return str(get_plotlyjs()).encode()
