"""Small drawings of the overview, as SVG: an AUC with its interval on an axis, and the AUC over the rows."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...core.arrays import FloatArray
from ...core.verdicts.series import Series

BAR = (120, 16)
"""Width and height of the drawing of an interval, in pixels."""

SPARK = (120, 30)
"""Width and height of the drawing of the rows, in pixels."""

_POINTS = 60
_LEAST_RANGE = 0.1
"""The least range of AUC that a drawing of rows spans: else noise would look like a change."""


class Axis(NamedTuple):
    """The range of AUC that all bars of a page share."""

    low: float
    high: float


def common_axis(values: FloatArray) -> Axis:
    """Return the axis from the least to the greatest value, rounded outwards to 0.05; NaN is left out."""
    known = values[np.isfinite(values)]
    if not len(known):
        return Axis(0.0, 1.0)
    low, high = math.floor(float(known.min()) * 20) / 20, math.ceil(float(known.max()) * 20) / 20
    if high == low:
        low, high = (low - 0.05, high) if high >= 1 else (low, high + 0.05)
    return Axis(max(0.0, low), min(1.0, high))


def bar(auc: float, low: float, high: float, reference: float, axis: Axis) -> str:
    """Return an SVG: the interval as a line, the AUC as a dot, the reference as a tick. "" without an AUC."""
    if not math.isfinite(auc):
        return ""
    width, height = BAR
    middle = height // 2

    def place(value: float) -> str:
        return f"{4 + (width - 8) * (value - axis.low) / (axis.high - axis.low):.1f}"

    parts = [f'<path class="rail" d="M0 {middle}H{width}"/>']
    if math.isfinite(low) and math.isfinite(high):
        parts.append(f'<path class="interval" d="M{place(low)} {middle}H{place(high)}"/>')
    if math.isfinite(reference):
        parts.append(f'<path class="reference" d="M{place(reference)} 1V{height - 1}"/>')
    parts.append(f'<circle cx="{place(auc)}" cy="{middle}" r="3.5"/>')
    return _svg("bar", width, height, parts)


def sparkline(series: Series, since: float) -> str:
    """Return an SVG of the AUC over the rows with full windows, with the band of its intervals.

    since  place of the change in the unit of `Series.end`, drawn as an upright line; NaN = none

    Where there are more than 60 rows, a point is the mean of neighbouring rows. "" without two points.
    """
    rows = np.flatnonzero(np.isfinite(series.auc) & series.full)
    if len(rows) < 2:
        rows = np.flatnonzero(np.isfinite(series.auc))
    if len(rows) < 2:
        return ""
    low = np.where(np.isnan(series.low), series.auc, series.low)
    high = np.where(np.isnan(series.high), series.auc, series.high)
    across = series.end[rows].astype(np.float64)
    return spark(across, series.auc[rows], low[rows], high[rows], _LEAST_RANGE, since)


def spark(
    across: FloatArray,
    middle: FloatArray,
    low: FloatArray,
    high: FloatArray,
    least: float,
    since: float = math.nan,
    level: float = math.nan,
) -> str:
    """Return an SVG of two points or more, in order, with their band.

    across     where the points stand
    low, high  the band
    least      the least range that the height spans
    since      the place of an upright line, in the unit of `across`; NaN = none
    level      a value that is drawn as a level line; NaN = none
    """
    width, height = SPARK
    rows = len(across)
    left, right = float(across[0]), max(float(across[-1]), float(across[0]) + 1)
    starts = np.unique(np.linspace(0, rows, min(_POINTS, rows), endpoint=False).astype(np.int64))
    counts = np.diff(np.append(starts, rows))
    mean = np.add.reduceat(middle, starts) / counts
    place = np.add.reduceat(across, starts) / counts
    place[[0, -1]] = left, right
    mean[-1] = middle[-1]
    low, high = np.fmin.reduceat(low, starts), np.fmax.reduceat(high, starts)
    bottom, top = np.fmin(low.min(), level), np.fmax(high.max(), level)
    spare = max(least - (top - bottom), 0) / 2
    bottom, top = bottom - spare, top + spare
    x = np.rint((width - 6) * (place - left) / (right - left) + 3).astype(np.int64).tolist()

    def down(values: FloatArray) -> list[int]:
        places: list[int] = np.rint((height - 4) * (top - values) / (top - bottom) + 2).astype(int).tolist()
        return places

    line = _line(x, down(mean))
    band = _line(x, down(high)) + "L" + _line(x[::-1], down(low)[::-1])[1:] + "Z"
    parts = [f'<path class="band" d="{band}"/>']
    if math.isfinite(level):
        parts.append(f'<path class="level" d="M0 {down(np.array([level]))[0]}H{width}"/>')
    if left <= since <= right:
        parts.append(
            f'<path class="since" d="M{(width - 6) * (since - left) / (right - left) + 3:.0f} 0V{height}"/>'
        )
    parts.append(f'<path class="line" d="{line}"/>')
    parts.append(f'<circle cx="{x[-1]}" cy="{down(mean)[-1]}" r="2.5"/>')
    return _svg("spark", width, height, parts)


def _line(x: list[int], y: list[int]) -> str:
    return "M" + "L".join(f"{across} {down}" for across, down in zip(x, y, strict=True))


def _svg(kind: str, width: int, height: int, parts: list[str]) -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true">{"".join(parts)}</svg>'
    )
