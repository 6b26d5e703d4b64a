"""`.ci/run`: its scheduler, played with made-up durations, and its steps on this machine."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zlib
from math import inf
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.runners.servers.processes import birth

from tests.checks import ci, minutes
from tests.checks.host import Machine
from tests.checks.schedule import GRACE, LEAST_LAST, Ending, Result, Scheduler, Step
from tests.checks.steps import ALL, DEMO, GATE, TESTS, TYPES
from tests.support import ROOT


class Played:
    """A host with a clock of its own, on which each step takes as long as it is told, and passes or fails."""

    def __init__(self, durations: dict[str, float], failing: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        self.durations, self.failing = durations, failing
        self.clock = 0.0
        self.ends: dict[Step, float] = {}
        self.most = 0

    def now(self) -> float:
        return self.clock

    def begin(self, step: Step) -> None:
        self.ends[step] = self.clock + self.durations[step.name]
        self.most = max(self.most, len(self.ends))

    def wait(self, until: float) -> tuple[Step, bool] | None:
        step = min(self.ends, key=self.ends.__getitem__)
        if self.ends[step] > max(until, self.clock):
            self.clock = max(until, self.clock)
            return None
        self.clock = max(self.ends.pop(step), self.clock)
        return step, step.name not in self.failing

    def end(self, step: Step) -> None:
        del self.ends[step]


STEPS = (
    Step("tests", 10, "", kept=True),
    Step("environment", 4, "", beside=True, kept=True),
    Step("types", 2, "", needs=("environment",), kept=True),
    Step("servers", 20, "", needs=("environment",), beside=True),
    Step("browser", 5, "", needs=("environment",)),
    Step("slow", 10, "", needs=("environment",)),
    Step("site", 1, "", needs=("environment",)),
)
EXACT = {step.name: step.minutes for step in STEPS}


def played(host: Played, budget: float | None = 70) -> dict[str, Result]:
    results = Scheduler(STEPS, host, budget, pace="tests").run()
    names = [result.step.name for result in results]
    assert sorted(names) == sorted(EXACT), "each step has one result"
    return dict(zip(names, results, strict=True))


def endings(results: dict[str, Result]) -> dict[str, Ending]:
    return {name: result.ending for name, result in results.items()}


def those(results: dict[str, Result], ending: Ending) -> set[str]:
    return {name for name, result in results.items() if result.ending is ending}


def test_all_steps_pass_and_the_two_lanes_run_at_a_time() -> None:
    host = Played(EXACT)
    results = played(host)
    assert set(endings(results).values()) == {Ending.PASSED}
    assert host.most == 2
    assert host.clock == 28, "the lane of tests, types, browser, slow and site; that of the servers takes 24"
    assert {name: result.minutes for name, result in results.items()} == EXACT


def test_a_host_of_a_third_of_the_speed_leaves_out_what_does_not_fit() -> None:
    """The lanes are at minute 51 and 72: tests 30, types 6, browser 15; environment 12, servers 60."""
    host = Played({name: 3 * duration for name, duration in EXACT.items()})
    results = played(host)
    assert those(results, Ending.LEFT_OUT) == {"slow"}, "slow would end at minute 81; site fits behind it"
    assert those(results, Ending.CUT) == {"servers"}, "when it began, the speed of the host was not known"
    assert host.clock == 70
    assert not any(result.ending.is_failure for result in results.values())


def test_tests_that_fail_late_tell_the_speed_of_the_host_and_those_that_fail_early_do_not() -> None:
    host = Played({name: 3 * duration for name, duration in EXACT.items()}, {"tests"})
    assert those(played(host), Ending.LEFT_OUT) == {"slow"}
    host = Played({**EXACT, "tests": 0.1, "slow": 80}, {"tests"})
    assert those(played(host, budget=None), Ending.PASSED) == EXACT.keys() - {"tests"}


def test_a_small_budget_leaves_out_all_but_what_is_kept() -> None:
    host = Played(EXACT)
    results = played(host, budget=10)
    assert those(results, Ending.PASSED) == {"tests", "environment", "types"}
    assert those(results, Ending.LEFT_OUT) == {"servers", "browser", "slow", "site"}


def test_a_step_that_fails_stops_only_those_that_need_it() -> None:
    results = played(Played(EXACT, {"browser"}))
    assert those(results, Ending.FAILED) == {"browser"}
    assert those(results, Ending.PASSED) == EXACT.keys() - {"browser"}
    results = played(Played(EXACT, {"environment"}))
    assert those(results, Ending.PASSED) == {"tests"}
    assert those(results, Ending.UNABLE) == {"types", "servers", "browser", "slow", "site"}
    assert Ending.UNABLE.is_failure


def test_what_needs_a_step_that_was_left_out_is_left_out() -> None:
    steps = (Step("tests", 1, ""), Step("fetch", 9, ""), Step("jobs", 0.1, "", needs=("fetch",)))
    host = Played({"tests": 1, "fetch": 9, "jobs": 0.1})
    results = Scheduler(steps, host, 5, pace="tests").run()
    assert [result.ending for result in results] == [Ending.PASSED, Ending.LEFT_OUT, Ending.LEFT_OUT]


def test_what_needs_a_step_of_the_other_lane_that_was_left_out_is_left_out() -> None:
    steps = (
        Step("fetch", 9, ""),
        Step("jobs", 0.1, "", needs=("fetch",), beside=True),
        Step("compare", 0.1, "", needs=("jobs",)),
    )
    results = Scheduler(steps, Played({}), 5, pace="tests").run()
    assert [result.ending for result in results] == [Ending.LEFT_OUT] * 3


def test_a_small_budget_ends_no_step_that_is_never_left_out() -> None:
    results = played(Played({name: 2 * duration for name, duration in EXACT.items()}), budget=1)
    assert those(results, Ending.PASSED) == {"tests", "environment", "types"}


def test_a_short_step_has_time_when_other_programs_begin_on_the_host() -> None:
    results = played(Played({**EXACT, "site": 14}))
    assert those(results, Ending.PASSED) == EXACT.keys()


def test_a_step_that_passes_while_another_is_ended_has_passed() -> None:
    """Minute 10 is the last one of both steps. The host takes a minute to end the servers."""

    class Slow(Played):
        def end(self, step: Step) -> None:
            super().end(step)
            self.clock += 1

    host = Slow({"servers": 1e9, "slow": 10.5})
    steps = (Step("slow", 10, ""), Step("servers", 10, "", beside=True))
    results = Scheduler(steps, host, 10, pace="tests").run()
    assert {result.step.name: result.ending for result in results} == {
        "slow": Ending.PASSED,
        "servers": Ending.CUT,
    }


@pytest.mark.parametrize("name", ["browser", "servers"])
def test_a_step_that_hangs_is_ended_and_the_run_is_red(name: str) -> None:
    """A browser of 5 minutes has 15 on a host of speed 1; servers begin before the speed is known."""
    host = Played({**EXACT, name: 1e9})
    results = played(host, budget=None)
    assert those(results, Ending.HUNG) == {name}
    assert Ending.HUNG.is_failure
    assert results[name].minutes == {"browser": 15, "servers": 180}[name]


def test_a_step_that_is_never_left_out_ends_late_on_a_host_that_is_too_slow() -> None:
    results = played(Played({name: 8.1 * duration for name, duration in EXACT.items()}))
    assert those(results, Ending.LATE) == {"types"}
    assert results["types"].minutes == pytest.approx(LEAST_LAST - 81)
    assert Ending.LATE.is_failure


def test_tests_that_hang_end_before_the_run_is_ended_from_outside() -> None:
    host = Played({**EXACT, "tests": 1e9})
    results = played(host)
    assert results["tests"].ending is Ending.LATE
    assert host.clock <= max(ci.BUDGET_MINUTES * GRACE, LEAST_LAST) < 90


@given(
    st.lists(st.floats(0, 200), min_size=len(STEPS), max_size=len(STEPS)),
    st.sets(st.sampled_from(sorted(EXACT))),
    st.floats(1, 100),
)
def test_no_run_goes_beyond_its_budget_but_for_what_is_kept(
    durations: list[float], failing: set[str], budget: float
) -> None:
    host = Played(dict(zip(EXACT, durations, strict=True)), failing)
    results = played(host, budget)
    kept = {step.name for step in STEPS if step.kept}
    assert host.clock <= max(budget * GRACE, LEAST_LAST) + 1e-9
    assert not any(results[name].ending.is_left_out for name in kept)
    assert host.most <= 2
    assert host.ends == {}


def test_what_was_left_out_stands_in_the_last_lines() -> None:
    results = [
        Result(GATE[0], Ending.PASSED, 2),
        Result(GATE[7], Ending.LEFT_OUT),
        Result(GATE[8], Ending.CUT, 3),
    ]
    lines = ci.report(results, 70.0, 70.0)
    assert lines[-3].startswith(
        "LEFT OUT: 2 of 3 steps, since the budget is 70 minutes (ROCSTEADY_CI_MINUTES)"
    )
    assert [line.strip() for line in lines[-2:]] == [
        f"{result.step.name}: {result.ending.value}" for result in results[1:]
    ]
    assert "GREEN: every step that ran to its end passed" in lines
    red = ci.report([*results, Result(GATE[2], Ending.FAILED, 9)], 79.0, 70.0)
    assert f"    {GATE[2].name}: FAILED" in red
    assert "GREEN" not in "".join(red)
    assert ci.report(results[:1], 2.0, 70.0)[-1] == "GREEN: every step passed"


@pytest.mark.parametrize("steps", [GATE, ALL], ids=["gate", "all"])
def test_a_step_needs_steps_before_it_and_what_the_issue_names_is_never_left_out(
    steps: tuple[Step, ...],
) -> None:
    names = [step.name for step in steps]
    assert len({*names}) == len(names)
    for place, step in enumerate(steps):
        assert {*step.needs} <= {*names[:place]}, step.name
        assert subprocess.run(["bash", "-n", "-c", step.commands], check=False).returncode == 0
    assert {step.name: step.kept for step in steps if step in (TESTS, TYPES)} == {
        TESTS.name: True,
        TYPES.name: True,
    }


def test_the_pages_table_of_minutes_is_that_of_the_steps() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert page == minutes.filled(page), "python -m tests.checks minutes renews the table"


def test_the_budget_of_all_steps_of_the_gate_is_far_below_the_usual_one() -> None:
    assert sum(step.minutes for step in GATE if not step.beside) < ci.BUDGET_MINUTES / 2


# ---- on this machine


def machine(tmp_path: Path) -> Machine:
    (tmp_path / "logs").mkdir()
    return Machine(tmp_path, tmp_path / "logs", {"PATH": "/usr/bin:/bin", "word": "said"})


def test_steps_run_by_bash_and_what_ran_beside_is_shown_whole(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    steps = [
        Step("good", 1, "echo $word in $(basename $PWD)"),
        Step("bad", 1, "false; echo not reached"),
        Step("unset", 1, "echo $nothing"),
        Step("other", 1, "echo beside; ls /nowhere/at/all || true", beside=True),
    ]
    results = Scheduler(steps, machine(tmp_path), None, pace="good").run()
    passed = {result.step.name: result.ending is Ending.PASSED for result in results}
    assert passed == {"good": True, "bad": False, "unset": False, "other": True}
    out, err = capfd.readouterr()
    assert f"said in {tmp_path.name}" in out
    assert "not reached" not in out
    assert "nothing: unbound variable" in err
    assert re.search(r"== other \(ran beside other steps, ended with 0, after \d+ s\)\nbeside\nls: ", out)


def test_a_step_that_is_ended_leaves_no_process(tmp_path: Path) -> None:
    host = machine(tmp_path)
    step = Step("hangs", 1, "sleep 600 & echo $! >child; wait")
    host.begin(step)
    while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text().strip():
        time.sleep(0.01)
    assert host.wait(host.now()) is None
    host.end(step)
    child = int((tmp_path / "child").read_text())
    while birth(child) is not None:  # a busy machine ends a process a while after the signal
        time.sleep(0.01)


PROGRAM = """
import signal, sys
from pathlib import Path
from tests.checks import ci
from tests.checks.host import Machine
from tests.checks.schedule import Step
folder = Path(sys.argv[1])
(folder / "logs").mkdir()
for name in sys.argv[2:]:
    signal.signal(getattr(signal, name), signal.SIG_IGN)
