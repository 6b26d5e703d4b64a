"""The events of a long run are a function of their numbers, and a run's folder says what was done."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("confluent_kafka", reason="pip install '.[kafka]'")

from benchmarks.scale import Progress, main
from benchmarks.scale_events import BLOCK, Crowd
from benchmarks.scale_page import KEPT, page
from benchmarks.scale_phases import PHASES, Plan

CROWD = Crowd(BLOCK + 4_000, 5_000)


def plan_of(crowd: Crowd, every: int = 50) -> Plan:
    return Plan(crowd, every, shards=8, new_shards=12, drawn=10, cache_bytes=1 << 30)


def test_an_event_depends_on_its_number_alone() -> None:
    numbers = np.arange(3_000)
    whole = CROWD.messages(numbers)
    assert CROWD.messages(numbers[1_234:1_240]) == whole[1_234:1_240]
    assert CROWD.messages(numbers[::7]) == whole[::7]


def test_events_are_in_order_of_time_and_each_at_a_time_of_its_own() -> None:
    times = [json.loads(message)["time"] for message in CROWD.messages(np.arange(3_000))]
    assert all(earlier < later for earlier, later in pairwise(times))
    (last,) = CROWD.messages(np.array([CROWD.number - 1]))
    assert json.loads(CROWD.end(0))["time"] > json.loads(last)["time"]


def test_every_model_has_events_and_a_few_have_many() -> None:
    counts = CROWD.counts()
    assert counts.sum() == CROWD.number
    assert counts.min() > 0
    assert counts[:50].sum() == pytest.approx(CROWD.number / 10, rel=0.05)


def test_the_events_of_some_models_are_all_of_theirs_but_the_last_that_fill_no_row(tmp_path: Path) -> None:
    models = [0, 17, 4_999]
    CROWD.write_events_of(models, 50, tmp_path / "drawn.jsonl")
    lines = (tmp_path / "drawn.jsonl").read_bytes().splitlines()
    of_model = defaultdict(list)
    for message in CROWD.messages(np.arange(CROWD.number)):
        of_model[json.loads(message)["model"]].append(message)
    names = [f"m{model:07d}" for model in models]
    expected = {name: of_model[name][: len(of_model[name]) // 50 * 50] for name in names}
    found = {name: [line for line in lines if json.loads(line)["model"] == name] for name in names}
    assert found == expected
    assert len(lines) == sum(map(len, expected.values())) > 0


def test_a_folder_goes_on_with_the_phases_that_are_not_done(tmp_path: Path) -> None:
    plan = plan_of(CROWD)
    first = Progress(tmp_path, plan)
    first.add("fill", {"events": 4})
    again = Progress(tmp_path, plan)
    assert again.done == {"fill": {"events": 4}}
    assert again.ports == first.ports


def test_a_folder_of_another_plan_is_refused(tmp_path: Path) -> None:
    Progress(tmp_path, plan_of(CROWD))
    with pytest.raises(SystemExit, match="holds a run of another plan"):
        Progress(tmp_path, plan_of(CROWD, every=100))


def test_the_plan_says_how_long_it_takes_and_starts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--models", "100", "--events", "40000000", "--folder", str(tmp_path), "--plan"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"100 models, 40,000,000 events in {tmp_path}: some 21 minutes" in said
    assert [path.name for path in tmp_path.iterdir()] == ["progress.json"]


def test_what_does_not_fit_is_refused_with_what_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--models", "1000000000", "--events", "4000000", "--folder", str(tmp_path), "--plan"]) == 2
    assert "GB of memory are free: --models" in capsys.readouterr().err


FIGURES = {
    "table": {
        "memory_bytes": 3_752.0, "live_bytes": 3_292.0, "snapshot_bytes": 1_366.0, "event_us": 1.1,
        "start_us": 36.0, "held": 75.0, "models": 5_000,
    },
    "fill": {"events": 504_004, "rate": 2e5, "topic_bytes": 2e7},
    "pace": {"rate": 4e4, "python_seconds": 13.5, "java_seconds": 6.4, "python_start_bytes": 3e8},
    "worker": {"resume_seconds": 28.4, "resume_python_seconds": 4.0, "recovery_seconds": 24.8},
    "task-manager": {"resume_seconds": 32.9, "recovery_seconds": 17.0},
    "rescale": {
        "resume_seconds": 57.2, "rate": 3e4, "python_seconds": 14.8, "java_seconds": 12.1,
        "export_seconds": 18.7, "export_bytes": 42_219_244,
    },
    "import": {"seconds": 8.4, "bytes": 42_190_825, "python_bytes": 425_996_288},
    "finish": {"resume_seconds": 56.9, "rate": 1e4, "python_seconds": 36.8, "java_seconds": 23.3},
    "compare": {
        "rows": 9_000, "repeats": 40, "lost": 0, "excess": 0, "drawn": 10, "drawn_rows": 18, "drawn_lost": 0,
        "drawn_wrong": 0, "equal": True,
    },
}  # fmt: skip
STOPPED = {
    "checkpoints": 3, "checkpoint_seconds": 3.9, "checkpoint_bytes": 5e7, "checkpoint_new_bytes": 3e7,
    "savepoint": "file:/none", "savepoint_seconds": 3.4, "savepoint_bytes": 4e7, "events": 504_004,
    "python_bytes": 8e8, "java_bytes": 1e9,
}  # fmt: skip


def test_a_page_keeps_what_was_written_by_hand(tmp_path: Path) -> None:
    before = tmp_path / "scale.md"
    before.write_text(f"# A million models\n\nAn older run.\n\n{KEPT}\n\nBy hand.\n")
    done = {
        phase: {"load": 2.0, **(STOPPED if "resume_seconds" in figures or phase == "pace" else {}), **figures}
        for phase, figures in FIGURES.items()
    }
    assert [*done] == [*PHASES]
    text = page(plan_of(CROWD), done, before)
    assert text.endswith(f"\n{KEPT}\n\nBy hand.\n")
    assert "An older run" not in text
    assert "| kill -9 of the Python worker |" in text
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 110


def test_what_windows_hold_is_known_before_the_run() -> None:
    for window in (20, 100, 1_000):
        held = np.minimum(CROWD.counts(), window).mean()
        assert CROWD.held(window) == pytest.approx(held, rel=0.03)


def test_too_few_events_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--events", "600000", "--folder", str(tmp_path)])
    assert "--events 600000: give 4000000 or more" in capsys.readouterr().err
