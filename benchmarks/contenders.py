"""What `benchmarks.pipeline` measures, each in a process of its own: python -m benchmarks.contenders NAME ...

A contender's last word on stdout is JSON. Of its imports each has only its own, because a user waits for
them too: `net` is the seconds without them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Said = dict[str, Any]


def generate(path: str, events: str, models: str, layout: str) -> Said:
    """Events of models with as many each, 30% positives, AUC about 0.75: interleaved at random, or in blocks.

    Scores are logistic transforms of normals: floats in (0, 1), of which hardly two are equal.
    """
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    n, m = int(events), int(models)
    rng = np.random.default_rng(7)
    codes = np.arange(n, dtype=np.int32) % m
    codes = np.sort(codes) if layout == "blocks" else rng.permutation(codes)
    labels = (rng.random(n) < 0.3).astype(np.int8)
    scores = 1 / (1 + np.exp(-rng.normal(size=n) - 0.95 * labels))
    names = pa.array([f"model-{i:06d}" for i in range(m)])
    table = pa.table({"model": names.take(pa.array(codes)), "score": scores, "label": labels})
    parquet.write_table(table, path)
    return {"bytes": Path(path).stat().st_size}


def beam() -> Said:
    """Import Beam, and do nothing."""
    import apache_beam

    return {"version": apache_beam.__version__}


def read(path: str, shards: str) -> Said:
    """Read, validate, pack and shard, and count the packets: `ReadEventFiles` alone."""
    return _pipeline(path, int(shards), None)


def no_op(path: str, shards: str, state_events: str) -> Said:
    """The pipeline of `rocsteady evaluate` to the rows, with machines that only count.

    Cells, log, snapshots and token are as ever: `state_events` is how many events a shard's window holds,
    and a snapshot has the bytes of so many, all zero.
    """
    return _pipeline(path, int(shards), int(state_events))


_EVENT_BYTES = 9
"""Of an event in a snapshot: score and label."""


def _pipeline(path: str, shards: int, state_events: int | None) -> Said:
    import apache_beam
    from apache_beam.metrics import Metrics
    from rocsteady.runners.presets import choose_runner
    from rocsteady.transforms.beam.machine import RunStateMachine
    from rocsteady.transforms.beam.metrics import METRICS_NAMESPACE
    from rocsteady.transforms.events.fields import EventFields
    from rocsteady.transforms.sources.files.listing import list_sources
    from rocsteady.transforms.sources.files.read import ReadEventFiles

    class Count(apache_beam.DoFn):
        def __init__(self) -> None:
            self._packets = Metrics.counter(METRICS_NAMESPACE, "packets")
            self._bytes = Metrics.counter(METRICS_NAMESPACE, "packet_bytes")

        def process(self, element: tuple[str, bytes]) -> None:
            self._packets.inc(1)
            self._bytes.inc(len(element[1]))

    runner = choose_runner("local")
    pipeline = apache_beam.Pipeline(runner=runner.engine, options=runner.options)
    packets = (pipeline | ReadEventFiles(list_sources([path]), EventFields(), shards)).packets
    if state_events is None:
        _ = packets | apache_beam.ParDo(Count())
    else:
        _ = packets | RunStateMachine(CountingFactory(state_events * _EVENT_BYTES), bytes)
    result = pipeline.run()
    result.wait_until_finish()
    return {
        metric.key.metric.name: metric.result
        for metric in result.metrics().query()["counters"]
        if metric.key.metric.namespace == METRICS_NAMESPACE
    }


class Counting:
    """A state machine that looks at nothing of a record but the head that says how many events it has."""

    def __init__(self, most_bytes: int, size: int = 0) -> None:
        self._most_bytes, self._size, self._events = most_bytes, size, 0

    def apply(self, record: bytes) -> list[bytes]:
        if record.startswith(b"RSEB"):  # an EventBatch; bytes 8 to 12 of its head are its rows
            self._events += int.from_bytes(record[8:12], "little")
            self._size = min(self._size + len(record), self._most_bytes)
        return []

    def wakes_at(self) -> int | None:
        return None

    def to_bytes(self) -> bytes:
        return bytes(self._size)

    def snapshot_bytes(self) -> int:
        return self._size

    def gauges(self) -> dict[str, int]:
        return {}

    def live_bytes(self) -> int:
        return self._size

    def counts(self) -> dict[str, int]:
        return {"events_applied": self._events}


class CountingFactory:
    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes

    def warm_up(self) -> None:
        pass

    def new(self, pane: object, key: str) -> Counting:  # noqa: ARG002
        return Counting(self._most_bytes)

    def load(self, snapshot: bytes, pane: object, key: str) -> Counting:  # noqa: ARG002
        return Counting(self._most_bytes, len(snapshot))


def state(path: str, window: str, every: str, shards: str, output: str) -> Said:
    """What the job of `rocsteady evaluate` counts; the command prints only a part of it."""
    from rocsteady.core.settings.evaluator import EvaluatorSettings
    from rocsteady.core.settings.table import TableSettings
    from rocsteady.core.settings.windows import parse_every, parse_window
    from rocsteady.core.shard.protocol import DEFAULT_CACHE_BYTES
    from rocsteady.pipelines.evaluate.job import Evaluation
    from rocsteady.pipelines.evaluate.on_beam import run_evaluation
    from rocsteady.runners.presets import choose_runner
    from rocsteady.transforms.events.fields import EventFields
    from rocsteady.transforms.sources.files.listing import list_sources

    evaluator = EvaluatorSettings(window=parse_window(window), every=parse_every(every), order="position")
    job = Evaluation(
        list_sources([path]), EventFields(), TableSettings(evaluator, (), int(shards)),
        output, None, DEFAULT_CACHE_BYTES, choose_runner("local"),
    )  # fmt: skip
    return dict(run_evaluation(job).counts)


# ---- what a user would do instead: a row per model of one file. AUC with ties one half is
# (sum of the positives' ranks - P (P + 1) / 2) / (P N), where equal scores share the mean of their ranks.


def scikit_learn(path: str, output: str) -> Said:
    """roc_auc_score of every model's events, gathered by pandas.

    Seconds of processor time for 10M events of 1,000 models, imports included, on a busy machine: this 4.2
    to 5.2 (three runs), a loop over the groups as frames 5.8 (one run). `groupby.rank` without scikit-learn
    took 5.1 in its one run, which tells no difference; it is not what the peer is about.
    """
    import pandas as pd
    from sklearn.metrics import roc_auc_score

    start = time.perf_counter()
    events = pd.read_parquet(path)
    labels, scores = events["label"].to_numpy(), events["score"].to_numpy()
    groups = events.groupby("model").indices
    return _done(start, output, {m: roc_auc_score(labels[of], scores[of]) for m, of in groups.items()})


def scikit_learn_row(path: str, output: str) -> Said:
    """What of our row scikit-learn has a function for: no interval, H, AUM, kappa_m or kappa_per."""
    import numpy as np
    import pandas as pd
    from sklearn import metrics

    start = time.perf_counter()
    events = pd.read_parquet(path)
    labels, scores = events["label"].to_numpy(), events["score"].to_numpy()
    aucs = {}
    for model, of in events.groupby("model").indices.items():
        y, s = labels[of], scores[of]
        decided = (s >= 0.5).astype(np.int8)
        fpr, tpr, thresholds = metrics.roc_curve(y, s)
        best = np.argmax(tpr - fpr)
        row = [
            metrics.auc(fpr, tpr), tpr[best] - fpr[best], thresholds[best], np.interp(0.01, fpr, tpr),
            *metrics.confusion_matrix(y, decided).ravel(),
            metrics.accuracy_score(y, decided), metrics.precision_score(y, decided, zero_division=0),
            metrics.recall_score(y, decided), metrics.f1_score(y, decided),
            metrics.balanced_accuracy_score(y, decided), metrics.cohen_kappa_score(y, decided),
            metrics.matthews_corrcoef(y, decided),
        ]  # fmt: skip
        aucs[model] = row[0]
    return _done(start, output, aucs)


def polars(path: str, output: str) -> Said:
    """Ranks over the model, then sums.

    Seconds of processor time for 10M events of 1,000 models, one run each on a busy machine: this 1.46,
    models left as text 1.83, in memory rather than streaming 2.06, ranks inside of `group_by.agg` 1.78;
    with its imports, equal scores grouped and then cumulative sums 5.7.
    """
    import polars as pl

    start = time.perf_counter()
    positives = pl.col("label").cast(pl.Float64).sum()
    negatives = pl.len().cast(pl.Float64) - positives
    of_positives = (pl.col("rank") * pl.col("label")).sum()
    auc = (of_positives - positives * (positives + 1) / 2) / (positives * negatives)
    rows = (
        pl.scan_parquet(path)
        .with_columns(pl.col("model").cast(pl.Categorical))
        .with_columns(rank=pl.col("score").rank("average").over("model"))
        .group_by("model")
        .agg(auc=auc)
        .collect(engine="streaming")
    )
    return _done(start, output, dict(rows.iter_rows()))


_DUCKDB = """
with events as (select model, label::integer as label, score from read_parquet(?)),
numbered as (select model, row_number() over () as number from (select distinct model from events)),
ranked as (
    select number, label, (rank() over scores + count(*) over scores) / 2.0 as rank
    from (select number::integer as number, label, score from events join numbered using (model))
    window scores as (partition by number order by score range unbounded preceding)
)
select model,
    (sum(rank) filter (label = 1) - sum(label) * (sum(label) + 1) / 2.0)
    / (sum(label) * (count(*) - sum(label))::double)
