"""The curves of a served page: held in bounded memory, and shown when all their points came."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rocsteady.pipelines.serve.curves import Curves
from rocsteady.transforms.sinks.kinds import CURVE_SCHEMA

from tests.support.pages.report_tables import curve


def points(model, seq, n=12):
    rng = np.random.default_rng(seq)
    labels = np.append([0, 1], rng.integers(0, 2, n - 2))
    return curve(model, seq, labels, np.arange(n) / n)


def told(curves):
    table = curves.table
    return sorted(set(zip(table.column("model").to_pylist(), table.column("seq").to_pylist(), strict=True)))


def test_points_in_pieces_and_in_any_order_give_the_curve_at_once():
    table = pa.concat_tables([points("a", 1), points("b", 1), points("a", 2)])
    whole, pieces = Curves(), Curves()
    whole.add(table)
    order = np.random.default_rng(1).permutation(len(table))
    for place in order:
        pieces.add(table.slice(place, 1))
    key = [(name, "ascending") for name in ("model", "seq", "point")]
    assert pieces.table.sort_by(key).equals(whole.table.sort_by(key))
    assert whole.table.sort_by(key).to_pylist() == table.sort_by(key).to_pylist()
    assert whole.came == pieces.came == 3


@pytest.mark.parametrize("gone", [0, 5, 12])
def test_a_curve_is_shown_once_its_last_point_came(gone):
    table, curves = points("a", 1), Curves()
    curves.add(table.filter(pa.array(np.arange(len(table)) != gone)))
    assert told(curves) == []
    curves.add(table.slice(gone, 1))
    assert told(curves) == [("a", 1)]


def test_a_curve_that_comes_twice_is_held_once():
    curves = Curves()
    for _ in range(3):
        curves.add(points("a", 1))
    assert (curves.came, len(curves), curves.table.num_rows) == (1, 1, len(points("a", 1)))


def test_memory_is_bounded_and_the_newest_curve_of_each_model_stays():
    size = len(points("a", 1))
    curves = Curves(5 * size)
    curves.add(points("rare", 1))
    for seq in range(1, 50):
        curves.add(points("often", seq))
        assert curves.table.num_rows <= 5 * size
    assert told(curves) == [*(("often", seq) for seq in range(46, 50)), ("rare", 1)]
    curves.add(pa.concat_tables([points(f"m{n}", 1) for n in range(9)]))
    assert len(curves) == 5
    assert curves.came == 59


def test_numbers_that_are_no_numbers_are_not_shown():
    for name, value in (("tp", np.nan), ("tp", np.inf), ("positives", None)):
        table, curves = points("a", 1).to_pylist(), Curves()
        for point in table:
            point[name] = value
        schema = pa.schema([field.with_nullable(True) for field in CURVE_SCHEMA])
        curves.add(pa.Table.from_pylist(table, schema))
        assert told(curves) == []


def test_curves_of_classes_are_told_apart_and_the_newest_of_each_class_stays():
    def of(name, seq):
        table = points("a", seq)
        return table.set_column(2, "class", pa.array([name] * len(table)))

    size = len(points("a", 1))
    curves = Curves(3 * size)
    for seq in (1, 2, 3):
        curves.add(pa.concat_tables([of("cat", seq), of("dog", seq)]))
    ends = curves.table.filter(pc.equal(curves.table["point"], size - 1))
    assert (curves.came, curves.table.num_rows) == (6, 3 * size)
    assert sorted(zip(ends["class"].to_pylist(), ends["seq"].to_pylist(), strict=True))[-1] == ("dog", 3)
    assert ("cat", 3) in zip(ends["class"].to_pylist(), ends["seq"].to_pylist(), strict=True)
