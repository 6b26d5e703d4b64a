"""The options of `rocsteady evaluate` as settings: a mistake is a sentence that names the option."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

from ...core.errors import ConfigError, InputError
from ...core.join.join import JoinSettings
from ...core.settings.costs import parse_cost
from ...core.settings.durations import microseconds, parse_lateness
from ...core.settings.evaluator import (
    CURVES_AT_END,
    EvaluatorSettings,
    check_signal,
    checked_order,
    parse_partial_fpr,
)
from ...core.settings.shards import Shards
from ...core.settings.table import TableSettings
from ...core.settings.windows import EveryEvents, Window, parse_every, parse_window
from ...runners.presets import Runner, RunnerError, choose_runner
from ...transforms.events.fields import EventFields
from ...transforms.events.time_formats import checked_format
from ...transforms.events.validate import Timing
from ...transforms.files.formats import SourceFile
from ...transforms.kafka.topic import is_kafka
from ...transforms.sources.files.listing import list_sources
from ..outputs import is_text
from .job import Join

_OFTEN = 10_000
"""Events between two curves at the least, unless it is asked for: a curve is some 300 points."""

_Setting = TypeVar("_Setting")


def fields_of(options: argparse.Namespace) -> EventFields:
    """Return which columns are what."""
    return EventFields(
        score=options.score,
        label=options.label,
        positive=options.positive,
        model=options.model,
        model_name=options.model_name,
        time=options.time,
        time_unit=options.time_unit,
        time_format=time_format_of(options),
        id=options.id,
        weight=options.weight,
        predicted=options.predicted,
        slices=tuple(_columns(names) for names in options.slice),
        probabilities=options.probabilities,
    )


def time_format_of(options: argparse.Namespace) -> str | None:
    """Return the format of times that is named, if any. Raises ConfigError where it cannot be."""
    form: str | None = options.time_format
    if form is None:
        return None
    checked_format(form, "--time-format")
    if options.time is None:
        raise ConfigError(f"--time-format {form} needs times; name their column with --time COL")
    if options.time_unit != "s":
        raise ConfigError(
            f"--time-format {form} with --time-unit {options.time_unit}: numbers are read in the format, as "
            "texts; leave one of them out"
        )
    return form


def table_of(options: argparse.Namespace, fields: EventFields) -> TableSettings:
    """Return how events are evaluated. Raises ConfigError."""
    return TableSettings(
        evaluator_of(options, fields.positive),
        fields.slices,
        _shards_of(options),
        _span("--deduplicate", options.deduplicate, fields, ("time", "id")),
        TableSettings.slice_cap
        if options.slice_cap is None
        else whole_number("--slice-cap", options.slice_cap, 1),
        _span("--idle-ttl", options.idle_ttl, fields, ("time",)),
    )


def _shards_of(options: argparse.Namespace) -> Shards:
    number = whole_number("--shards", options.shards, 1)
    try:
        return Shards(number, options.own_shard)
    except ConfigError as error:
        raise ConfigError(f"--own-shard {' '.join(options.own_shard)}: {error}") from None


def _span(option: str, text: str | None, fields: EventFields, needed: Sequence[str]) -> int | None:
    """Return the microseconds of an option that makes no sense without some columns."""
    if text is None:
        return None
    for column in needed:
        if getattr(fields, column) is None:
            raise ConfigError(f"{option} {text} needs {column}s; name their column with --{column} COL")
    return _parsed(option, text, lambda text: microseconds(text, option))


_JOIN_OPTIONS = ("label_time", "ttl", "label_lead", "second_label")


def join_of(options: argparse.Namespace, fields: EventFields, settings: TableSettings) -> Join | None:
    """Return how labels are joined, if they come by themselves."""
    if not options.labels:
        for name in _JOIN_OPTIONS:
            if (value := getattr(options, name)) is not None:
                option = f"--{name.replace('_', '-')}"
                raise ConfigError(f"{option} {value} is for labels of their own; name them with --labels")
        return None
    said = f"--labels {' '.join(options.labels)}"
    for option, value, what in (("--id", fields.id, "id"), ("--time", fields.time, "time of a prediction")):
        if value is None:
            raise ConfigError(f"{said} are joined by id, in event time; name the {what} with {option} COL")
    if not settings.evaluator.by_time:
        raise ConfigError(
            f"--order {settings.evaluator.order} with {said}: joined events apply in the order of their "
            "labels' times; leave --order out, or give time or time:10m"
        )
    lead = options.label_lead
    joined = JoinSettings(
        _parsed("--ttl", options.ttl or "7d", lambda text: microseconds(text, "ttl")),
        None if lead is None else _parsed("--label-lead", lead, parse_lateness),
        second=options.second_label or "first",
        deduplicate=settings.deduplicate,
        evaluator_shards=settings.shards or 1,
    )
    files = () if is_kafka(options.labels[0]) else sources_of(options.labels, "--labels")
    return Join(files, options.label_time or str(fields.time), joined)


def runner_of(options: argparse.Namespace, beam_flags: Sequence[str]) -> Runner:
    """Return the runner that is named, with Beam's own options. Raises ConfigError."""
    try:
        return choose_runner(options.runner, beam_flags)
    except RunnerError as mistake:
        raise ConfigError(str(mistake)) from None


