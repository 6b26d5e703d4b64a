"""PairEvaluator compares two models over the same instances, in a notebook or a service.

It is a class for users around `PairWindow`.
"""

from __future__ import annotations

from datetime import date
from typing import Literal, Unpack

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from ..encoding.fields import Reader, framed, packed_text, unframed
from ..encoding.json import read_object, reading
from ..errors import InputError, check_settings
from ..events.inputs import OTHER_LABELS, TimesReader, as_array, as_binary, as_score_numbers
from ..rows.pairs import PairRow
from ..settings.windows import parse_every, parse_window
from .pair_settings import PairChoices, PairSettings, settings_of
from .window import PairWindow
from .window_instances import PairInstances

MAGIC = b"RSPW"
VERSION = 1


class PairEvaluator:
    """Compare a model with another model, `against`, over the instances that both scored.

    settings        a `PairSettings`; None: the defaults
    model, against  the names of both models in rows
    slice           the name of the slice in rows
    window, every, confidence, anytime_at, exact
                    fields of `PairSettings` by keyword; they replace the values of `settings`.
                    They may be texts of the command: window="last:7d", every="1h"

    A row has both AUCs of the window, their difference with DeLong's interval and p-value, and a verdict. The
    verdict is about all instances so far, and holds however often a user looks. Raises ConfigError for an
    invalid setting.

    >>> import numpy as np
    >>> import rocsteady as rs
    >>> rng = np.random.default_rng(1)
    >>> labels = rng.integers(0, 2, 4_000)
    >>> champion = labels + rng.normal(size=4_000)
    >>> challenger = labels + champion
    >>> pair = rs.PairEvaluator(window=rs.LastEvents(1_000), every=rs.EveryEvents(1_000))
    >>> rows = pair.update(labels, challenger, champion)
    >>> [(round(row.difference, 2), row.verdict, round(row.anytime_low, 2)) for row in rows]
    [(0.15, 'better', 0.12), (0.16, 'better', 0.14), (0.16, 'better', 0.14), (0.17, 'better', 0.15)]
    """

    def __init__(
        self,
        settings: PairSettings | None = None,
        *,
        model: str = "",
        against: str = "",
        slice: str = "",  # noqa: A002  the column's name
        **choices: Unpack[PairChoices],
    ) -> None:
        settings = settings_of(choices, settings)
        self.settings = settings
        self._window = PairWindow(settings, model, against, slice)
        self._times = TimesReader()

    def __len__(self) -> int:
        """Return how many instances the window holds."""
        return len(self._window)

    def __repr__(self) -> str:
        model, against, slice_ = self._window.names
        names = " of " + " against ".join(map(repr, (model, against))) if model or against else ""
        place = f" [{slice_}]" if slice_ else ""
        return f"<PairEvaluator{names}{place}: {self.settings.window}, {len(self):,} held of {self.seq:,}>"

    @property
    def seq(self) -> int:
        """How many instances both models have scored so far."""
        return self._window.seq

    def update(
        self,
        labels: npt.ArrayLike,
        scores: npt.ArrayLike,
        scores_against: npt.ArrayLike,
        *,
        times: npt.ArrayLike | None = None,
        time_unit: Literal["s", "ms", "us", "ns"] = "s",
    ) -> list[PairRow]:
        """Take in n instances in the order given; return the rows that fell due.

        labels          1/0, 1/-1 or booleans
        scores          the scores of the model, higher for more likely positive; NaN: the model did not score
                        the instance
        scores_against  the scores of the other model, in the same way
        times           as `ModelEvaluator.update` takes them; windows and rows by time need them
        time_unit       "s", "ms", "us" or "ns": the unit of times that are numbers

        An instance that one model scored alone counts in `only_model` or `only_against` and nowhere else.
        Every instance weighs the same. Raises InputError if a value cannot be used; no instance is then taken
        in.
        """
        mine, other = (
            _scores(name, each) for name, each in (("scores", scores), ("scores_against", scores_against))
        )
        label_list = as_array("labels", labels)
        moments = None if times is None else self._times.read(times, time_unit)
        columns = {"labels": label_list, "scores_against": other, "times": moments}
        for name, column in columns.items():
            if column is not None and column.shape != mine.shape:
                raise InputError(f"{name} and scores differ in length: give one of each per instance")
        if len(lacking := np.flatnonzero(np.isnan(mine) & np.isnan(other))):
            raise InputError(f"instance {lacking[0]} has a score of neither model; leave it out")
        if not len(mine):
            return []
        return self._window.apply(PairInstances(as_binary(label_list, OTHER_LABELS), mine, other, moments))

    def advance(
        self, clock: float | date | np.datetime64, *, time_unit: Literal["s", "ms", "us", "ns"] = "s"
    ) -> list[PairRow]:
        """Advance time to `clock`, and return the rows of the grid points before it.

        clock      a time, as `update` takes times
        time_unit  the unit of `clock` if `clock` is a number
        """
        return self._window.advance_to(int(self._times.read(np.array([clock]), time_unit)[0]))

    def finish(self) -> list[PairRow]:
        """Return the last row, unless the row before it already covers all instances."""
        return self._window.finish()

    def now(self) -> PairRow:
        """Return a row of all instances so far.

        The row does not count as a look: later intervals do not depend on it. Its `verdict` includes the
        interval of this row.
        """
        return self._window.row_now()

    def to_bytes(self) -> bytes:
        """Return a snapshot, from which `from_bytes` makes an evaluator that continues. O(instances held)."""
        names = [packed_text(name) for name in self._window.names]
        head = packed_text(self.settings.to_json())
        return framed(MAGIC, VERSION, b"".join([head, *names, *self._window.pack()]))

    @classmethod
    def from_bytes(cls, data: bytes, settings: PairSettings | None = None) -> PairEvaluator:
        """Read a snapshot, `data`: the result gives the same later rows as the evaluator that wrote it.

        Raises OtherConfigurationError if `settings` are given and differ from those of the snapshot, and a
        `WireError` if the bytes are damaged or no snapshot.
        """
        reader = Reader(unframed(data, MAGIC, VERSION, "a snapshot of a pair of models"))
        with reading("a snapshot of a pair of models"):
            stored = settings_from(reader.text())
            model, against, slice_ = reader.text(), reader.text(), reader.text()
            self = cls(stored, model=model, against=against, slice=slice_)
            self._window.read(reader)
            reader.end()
        if settings is not None:
            check_settings(settings.meaning(), stored.meaning())
        return self


def settings_from(text: str) -> PairSettings:
    """Read settings that `PairSettings.to_json` wrote."""
    content = read_object(text, "the settings of a comparison")
    content["window"], content["every"] = parse_window(content["window"]), parse_every(content["every"])
    return PairSettings(**content)


def _scores(name: str, values: npt.ArrayLike) -> FloatArray:
    scores = as_score_numbers(name, values, "give numbers, and NaN where the model scored nothing")
    if scores.ndim != 1:
        raise InputError(f"{name} have {scores.ndim} dimensions; give one score per instance")
    if len(bad := np.flatnonzero(np.isinf(scores))):
        raise InputError(f"{name}[{bad[0]}] is {scores[bad[0]]}: a score is a finite number; leave it out")
    return scores
