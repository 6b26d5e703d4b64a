"""Large shards on Beam: parts in numbered cells, in process and over gRPC; a small one has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rocsteady.core.shard import parts as snapshot_parts
from rocsteady.core.shard import protocol as shard_protocol
from rocsteady.transforms.beam import cells as numbered_cells
from rocsteady.transforms.beam.machine import RunStateMachine

from tests.support.invariants.hash_chain import END, ChainFactory, ChainRow, events, undisturbed
from tests.support.processes.beam_runs import InOrder, Keep, kept, pipeline
from tests.support.thorough import at_length

FACTORY = ChainFactory(window=200, every=4)
SENT = [("ab"[i % 2], events(*range(i, i + 1 + i % 9))) for i in range(at_length(300, 120))]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, bool]]:
    """Which numbered cells were opened, and whether messages carry them."""
    found: list[tuple[int, bool]] = []
    open_cell = numbered_cells.BeamNumberedCells.cell

    def cell(self: numbered_cells.BeamNumberedCells, number: int) -> Any:
        found.append((number, self.largest is not None))
        return open_cell(self, number)

    monkeypatch.setattr(numbered_cells.BeamNumberedCells, "cell", cell)
    return found


def check(runner: str, folder: Path) -> None:
    with pipeline(runner) as p:
        machines = RunStateMachine(FACTORY, ChainRow, 0)
        (p | InOrder(SENT, tuple[str, bytes]) | machines).outputs | Keep(folder, "rows")
    expected = [
        row
        for key in "ab"
        for row in undisturbed(FACTORY, [*(record for of, record in SENT if of == key), END])
    ]
    assert sorted(row.value for row in kept(folder, "rows")) == sorted(expected)


@pytest.mark.at_length
@pytest.mark.parametrize("runner", ["in process", pytest.param("portable", marks=pytest.mark.slow)])
def test_a_large_shard_is_rebuilt_from_its_parts(
    runner: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[tuple[int, bool]]
) -> None:
    monkeypatch.setattr(snapshot_parts, "PART_BYTES", 300)
    monkeypatch.setattr(shard_protocol, "LOG_BYTES", 100)
    monkeypatch.setattr(shard_protocol, "TURN_BYTES", 50)
    check(runner, tmp_path)
    numbers = {number for number, _ in opened}
    assert max(numbers) > 5
    assert {by_message for _, by_message in opened} == {runner == "portable"}


def test_a_small_shard_opens_none(tmp_path: Path, opened: list[tuple[int, bool]]) -> None:
    check("in process", tmp_path)
    assert opened == []


def test_another_make_of_cell_has_none() -> None:
    assert numbered_cells.numbered_cells(object()) is None
