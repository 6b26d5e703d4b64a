"""Warns of times in files that lie far from all other times."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ....core.arrays import Int64Array
from ....core.events.outlying import Outlier, TimeSpread
from ....core.events.records import Batch
from ....core.events.rejected import in_words
from ....core.events.times import date_text
from ....core.process.console import logger
from ..dead_letters import DeadLetters
from ..fields import Role
from .once import is_new

_logger = logger("rocsteady.times")

_SHOWN = 3
"""The most records with outlying times that a warning names."""


class TimesOfFiles:
    """The times of the records of files, by role and column.

    It warns of times that lie far from all others.
    """

    def __init__(self) -> None:
        self._spreads: dict[tuple[Role, str], TimeSpread] = {}

    def note(self, role: Role, column: str | None, batch: Batch, letters: DeadLetters) -> None:
        """Note the times of valid records, with their positions, and those of late records."""
        times, source = batch.times, batch.source
        if column is None or times is None:
            return
        self.note_times(role, column, times, batch.positions, source)
        if len(letters):
            late = letters.batch.filter(pc.equal(letters.batch.column("kind"), "late"))
            moments, positions = late.column("time").cast(pa.int64()), late.column("position").fill_null(-1)
            self.note_times(role, column, np.asarray(moments), np.asarray(positions), source)

    def note_times(
        self, role: Role, column: str, times: Int64Array, positions: Int64Array | None, source: str
    ) -> None:
        """Add the times of records of a source, none of them NO_TIME, with their positions."""
        self._spreads.setdefault((role, column), TimeSpread()).add(times, positions, source)

    def tell(self) -> None:
        """Warn of outlying times, once for each role and column of the files."""
        for (role, column), spread in self._spreads.items():
            if not (outliers := spread.outliers()):
                continue
            least, greatest = spread.middle()
            shown = ", ".join(map(_record, outliers[:_SHOWN]))
            more = f", and {len(outliers) - _SHOWN} more times" if len(outliers) > _SHOWN else ""
            gap = in_words(min(outlier.gap for outlier in outliers))
            finding = (
                f"{shown}{more}: {gap} or more from every other time, while the middle 98% of the times span "
                f"{in_words(greatest - least)}; windows and rows by time go as far"
            )
            remedy = "mend the time, or leave the record out"
            if outliers[-1].time > greatest:
                remedy += "; with --max-ahead 1d (max_ahead=) a time ahead of the clock is a dead letter"
            text = f"times in {column!r}: {finding}; {remedy}"
            if is_new((column, f"{role} of {outliers[0].source}"), text):
                _logger.warning("times in %r: %s; %s", column, finding, remedy)


def _record(outlier: Outlier) -> str:
    place = "a record" if outlier.position < 0 else f"the record at position {outlier.position:,}"
    return f"{place} of {outlier.source} is dated {date_text(outlier.time)}"