def timing_of(options: argparse.Namespace, settings: EvaluatorSettings) -> Timing:
    """Return what times are judged by, now."""
    if options.max_ahead is None:
        return Timing(lateness=settings.lateness)
    if options.time is None:
        raise ConfigError(f"--max-ahead {options.max_ahead} needs times; name their column with --time")
    ahead = _parsed("--max-ahead", options.max_ahead, lambda text: microseconds(text, "max-ahead"))
    return Timing(lateness=settings.lateness, now=time.time_ns() // 1_000, ahead=ahead)


def sources_of(paths: Sequence[str], what: str = "SOURCE") -> tuple[SourceFile, ...]:
    """Find the files that paths and globs name. Raises ConfigError, or InputError."""
    for path in paths:
        if not path:
            raise ConfigError(f"{what} '': name a file")
    sources = list_sources(paths)
    for source in sources:
        if not is_text(source.path):
            raise InputError(f"the name {source.path!a} is not UTF-8; rename the file")
    return sources


def evaluator_of(options: argparse.Namespace, positive: str | None) -> EvaluatorSettings:
    """Return how the events of a model are evaluated. Raises ConfigError."""
    order = options.order or ("time" if options.time is not None else "position")
    order = _parsed("--order", order, checked_order)
    if order.startswith("time") and options.time is None:
        raise ConfigError(f"--order {order} needs times; name their column with --time")
    priors = options.priors if options.priors == "window" else number("--priors", options.priors)
    window = _parsed("--window", options.window, parse_window)
    settings = EvaluatorSettings(
        window=window,
        every=_parsed("--every", options.every, parse_every),
        measures=None if options.measures is None else tuple(options.measures.split(",")),
        cost=_parsed("--cost", options.cost, parse_cost),
        priors=priors,
        threshold=number("--threshold", options.threshold),
        confidence=number("--confidence", options.confidence),
        probabilities=options.probabilities,
        at_fpr=number("--at-fpr", options.at_fpr),
        partial_fpr=_parsed("--partial-fpr", options.partial_fpr, parse_partial_fpr),
        false_positive_cost=number("--false-positive-cost", options.false_positive_cost),
        flip_if_below_half=options.flip_if_below_half,
        positive=positive,
        order=order,
        curves=_curves(options, window, positive),
    )
    if options.time is None and (needs := settings.needs_times) is not None:
        raise ConfigError(f"--{needs} goes by event time; name the column of times with --time")
    check_signal(settings, options.predicted is not None, "--predicted", "--positive VALUE")
    return settings


def _curves(
    options: argparse.Namespace, window: Window, positive: str | None
) -> EveryEvents | Literal["end"] | None:
    """Return when curves are due: each time that a window is wholly new, but not more than once in _OFTEN."""
    every = options.curves_every
    if options.curves is None and options.report is None:
        if every is not None:
            raise ConfigError(f"--curves-every {every}: curves go to a file; name it with --curves PATH")
        return None
    if options.predicted is not None and positive is None:
        if options.curves is None:
            return None
        raise ConfigError(
            f"--curves {options.curves}: with --predicted labels are classes, and a curve needs the one that "
            "is positive; name it with --positive VALUE"
        )
    if every is None:
        return EveryEvents(max(window.size, _OFTEN)) if window.size else CURVES_AT_END
    if every == CURVES_AT_END:
        return CURVES_AT_END
    try:
        return EveryEvents(int(every))
    except ValueError:
        raise ConfigError(
            f"--curves-every {every!r}: give a whole number of events, 1 or more, or end for one curve at "
            "the end"
        ) from None


def _columns(names: str) -> tuple[str, ...]:
    columns = tuple(names.split(","))
    if not all(columns):
        raise ConfigError(f"--slice {names!r}: give a column, or several for a cross: --slice COL,COL")
    return columns


def _parsed(option: str, text: str, parse: Callable[[str], _Setting]) -> _Setting:
    try:
        return parse(text)
    except ConfigError as mistake:
        what, _, sentence = str(mistake).partition(": ")
        raise ConfigError(f"{option} {text}: {sentence or what}") from None


def number(option: str, text: str) -> float:
    """Read the value of an option. Raises ConfigError."""
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"{option} {text!r}: give a number") from None


def whole_number(option: str, text: str, least: int) -> int:
    """Read the value of an option. Raises ConfigError."""
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise ConfigError(f"{option} {text!r}: give a whole number, {least} or more")
    return number
