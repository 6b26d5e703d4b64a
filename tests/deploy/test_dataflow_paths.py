"""A job for Dataflow names no file of this machine: workers there would look for it on their own disks."""

from __future__ import annotations

import pytest
from rocsteady.pipelines.cli import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["events.csv", "--output", "gs://b/rows/"], "SOURCE events.csv is on this machine"),
        (["kafka://127.0.0.1:1/t", "--output", "rows/"], "--output rows/ is on this machine"),
        (["kafka://127.0.0.1:1/t", "--output", "-"], "--output - is on this machine"),
        (["kafka://127.0.0.1:1/t", "--output", "gs://b/r/", "--dead-letters", "d/"], "--dead-letters d/"),
        (["kafka://127.0.0.1:1/t", "--output", "gs://b/r/", "--alert", "auc < 1", "--alerts", "a/"],
         "--alerts a/ is on this machine"),
        (["kafka://127.0.0.1:1/t", "--output", "gs://b/r/", "--export-state", "s/"], "--export-state s/"),
    ],
)  # fmt: skip
def test_a_path_of_this_machine_is_refused(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "events.csv").write_text("score,label\n.1,0\n.9,1\n")
    assert main(["evaluate", *words, "--runner", "dataflow"]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.rstrip().endswith("give a URL, such as gs://BUCKET/PATH, or a topic")