from ranked join numbered using (number) group by model
"""


def duckdb(path: str, output: str) -> Said:
    """Ranks by a window over numbered models: the mean of the first and last rank of equal scores.

    Seconds of processor time for 10M events of 1,000 models, one or two runs each on a busy machine: this
    3.0, a window over the names 4.2, two row_numbers (ties by rising and by falling label) 4.7, sorted
    lists and list_dot_product 4.3; with its imports, equal scores grouped and then cumulative sums 6.5.
    """
    import duckdb

    start = time.perf_counter()
    return _done(start, output, dict(duckdb.execute(_DUCKDB, [path]).fetchall()))


def _done(start: float, output: str, aucs: dict[str, float]) -> Said:
    Path(output).write_text(json.dumps({model: float(auc) for model, auc in aucs.items()}))
    return {"net": time.perf_counter() - start}


def aucs_of_rows(path: str, output: str) -> Said:
    """Our rows in the form of the peers'."""
    from pyarrow import parquet

    rows = parquet.read_table(path, columns=["model", "auc"]).to_pydict()
    return _done(time.perf_counter(), output, dict(zip(rows["model"], rows["auc"], strict=True)))


CONTENDERS: dict[str, Callable[..., Said]] = {
    contender.__name__: contender
    for contender in (
        generate, beam, read, no_op, state, scikit_learn, scikit_learn_row, polars, duckdb, aucs_of_rows,
    )
}  # fmt: skip

if __name__ == "__main__":
    print(json.dumps(CONTENDERS[sys.argv[1]](*sys.argv[2:])))
