"""Topics as the input of `rocsteady evaluate`: reads the options and checks them with the brokers.

    SOURCE kafka://host:port/topic ..., and labels from --labels kafka://...; --start, --until,
    --kafka-option, --partition-idle

With --until, a topic is read up to its present end, like a file. Without --until, the job runs for ever: in
this process (--runner local), or on a runner with streaming. Such a runner can also read a growing folder
(--follow).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import time
from typing import Any, Literal

from ...core.errors import ConfigError, InputError
from ...core.settings.durations import microseconds
from ...core.settings.table import TableSettings
from ...runners.presets import Runner
from ...transforms.events.fields import EventFields, Role
from ...transforms.events.timing import Timing
from ...transforms.kafka.topic import KafkaTopic, is_kafka
from ...transforms.sources.files.json_lines import keys_of_first
from ...transforms.sources.streams.kafka_offsets import Moment, Offsets, offsets_of
from ...transforms.sources.streams.kafka_partition import KafkaPartition
from ...transforms.sources.streams.partition import StreamPartition
from ...transforms.sources.streams.read import Way
from ...transforms.sources.streams.reader import StreamInput
from ...transforms.state.folder import Export
from .job import Join, Output, Streams

_OPTIONS = ("start", "until", "partition_idle")
_SAMPLE_SECONDS = 3.0


@dataclass(frozen=True)
class Topics:
    """The topics that the options name, and which part of them to read.

    topics        (role, topic), each topic once: of events; or of predictions and labels
    start, until  where reading starts and ends; until None: reading never ends
    idle          see `StreamInput`
    """

    topics: Sequence[tuple[Role, KafkaTopic]]
    start: Moment
    until: Moment | None
    idle: float | None


def topics_of(options: argparse.Namespace) -> Topics | None:
    """Return the topics that the options of `evaluate` name; None for options without a topic.

    Raises ConfigError where the topics cannot be read together, or not with the other options.
    """
    named = [("SOURCE", path) for path in options.sources]
    labels = [("--labels", path) for path in options.labels]
    streamed = [path for _, path in (*named, *labels) if is_kafka(path)]
    if not streamed:
        for name in _OPTIONS:
            if (value := getattr(options, name)) is not None:
                option = f"--{name.replace('_', '-')}"
                raise ConfigError(f"{option} {value} is for a topic; name one, kafka://host:port/topic")
        return None
    for what, path in (*named, *labels):
        if not is_kafka(path):
            raise ConfigError(
                f"{what} {path} beside {streamed[0]}: files and topics are not read together; bring the file "
                "into a topic, or the topic into a file"
            )
    if options.follow or options.until_idle is not None:
        raise ConfigError(f"--follow is for a folder, and {streamed[0]} is followed without it; leave it out")
    first: Role = "prediction" if labels else "event"
    roles: list[Role] = [first for _ in named]
    roles += ["label" for _ in labels]
    topics = [KafkaTopic.parse(path, options.kafka_option) for path in streamed]
    for (what, path), topic, before in zip((*named, *labels), topics, _before(topics), strict=True):
        if topic.name in before:
            raise ConfigError(
                f"{what} {path}: two topics are called {topic.name!r}, and a state knows the offsets of "
                "partitions by the names of their topics; leave one out, or give it another name"
            )
    if labels and options.until is None and options.runner == "local":
        raise ConfigError(
            f"--labels {labels[0][1]}: to join topics that have no end takes a runner that streams; say "
            "--runner prism or flink, or read them up to --until latest"
        )
    if options.control is not None and options.until is not None:
        raise ConfigError(
            f"--control {options.control}: a topic that is read up to its end comes to one, and "
            "--export-state writes the state there; it is for streams"
        )
    idle = options.partition_idle
    return Topics(
        list(zip(roles, topics, strict=True)),
        _moment("--start", options.start or "earliest"),
        None if options.until is None else _end(options.until),
        None if idle is None else microseconds(idle, "--partition-idle") / 1e6,
    )


def _before(topics: Sequence[KafkaTopic]) -> list[set[str]]:
    """Return for each topic the names of the topics before it."""
    return [{topic.name for topic in topics[:number]} for number in range(len(topics))]


def refuse_outputs_to(topics: Topics, outputs: Iterable[Output]) -> None:
    """Raise ConfigError for an output to a topic that is also read: the job would read its own output."""
    for option, path, _ in outputs:
        if is_kafka(path) and any(topic.is_same(KafkaTopic.parse(path)) for _, topic in topics.topics):
            raise ConfigError(f"{option} {path} is also the input; write to another topic")


def _moment(option: str, text: str) -> Moment:
    if text in ("latest", "earliest"):
        return Moment(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        words = "earliest, latest or a time" if option == "--start" else "latest or a time"
        raise ConfigError(f"{option} {text!r}: give {words}, such as 2026-01-31T12:00:00Z") from None
    return Moment("", round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1_000))


def _end(text: str) -> Moment:
    found = _moment("--until", text)
    if found.word == "earliest":
        raise ConfigError("--until earliest: nothing is before it; give latest or a time")
    if not found.word and found.millis > time() * 1_000:
        raise ConfigError(f"--until {text} is still to come; give latest, or a time that has passed")
    return found


def streams_of(
    topics: Topics,
    runner: Runner,
    fields: EventFields,
    settings: TableSettings,
    timing: Timing,
    join: Join | None,
) -> Streams:
    """Ask the brokers about the topics, and return the streams of their partitions.

    Raises InputError for a topic that is not available, ConfigError for topics without the order asked for.
    """
    found = [
        (
            role,
            topic,
            offsets_of(topic, topics.start, topics.until, "--labels" if role == "label" else "SOURCE"),
        )
        for role, topic in topics.topics
    ]
    total = sum(len(offsets) for _, _, offsets in found)
    _check_order([topic.url for _, topic, _ in found], total, settings, is_bounded=topics.until is not None)
    inputs: list[StreamInput] = []
    for role, topic, offsets in found:
        partitions = [KafkaPartition(topic, each.partition, len(offsets), each.cluster) for each in offsets]
        own = fields
        if role == "label" and join is not None:
            own = replace(fields, time=join.label_time)
        if role != "label":
            own = _settled(own, topic, partitions, offsets)
        inputs += [
            StreamInput(
                partition,
                len(inputs) + number,
                total,
                role,
                own,
                each.start,
                each.end,
                timing,
                settings.deduplicate is not None or join is not None,
                topics.idle,
            )
            for number, (partition, each) in enumerate(zip(partitions, offsets, strict=True))
        ]
    return Streams(inputs, way_of(runner, is_bounded=topics.until is not None))


def going_on(streams: Streams, export: Export, start: str | None) -> Streams:
    """Return the streams as an export left them: each partition in the export resumes at its offset.

    Partitions that the export does not name belong to a new topic, or were added to a topic; they start as
    without an export. After an export of files or of stdin, every partition starts so. Raises ConfigError
    where `start` is given although every partition resumes. Raises InputError where the export names a
    partition that is not read, or an offset that does not exist.
    """
    known = {source: position for source, position in export.positions.values() if isinstance(position, dict)}
    known = {source: position for source, position in known.items() if "offset" in position}
    names = {source.partition.name for source in streams.inputs if source.partition.resumes}
    if not known or not names:
        return streams
    if others := sorted(known.keys() - names):
        raise InputError(
            f"--import-state {export.folder} was read up to offsets of {', '.join(others[:5])}, and this job "
            f"reads {', '.join(sorted(names)[:5])}; name the same topics, or folder"
        )
    if start is not None and not names - known.keys():
        raise ConfigError(
            f"--start {start}: --import-state {export.folder} goes on from the offsets that its readers had "
            "of all partitions; leave one of them out"
        )
    return replace(streams, inputs=[_from(known, source, export) for source in streams.inputs])


def _from(known: dict[str, Any], source: StreamInput, export: Export) -> StreamInput:
    name = source.partition.name
    if name not in known:
        return source
    try:
        offset, high_water = int(known[name]["offset"]), int(known[name]["high_water"])
        place, origin = str(known[name]["place"]), str(known[name].get("origin", ""))
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"--import-state {export.folder} has no offset of {name}, but {known[name]!r}; export again"
        ) from None
    here = source.partition.origin
    if origin and here and origin != here:
        raise InputError(
            f"--import-state {export.folder} goes on from offset {offset:,} of {name} of {origin}, and this "
            f"is that of {here}, whose offsets are others; name the brokers that the state was read from, or "
            "begin without the state"
        )
    if source.end is not None and offset > source.end:
        raise InputError(
            f"--import-state {export.folder} goes on from offset {offset:,} of {name}, which ends at "
            f"{source.end:,}: the topic was made anew; begin without the state"
        )
    return replace(source, start=offset, place=place, high_water=high_water)


def way_of(runner: Runner, *, is_bounded: bool) -> Way | Literal["live"]:
    """Return how a runner reads streams; "live": this process reads the streams."""
    if is_bounded:
        return "bounded"
    if runner.name == "local":
        return "live"
    return "impulse" if runner.kind == "flink" else "source"


def _check_order(urls: Sequence[str], partitions: int, settings: TableSettings, *, is_bounded: bool) -> None:
    if settings.evaluator.order == "position" and partitions > 1 and not is_bounded:
        have = "has" if len(urls) == 1 else "have"
        raise ConfigError(
            f"{', '.join(urls)} {have} {partitions} partitions, and nothing says in which order their events "
            "apply; name the column of times with --time, or say --order arrival, which is the order of the "
            "partition where all events of a model are in one"
        )


def _settled(
    fields: EventFields, topic: KafkaTopic, partitions: Sequence[KafkaPartition], offsets: Sequence[Offsets]
) -> EventFields:
    """Return the fields with the source of the model's name: the first message decides, unless it is set."""
    if fields.model is not None or fields.model_name is not None:
        return fields
    for partition, each in zip(partitions, offsets, strict=True):
        keys = _first_keys(partition, each.start)
        if keys is not None:
            return fields.resolved(keys, topic.name)
    return fields.resolved(("model",))


def _first_keys(partition: StreamPartition, start: int) -> list[str] | None:
    """Return the keys of the first record; None where the first 100 messages hold no record."""
    values = partition.fetch(start, 100, _SAMPLE_SECONDS).values
    return keys_of_first(values, in_arrays=True)
