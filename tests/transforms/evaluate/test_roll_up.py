"""RollUp gives what one table of roll-ups gives that is fed every row, however it is run."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pyarrow as pa
import pytest
import rocsteady as rs
from apache_beam.testing import test_stream
from apache_beam.transforms.window import FixedWindows, Sessions, TimestampedValue
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.core.fleet.members import MemberRows
from rocsteady.core.fleet.roll_up_settings import RollUpSettings
from rocsteady.core.fleet.table import roll_up_all
from rocsteady.core.rows.arrow import rows_to_arrow
from rocsteady.transforms.evaluate.shards import RowsCoder

from tests.support.processes.beam_runs import RUNNERS_AND_CACHES, InOrder, Keep, kept, pipeline, shuffled
from tests.support.streams.times import moments

BY = ("models", "slices", "t/*")
MINUTE = 60_000_000


@cache
def make_rows(pane: tuple[int, int] | None = None) -> rs.Rows:
    """Rows of models and slices on a grid of minutes; one of the models ends early."""
    rng = np.random.default_rng(5)
    parts = []
    for model, slice_, n in (("t/a", "", 900), ("u", "", 500), ("u", "c=NZ", 900), ("u", "c=AU", 900)):
        ev = rs.ModelEvaluator(
            window=rs.LastEvents(200), every=rs.EverySeconds("1m"), model=model, slice=slice_, pane=pane
        )
        labels = (rng.random(n) < 0.4).astype(int)
        times = np.arange(n) * 1_000_000 + (pane or (0, 0))[0]
        parts += [ev.update(labels, rng.normal(1.4 * labels), times=moments(times)), ev.finish()]
    return rs.Rows.concat(parts)


def expected(rows: rs.Rows, by: tuple[str, ...] = BY, **chosen: Any) -> list[tuple[Any, ...]]:
    settings = RollUpSettings(by, **chosen)
    return sorted(map(tuple, roll_up_all(MemberRows.of_rows(rows, settings), settings)), key=repr)


def rolled_in(directory: Path) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.value) for row in kept(directory, "rows")), key=repr)


@pytest.mark.slow
@pytest.mark.parametrize(("runner", "cache_bytes"), RUNNERS_AND_CACHES)
def test_roll_ups_of_shuffled_rows_are_equal_on_every_runner(
    runner: str, cache_bytes: int, tmp_path: Path
) -> None:
    with pipeline(runner) as p:
        rows = p | InOrder(shuffled(make_rows()), rs.MeasureRow)
        rows | rs.RollUp(BY, stale="3m", shards=3, cache_bytes=cache_bytes) | Keep(tmp_path, "rows")
    assert rolled_in(tmp_path) == expected(make_rows(), stale=3 * MINUTE)


def test_rows_come_one_by_one_in_batches_and_in_columns(tmp_path: Path) -> None:
    batches = [rows_to_arrow(make_rows()[at : at + 17]) for at in range(0, len(make_rows()), 17)]
    for name in "abc":
        (tmp_path / name).mkdir()
    with pipeline() as p:
        single = p | "s" >> InOrder(shuffled(make_rows()), rs.MeasureRow) | "of s" >> rs.RollUp(BY, shards=2)
        batched = p | "b" >> InOrder(batches, pa.RecordBatch) | "of b" >> rs.RollUp(BY)
        columns = p | "c" >> InOrder([make_rows()[20:], make_rows()[:20]], rs.Rows) | "of c" >> rs.RollUp(BY)
        for name, found in zip("abc", (single, batched, columns), strict=True):
            found | f"keep {name}" >> Keep(tmp_path / name, "rows")
    assert (
        rolled_in(tmp_path / "a")
        == rolled_in(tmp_path / "b")
        == rolled_in(tmp_path / "c")
        == expected(make_rows())
    )


def test_rules_on_groups_watch_roll_up_rows_at_their_grid_points(tmp_path: Path) -> None:
    rule = "auc_mean > 0.5 where group = 'models'"
    with pipeline() as p:
        found = p | InOrder([make_rows()], rs.Rows) | rs.RollUp(BY)
        found | "rows" >> Keep(tmp_path, "rows")
        found | rs.Alert(rule) | "alerts" >> Keep(tmp_path, "alerts")
    table = rs.AlertTable([rs.parse_alert(rule)])
    rows = [rs.RollUpRow._make(row) for row in expected(make_rows())]
    assert [tuple(alert.value) for alert in kept(tmp_path, "alerts")] == list(map(tuple, table.watch(rows)))
    assert {row[1] for row in kept(tmp_path, "rows")} == {row.due for row in rows}


def test_every_pane_has_roll_ups_of_its_own(tmp_path: Path) -> None:
    panes = [(0, 1_000 * 1_000_000), (1_000 * 1_000_000, 2_000 * 1_000_000)]
    rows = [(make_rows(pane), pane[0] / 1e6) for pane in panes]
    with pipeline() as p:
        timed = p | beam.Create([TimestampedValue(*row) for row in rows])
        timed | beam.WindowInto(FixedWindows(1_000)) | rs.RollUp("models") | Keep(tmp_path, "rows")
    both = sorted([*expected(rows[0][0], ("models",)), *expected(rows[1][0], ("models",))], key=repr)
    assert rolled_in(tmp_path) == both
    assert {rs.RollUpRow._make(row).pane_start for row in both} == {start for start, _ in panes}


@pytest.mark.slow
def test_on_a_stream_the_watermark_closes_grid_points(tmp_path: Path) -> None:
    single = [row for row in make_rows() if row.due is not None]
    events = test_stream.TestStream(coder=beam.coders.PickleCoder())
    for due in sorted({row.due for row in single}):
        events.advance_watermark_to(due / 1e6)
        events.add_elements([TimestampedValue(row, due / 1e6) for row in single if row.due == due])
    with pipeline("retrying") as p:
        rows = p | events.advance_watermark_to_infinity()
        rows | rs.RollUp("models", lateness=0) | Keep(tmp_path, "rows")
    assert rolled_in(tmp_path) == expected(make_rows(), ("models",))


def test_a_stream_without_lateness_and_windows_that_merge_are_refused() -> None:
    p = beam.Pipeline()
    with pytest.raises(ConfigError, match="no grid point would ever be closed; say by how much"):
        p | test_stream.TestStream() | rs.RollUp()
    with pytest.raises(ConfigError, match="windows that merge"):
        p | beam.Create([1]) | beam.WindowInto(Sessions(5)) | "s" >> rs.RollUp()
    with pytest.raises(ConfigError, match="applied to a list"):
        rs.RollUp().expand([])
    for wrong in ({"by": "model"}, {"stale": "x"}, {"lateness": -1}, {"shards": 0}, {"confidence": 2}):
        with pytest.raises(ConfigError):
            rs.RollUp(**wrong)


@pytest.mark.parametrize(
    ("rows", "said"),
    [([{"a": 1}], "'dict' without 'model' is no row of measures"), (None, "none of 3 rows has a grid point")],
)
def test_a_job_of_other_elements_fails_with_a_sentence(rows: Any, said: str) -> None:
    undue = [row._replace(due=None) for row in list(make_rows())[:3]]
    with pytest.raises((InputError, RuntimeError), match=said), pipeline() as p:
        p | beam.Create(rows or undue) | rs.RollUp()


def test_the_coder_of_rows_keeps_the_word_of_a_shard() -> None:
    coder = RowsCoder()
    rows = rs.Rows.empty("c")
    rows.settled = (1, 4, -7, 9)
    assert coder.decode(coder.encode(rows)).settled == (1, 4, -7, 9)
    assert coder.decode(coder.encode(make_rows())).settled is None
