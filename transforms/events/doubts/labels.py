"""Warns of labels, such as "NA", that probably stand for a missing label and count as negative."""

from __future__ import annotations

from collections.abc import Iterable

from ....core.events.columns import TextColumn
from ....core.process.console import logger
from ..fields import EventFields
from .classes import tell_classes
from .once import is_new, is_told

_logger = logger("rocsteady.labels")

ABSENT = frozenset({"#n/a", "<na>", "?", "missing", "n/a", "na", "nan", "null", "unknown"})
"""Texts of labels, in small letters, that probably stand for a missing label."""


def tell_labels(fields: EventFields, classes: TextColumn) -> None:
    """Warn of labels that probably stand for missing labels, and of predictions unlike all labels."""
    if fields.positive is not None:
        _tell_negatives(fields.label, classes.values, fields.positive)
    tell_classes(fields, 0, classes)


def _tell_negatives(name: str, labels: Iterable[str], positive: str) -> None:
    """Warn once of each label that probably stands for a missing label and counts as negative."""
    for label in labels:
        if label == positive or label.strip().lower() not in ABSENT or is_told((name, label)):
            continue
        remedy = f"if it means that the label is missing, leave it empty; only {positive!r} is positive"
        text = f"labels in {name!r}: {label!r} counts as negative; {remedy}"
        if is_new((name, label), text):
            _logger.warning("%s", text)
