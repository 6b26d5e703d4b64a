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
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

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
BEFORE = """\
Before the work that this page measures (commit 20d898a), on such a machine: the default window took 25.9 s to
compile, and `fading:10000` 31.7 s; one event 2.4 times `import apache_beam`; the demo 108 s by the clock, and
14 s once more; the plain tests 418 s from an empty cache, and 361 s once more.

"""


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
def empty_cache(folder: Path) -> Iterator[None]:
    """Let processes that begin now find no compiled kernel, and no predictions of the demo."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(dir=folder) as cache:
        os.environ.pop("NUMBA_CACHE_DIR", None)
        os.environ |= {"ROCSTEADY_CACHE_DIR": cache, "XDG_CACHE_HOME": cache}
        try:
            yield
        finally:
            os.environ.clear()
            os.environ |= before


def compile_tables(folder: Path) -> str:
    """Measure each window from an empty cache; return a table by window, and one by kernel of the default."""
    said = {}
    for name, window in WINDOWS.items():
        with empty_cache(folder):
            said[name] = run(sys.executable, "-m", "benchmarks.start", "--compile", window).said
        print(f"  {name}: {said[name]['total']:.1f} s", flush=True)
    default = said[next(iter(WINDOWS))]
    of_windows = [
        [name, f"{each['total']:.1f}", f"{each['total'] / default['total']:.2f}x",
         str(sum(each["functions"].values()))]
        for name, each in said.items()
    ]  # fmt: skip
    of_kernels = [
        [f"`{name}`", f"{of:.1f}", str(default["functions"][name])]
        for name, of in sorted(default["seconds"].items(), key=lambda pair: -pair[1])
    ]
    return (
        "## Compiling, from an empty cache\n\nSeconds of processor time until 30,000 events have rows, a row "
        "for every 100 events; each window alone, in a process of its own.\n\n"
        + table(["window", "seconds", "to the default", "functions compiled"], of_windows)
        + "\nThe kernels of the default window, each with the helpers that are compiled for it first:\n\n"
        + table(["kernel", "seconds", "functions"], of_kernels)
    )


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
            f"{max(of.megabytes for of in each):,.0f}",
        ]
        for name, each in runs.items()
    ]
    return (
        "## Starting, kernels compiled before\n\nMedian seconds of processor time, in turns; MB at the "
        "peak.\n\n" + table(["", "seconds", "to `import apache_beam`", "MB"], rows)
    )


def twice(title: str, folder: Path, *words: str) -> str:
    """Run a program from an empty cache and once more; return a table of both runs."""
    with empty_cache(folder):
        runs: list[Run] = [run(*words), run(*words)]
    rows = [
        [name, f"{of.wall:.0f}", f"{of.cpu:.0f}"]
        for name, of in zip(("from an empty cache", "once more"), runs, strict=True)
    ]
    return f"## {title}\n\n" + table(["", "seconds by the clock", "of processor time"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile", metavar="WINDOW", help=argparse.SUPPRESS)
    parser.add_argument("--demo", action="store_true", help="the demo, too: a minute")
    parser.add_argument("--tests", action="store_true", help="the plain tests, too: some eight minutes")
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
        "`python -m benchmarks.start --demo --tests` makes this page.\n\n" + BEFORE
    )
    PAGE.write_text(with_commit(head + "\n".join(parts)))


if __name__ == "__main__":
    main()
