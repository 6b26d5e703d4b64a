"""Roll-up rows are what a slow search through all rows says, whatever the order, cuts and restarts."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.encoding.fields import HEAD_BYTES, framed
from rocsteady.core.errors import (
    ConfigError,
    CorruptBytesError,
    ForeignBytesError,
    FutureVersionError,
    InputError,
    OtherConfigurationError,
    TruncatedBytesError,
    WireError,
)
from rocsteady.core.events.records import Clock, EndOfInput, EndOfPartition
from rocsteady.core.events.times import END_OF_TIME, NO_TIME
from rocsteady.core.fleet.members import MemberRows, Settled
from rocsteady.core.fleet.roll_up_settings import RollUpSettings
from rocsteady.core.fleet.table import FleetTable, roll_up_all
from rocsteady.core.rows.columns import COLUMNS
from rocsteady.core.rows.reasons import DEGENERATE, REASONS
from rocsteady.core.rows.records import MeasureRow

from tests.support.oracles.roll_ups import roll_ups
from tests.support.streams.batches import flips, truncations
from tests.support.thorough import examples

HOUR = 3_600_000_000
NOTHING = MeasureRow._make((None,) * len(COLUMNS))
BY = ("models", "slices", "a*", "[!a]*")


def measured(model: str = "a", hour: int | None = 0, auc: float | None = 0.8, **fields: Any) -> MeasureRow:
    half = fields.pop("half", 0.04)
    known = {} if auc is None else {"auc_low": max(0.0, auc - half), "auc_high": min(1.0, auc + half)}
    row = NOTHING._replace(
        model=model, slice="", row=0, config="c", auc=auc, due=None if hour is None else hour * HOUR,
        positives=200.0, negatives=800.0, **known,
    )  # fmt: skip
    return row._replace(**fields)


def history(pick: Callable[[Sequence[Any]], Any]) -> list[MeasureRow]:
    """Rows of models and slices on a grid: some are silent for a while, some null or perfect."""
    rows = []
    for model in ("a", "ab", "b", "team/ü"):
        for slice_ in ("", "c=x", "c=y", "c=x,d=1"):
            hour = 0
            for number in range(pick(range(5))):
                hour += pick([1, 1, 2, 9])
                auc = pick([None, 0.5, 0.7, 0.8, 0.93, 1.0])
                fields: dict[str, Any] = {"half": pick([0.04, 0.01, 0.2, 0.0, 1.0])}
                if auc is None:
                    fields["reason"] = pick([None, "auc, auc_low: one class in window", "h: constant scores"])
                rows.append(
                    measured(
                        model,
                        hour,
                        auc,
                        slice=slice_,
                        row=number,
                        positives=float(pick([3, 50, 400])),
                        negatives=float(pick([7, 800])),
                        **fields,
                    )
                )
    return rows


def made(table: FleetTable, rows: Sequence[MeasureRow], word: Settled | None = None) -> list[rs.RollUpRow]:
    members = MemberRows.of_records(rows, table.settings)
    if word is not None:
        members = replace(members, word=word)
    return table.apply(members.pack())


def whole(rows: Sequence[MeasureRow], chosen: RollUpSettings) -> list[rs.RollUpRow]:
    return roll_up_all(MemberRows.of_records(rows, chosen), chosen)


def same(found: rs.RollUpRow, expected: dict[str, Any]) -> bool:
    for name, value in expected.items():
        here = getattr(found, name)
        if isinstance(value, float) and here is not None:
            if not math.isclose(here, value, rel_tol=1e-7, abs_tol=1e-9):
                return False
        elif name not in ("worst", "best") and here != value:
            return False
    return True


STALE = st.sampled_from([0, HOUR, 3 * HOUR, 100 * HOUR])


@settings(max_examples=examples(100), deadline=None)
@given(st.data(), STALE, st.booleans())
def test_roll_up_rows_are_those_of_a_search_through_all_rows(data, stale, dependent):
    rows = history(lambda choices: data.draw(st.sampled_from(choices)))
    chosen = RollUpSettings(BY, stale, 0.95, dependent)
    found, expected = whole(rows, chosen) if rows else [], roll_ups(rows, chosen)
    assert len(found) == len(expected)
    # of equal gaps the first member counts, and equal is decided by rounding
    assert all(
        same(one, {name: value for name, value in other.items() if not name.startswith(("worst", "best"))})
        for one, other in zip(found, expected, strict=True)
    )


@settings(max_examples=examples(100), deadline=None)
@given(st.integers(0, 10_000), STALE)
def test_order_cuts_repeats_words_and_restarts_change_no_row(seed, stale):
    chance = random.Random(seed)
    rows = history(chance.choice)
    chosen = RollUpSettings(BY, stale)
    expected = whole(rows, chosen) if rows else []
    sources = chance.randint(1, 3)
    packets = []
    for source in range(sources):
        mine = [row for row in rows if hash((row.model, row.slice)) % sources == source]
        cuts = sorted({chance.randint(1, 30) * HOUR for _ in range(4)})
        for since, until in zip([NO_TIME, *cuts], [*cuts, END_OF_TIME], strict=True):
            part = [row for row in mine if since < row.due <= until]
            packets.append((part, Settled(source, sources, since, until)))
    packets += chance.sample(packets, chance.randint(0, len(packets)))
    chance.shuffle(packets)
    table, found = FleetTable(chosen), []
    for part, word in packets:
        chance.shuffle(part)
        found += made(table, part, word)
        if chance.random() < 0.3:
            data = table.to_bytes()
            assert len(data) == table.snapshot_bytes()
            table = FleetTable.from_bytes(data, chosen)
    assert table.apply(EndOfInput().pack()) == []
    key = lambda row: (row.group, row.row)  # noqa: E731
    assert sorted(found, key=key) == sorted(expected, key=key)


def test_a_grid_point_closes_when_every_shard_has_passed_it():
    table = FleetTable(RollUpSettings())
    assert made(table, [measured("a", 1)], Settled(0, 2, NO_TIME, HOUR)) == []
    assert made(table, [measured("b", 2)], Settled(1, 2, HOUR, 2 * HOUR)) == []  # its first word is missing
    [row] = made(table, [measured("b", 1)], Settled(1, 2, NO_TIME, HOUR))
    assert (row.due, row.members) == (HOUR, 2)
    [row] = made(table, [], Settled(0, 2, HOUR, END_OF_TIME))
    assert (row.due, row.members, row.members_silent) == (2 * HOUR, 2, 1)


def test_the_runners_watermark_closes_grid_points_where_there_are_no_words():
    table = FleetTable(RollUpSettings())
    made(table, [measured("a", 1), measured("a", 3)])
    assert table.wakes_at() == HOUR + 1
    assert table.apply(Clock(HOUR).pack()) == []
    assert [row.due for row in table.apply(Clock(HOUR + 1).pack())] == [HOUR]
    assert [row.due for row in table.apply(EndOfInput().pack())] == [3 * HOUR]
    assert table.wakes_at() is None


def test_a_row_behind_its_grid_point_is_counted_and_counts_from_then_on():
    table = FleetTable(RollUpSettings())
    made(table, [measured("a", 1), measured("a", 2)])
    assert len(table.apply(Clock(HOUR + 1).pack())) == 1
    made(table, [measured("b", 1)])
    [row] = table.apply(EndOfInput().pack())
    assert (row.members, row.members_silent) == (2, 1)
    assert table.counts() == {"roll_up_rows_late": 1, "roll_up_rows_undue": 0}


def test_a_silent_member_stays_as_long_as_it_is_not_stale_and_may_return():
    rows = [measured("a", hour) for hour in range(8)] + [measured("b", 0), measured("b", 6)]
    found = whole(rows, RollUpSettings(stale=2 * HOUR))
    assert [row.members for row in found] == [2, 2, 2, 1, 1, 1, 2, 2]
    assert [row.members_silent for row in found] == [0, 1, 1, 0, 0, 0, 0, 1]


def test_members_without_are_counted_with_the_commonest_reason():
    null = {"auc": None, "reason": "auc, auc_low, h: one class in window"}
    rows = [
        measured("a"),
        measured("b", **null),
        measured("c", **null),
        measured("d", auc=1.0, half=0.0),
        measured("e", half=1.0),
    ]
    [row] = whole(rows, RollUpSettings())
    assert (row.members, row.members_without, row.without_reason) == (1, 4, "one class in window")
    [row] = whole([rows[3]], RollUpSettings())
    assert (row.members, row.without_reason) == (0, REASONS[DEGENERATE])
    assert (row.auc_mean, row.auc_random, row.worst) == (1.0, None, None)
    [row] = whole([rows[4]], RollUpSettings())
    assert (row.members, row.without_reason) == (0, "its interval is from 0 to 1")
    [row] = whole([measured("a", auc=None)], RollUpSettings())
    assert row.without_reason == "its interval is not known"
    [row] = whole([measured("a", positives=None)], RollUpSettings())
    assert row.without_reason == "its positives and negatives are not known"


def test_groups_are_all_models_patterns_and_the_slices_of_a_model():
    rows = [
        measured(model, slice=slice_) for model in ("t/a", "b=,") for slice_ in ("", "c=x", "c=y", "c=x,d=y")
    ]
    groups = {row.group: row.members for row in whole(rows, RollUpSettings(("models", "slices", "t/*")))}
    assert groups == {
        "models": 2,
        "t/*": 1,
        "model=t/a,slice=c": 2,
        "model=t/a,slice=c,d": 1,
        "model=b\\=\\,,slice=c": 2,
        "model=b\\=\\,,slice=c,d": 1,
    }


def test_dependence_concerns_models_and_never_the_slices_of_one():
    rows = [measured(model, slice=slice_) for model in ("a", "b") for slice_ in ("", "c=x", "c=y")]
    found = whole(rows, RollUpSettings(("models", "slices"), dependent=True))
    assert {row.group: row.intervals for row in found} == {
        "models": "dependent",
        "model=a,slice=c": "independent",
        "model=b,slice=c": "independent",
    }


def test_panes_have_groups_of_their_own():
    rows = [measured(model, pane_start=start, pane_end=start + 9) for model in ("a", "b") for start in (0, 9)]
    found = whole(rows, RollUpSettings())
    assert [(row.pane_start, row.pane_end, row.row, row.members) for row in found] == [
        (0, 9, 0, 2),
        (9, 18, 0, 2),
    ]


def test_rows_in_columns_give_what_single_rows_give():
    rng = np.random.default_rng(2)
    parts = []
    for number, model in enumerate(("a", "b", "c")):
        evaluator = rs.ModelEvaluator(model=model, window=rs.LastEvents(200), every=rs.EverySeconds("50s"))
        labels = (rng.random(600) < (0.3 if number else 0.0)).astype(int)
        times = np.arange(600).astype("datetime64[s]")
        parts += [evaluator.update(labels, rng.normal(labels), times=times), evaluator.finish()]
    rows = rs.Rows.concat(parts)
    chosen = RollUpSettings()
    found = roll_up_all(MemberRows.of_rows(rows, chosen), chosen)
    assert found == whole([*rows], chosen)
    counts = {(row.members, row.members_without, row.without_reason) for row in found}
    assert (2, 1, "one class in window") in counts
    table = FleetTable(chosen)
    assert table.take(rows) + table.finish() == found


# ---- refusals


def test_an_input_without_grid_points_is_refused_and_a_last_row_is_left_out():
    table = FleetTable(RollUpSettings())
    made(table, [measured("a", None)] * 3)
    with pytest.raises(InputError, match=r"none of 3 rows has a grid point in 'due'.*--every 1h"):
        table.apply(EndOfInput().pack())
    with pytest.raises(InputError, match="none of 1,000 rows"):
        made(FleetTable(RollUpSettings()), [measured("a", None)] * 1_000)
    table = FleetTable(RollUpSettings())
    made(table, [measured("a", 1), measured("a", None)])
    assert len(table.finish()) == 1
    assert table.counts()["roll_up_rows_undue"] == 1


def test_rows_of_other_settings_in_one_group_are_refused():
    with pytest.raises(InputError, match=r"'models' has rows of different windows.*'c' and 'd', of 'b'"):
        whole([measured("a"), measured("b", config="d")], RollUpSettings())
    rows = [measured("a"), measured("b", config="d")]
    assert len(whole(rows, RollUpSettings(("a*", "b*")))) == 2


def test_two_rows_of_a_member_at_one_grid_point_are_refused():
    with pytest.raises(InputError, match="two rows of 'a' at one grid point"):
        whole([measured("a"), measured("a", auc=0.7)], RollUpSettings())


def test_shards_that_contradict_each_other_are_refused():
    table = FleetTable(RollUpSettings())
    made(table, [], Settled(0, 2, NO_TIME, 0))
    with pytest.raises(InputError, match="there are 3, and another one 2"):
        made(table, [], Settled(0, 3, NO_TIME, 0))


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ({"by": ()}, "give models, slices, or a pattern"),
        ({"by": "models"}, "give models, slices, or a pattern"),
        ({"by": ("",)}, "'' is no choice of groups"),
        ({"by": ("model",)}, "did you mean 'models'"),
        ({"by": ("churn",)}, "is no pattern, as it has no"),
        ({"by": ("models", "models")}, "'models' is there 2 times"),
        ({"by": ("slices", "model=*")}, "give it apart"),
        ({"by": ("\udc80*",)}, "is not UTF-8"),
        ({"stale": -1}, "give microseconds"),
        ({"stale": True}, "give microseconds"),
        ({"confidence": 1.0}, "a level between 0 and 1"),
        ({"confidence": "0.9"}, "a level between 0 and 1"),
        ({"confidence": 1e-17}, "a level between 0 and 1"),
        ({"confidence": 1 - 1e-16}, "a level between 0 and 1"),
    ],
)
def test_other_settings_are_refused_in_a_sentence(chosen, said):
    with pytest.raises(ConfigError, match=said):
        RollUpSettings(**chosen)


# ---- state


def filled() -> FleetTable:
    table = FleetTable(RollUpSettings(BY))
    made(table, [measured("a", 1), measured("a", 2), measured("b", 1)], Settled(0, 2, NO_TIME, HOUR))
    made(table, [measured("ü", 1, slice="c=x")], Settled(1, 2, NO_TIME, HOUR))
    made(table, [measured("ü", 3)], Settled(1, 2, 2 * HOUR, 3 * HOUR))
    return table


def test_damaged_state_is_refused_by_name():
    table = filled()
    data = table.to_bytes()
    for damaged, error in (
        *((part, TruncatedBytesError if part else ForeignBytesError) for part in truncations(data)),
        *((part, WireError) for part in flips(data)),
        (b"XXXX" + data[4:], ForeignBytesError),
        (data[:4] + b"\x09\x00" + data[6:], FutureVersionError),
    ):
        with pytest.raises(error):
            FleetTable.from_bytes(damaged, table.settings)
    longer = framed(b"RSFT", 1, data[HEAD_BYTES:] + b"x")
    with pytest.raises(CorruptBytesError, match="1 bytes too many"):
        FleetTable.from_bytes(longer, table.settings)


def test_a_state_of_other_settings_is_refused_and_names_both():
    with pytest.raises(OtherConfigurationError, match=r"stale 1d.*stale 2d"):
        FleetTable.from_bytes(filled().to_bytes(), RollUpSettings(BY, 2 * 24 * HOUR))


def test_a_table_takes_rows_and_no_words_of_events():
    with pytest.raises(ForeignBytesError, match="which is fed rows"):
        FleetTable(RollUpSettings()).apply(EndOfPartition("a", 0, 1, 0).pack())
    with pytest.raises(WireError):
        FleetTable(RollUpSettings()).apply(b"RSFM")


def test_a_table_describes_itself():
    text = filled().describe()
    assert "by 'models' 'slices' 'a*' '[!a]*', stale 1d, confidence 0.95" in text
    assert filled().gauges() == {"roll_up_groups": 4}
    assert filled().live_bytes() > 0


def test_rows_are_split_by_group_and_every_shard_hears_the_word():
    rows = [measured(model, slice=slice_) for model in ("a", "b") for slice_ in ("", "c=x", "c=y")]
    chosen = RollUpSettings(("models", "slices"))
    members = MemberRows.of_records([*rows, measured("c", None)], chosen)
    assert (len(members), members.taken, members.undue) == (6, 6, 1)
    parts = dict(replace(members, word=Settled(0, 1, 0, HOUR)).split(4))
    assert sorted(parts) == [0, 1, 2, 3]
    assert {part.word for part in parts.values()} == {Settled(0, 1, 0, HOUR)}
    assert sum(map(len, parts.values())) == 6
    assert [part.undue for part in parts.values()] == [1, 0, 0, 0]
    groups = [{group for group, _ in part.keys} for part in parts.values()]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 3
    again = MemberRows.unpack(parts[0].pack())
    assert again.pack() == parts[0].pack()


@pytest.mark.parametrize("by", [None, 5])
def test_groups_that_are_no_names_are_refused_in_a_sentence(by):
    with pytest.raises(ConfigError, match=f"by={by}: give models, slices, or a pattern"):
        rs.roll_up([measured()], by=by)
    with pytest.raises(ConfigError, match="stale: 'x' is no duration"):
        rs.roll_up([measured()], stale="x")


def test_means_of_masses_of_any_size_are_numbers():
    rows = [
        measured(model, auc=auc, positives=1e-200, negatives=1e200) for model, auc in (("a", 0.7), ("b", 0.8))
    ]
    [row] = whole(rows, RollUpSettings())
    assert (row.auc_mean, row.auc_by_events) == pytest.approx((0.75, 0.75))
