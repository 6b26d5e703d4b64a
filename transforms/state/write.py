"""Writes the states of shards as files of an export, and reads them as the initial states of shards."""

from __future__ import annotations

from collections.abc import Sequence

import apache_beam as beam

from ...core.events.records import StateImport
from ...core.ids.sharding import number_of, shard_key
from ...core.join.join_settings import JoinSettings
from ...core.settings.table import TableSettings
from ...core.state.exported import ShardState
from ...core.state.take_up import join_taken_up, taken_up
from .folder import EVALUATORS, JOIN, Export, Step, write_state


class _WriteState(beam.DoFn):
    def __init__(self, steps: Sequence[Step], folder: str | None) -> None:
        self._steps = tuple(steps)
        self._folder = folder

    def process(self, state: bytes) -> None:
        """Write one state; after the last state, also write the manifest."""
        write_state(state, self._folder or ShardState.unpack(state).folder, self._steps)


class WriteStates(beam.PTransform[beam.PCollection[bytes], None]):
    """Writes packed `ShardState`s to the folder that each state names; after the last state, the manifest.

    steps   the job's steps that an export contains
    folder  the folder to write to instead of the folder in the states, or None
    """

    def __init__(self, steps: Sequence[Step], folder: str | None = None) -> None:
        super().__init__()
        self._steps = steps
        self._folder = folder

    def expand(self, states: beam.PCollection[bytes]) -> None:
        """Write the states; the transform has no output."""
        _ = states | beam.ParDo(_WriteState(self._steps, self._folder)).with_output_types(bytes)


class ReadStates(beam.PTransform[beam.pvalue.PBegin, beam.PCollection[tuple[str, bytes]]]):
    """Yields (shard key, `StateImport` without a snapshot) for every shard of a step.

    The worker that hosts the shard reads the state by `brought_state`, so no state is sent between workers.
    """

    def __init__(self, export: Export, step: str) -> None:
        super().__init__()
        self._id = export.id
        found = export.step(step)
        self._shards = 0 if found is None else found.shards

    def expand(self, begin: beam.pvalue.PBegin) -> beam.PCollection[tuple[str, bytes]]:
        """Apply to the beginning of a pipeline."""
        states: beam.PCollection[tuple[str, bytes]] = (
            begin
            | "Shards" >> beam.Create(range(self._shards)).with_output_types(int)
            | "Spread states" >> beam.Reshuffle()
            | "Read state" >> beam.Map(_is_there, self._id).with_output_types(tuple[str, bytes])
        )
        return states


def _is_there(shard: int, name: str) -> tuple[str, bytes]:
    return shard_key(shard), StateImport(name, b"").pack()


def brought_state(export: Export, settings: TableSettings | JoinSettings, key: str) -> bytes:
    """Return the packed `StateImport` of a shard; the export has as many shards as `settings`.

    Raises InputError for a file that does not match the manifest, OtherConfigurationError for other settings.
    """
    snapshot = export.read(step_of(settings), number_of(key)).snapshot
    if isinstance(settings, JoinSettings):
        snapshot = join_taken_up(snapshot, settings)
    else:
        snapshot = taken_up(snapshot, settings)
    return StateImport(export.id, snapshot).pack()


def step_of(settings: TableSettings | JoinSettings) -> str:
    """Return the name of a step in an export."""
    return JOIN if isinstance(settings, JoinSettings) else EVALUATORS
