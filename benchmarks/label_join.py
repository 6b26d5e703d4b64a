"""Predictions joined with their labels, beside peers: python -m benchmarks.label_join [--quick].

A prediction every millisecond with an id of 16 characters; labels after an exponential delay, 5% never. All
contenders find the same pairs, which is checked: of each prediction the first label from `lead` before it to
`ttl` after it.

    LabelMatcher     calls of 10,000 predictions and the labels of their time; state as of that time
    dicts in Python  one event at a time, in time order; state as of that time
    polars, pandas   as-of join by id of both tables at once: all is in memory, and nothing comes later

Times are seconds of processor time, of all threads; contenders take turns, and a ratio is the median over
turns. Ids stand ready as each contender takes them: bytes and lengths, bytes, columns of text.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from rocsteady.core.events.columns import IdColumn
from rocsteady.core.join.matching import END, Arrivals, LabelMatcher

from .processes import table

MILLISECOND = 1_000
CALL = 10_000
WIDTH = 16
TURNS = 5

Pairs = np.ndarray
"""Label of every prediction, by row; -1 = none."""


@dataclass(frozen=True)
class Streams:
    """Both sides in the order of their times; ids as rows of bytes."""

    ids: np.ndarray
    times: np.ndarray
    label_ids: np.ndarray
    label_times: np.ndarray
    ttl: int
    lead: int


def streams(n: int, mean_delay: float, ttl: float, lead: float) -> Streams:
    """Make n predictions; delays in predictions, which come one a millisecond."""
    rng = np.random.default_rng(1)
    ids = rng.choice(np.frombuffer(b"0123456789abcdef", np.uint8), (n, WIDTH))
    times = np.arange(n) * MILLISECOND
    label_times = times + (rng.exponential(mean_delay * MILLISECOND, n)).astype(np.int64)
    rows = np.flatnonzero(rng.random(n) > 0.05)
    rows = rows[np.argsort(label_times[rows], kind="stable")]
    return Streams(ids, times, ids[rows], label_times[rows], int(ttl * MILLISECOND), int(lead * MILLISECOND))


def column(ids: np.ndarray) -> IdColumn:
    return IdColumn(np.full(len(ids), WIDTH, np.int32), ids.tobytes())


def texts(ids: np.ndarray) -> list[bytes]:
    data = ids.tobytes()
    return [data[at : at + WIDTH] for at in range(0, len(data), WIDTH)]


def matcher(given: Streams) -> Callable[[], Pairs]:
    calls = []
    step = CALL * MILLISECOND
    last = int(max(given.times[-1], given.label_times[-1]))
    for clock in range(step, last + step + 1, step):
        rows = np.arange(*np.searchsorted(given.times, (clock - step, clock)))
        labels = np.arange(*np.searchsorted(given.label_times, (clock - step, clock)))
        calls.append(
            (
                Arrivals(column(given.ids[rows]), given.times[rows], rows),
                Arrivals(column(given.label_ids[labels]), given.label_times[labels], labels),
                clock,
            )
        )

    def run() -> Pairs:
        join = LabelMatcher(given.ttl, given.lead)
        found = np.full(len(given.times), -1)
        for predictions, labels, clock in calls:
            left = join.advance(predictions, labels, clock)
            found[left.pair_predictions] = left.pair_labels
        left = join.advance(clock=END, end=last)
        found[left.pair_predictions] = left.pair_labels
        return found

    return run


def dicts(given: Streams) -> Callable[[], Pairs]:
    ids, label_ids = texts(given.ids), texts(given.label_ids)
    times, label_times = given.times.tolist(), given.label_times.tolist()
    ttl, lead = given.ttl, given.lead

    def run() -> Pairs:
        found = np.full(len(times), -1)
        waiting: dict[bytes, list[int]] = {}
        labels: dict[bytes, deque[int]] = {}
        expiring, closing = deque[int](), deque[int]()
        row = label = 0
        while row < len(times) or label < len(label_times):
            is_label = label < len(label_times) and (row == len(times) or label_times[label] <= times[row])
            now = label_times[label] if is_label else times[row]
            while expiring and times[expiring[0]] < now - ttl:
                gone = expiring.popleft()
                if gone in waiting.get(ids[gone], ()):
                    waiting.pop(ids[gone])
            while closing and label_times[closing[0]] < now - lead:
                held = labels[label_ids[gone := closing.popleft()]]
                held.popleft()
                if not held:
                    del labels[label_ids[gone]]
            if is_label:
                for prediction in waiting.pop(label_ids[label], ()):
                    found[prediction] = label
                labels.setdefault(label_ids[label], deque()).append(label)
                closing.append(label)
                label += 1
            else:
                if held := labels.get(ids[row]):
                    found[row] = held[0]
                else:
                    waiting.setdefault(ids[row], []).append(row)
                    expiring.append(row)
                row += 1
        return found

    return run


def in_polars(given: Streams) -> Callable[[], Pairs]:
    import polars as pl

    left = pl.DataFrame(
        {"id": [text.decode() for text in texts(given.ids)], "time": given.times - given.lead}
    )
    right = pl.DataFrame(
        {
            "id": [text.decode() for text in texts(given.label_ids)],
            "time": given.label_times,
            "label": np.arange(len(given.label_times)),
        }
    )

    def run() -> Pairs:
        joined = left.join_asof(
            right, on="time", by="id", strategy="forward", tolerance=given.ttl + given.lead,
            check_sortedness=False,
        )  # fmt: skip
        return joined["label"].fill_null(-1).to_numpy()

    return run


def in_pandas(given: Streams) -> Callable[[], Pairs]:
    import pandas as pd

    left = pd.DataFrame(
        {"id": [text.decode() for text in texts(given.ids)], "time": given.times - given.lead}
    )
    right = pd.DataFrame(
        {
            "id": [text.decode() for text in texts(given.label_ids)],
            "time": given.label_times,
            "label": np.arange(len(given.label_times)),
        }
    )

    def run() -> Pairs:
        joined = pd.merge_asof(
            left, right, on="time", by="id", direction="forward", tolerance=given.ttl + given.lead
        )
        return joined["label"].fillna(-1).to_numpy(np.int64)

    return run


CONTENDERS: dict[str, Callable[[Streams], Callable[[], Pairs]]] = {
    "LabelMatcher": matcher,
    "dicts in Python": dicts,
    "polars": in_polars,
    "pandas": in_pandas,
}


def seconds(run: Callable[[], Pairs], expected: Pairs | None) -> tuple[float, Pairs]:
    start = time.process_time()
    found = run()
    spent = time.process_time() - start
    if expected is not None and not np.array_equal(found, expected):
        raise SystemExit("the contenders disagree")
    return spent, found


def compare(given: Streams, turns: int) -> list[list[str]]:
    runs = {name: make(given) for name, make in CONTENDERS.items()}
    spent: dict[str, list[float]] = {name: [] for name in runs}
    expected = None
    for _ in range(turns):
        for name, run in runs.items():
            took, expected = seconds(run, expected)
            spent[name].append(took)
    assert expected is not None
    pairs = int((expected >= 0).sum())
    rows = []
    for name, of in spent.items():
        ratio = median(theirs / ours for theirs, ours in zip(of, spent["LabelMatcher"], strict=True))
        rows.append([name, f"{ratio:.1f}", f"{median(of):.2f}", f"{pairs / median(of) / 1e6:.2f}M"])
    return rows


def bytes_of_state(n: int, second: Any) -> list[str]:
    """Bytes a prediction that waits takes beside its id, in memory and stored."""
    rng = np.random.default_rng(2)
    ids = rng.integers(0, 256, (n, WIDTH), dtype=np.uint8)
    join = LabelMatcher(END // 16, second=second)
    for start in range(0, n, CALL):
        rows = np.arange(start, min(start + CALL, n))
        join.advance(Arrivals(column(ids[rows]), rows, rows), clock=int(rows[-1]) + 1)
    stored = len(join.to_bytes())
    return [f"{size / n - WIDTH:.0f}" for size in (join.nbytes, stored)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the events, two turns")
    quick = parser.parse_args().quick
    n, turns = (100_000, 2) if quick else (1_000_000, TURNS)
    for make in CONTENDERS.values():
        make(streams(2 * CALL, CALL / 4, CALL, CALL))()  # compiles, imports
    for name, delay, ttl, lead in (
        ("labels after 2,000 predictions, ttl and lead of 20,000", 2_000, 20_000, 20_000),
        (f"labels after {n // 10:,} predictions, ttl and lead of {n // 2:,}", n / 10, n / 2, n / 2),
        ("the same, lead 0", n / 10, n / 2, 0),
    ):
        print(f"{n:,} predictions, {name}\n")
        rows = compare(streams(n, delay, ttl, lead), turns)
        print(table(["", "time, LabelMatcher = 1", "seconds", "pairs/s"], rows), flush=True)
    print(f"{n:,} predictions that wait: bytes for each beside its id\n")
    print(table(["", "in memory", "stored"], [["first", *bytes_of_state(n, "first")]]))


if __name__ == "__main__":
    main()
