"""The rows, and the other tables, that have come, in bounded memory; also the settings, and the errors."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from ...core.encoding.json import read_json
from ...core.errors import InputError, RocsteadyError
from ...core.process.console import say
from ...core.settings.evaluator import config_of
from ...transforms.sinks.kinds import ALERT_SCHEMA, CONFIDENCE_KEY, SETTINGS_KEY
from ...transforms.tables.followed import Came
from ...transforms.tables.read import of_all_classes
from ..report.alerts import alerts_of
from ..report.fleet.pairs import pairs_section
from ..report.fleet.roll_ups import roll_ups_section
from ..report.render import render
from ..report.report_rows import EventCounters
from .curves import Curves
from .history import CLASS_ROWS, PAIRS, ROLL_UPS, ROWS, History
from .reading import Source

ALERTS_HELD = 10_000
"""The most alerts that are held: the newest alerts."""

HELD_BESIDE = 20_000
"""The most roll-up rows that are held, and the most rows of pairs."""

_BESIDE = {"roll-ups": (ROLL_UPS, roll_ups_section), "pairs": (PAIRS, pairs_section)}


class Gathered:
    """Takes the tables that sources give.

    alerts    the newest alerts; None if alerts are not followed
    beside    the roll-up rows and the rows of pairs, by "roll-ups" and "pairs", as far as they are followed
    curves    the newest curves; None if curves are not followed
    counters  the counts of events of a job in this process; None if they are not known
    settings  the settings by `config`, as far as they are known
    troubles  sentences on what could not be read or shown
    changed   whether anything came since the caller last set it to False
    rows_came_at  when rows last came, seconds since 1970; None if no rows came
    """

    def __init__(
        self, most: int, confidence: float, followed: Collection[str] = (), *, says: bool = True
    ) -> None:
        """Hold at most `most` rows. `followed` names the tables beside the rows, such as "alerts"."""
        self._confidence = confidence
        self._says = says
        self.history = History(most)
        self.alerts: pa.Table | None = ALERT_SCHEMA.empty_table() if "alerts" in followed else None
        self.beside = {
            what: History(HELD_BESIDE, kind) for what, (kind, _) in _BESIDE.items() if what in followed
        }
        self.curves = Curves() if "curves" in followed else None
        self.counters: EventCounters | None = None
        self.settings: dict[str, Mapping[str, Any]] = {}
        self.troubles: dict[str, str] = {}
        self.changed = False
        self.rows_came_at: float | None = None

    def take(self, source: Source, came: Came | Exception) -> bool:
        """Take a table that a source gave; return whether the source has no more at present."""
        try:
            return self._take(source, came)
        except Exception as error:  # these records cannot be shown, but others can
            self.note(source.name, f"Left out: records of {source.name}, {told(error)}.")
            return False

    def note(self, key: str, sentence: str) -> None:
        """Keep a sentence under a key; print it if the key is new, unless the screen is not free."""
        if self._says and key not in self.troubles:
            say(sentence)
        self.troubles[key] = sentence
        self.changed = True

    def _take(self, source: Source, came: Came | Exception) -> bool:
        if isinstance(came, Exception):
            self.note(source.name, f"{source.name} is not read any more: {told(came)}.")
        elif came.trouble:
            self.note(came.trouble, f"Left out: {came.trouble}.")
        elif came.table is None:
            return True
        elif source.what == "rows":
            self._note_metadata(came.metadata)
            self._take_rows(came.table)
            self.changed = True
            self.rows_came_at = time.time()
        elif source.what != "alerts":
            self._take_beside(source.what, came.table)
            self.changed = True
        elif self.alerts is not None:
            table = came.table.select(ALERT_SCHEMA.names).cast(ALERT_SCHEMA)
            alerts_of(table)  # otherwise one wrong alert would prevent every later page
            self.alerts = pa.concat_tables([self.alerts, table])[-ALERTS_HELD:].combine_chunks()
            self.changed = True
        return False

    def _take_rows(self, table: pa.Table) -> None:
        """Add rows. Their kind must be that of the first rows.

        Raises InputError for rows of the other kind.
        """
        kind = CLASS_ROWS if "class" in table.column_names else ROWS
        if kind is not self.history.kind and not self.history.came:
            self.history = History(self.history.most, kind)
        if kind is not self.history.kind and table.num_rows:
            raise InputError(
                "some are of models with a score of each class, and others are not: follow them apart"
            )
        if kind is self.history.kind:
            self.history.add(table)

    def _take_beside(self, what: str, table: pa.Table) -> None:
        """Add a table that has neither rows nor alerts."""
        if what == "curves" and self.curves is not None:
            self.curves.add(table)
        elif what in self.beside:
            table = of_all_classes(table) if what == "roll-ups" else table
            section = _BESIDE[what][1](table, self._confidence)
            if section is not None:  # otherwise one wrong row would prevent every later page
                section.blocks(render)
            self.beside[what].add(table)

    def _note_metadata(self, metadata: Mapping[bytes, bytes]) -> None:
        if CONFIDENCE_KEY in metadata and float(metadata[CONFIDENCE_KEY]) != self._confidence:
            self.note(
                "confidence",
                f"Some rows have intervals of the level {float(metadata[CONFIDENCE_KEY]):g}, and they are "
                f"shown as those of {self._confidence:g}: give --confidence, and rows of one level.",
            )
        text = metadata.get(SETTINGS_KEY, b"").decode("utf-8", "replace")
        if text:
            settings = read_json(text, "the settings of rows")
            if isinstance(settings, dict):
                self.settings[config_of(text)] = settings


def told(error: Exception) -> str:
    """Return the text of an error, with its type if no user can cause the error."""
    return str(error) if isinstance(error, RocsteadyError) else f"{type(error).__name__}: {error}"
