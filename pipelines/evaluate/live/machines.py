"""The state machines of a live job, and their snapshots.

A weighted window (`fading`, `--weight`) has sums that depend on the order of additions. A machine made from a
snapshot adds the terms again in another order. So after a cut, such a job goes on with machines made from
their own snapshots, as the next process would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ....core.alerts.columns import Kind
from ....core.alerts.table import AlertTable
from ....core.fleet.table import FleetTable
from ....core.ids.sharding import shard_key
from ....core.pairs.table import PairTable
from ....core.settings.windows import Fading
from ....core.state.export import ExportingMachine
from ....transforms.evaluate.join_labels import JoinFactory
from ....transforms.evaluate.shards import TableFactory
from ..job import Evaluation

TABLE = "evaluators"


_ALERTS: dict[str, Kind] = {"alerts": "row", "group_alerts": "roll-up row", "pair_alerts": "pair row"}
"""The tables of alert rules, by the kind of the rows that they watch."""


@dataclass(frozen=True)
class LiveMachines:
    """The state machines of a live job; a machine that the job does not need is None."""

    table: ExportingMachine[Any]
    join: ExportingMachine[Any] | None
    pairs: PairTable | None
    fleet: FleetTable | None
    alerts: AlertTable | None
    group_alerts: AlertTable | None
    pair_alerts: AlertTable | None

    @classmethod
    def of(cls, job: Evaluation, snapshots: Mapping[str, bytes] | None = None) -> LiveMachines:
        """Return the machines of a job: new machines, or the machines of snapshots.

        Raises OtherConfigurationError for other settings, a `WireError` for damaged bytes.
        """
        imports, tells = job.begins_with is not None, job.roll_ups is not None
        key, factory = shard_key(0), TableFactory(job.settings, imports, tells)
        joins = None if job.join is None else JoinFactory(job.join.settings, imports)
        pairs = None if job.pairs is None else job.pairs.table(job.settings)
        groups = None if job.roll_ups is None else job.roll_ups.settings
        watched = () if job.alerts is None else _ALERTS.items()
        rules = {name: job.alerts.rules_of(kind) for name, kind in watched if job.alerts is not None}
        if snapshots is None:
            return cls(
                factory.new(None, key),
                None if joins is None else joins.new(None, key),
                None if pairs is None else PairTable(pairs),
                None if groups is None else FleetTable(groups),
                *(AlertTable(rules[name]) if rules.get(name) else None for name in _ALERTS),
            )
        return cls(
            factory.load(snapshots[TABLE], None, key),
            None if joins is None else joins.load(snapshots["join"], None, key),
            None if pairs is None else PairTable.from_bytes(snapshots["pairs"], pairs),
            None if groups is None else FleetTable.from_bytes(snapshots["fleet"], groups),
            *(
                AlertTable.from_bytes(snapshots[name], rules[name]) if rules.get(name) else None
                for name in _ALERTS
            ),
        )

    def snapshots(self) -> dict[str, bytes]:
        """Return the snapshot of each machine, by name. O(state)."""
        machines = {TABLE: self.table, **{name: getattr(self, name) for name in _OTHERS}}
        return {name: machine.to_bytes() for name, machine in machines.items() if machine is not None}

    def counts(self) -> Counter[str]:
        """Return what the machines have counted since they were made or loaded."""
        machines = (self.table, *(getattr(self, name) for name in _OTHERS))
        return sum((Counter(machine.counts()) for machine in machines if machine is not None), Counter())

    def gauges(self) -> dict[str, int]:
        """Return the gauges of the evaluators and of the join, and the bytes of their state."""
        machines = [machine for machine in (self.table, self.join) if machine is not None]
        gauges = {name: value for machine in machines for name, value in machine.gauges().items()}
        return {**gauges, "state_bytes": sum(machine.snapshot_bytes() for machine in machines)}


_OTHERS = ("join", "pairs", "fleet", *_ALERTS)


def adds_anew(job: Evaluation) -> bool:
    """Return whether a machine made from a snapshot may give rows that differ in their last digits."""
    return job.fields.weight is not None or isinstance(job.settings.evaluator.window, Fading)
