"""Draws a measure of models over time, or over events, as a figure of plotly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.arrays import FloatArray
from ...core.errors import ConfigError, InputError
from ...core.process.near_names import near_names
from ...core.rows.measure_table import MEASURES
from ...core.rows.rows import Rows
from ...core.settings.windows import is_count
from ..report.classes.page_classes import CLASS, CLASS_NUMBERS, slices_with_classes
from ..report.data import CLASS_MEANINGS, MEANINGS, meanings_of, thinned
from ..report.report_rows import ReportRows, report_rows
from ..words import counted
from .summary import rows_of_slice

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROWS_DRAWN = 20_000
"""The most rows that a figure holds, besides the first and last rows of models."""

_BAND = 0.18
"""The opacity of the band of an interval."""


def figure_of(
    rows: pa.Table, newest: Rows, measure: str, models: int | Sequence[str], of_slice: str = ""
) -> Figure:
    """Return the figure of a measure: a line for each model, and for the AUC also the band of its interval.

    rows      all rows, sorted by model, slice and row; newest: the newest row of every model and slice
    models    the names of the models, or how many: those whose newest value is worst. The title says how many
              models are left out
    of_slice  the name of the slice to draw, or of the class, such as "class=cat"; "" is the whole model. The
              AUC of a whole model with classes is its macro AUC

    Raises ConfigError for a measure that is unknown or was not computed, InputError for a model or a slice
    without rows.
    """
    import plotly.graph_objects as go
    from plotly.colors import hex_to_rgb, qualitative

    _check_measure(measure, rows)
    if newest.classes is None:
        of_models = _of_slice(newest, of_slice)
        known = [of_models.keys[code][0] for code in of_models.key_codes.tolist()]
        names, chosen = _chosen(known, of_models.number(measure), measure, models)
        rows = rows.filter(pc.equal(rows.column("slice"), of_slice))
    else:
        rows = _of_class(rows, of_slice)
        there = report_rows(rows)
        ends = there.series[:, 3] - 1
        names, chosen = _chosen(there.models, there.columns[measure][ends], measure, models)
    all_rows = report_rows(rows.filter(pc.is_in(rows.column("model"), pa.array(names, pa.string()))))
    drawn = thinned(all_rows, limit=ROWS_DRAWN)
    moments = drawn.columns["time"]
    by_time = bool(len(drawn)) and not np.isnan(moments).any()
    at = moments.astype(np.int64).astype("datetime64[us]") if by_time else drawn.columns["seq"]
    figure = go.Figure()
    place_of = {name: place for place, name in enumerate(names)}
    spans = [(drawn.models[model], slice(first, stop)) for model, _, first, stop in drawn.series.tolist()]
    for name, span in sorted(spans, key=lambda each: place_of[each[0]]):
        color = qualitative.Plotly[place_of[name] % len(qualitative.Plotly)]
        if measure == "auc":
            fill = f"rgba({', '.join(map(str, hex_to_rgb(color)))}, {_BAND})"
            figure.add_trace(go.Scatter(
                **_band(at[span], drawn, span), fill="toself", fillcolor=fill, line={"width": 0},
                mode="lines", hoverinfo="skip", legendgroup=name, showlegend=False, name=name,
            ))  # fmt: skip
        figure.add_trace(go.Scatter(
            x=at[span], y=drawn.columns[measure][span], mode="lines" if len(at[span]) > 1 else "markers",
            line={"color": color}, marker={"color": color}, name=name, legendgroup=name,
        ))  # fmt: skip
    said = [of_slice, chosen] if of_slice else [chosen]
    if len(drawn) < len(all_rows):
        said.append(f"{len(drawn):,} of {counted(len(all_rows), 'row')} are drawn, extremes among them")
    label = meanings_of(all_rows)[measure].label
    figure.update_layout(
        title={"text": label, "subtitle": {"text": "; ".join(said)}},
        xaxis_title="time (UTC)" if by_time else "events applied",
        yaxis_title=label,
        showlegend=True,
    )
    return figure


def _check_measure(measure: str, rows: pa.Table) -> None:
    """Raise ConfigError for a measure that is unknown, or is null in every row."""
    there = (*MEASURES, *CLASS_NUMBERS) if CLASS in rows.column_names else MEASURES
    if measure not in there:
        near = near_names(measure, there) if isinstance(measure, str) else []
        meant = f"did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"measure={measure!r} is not known; {meant}There are {', '.join(there)}")
    if rows.num_rows and rows.column(measure).null_count == rows.num_rows:
        raise ConfigError(
            f"measure={measure!r} is null in every row: ask for it with measures= of evaluate(), or see the "
            "column reason"
        )


def _of_slice(newest: Rows, name: str) -> Rows:
    """Return the rows of one slice. Raises InputError for a slice without rows."""
    found = rows_of_slice(newest, name)
    if name and not len(found):
        known = sorted({of_slice for _, of_slice in newest.keys if of_slice})
        shown = ", ".join(near_names(str(name), known, 5) or known[:5])
        more = ", ..." if len(known) > 5 else ""
        what = f"the slices are {shown}{more}" if known else "slices= of evaluate() asks for slices"
        raise InputError(f"slice={name!r} has no rows; {what}")
    return found


def _of_class(rows: pa.Table, name: str) -> pa.Table:
    """Return the rows of a class, or of the models of a slice. Raises InputError for a name without rows."""
    _, parts = slices_with_classes(rows.column("slice"), rows.column(CLASS))
    of_slice, one = parts.get(name, (name, None))
    of_class = rows.column(CLASS)
    is_wanted = pc.is_null(of_class) if one is None else pc.fill_null(pc.equal(of_class, one), False)
    found = rows.filter(pc.and_(is_wanted, pc.equal(rows.column("slice"), of_slice)))
    if name and not found.num_rows:
        known = sorted({*parts, *rows.column("slice").unique().to_pylist()} - {""})
        shown = ", ".join(near_names(str(name), known, 5) or known[:5])
        raise InputError(f"slice={name!r} has no rows; there are {shown}{', ...' * (len(known) > 5)}")
    return found


def _chosen(
    known: list[str], values: FloatArray, measure: str, models: int | Sequence[str]
) -> tuple[list[str], str]:
    """Return the names of the models to draw, and a sentence on the models that are left out.

    values  the newest value of each model that is known
    """
    names = [models] if isinstance(models, str) else [*models] if isinstance(models, Iterable) else []
    for name in names:
        if name not in known:
            shown = ", ".join(near_names(str(name), known, 5) or known[:5])
            more = ", ..." if len(known) > 5 else ""
            raise InputError(f"models={name!r} has no rows; the models are {shown}{more}")
    if names:
        return names, counted(len(names), "model")
    if isinstance(models, Iterable) or not is_count(models):
        raise ConfigError(f"models={models!r}: give how many models to draw, 1 or more, or their names")
    most = int(models)
    if len(known) <= most:
        return known, counted(len(known), "model")
    is_lower = (CLASS_MEANINGS | MEANINGS)[measure].better == "lower"
    order = np.argsort(-values if is_lower else values, kind="stable")  # NaN comes last
    worst = "highest" if is_lower else "lowest"
    return [known[place] for place in order[:most].tolist()], (
        f"the {most:,} of {len(known):,} models with the {worst} newest "
        f"{(CLASS_MEANINGS | MEANINGS)[measure].label}; "
        f"{counted(len(known) - most, 'model')} left out"
    )


def _band(at: Any, rows: ReportRows, span: slice) -> dict[str, Any]:
    """Return the outline of the AUC's interval: a polygon for each run of rows that have an interval."""
    low, high = rows.columns["auc_low"][span], rows.columns["auc_high"][span]
    x: list[Any] = []
    y: list[float | None] = []
    for run in _runs(np.isnan(low) | np.isnan(high)):
        x += [*at[run], *at[run][::-1], None]
        y += [*high[run].tolist(), *low[run][::-1].tolist(), None]
    return {"x": x, "y": y}


def _runs(gaps: Any) -> Iterator[slice]:
    """Yield the runs of rows between gaps."""
    edges = np.flatnonzero(np.diff(np.concatenate(([True], gaps, [True]))))
    yield from (slice(start, stop) for start, stop in edges.reshape(-1, 2).tolist())
