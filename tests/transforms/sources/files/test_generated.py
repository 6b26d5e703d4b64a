"""Generated streams on Beam, and as record batches."""

from __future__ import annotations

import apache_beam as beam
import pyarrow as pa
import pytest
from apache_beam.testing.util import assert_that, equal_to
from rocsteady.core.errors import ConfigError
from rocsteady.core.prequential.generators import KINDS, GeneratedStream
from rocsteady.transforms.sources.files.generated import (
    GenerateInstances,
    generated_batches,
    generated_schema,
)

pytest.importorskip("river")


@pytest.mark.parametrize("shards", [1, 3])
def test_shards_make_the_stream_together(shards):
    expected = list(GeneratedStream.parse("sea:50", 200, 5).instances())
    with beam.Pipeline() as pipeline:
        found = pipeline | GenerateInstances("sea:50", count=200, seed=5, shards=shards)
        assert_that(found, equal_to(expected))


@pytest.mark.parametrize("kind", KINDS)
def test_batches_have_typed_columns_and_all_instances(kind):
    stream = GeneratedStream(kind, 250)
    batches = list(generated_batches(stream, rows=100))
    assert [len(batch) for batch in batches] == [100, 100, 50]
    assert all(batch.schema == generated_schema(stream) for batch in batches)
    assert pa.Table.from_batches(batches).to_pylist() == list(stream.instances())


def test_what_cannot_be_is_said_when_it_is_made():
    with pytest.raises(ConfigError, match="shards=0"):
        GenerateInstances("sea", 10, shards=0)
    with pytest.raises(ConfigError, match="the stream 'sew' is not known"):
        GenerateInstances("sew", 10)
    with pytest.raises(ConfigError, match="drifts="):
        GenerateInstances("sea", 10, drifts=[10])
