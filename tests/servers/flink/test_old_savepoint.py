"""A savepoint of Flink that an older rocsteady wrote: the job of today's code goes on from it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from rocsteady.pipelines.cli import main

from tests.support.processes.launchers import LEAVES_THREADS_AND_CHANNELS
from tests.support.servers.kafka_topics import interrupted, start, until
from tests.support.stored import old_savepoint as old

pytestmark = LEAVES_THREADS_AND_CHANNELS


def undisturbed_rows(folder):
    """The rows of all of the input, by one job that reads files in this process."""
    names = []
    for number, records in enumerate(old.partitions()):
        names.append(str(folder / f"{number}.jsonl"))
        Path(names[-1]).write_text("".join(f"{json.dumps(record)}\n" for record in records))
    words = [*names[:2], "--labels", names[2], *old.OPTIONS]
    (folder / "undisturbed").mkdir()
    assert main(["evaluate", *words, "--output", str(folder / "undisturbed" / "rows.jsonl")]) == 0
    return [row for row in old.written(folder / "undisturbed") if row["model"] != old.LAST]


def test_a_job_of_today_goes_on_from_a_savepoint_of_then(broker, cluster, tmp_path):
    """It gives the rows that the old job had not given, each once, to the last bit."""
    savepoint = shutil.copytree(old.FOLDER / old.STATE, tmp_path / "savepoint")
    rows = tmp_path / "rows"
    rows.mkdir()
    before = [json.loads(line) for line in (old.FOLDER / old.ROWS).read_text().splitlines()]
    undisturbed = undisturbed_rows(tmp_path)
    then = before[0].keys()  # a measure may have come since: a column that the old rows lack
    expected = [row for row in undisturbed if {name: row[name] for name in then} not in before]
    words = [*old.create_topics(broker), "--output", f"{rows}/", *old.runner(cluster)]
    old.take_to_topics(savepoint, broker)
    half = old.first_part(0.5)
    old.send(broker, [[], [], []], half)
    job = start(*words, "--savepoint_path", savepoint.as_uri())
    try:
        old.send(broker, half, old.partitions())
        until(lambda: len(old.written(rows)) >= len(expected) or job.poll() is not None, 180)
    finally:
        said = interrupted(job)
    assert old.written(rows) == expected, said
    assert len(before) + len(expected) == len(undisturbed)
