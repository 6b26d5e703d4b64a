"""Reads the options of `rocsteady evaluate` as settings. Each error names its option."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from ...core.alerts.grammar import parse_alert
from ...core.alerts.rule_sets import checked_rules, with_budget
from ...core.alerts.rules import AlertRule, Change
from ...core.alerts.surely import Surely, parse_budget
from ...core.classes.class_settings import ClassSettings
from ...core.errors import ConfigError, InputError
from ...core.rows.columns import MASS_COLUMNS, measure_of
from ...core.rows.measure_table import (
    COSTLY_MEASURES,
    EVIDENCE_MEASURES,
    MEASURES,
    POSITIVE_MEASURES,
    PROBABILITY_MEASURES,
)
from ...core.settings.durations import microseconds
from ...core.settings.evaluator import (
    CURVES_AT_END,
    POINTS_THINNED,
    EvaluatorSettings,
    check_signal,
    declared,
)
from ...core.settings.evidence import DEFAULT_BLOCKS, Bound, PeriodBound, bound_text, check_evidence
from ...core.settings.orders import checked_order
from ...core.settings.table import Shards, TableSettings, is_slice_of, slice_forms
from ...core.settings.windows import EveryEvents, Window, parse_every, parse_window
from ...runners.presets import Runner, RunnerError, choose_runner
from ...transforms.evaluate.class_limits import check_rule, classes_of, refuse_with_class_scores
from ...transforms.events.class_fields import class_roles_of_files
from ...transforms.events.fields import EventColumns, EventFields
from ...transforms.events.lateness import Timing
from ...transforms.files.formats import SourceFile
from ...transforms.kafka.topic import is_kafka
from ...transforms.sources.files.listing import columns_of_files, list_sources
from ..arguments import (
    checked_number,
    number,
    option_of,
    option_text,
    parsed,
    refuse_given,
    time_format_of,
    whole_number,
)
from ..outputs import is_text
from .job import Alerts
from .parser import default_text
from .recipients import Command, Recipient, Url, refuse_recipients

_OFTEN = 10_000
"""Default of the least number of events between two curves: a curve has some 300 points."""

_OF_POSITIVES = (*MASS_COLUMNS[1:], *POSITIVE_MEASURES)
"""Columns that are null where no class is named positive."""


def fields_of(options: argparse.Namespace) -> EventFields:
    """Return the roles of the input's columns, as the options name them. Raises ConfigError."""
    chosen: dict[str, Any] = {name: getattr(options, name, None) for name in EventColumns.__annotations__}
    chosen["time_format"] = time_format_of(options)
    chosen |= _class_roles_of(options)
    names = chosen.pop("score") or ["score"]
    chosen |= {"score": names[0]} if len(names) == 1 else {"scores": tuple(names)}
    chosen["slices"] = tuple(_columns(names) for names in options.slice)
    return EventFields(**chosen, probabilities=options.probabilities)


def _class_roles_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the columns of class scores and of class labels. Raises ConfigError."""
    scores, labels = options.class_scores, options.multi_label
    if scores is None:
        refuse_given(options, ": labels of classes go with --class-scores; name these too", "multi_label")
        return {}
    refuse_with_class_scores(vars(options), option_text, f"--class-scores {scores}")
    heads = _heads_of(options, options.sources, scores)
    label_heads = _heads_of(options, options.labels or options.sources, labels)
    return class_roles_of_files(scores, labels, heads, label_heads)


def _heads_of(
    options: argparse.Namespace, paths: Sequence[str], asked: str | None
) -> dict[str, list[str]] | None:
    """Return the columns of each file, if a star asks for them; None for streams, and without a star."""
    if asked is None or "*" not in asked or options.follow:
        return None
    if any(path == "-" or is_kafka(path) for path in (*options.sources, *paths)):
        return None
    return columns_of_files(sources_of(paths))


def table_of(options: argparse.Namespace, fields: EventFields) -> TableSettings:
    """Return the settings of the evaluators' table. Raises ConfigError."""
    evaluator = evaluator_of(options, fields.positive)
    classes = classes_of(fields)
    curves = _curves(options, evaluator.window, fields.positive, has_classes=classes is not None)
    if options.curves is None:
        refuse_given(options, ": curves go to a file; name it with --curves PATH", "curves_points")
    points = options.curves_points or POINTS_THINNED
    evaluator = replace(evaluator, curves=curves, curves_points=points)
    if classes is None:
        check_signal(evaluator, options.predicted is not None, "--predicted", "--positive VALUE")
    check_evidence(evaluator.evidence_below, options.weight is not None, "--evidence-below", "--weight")
    for name, setting in declared(TableSettings).items():
        for column in setting.needs:
            if getattr(fields, column) is None:
                refuse_given(options, f" needs {column}s; name their column with --{column} COL", name)
    settings = TableSettings(
        evaluator,
        fields.slices,
        _shards_of(options),
        **_settings_of(options, TableSettings),
        classes=classes,
    )
    ClassSettings.of_table(settings)
    return settings


