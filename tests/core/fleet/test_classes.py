"""Roll-ups of classes: each class is rolled up like a model with one score, all of them by their mean."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from rocsteady.core.errors import InputError, WireError
from rocsteady.core.events.records import EndOfInput
from rocsteady.core.events.times import NO_TIME
from rocsteady.core.fleet.members import MemberRows, Settled
from rocsteady.core.fleet.roll_up_settings import RollUpSettings
from rocsteady.core.fleet.table import FleetTable, roll_up_all
from rocsteady.core.rows.class_rows import ClassRow, ClassRows
from rocsteady.core.rows.records import MeasureRow
from rocsteady.core.rows.rows import Rows
from rocsteady.transforms.evaluate.members import members_of_table

from tests.support.streams.batches import flips, truncations

NAMES = ("cat", "country=AR", 'owl, "o"|x')
BY = RollUpSettings(("models", "slices", "a*"), dependent=False)
HOUR = 3_600_000_000


def evaluated(late: bool = False, **choices: Any) -> Rows:
    """Rows of three models and slices on a grid of hours; `late`: one class comes in the last third alone."""
    rng = np.random.default_rng(7)
    parts = []
    for place, (model, slice_) in enumerate(
        [("a1", ""), ("a2", ""), ("b", ""), ("b", "country=AR"), ("b", "country=NZ")]
    ):
        n = 900
        labels = rng.integers(0, 3, n)
        labels[: 600 * late] %= 2
        scores = rng.random((n, 3)) + (0.3 + 0.1 * place) * np.eye(3)[labels]
        evaluator = rs.MulticlassEvaluator(
            NAMES,
            window=rs.LastEvents(300),
            every=rs.EverySeconds("1h"),
            model=model,
            slice=slice_,
            **choices,
        )
        times = np.arange(n) * 60 + 30
        parts += [evaluator.update(np.array(NAMES)[labels], scores, times=times), evaluator.finish()]
    return Rows.concat([part.rows for part in parts])


def plain(row: ClassRow, **fields: Any) -> MeasureRow:
    """The row of a model with one score that has the figures of a class."""
    return MeasureRow._make(getattr(row, name) for name in MeasureRow._fields)._replace(**fields)


def of_all(row: ClassRow) -> MeasureRow:
    ends = (row.auc_macro, row.auc_macro_low, row.auc_macro_high)
    auc, low, high = (None, None, None) if row.classes_absent else ends
    half = row.weight / 2
    return plain(row, auc=auc, auc_low=low, auc_high=high, positives=half, negatives=half)


def rolled(rows: Any, chosen: RollUpSettings = BY) -> list[rs.RollUpRow]:
    made = MemberRows.of_rows if isinstance(rows, Rows) else MemberRows.of_records
    return roll_up_all(made(rows, chosen), chosen)


@pytest.mark.parametrize("late", [False, True])
def test_a_class_is_rolled_up_like_a_model_with_one_score(late: bool) -> None:
    rows = [row for row in ClassRows(evaluated(late, evidence_below=0.8)) if row.due is not None]
    found = rolled(rows)
    for name in NAMES:
        mine = [row._replace(class_=None) for row in found if row.class_ == name]
        assert len(mine) > 20
        assert mine == rolled([plain(row) for row in rows if row.class_ == name])
    assert {row.class_ for row in found} == {None, *NAMES}


def test_all_classes_are_rolled_up_by_the_macro_mean() -> None:
    rows = [row for row in ClassRows(evaluated()) if row.due is not None]
    mine = [row for row in rolled(rows) if row.class_ is None]
    expected = rolled([of_all(row) for row in rows if row.class_ is None])
    assert len(mine) == len(expected) > 20
    nothing = dict.fromkeys(("reason", "without_reason"))
    assert [row._replace(**nothing) for row in mine] == [row._replace(**nothing) for row in expected]
    for row in mine:
        assert row.members_surely_below is None


def test_a_model_with_an_absent_class_has_no_mean_that_counts() -> None:
    rows = [row for row in ClassRows(evaluated(late=True)) if row.due is not None]
    [first] = [row for row in rolled(rows) if (row.class_, row.group, row.row) == (None, "models", 0)]
    assert (first.members, first.members_without, first.auc_mean) == (0, 3, None)
    assert first.without_reason == "a class has no event in its window"
    last = [row for row in rolled(rows) if (row.class_, row.group) == (None, "models")][-1]
    assert last.members == 3


def test_rows_in_columns_tables_and_single_rows_give_the_same() -> None:
    rows = evaluated(late=True, evidence_below=0.8)
    rows = rows.take(np.flatnonzero(rows.integer("due") != NO_TIME))
    expected = rolled(list(ClassRows(rows)))
    assert rolled(rows) == expected
    made = members_of_table(rows.to_arrow(), BY, "")
    assert roll_up_all(made, BY) == expected
    table = FleetTable(BY)
    assert sorted(table.take(ClassRows(rows)) + table.finish(), key=repr) == sorted(expected, key=repr)
    frame = rs.roll_up(rows, by=["models", "slices", "a*"])
    assert frame.column_names[:2] == ["group", "class"]
    assert frame["class"].to_pylist() == [row.class_ for row in expected]
    assert frame["auc_mean"].to_pylist() == [row.auc_mean for row in expected]


@pytest.mark.parametrize("seed", range(12))
def test_order_cuts_repeats_words_and_restarts_change_no_row(seed: int) -> None:
    chance = random.Random(seed)
    rows = [row for row in ClassRows(evaluated(late=True)) if row.due is not None]
    expected = rolled(rows)
    shuffled = [*rows, *chance.sample(rows, len(rows) // 2)]
    chance.shuffle(shuffled)
    table, found = FleetTable(BY), []
    while shuffled:
        part = [shuffled.pop() for _ in range(min(len(shuffled), chance.randrange(1, 40)))]
        found += table.apply(MemberRows.of_records(part, BY).pack())
        if chance.random() < 0.3:
            state = table.to_bytes()
            assert len(state) == table.snapshot_bytes()
            table = FleetTable.from_bytes(state, BY)
            assert table.to_bytes() == state
    word = replace(MemberRows.of_records([], BY), word=Settled(0, 1, NO_TIME, 9 * HOUR))
    found += table.apply(word.pack()) + table.apply(EndOfInput().pack())
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_damaged_bytes_are_refused_by_name() -> None:
    rows = [row for row in ClassRows(evaluated()) if row.due is not None][:8]
    members = MemberRows.of_records(rows, BY)
    assert MemberRows.unpack(members.pack()).pack() == members.pack()
    table = FleetTable(BY)
    table.apply(members.pack())
    for data, read in ((members.pack(), MemberRows.unpack), (table.to_bytes(), _table)):
        damaged: Sequence[bytes] = [*truncations(data), *flips(data)]
        for wrong in damaged[::7]:
            with pytest.raises(WireError):
                read(wrong)


def _table(data: bytes) -> FleetTable:
    return FleetTable.from_bytes(data, BY)


def test_rows_with_classes_and_without_are_not_one_group() -> None:
    rows = [row for row in ClassRows(evaluated()) if row.due is not None]
    with pytest.raises(InputError, match="some of these rows are of models with a score of each class"):
        rolled([*rows, plain(rows[0])])


def test_rules_watch_the_groups_of_classes() -> None:
    rows = rolled([row for row in ClassRows(evaluated(evidence_below=0.8)) if row.due is not None])
    texts = (
        "auc_mean < 2",
        "members_surely_below < 9",
        "auc_mean < 2 where class = 'cat' and group = 'models'",
    )
    table = rs.AlertTable([rs.parse_alert(text) for text in texts])
    opened = [alert for alert in table.watch(rows) if alert.model == "models"]
    assert {(alert.rule, alert.class_) for alert in opened} == {
        (texts[0], None), *((texts[1], name) for name in NAMES),
        ("auc_mean < 2 where class = 'cat' and group = 'models'", "cat"),
    }  # fmt: skip
