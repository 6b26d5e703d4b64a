"""The first minute, measured: python -m benchmarks.start [--demo] [--tests].

Measures the processor time that each window needs from an empty cache, by kernel and in all, and what
`rocsteady evaluate` costs beside `import apache_beam`. With --demo it also runs the demo twice, and
with --tests the plain tests. It writes docs/benchmarks/start.md; the machine should be idle.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from .pages import with_commit
from .processes import COMMAND, ROOT, Run, command, cpu, run, table, take_turns

PAGE = ROOT / "docs" / "benchmarks" / "start.md"
WINDOWS = {
    "`last:10000`, the default": "LastEvents(10_000)",
    "`last:7d`": "LastDuration('7d')",
    "`adaptive`": "Adaptive()",
    "`fading:10000`": "Fading(10_000)",
    "`all`": "AllEvents()",
}
REPEAT = 3
BEFORE = {
    "`last:10000`, the default": 25.9,
    "`fading:10000`": 31.7,
    "`rocsteady evaluate` of one event": 2.4,
    "The demo from an empty cache": 108,
    "The demo the second run": 14,
    "The plain tests from an empty cache": 418,
    "The plain tests the second run": 361,
}
"""Figures of commit 20d898a, before the work that this page measures, on a machine of the same kind.

Seconds of processor time of a window, the command's ratio to `import apache_beam`, and seconds by the clock.
"""

PARTS = ("apache_beam", "grpc", "numba", "numpy", "pandas", "pyarrow", "rocsteady", "scipy")
"""Packages whose imports the page tells apart."""


def compiled(window: str) -> None:
    """Print as JSON what the kernels of a window take to compile.

    total      seconds of processor time
    seconds    of each kernel that Python calls, with the helpers that are compiled for it first
    functions  how many functions are compiled for each of these kernels
    several    functions of the package that are compiled for several combinations of types, and for how many
    """
    # imported here: the memory of the runs that are measured begins with that of this process
    import numpy as np
    from numba.core import event
    from rocsteady.core.evaluator.evaluator import ModelEvaluator
    from rocsteady.core.settings import windows

    seconds, functions, types = Counter[str](), Counter[str](), Counter[str]()
    began: list[tuple[str, float]] = []

    class Listener(event.Listener):
        """Charges what is compiled to the kernel that Python called."""

        def on_start(self, event: event.Event) -> None:
            function = event.data["dispatcher"].py_func
            began.append((function.__name__, time.process_time()))
            if function.__module__.startswith("rocsteady."):
                types[f"{function.__module__.removeprefix('rocsteady.core.')}.{function.__name__}"] += 1

        def on_end(self, event: event.Event) -> None:  # noqa: ARG002
            name, start = began.pop()
            kernel = began[0][0] if began else name
            functions[kernel] += 1
            if not began:
                seconds[name] += time.process_time() - start

    event.register("numba:compile", Listener())
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(0, 2, 30_000), rng.random(30_000)
    start = time.process_time()
    made = ModelEvaluator(window=eval(window, vars(windows)), every=windows.EveryEvents(100))
    made.update(labels, scores, times=np.arange(30_000).astype("datetime64[s]"))
    made.measures()
    total = time.process_time() - start
    several = {name: number for name, number in types.items() if number > 1}
    print(json.dumps({"total": total, "seconds": seconds, "functions": functions, "several": several}))


@contextmanager
def cache_of_its_own(folder: Path, like: str | None = None) -> Iterator[str]:
    """Give processes that begin now a new cache, of kernels and of the demo's predictions; yield its folder.

    like  a cache to begin with a copy of; else the new cache is empty
    """
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        if like is not None:
            shutil.copytree(like, cache, dirs_exist_ok=True)
        os.environ.pop("NUMBA_CACHE_DIR", None)
        os.environ |= {"ROCSTEADY_CACHE_DIR": cache, "XDG_CACHE_HOME": cache}
        try:
            yield cache
        finally:
            os.environ.clear()
            os.environ |= before


def compile_tables(folder: Path) -> str:
    """Measure what windows take to compile; return a table by window, and one by kernel of the default."""
    default, *others = WINDOWS
    alone, beside = {}, {}
    with cache_of_its_own(folder) as cache:
        alone[default] = run_compile(default)
        loaded = run_compile(default)["total"]
        for name in others:
            with cache_of_its_own(folder, like=cache):
                beside[name] = run_compile(name)["total"] - loaded
    for name in others:
        with cache_of_its_own(folder):
            alone[name] = run_compile(name)
    of_windows = [
        [name, f"{each['total']:.1f}", to_before(name, each["total"]), str(sum(each["functions"].values())),
         f"{beside[name]:.1f}" if name in beside else ""]
        for name, each in alone.items()
    ]  # fmt: skip
    of_kernels = [
        [f"`{name}`", f"{of:.1f}", str(alone[default]["functions"][name])]
        for name, of in sorted(alone[default]["seconds"].items(), key=lambda pair: -pair[1])
    ]
    return (
        "## Compiling, from an empty cache\n\nSeconds of processor time until 30,000 events have rows, a row "
        "for every 100 events. *Alone* begins with an empty cache. *Beside the default* begins with the "
        "kernels of the default in the cache, and says how many seconds more than the default the "
        "window then takes.\n\n"
        + table(["window", "alone", "to before", "functions compiled", "beside the default"], of_windows)
        + "\nThe kernels of the default window, each with the helpers that are compiled for it first:\n\n"
        + table(["kernel", "seconds", "functions"], of_kernels)
    )


def run_compile(name: str) -> dict[str, Any]:
    """Compile a window in a process of its own, into the present cache."""
    said = run(sys.executable, "-m", "benchmarks.start", "--compile", WINDOWS[name]).said
    print(f"  {name}: {said['total']:.1f} s", flush=True)
    return said


def to_before(name: str, value: float) -> str:
    """Return the ratio of a figure to that of before, where there is one."""
    return f"{value / BEFORE[name]:.2f}x" if name in BEFORE else ""


def start_table(folder: Path) -> str:
    """Measure the start of the command, kernels compiled before."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # it would have every start compile our modules again
    one = folder / "one.csv"
    one.write_text("model,score,label\na,0.5,1\n")
    evaluate = ("evaluate", str(one), "--output", str(folder / "rows.jsonl"))
    command(*evaluate)
    runs = take_turns(
        {
            "`import apache_beam`": lambda: run(sys.executable, "-c", "import apache_beam"),
            "`rocsteady --help`": lambda: command("--help"),
            "`rocsteady evaluate` of one event": lambda: command(*evaluate),
        },
        2 * REPEAT,
    )
    beam = runs["`import apache_beam`"]
    rows = [
        [
            name,
            f"{cpu(each):.2f}",
            f"{cpu(each) / cpu(beam):.2f}x",
            to_before(name, cpu(each) / cpu(beam)),
            f"{max(of.megabytes for of in each):,.0f}",
        ]
        for name, each in runs.items()
    ]
    return (
        "## Starting, kernels compiled before\n\nMedian seconds of processor time, the three in turns; MB at "
        "the peak.\n\n"
        + table(["", "seconds", "to `import apache_beam`", "that ratio to before", "MB"], rows)
        + "\nThe imports of `rocsteady evaluate` of one event, by package, each without the imports of "
        "other packages that it makes (`python -X importtime`, which slows them down), and what is no "
        "import:\n\n" + table(["", "seconds"], imports_of(evaluate))
    )


