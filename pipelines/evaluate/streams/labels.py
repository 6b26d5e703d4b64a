"""The options on labels that come later: --labels, --label-records, and those of the join."""

from __future__ import annotations

import argparse

from ....core.errors import ConfigError
from ....core.join.join_settings import JoinSettings
from ....core.settings.durations import microseconds, parse_lateness
from ....core.settings.table import TableSettings
from ....transforms.events.columns import class_text
from ....transforms.events.fields import EventFields
from ....transforms.kafka.topic import is_kafka
from ....transforms.sources.streams.pipe_kinds import LabelRecords
from ...arguments import parsed, refuse_given
from ..job import Join
from ..options import sources_of
from .growing import STDIN


def join_of(
    options: argparse.Namespace, fields: EventFields, settings: TableSettings, records: LabelRecords | None
) -> Join | None:
    """Return the settings of the label join; None if labels are in the events. Raises ConfigError.

    records  the result of `label_records_of`
    """
    if not options.labels and records is None:
        why = " is for labels of their own; name them with --labels, or of stdin with --label-records"
        refuse_given(options, why, "label_time", "ttl", "label_lead", "second_label")
        return None
    said = f"--labels {' '.join(options.labels)}" if records is None else f"--label-records {records}"
    for option, value, what in (("--id", fields.id, "id"), ("--time", fields.time, "time of a prediction")):
        if value is None:
            raise ConfigError(
                f"{said}: labels are joined by id, in event time; name the {what} with {option} COL"
            )
    if not settings.evaluator.by_time:
        raise ConfigError(
            f"--order {settings.evaluator.order} with {said}: joined events apply in the order of their "
            "labels' times; leave --order out, or give time or time:10m"
        )
    lead = options.label_lead
    joined = JoinSettings(
        parsed("--ttl", options.ttl or "7d", lambda text: microseconds(text, "ttl")),
        None if lead is None else parsed("--label-lead", lead, parse_lateness),
        second=options.second_label or "first",
        deduplicate=settings.deduplicate,
        evaluator_shards=settings.shards or 1,
    )
    is_streamed = records is not None or options.follow or is_kafka(options.labels[0])
    files = () if is_streamed else sources_of(options.labels, "--labels")
    return Join(files, options.label_time or str(fields.time), joined, records)


def label_records_of(options: argparse.Namespace) -> LabelRecords | None:
    """Return the rule by which records of stdin are labels.

    None if labels are in the events, or in another source.

    Raises ConfigError for a text of another form, and for labels that do not fit the source.
    """
    if STDIN in options.labels:
        raise ConfigError(
            f"--labels {STDIN}: stdin is read once, as SOURCE {STDIN}; send predictions and labels there "
            "together, and say which records are labels with --label-records 'kind=label'"
        )
    of_stdin, text = STDIN in options.sources, options.label_records
    if text is None:
        if of_stdin and options.labels:
            raise ConfigError(
                f"--labels {' '.join(options.labels)} with SOURCE {STDIN}: on stdin, labels come in the "
                "same pipe; send them there, and say which records are labels with --label-records "
                "'kind=label'"
            )
        return None
    said = f"--label-records {text}"
    if options.labels:
        raise ConfigError(
            f"{said} with --labels {' '.join(options.labels)}: labels come on stdin among the predictions, "
            "or from sources of their own; leave one of both out"
        )
    if not of_stdin:
        raise ConfigError(
            f"{said} tells the records of stdin apart, and SOURCE is {' '.join(options.sources)}; name the "
            f"source of the labels with --labels, or read SOURCE {STDIN}"
        )
    column, sign, value = text.partition("=")
    if not column or not sign or class_text(value) is None:
        raise ConfigError(
            f"{said}: give a column and the value that it has in a label record, such as kind=label"
        )
    return LabelRecords(column, value)
