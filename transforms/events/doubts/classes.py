"""Warns of labels and predictions with too few classes in common."""

from __future__ import annotations

from ....core.events.class_doubts import ClassDoubt
from ....core.events.columns import TextColumn
from ....core.process.console import logger
from ..fields import EventFields
from .once import keep

_logger = logger("rocsteady.labels")

_classes: dict[tuple[str, str, str], ClassDoubt] = {}
"""The classes so far, by the columns of labels and of predictions and the positive class."""


def tell_predictions(fields: EventFields, classes: TextColumn) -> None:
    """Warn of predictions that differ from all labels, or from all labels but one class."""
    tell_classes(fields, 1, classes)


def tell_classes(fields: EventFields, side: int, classes: TextColumn) -> None:
    """Add the classes of labels (side 0) or of predictions (side 1).

    Warn once if both have too few classes in common.
    """
    if fields.predicted is None or fields.class_scores:
        return
    key = fields.label, fields.predicted, fields.positive or ""
    doubt = _classes.get(key)
    if doubt is None:
        whose = f"labels in {fields.label!r}", f"predictions in {fields.predicted!r}"
        doubt = _classes.setdefault(key, ClassDoubt(whose, fields.positive))
    doubt.add(side, classes.values, len(classes))
    _tell(key, doubt.sentence())


def tell_classes_at_end() -> None:
    """Warn of labels and predictions with too few classes in common, however few events there were.

    The end is that of a command, of a frame, or of a worker's reading step. The classes are then forgotten.
    """
    for key in [*_classes]:
        if (doubt := _classes.pop(key, None)) is not None:
            _tell(key, doubt.sentence(at_end=True))


def _tell(key: tuple[str, str, str], sentence: str | None) -> None:
    if sentence is not None:
        keep((key[0], f"classes of {key[1]}"), sentence)
        _logger.warning("%s", sentence)


def forget() -> None:
    """Forget the classes of a job."""
    _classes.clear()