def imports_of(words: tuple[str, ...]) -> list[list[str]]:
    """Return the seconds by the clock of a command's imports by package, and of what is no import."""
    program = [sys.executable, "-X", "importtime", "-c", COMMAND, *words]
    start = time.perf_counter()
    ran = subprocess.run(program, cwd=ROOT, check=True, capture_output=True, text=True)
    whole = time.perf_counter() - start
    seconds = Counter[str]()
    for own, module in re.findall(r"^import time: +(\d+) \| +\d+ \| +(\S+)$", ran.stderr, re.MULTILINE):
        package = module.split(".")[0].replace("llvmlite", "numba")
        seconds[package if package in PARTS else "others, Python's own among them"] += int(own) / 1e6
    rows = [[name, f"{of:.2f}"] for name, of in seconds.most_common()]
    return [*rows, ["no import", f"{whole - sum(seconds.values()):.2f}"]]


def twice(title: str, folder: Path, *words: str) -> str:
    """Run a program from an empty cache, and a second time; return a table of both runs."""
    with cache_of_its_own(folder):
        runs: list[Run] = [run(*words), run(*words)]
    rows = [
        [name, f"{of.wall:.0f}", to_before(f"{title} {name}", of.wall), f"{of.cpu:.0f}"]
        for name, of in zip(("from an empty cache", "the second run"), runs, strict=True)
    ]
    return f"## {title}\n\n" + table(["", "seconds by the clock", "to before", "of processor time"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile", metavar="WINDOW", help=argparse.SUPPRESS)
    parser.add_argument("--demo", action="store_true", help="the demo, too: a minute")
    parser.add_argument("--tests", action="store_true", help="the plain tests, too: some six minutes")
    given = parser.parse_args()
    if given.compile:
        compiled(given.compile)
        return
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("apache-beam", "numba", "numpy"))
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        parts = [compile_tables(folder), start_table(folder)]
        if given.demo:
            demo = ("demo", "--output", str(folder / "demo"))
            code = f"import sys; sys.argv[1:] = {demo!r}; {COMMAND}"
            parts.append(twice("The demo", folder, sys.executable, "-c", code))
        if given.tests:
            parts.append(twice("The plain tests", folder, sys.executable, "-m", "pytest", "-q"))
    head = (
        f"# The first minute, measured\n\n{platform.processor() or platform.machine()}, {os.cpu_count()} "
        f"cores, Python {platform.python_version()}, {versions}; load {load:.1f} at the start. "
        "`python -m benchmarks.start --demo --tests` makes this page. Before: commit 20d898a, on "
        "a machine of the same kind.\n\n"
    )
    PAGE.write_text(with_commit(head + "\n".join(parts)))


if __name__ == "__main__":
    main()
