"""A topic of rows that is followed, as by `rocsteady watch`, and that changes meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rocsteady.core.errors import RocsteadyError
from rocsteady.transforms.kafka.topic import KafkaTopic
from rocsteady.transforms.tables.table_rows import read_kafka_records

from tests.support.servers.kafka_topics import OPTIONS, evaluate, events, grow, make_anew, produce


def test_an_added_partition_is_read_and_a_topic_made_anew_ends_the_reading(broker, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events(500)))
    assert evaluate("events.jsonl", "--output", "rows.jsonl", *OPTIONS) == 0
    rows = [line.encode() for line in Path("rows.jsonl").read_text().splitlines()]
    broker.create_topic("rows-followed", partitions=1)
    produce(broker, "rows-followed", [(0, row, 0) for row in rows[:3]])
    came = read_kafka_records(KafkaTopic.parse(f"kafka://{broker.address}/rows-followed"), True)

    def next_places():
        return next(places for _, places in came if places)

    assert next_places()[0] == "partition 0 offset 0"
    grow(broker, "rows-followed", 3)
    produce(broker, "rows-followed", [(2, row, 0) for row in rows[3:5]])
    assert next_places() == ["partition 2 offset 0", "partition 2 offset 1"]
    make_anew(broker, "rows-followed", [json.loads(row) for row in rows])
    said = r"was deleted and made anew while it was read: .* Start again, to read the new topic"
    with pytest.raises(RocsteadyError, match=said):
        for _ in came:
            pass