child = "trap 'echo $BASHPID >>ended; exit' INT; echo $BASHPID >>begun; while :; do sleep 0.05; done"
steps = [Step("one", 9, child), Step("two", 9, child, beside=True)]
sys.exit(ci.run(steps, Machine(folder, folder / "logs", {"PATH": "/usr/bin:/bin"}), None))
"""


def started(folder: Path, *ignored: str) -> subprocess.Popen[str]:
    """Return a run of two steps in a process of its own, when both have begun."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, folder, *ignored], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    while not (folder / "begun").exists() or (folder / "begun").read_text().count("\n") < 2:
        assert process.poll() is None
        time.sleep(0.01)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_the_steps_end_themselves(tmp_path: Path, number: signal.Signals) -> None:
    process = started(tmp_path)
    process.send_signal(number)
    process.terminate()  # a second signal changes nothing
    out, _ = process.communicate(timeout=200)
    assert process.returncode == 130
    assert out.endswith(".ci/run was interrupted: its steps were ended\n")
    assert sorted((tmp_path / "ended").read_text().split()) == sorted(
        (tmp_path / "begun").read_text().split()
    )


def test_a_run_whose_signals_are_ignored_goes_on_and_can_end_its_steps(tmp_path: Path) -> None:
    """nohup ignores SIGHUP; a shell ignores SIGINT for what a script puts into the background."""
    process = started(tmp_path, "SIGINT", "SIGHUP")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.3)
    assert process.poll() is None
    process.terminate()
    process.communicate(timeout=200)
    assert process.returncode == 130
    assert (tmp_path / "ended").read_text().count("\n") == 2


