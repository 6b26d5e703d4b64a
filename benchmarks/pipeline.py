"""The command beside a pipeline that does nothing, and its peers: python -m benchmarks.pipeline [--quick].

Every run is a process of its own, so that its time is what a user waits for and its peak memory its own.
Contenders take turns, and ratios are medians within a turn: a busy machine slows them all.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from statistics import median

from .pages import with_commit
from .processes import (
    ROOT,
    SLOW_SECONDS,
    Contender,
    Run,
    Runs,
    command,
    contender,
    cpu,
    megabytes,
    ratio,
    seconds,
    table,
    take_turns,
)

NEVER = "1000000000"


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    events: int
    models: tuple[int, ...]
    middle: int
    shards: tuple[int, ...]
    repeat: int


WHOLE = Sizes(10_000_000, (1, 1000, 10_000, 100_000), 1000, (1, 64, 256), 3)
QUICK = Sizes(1_000_000, (1, 200), 200, (1, 64), 1)


class Files:
    """The files of a benchmark: events as Parquet, made when they are first asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._warm: set[tuple[str, ...]] = set()

    def events(self, n: int, models: int, layout: str = "random") -> str:
        path = self.folder / f"{n}-{models}-{layout}.parquet"
        if not path.exists():
            contender("generate", str(path), str(n), str(models), layout)
        return str(path)

    def one(self) -> str:
        return self.events(1, 1)

    def output(self, name: str) -> str:
        return str(self.folder / name)

    def warm_up(self, *options: str) -> None:
        """Let the kernels of some options be compiled, if they are not."""
        if options not in self._warm:
            self._warm.add(options)
            evaluate(self.one(), self, *options)


def evaluate(path: str, files: Files, *options: str) -> Run:
    output = files.output(f"rows-of-{Path(path).stem}.parquet")
    return command("evaluate", path, *options, "--output", output)


