"""The numbers in the newest rows of models, slices and classes, for monitoring systems."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from ...core.events.times import NO_TIME
from ...core.rows.columns import NUMBER_COLUMNS
from ...core.rows.rows import Rows


class Newest(NamedTuple):
    """The numbers in the newest rows of models, slices and classes, by the names of NEWEST_COLUMNS.

    models         by model
    slices         by model and slice
    models_beyond  the number of models that are left out
    slices_beyond  the number of slices of models that are left out
    rows_beyond    the number of rows of models that were left out so far
    classes        by model, slice ("": the whole model) and class
    classes_beyond the number of classes that are left out

    A model with classes has MACRO_COLUMNS in place of the columns of the AUC, and so have its slices.
    """

    models: Mapping[str, Mapping[str, float]]
    slices: Mapping[tuple[str, str], Mapping[str, float]]
    models_beyond: int = 0
    slices_beyond: int = 0
    rows_beyond: int = 0
    classes: Mapping[tuple[str, str, str], Mapping[str, float]] = MappingProxyType({})
    classes_beyond: int = 0


_Key = tuple[str, str, str]
"""A model, a slice ("": the whole model) and a class ("": all classes)."""


class NewestRows:
    """The numbers in the newest rows of the first `most` models, the first `most` slices and classes.

    O(keys) a batch of rows. Models, slices and classes beyond `most` are counted, up to `MOST_COUNTED` of
    each.
    """

    MOST_COUNTED = 10_000

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, dict[_Key, dict[str, float]]] = {"models": {}, "slices": {}, "classes": {}}
        self._beyond: dict[str, set[_Key]] = {what: set() for what in self._kept}
        self._rows_beyond = 0

    def see(self, rows: Rows) -> None:
        """Add rows, which are in order for each model."""
        of_classes, marks = rows.classes, rows.key_codes.astype(np.int64)
        if of_classes is not None:
            marks = marks * (len(of_classes.names) + 1) + of_classes.codes + 1
        _, behind = np.unique(marks[::-1], return_index=True)
        seqs, times, events = (rows.integer(name) for name in ("seq", "time", "window_events"))
        for row in (len(rows) - 1 - behind).tolist():
            model, slice_ = rows.keys[rows.key_codes[row]]
            name = None if of_classes is None else of_classes.name(row)
            what = "classes" if name is not None else "slices" if slice_ else "models"
            key = model, slice_, name or ""
            kept, beyond = self._kept[what], self._beyond[what]
            if key not in kept and len(kept) >= self._most:
                if len(beyond) < self.MOST_COUNTED:
                    beyond.add(key)
                if what == "models":
                    self._rows_beyond += int(np.count_nonzero(marks == marks[row]))
                continue
            numbers = {
                **{name: float(rows.number(name)[row]) for name in NEWEST_COLUMNS if name in NUMBER_COLUMNS},
                "window_events": float(events[row]),
                "events": float(seqs[row]),
                "newest_event_timestamp_seconds": np.nan if times[row] == NO_TIME else times[row] / 1e6,
            }
            if of_classes is not None and name is None:
                means = of_classes.means[row]
                found = {column: getattr(means, column) for column in MACRO_COLUMNS}
                numbers = as_macro(numbers) | {
                    column: np.nan if value is None else value for column, value in found.items()
                }
            kept[key] = numbers

    def now(self) -> Newest:
        """Return the numbers of the newest rows so far."""
        beyond = {what: len(keys) for what, keys in self._beyond.items()}
        return Newest(
            {model: numbers for (model, _, _), numbers in self._kept["models"].items()},
            {(model, slice_): numbers for (model, slice_, _), numbers in self._kept["slices"].items()},
            beyond["models"],
            beyond["slices"],
            self._rows_beyond,
            dict(self._kept["classes"]),
            beyond["classes"],
        )


NEWEST_COLUMNS = {
    "auc": "Area under the ROC curve, of the newest row; NaN where undefined.",
    "auc_low": "Lower end of the AUC's interval.",
    "auc_high": "Upper end of the AUC's interval.",
    "h": "H-measure, of the newest row; NaN where undefined.",
    "evidence": "Evidence that the AUC fell, of the newest row; NaN without --evidence-below.",
    "window_events": "Events in the window of the newest row.",
    "events": "Events so far at the newest row.",
    "newest_event_timestamp_seconds": "The time of the last event of the newest row; NaN without --time.",
}
"""Numbers of a newest row, with their descriptions."""

MACRO_COLUMNS = {
    "auc_macro": "Mean of the AUCs of the classes, of the newest row; NaN where undefined.",
    "auc_macro_low": "Lower end of the interval of the macro AUC.",
    "auc_macro_high": "Upper end of the interval of the macro AUC.",
}
"""The columns that the row of a model with classes has in place of the AUC, with descriptions."""


def as_macro(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return the numbers of a newest row, with the AUC and its interval under the names of MACRO_COLUMNS.

    Other numbers of one score, which no row of a model with classes has, are left out.
    """
    macro = {name.replace("_macro", ""): name for name in MACRO_COLUMNS}
    of_one_score = ("h", "evidence")
    return {macro.get(name, name): value for name, value in numbers.items() if name not in of_one_score}
