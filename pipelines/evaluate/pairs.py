"""Models compared with a champion in `rocsteady evaluate`: the options, the step, and its summary."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import apache_beam as beam

from ...core.alerts.rules import AlertRule
from ...core.errors import ConfigError
from ...core.ids.sharding import number_of
from ...core.pairs.pair_settings import PairSettings
from ...core.pairs.table import PairTableSettings
from ...core.rows.pairs import PairRow
from ...core.settings.against import Against
from ...core.settings.durations import parse_lateness
from ...core.settings.table import Shards, TableSettings
from ...transforms.beam.machine import typed
from ...transforms.evaluate.compare_pairs import WITHIN, ComparePairShards, score_columns
from ...transforms.events.fields import EventFields
from ...transforms.sinks.batches import InBatches
from ...transforms.sinks.kinds import PAIRS
from ...transforms.sinks.open import SinkOptions, write_batches
from ..arguments import parsed, refuse_given, whole_number
from ..words import counted


@dataclass(frozen=True)
class Pairs:
    """The comparisons of a job.

    path         where the rows of pairs are written
    against      the champion, and the rule by which events are one instance
    settings     how two models are compared
    most_shards  the most shards that compare models. Each gets all events of the champion: in one process,
                 one shard costs a third of the time of eight
    """

    path: str
    against: Against
    settings: PairSettings
    most_shards: int = 8

    def table(self, settings: TableSettings) -> PairTableSettings:
        """Return the settings of the shards that compare models; the job's evaluators have `settings`."""
        order = settings.evaluator.order
        return PairTableSettings(self.against, self.settings, settings.slices, settings.slice_cap, order)

    def shards(self, settings: TableSettings) -> Shards:
        """Return the shards to which events are sent.

        Those of the evaluators, and those that compare models.
        """
        shards = Shards.of(settings.shards or 1)
        return shards.with_comparisons(self.against, min(self.most_shards, shards.shared))


def add_score_of_champion(options: argparse.Namespace) -> None:
    """Make the column of --against one of the columns of scores. Raises ConfigError."""
    if options.against is None or options.class_scores is not None:  # both together are refused later
        return
    try:
        options.score = list(score_columns(options.score, options.against))
    except ConfigError:
        raise ConfigError(
            f"--against {options.against!r} is the one column of scores; name that of the other model with "
            "--score COL"
        ) from None


def pairs_of(
    options: argparse.Namespace,
    fields: EventFields,
    settings: TableSettings,
    rules: Sequence[AlertRule],
    *,
    on_stream: bool,
) -> Pairs | None:
    """Return the comparisons that the options ask for; None if --pairs is not given. Raises ConfigError.

    rules  the rules that watch pairs
    """
    if options.pairs is None:
        if rules:
            raise ConfigError(
                f"--alert {str(rules[0])!r} watches pairs of models; say where their rows go with --pairs "
                "PATH"
            )
        why = " is for rows of pairs; say where they go with --pairs PATH"
        refuse_given(options, why, "champion", "against", "pair_within", "anytime_at")
        return None
    said = f"--pairs {options.pairs}"
    if (options.champion is None) == (options.against is None):
        raise ConfigError(
            f"{said} compares models with a champion: name it with --champion MODEL, or the column of its "
            "scores with --against COL; one of both"
        )
    if fields.weight is not None:
        raise ConfigError(f"{said}: pairs of models are compared with equal weights; leave --weight out")
    if fields.predicted is not None and fields.positive is None:
        raise ConfigError(f"{said}: AUCs need the class that is positive; name it with --positive VALUE")
    own_job = "the state of pairs is not exported in this version; give --pairs to a job of its own"
    refuse_given(options, f" and --pairs: {own_job}", "export_state", "import_state", "control")
    by_record = options.against is not None and not options.labels and not on_stream
    if not by_record and fields.id is None:
        raise ConfigError(f"{said}: models are compared by the ids of events; name their column with --id")
    by_time = settings.evaluator.by_time
    within = None if by_record or not by_time else _within(options)
    if options.pair_within is not None and within is None:
        refuse_given(options, " is a time between events of an id; it needs --time and --id", "pair_within")
    if on_stream and not by_time:
        raise ConfigError(f"{said}: an event waits for its partner by event time; name it with --time COL")
    columns = () if options.against is None else fields.scores
    name = options.champion if options.against is None else options.against
    window, every = settings.evaluator.window, settings.evaluator.every
    chosen = {"window": window, "every": every, "confidence": settings.evaluator.confidence}
    if options.anytime_at is not None:
        chosen["anytime_at"] = whole_number("--anytime-at", options.anytime_at, 100)
    try:
        return Pairs(options.pairs, Against(name, columns, by_record, within), PairSettings(**chosen))  # type: ignore[arg-type]
    except ConfigError as error:
        raise ConfigError(f"{said}: {error}") from None


def _within(options: argparse.Namespace) -> int:
    if options.pair_within is not None:
        return parsed("--pair-within", options.pair_within, parse_lateness)
    joins = options.labels or options.label_records is not None
    return 0 if joins else WITHIN  # joined events of an id have one time, the time of their label


def compared(
    packets: beam.PCollection[tuple[str, bytes]],
    pairs: Pairs,
    settings: TableSettings,
    fields: EventFields,
    cache_bytes: int,
    sinks: SinkOptions,
) -> tuple[beam.PCollection[tuple[str, bytes]], beam.PCollection[PairRow]]:
    """Compare models and write the rows of pairs.

    Return the packets for the evaluators, and the rows of pairs.

    Late events become dead letters of the evaluators, which get these events too.
    """
    own = int(Shards.of(settings.shards or 1))
    keys = tuple[str, bytes]
    others = packets | "For pairs" >> beam.Filter(lambda packet: number_of(packet[0]) >= own)
    compare = ComparePairShards(pairs.table(settings), fields, cache_bytes)
    rows, *_ = typed(others, "Pairs' packets", keys) | "Compare" >> compare
    write = write_batches(pairs.path, PAIRS, sinks)
    _ = rows | "Pairs in columns" >> InBatches(PAIRS) | "Write pairs" >> write
    mine = packets | "For evaluators" >> beam.Filter(lambda packet: number_of(packet[0]) < own)
    return typed(mine, "Evaluators' packets", keys), rows


def told_pairs(pairs: Pairs, counts: Counter[str]) -> Iterator[str]:
    """Yield sentences on the comparisons that were made, for the summary of a job."""
    found = counts["pairs_compared"]
    rows = counted(counts["pair_rows_written"], "row")
    yield f"pairs: {counted(found, 'instance')} scored by a model and its champion; {rows} in {pairs.path}"
    if repeated := counts["pairs_repeated"]:
        yield f"{counted(repeated, 'event')} of pairs repeat an id of their model, and do not count there"
    if contradicted := counts["pairs_contradicted"]:
        yield f"{counted(contradicted, 'instance')} of pairs have two labels, and are not compared"
    if not found:
        where = "column" if pairs.against.columns else "model"
        yield (
            f"nothing was compared: no instance has scores of the {where} {pairs.against.champion!r} and of "
            "another one; check its name and --id"
        )
