"""The page about a long run: what was seen, unit costs, and what a cluster needs by these unit costs."""

from __future__ import annotations

import math
import os
import textwrap
from contextlib import suppress
from pathlib import Path

from .processes import table
from .scale_phases import CHECKPOINT_SECONDS, HEAP, MANAGED, Figures, Plan

KEPT = "## What to set"
"""The heading from which on a page is written by hand: a new page keeps that part of the old one."""

_DAY = 1e9
"""Events a day of the sums."""

_MODELS = 1_000_000
"""Models of the sums."""

_PEAK = 5
"""A busy hour has so many times the events of the average."""

_LOAD = 0.6
"""The share of a core that the work may take, so that a job catches up after a restart."""

_ROW_BYTES = 900

Done = dict[str, Figures]


def page(plan: Plan, done: Done, before: Path) -> str:
    """Return the page; `before` is the page of an earlier run, of which the part written by hand is kept."""
    kept = ""
    with suppress(OSError):
        kept = KEPT + before.read_text("utf-8").partition(KEPT)[2]
    return "\n".join([_head(plan, done), _paces(done), _faults(done), _state(plan, done), _rows(done),
                      _costs(done), _sums(plan, done), kept])  # fmt: skip


def _text(*paragraphs: str) -> str:
    """Return paragraphs in lines of a page."""
    wide = (textwrap.fill(each, 110, break_long_words=False, break_on_hyphens=False) for each in paragraphs)
    return "\n\n".join(wide) + "\n"


def _head(plan: Plan, done: Done) -> str:
    crowd = plan.crowd
    loads = [figures["load"] for figures in done.values()]
    mean = crowd.number // crowd.models
    return "# Many models on one machine\n\n" + _text(
        f"`python -m benchmarks.scale --models {crowd.models} --events {crowd.number} --every {plan.every}` "
        "wrote this page down to [What to set](#what-to-set). Without options the command takes 1,000,000 "
        "models and 100,000,000 events. The command says first how long it takes, and goes on where it "
        "stopped.",
        f"**What ran.** One machine with {os.cpu_count()} cores and {_memory() / 1e9:.0f} GB ran everything: "
        "a Kafka broker, a Flink 1.19 session cluster, its Python workers, and the generator of events. The "
        "cluster has two TaskManagers with a slot each. It keeps state in RocksDB, and makes an incremental "
        f"checkpoint every {CHECKPOINT_SECONDS} s. Other programs used the cores too: the load was "
        f"{min(loads):.0f} to {max(loads):.0f}. So compare seconds of a processor. Seconds by the clock are "
        "upper limits.",
        f"**The events.** {crowd.models:,} models have {crowd.number:,} events over two days, in four "
        "partitions. All events were in the topic before the job began. Models are uneven: a hundredth of "
        f"the models have {mean * 5:,} events or more, and a tenth of all events. Half of the models have "
        f"{round(mean / 2**0.5)} events or fewer.",
        "**The job** is `rocsteady evaluate kafka://... --time time --window last:100 --every "
        f"{plan.every} --order time:0s --shards {plan.shards} --runner flink`, with an output to another "
        "topic.",
    )


def _memory() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _paces(done: Done) -> str:
    words = {
        "pace": "parallelism 1, undisturbed",
        "rescale": "parallelism 2, after a savepoint",
        "finish": "parallelism 2, other shards, after an import",
    }
    lines = []
    for name, said in words.items():
        python, java = (done[name][f"{kind}_seconds"] for kind in ("python", "java"))
        alone = 1e6 / max(python, java) if python else 0.0
        lines.append([said, f"{done[name]['rate']:,.0f}", f"{python:.1f}", f"{java:.1f}", f"{alone:,.0f}"])
    head = [
        "the job", "events/s by the clock", "Python, s of a processor for a million events", "Java",
        "events/s of a worker with a core, and Java with another",
    ]  # fmt: skip
    filled = done["fill"]
    return f"## Events a second\n\n{table(head, lines)}\n" + _text(
        f"The generator wrote {filled['rate']:,.0f} events/s. The topic has "
        f"{filled['topic_bytes'] / _events(done):.0f} bytes an event, compressed by lz4.",
        "Workers that start read their state first. The shorter a run is, the more of that is in the lines "
        "of parallelism 2.",
    )


def _events(done: Done) -> int:
    return int(done["finish"]["events"])


def _faults(done: Done) -> str:
    worker, manager, rescale, finish = (
        done[name] for name in ("worker", "task-manager", "rescale", "finish")
    )
    stops = [done[name]["savepoint_seconds"] for name in ("pace", "worker", "task-manager", "rescale")]
    again = "seconds until the job had read more than before the kill"
    first = "seconds from the command to the first events"
    lines = [
        ["kill -9 of the Python worker", again, f"{worker['recovery_seconds']:.0f}"],
        ["kill -9 of the TaskManager; another one had a free slot", again,
         f"{manager['recovery_seconds']:.0f}"],
        ["stop with a savepoint", "seconds, of four stops", f"{min(stops):.1f} to {max(stops):.1f}"],
        ["resume with parallelism 1", first, f"{worker['resume_seconds']:.0f}"],
        ["resume with parallelism 2", first, f"{rescale['resume_seconds']:.0f}"],
        ["`rocsteady state export` of the running job", "seconds", f"{rescale['export_seconds']:.0f}"],
        ["`rocsteady state import --shards` of the export", "seconds", f"{done['import']['seconds']:.0f}"],
        ["start with the import", first, f"{finish['resume_seconds']:.0f}"],
    ]  # fmt: skip
    return "## What was done to the job\n\n" + table(["done", "measured", "value"], lines)


