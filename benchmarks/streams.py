"""Order of time beside order of position, and labels that are joined: python -m benchmarks.streams [--quick].

Every run is a process of its own. Contenders take turns, and a ratio is the median over turns that followed
each other: a busy machine slows them all.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from statistics import median

from .pages import with_commit
from .processes import ROOT, Contender, Run, Runs, command, cpu, megabytes, run, seconds, table, take_turns

PER_DAY = 200_000
TTL_SECONDS = 86_400

Reached = dict[str, float]


@dataclass(frozen=True)
class Sizes:
    """How much is measured; cases are (models, displaced by minutes or "shuffled", ending)."""

    events: int
    cases: tuple[tuple[int, str, str], ...]
    joins: tuple[tuple[int, int, int, str], ...]  # pairs, models, characters of an id, layout
    alone: tuple[int, ...]
    waiting: int
    repeat: int


WHOLE = Sizes(
    5_000_000,
    (
        (1, "5", "parquet"), (100, "5", "parquet"), (1000, "5", "parquet"), (1, "shuffled", "parquet"),
        (1, "5", "csv"), (1000, "5", "csv"), (1, "5", "csv.gz"),
    ),
    (
        (5_000_000, 1, 16, "sorted"), (5_000_000, 100, 26, "sorted"), (5_000_000, 1, 16, "shuffled"),
    ),
    (1_000_000, 3_000_000, 6_000_000, 12_000_000),
    1_000_000,
    3,
)  # fmt: skip
QUICK = Sizes(
    500_000,
    ((1, "5", "parquet"), (100, "5", "csv")),
    ((200_000, 1, 16, "sorted"),),
    (200_000, 400_000),
    100_000,
    1,
)


class Files:
    """The files of a benchmark, made when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def events(self, n: int, models: int, minutes: str, ending: str) -> str:
        path = self.folder / f"{n}-{models}-{minutes}.{ending}"
        if not path.exists():
            contender("events", str(path), str(n), str(models), minutes)
        return str(path)

    def pairs(self, n: int, models: int, width: int, layout: str) -> Path:
        folder = self.folder / f"pairs-{n}-{models}-{width}-{layout}"
        if not folder.exists():
            contender("pairs", str(folder), str(n), str(models), str(width), layout)
        return folder


def contender(*words: str) -> Run:
    return run(sys.executable, "-m", "benchmarks.stream_contenders", *words)


ROWS = ("--window", "last:10000", "--every", "1000")


def in_order(path: str, order: str) -> Run:
    return command(
        "evaluate", path, "--time", "t", "--order", order, *ROWS, "--output", f"{path}.rows.parquet"
    )


def joined(folder: Path, *options: str) -> Run:
    return command(
        "evaluate", f"{folder}/predictions.parquet", "--labels", f"{folder}/labels.parquet", "--id", "id",
        "--time", "t", "--label-time", "l", "--ttl", f"{TTL_SECONDS}s", *ROWS, *options,
        "--output", f"{folder}/rows.parquet",
    )  # fmt: skip


def both(*parts: Contender) -> Run:
    """One program after the other, as one."""
    runs = [part() for part in parts]
    most = max(each.megabytes for each in runs)
    return Run(sum(each.wall for each in runs), sum(each.cpu for each in runs), most, runs[0].said)


def times(of: list[Run], base: list[Run]) -> str:
    """Processor time to that of another in the same turn, and by the clock."""
    pairs = list(zip(of, base, strict=False))
    return f"{median(a.cpu / b.cpu for a, b in pairs):.2f} ({median(a.wall / b.wall for a, b in pairs):.2f})"


def net(runs: Runs, name: str) -> list[float]:
    """Processor seconds of each turn without the start-up of that turn."""
    return [a.cpu - b.cpu for a, b in zip(runs[name], runs["start"], strict=False)]


