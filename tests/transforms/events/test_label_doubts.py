"""A label such as "NA" beside a named positive class counts as negative, and the log says so once."""

from __future__ import annotations

import pandas as pd
import pytest
import rocsteady as rs
from rocsteady.transforms.events import doubts

LABELS = ["yes", "no", "NA", "n/a", "NA", "yes"]


def warnings_of(caplog, labels, positive):
    """Evaluate events with these labels, and return what the log says of them."""
    doubts.reset()
    frame = pd.DataFrame({"score": [0.5] * len(labels), "label": labels})
    result = rs.evaluate(frame, positive=positive)
    assert result.counters["events_applied"] == len(labels)
    return [each.getMessage() for each in caplog.records if each.name == "rocsteady.labels"]


def test_a_label_that_probably_means_missing_is_told_of_once_with_the_remedy(caplog):
    said = warnings_of(caplog, LABELS, "yes")
    assert sorted(text.split(";")[0] for text in said) == [
        "labels in 'label': 'NA' counts as negative",
        "labels in 'label': 'n/a' counts as negative",
    ]
    assert all("leave it empty" in text for text in said)
    assert sorted(doubts.told()) == sorted(said)


@pytest.mark.parametrize(
    ("labels", "positive"),
    [(["yes", "no", "none", "-"], "yes"), (["NA", "EU"], "NA")],
    ids=["ordinary labels", "the positive class"],
)
def test_no_other_label_is_told_of(caplog, labels, positive):
    assert warnings_of(caplog, labels, positive) == []
