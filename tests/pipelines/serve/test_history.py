from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import rocsteady as rs
from rocsteady.core.rows.arrow import ROW_SCHEMA
from rocsteady.pipelines.serve.history import PAIRS, ROLL_UPS, History, is_kept

from tests.support.pages.fleet_tables import fleet_rows, pair_rows
from tests.support.pages.report_tables import filled


def rows(*of_models, **columns):
    return filled(of_models, **columns)


def ordinals(history, model):
    table = history.table
    return [
        row for name, row in zip(*(table.column(c).to_pylist() for c in ("model", "row")), strict=True)
        if name == model
    ]  # fmt: skip


def test_rows_in_pieces_are_held_as_rows_at_once():
    table = rows(("a", 50), ("b", 30))
    whole, pieces = History(), History()
    whole.add(table)
    for start in range(0, 80, 7):
        pieces.add(table.slice(start, 7))
    for model in "ab":
        assert ordinals(pieces, model) == ordinals(whole, model)
    assert whole.came == pieces.came == 80


@pytest.mark.parametrize("most", [200, 1_000])
def test_memory_is_bounded_and_the_newest_rows_all_stay(most):
    history = History(most)
    table = rows(("a", 20_000), ("b", 3_000))
    for start in range(0, table.num_rows, 500):
        history.add(table.slice(start, 500))
        assert len(history) <= most
    for model, count in (("a", 20_000), ("b", 3_000)):
        held = np.array(ordinals(history, model))
        assert held[0] == 0
        newest = held[held > count - 1 - history.newest]
        assert newest.tolist() == list(range(count - history.newest, count))
        gaps = np.diff(held)
        ages = count - 1 - held[:-1]
        assert (gaps <= np.maximum(1, 4 * ages / history.newest)).all()
    assert history.came == 23_000


def test_rows_that_stay_are_unchanged():
    table = rows(("a", 5_000))
    history = History(300)
    for start in range(0, 5_000, 100):
        history.add(table.slice(start, 100))
    held = history.table
    assert held.equals(table.select(held.schema.names).cast(held.schema).take(held.column("row")))


def test_the_rule_of_thinning_is_its_slow_definition():
    rng = np.random.default_rng(1)
    for newest in (1, 2, 8, 64):
        counts = rng.integers(1, 5_000, 300)
        numbers = np.array([rng.integers(0, count) for count in counts])
        for number, count, kept in zip(numbers, counts, is_kept(numbers, counts, newest), strict=True):
            step, reach = 1, newest
            while count - 1 - number >= reach:
                step, reach = 2 * step, 2 * reach
            assert kept == (number % step == 0)


def test_a_row_read_twice_is_held_once_and_a_row_that_differs_is_counted():
    table = rows(("a", 40))
    history = History()
    history.add(table)
    epoch = history.epoch
    history.add(table.slice(10, 20))
    assert (len(history), history.differing, history.epoch) == (40, 0, epoch)
    history.add(rows(("a", 40), auc=np.linspace(0, 1, 40)).slice(39))
    assert (len(history), history.differing) == (40, 1)
    assert history.table.column("auc").equals(pa.chunked_array(table.column("auc").cast(pa.float64())))


def test_rows_thinned_away_do_not_come_back_when_they_are_read_again():
    table = rows(("a", 3_000))
    history = History(300)
    for _ in range(2):
        for start in range(0, 3_000, 100):
            history.add(table.slice(start, 100))
    assert history.came == 3_000
    assert history.differing == 0


def test_within_an_epoch_rows_are_only_appended():
    rng = np.random.default_rng(3)
    table = rows(("a", 400), ("b", 400), ("c", 400))
    order = np.argsort(np.concatenate([np.arange(400) + shift for shift in (0, 100, 0)]), kind="stable")
    history, before, epoch, appended = History(500), None, -1, 0
    at = 0
    while at < len(order):
        size = int(rng.integers(1, 40))
        picked = order[at : at + size]
        history.add(table.take(pa.array(picked)))
        at += size
        if history.epoch == epoch:
            appended += 1
            assert history.table.slice(0, before.num_rows).equals(before)
        before, epoch = history.table, history.epoch
        for place in range(len(history.series)):
            held = np.array(history.table.column("row").to_pylist())[history.series_of_rows == place]
            assert (np.diff(held) > 0).all()
    assert appended > 20


def test_a_late_row_takes_its_place():
    table = rows(("a", 30))
    history = History()
    history.add(table.take(pa.array([*range(10), *range(11, 30)])))
    epoch = history.epoch
    history.add(table.slice(10, 1))
    assert ordinals(history, "a") == list(range(30))
    assert history.epoch > epoch


def test_series_beyond_the_most_are_counted_and_left_out():
    history = History(100)
    history.add(rows(*((f"m{n}", 3) for n in range(9))))
    assert len(history.series) == 5
    assert history.beyond == 12
    assert len(history) == 15


def test_nulls_of_an_older_version_are_taken():
    table = rows(("a", 3)).set_column(
        ROW_SCHEMA.get_field_index("config"), "config", pa.nulls(3, pa.string())
    )
    history = History()
    history.add(table)
    assert history.series == [("a", "", "")]


def roll_up_rows(grid_points):
    models = {f"{team}/m": [0.7 + 0.001 * n for n in range(grid_points)] for team in "ab"}
    return rs.roll_up(fleet_rows(models), by=["models", "a/*"])


def rows_of_pairs(instances):
    rows = [{"difference": n / 1_000} for n in range(instances)]
    return pa.concat_tables([pair_rows(*rows), pair_rows(*rows, slice="c=x")])


@pytest.mark.parametrize(("kind", "rows_of"), [(ROLL_UPS, roll_up_rows), (PAIRS, rows_of_pairs)])
def test_roll_up_rows_and_rows_of_pairs_are_held_once_and_in_bounded_memory(kind, rows_of):
    table, history = rows_of(120), History(100, kind)
    for _ in range(2):
        for start in range(0, len(table), 30):
            history.add(table.slice(start, 30))
            assert len(history) <= 100
    assert (history.came, history.differing, len(history.series)) == (len(table), 0, 2)
    assert history.came > len(history)
    newest = history.table.column("row").to_pylist()
    assert all(newest.count(row) == 2 for row in range(120 - history.newest, 120))
    held = {tuple(row.items()) for row in map(told, history.table.to_pylist())}
    assert held <= {tuple(row.items()) for row in map(told, table.to_pylist())}


def told(row):
    return {name: str(value) for name, value in row.items()}
