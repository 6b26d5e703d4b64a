"""Rows and dead letters for a report: rows sorted, each once; dead letters counted.

Invariant
    `ReportRows` holds every row once, sorted by model, slice, pane and row. Numbers are unchanged float64
    (NaN = null, times in microseconds). `notes` holds remarks on the rows for the report's readers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...core.arrays import FloatArray, Int64Array
from ...core.rows.columns import COLUMNS, TEXT_COLUMNS, measure_of
from ..words import counted
from .classes.page_classes import (
    AS_AUC,
    CLASS,
    CLASS_NUMBERS,
    PageClasses,
    class_part,
    in_order,
    label_beside,
    slices_with_classes,
)


@dataclass(frozen=True)
class EventCounters:
    """Counts of a job's events.

    read, applied  the number of events; None = not known
    lost           (kind, reason, count), most frequent first: kind is invalid, late, unmatched or duplicate
    of_models      the number of lost events by model, as far as their models are known
    """

    read: int | None = None
    applied: int | None = None
    lost: Sequence[tuple[str, str, int]] = ()
    of_models: Mapping[str, int] = field(default_factory=dict)

    def total(self, kind: str) -> int:
        """Return the number of lost events of a kind."""
        return sum(count for of, _, count in self.lost if of == kind)


@dataclass(frozen=True)
class Tables:
    """What a page tells beside the rows of measures. Where a table is None, the page has no section of it.

    curves       points of curves (CURVE_SCHEMA); None: the page says how to keep curves
    counters     counts of the events; None: the page says how to get these counts
    alerts       alerts (ALERT_SCHEMA), for the marks in the large chart and the section "Alerts"
    comparisons  comparisons of learners over folds (COMPARISON_SCHEMA), for the section "Who is better"
    means        means over folds (MEAN_SCHEMA), for the same section
    roll_ups     roll-up rows (ROLL_UP_SCHEMA), for the section "Fleet"
    pairs        rows of pairs (PAIR_SCHEMA), for the section "Champion and challengers"
    """

    curves: pa.Table | None = None
    counters: EventCounters | None = None
    alerts: pa.Table | None = None
    comparisons: pa.Table | None = None
    means: pa.Table | None = None
    roll_ups: pa.Table | None = None
    pairs: pa.Table | None = None


NO_TABLES = Tables()


@dataclass
class ReportRows:
    """n rows in order, in columns.

    models, slices  texts, sorted; `series` refers to them by place. The classes of a slice stand behind it,
                    in the order of the column `classes`
    series          int64[s, 4]: model, slice, first row and the row after the last
    columns         float64[n] by name
    reasons         texts of reasons; `reason_codes` is int64[n], a row's place in them (-1 = null)
    configs         the hashes of settings that occur
    total           the number of rows before any were left out
    event_times     float64[n]: the time of a row's last event, microseconds, also of a row on a grid of times
    ways            the settings, as text, under which models were evaluated. A model with several settings
                    has them behind its name in `models`. Empty where no model has several settings
    shown           by (model, config): the place in `models`, and the place of the settings in `ways` (or 0)
    classes         the classes of the rows; None: models have one score
    """

    models: list[str]
    slices: list[str]
    series: Int64Array
    columns: dict[str, FloatArray]
    reason_codes: Int64Array
    reasons: list[str]
    configs: list[str]
    total: int
    event_times: FloatArray
    notes: list[str] = field(default_factory=list)
    ways: list[str] = field(default_factory=list)
    shown: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    classes: PageClasses | None = None

    def __len__(self) -> int:
        return len(self.reason_codes)

    @property
    def held(self) -> set[str]:
        """The names of the columns that have a value in some row."""
        return {name for name, values in self.columns.items() if not np.isnan(values).all()}

    def bases(self) -> list[tuple[str, int]]:
        """Return for each entry of `models` the model's own name, and the place of its settings in `ways`."""
        named = {place: (name, way) for (name, _), (place, way) in self.shown.items()}
        return [named[place] for place in range(len(self.models))]

    def counted_slices(self, count: int) -> str:
        """Write how many slices there are; where classes of a model are among them, they are counted, too."""
        return f"{count:,} {self.part_words[count != 1]}"

    @property
    def part_words(self) -> tuple[str, str]:
        """The words for one of `slices`, and for several; these may be classes of models."""
        if self.classes is None:
            return "slice", "slices"
        if any(self.slices[place] for place in range(len(self.slices)) if place not in self.classes.parts):
            return "class or slice", "classes and slices"
        return "class", "classes"

    def whole_models(self) -> Int64Array:
        """Return the series of whole models, a row of `series` each, in the order of the models."""
        if "" not in self.slices:
            return self.series[:0]
        whole: Int64Array = self.series[self.series[:, 1] == self.slices.index("")]
        return whole


def coded(column: pa.ChunkedArray) -> tuple[Int64Array, list[str]]:
    """Return texts as places in their sorted list; -1 = null."""
    column = column.cast(pa.string())
    texts: list[str] = sorted(column.unique().drop_null().to_pylist())
    codes = pc.index_in(column, pa.array(texts, pa.string())).fill_null(-1)
    return codes.to_numpy().astype(np.int64), texts


