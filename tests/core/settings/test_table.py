"""Settings of a table have one text, one meaning and one fingerprint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import rocsteady as rs

from tests.support.invariants.refusals import assert_refused


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: rs.TableSettings(slices=((),)), ["slices=((),)", "column name"]),
        (lambda: rs.TableSettings(slices=("",)), ["slices=('',)", "column name"]),
        (lambda: rs.TableSettings(slices=(("a", "a"),)), ["'a,a'", "twice"]),
        (lambda: rs.TableSettings(slices=("a", ("a",))), ["same slice twice"]),
        (lambda: rs.TableSettings(shards=0), ["shards=0", "1 or more"]),
        (lambda: rs.TableSettings(shards=2.0), ["shards=2.0", "a whole number"]),
    ],
)
def test_a_wrong_setting_names_field_value_and_remedy(make: Callable[[], Any], words: list[str]) -> None:
    assert_refused(make, words)


def test_a_table_means_its_settings_its_slices_and_its_shards() -> None:
    tables = [
        rs.TableSettings(), rs.TableSettings(slices=("a",)), rs.TableSettings(slices=("a", "b")),
        rs.TableSettings(slices=(("a", "b"),)), rs.TableSettings(slices=("a,b",)),
        rs.TableSettings(slices=(("b", "a"),)), rs.TableSettings(shards=64), rs.TableSettings(shards=65),
        rs.TableSettings(rs.EvaluatorSettings(threshold=0.1)), rs.TableSettings(deduplicate=7, slice_cap=3),
        rs.TableSettings(rs.EvaluatorSettings(partial_fpr=(0.1, 0.4))), rs.TableSettings(idle_ttl=7),
        rs.TableSettings(rs.EvaluatorSettings(positive="up")),
    ]  # fmt: skip
    assert len({table.fingerprint() for table in tables}) == len(tables)
    for table in tables:
        assert rs.TableSettings.from_json(table.to_json()) == table
    shown = rs.TableSettings(rs.EvaluatorSettings(measures="auc"))
    assert shown.fingerprint() == rs.TableSettings().fingerprint()
    drawn = rs.TableSettings(rs.EvaluatorSettings(curves=rs.EveryEvents(7)))
    assert drawn.fingerprint() == rs.TableSettings().fingerprint()
    assert drawn.to_json() == rs.TableSettings().to_json()