def test_a_run_whose_output_nobody_reads_any_more_ends_all_steps(tmp_path: Path) -> None:
    process = started(tmp_path)
    assert process.stdout
    process.stdout.close()
    process.terminate()
    assert process.wait(200) != 0
    assert (tmp_path / "ended").read_text().count("\n") == 2


@pytest.mark.parametrize("step", [DEMO, TESTS])
def test_a_step_fails_where_the_readme_has_no_such_line(tmp_path: Path, step: Step) -> None:
    (tmp_path / "README.md").write_text("    python3 -m venv .venv && .venv/bin/pip install '.[other]'\n")
    environment = {"PATH": "/usr/bin:/bin", "root": str(tmp_path), "scratch": str(tmp_path)}
    (tmp_path / "logs").mkdir()
    host = Machine(tmp_path, tmp_path / "logs", environment)
    host.begin(step)
    assert host.wait(inf) == (step, False)


def test_a_folder_that_is_no_clone_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    shutil.copytree(ROOT / "tests" / "checks", tmp_path / "tests" / "checks")
    command = [sys.executable, "-m", "tests.checks", "ci"]
    given = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    done = subprocess.run(command, cwd=tmp_path, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(".ci/run needs a clone of the repository. git ls-files: fatal: ")


def test_a_budget_that_is_no_number_is_refused_in_a_sentence() -> None:
    command = [sys.executable, "-m", "tests.checks", "ci"]
    given = {"ROCSTEADY_CI_MINUTES": "soon"}
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == ".ci/run: ROCSTEADY_CI_MINUTES=soon must be minutes above 0, such as 70\n"


def test_ten_tenths_are_all_slow_tests_once_and_plain_tests_stay(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "from tests.conftest import pytest_addoption, pytest_collection_modifyitems\n"
    )
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers = slow\n    at_length\npythonpath = {ROOT}\n")
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.slow\n@pytest.mark.parametrize('n', range(30))\ndef test_slow(n): pass\n"
        "@pytest.mark.at_length\n@pytest.mark.parametrize('n', range(30))\ndef test_long(n): pass\n"
        "@pytest.mark.parametrize('n', range(3))\ndef test_plain(n): pass\n"
    )
    program = (
        "import pytest\nfor number in range(10):\n"
        "    status = pytest.main(['-q', '--collect-only', '-p', 'no:cacheprovider', f'--tenth={number}'])\n"
        "    print('status', int(status))"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    tenths = done.stdout.split("status 0\n")
    assert tenths.pop() == "", done.stdout + done.stderr
    found = [[line for line in tenth.splitlines() if "::" in line] for tenth in tenths]
    plain = {f"test_it.py::test_plain[{number}]" for number in range(3)}
    for number, names in enumerate(found):
        assert plain <= {*names}
        assert {zlib.crc32(name.encode()) % 10 for name in {*names} - plain} <= {number}
    chosen = [name for names in found for name in names if name not in plain]
    assert sorted(chosen) == sorted(
        f"test_it.py::test_{kind}[{number}]" for kind in ("slow", "long") for number in range(30)
    )