def _settings_of(options: argparse.Namespace, settings: type) -> dict[str, Any]:
    """Return the settings that a dataclass declares, from the options, by name. Raises ConfigError."""
    return {name: _setting_of(getattr(options, name), settings, name) for name in declared(settings)}


def _setting_of(said: str | bool | None, settings: type, name: str) -> Any:
    """Return the value of one setting, by the setting's own parser, or as a duration, count or number."""
    setting, option = declared(settings)[name], option_of(name)
    if said is None or isinstance(said, bool):
        return said
    if said == default_text(settings, name):
        return getattr(settings, name)
    if setting.parse is not None:
        return parsed(option, said, setting.parse)
    if setting.needs:
        return parsed(option, said, lambda text: microseconds(text, option))
    if isinstance(getattr(settings, name), int):
        return whole_number(option, said, 1)
    return number(option, said)


def _shards_of(options: argparse.Namespace) -> Shards:
    number = whole_number("--shards", options.shards, 1)
    try:
        return Shards(number, options.own_shard)
    except ConfigError as error:
        raise ConfigError(f"--own-shard {' '.join(options.own_shard)}: {error}") from None


def runner_of(options: argparse.Namespace, beam_flags: Sequence[str]) -> Runner:
    """Return the runner that the options name, with Beam's own options.

    Raises ConfigError for a runner that is not known.
    """
    try:
        return choose_runner(options.runner, beam_flags)
    except RunnerError as mistake:
        raise ConfigError(str(mistake)) from None


