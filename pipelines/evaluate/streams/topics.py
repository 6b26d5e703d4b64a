"""Topics as the input of `rocsteady evaluate`, as the options name them.

    SOURCE kafka://host:port/topic ..., and labels from --labels kafka://...; --start, --until,
    --kafka-option, --kafka-format, --partition-idle

With --until, a topic is read up to its present end, as a file is. Without --until, the job runs for ever: in
this process (--runner local), or on a runner with streaming.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import time
from typing import Literal

from ....core.errors import ConfigError
from ....core.settings.durations import microseconds
from ....runners.presets import Runner
from ....transforms.events.fields import EventFields, Role
from ....transforms.kafka.topic import KafkaTopic, is_kafka
from ....transforms.sources.files.json_lines import keys_of_first
from ....transforms.sources.streams.arrow_messages import columns_of_first
from ....transforms.sources.streams.kafka_partition import KafkaPartition
from ....transforms.sources.streams.kafka_range import Moment, Offsets, offsets_of
from ....transforms.sources.streams.partition import MessageFormat
from ....transforms.sources.streams.read import Way
from ....transforms.sources.streams.stream_input import StreamInput
from ...arguments import refuse_given
from ..job import Evaluation, Output, Streams

_SAMPLE_MESSAGES = 100
_SAMPLE_SECONDS = 3.0


@dataclass(frozen=True)
class Topics:
    """The topics that the options name, and which part of them to read.

    topics        (role, topic), each topic once: either of events, or of predictions and of labels
    start, until  where reading starts and ends; until None = until None: reading never ends
    idle, format  see `StreamInput`
    """

    topics: Sequence[tuple[Role, KafkaTopic]]
    start: Moment
    until: Moment | None
    idle: float | None
    format: MessageFormat = "json"

    @property
    def is_bounded(self) -> bool:
        """Whether reading ends."""
        return self.until is not None

    def streams(self, job: Evaluation) -> Streams:
        """Ask the brokers about the topics, and return the streams of their partitions.

        Raises InputError for a topic that is not available, ConfigError for topics whose order is not
        possible.
        """
        found = []
        for role, topic in self.topics:
            option = "--labels" if role == "label" else "SOURCE"
            found.append((role, topic, offsets_of(topic, self.start, self.until, option)))
        total = sum(len(offsets) for _, _, offsets in found)
        if not self.is_bounded and job.settings.evaluator.order == "position" and total > 1:
            have = "has" if len(found) == 1 else "have"
            raise ConfigError(
                f"{', '.join(topic.url for _, topic, _ in found)} {have} {total} partitions, and nothing "
                "says in which order their events apply; name the column of times with --time, or say "
                "--order arrival, which is the order of the partition where all events of a model are in one"
            )
        located = job.located or job.join is not None
        inputs: list[StreamInput] = []
        for role, topic, offsets in found:
            partitions = [
                KafkaPartition(topic, each.partition, len(offsets), each.cluster, each.topic_id)
                for each in offsets
            ]
            fields = job.fields_of(role)
            if role != "label":
                fields = self._settled(fields, topic, partitions, offsets)
            inputs += [
                StreamInput(
                    partition,
                    len(inputs) + number,
                    total,
                    role,
                    fields,
                    each.start,
                    each.end,
                    job.timing,
                    located,
                    self.idle,
                    format=self.format,
                    grows=job.settings.evaluator.order != "position",
                )
                for number, (partition, each) in enumerate(zip(partitions, offsets, strict=True))
            ]
        return Streams(inputs, way_of(job.runner, is_bounded=self.is_bounded))

    def _settled(
        self,
        fields: EventFields,
        topic: KafkaTopic,
        partitions: Sequence[KafkaPartition],
        offsets: Sequence[Offsets],
    ) -> EventFields:
        """Return the fields with the source of the model's name.

        If the options do not name the source, the keys of the first record decide.
        """
        if fields.model is not None or fields.model_name is not None:
            return fields
        for partition, each in zip(partitions, offsets, strict=True):
            messages = partition.fetch(each.start, _SAMPLE_MESSAGES, _SAMPLE_SECONDS).values
            arrow = self.format == "arrow"
            keys = columns_of_first(messages) if arrow else keys_of_first(messages, in_arrays=True)
            if keys is not None:
                return fields.resolved(keys, topic.name)
        return fields.resolved(("model",))


def topics_of(options: argparse.Namespace) -> Topics | None:
    """Return the topics that the options of `evaluate` name; None if they name none.

    Raises ConfigError if the topics cannot be read together, or not with the other options.
    """
    named = [("SOURCE", path) for path in options.sources]
    named += [("--labels", path) for path in options.labels]
    for what, path in named:
        if path.lower().startswith("kafka:") and not is_kafka(path):
            raise ConfigError(f"{what} {path}: a topic is kafka://host:port/topic, with // behind kafka:")
    streamed = [path for _, path in named if is_kafka(path)]
    if not streamed:
        why = " is for a topic; name one, kafka://host:port/topic"
        refuse_given(options, why, "start", "until", "partition_idle", "kafka_format")
        return None
    for what, path in named:
        if not is_kafka(path):
            raise ConfigError(
                f"{what} {path} beside {streamed[0]}: files and topics are not read together; bring the file "
                "into a topic, or the topic into a file"
            )
    if options.follow:
        raise ConfigError(f"--follow is for a folder, and {streamed[0]} is followed without it; leave it out")
    why = f" is for a folder; leave it out, or say where to end {streamed[0]} with --until"
    refuse_given(options, why, "until_idle")
    of_sources: Role = "prediction" if options.labels else "event"
    topics: list[tuple[Role, KafkaTopic]] = []
    for what, path in named:
        topic = KafkaTopic.parse(path, options.kafka_option)
        if topic.name in {other.name for _, other in topics}:
            raise ConfigError(
                f"{what} {path}: two topics are called {topic.name!r}, and a state knows the offsets of "
                "partitions by the names of their topics; leave one out, or give it another name"
            )
        topics.append(("label" if what == "--labels" else of_sources, topic))
    if options.control is not None and options.until is not None:
        raise ConfigError(
            f"--control {options.control}: a topic that is read up to its end comes to one, and "
            "--export-state writes the state there; it is for streams"
        )
    idle = options.partition_idle
    return Topics(
        topics,
        _moment("--start", options.start or "earliest"),
        None if options.until is None else _end(options.until),
        None if idle is None else microseconds(idle, "--partition-idle") / 1e6,
        options.kafka_format or "json",
    )


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


def way_of(runner: Runner, *, is_bounded: bool) -> Way | Literal["live"]:
    """Return how a runner reads streams; "live" means that this process reads the streams."""
    if is_bounded:
        return "bounded"
    if runner.name == "local":
        return "live"
    return "impulse" if runner.kind == "flink" else "source"
