"""Times that lie far from all others, such as a time dated 2106: found in one pass, in bounded memory.

When a time is outlying
    The times of n records are ordered, and the least and the greatest 1% of them are left out, one record at
    least on either side. The rest, the middle 98%, spans a length of time. A time outside the middle is
    outlying if it is further than ten times this span from the nearest time on the side of the middle. Many
    outlying times may be near each other: then the gap between them and the middle counts.

    If the middle is one moment, its span is 0, and every other time would be outlying. The span then counts
    as 30 days: the times may be dates of days, weeks, months or quarters, which are less than 300 days apart.

    Of fewer than 100 records, 1% is less than a record, and the span says little. The gap must then be wider
    than a day, too. Of fewer than ten records, no time is outlying.

Memory
    The middle is known from a sorted sample of some 8,000 times with weights, whose ranks are right to about
    0.1% of n. The 64 least and the 64 greatest distinct times are known exactly, each with its first record.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import NO_INT64, Int64Array

_LEAST_RECORDS = 10
_FEW_RECORDS = 100
_KEPT = 64
_POINTS = 4_096
_TIMES_THE_SPAN = 10
_DAY = 86_400_000_000
_SPAN_OF_A_MOMENT = 30 * _DAY


class Outlier(NamedTuple):
    """An outlying time: microseconds, with its first record.

    source, position  the source of the record, and its ordinal in the source; -1 = unknown
    gap               microseconds between the outlying times of this side and all other times
    """

    time: int
    source: str
    position: int
    gap: int


class TimeSpread:
    """The times of records so far: a sorted sample of all times, and the least and the greatest times."""

    def __init__(self) -> None:
        self._count = 0
        self._times = self._weights = NO_INT64
        self._least: dict[int, tuple[str, int]] = {}
        self._greatest: dict[int, tuple[str, int]] = {}

    def add(self, times: Int64Array, positions: Int64Array | None, source: str) -> None:
        """Add the times of records of a source, microseconds, none of them NO_TIME. O(n log n)."""
        if not len(times):
            return
        self._count += len(times)
        ordered = np.sort(times)
        step = -(-len(times) // _POINTS)
        points = np.append(ordered[step - 1 : -1 : step], ordered[-1])
        weights = np.full(len(points), step)
        weights[-1] += len(times) - int(weights.sum())
        self._sample(points, weights)
        distinct = ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[0] - 1))]
        for kept, some in ((self._least, distinct[:_KEPT]), (self._greatest, distinct[-_KEPT:])):
            if new := [time for time in some.tolist() if time not in kept]:
                rows = np.flatnonzero((times >= min(new)) & (times <= max(new)))
                order = rows[np.argsort(times[rows], kind="stable")]
                first = order[np.searchsorted(times[order], new)]
                places = np.full(len(new), -1) if positions is None else positions[first]
                kept.update((time, (source, place)) for time, place in zip(new, places.tolist(), strict=True))
        self._least = {time: self._least[time] for time in sorted(self._least)[:_KEPT]}
        self._greatest = {time: self._greatest[time] for time in sorted(self._greatest)[-_KEPT:]}

    def _sample(self, points: Int64Array, weights: Int64Array) -> None:
        """Merge points with the sample.

        If it then has twice as many points as are kept, groups of equal weight replace the points.
        """
        points = np.concatenate([self._times, points])
        order = np.argsort(points, kind="stable")
        points, ends = points[order], np.cumsum(np.concatenate([self._weights, weights])[order])
        if len(points) > 2 * _POINTS:
            last = np.flatnonzero(np.diff((ends - 1) * _POINTS // ends[-1], append=_POINTS))
            points, ends = points[last], ends[last]
        self._times, self._weights = points, np.diff(ends, prepend=0)

    def middle(self) -> tuple[int, int]:
        """Return the least and the greatest time of the middle 98% of the records.

        There must be at least three records.
        """
        ends = np.cumsum(self._weights)
        count = int(ends[-1])
        out = max(count // 100, 1)
        low, high = np.searchsorted(ends, [out, count - 1 - out], "right").tolist()
        return int(self._times[low]), int(self._times[high])

    def outliers(self) -> list[Outlier]:
        """Return the outlying times in order; at most 126 of them are known."""
        if self._count < _LEAST_RECORDS:
            return []
        low, high = self.middle()
        limit = _TIMES_THE_SPAN * ((high - low) or _SPAN_OF_A_MOMENT)
        if self._count < _FEW_RECORDS:
            limit = max(limit, _DAY)
        found: list[Outlier] = []
        least, greatest = [*self._least], [*self._greatest]
        for end in range(len(least) - 1, 0, -1):
            gap = least[end] - least[end - 1]
            if gap > limit and least[end - 1] < low:
                found += [Outlier(time, *self._least[time], gap) for time in least[:end]]
                break
        for start in range(1, len(greatest)):
            gap = greatest[start] - greatest[start - 1]
            if gap > limit and greatest[start] > high:
                found += [Outlier(time, *self._greatest[time], gap) for time in greatest[start:]]
                break
        return found
