"""The input of roll-ups: rows of measures, each for the groups that it belongs to.

A row of measures takes 400 bytes; its AUC with interval, counts, evidence and time take 72.

Wire form, version 1: a frame (encoding/fields.py) with magic "RSFM"; payload: `_WORD`: the word of a shard
(`Settled`), and how many rows were taken and left out; keys (u32 count; each a u8, its number of texts, and
its texts), texts (u32 count), rows u32, key codes i32, text codes i32 (two a row), integers i64 (three a
row), numbers f64 (six a row). A text is a u32 length and UTF-8.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..arrays import BoolArray, FloatArray, Int32Array, Int64Array
from ..encoding.fields import Reader, framed, packed_key, packed_text, read_key, unframed
from ..encoding.json import reading
from ..errors import CorruptBytesError, InputError
from ..events.times import NO_TIME
from ..ids.sharding import shard_of
from ..rows.class_columns import MEANS_COLUMNS, ClassColumns, as_numbers
from ..rows.class_rows import ClassRow
from ..rows.columns import reasons_by_measure
from ..rows.measure_table import MEASURES
from ..rows.reasons import REASONS
from ..rows.records import MeasureRow
from ..rows.rows import Rows
from .roll_up_settings import RollUpSettings
from .surely import log_e_values

MAGIC = b"RSFM"
VERSION = 1

INTEGERS = ("due", "pane_start", "pane_end")
COLUMNS = ("auc", "auc_low", "auc_high", "positives", "negatives")
NUMBERS = (*COLUMNS, "log_e")
"""The columns of a row of measures that roll-ups read, and the logarithm of the row's e-value
(fleet/surely.py).
"""

EVIDENCE = ("evidence", "block_events")
"""The columns of a row of measures from which, together with `seq`, `log_e` is computed."""

_WORD = struct.Struct("<2I2q2Q")
_MACRO = ("auc_macro", "auc_macro_low", "auc_macro_high", "weight")
"""The columns of the row of all classes that take the places of the first columns of `NUMBERS`."""

_ABSENT = "a class has no event in its window"
_UNKNOWN = "its interval is not known"
"""The reason for a member whose row has no AUC, or no interval, and gives no reason."""


class Settled(NamedTuple):
    """The word of a shard, which says that all of its rows with `due` in (since, until] come with this word.

    source   the number of the shard, from 0
    sources  how many shards there are; 0 if there is no word
    """

    source: int
    sources: int
    since: int
    until: int


NO_WORD = Settled(0, 0, NO_TIME, NO_TIME)


@dataclass(frozen=True, eq=False)
class MemberRows:
    """The rows of members, with the word of a shard.

    keys       the (group, member)s that occur. For models with a score of each class (group, member, class),
               with "" for the rows of all classes
    key_codes  int32[n], the place in `keys` of each row's key
    texts      the reasons and the configurations that occur
    text_codes int32[n, 2], the places in `texts` of the reason why the AUC or its interval is null, and of
               the `config`
    integers   int64[n, 3], the columns `INTEGERS`; NO_TIME stands for null
    numbers    float64[n, 6], the columns `NUMBERS`; NaN stands for null. In rows of all classes the AUC is
               the `auc_macro` of a window in which no class is absent, and `positives` are all events
    word       which rows of its shard are complete
    taken      how many rows of the input were put into groups
    undue      how many rows of the input were left out, because they have no `due`
    """

    keys: tuple[tuple[str, ...], ...]
    key_codes: Int32Array
    texts: tuple[str, ...]
    text_codes: Int32Array
    integers: Int64Array
    numbers: FloatArray
    word: Settled = NO_WORD
    taken: int = 0
    undue: int = 0

    def __len__(self) -> int:
        return len(self.key_codes)

    @classmethod
    def of_rows(cls, rows: Rows, settings: RollUpSettings) -> MemberRows:
        """Make member rows from rows in columns, with the word of their shard. O(cells)."""
        word = NO_WORD if rows.settled is None else Settled(*rows.settled)
        if rows.classes is not None:
            return cls._of_class_rows(rows, rows.classes, settings, word)
        places = [MEASURES.index(name) for name in ("auc", "auc_low")]
        codes = rows.reasons[:, places]
        why = np.where(np.isnan(rows.number("auc")), codes[:, 0], codes[:, 1])
        texts = (*(text or _UNKNOWN for text in REASONS), rows.config)
        text_codes = np.stack([why, np.full(len(rows), len(REASONS))], axis=1).astype(np.int32)
        integers = np.stack([rows.integer(name) for name in INTEGERS], axis=1)
        numbers = with_log_e(
            [rows.number(name) for name in (*COLUMNS, *EVIDENCE)], rows.integer("seq").astype(np.float64)
        )
        return cls._of(rows.keys, rows.key_codes, texts, text_codes, integers, numbers, settings, word)

    @classmethod
    def _of_class_rows(
        cls, rows: Rows, classes: ClassColumns, settings: RollUpSettings, word: Settled
    ) -> MemberRows:
        def number(name: str) -> FloatArray:
            return classes.number(name) if name in MEANS_COLUMNS else rows.number(name)

        names = [*rows.keys]
        made = cls.of_columns(
            [names[code][0] for code in rows.key_codes.tolist()],
            [names[code][1] for code in rows.key_codes.tolist()],
            rows.reason_texts(),
            [rows.config] * len(rows),
            np.stack([rows.integer(name) for name in INTEGERS], axis=1),
            with_log_e(
                [rows.number(name) for name in (*COLUMNS, *EVIDENCE)], rows.integer("seq").astype(np.float64)
            ),
            settings,
            ([classes.name(index) or "" for index in range(len(rows))], number),
        )
        return replace(made, word=word)

    @classmethod
    def of_records(cls, rows: Sequence[MeasureRow | ClassRow], settings: RollUpSettings) -> MemberRows:
        """Make member rows from single rows. O(cells), in Python.

        Raises InputError if some rows, but not all, are rows of models with classes.
        """
        of_classes = [row for row in rows if isinstance(row, ClassRow)]
        if of_classes and len(of_classes) < len(rows):
            raise InputError(
                "some of these rows are of models with a score of each class, and some have no class; roll "
                "them up apart"
            )

        def number(name: str) -> FloatArray:
            return as_numbers(getattr(row, name) for row in rows)

        return cls.of_columns(
            [row.model for row in rows],
            [row.slice for row in rows],
            [row.reason for row in rows],
            [row.config for row in rows],
            np.array(
                [
                    [NO_TIME if (value := getattr(row, name)) is None else value for name in INTEGERS]
                    for row in rows
                ],
                np.int64,
            ).reshape(len(rows), len(INTEGERS)),
            with_log_e(
                [
                    np.array([getattr(row, name) for row in rows], np.float64)
                    for name in (*COLUMNS, *EVIDENCE)
                ],
                np.array([row.seq for row in rows], np.float64),
            ),
            settings,
            ([row.class_ or "" for row in of_classes], number) if of_classes else None,
        )

    @classmethod
    def of_columns(
        cls,
        models: Sequence[str],
        slices: Sequence[str],
        reasons: Sequence[str | None],
        configs: Sequence[str],
        integers: Int64Array,
        numbers: FloatArray,
        settings: RollUpSettings,
        classes: tuple[Sequence[str], Callable[[str], FloatArray]] | None = None,
    ) -> MemberRows:
        """Make member rows from columns; `integers` and `numbers` are those of `MemberRows`. O(n) in Python.

        classes  for models with a score of each class: the class of each row, "" for all classes; and the
                 columns of the rows by name, where a list becomes its length
        """
        measures = np.zeros(len(models), np.int64)
        if classes is not None:
            of_all = np.array([not name for name in classes[0]], np.bool_)
            numbers, absent = _of_all_classes(numbers, of_all, classes[1])
            measures[of_all] = 1
            measures[absent] = 2
        keys: dict[tuple[str, ...], int] = {}
        named = zip(models, slices, *(() if classes is None else (classes[0],)), strict=True)
        codes = [keys.setdefault(key, len(keys)) for key in named]
        texts: dict[str, int] = {}
        why = [*zip(reasons, measures.tolist(), strict=True)]
        said = {each: _why(*each) for each in set(why)}
        text_codes = [
            [texts.setdefault(said[each][int(is_known)], len(texts)), texts.setdefault(config, len(texts))]
            for each, config, is_known in zip(why, configs, (~np.isnan(numbers[:, 0])).tolist(), strict=True)
        ]
        return cls._of(
            tuple(keys), np.array(codes, np.int32), tuple(texts),
            np.array(text_codes, np.int32).reshape(len(codes), 2), integers, numbers, settings, NO_WORD,
        )  # fmt: skip

    @classmethod
    def _of(
        cls,
        keys: Sequence[tuple[str, ...]],
        codes: Int32Array,
        texts: tuple[str, ...],
        text_codes: Int32Array,
        integers: Int64Array,
        numbers: FloatArray,
        settings: RollUpSettings,
        word: Settled,
    ) -> MemberRows:
        """Put each row into its groups: a row may belong to several groups, or to none."""
        places: dict[tuple[str, ...], int] = {}
        of_key = [
            [places.setdefault((*place, *class_), len(places)) for place in settings.groups_of(model, slice_)]
            for model, slice_, *class_ in keys
        ]
        due = integers[:, 0] != NO_TIME
        wanted = np.array([bool(groups) for groups in of_key], np.bool_)[codes]
        rows, found = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)]
        for turn in range(max(map(len, of_key), default=0)):
            of_turn = np.array([groups[turn] if len(groups) > turn else -1 for groups in of_key], np.int32)
            mine = of_turn[codes]
            chosen = np.flatnonzero((mine >= 0) & due)
            rows.append(chosen)
            found.append(mine[chosen])
        which = np.concatenate(rows)
        return cls(
            tuple(places), np.concatenate(found), texts, text_codes[which], integers[which], numbers[which],
            word, int(np.count_nonzero(wanted & due)), int(np.count_nonzero(wanted & ~due)),
        )  # fmt: skip

    def on_a_grid(self) -> MemberRows:
        """Return the rows of a job on a grid of times: a row without `due` is the last row of its model."""
        return replace(self, undue=0)

    def split(self, shards: int) -> Iterator[tuple[int, MemberRows]]:
        """Yield each shard and the rows of its groups.

        Every shard gets the word, and the first shard gets the counts.
        """
        of_row = shard_of([group for group, *_ in self.keys], shards)[self.key_codes]
        for shard in range(shards):
            part = self._take(np.flatnonzero(of_row == shard))
            if shard:
                part = replace(part, taken=0, undue=0)
            if len(part) or part.taken or part.undue or part.word.sources:
                yield shard, part

    def _take(self, rows: Int64Array) -> MemberRows:
        used, codes = np.unique(self.key_codes[rows], return_inverse=True)
        said, text_codes = np.unique(self.text_codes[rows], return_inverse=True)
        return replace(
            self,
            keys=tuple(self.keys[code] for code in used.tolist()),
            key_codes=codes.astype(np.int32),
            texts=tuple(self.texts[code] for code in said.tolist()),
            text_codes=text_codes.reshape(-1, 2).astype(np.int32),
            integers=self.integers[rows],
            numbers=self.numbers[rows],
        )

    def pack(self) -> bytes:
        """Return the wire form of the rows."""
        parts = [_WORD.pack(*self.word, self.taken, self.undue), struct.pack("<I", len(self.keys))]
        parts += map(packed_key, self.keys)
        parts += [struct.pack("<I", len(self.texts)), *map(packed_text, self.texts)]
        parts += [
            struct.pack("<I", len(self)),
            self.key_codes.astype("<i4").tobytes(),
            self.text_codes.astype("<i4").tobytes(),
            self.integers.astype("<i8").tobytes(),
            self.numbers.astype("<f8").tobytes(),
        ]
        return framed(MAGIC, VERSION, b"".join(parts))

    @classmethod
    def unpack(cls, data: bytes) -> MemberRows:
        """Read rows from their wire form. Raises a `WireError` for any other bytes."""
        what = "a record of members' rows"
        reader = Reader(unframed(data, MAGIC, VERSION, what))
        with reading(what):
            *word, taken, undue = reader.numbers(_WORD.format)
            keys = tuple(read_key(reader) for _ in range(reader.number("<I")))
            texts = tuple(reader.text() for _ in range(reader.number("<I")))
            n = reader.number("<I")
            codes, text_codes = reader.array("<i4", n), reader.array("<i4", 2 * n)
            integers = reader.array("<i8", n * len(INTEGERS)).reshape(n, len(INTEGERS))
            numbers = reader.array("<f8", n * len(NUMBERS)).reshape(n, len(NUMBERS))
            reader.end()
        for place, names in ((codes, keys), (text_codes, texts)):
            if n and not 0 <= place.min() <= place.max() < len(names):
                raise CorruptBytesError(f"{what} has rows of more names than its {len(names)}")
        if not are_possible(numbers):
            raise CorruptBytesError(f"{what} has an AUC beyond 0 and 1, or a count that is none")
        if word[1] and word[0] >= word[1]:
            raise CorruptBytesError(f"{what} is of shard {word[0]}, and there are {word[1]}")
        return cls(
            keys, codes, texts, text_codes.reshape(n, 2), integers, numbers, Settled(*word), taken, undue
        )


def with_log_e(columns: Sequence[FloatArray], events: FloatArray) -> FloatArray:
    """Return the columns `NUMBERS` of rows, float64[n, 6].

    columns  the columns of measures, then the columns `EVIDENCE`
    events   the column `seq` of the rows
    """
    *measures, evidence, block_events = columns
    return np.stack([*measures, log_e_values(evidence, block_events, events)], axis=1)


def are_possible(numbers: FloatArray) -> bool:
    """Return whether the columns `NUMBERS` of rows have possible values (NaN stands for null).

    AUCs must be in [0, 1], and counts finite.
    """
    ranks, counts = numbers[:, :3], numbers[:, 3:5]
    inside = np.isnan(ranks) | ((ranks >= 0) & (ranks <= 1))
    return bool(inside.all() and (np.isnan(counts) | ((counts >= 0) & np.isfinite(counts))).all())


def _of_all_classes(
    numbers: FloatArray, of_all: BoolArray, number: Callable[[str], FloatArray]
) -> tuple[FloatArray, BoolArray]:
    """Return `NUMBERS` with the numbers of the rows of all classes, and which rows lack a class.

    A mean over fewer classes is another figure, so a row with an absent class has no AUC here.
    """
    numbers = numbers.copy()
    numbers[of_all] = np.nan
    for place, name in enumerate(_MACRO):
        numbers[of_all, place] = number(name)[of_all]
    absent = of_all & (number("classes_absent") > 0)
    numbers[absent, : len(_MACRO) - 1] = np.nan
    return numbers, absent


def _why(reason: str | None, measure: int) -> tuple[str, str]:
    """Return the reason why the AUC is null, and the reason why its interval is null, from a row's reason.

    measure  0 for the AUC of a row; 1 for `auc_macro`; 2 for `auc_macro` of a row in which a class is absent
    """
    if measure > 1:
        return _ABSENT, _ABSENT
    why, name = reasons_by_measure(reason), ("auc", "auc_macro")[measure]
    return why.get(name, _UNKNOWN), why.get(f"{name}_low", _UNKNOWN)
