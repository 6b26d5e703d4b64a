"""The reasons of dead letters: a closed list that the docs, the schema and the metrics share."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from rocsteady.core.events.rejected import Reason
from rocsteady.pipelines.report.report_rows import count_dead_letters
from rocsteady.transforms.events.dead_letters import DEAD_LETTER_SCHEMA, KINDS

FROZEN = """
model is missing; score is missing; score is not a number; score is not finite; score is not a probability
label is missing; label is unknown; predicted class is missing; time is missing; time cannot be read
time does not fit the format
time is out of range; time is too far ahead; id is missing; weight is missing; weight is not a number
weight is not finite; weight is not positive; feature is missing; feature is not a number
feature is not finite; wrong number of fields; not UTF-8; not a JSON object; line is too long; empty message
messages deleted before they were read; file cannot be read; file changed after it was found; not a record
packed batch does not fit; learner failed; later than allowed; behind the clock; no label within ttl
no label within ttl before the input ended; no prediction within ttl
no prediction within ttl before the input ended; same label again; second label
second event of this model and id
"""


def test_no_reason_is_ever_renamed_or_removed() -> None:
    frozen = [words.strip() for line in FROZEN.splitlines() for words in line.split(";") if words.strip()]
    assert set(frozen) <= {reason.value for reason in Reason}
    assert DEAD_LETTER_SCHEMA.names[:8] == [
        "kind",
        "reason",
        "source",
        "position",
        "time",
        "model",
        "id",
        "raw",
    ]
    assert KINDS == ("invalid", "late", "unmatched", "duplicate")


@pytest.mark.parametrize("reason", Reason)
def test_a_reason_has_no_values_and_says_what_to_do(reason: Reason) -> None:
    assert reason.value.replace("-8", "").replace(" ", "").replace("-", "").isalpha()
    assert len(reason) <= 50
    assert set(reason.kinds) <= set(KINDS)
    assert reason.means
    assert reason.remedy
    assert pickle.loads(pickle.dumps(reason)) is reason


def test_a_report_counts_letters_by_their_reason() -> None:
    letters = [("invalid", reason.value) for reason in (*Reason, Reason.TIME_MISSING)]
    table = pa.Table.from_pylist(
        [{"kind": kind, "reason": reason, "source": "f"} for kind, reason in letters], DEAD_LETTER_SCHEMA
    )
    lost = {reason: count for _, reason, count in count_dead_letters(table).lost}
    assert lost == {reason.value: 1 + (reason is Reason.TIME_MISSING) for reason in Reason}