def order(files: Files, sizes: Sizes, reached: Reached) -> Iterator[str]:
    n = sizes.events
    yield "\n## Order of time beside order of position\n"
    yield (
        f"`rocsteady evaluate FILE --time t --order ORDER {' '.join(ROWS)}` on {n:,} events, {PER_DAY:,} a "
        "day, each displaced by up to so many minutes. Processor seconds of the whole command, and the "
        "ratio of order by time to order by position; in brackets the ratio by the clock. *Net* is the "
        "ratio after the time for a file of one event, in the same turn, is subtracted from both. "
        "Memory is the peak.\n"
    )
    out = []
    for models, minutes, ending in sizes.cases:
        path, one = files.events(n, models, minutes, ending), files.events(1, 1, "0", ending)
        print(f"{models:,} models, {minutes} minutes, {ending}", flush=True)
        nearly = minutes != "shuffled"
        contenders = {
            "start": partial(in_order, one, "position"),
            "position": partial(in_order, path, "position"),
            "time": partial(in_order, path, "time"),
        }
        if nearly:  # of a shuffled file nearly everything would be late, and be written about
            contenders["time:10m"] = partial(in_order, path, "time:10m")
        runs = take_turns({**contenders}, sizes.repeat)
        alone = median(a / b for a, b in zip(net(runs, "time"), net(runs, "position"), strict=False))
        whole = median(a.cpu / b.cpu for a, b in zip(runs["time"], runs["position"], strict=False))
        if nearly:
            reached["order"] = max(reached.get("order", 0.0), whole)
            reached["order net"] = max(reached.get("order net", 0.0), alone)
        out.append(
            [ending, f"{models:,}", minutes]
            + [f"{cpu(runs[name]):.1f}" for name in ("position", "time")]
            + [f"**{times(runs['time'], runs['position'])}**", f"{alone:.2f}"]
            + [times(runs["time:10m"], runs["position"]) if nearly else "-"]
            + [" / ".join(megabytes(runs[name]) for name in ("position", "time"))]
        )
    head = [
        "file",
        "models",
        "minutes",
        "position",
        "time",
        "time to position",
        "net",
        "time:10m to position",
    ]
    yield table([*head, "MB"], out)


PEERS = ("polars", "duckdb")


def join(files: Files, sizes: Sizes, reached: Reached) -> Iterator[str]:
    yield "\n## Labels that come later\n"
    yield (
        "`rocsteady evaluate predictions.parquet --labels labels.parquet --id id --time t --label-time l "
        "--ttl "
        f"{TTL_SECONDS}s ...`: labels come two hours after their predictions on average (exponential), ids "
        f"are "
        "random hexadecimal digits. Files in the order of their times, or in none. For comparison, "
        "polars and DuckDB join both files at once, drop pairs that are older than the time to live, "
        "sort by the labels' times and write a file. `rocsteady evaluate` then reads this file by "
        "position, and the last rows must be equal. Pairs/s by processor time of the whole command, and "
        "net of what it takes on 1,000 pairs in "
        "the "
        "same turn; the contenders' processor seconds to ours, in brackets by the clock.\n"
    )
    out = []
    for n, models, width, layout in sizes.joins:
        folder, one = files.pairs(n, models, width, layout), files.pairs(1_000, 1, width, layout)
        print(f"{n:,} pairs, {models:,} models, {width}, {layout}", flush=True)
        contenders: dict[str, Contender] = {
            "start": partial(joined, one),
            "ours": partial(joined, folder),
            "lead 0": partial(joined, folder, "--label-lead", "0s"),
        }
        for peer in PEERS:
            if installed(peer):
                read = partial(
                    command, "evaluate", f"{folder}/{peer}.parquet", "--time", "l", "--order", "position",
                    *ROWS, "--output", f"{folder}/{peer}-rows.parquet",
                )  # fmt: skip
                contenders[peer] = partial(
                    both, partial(contender, peer, str(folder), str(TTL_SECONDS)), read
                )
        runs = take_turns(contenders, sizes.repeat)
        check_equal(folder, [peer for peer in PEERS if peer in runs])
        rate = n / median(net(runs, "ours"))
        reached["pairs"] = min(reached.get("pairs", float("inf")), n / cpu(runs["ours"]))
        out.append(
            [f"{n:,}", f"{models:,}", f"{width}", layout]
            + [f"**{n / cpu(runs['ours']):,.0f}**", f"{rate:,.0f}", f"{seconds(runs['ours']):.1f}"]
            + [times(runs["lead 0"], runs["ours"])]
            + [times(runs[peer], runs["ours"]) if peer in runs else "not installed" for peer in PEERS]
            + [megabytes(runs["ours"])]
        )
    head = [
        "pairs",
        "models",
        "id",
        "files",
        "pairs/s",
        "net",
        "clock s",
        "lead 0 to ours",
        "polars",
        "DuckDB",
    ]
    yield table([*head, "MB"], out)


def check_equal(folder: Path, peers: list[str]) -> None:
    """Raise SystemExit unless the last rows say the same, whoever joined."""
    ours = contender("last_row", f"{folder}/rows.parquet").said
    for peer in peers:
        theirs = contender("last_row", f"{folder}/{peer}-rows.parquet").said
        if theirs != ours:
            raise SystemExit(f"{peer} gives {theirs} where rocsteady gives {ours}")


def installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def bounded(files: Files, sizes: Sizes) -> Iterator[str]:
    yield "\n## What a join holds, as the files grow\n"
    yield (
        "The reader that merges both files by time and 16 joins, without a runner: what waits at the most, "
        "as "
        "the joins account for it, and the process's memory at its peak, beside what the command takes. "
        f"{PER_DAY:,} predictions a day and a time to live of a day, so that {PER_DAY:,} ids are known at "
        f"once. "
        "The time to live bounds all of this. Memory grows at first because the allocators of Python "
        "and Arrow keep memory for pieces of a million rows.\n"
    )
    out = []
    for n in sizes.alone:
        folder = files.pairs(n, 1, 16, "sorted")
        cells = [f"{n:,}"]
        for lead in ("1d", "0s"):
            alone = contender("join_alone", str(folder), "1d", lead)
            cells += [
                f"{alone.said['waiting']:,}",
                f"{alone.said['live'] / 1e6:.0f}",
                f"{alone.megabytes:,.0f}",
            ]
        out.append([*cells, f"{joined(folder).megabytes:,.0f}"])
    head = ["pairs", "lead 1d: entries", "MB of the joins", "MB of the process", "lead 0: entries"]
    yield table([*head, "MB of the joins", "MB of the process", "MB of the command"], out)


def waiting(sizes: Sizes, reached: Reached) -> Iterator[str]:
    n = sizes.waiting
    yield "\n## State\n"
    yield (
        f"Bytes for each of {n:,} predictions that wait, of 100 models, with their places in the file, "
        f"beside the "
        "bytes of their ids: stored (`LabelJoin.to_bytes`), and in memory as the join accounts for it, where "
        "an id "
        "is kept twice.\n"
    )
    out = []
    for width in (16, 26):
        said = contender("waiting", str(n), str(width), "100", "first").said
        stored, live = said["stored"] - width, said["live"] - 2 * width
        reached["state"] = max(reached.get("state", 0.0), stored)
        out.append([f"{width} bytes", f"**{stored:.1f}**", f"{live:.1f}"])
    yield table(["id", "stored", "in memory"], out)


def asked(reached: Reached) -> str:
    """What was asked for and what was reached."""
    rows = [
        (
            "time to position, whole command, the worst nearly sorted file",
            "1.5 or less",
            reached["order"],
            1.5,
            ".2f",
        ),
        ("the same, net of start-up", "1.5 or less", reached["order net"], 1.5, ".2f"),
        (
            "pairs/s, whole command, the slowest of the large files",
            "300,000 or more",
            -reached["pairs"],
            -3e5,
            ",.0f",
        ),
        ("bytes of state a waiting prediction, beside its id", "64 or less", reached["state"], 64.0, ".0f"),
    ]
    out = [
        [what, wanted, format(abs(value), form), "yes" if value <= bound else "**no**"]
        for what, wanted, value, bound, form in rows
    ]
    return "\n## What it is held to\n\n" + table(["", "asked", "measured", "met"], out)


def machine(sizes: Sizes) -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    versions = [
        f"{name} {metadata.version(name)}" if installed(name) else f"no {name}"
        for name in ("apache-beam", "numpy", "pyarrow", *PEERS)
    ]
    runs = "Once each" if sizes.repeat == 1 else f"Medians of {sizes.repeat} runs"
    return (
        f"{(names or [platform.processor()])[0]}, {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, "
        f"{', '.join(versions)}. {runs}, each a process of its own, in turns; load of the machine "
        f"{os.getloadavg()[0]:.1f} at the start. Beam's in-process runner works on one core, polars and "
        f"DuckDB on "
        "all.\n"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few events, one turn; a minute or two")
    parser.add_argument("--repeat", type=int, help="turns [3]")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks" / "streams.md")
    options = parser.parse_args(arguments)
    sizes = QUICK if options.quick else WHOLE
    if options.repeat:
        sizes = Sizes(**{**sizes.__dict__, "repeat": options.repeat})
    began, reached = time.perf_counter(), Reached()
    said = (
        "`python -m benchmarks.streams` wrote this page; [streams.md](../streams.md) says what it is about."
    )
    parts = ["# Streams, measured\n", f"{said}\n", machine(sizes)]
    with tempfile.TemporaryDirectory(prefix="rocsteady-benchmark-") as folder:
        files = Files(Path(folder))
        sections = (
            order(files, sizes, reached), join(files, sizes, reached), bounded(files, sizes),
            waiting(sizes, reached),
        )  # fmt: skip
        for section in sections:
            for part in section:
                parts.append(part)
                print(part, flush=True)
                # what was measured stays if the rest is not
                options.output.write_text(with_commit("\n".join(parts)))
    parts.append(asked(reached))
    parts.append(f"It took {(time.perf_counter() - began) / 60:.0f} minutes.\n")
    options.output.write_text(with_commit("\n".join(parts)))


if __name__ == "__main__":
    main()