def timing_of(options: argparse.Namespace, settings: EvaluatorSettings) -> Timing:
    """Return the limits for event times: the lateness, and how far a time may be ahead of now.

    Raises ConfigError.
    """
    if options.max_ahead is None:
        return Timing(lateness=settings.lateness)
    if options.time is None:
        refuse_given(options, " needs times; name their column with --time", "max_ahead")
    ahead = parsed("--max-ahead", options.max_ahead, lambda text: microseconds(text, "max-ahead"))
    return Timing(lateness=settings.lateness, now=time.time_ns() // 1_000, ahead=ahead)


def sources_of(paths: Sequence[str], what: str = "SOURCE") -> tuple[SourceFile, ...]:
    """Return the files that paths and globs name.

    Raises ConfigError, or InputError for a file that cannot be read.
    """
    for path in paths:
        if not path:
            raise ConfigError(f"{what} '': name a file")
    sources = list_sources(paths)
    for source in sources:
        if not is_text(source.path):
            raise InputError(f"the name {source.path!a} is not UTF-8; rename the file")
    return sources


def evaluator_of(options: argparse.Namespace, positive: str | None) -> EvaluatorSettings:
    """Return the settings of one model's evaluator. Raises ConfigError."""
    order = options.order or ("time" if options.time is not None else "position")
    order = parsed("--order", order, checked_order)
    if order.startswith("time") and options.time is None:
        raise ConfigError(f"--order {order} needs times; name their column with --time")
    chosen = _settings_of(options, EvaluatorSettings)
    if chosen["evidence_below"] is None:
        alerts = getattr(options, "alert", None)  # the options of prequential have no alerts
        chosen["evidence_below"] = _bound_of(alerts or (), options.time is not None)
    for name, default in (("evidence_blocks", DEFAULT_BLOCKS), ("block_gap", None)):
        if chosen["evidence_below"] is None and chosen[name] != default:
            raise ConfigError(
                f"{option_of(name)} {getattr(options, name)}: there is no evidence without the AUC that the "
                "model must have; give --evidence-below AUC"
            )
    settings = EvaluatorSettings(
        window=parsed("--window", options.window, parse_window),
        every=parsed("--every", options.every, parse_every),
        measures=None if options.measures is None else tuple(options.measures.split(",")),
        positive=positive,
        order=order,
        **chosen,
    )
    if options.time is None and (needs := settings.needs_times) is not None:
        raise ConfigError(f"--{needs} goes by event time; name the column of times with --time")
    return settings


def _bound_of(alerts: Sequence[str], has_times: bool) -> Bound | None:
    """Return the bound of the rules on evidence; None if no rule is on evidence. Raises ConfigError."""
    bounds: dict[Bound, str] = {}
    for text in alerts:
        rule = _rule_of(text)
        if isinstance(rule.opens, Surely):
            bounds[rule.opens.bound] = text
            if not has_times and isinstance(rule.opens.bound, PeriodBound):
                raise ConfigError(
                    f"--alert {text!r}: {rule.needs_times!r} goes by event time; name the column of times "
                    "with --time"
                )
    if len(bounds) > 1:
        first, second = sorted(map(bound_text, bounds))[:2]
        raise ConfigError(
            f"--alert: rules ask for evidence below {first} and below {second}, and a job has evidence below "
            "one bound; run a job for each"
        )
    return next(iter(bounds), None)


def _rule_of(text: str) -> AlertRule:
    """Read the rule of --alert. Raises ConfigError, which names the option."""
    try:
        return parse_alert(text)
    except ConfigError as mistake:
        raise ConfigError(f"--{mistake}") from None


def _curves(
    options: argparse.Namespace, window: Window, positive: str | None, *, has_classes: bool
) -> EveryEvents | Literal["end"] | None:
    """Return when curves are due; None = no curves.

    By default a curve is due when all events of a window are new, but at least _OFTEN events after the
    previous curve. A window without a fixed number of events has one curve, at the end. Raises ConfigError.
    """
    every = options.curves_every
    if options.curves is None and options.report is None:
        refuse_given(options, ": curves go to a file; name it with --curves PATH", "curves_every")
        return None
    if options.predicted is not None and positive is None and not has_classes:
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
    wanted = "a whole number of events, 1 or more, or end for one curve at the end"
    return EveryEvents(checked_number(f"--curves-every {every!r}", every, int, lambda n: n >= 1, wanted))


def _columns(names: str) -> tuple[str, ...]:
    columns = tuple(names.split(","))
    if not all(columns):
        raise ConfigError(f"--slice {names!r}: give a column, or several for a cross: --slice COL,COL")
    return columns


def alerts_of(
    options: argparse.Namespace, settings: EvaluatorSettings, fields: EventFields, here: bool
) -> Alerts | None:
    """Return the alerts that the options ask for; None if there is no rule.

    here  whether the job writes its files on this machine

    Raises ConfigError for a rule that could never open an alert.
    """
    if not options.alert:
        refuse_given(options, ": there is no rule; say when with --alert RULE", "alerts", "false_alarms")
        for name in ("alert_exec", "alert_post"):  # the values may hold secrets
            if getattr(options, name) is not None:
                raise ConfigError(f"{option_of(name)}: there is no rule; say when with --alert RULE")
        return None
    rules = []
    said = options.false_alarms
    budget = None if said is None else parsed("--false-alarms", said, parse_budget)
    try:
        for text in options.alert:
            rules.append(parse_alert(text))
            _check_rule(rules[-1], settings, fields)
        rules = with_budget(rules, budget)
        for kind in {rule.kind for rule in rules}:
            checked_rules([rule for rule in rules if rule.kind == kind])
    except ConfigError as mistake:
        raise ConfigError(f"--{mistake}") from None
    if options.alerts is None and not here:
        raise ConfigError(
            f"--alert {options.alert[0]!r}: runner {options.runner!r} writes its files elsewhere; name one "
            "with --alerts PATH"
        )
    return Alerts(tuple(rules), options.alerts, _recipients(options, here))


def _recipients(options: argparse.Namespace, here: bool) -> tuple[Recipient, ...]:
    """Return the commands and URLs that are called for each alert. Raises ConfigError."""
    recipients: list[Recipient] = []
    if options.alert_exec is not None:
        recipients.append(Command.parse(options.alert_exec))
    if options.alert_post is not None:
        recipients.append(Url.parse(options.alert_post))
    if recipients and not here:
        refuse_recipients(recipients, f"runner {options.runner!r} works on other machines")
    return tuple(recipients)


def _names_of_job(fields: EventFields) -> list[str]:
    """Return the names of the models of a job whose options name its model; otherwise return no names."""
    if not (model := fields.model_name):
        return []
    return [f"{model}/{score}" for score in fields.scores] or [model]


def _check_rule(rule: AlertRule, settings: EvaluatorSettings, fields: EventFields) -> None:
    """Raise ConfigError if no row of an evaluation can satisfy a rule."""

    def refuse(sentence: str) -> ConfigError:
        return ConfigError(f"alert {str(rule)!r}: {sentence}")

    classes = classes_of(fields)
    check_rule(rule, classes)
    if rule.kind == "roll-up row":
        return
    for column in rule.columns:
        computed = (*(settings.measures or ()), *(each.column for each in settings.with_values))
        if column not in computed and (measure := measure_of(column)):
            raise refuse(f"{column} is not computed; ask for it with --measures, such as {measure}:0.05")
        if column in MEASURES and column not in computed:
            remedy = f"ask for it with --measures {column}"
            if column in PROBABILITY_MEASURES and not settings.probabilities:
                remedy = "it needs scores that are probabilities, --probabilities"
            elif column in EVIDENCE_MEASURES:
                remedy = "it needs the AUC that the model must have, --evidence-below 0.8"
            elif column in COSTLY_MEASURES:
                remedy += ", or --measures all"
            raise refuse(f"{column} is not computed; {remedy}")
        if column == "drift" and settings.window.signal is None:
            raise refuse(
                f"only an adaptive window has a drift, and this is {settings.window}; see --window adaptive"
            )
        is_named = classes is not None or settings.positive is not None
        if (measure_of(column) or column) in _OF_POSITIVES and fields.predicted is not None and not is_named:
            raise refuse(
                f"with --predicted labels are classes, and {column} needs the one that is positive; name it "
                "with --positive VALUE"
            )
    for test in rule.where:
        if test.column == "slice" and not fields.slices and not test.holds(""):
            raise refuse(
                f"where {test}: without --slice the one slice is '', the whole model; name a column with "
                "--slice COL, or leave the test out"
            )
        if test.column == "slice" and test.comparison == "=" and not is_slice_of(test.text, fields.slices):
            raise refuse(f"where {test}: slices are spelled {slice_forms(fields.slices)}")
        names = _names_of_job(fields)
        if test.column == "model" and names and not any(map(test.holds, names)):
            said = f"the job's one model is --model-name {fields.model_name!r}"
            if fields.scores:
                said = f"with --model-name {fields.model_name!r} the models are {', '.join(map(repr, names))}"
            raise refuse(f"where {test}: {said}")
    below = settings.evidence_below
    if isinstance(rule.opens, Surely) and below is not None and rule.opens.bound != below:
        raise refuse(
            f"the evidence is below --evidence-below {bound_text(below)}, and a job has "
            "evidence below one bound; give both the same"
        )
    if fields.time is None and (part := rule.needs_times) is not None:
        raise refuse(f"{part!r} goes by event time; name the column of times with --time")
    if isinstance(rule.opens, Change) and not settings.window.has_end:
        raise refuse("two windows of all events share events, so there is nothing to compare; take last:N")
