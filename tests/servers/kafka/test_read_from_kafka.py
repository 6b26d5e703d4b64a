"""Beam's own ReadFromKafka (Java) before the lines of docs/how-to/dataflow.md: rows of the local runner."""

from __future__ import annotations

import json
import subprocess
import sys

from rocsteady.runners.servers.packages import java_io_option, prism_path

from tests.support import ROOT
from tests.support.processes.beam_runs import InOrder, Keep, kept, pipeline
from tests.support.requirements import servers
from tests.support.servers import beams_kafka_job
from tests.support.servers.kafka_topics import events, produce, topic_of


def rows_in(folder, name):
    return sorted(row.value for row in kept(folder, name))


def test_a_topic_by_beams_own_connector_gives_the_rows_of_the_local_runner(broker, tmp_path):
    servers("java-io", "prism")
    found = events(2_000)
    topic_of(broker, "by-beam", found, 2)
    produce(broker, "by-beam", [(1, b"no JSON", found[-1]["time"] * 1_000)])
    prism = ["--runner=PrismRunner", f"--prism_location={prism_path()}", "--environment_type=LOOPBACK"]
    words = [broker.address, "by-beam", str(len(found) + 1), str(tmp_path), *prism, java_io_option()]
    job = [sys.executable, "-m", beams_kafka_job.__name__, *words]
    done = subprocess.run(job, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    with pipeline() as here:
        records = here | InOrder([(b"", json.dumps(event).encode()) for event in found])
        beams_kafka_job.shown_on_the_page()(records)[0] | Keep(tmp_path, "expected")
    expected = rows_in(tmp_path, "expected")
    assert len(expected) > 15
    assert rows_in(tmp_path, "rows") == expected
    ((record, why),) = (one.value for one in kept(tmp_path, "broken"))
    assert record[1] == b"no JSON"
    assert "Expecting value" in str(why)
