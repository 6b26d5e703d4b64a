"""The states that shards give, as files of an export; and back, as the states with which shards begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apache_beam as beam

from ..core.label_join import JoinSettings
from ..core.records import StateImport
from ..core.settings import TableSettings
from ..core.sharding import shard_key
from ..core.state_export import ShardState
from ..core.state_import import join_taken_up, taken_up
from .state_folder import Export, Step, write_state


class _WriteState(beam.DoFn):
    def __init__(self, steps: Sequence[Step], folder: str | None) -> None:
        self._steps = tuple(steps)
        self._folder = folder

    def process(self, state: bytes) -> None:
        """Write one state, and with the last one the manifest."""
        write_state(state, self._folder or ShardState.unpack(state).folder, self._steps)


class WriteStates(beam.PTransform[beam.PCollection[bytes], None]):
    """Writes packed `ShardState`s to the folder that their export names, and the manifest behind the last.

    steps   of the job that an export holds
    folder  where they go instead, if anywhere
    """

    def __init__(self, steps: Sequence[Step], folder: str | None = None) -> None:
        super().__init__()
        self._steps = steps
        self._folder = folder

    def expand(self, states: beam.PCollection[bytes]) -> None:
        """Write; there is no output."""
        _ = states | beam.ParDo(_WriteState(self._steps, self._folder)).with_output_types(bytes)


class ReadStates(beam.PTransform[beam.pvalue.PBegin, beam.PCollection[tuple[str, bytes]]]):
    """Reads the states of a step of an export: (shard key, packed `StateImport`).

    settings  of the step that takes them up; it has the shards of the export
    """

    def __init__(self, export: Export, settings: TableSettings | JoinSettings) -> None:
        super().__init__()
        self._export = export
        self._settings = settings
        self._step = "join" if isinstance(settings, JoinSettings) else "evaluators"

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[tuple[str, bytes]]:
        """Apply to the beginning of a pipeline."""
        found = self._export.step(self._step)
        shards = range(0 if found is None else found.shards)
        states: beam.PCollection[tuple[str, bytes]] = (
            begin
            | "Shards" >> beam.Create(shards).with_output_types(int)
            | "Spread states" >> beam.Reshuffle()
            | "Read state"
            >> beam.FlatMap(_brought, self._export, self._step, self._settings).with_output_types(
                tuple[str, bytes]
            )
        )
        return states


def _brought(
    shard: int, export: Export, step: str, settings: TableSettings | JoinSettings
) -> Iterator[tuple[str, bytes]]:
    snapshot = export.read(step, shard).snapshot
    if isinstance(settings, JoinSettings):
        snapshot = join_taken_up(snapshot, settings)
    else:
        snapshot = taken_up(snapshot, settings)
    yield shard_key(shard), StateImport(export.id, snapshot).pack()
