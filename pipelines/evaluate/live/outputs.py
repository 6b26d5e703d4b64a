"""The sinks of a live job: some sinks write each row when it is made, other sinks write at the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from ....core.process.temporary_folders import temporary_folder
from ....transforms.events import time_doubts
from ....transforms.sinks.append import is_appendable
from ....transforms.sinks.kinds import ALERTS, CURVES, DEAD_LETTERS, ROWS, TableSink
from ....transforms.sinks.open import is_streamed, open_sink
from ....transforms.sinks.sorted import row_schema
from ...outputs import staged
from ..job import Evaluation, Outcome
from ..on_beam import report_on
from ..summary import warnings_of


class LiveOutputs:
    """The sinks of a job, by the kind of their batches. The report is made from separate temporary files."""

    def __init__(self, job: Evaluation, place_of: dict[str, str], folder: str) -> None:
        self._job = job
        self._report = place_of.get(job.report or "")
        kinds = {
            "rows": ROWS._replace(schema=row_schema(job.settings.evaluator)),
            "dead letters": DEAD_LETTERS,
            "curves": CURVES,
            "alerts": ALERTS,
        }
        self._sinks: dict[str, list[TableSink]] = {name: [] for name in kinds}
        for _, path, kind in job.outputs():
            if kind in kinds:
                self._sinks[kind].append(open_sink(place_of.get(path, path), kinds[kind], job.sinks))
        self._copies = {kind: str(Path(folder) / f"{kind}.parquet") for kind in ("rows", "curves")}
        if self._report is not None:
            for kind, path in self._copies.items():
                self._sinks[kind].append(open_sink(path, kinds[kind], job.sinks))

    def write(self, kind: str, batch: pa.RecordBatch) -> None:
        """Write rows of a kind."""
        for sink in self._sinks[kind]:
            sink.write(batch)

    def tend(self) -> None:
        """Let every sink do its due work."""
        for sinks in self._sinks.values():
            for sink in sinks:
                sink.tend()

    def finish(self) -> None:
        """Let every sink write its remaining rows, at the end."""
        for sinks in self._sinks.values():
            for sink in sinks:
                sink.finish()

    def close(self) -> None:
        """Release the open files and clients of every sink."""
        for sinks in self._sinks.values():
            for sink in sinks:
                sink.close()

    def report(self, outcome: Outcome) -> None:
        """Write the report, if the job has a report."""
        if self._report is not None:
            drawn = self._job.settings.evaluator.curves is not None
            copies = replace(
                self._job, output=self._copies["rows"], curves=self._copies["curves"] if drawn else None
            )
            warnings = [*time_doubts.told(), *warnings_of(outcome, self._job)]
            report_on(copies, outcome, self._report, warnings)


@contextmanager
def live_outputs(job: Evaluation) -> Iterator[LiveOutputs]:
    """Yield the sinks of a job; files that are written at the end exist only if the block succeeds."""
    whole = [path for _, path, _ in job.outputs() if not is_appendable(path) and not is_streamed(path)]
    with staged(whole, True) as places, temporary_folder() as folder:
        outputs = LiveOutputs(job, dict(zip(whole, places, strict=True)), folder)
        try:
            yield outputs
        finally:
            outputs.close()