def floats(column: pa.ChunkedArray) -> FloatArray:
    """Return a column as float64: times in microseconds, NaN for null."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: FloatArray = column.cast(pa.float64(), safe=False).fill_null(np.nan).to_numpy().astype(np.float64)
    return values


def row_columns(table: pa.Table) -> dict[str, FloatArray]:
    """Return the numbers of rows as a page shows them, by column, in the order of the table.

    The AUC of a model with classes is the macro AUC.
    """
    names = (*COLUMNS, *filter(measure_of, table.column_names))
    columns = {name: floats(table.column(name)) for name in names if name not in TEXT_COLUMNS}
    if CLASS in table.column_names:
        of_model = np.asarray(pc.is_null(table.column(CLASS)))
        for name, of_means in AS_AUC.items():
            columns[name] = np.where(of_model, floats(table.column(of_means)), columns[name])
        columns |= {name: floats(table.column(name)) for name in CLASS_NUMBERS}
    for name in ("auc", "auc_low", "auc_high"):  # rocsteady writes no infinite AUC
        columns[name] = np.where(np.isfinite(columns[name]), columns[name], np.nan)
    columns["time"] = np.where(np.isnan(columns["time"]), columns["pane_end"], columns["time"])
    # A row on a grid of times describes its grid point, however old its last event is.
    columns["time"] = np.where(np.isnan(columns["due"]), columns["time"], columns["due"])
    return columns


def report_rows(
    table: pa.Table, notes: Iterable[str] = (), settings: Mapping[str, Mapping[str, Any]] | None = None
) -> ReportRows:
    """Put rows in order, each once; O(n log n). Any value may be null.

    table     the columns of ROW_SCHEMA, or of CLASS_ROW_SCHEMA

    settings  by `config`, as far as they are known (`rows_settings`)
    """
    told = list(notes)
    model, ways, shown = _shown_names(table, told, settings or {})
    model_codes, models = coded(model)
    place_of = {name: place for place, name in enumerate(models)}
    names = pc.fill_null(table.column("slice"), "")
    parts: dict[str, tuple[str, str]] = {}
    if CLASS in table.column_names:
        names, parts = slices_with_classes(names, table.column(CLASS))
    slice_codes, slices = coded(names)
    if parts:
        order, slices = in_order(slices, parts, table.column("classes"))
        slice_codes = order[slice_codes]
    reason_codes, reasons = coded(table.column("reason"))
    _, configs = coded(table.column("config"))
    columns = row_columns(table)
    row = np.where(np.isnan(columns["row"]), columns["seq"], columns["row"])
    panes = [np.nan_to_num(columns[name], nan=-np.inf) for name in ("pane_start", "pane_end")]
    keys = (row, panes[1], panes[0], slice_codes, model_codes)
    order = np.lexsort(keys)
    kept = _once(order, keys, columns, told)
    pairs = model_codes[kept] * len(slices) + slice_codes[kept]
    bounds = np.append(np.unique(pairs, return_index=True)[1], len(kept))
    first = kept[bounds[:-1]]
    series = np.stack([model_codes[first], slice_codes[first], bounds[:-1], bounds[1:]], axis=1)
    return ReportRows(
        models,
        slices,
        series,
        {name: values[kept] for name, values in columns.items()},
        reason_codes[kept],
        reasons,
        configs,
        len(kept),
        floats(table.column("time"))[kept],
        told,
        ways,
        {key: (place_of[name], way) for key, (name, way) in shown.items()},
        _classes_of(table, kept, slices, parts),
    )


def _classes_of(
    table: pa.Table, kept: Int64Array, slices: list[str], parts: Mapping[str, tuple[str, str]]
) -> PageClasses | None:
    if CLASS not in table.column_names:
        return None
    places = {name: place for place, name in enumerate(slices)}
    of_slices = {places[name]: (places.get(of, -1), one) for name, (of, one) in parts.items()}
    of_classes = {of: places[name] for name, of in parts.items()}
    label = label_beside({name or "" for name in table.column("slice").unique().to_pylist()})
    return PageClasses(label, of_slices, of_classes, class_part(table).take(pa.array(kept)))


_Shown = dict[tuple[str, str], tuple[str, int]]


def _shown_names(
    table: pa.Table, notes: list[str], settings: Mapping[str, Mapping[str, Any]]
) -> tuple[pa.ChunkedArray, list[str], _Shown]:
    """Return each row's shown name, the texts of settings, and by (model, config) the name and settings.

    A model that was evaluated under several settings is shown with the settings behind its name.
    """
    model = pc.fill_null(table.column("model"), "")
    config = pc.fill_null(table.column("config"), "")
    pairs = pa.table({"model": model, "config": config}).group_by(["model", "config"]).aggregate([])
    found = list(zip(pairs.column("model").to_pylist(), pairs.column("config").to_pylist(), strict=True))
    several = {name for name, number in Counter(name for name, _ in found).items() if number > 1}
    there = {one for _, one in found}
    configs = [*(one for one in settings if one in there), *sorted(there - settings.keys())]
    words = _in_words(configs, settings)
    if len(configs) > 1:
        notes.append(
            f"The rows were made with {len(configs)} different settings ("
            f"{', '.join(words[:6])}{', ...' if len(configs) > 6 else ''}): compare with care."
        )
    if not several:
        return model, [], {key: (key[0], 0) for key in found}
    places = {one: place for place, one in enumerate(configs)}
    names_alone = {name for name, _ in found} - several
    behind_name = [f" ({word})" for word in words]
    while any(f"{name}{text}" in names_alone for name in several for text in behind_name):
        behind_name = [f" ({text[1:]})" for text in behind_name]  # some model is really called "m (last:500)"
    shown = {
        (name, one): (name + behind_name[places[one]] if name in several else name, places[one])
        for name, one in found
    }
    told = pa.array(behind_name)
    behind = told.take(pc.index_in(config, pa.array(configs, pa.string())).combine_chunks())
    names = pc.binary_join_element_wise(model, behind, "")
    return pc.if_else(pc.is_in(model, pa.array(sorted(several), pa.string())), names, model), words, shown


def _in_words(configs: Sequence[str], settings: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a text for each config: its window, and those of its settings in which the configs differ.

    Where two texts would be equal, all texts are "config" and the config's hash. So is the text of a config
    without known settings.

    >>> _in_words(["a", "b"], {"a": {"window": "last:5", "every": "1"}, "b": {"window": "all", "every": "1"}})
    ['last:5', 'all']
    >>> _in_words(["a", "b"], {"a": {"window": "last:5"}})
    ['last:5', 'config b']
    """
    held = [settings[config] for config in configs if config in settings]
    names = {name for one in held for name in one if name != "window"}
    differ = sorted(name for name in names if len({str(one.get(name)) for one in held}) > 1)
    hashes = [f"config {config}" for config in configs]
    words = []
    for config, hashed in zip(configs, hashes, strict=True):
        of = settings.get(config, {})
        others = [f"{name} {_shortened(of.get(name))}" for name in differ] if config in settings else []
        words.append(", ".join([str(of.get("window", hashed)), *others]))
    return words if len(set(words)) == len(words) else hashes


