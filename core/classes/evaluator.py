"""MulticlassEvaluator: evaluates a model with a score of each class, in a notebook or a service."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

from ..arrays import Int64Array
from ..encoding.fields import Reader, packed_bytes
from ..encoding.json import reading
from ..errors import ConfigError, CorruptBytesError, InputError, OtherConfigurationError, check_settings
from ..evaluator.adwin import Adwin
from ..evaluator.evaluator import ModelEvaluator
from ..evaluator.state import Remains
from ..events.inputs import TimesReader, as_array, as_binary, as_score_numbers, as_weights
from ..rows import slots
from ..rows.class_columns import ClassColumns, ClassMeans
from ..rows.class_rows import ClassRows
from ..rows.measure_table import MEASURES
from ..rows.reasons import NO_POSITIVE_CLASS, NOT_ASKED
from ..rows.records import Measures
from ..rows.rows import Rows
from ..settings.choices import SettingsChoices, settings_with
from ..settings.evaluator import EvaluatorSettings
from ..settings.windows import Adaptive
from .adaptive import ClassSignal
from .class_settings import ClassSettings
from .events import ClassEvents
from .one_against_rest import of_each
from .state import ClassState
from .window import ClassWindow


class MulticlassEvaluator:
    """Evaluate a model that gives each event a score of every class, over a window of its events.

    classes      the names of the classes, in the order of the scores
    settings     the settings of each class's rows; None: the defaults
    multi_label  whether an event may be of any number of classes
    class_rows   whether each class has rows of its own
    intervals    whether the means of AUCs have intervals
    model        the name in the column `model` of its rows
    slice        the name in the column `slice` of its rows
    pane         the Beam window for the rows; see `ModelEvaluator`
    choices      fields of `EvaluatorSettings` by keyword; they replace the values of `settings`.
                 They may be texts of the command: window="last:7d", every="1h", measures="auc,h"

    Every row of the model is followed by a row of each class, which ranks the events of the class against all
    other events by the score of the class.
    Raises ConfigError for an invalid setting.

    >>> import rocsteady as rs
    >>> ev = rs.MulticlassEvaluator(["cat", "dog", "owl"], every=rs.EveryEvents(6))
    >>> scores = [[.6, .3, .1], [.5, .4, .1], [.2, .2, .6], [.4, .5, .1], [.1, .8, .1], [.3, .3, .4]]
    >>> rows = ev.update(["cat", "dog", "owl", "cat", "dog", "owl"], scores)
    >>> row = rows[0]
    >>> row.auc_macro, row.auc_m, row.worst_class, row.worst_pair, row.worst_pair_auc
    (0.9166666666666666, 0.9166666666666666, 'cat', 'cat|dog', 0.75)
    >>> [(row.class_, row.auc) for row in rows]
    [(None, None), ('cat', 0.875), ('dog', 0.875), ('owl', 1.0)]
    """

    def __init__(
        self,
        classes: Sequence[str] | ClassSettings,
        settings: EvaluatorSettings | None = None,
        *,
        multi_label: bool = False,
        class_rows: bool = True,
        intervals: bool = True,
        model: str = "",
        slice: str = "",  # noqa: A002  the column's name
        pane: tuple[int, int] | None = None,
        **choices: Unpack[SettingsChoices],
    ) -> None:
        if not isinstance(classes, ClassSettings):
            settings = settings_with(choices, settings, EvaluatorSettings)
            names: Any = classes  # the settings refuse any value that is no list of names
            if isinstance(classes, Iterable) and not isinstance(classes, str | set | frozenset):
                names = tuple(classes)
            classes = ClassSettings(names, settings, multi_label, class_rows, intervals)
        elif settings is not None or choices or (multi_label, class_rows, intervals) != (False, True, True):
            raise ConfigError(
                f"classes={classes!r}: it has all settings; give no others beside it, or give the names of "
                "the classes and the settings"
            )
        self.settings = classes
        self.model, self.slice, self.pane = model, slice, pane
        self._window = ClassWindow(classes)
        self._of_model = ModelEvaluator(classes.of_model, model=model, slice=slice, pane=pane)
        self._of_classes = [
            ModelEvaluator(classes.of_class(name), model=model, slice=slice, pane=pane)
            for name in classes.evaluated
        ]
        window = classes.evaluator.window
        self._signal = ClassSignal(window) if isinstance(window, Adaptive) else None
        self._times = TimesReader()

    def __len__(self) -> int:
        """Return how many events the window holds."""
        return len(self._window)

    def __repr__(self) -> str:
        names = " of " + ", ".join(repr(name) for name in (self.model, self.slice) if name)
        classes = len(self.settings.classes)
        return (
            f"<MulticlassEvaluator{names if self.model or self.slice else ''}: {classes:,} classes, "
            f"{self.settings.evaluator.window}, {len(self):,} events held of {self.seq:,}>"
        )

    @property
    def seq(self) -> int:
        """Number of events applied so far."""
        return self._of_model.seq

    # ---- events and time

    def update(
        self,
        labels: npt.ArrayLike,
        scores: npt.ArrayLike,
        *,
        times: npt.ArrayLike | None = None,
        time_unit: Literal["s", "ms", "us", "ns"] = "s",
        weights: npt.ArrayLike | None = None,
        predicted: npt.ArrayLike | None = None,
    ) -> ClassRows:
        """Apply n events in the order given; return the rows that fell due.

        labels     the class of each event, one of the names; with `multi_label` n times C of 1/0 or booleans
        scores     n times C finite numbers, higher for more likely of the class; their sums need not be 1
        times      as `ModelEvaluator.update` takes them; windows and rows by time need them
        time_unit  "s", "ms", "us" or "ns": the unit of times that are numbers
        weights    n finite numbers above 0; all are 1 by default
        predicted  the class decided for each event; by default the class of the greatest score, the first of
                   several. With `multi_label` a class is decided for if its score is at the threshold or
                   above.

        Raises InputError, and applies nothing, if a value cannot be used.
        """
        events = self._checked(labels, scores, weights)
        moments = None if times is None else self._times.read(times, time_unit)
        if moments is not None and len(moments) != events.size:
            raise InputError(f"{len(moments)} times for {events.size} events: give one per event")
        if self.settings.multi_label:
            if predicted is not None:
                raise InputError("predicted: with multi_label the threshold decides; leave predicted out")
            return self.apply(events, moments)
        if predicted is None:
            decided = np.argmax(events.scores, axis=1) if events.size else np.empty(0, np.int64)
        else:
            decided = self._numbers_of("predicted", predicted, events.size)
        return self.apply(events, moments, decided)

    def _checked(
        self, labels: npt.ArrayLike, scores: npt.ArrayLike, weights: npt.ArrayLike | None
    ) -> ClassEvents:
        """Return the events in columns; raise InputError for values that cannot be used."""
        names = self.settings.classes
        found = as_score_numbers("scores", scores)
        if not found.size:
            found = found.reshape(0, len(names))
        if found.ndim != 2 or found.shape[1] != len(names):
            raise InputError(
                f"scores of shape {found.shape}: give a line for each event, with a score of each of "
                f"{len(names)} classes"
            )
        for event, place in np.argwhere(~np.isfinite(found))[:1].tolist():
            raise InputError(
                f"scores[{event}], class {names[place]!r}, is {found[event, place]}: a score is a finite "
                "number; leave the event out"
            )
        if (
            self.settings.evaluator.probabilities
            and found.size
            and not (found.min() >= 0 and found.max() <= 1)
        ):
            raise InputError(
                "scores lie outside [0, 1], and probabilities=True says that they are probabilities"
            )
        weight_array = None if weights is None else as_weights(weights)
        if weight_array is not None and weight_array.shape != (len(found),):
            raise InputError(f"{len(weight_array)} weights for {len(found)} events: give one per event")
        if self.settings.multi_label:
            members = as_array("labels", labels)
            if (members.size and members.shape != found.shape) or members.size != found.size:
                raise InputError(
                    f"labels of shape {members.shape} for scores of shape {found.shape}: with multi_label "
                    "give 1 or 0 for each event and class"
                )
            binary = as_binary(members, "with multi_label give 1 or 0 for each event and class")
            return ClassEvents(binary.reshape(found.shape) == 1, found + 0.0, weight_array)
        return ClassEvents(self._numbers_of("labels", labels, len(found)), found + 0.0, weight_array)

    def _numbers_of(self, name: str, values: npt.ArrayLike, events: int) -> Int64Array:
        """Return the numbers of classes that are given by name."""
        array = as_array(name, values)
        if array.shape != (events,) and array.size + events:
            raise InputError(f"{name} of shape {array.shape} for {events} events: give one per event")
        numbers = np.empty(events, np.int64)
        known: dict[object, int] = {}
        for at, value in enumerate(array.tolist()):
            key = value if value.__hash__ else repr(value)  # equal values are one class, such as 1 and True
            if key not in known:
                number = None if value is None else self.settings.number_of(value)
                if number is None:
                    raise InputError(
                        f"{name}[{at}] is {value!r}, which is none of the classes "
                        f"({_some(self.settings.classes)}); name it in classes=, or leave the event out"
                    )
                known[key] = number
            numbers[at] = known[key]
        return numbers

    def apply(
        self, events: ClassEvents, times: Int64Array | None = None, decided: Int64Array | None = None
    ) -> ClassRows:
        """Apply columns that were checked before; return rows as `update` does.

        decided  the number of the class decided for each event; None with `multi_label`
        """
        if not events.size:
            return ClassRows(Rows.empty(self.settings.config))
        evaluators = self._of_model, *self._of_classes
        if self._signal is not None and decided is not None:
            found = self._signal.apply(self.settings, evaluators, self._window, events, times, decided)
            parts = [self._joined(rows[0], rows[1:], means).rows for rows, means in found]
            return ClassRows(Rows.concat(parts) if len(parts) > 1 else parts[0])
        given = of_each(self.settings, len(self._of_classes), events, times, decided)
        # First the classes: if an event cannot be applied, the first class refuses it before anything has
        # changed.
        pairs = list(zip(evaluators, given, strict=True))
        class_rows = [evaluator.apply(*each) for evaluator, each in pairs[1:]]
        model_rows = self._of_model.apply(*given[0])
        return self._joined(model_rows, class_rows, self._window.apply(events, times))

    def _joined(
        self, model_rows: Rows, class_rows: Sequence[Rows], figures: Sequence[ClassMeans]
    ) -> ClassRows:
        """Return rows in which every row of the model is followed by its row of each class.

        figures  what each of these rows says of all classes
        """
        count = len(model_rows)
        class_rows = class_rows[: len(class_rows) * self.settings.class_rows]
        if len(figures) != count * (1 + len(class_rows)) or any(len(rows) != count for rows in class_rows):
            raise CorruptBytesError(f"the state of {self.model!r} was damaged: its parts give different rows")
        curves = [
            curve._replace(config=self.settings.config, class_=name)
            for name, rows in zip(self.settings.classes, class_rows, strict=False)
            for curve in rows.curves
        ]
        if not count:
            columns = ClassColumns(self.settings.classes, np.empty(0, np.int32), [])
            rows = Rows.empty(self.settings.config)
            return ClassRows(replace(rows, classes=columns).with_curves(curves) if curves else rows)
        self._clear(model_rows)
        of_model = np.full(count, -1, np.int32)
        codes = [of_model, *(np.full(count, number, np.int32) for number in range(len(class_rows)))]
        order = np.arange(len(codes) * count).reshape(len(codes), count).ravel(order="F")
        rows = Rows.concat([model_rows, *class_rows]).take(order)
        columns = ClassColumns(self.settings.classes, np.concatenate(codes)[order], figures)
        rows = replace(rows, config=self.settings.config, classes=columns)
        return ClassRows(rows.with_curves(curves))

    def _clear(self, rows: Rows) -> None:
        """Set to null, in rows of the model, the measures of one class, and the measures not asked for."""
        asked = self.settings.evaluator.measures or ()
        not_asked = np.array([name not in asked for name in (*MEASURES, *rows.columns)])
        if self.settings.multi_label:
            rows.numbers[:, slots.POSITIVES :] = np.nan
            not_asked[:] = True
        rows.numbers[:, slots.MEASURES :][:, not_asked] = np.nan
        rows.reasons[:, not_asked] = NOT_ASKED
        rows.reasons[rows.reasons == NO_POSITIVE_CLASS] = NOT_ASKED

    def advance(
        self, clock: float | date | np.datetime64, *, time_unit: Literal["s", "ms", "us", "ns"] = "s"
    ) -> ClassRows:
        """Advance time to `clock`, a time as `update` takes times; return the rows of grid points before."""
        return self.advance_to(int(self._times.read(np.array([clock]), time_unit)[0]))

    def advance_to(self, clock: int) -> ClassRows:
        """Advance time to `clock`, microseconds UTC; return the rows of the grid points before it."""
        rows = self._of_model.advance_to(clock)
        of_classes = [each.advance_to(clock) for each in self._of_classes]
        return self._joined(rows, of_classes, self._window.advance_to(clock))

    @property
    def next_due(self) -> int:
        """The grid point at which the next row is due if no event comes; END_OF_TIME if no row is due."""
        return self._of_model.next_due

    def finish(self) -> ClassRows:
        """Return the last rows, unless the last event has already made them."""
        rows = self._of_model.finish()
        of_classes = [each.finish() for each in self._of_classes]
        return self._joined(rows, of_classes, self._window.finish() if len(rows) else [])

    def remains(self) -> Remains:
        """Return the counters to keep when the evaluator is dropped after `finish`, for `returning`."""
        return self._of_model.remains()

    @classmethod
    def returning(
        cls, settings: ClassSettings, remains: Remains, pane: tuple[int, int] | None = None
    ) -> MulticlassEvaluator:
        """Return an evaluator with an empty window, whose rows continue those of a dropped evaluator."""
        self = cls(settings, model=remains.model, slice=remains.slice, pane=pane)
        for each in (self._of_model, *self._of_classes):
            each.go_on(remains)
        self._window.go_on(remains)
        return self

    # ---- what the window says now

    def means(self) -> ClassMeans:
        """Return the means over all classes for the window now."""
        return self._window.means()

    def measures(self, name: str) -> Measures:
        """Return the measures of one class against all others now. Raises InputError for an unknown class."""
        number = self.settings.number_of(name)
        if number is None:
            raise InputError(f"class {name!r} is none of the classes ({_some(self.settings.classes)})")
        if not self.settings.class_rows:
            raise InputError("class_rows=False: classes have no measures of their own; leave it out")
        return self._of_classes[number].measures()

    # ---- state

    def snapshot_bytes(self) -> int:
        """Return about how many bytes `to_bytes` gives. O(classes)."""
        of_classes = sum(each.snapshot_bytes() for each in (self._of_model, *self._of_classes))
        signal = 0 if self._signal is None else self._signal.adwin.snapshot_bytes()
        of_settings = 2_000 + 875 * len(self._of_classes)  # in words, once for each evaluator
        return of_settings + of_classes + self._window.snapshot_bytes + signal

    def live_bytes(self) -> int:
        """Estimate the evaluator's memory in bytes. O(classes)."""
        of_classes = sum(each.live_bytes() for each in (self._of_model, *self._of_classes))
        return 2_000 + of_classes + 2 * self._window.snapshot_bytes

    def to_bytes(self) -> bytes:
        """Return a snapshot, from which `from_bytes` goes on. O(events held times classes)."""
        evaluators = [each.to_bytes() for each in (self._of_model, *self._of_classes)]
        signal = [] if self._signal is None else [packed_bytes(self._signal.adwin.to_bytes())]
        window = b"".join([*self._window.pack(), *signal])
        return ClassState(self.settings, self.model, self.slice, self.pane, evaluators, window).pack()

    @classmethod
    def from_bytes(cls, data: bytes, settings: ClassSettings | None = None) -> MulticlassEvaluator:
        """Read a snapshot, `data`: the result gives the same later rows as the evaluator that wrote it.

        Raises OtherConfigurationError if `settings` are given and differ from those of the snapshot, and a
        `WireError` if the bytes are damaged or no snapshot.
        """
        state = ClassState.unpack(data)
        stored = state.settings
        with reading("a snapshot of a model with classes"):
            if settings is not None:
                check_settings(settings.meaning(), stored.meaning())
                if settings.class_rows != stored.class_rows:
                    raise OtherConfigurationError(
                        f"the snapshot was made with class_rows={stored.class_rows}; give the same"
                    )
            chosen = settings or stored
            self = cls(chosen, model=state.model, slice=state.slice, pane=state.pane)
            of_model, *of_classes = state.evaluators
            self._of_model = ModelEvaluator.from_bytes(of_model, chosen.of_model)
            self._of_classes = [
                ModelEvaluator.from_bytes(each, chosen.of_class(name))
                for name, each in zip(chosen.evaluated, of_classes, strict=False)
            ]
            reader = Reader(memoryview(state.window))
            self._window.read(reader)
            if self._signal is not None:
                self._signal.adwin = Adwin.from_bytes(reader.sized())
            reader.end()
        return self


def _some(names: Iterable[str]) -> str:
    """Return the first names of a list, in words."""
    known = list(names)
    return ", ".join(map(repr, known[:5])) + (f" and {len(known) - 5:,} more" if len(known) > 5 else "")
