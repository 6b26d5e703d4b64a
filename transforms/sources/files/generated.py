"""Made-up streams (`core.prequential.generators`) as a source of instances, and as record batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import PBegin, PCollection

from ....core.errors import ConfigError
from ....core.prequential.generators import SCHEME, GeneratedStream, Instance
from ...events.dead_letters import NO_LETTERS, Chunk

CHUNK_ROWS = 8_192

GENERATED = "generated"
"""The format of a source that is not a file: its path is the URL of a made-up stream."""


def is_generated(path: str) -> bool:
    """Return whether a source on the command line is a made-up stream.

    >>> is_generated("generate://sea?count=100"), is_generated("sea.csv")
    (True, False)
    """
    return path.startswith(f"{SCHEME}://")


def generated_schema(stream: GeneratedStream) -> pa.Schema:
    """Return the columns of a stream: features, `label`, `id` and `time` (seconds)."""
    numbers = [(name, pa.float64()) for name in stream.numbers]
    texts = [(name, pa.string()) for name in stream.texts]
    label = pa.int64() if len(stream.classes) == 2 else pa.string()
    return pa.schema([*numbers, *texts, ("label", label), ("id", pa.string()), ("time", pa.int64())])


def generated_batches(stream: GeneratedStream, rows: int = CHUNK_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield a stream in record batches of `rows` rows; the last batch has the rows that are left.

    For a URL of the command line: `generated_batches(GeneratedStream.of_url(url))`.
    """
    schema, instances = generated_schema(stream), stream.instances()
    while chunk := list(islice(instances, rows)):
        yield pa.RecordBatch.from_pylist(chunk, schema)


def generated_chunks(url: str) -> Iterator[Chunk]:
    """Read a stream in chunks of 8,192 records, as a file is read; `bytes_read` then counts records."""
    position = 0
    for batch in generated_batches(GeneratedStream.of_url(url)):
        yield Chunk(position, batch, None, NO_LETTERS, position + batch.num_rows)
        position += batch.num_rows


class GenerateInstances(beam.PTransform[PBegin, PCollection[Instance]]):
    """Makes up a stream of instances: dicts of features, `label`, `id` and `time`.

    name    as `GeneratedStream.parse` reads it: `sea:50000`, `rbf:50:0.001`, ...
    count   instances
    seed    seed of the stream
    drifts  the instances at which concepts change; None = at each quarter, if `name` has a width
    shards  workers that share the work downstream; the instances are the same for any number of shards

    Raises ConfigError when it is made.

        instances = pipeline | GenerateInstances("sea:50", count=100_000, seed=1)
    """

    def __init__(
        self,
        name: str,
        count: int,
        seed: int = 1,
        *,
        drifts: Sequence[int] | None = None,
        shards: int = 1,
    ) -> None:
        super().__init__()
        self._stream = GeneratedStream.parse(name, count, seed, drifts)
        if isinstance(shards, bool) or not isinstance(shards, int) or shards < 1:
            raise ConfigError(f"shards={shards!r}; give a whole number from 1")
        self._shards = shards

    def expand(self, begin: PBegin) -> PCollection[Instance]:
        """Apply to the beginning of a pipeline."""
        stream, shards = self._stream, self._shards
        made: PCollection[Instance] = (
            begin
            | "Shards" >> beam.Create(range(shards))
            | "Spread" >> beam.Reshuffle()
            | "Generate"
            >> beam.FlatMap(lambda shard: stream.instances(shard, shards)).with_output_types(dict)
        )
        return made
