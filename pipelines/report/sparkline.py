"""Small drawings of an AUC with its interval on an axis, and of the AUC over the rows: SVG, and text."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...core.arrays import FloatArray, Int64Array
from ...core.verdicts.series import Series

BAR = (120, 16)
"""Width and height of the drawing of an interval, in pixels."""

SPARK = (120, 30)
"""Width and height of the drawing of the rows, in pixels."""

_POINTS = 60
_HEIGHTS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
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
    rows = _drawn(series)
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
    left, right = float(across[0]), max(float(across[-1]), float(across[0]) + 1)
    starts, counts, mean = _points(middle, _POINTS)
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


def spark_text(series: Series, width: int) -> str:
    """Return the same as a text of at most `width` letters, of eight heights. "" without two points."""
    rows = _drawn(series)
    if len(rows) < 2:
        return ""
    _, _, mean = _points(series.auc[rows], width)
    spare = max(_LEAST_RANGE - float(np.ptp(mean)), 0) / 2
    bottom, top = float(mean.min()) - spare, float(mean.max()) + spare
    levels = np.minimum((len(_HEIGHTS) * (mean - bottom) / (top - bottom)).astype(int), len(_HEIGHTS) - 1)
    return "".join(_HEIGHTS[level] for level in levels.tolist())


def _drawn(series: Series) -> Int64Array:
    """Return the rows with an AUC and a full window; where there are fewer than two, all with an AUC."""
    rows = np.flatnonzero(np.isfinite(series.auc) & series.full)
    return rows if len(rows) > 1 else np.flatnonzero(np.isfinite(series.auc))


def _points(values: FloatArray, most: int) -> tuple[Int64Array, Int64Array, FloatArray]:
    """Return where each of at most `most` runs of values starts, its number of values, and its mean."""
    starts = np.unique(np.linspace(0, len(values), min(most, len(values)), endpoint=False).astype(np.int64))
    counts = np.diff(np.append(starts, len(values)))
    return starts, counts, np.add.reduceat(values, starts) / counts


def _line(x: list[int], y: list[int]) -> str:
    return "M" + "L".join(f"{across} {down}" for across, down in zip(x, y, strict=True))


def _svg(kind: str, width: int, height: int, parts: list[str]) -> str:
    return (
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-hidden="true">{"".join(parts)}</svg>'
    )
