"""What `benchmarks.streams` measures, each in a process: python -m benchmarks.stream_contenders NAME ...

Files, peers that join, and the join by itself. The last word on stdout is JSON.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

Said = dict[str, Any]

START = 1_700_000_000_000_000
SECOND = 1_000_000
DAY = 86_400 * SECOND
A_DAY = 200_000
"""Events or predictions that come in a day, of all models together."""


def _columns(n: int, models: int) -> Any:
    """Random numbers, and columns: model, score, label (30% positive, AUC about 0.75), times that rise."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(7)
    labels = (rng.random(n) < 0.3).astype(np.int8)
    scores = 1 / (1 + np.exp(-rng.normal(size=n) - 0.95 * labels))
    names = pa.array([f"model-{i:04d}" for i in range(models)])
    model = names.take(pa.array(rng.integers(0, models, n)))
    times = START + np.sort(rng.integers(0, max(1, n * DAY // A_DAY), n))
    return rng, model, scores, labels, times


def _moments(micros: Any) -> Any:
    import pyarrow as pa

    return pa.array(micros, pa.timestamp("us", "UTC"))


def events(path: str, count: str, models: str, minutes: str) -> Said:
    """Write events, each displaced by up to so many minutes; "shuffled": they are in no order."""
    import gzip
    import shutil

    import numpy as np
    import pyarrow as pa
    from pyarrow import csv, parquet

    n = int(count)
    rng, model, scores, labels, times = _columns(n, int(models))
    if minutes == "shuffled":
        times = rng.permutation(times)
    else:
        delays = rng.integers(0, int(minutes) * 60 * SECOND + 1, n)
        times = times[np.argsort(times + delays, kind="stable")]
    table = pa.table({"model": model, "score": scores, "label": labels, "t": _moments(times)})
    if path.endswith(".parquet"):
        parquet.write_table(table, path)
    else:
        plain = path.removesuffix(".gz")
        csv.write_csv(table, plain)
        if path.endswith(".gz"):
            with open(plain, "rb") as source, gzip.open(path, "wb", 6) as packed:  # noqa: PTH123
                shutil.copyfileobj(source, packed)
    return {"bytes": Path(path).stat().st_size}


def pairs(folder: str, count: str, models: str, width: str, layout: str) -> Said:
    """Write predictions, and labels some two hours later; ids of so many characters; "sorted" or "
    ""shuffled"."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    n, size = int(count), int(width)
    rng, model, scores, labels, times = _columns(n, int(models))
    known = times + rng.exponential(2 * 3600 * SECOND, n).astype(np.int64)
    digits = rng.choice(np.frombuffer(b"0123456789abcdef", np.uint8), (n, size))
    offsets = np.arange(n + 1, dtype=np.int32) * size
    ids = pa.Array.from_buffers(
        pa.string(), n, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(digits.tobytes())]
    )
    predictions = pa.table({"id": ids, "model": model, "score": scores, "t": _moments(times)})
    found = pa.table({"id": ids, "label": labels, "l": _moments(known)})
    order = np.argsort(known, kind="stable")
    if layout == "shuffled":
        predictions, order = predictions.take(pa.array(rng.permutation(n))), rng.permutation(n)
    Path(folder).mkdir(exist_ok=True)
    parquet.write_table(predictions, f"{folder}/predictions.parquet")
    parquet.write_table(found.take(pa.array(order)), f"{folder}/labels.parquet")
    return {}


def polars(folder: str, ttl_seconds: str) -> Said:
    """Join with polars, sort by the labels' times, and write the file that `evaluate` can read."""
    import polars as pl

    start = time.perf_counter()
    predictions = pl.scan_parquet(f"{folder}/predictions.parquet")
    labels = pl.scan_parquet(f"{folder}/labels.parquet")
    ahead = (pl.col("l") - pl.col("t")).abs() <= pl.duration(seconds=int(ttl_seconds))
    joined = predictions.join(labels, on="id").filter(ahead).sort("l").collect()
    joined.write_parquet(f"{folder}/polars.parquet")
    return {"pairs": len(joined), "net": time.perf_counter() - start}


def duckdb(folder: str, ttl_seconds: str) -> Said:
    """The same with DuckDB."""
    import duckdb as db

    start = time.perf_counter()
    query = f"""copy (
        select * from '{folder}/predictions.parquet' join '{folder}/labels.parquet' using (id)
        where abs(epoch_us(l) - epoch_us(t)) <= {int(ttl_seconds) * SECOND} order by l
    ) to '{folder}/duckdb.parquet' (format parquet)"""
    db.sql(query)
    [(count,)] = db.sql(f"select count(*) from '{folder}/duckdb.parquet'").fetchall()
    return {"pairs": count, "net": time.perf_counter() - start}


def last_row(path: str) -> Said:
    """What the last row of the first model says."""
    from pyarrow import parquet

    rows = parquet.read_table(path, columns=["model", "row", "seq", "auc", "h", "positives"]).to_pylist()
    return max((row for row in rows if row["model"] == min(r["model"] for r in rows)), key=lambda r: r["row"])


def join_alone(folder: str, ttl: str, lead: str) -> Said:
    """Read both files as the command does and feed the joins, without Beam; the most that they hold."""
    from dataclasses import replace

    from rocsteady.core.events.rejected import Rejected
    from rocsteady.core.ids.sharding import number_of
    from rocsteady.core.join.join import LabelJoin
    from rocsteady.core.join.join_settings import JoinSettings
    from rocsteady.transforms.events.fields import EventFields
    from rocsteady.transforms.sources.files.listing import list_sources
    from rocsteady.transforms.sources.files.read import FilePartition, _MergeFiles

    fields = EventFields(id="id", time="t")
    parts = [
        FilePartition(
            list_sources([f"{folder}/predictions.parquet"])[0], 0, "prediction", fields, located=True
        ),
        FilePartition(
            list_sources([f"{folder}/labels.parquet"])[0], 0, "label", replace(fields, time="l"), located=True
        ),
    ]
    settings = JoinSettings.of(ttl, lead)
    joins = [LabelJoin(settings, number) for number in range(settings.shards)]
    start, most, joined, left = time.process_time(), (0, 0), 0, 0
    for number, packet in enumerate(_MergeFiles(settings.shards, None).process(parts)):
        if not isinstance(packet, tuple):
            continue  # a dead letter
        for output in joins[number_of(packet[0])].apply(packet[1]):
            left += len(output) if isinstance(output, Rejected) else 0
        if number % settings.shards == 0:
            most = max(most, (sum(each.live_bytes() for each in joins), sum(map(_waiting, joins))))
    spent = time.process_time() - start
    joined = sum(each.counts()["joined"] for each in joins)
    return {"joined": joined, "live": most[0], "waiting": most[1], "seconds": spent, "left": left}


def _waiting(join: Any) -> int:
    return len(join._matcher) + sum(len(buffer) for buffer in join._coming)


def waiting(count: str, width: str, models: str, second: str) -> Said:
    """Bytes of a LabelJoin whose predictions all wait: stored, and in memory by its own account."""
    import numpy as np
    from rocsteady.core.events.batch import PredictionBatch
    from rocsteady.core.events.columns import IdColumn, TextColumn
    from rocsteady.core.events.records import Heartbeat
    from rocsteady.core.events.wire import PacketHead
    from rocsteady.core.join.join import LabelJoin
    from rocsteady.core.join.join_settings import JoinSettings

    n, size, kinds, chunk = int(count), int(width), int(models), 10_000
    rng, _, scores, _, times = _columns(n, kinds)
    digits = rng.integers(33, 126, (n, size), dtype=np.uint8)
    join = LabelJoin(JoinSettings.of("365d", second=second), 0)
    names = tuple(f"model-{i:04d}" for i in range(kinds))
    for sequence, start in enumerate(range(0, n, chunk)):
        rows = slice(start, start + chunk)
        got = len(scores[rows])
        batch = PredictionBatch.of(
            models=TextColumn(rng.integers(0, kinds, got).astype(np.int32), names),
            scores=scores[rows],
            times=times[rows],
            ids=IdColumn(np.full(got, size, np.int32), digits[rows].tobytes()),
            positions=np.arange(start, start + got),
            source="predictions.parquet",
            head=PacketHead(sequence=sequence),
        )
        join.apply(batch.pack())
    join.apply(Heartbeat("predictions.parquet", 0, 1, sequence + 1, int(times[-1]) + 1).pack())
    return {"stored": len(join.to_bytes()) / n, "live": join.live_bytes() / n, "rows": len(join._matcher)}


CONTENDERS = {each.__name__: each for each in (events, pairs, polars, duckdb, last_row, join_alone, waiting)}

if __name__ == "__main__":
    print(json.dumps(CONTENDERS[sys.argv[1]](*sys.argv[2:]), default=str))
