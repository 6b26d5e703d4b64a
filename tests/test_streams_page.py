"""What docs/concepts/streams.md shows is true: its commands print it, and the code draws its pictures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmark_path import ROOT
from rocsteady.core.join.settings import JoinSettings

from benchmarks import streams_pictures

PAGE = (ROOT / "docs/concepts/streams.md").read_text()
COMMANDS = re.findall(r"```bash\n(.*?)```(?:\n+```text\n(.*?)```)?", PAGE, re.DOTALL)
ROCSTEADY = """rocsteady() {
    "$PYTHON" -c 'import sys; from rocsteady.pipelines.cli import main; sys.exit(main())' "$@"
}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the page's first snippet writes."""
    folder = tmp_path_factory.mktemp("streams")
    snippet = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert snippet
    subprocess.run([sys.executable, "-c", snippet.group(1)], cwd=folder, check=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[text.split("\n")[0] for text, _ in COMMANDS])
def test_a_command_runs_as_written_and_says_what_is_shown(command, shown, folder):
    paths = [str(Path(path).resolve()) for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail\n{ROCSTEADY}{command}"],
        cwd=folder,
        env={**os.environ, "PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if shown:
        said = [
            line for line in done.stderr.splitlines() if "compiling" not in line and "WARNING" not in line
        ]
        seconds = re.compile(r"\(\d+\.\d s\)")
        assert [seconds.sub("", line) for line in said] == [
            seconds.sub("", line) for line in shown.splitlines()
        ]


def test_the_page_has_a_command_for_lateness_labels_identity_and_stdin():
    assert [bool(shown) for _, shown in COMMANDS] == [True, True, True, False]


def test_the_pictures_are_those_that_the_code_draws(tmp_path):
    streams_pictures.main(tmp_path)
    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(drawn) == set(re.findall(r"\(\.\./img/(streams-\w+\.svg)\)", PAGE))
    for name, text in drawn.items():
        assert (ROOT / "docs" / "img" / name).read_text() == text


def test_what_a_joined_stream_waits_is_as_the_page_says():
    eighth, hour = JoinSettings.of("8h", 0).waking, 3_600_000_000
    assert eighth == hour + 1
    for second, lead, waits in (("first", 0, 0), ("first", "2h", 2), ("last", 0, 8), ("last", "2h", 10)):
        assert JoinSettings.of("8h", lead, second=second).runner_delay == waits * hour + eighth
