"""What came of rows and alerts: the history, the newest alerts, and what is known and went wrong."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ...core.encoding.json import read_json
from ...core.errors import RocsteadyError
from ...core.process.console import say
from ...core.settings.evaluator import config_of
from ...transforms.sinks.kinds import ALERT_SCHEMA, CONFIDENCE_KEY, SETTINGS_KEY
from ...transforms.tables.followed import Came
from ..report.alerts import alerts_of
from .history import History
from .reading import Source

ALERTS_HELD = 10_000
"""The most alerts that are held: the newest."""


class Gathered:
    """Takes what sources give.

    alerts    the newest alerts; None: none are followed
    settings  by `config`, as far as they are known
    troubles  sentences on what could not be read or shown
    changed   whether something came since the caller set it to False
    rows_came_at  when rows last came, seconds since 1970; None: none came
    """

    def __init__(self, most: int, confidence: float, *, alerted: bool, says: bool = True) -> None:
        self._confidence = confidence
        self._says = says
        self.history = History(most)
        self.alerts: pa.Table | None = ALERT_SCHEMA.empty_table() if alerted else None
        self.settings: dict[str, Mapping[str, Any]] = {}
        self.troubles: dict[str, str] = {}
        self.changed = False
        self.rows_came_at: float | None = None

    def take(self, source: Source, came: Came | Exception) -> bool:
        """Take what a source gave; return whether it has no more rows at present."""
        try:
            return self._take(source, came)
        except Exception as error:  # records that cannot be shown; the others can
            self.note(source.name, f"Left out: records of {source.name}, {told(error)}.")
            return False

    def note(self, key: str, sentence: str) -> None:
        """Keep a sentence; print it where there was none of the key, unless the screen is not free."""
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
            return source.what == "rows"
        elif source.what == "rows":
            self._note_metadata(came.metadata)
            self.history.add(came.table)
            self.changed = True
            self.rows_came_at = time.time()
        elif self.alerts is not None:
            table = came.table.select(self.alerts.schema.names).cast(self.alerts.schema)
            alerts_of(table)  # else one wrong alert would keep the page from being made
            self.alerts = pa.concat_tables([self.alerts, table])[-ALERTS_HELD:].combine_chunks()
            self.changed = True
        return False

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
    """Return what an error says; of one that no user can cause, its type, too."""
    return str(error) if isinstance(error, RocsteadyError) else f"{type(error).__name__}: {error}"
