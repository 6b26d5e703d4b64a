"""A table that tells says up to which grid point its rows are complete, and never too early."""

from __future__ import annotations

import random
from operator import itemgetter

import numpy as np
import rocsteady as rs
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.columns import TextColumn
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.events.times import END_OF_TIME, NO_TIME
from rocsteady.core.ids.sharding import Packets
from rocsteady.core.settings.table import TableSettings

SECOND = 1_000_000


def told(order: str, seed: int, restarts: bool = False) -> tuple[list[rs.Rows], list[rs.MeasureRow]]:
    """The outputs of a table that tells, and the rows of one that does not."""
    chance = random.Random(seed)
    evaluator = rs.EvaluatorSettings(window=rs.LastDuration("40s"), every=rs.EverySeconds("10s"), order=order)
    settings = TableSettings(evaluator, shards=4, idle_ttl=30 * SECOND)
    tables = [rs.EvaluatorTable(settings, tells=(2, 4)), rs.EvaluatorTable(settings)]
    packets, outputs, plain, time = Packets("s", 0, 1, 1), [], [], 0
    records = []
    for _ in range(12):
        n = chance.randint(1, 20)
        steps = np.cumsum([chance.choice([0, 1, 3, 30 if chance.random() < 0.1 else 2]) for _ in range(n)])
        times = (time + steps) * SECOND
        time = int(times[-1]) // SECOND
        labels = np.array([chance.randint(0, 1) for _ in range(n)], np.int8)
        models = TextColumn.of([chance.choice("ab") for _ in range(n)])
        batch = EventBatch(models, np.array([chance.random() for _ in range(n)]), labels, times=times)
        records += [record for _, record in packets.split(batch, time * SECOND)]
        if order != "position":
            records += [record for _, record in packets.heartbeats(time * SECOND, time * SECOND)]
    records += [record for _, record in packets.ends(time * SECOND)]
    records.append(EndOfInput().pack())
    for record in records:
        outputs += [given for given in tables[0].apply(record) if isinstance(given, rs.Rows)]
        plain += [row for given in tables[1].apply(record) if isinstance(given, rs.Rows) for row in given]
        if restarts:
            tables[0] = rs.EvaluatorTable.from_bytes(tables[0].to_bytes(), settings, tells=(2, 4))
    return outputs, plain


def test_words_connect_from_the_beginning_to_the_end_and_hold_all_rows():
    for seed in range(8):
        for order, restarts in (("time", False), ("time", True), ("position", False)):
            outputs, plain = told(order, seed, restarts)
            given = [row for rows in outputs for row in rows]
            assert sorted(given, key=itemgetter(slice(3))) == sorted(plain, key=itemgetter(slice(3)))
            reached, early = NO_TIME, []
            for rows in outputs:
                early += [row.due for row in rows if row.due is not None]
                if rows.settled is None:
                    continue
                shard, shards, since, until = rows.settled
                assert (shard, shards, since) == (2, 4, reached)
                assert since < until
                assert all(since < row.due <= until for row in rows if row.due is not None)
                reached = until
            assert reached == END_OF_TIME
            words = [rows.settled for rows in outputs if rows.settled is not None]
            assert len(words) > 3 if order == "time" else len(words) == 1


def test_a_table_that_does_not_tell_says_nothing():
    settings = TableSettings(rs.EvaluatorSettings())
    table = rs.EvaluatorTable(settings)
    batch = EventBatch(TextColumn.of(["a", "a"]), np.array([0.1, 0.9]), np.array([0, 1]))
    table.apply(batch.pack())
    [rows] = table.apply(EndOfInput().pack())
    assert rows.settled is None