def window_of(n: int, models: int) -> int:
    """Half of a model's events, so that every model evicts, and no more than 1,000."""
    return max(1, min(1000, n // models // 2))


# ---- the sections; what they reach is gathered in `reached`


def start_up(files: Files, sizes: Sizes, reached: dict[str, float]) -> Iterator[str]:
    yield "## Start-up\n"
    yield (
        "The commands on a file of one event, kernels compiled before: the median and, of memory, the most. "
        "Seconds by the clock and of processor time; MB of resident memory at the peak.\n"
    )
    options = ("--window", "last:1000", "--every", "1000")
    files.warm_up(*options)
    one = files.one()
    runs = take_turns(
        {
            "`rocsteady --help`": lambda: command("--help"),
            "`import apache_beam`": lambda: contender("beam"),
            "read only": lambda: contender("read", one, "64"),
            "no-op": lambda: contender("no_op", one, "64", "1000"),
            "`rocsteady evaluate`": lambda: evaluate(one, files, *options),
        },
        2 * sizes.repeat - 1,
    )
    reached["help"] = seconds(runs["`rocsteady --help`"])
    yield table(
        ["", "seconds", "processor", "MB"],
        [
            [name, f"{seconds(of):.2f}", f"{cpu(of):.2f}", megabytes(of)]
            for name, of in runs.items()
        ],
    )  # fmt: skip


def layers(path: str, files: Files, sizes: Sizes, window: int, models: int, shards: int) -> Runs:
    """Full, no-op and read-only runs on one file, and in the same turns their twins on one event."""
    options = ("--window", f"last:{window}", "--every", f"{window}", "--shards", f"{shards}")
    files.warm_up(*options)
    held = str(max(1, window * models // shards))
    contenders: dict[str, Contender] = {}
    for twin, file in (("", path), (" start", files.one())):
        contenders["full" + twin] = partial(evaluate, file, files, *options)
        contenders["no-op" + twin] = partial(contender, "no_op", file, str(shards), held)
        contenders["read" + twin] = partial(contender, "read", file, str(shards))
    runs = take_turns(contenders, sizes.repeat)
    for name, count in (("no-op", "events_applied"), ("read", "events_read")):
        if (found := runs[name][0].said[count]) != sizes.events:
            raise SystemExit(f"{name}: {found} events of {sizes.events}")
    return runs


def net(runs: Runs, name: str) -> list[float] | None:
    """Processor seconds of each turn without the start-up of that turn; None where they do not stand out."""
    pairs = list(zip(runs[name], runs[f"{name} start"], strict=False))
    if any(whole.cpu - start.cpu < start.cpu / 4 for whole, start in pairs):
        return None
    return [whole.cpu - start.cpu for whole, start in pairs]


def cells_of(runs: Runs, n: int, reached: dict[str, float], key: str) -> list[str]:
    times = {name: net(runs, name) for name in ("full", "no-op", "read")}
    full, no_op = times["full"], times["no-op"]
    share = "-"
    if full:
        reached[f"rate {key}"] = n / median(full)
        if no_op:
            reached[f"share {key}"] = median(b / a for a, b in zip(full, no_op, strict=False))
            share = f"{reached[f'share {key}']:.0%}"
    return [
        *(f"{n / median(of):,.0f}" if of else "-" for of in times.values()),
        share,
        f"{cpu(runs['full']):.1f}",
        f"{seconds(runs['full']):.1f}",
        megabytes(runs["full"]),
    ]


LAYERS = ["full, events/s", "no-op", "read only", "full / no-op", "full: processor s", "clock s", "MB"]


def by_models(files: Files, sizes: Sizes, reached: dict[str, float]) -> Iterator[str]:
    n = sizes.events
    yield "\n## By number of models\n"
    yield (
        f"{n:,} events in one Parquet file (model, score, label; AUC about 0.75), every model with as many, "
        "interleaved at random, or in blocks: one model's events after the other's. Windows are so small "
        "that every model evicts, and `--every` is the window: a row per window's worth of events and a last "
        "one, with every default measure; 64 shards. Full: `rocsteady evaluate`. No-op: the same pipeline "
        "with a machine that only counts, whose snapshots are as large as the windows. Read only: files to "
        "packets (read, validate, pack, shard). Events/s are those of processor time, net of what the same "
        "run on one event takes in the same turn: the runner works on one core, and waiting for a busy "
        "machine is not counted. A dash: the run does not stand out from its start-up by a quarter of that.\n"
    )
    out = []
    cases = [(m, "random") for m in sizes.models]
    cases += [(m, "blocks") for m in dict.fromkeys((sizes.middle, sizes.models[-1]))]
    for m, layout in cases:
        window = window_of(n, m)
        print(f"{m:,} models, {layout}", flush=True)
        runs = layers(files.events(n, m, layout), files, sizes, window, m, 64)
        shown = f"{m:,}" + (", blocks" if layout == "blocks" else "")
        out.append([shown, f"last:{window}", *cells_of(runs, n, reached, f"{m} {layout}")])
    yield table(["models", "window, every", *LAYERS], out)


def by_shards(files: Files, sizes: Sizes, reached: dict[str, float]) -> Iterator[str]:
    n, m = sizes.events, sizes.middle
    window = window_of(n, m)
    yield "\n## By shards\n"
    yield f"The same {n:,} events of {m:,} models interleaved at random, last:{window}, every {window}.\n"
    out = []
    for shards in sizes.shards:
        print(f"{shards} shards", flush=True)
        runs = layers(files.events(n, m), files, sizes, window, m, shards)
        out.append([f"{shards}", *cells_of(runs, n, reached, f"shards {shards}")])
    yield table(["shards", *LAYERS], out)


TOKEN_BYTES = 16


def state(files: Files, sizes: Sizes) -> Iterator[str]:
    yield "\n## State bytes written per event byte\n"
    yield (
        "By the job's metrics: bytes of logs, snapshots and tokens, against the bytes of the packed records "
        "that brought the events. A packet is what a chunk of the file holds for a shard.\n"
    )
    m, n = sizes.middle, sizes.events
    window = window_of(n, m)
    out = []
    for models, form, shards in (
        (1, f"last:{window}", 1), (m, f"last:{window}", 1), (m, f"last:{window}", 64),
        (m, f"last:{window}", 1024), (m, "all", 64),
    ):  # fmt: skip
        path = files.events(n, models)
        read = contender("read", path, f"{shards}").said
        every = f"{window}" if form != "all" else NEVER
        files.warm_up("--window", form, "--every", every)
        counts = contender("state", path, form, every, f"{shards}", files.output("rows.parquet")).said
        base, packets = read["packet_bytes"], read["packets"]  # with a word to each shard that the file ended
        parts = [counts.get("log_bytes", 0), counts.get("snapshot_bytes", 0), TOKEN_BYTES * packets]
        out.append(
            [f"{models:,}", form, f"{shards}", f"{n / (packets - shards):,.0f}", f"{base / n:.1f}"]
            + [f"{part / base:.2f}" for part in parts]
            + [f"**{sum(parts) / base:.2f}**", f"{counts.get('snapshots_written', 0):,}"]
        )
    head = ["models", "window", "shards", "events a packet", "packed bytes an event"]
    yield table([*head, "log", "snapshots", "tokens", "all", "snapshots written"], out)


PEERS = ("polars", "duckdb", "scikit_learn", "scikit_learn_row")
SHOWN = {
    "auc": "rocsteady, `--measures auc` (with interval)",
    "all": "rocsteady, its default row",
    "polars": "polars, AUC alone",
    "duckdb": "DuckDB, AUC alone",
    "scikit_learn": "pandas + scikit-learn, AUC alone",
    "scikit_learn_row": "pandas + scikit-learn, the 15 numbers of our row that it has",
}


def peers(
    files: Files, sizes: Sizes, models: int, reached: dict[str, float], others: tuple[str, ...] = PEERS
) -> Iterator[str]:
    n = sizes.events
    path = files.events(n, models)
    yield f"\n## One file, one row per model: {models:,} models\n"
    yield (
        f"{n:,} events, interleaved at random; from the start of the process to its end, imports and reading "
        "included, and net of imports (for us: of the command on one event in the same turn). All AUCs are "
        "equal to 1e-9. "
        "Ours: `rocsteady evaluate FILE --window all --every 1000000000 --output rows.parquet`.\n"
    )
    whole = ("--window", "all", "--every", NEVER)
    contenders: dict[str, Contender] = {
        "auc": lambda: evaluate(path, files, *whole, "--measures", "auc"),
        "all": lambda: evaluate(path, files, *whole),
        "start": lambda: evaluate(files.one(), files, *whole),
    }
    missing = [peer for peer in others if not importable(peer)]
    for peer in others:
        if peer not in missing:
            contenders[peer] = partial(contender, peer, path, files.output(f"{peer}.json"))
    files.warm_up(*whole)
    files.warm_up(*whole, "--measures", "auc")
    runs = take_turns(contenders, sizes.repeat)
    start = runs.pop("start")
    check_equal(files, path, [peer for peer in others if peer in runs], models)
    out = []
    for name, of in runs.items():
        ours = name in ("auc", "all")
        rest = (
            [a.wall - b.wall for a, b in zip(of, start, strict=False)]
            if ours
            else [a.said["net"] for a in of]
        )
        reached[f"{models} {name}"] = ratio(runs["all"], of)
        times = [f"{value:.2f}" for value in (seconds(of), median(rest), cpu(of))]
        reached[f"{models} {name} cpu"] = median(a.cpu / b.cpu for a, b in zip(runs["all"], of, strict=False))
        out.append([SHOWN[name], *times, f"{ratio(of, runs['all']):.2f}x", megabytes(of)])
    out += [[SHOWN[peer], "not installed", "", "", "", ""] for peer in missing]
    yield table(["", "seconds", "net of imports", "processor", "to our default row", "MB"], out)


def importable(peer: str) -> bool:
    needed = {"scikit_learn": ("pandas", "scikit-learn"), "scikit_learn_row": ("pandas", "scikit-learn")}
    try:
        for distribution in needed.get(peer, (peer,)):
            metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def check_equal(files: Files, path: str, names: list[str], models: int) -> None:
    """Raise SystemExit unless every contender gives the same AUC for every model, to 1e-9."""
    contender("aucs_of_rows", files.output(f"rows-of-{Path(path).stem}.parquet"), files.output("ours.json"))
    ours = json.loads(Path(files.output("ours.json")).read_text())
    if len(ours) != models:
        raise SystemExit(f"rocsteady gives {len(ours)} models of {models}")
    for name in names:
        other = json.loads(Path(files.output(f"{name}.json")).read_text())
        worst = max(abs(ours[model] - other[model]) for model in ours)
        if len(other) != models or not worst <= 1e-9:
            raise SystemExit(f"{name} differs by {worst} ({len(other)} models)")


def asked(sizes: Sizes, reached: dict[str, float]) -> Iterator[str]:
    """What was asked for and what was reached; a figure that could not be had is said to be missing."""
    yield "\n## What it is held to\n"
    yield "Peers by the clock, from start to end of the process; in brackets by processor time.\n"
    m, most = sizes.middle, sizes.models[-1]
    fastest = max(PEERS[:2], key=lambda peer: reached.get(f"{m} {peer}", 0.0))

    def beside(peer: str, inverse: bool) -> tuple[float | None, str]:
        wall, processor = reached.get(f"{m} {peer}"), reached.get(f"{m} {peer} cpu")
        if wall is None or processor is None:
            return None, ""
        wall, processor = (1 / wall, 1 / processor) if inverse else (wall, processor)
        return wall, f"{wall:.2f}x ({processor:.2f}x)"

    def figure(key: str, form: str) -> tuple[float | None, str]:
        value = reached.get(key)
        return value, "" if value is None else form.format(value)

    rows = [
        (f"events/s with {m:,} models", "1,000,000 or more", figure(f"rate {m} random", "{:,.0f}"), 1e6),
        ("of the no-op pipeline's", "40% or more", figure(f"share {m} random", "{:.0%}"), 0.4),
        (f"events/s with {most:,} models", "200,000 or more", figure(f"rate {most} random", "{:,.0f}"), 2e5),
        ("speed to pandas + scikit-learn, AUC alone", "10x or more", beside("scikit_learn", True), 10.0),
        (f"time to {fastest}, AUC alone", "3x or less", beside(fastest, False), -3.0),
        ("`rocsteady --help`", "under 0.5 s", figure("help", "{:.2f} s"), -0.5),
    ]
    out = []
    for what, wanted, (value, shown), bound in rows:
        met = "not measured"
        if value is not None:
            met = "yes" if (value >= bound if bound > 0 else value <= -bound) else "**no**"
        out.append([what, wanted, shown, met])
    yield table(["", "asked", "measured", "met"], out)


def machine(sizes: Sizes) -> str:
    cpuinfo = Path("/proc/cpuinfo")
    name = platform.processor()
    if cpuinfo.exists():
        names = [
            line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line
        ]
        name = names[0] if names else name
    versions = []
    for distribution in ("apache-beam", "numpy", "pyarrow", "duckdb", "pandas", "polars", "scikit-learn"):
        try:
            versions.append(f"{distribution} {metadata.version(distribution)}")
        except metadata.PackageNotFoundError:
            versions.append(f"no {distribution}")
    times = {1: "Once each", 3: "Medians of three runs"}.get(sizes.repeat, f"Medians of {sizes.repeat} runs")
    load = f"{os.getloadavg()[0]:.1f} at the start"
    return (
        f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}, {', '.join(versions)}. "
        f"{times}, once where a run takes longer than {SLOW_SECONDS:.0f} s, each a process of its own, in "
        f"turns; load of the machine {load}. Beam's in-process runner works on one core, polars and DuckDB "
        "on all.\n"
    )


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few events, one turn; a minute")
    parser.add_argument("--repeat", type=int, help="turns [3]")
    default = ROOT / "docs" / "benchmarks" / "pipeline.md"
    parser.add_argument("--output", type=Path, default=default)
    options = parser.parse_args(arguments)
    sizes = QUICK if options.quick else WHOLE
    if options.repeat:
        sizes = Sizes(sizes.events, sizes.models, sizes.middle, sizes.shards, options.repeat)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    reached: dict[str, float] = {}
    parts = ["# The pipeline, measured\n", machine(sizes)]
    with tempfile.TemporaryDirectory(prefix="rocsteady-benchmark-") as folder:
        files = Files(Path(folder))
        sections = [
            start_up(files, sizes, reached),
            peers(files, sizes, sizes.middle, reached),
            by_models(files, sizes, reached),
            by_shards(files, sizes, reached),
            state(files, sizes),
        ]
        if not options.quick:  # the last peer would take half an hour; what is asked for is about these sizes
            sections += [peers(files, sizes, sizes.models[-1], reached, PEERS[:3]), asked(sizes, reached)]
        for section in sections:
            for part in section:
                parts.append(part)
                print(part, flush=True)
                # what was measured stays if the rest is not
                options.output.write_text(with_commit("\n".join(parts)))


if __name__ == "__main__":
    main(sys.argv[1:])
