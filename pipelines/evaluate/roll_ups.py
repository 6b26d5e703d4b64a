"""Roll-ups of groups of models and slices in `rocsteady evaluate`: the options, and the step."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import apache_beam as beam

from ...core.alerts.rules import AlertRule
from ...core.errors import ConfigError
from ...core.fleet.roll_up_settings import SLICES, STALE, RollUpSettings
from ...core.rows.roll_ups import RollUpRow
from ...core.rows.rows import Rows
from ...core.settings.durations import parse_lateness
from ...core.settings.evaluator import EvaluatorSettings
from ...transforms.sinks.batches import InBatches
from ...transforms.sinks.kinds import ROLL_UPS
from ...transforms.sinks.open import SinkOptions, write_batches
from ..arguments import parsed, refuse_given


@dataclass(frozen=True)
class RollUps:
    """The roll-ups of a job. path: where the roll-up rows are written; None if only rules read them."""

    settings: RollUpSettings
    path: str | None


def roll_ups_of(
    options: argparse.Namespace, settings: EvaluatorSettings, of_groups: Sequence[AlertRule]
) -> RollUps | None:
    """Return the roll-ups that the options ask for; None if they ask for none. Raises ConfigError.

    of_groups  the rules that watch roll-up rows
    """
    if not options.roll_up:
        refuse_given(options, ": there are no groups; name them with --roll-up GROUPS", "roll_ups", "stale")
        if options.dependent:
            raise ConfigError("--dependent: there are no groups; name them with --roll-up GROUPS")
        if of_groups:
            raise ConfigError(
                f"--alert {str(of_groups[0])!r} watches groups; name them, such as --roll-up models"
            )
        return None
    said = f"--roll-up {options.roll_up[0]}"
    if not settings.every.micros:
        raise ConfigError(
            f"{said}: with --every {settings.every} rows are of no common moment; give a grid of times, such "
            "as --every 1h"
        )
    if settings.order == "arrival":
        raise ConfigError(
            f"{said}: order 'arrival' never says up to when rows are complete; give --order time"
        )
    if "auc" not in (settings.measures or ()):
        raise ConfigError(f"{said}: the AUC is not computed; ask for it with --measures auc")
    if SLICES in options.roll_up and not options.slice:
        raise ConfigError(
            f"--roll-up {SLICES}: there are no slices; name their columns with --slice COL, or leave it out"
        )
    if options.import_state is not None:
        raise ConfigError(
            f"{said} with --import-state: an export does not hold the last rows of the groups; make roll-ups "
            "from the rows, with rocsteady roll-up"
        )
    if options.roll_ups is None and not of_groups:
        raise ConfigError(f"{said}: name where the roll-up rows go, with --roll-ups PATH")
    stale = STALE if options.stale is None else parsed("--stale", options.stale, parse_lateness)
    try:
        chosen = RollUpSettings(tuple(options.roll_up), stale, settings.confidence, options.dependent)
    except ConfigError as mistake:
        raise ConfigError(f"--roll-up {str(mistake).removeprefix('by: ')}") from None
    return RollUps(chosen, options.roll_ups)


def rolled_up(
    rows: beam.PCollection[Rows],
    roll_ups: RollUps,
    shards: int | None,
    cache_bytes: int,
    sinks: SinkOptions,
) -> beam.PCollection[RollUpRow]:
    """Return the roll-up rows of a job, and write them if they have a path."""
    from ...transforms.evaluate.roll_up import RollUpShards

    rolled: beam.PCollection[RollUpRow] = rows | "Roll up" >> RollUpShards(
        roll_ups.settings, shards, cache_bytes
    )
    if roll_ups.path is not None:
        write = write_batches(roll_ups.path, ROLL_UPS, sinks)
        _ = rolled | "Roll-ups in columns" >> InBatches(ROLL_UPS) | "Write roll-ups" >> write
    return rolled