def _shortened(value: object) -> str:
    """Return a setting as text; of a long list, such as that of classes, the first ones and the number."""
    if not isinstance(value, list) or len(value) <= 5:
        return str(value)
    return f"{str(value[:5])[:-1]}, ... {len(value):,} in all]"


def _once(
    order: Int64Array, keys: Sequence[np.ndarray], columns: dict[str, FloatArray], notes: list[str]
) -> Int64Array:
    """Return the order without repeated rows: of rows with the same identity the last stays."""
    if len(order) < 2:
        return order
    same = np.all([key[order[1:]] == key[order[:-1]] for key in keys], axis=0)
    if not same.any():
        return order
    doubles = int(same.sum())
    differs = np.zeros(doubles, np.bool_)
    for name in ("seq", "time", "auc", "tp"):
        one, other = columns[name][order[:-1][same]], columns[name][order[1:][same]]
        differs |= (one != other) & ~(np.isnan(one) & np.isnan(other))
    differ = int(np.count_nonzero(differs))
    note = f"{counted(doubles, 'row')} came twice (the same model, slice and row) and counted once"
    if differ:
        note += (
            f"; of {differ:,} of them the values differed and the later one was kept: are these files of "
            "different runs? Make a report of each"
        )
    notes.append(note + ".")
    kept: Int64Array = order[np.append(~same, True)]
    return kept


def count_dead_letters(table: pa.Table) -> EventCounters:
    """Count dead letters by kind and reason."""
    counts: Counter[tuple[str, str]] = Counter()
    grouped = table.select(["kind", "reason"]).group_by(["kind", "reason"]).aggregate([([], "count_all")])
    for line in grouped.to_pylist():
        counts[line["kind"] or "invalid", line["reason"] or "no reason given"] += line["count_all"]
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return EventCounters(
        lost=tuple((kind, reason, count) for (kind, reason), count in ranked),
        of_models=letters_by_model(table),
    )


def letters_by_model(table: pa.Table) -> dict[str, int]:
    """Return the number of dead letters of each model; letters without a model are left out. O(letters)."""
    grouped = table.select(["model"]).group_by(["model"]).aggregate([([], "count_all")])
    return {line["model"]: line["count_all"] for line in grouped.to_pylist() if line["model"] is not None}


def applied_events(rows: ReportRows) -> int | None:
    """Return the number of events applied, from the last rows of whole models.

    A model that was evaluated under several settings counts once. Returns None where no row is of a whole
    model, where rows have panes, or where the evaluations of a model saw different numbers of events.
    """
    whole = rows.whole_models()
    if not len(whole) or "pane_start" in rows.held:
        return None
    bases = rows.bases()
    seen = {(bases[model][0], float(rows.columns["seq"][stop - 1])) for model, _, _, stop in whole.tolist()}
    names = {name for name, _ in seen}
    return None if len(seen) > len(names) else int(sum(seq for _, seq in seen))
