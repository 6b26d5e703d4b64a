"""A live job with its page open, for an hour: python -m benchmarks.live [--minutes 60] [--pace 20000].

Events come at a steady pace, by stdin or as files of a folder (--folder), to a job of `rocsteady evaluate`
with `--serve`, `--checkpoint` and alert rules. A Chromium has the page open. Every minute the memory of both,
and the age of the newest row on the page, are noted. At the end, the rows of the job are compared with the
rows of the same events in files, and the rows on the page with both. The page with the figures goes to
docs/benchmarks/live.md. Needs the extras `serve` and `browser`, a Chromium, and Linux.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

import numpy as np

from .live_checkpoints import QUICK, STATES, rows
from .live_events import Events
from .live_job import MB, PATIENCE, Job, resident
from .live_page import page as page_of
from .live_rows import COMPARED, Shown, compared, evaluate_files
from .pages import made_from
from .processes import ROOT, processor_time

LOOKS_A_MINUTE = 12
_PAGE = ROOT / "docs" / "benchmarks" / "live.md"
_CHROMIUM = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")

LOOK = """() => {
    const at = document.documentElement.dataset.at || "";
    const traces = document.getElementById("main-chart")?.data || [];
    const lines = traces.filter((trace) => trace.kind === "line");
    const points = lines.map(({ model, x, y }) => [model, [...x], [...y]]).filter(([, x]) => x.length);
    if (!at || !points.length) return null;
    const newest = Math.max(...points.map(([, x]) => x.at(-1))) / 1000;
    return { at, now: Date.now() / 1000, newest, points };
}"""
"""What the page has: which rows, the time of the newest row in its chart, and the points of the lines."""


@dataclass
class Sample:
    """What was seen at one moment; megabytes of memory and files, processor seconds since the start.

    age, oldest  median and maximum, since the sample before, of the seconds from the moment at which the
                 newest event of the newest row on the page was due to the moment of the look
    heap, nodes  of JavaScript, after a collection of garbage, and of the document
    """

    minute: float
    job: float
    job_cpu: float
    checkpoint: float
    age: float | None
    oldest: float | None
    rows: int
    heap: float
    nodes: int
    listeners: int
    page: float
    page_cpu: float
    streams: int
    written: float


class OpenPage:
    """The page in a Chromium, and what it did on its own.

    streams      how often it asked for the stream of events: once, and once more for every lost connection
    navigations  how often it was loaded
    said         its errors and warnings
    """

    def __init__(self, playwright: Any, address: str) -> None:
        path = (
            os.environ.get("ROCSTEADY_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        )
        self._browser = playwright.chromium.launch(executable_path=path, args=_CHROMIUM)
        self._processes = self._browser.new_browser_cdp_session()
        self.page = self._browser.new_page(viewport={"width": 1280, "height": 900})
        self._devtools = self.page.context.new_cdp_session(self.page)
        self._devtools.send("Performance.enable")
        self.streams = self.navigations = 0
        self.said: list[str] = []
        self.page.on("request", self._note)
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.goto(address)

    def _note(self, request: Any) -> None:
        self.streams += "/api/stream" in request.url
        self.navigations += request.is_navigation_request()

    def look(self) -> dict[str, Any] | None:
        """Return what the page has; None before the first row."""
        with contextlib.suppress(Exception):  # the page is being loaded anew
            found: dict[str, Any] | None = self.page.evaluate(LOOK)
            return found
        return None

    def state(self) -> dict[str, float]:
        """Return the metrics of the page, after a collection of garbage, and of its process."""
        self._devtools.send("HeapProfiler.collectGarbage")
        metrics = {
            each["name"]: each["value"] for each in self._devtools.send("Performance.getMetrics")["metrics"]
        }
        processes = self._processes.send("SystemInfo.getProcessInfo")["processInfo"]
        renderers = [int(each["id"]) for each in processes if each["type"] == "renderer"]
        return {
            "heap": metrics["JSHeapUsedSize"] / MB,
            "nodes": metrics["Nodes"],
            "listeners": metrics["JSEventListeners"],
            "page": max(map(resident, renderers)),
            "page_cpu": sum(map(processor_time, (int(each["id"]) for each in processes))),
        }

    def close(self) -> None:
        self._browser.close()


def watched(job: Job, page: OpenPage, sender: subprocess.Popen[bytes], every: float) -> Iterator[Sample]:
    """Yield a sample every so many seconds, until all is sent."""
    began = time.monotonic()
    ages: list[float] = []
    looks = 0
    while sender.poll() is None:
        looks += 1
        while (left := began + looks * every / LOOKS_A_MINUTE - time.monotonic()) > 0:
            page.page.wait_for_timeout(min(left, 1.0) * 1_000)
        seen = page.look()
        if seen is not None:
            ages.append(seen["now"] - seen["newest"])
        if looks % LOOKS_A_MINUTE:
            continue
        state = page.state()
        yield Sample(
            minute=(time.monotonic() - began) / 60,
            job=resident(job.process.pid),
            job_cpu=processor_time(job.process.pid),
            checkpoint=job.checkpoint(),
            age=median(ages) if ages else None,
            oldest=max(ages, default=None),
            rows=0 if seen is None else int(seen["at"].rpartition("-")[2]),
            heap=state["heap"],
            nodes=int(state["nodes"]),
            listeners=int(state["listeners"]),
            page=state["page"],
            page_cpu=state["page_cpu"],
            streams=page.streams,
            written=job.rows.stat().st_size / MB,
        )
        ages.clear()


def settled(job: Job, page: OpenPage, address: str) -> Shown:
    """Wait until nothing comes any more; return the rows that the server gives for a page, and the chart."""
    until = time.monotonic() + PATIENCE
    before = -1
    while time.monotonic() < until:
        page.page.wait_for_timeout(10_000)
        meta = _meta(address)
        seen, size = page.look(), job.rows.stat().st_size
        if size == before and seen is not None and seen["at"] == meta["at"]:
            break
        before = size
    else:
        raise SystemExit(f"the page has rows up to {seen and seen['at']}, and the server up to {meta['at']}")
    columns = [_block(f"{address}api/blocks/{meta['at']}/{name}") for name in COMPARED]
    rows = {}
    for model, _, first, stop in meta["series"]:
        for place in range(first, stop):
            values = {name: column[place] for name, column in zip(COMPARED, columns, strict=True)}
            rows[meta["models"][model], int(values["seq"] or 0)] = values
    return Shown(rows, {meta["models"][model]: (x, y) for model, x, y in seen["points"]})


def _meta(address: str) -> dict[str, Any]:
    with urlopen(address) as answer:
        text = answer.read().decode()
    found: dict[str, Any] = json.loads(text.partition('id="meta">')[2].partition("</script>")[0])
    return found


def _block(address: str) -> list[float | None]:
    with urlopen(address) as answer:
        shuffled = np.frombuffer(gzip.decompress(answer.read()), np.uint8)
    values = np.frombuffer(shuffled.reshape(8, -1).T.tobytes(), "<f8").tolist()
    return [None if value != value else value for value in values]


def measured(options: argparse.Namespace, work: Path) -> dict[str, Any]:
    """Run the job, and return all figures."""
    from playwright.sync_api import sync_playwright

    number = round(options.minutes * 60 * options.pace)
    period = max(8, round(min(600.0, options.minutes * 20)))
    commit, load = made_from(), os.getloadavg()[0]
    start = (int(time.time()) + 15) * 1_000_000
    events = Events(number, options.pace, start, period)
    job = Job(events, options.every, work, follows=options.folder)
    figures: dict[str, Any] = {"commit": commit, "load": load, "cores": os.cpu_count()}
    figures |= {"minutes": options.minutes, "pace": options.pace, "every": options.every}
    figures |= {"folder": options.folder, "period": period, "events": number, "samples": []}
    try:
        with sync_playwright() as playwright:
            address = job.address()
            page = OpenPage(playwright, address)
            sender = job.begin()
            print(f"pid of the job: {job.process.pid}", file=sys.stderr, flush=True)
            for sample in watched(job, page, sender, options.sample):
                figures["samples"].append(asdict(sample))
                print(json.dumps(asdict(sample)), file=sys.stderr, flush=True)
            on_page = settled(job, page, address)
            if options.picture is not None:
                page.page.screenshot(path=str(options.picture))
            figures |= {"streams": page.streams, "navigations": page.navigations, "said": page.said}
            figures["summary"] = job.end()
            page.close()
    finally:
        job.kill()
    figures["job_log"] = (work / "job.log").read_text().splitlines()
    runs = evaluate_files(events, options.every, work)
    figures["files_seconds"] = sum(run.wall for run in runs)
    figures["files_cpu"] = sum(run.cpu for run in runs)
    return figures | compared(work, options.every, on_page)


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few events, and small states")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--pace", type=int, default=20_000, help="events a second")
    parser.add_argument("--every", type=int, default=200, help="events of a model between two of its rows")
    parser.add_argument("--sample", type=float, default=60.0, help="seconds between two lines of figures")
    parser.add_argument("--folder", action="store_true", help="events come as files, and not by stdin")
    parser.add_argument("--picture", type=Path, help="a picture of the page at the end")
    parser.add_argument("--work", type=Path, help="an empty folder for what the run writes, which stays")
    parser.add_argument("--figures", type=Path, help="a file for all figures, as JSON")
    parser.add_argument("--from", dest="made", type=Path, nargs="+", help="write the page from such files")
    parser.add_argument("--output", type=Path, default=_PAGE)
    options = parser.parse_args(words)
    if options.quick:
        options.minutes, options.sample = 0.3, 4.0
    if options.made is None:
        with tempfile.TemporaryDirectory() as folder:
            runs = [measured(options, options.work or Path(folder))]
        if options.figures is not None:
            options.figures.write_text(json.dumps(runs[0]))
    else:
        runs = [json.loads(path.read_text()) for path in options.made]
    options.output.write_text(page_of(runs, rows(QUICK if options.quick else STATES)))


if __name__ == "__main__":
    main(sys.argv[1:])