def _state(plan: Plan, done: Done) -> str:
    models = plan.crowd.models
    jobs = [figures for figures in done.values() if "checkpoint_seconds" in figures]

    def most(name: str) -> float:
        return float(max(figures[name] for figures in jobs))

    lines = [
        ["state of a checkpoint", _gigabytes(most("checkpoint_bytes")),
         f"{most('checkpoint_bytes') / models:,.0f}"],
        ["written by a checkpoint", _gigabytes(most("checkpoint_new_bytes")), ""],
        ["savepoint", _gigabytes(most("savepoint_bytes")), f"{most('savepoint_bytes') / models:,.0f}"],
        ["export", _gigabytes(done["rescale"]["export_bytes"]),
         f"{done['rescale']['export_bytes'] / models:,.0f}"],
        ["memory of the Python workers", _gigabytes(most("python_bytes")), ""],
        ["memory of the import", _gigabytes(done["import"]["python_bytes"]), ""],
        ["memory of both TaskManagers", _gigabytes(most("java_bytes")), ""],
    ]  # fmt: skip
    made = sum(figures["checkpoints"] for figures in jobs)
    return f"## State and memory\n\n{table(['at its peak', 'GB', 'bytes a model'], lines)}\n" + _text(
        f"{made:,} checkpoints completed. The longest took {most('checkpoint_seconds'):.1f} s. A "
        f"TaskManager had {HEAP} MB of heap for tasks, and {MANAGED} MB for RocksDB."
    )


def _gigabytes(number: float) -> str:
    return f"{number / 1e9:.2f}"


def _rows(done: Done) -> str:
    found = done["compare"]
    names = ("rows", "repeats", "lost", "excess")
    whole = [f"{found[name]:,}" for name in names]
    drawn = [f"{found[name]:,}" for name in ("drawn_rows", "drawn_lost", "drawn_wrong")]
    of_all = ["rows of all models", "repeats dropped", "lost", "not due"]
    of_drawn = [f"rows of {found['drawn']:,} models drawn by chance", "lost", "wrong", "all equal"]
    return (
        "## Rows\n\n"
        + _text(
            "All rows are counted by model. The rows of the drawn models are compared, in every column, with "
            "the rows of the local runner over the events of these models alone."
        )
        + "\n"
        + table([*of_all, *of_drawn], [[*whole, *drawn, "yes" if found["equal"] else "**no**"]])
    )


def _costs(done: Done) -> str:
    pace, model = done["pace"], done["table"]
    lines = [
        ["an event and its part of a row, Python", f"{pace['python_seconds']:.1f} us of a core"],
        ["of these, in the table of models", f"{model['event_us']:.1f} us"],
        ["the same event, Java", f"{pace['java_seconds']:.1f} us of a core"],
        ["a model when a worker starts", f"{model['start_us']:,.0f} us of a core"],
        ["a model in a worker", f"{model['memory_bytes']:,.0f} bytes"],
        ["of these, what `--cache-bytes` counts", f"{model['live_bytes']:,.0f} bytes"],
        ["a model in a snapshot", f"{model['snapshot_bytes']:,.0f} bytes"],
        ["a worker with its readers, at its first events", f"{pace['python_start_bytes'] / 1e6:,.0f} MB"],
        ["an event in the topic", f"{done['fill']['topic_bytes'] / _events(done):.0f} bytes"],
    ]
    return (
        "## Unit costs\n\n"
        + _text(
            f"The costs of a model are those of a table of {model['models']:,} models in a process of its "
            f"own, with {model['held']:.0f} events in a window on average."
        )
        + "\n"
        + table(["what", "cost"], lines)
    )


def _sums(plan: Plan, done: Done) -> str:
    pace, model = done["pace"], done["table"]
    rate = _DAY / 86_400
    cores = rate * (pace["python_seconds"] + pace["java_seconds"]) / 1e6
    wanted = math.ceil(cores * _PEAK / _LOAD)
    workers = math.ceil(wanted / 2)
    start = pace["python_start_bytes"]
    memory = _MODELS * model["memory_bytes"] + workers * start
    topic = done["fill"]["topic_bytes"] / _events(done) * _DAY
    lines = [
        ["events a second, on average", f"10^9 / 86,400 s = {rate:,.0f}", f"{_PEAK} times that at the peak"],
        ["cores for events and their rows, on average",
         f"{rate:,.0f} x ({pace['python_seconds']:.1f} + {pace['java_seconds']:.1f}) us", f"{cores:.2f}"],
        ["**cores of the cluster**", f"at the peak, each {_LOAD:.0%} busy", f"**{wanted}**"],
        ["start of the job with its state",
         f"10^6 x {model['start_us']:,.0f} us / {workers} worker{'s' * (workers > 1)}",
         f"{_MODELS * model['start_us'] / 1e6 / workers:.0f} s"],
        ["memory of the workers",
         f"10^6 x {model['memory_bytes']:,.0f} bytes + {workers} x {start / 1e6:,.0f} MB",
         f"{memory / 1e9:.1f} GB"],
        ["state in snapshots", f"10^6 x {model['snapshot_bytes']:,.0f} bytes",
         f"{_MODELS * model['snapshot_bytes'] / 1e9:.1f} GB"],
        ["topic of events, a day", f"10^9 x {topic / _DAY:.0f} bytes", f"{topic / 1e9:.0f} GB"],
        ["rows, a day", f"10^9 / {plan.every} x {_ROW_BYTES} bytes",
         f"{_DAY / plan.every * _ROW_BYTES / 1e9:.0f} GB as JSON"],
    ]  # fmt: skip
    return (
        "## 10^9 events a day\n\n"
        + _text(
            "What a cluster needs by these unit costs, for a million models, windows `last:100` and a row "
            f"every {plan.every} events:"
        )
        + "\n"
        + table(["part", "sum", "needs"], lines)
    )
