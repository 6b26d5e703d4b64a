"""The windows of a ModelEvaluator beside each other: python -m benchmarks.windows [--quick] [--output FILE].

Every window gets the same events, one a second, in calls of 1,000, and holds about as many of them as the
`last:k` beside it; contenders take turns (benchmarks.core). Times are those of the processor, rows included.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from rocsteady.core.evaluator.evaluator import ModelEvaluator, warm_up
from rocsteady.core.settings.evaluator import EvaluatorSettings
from rocsteady.core.settings.windows import (
    Adaptive,
    Emission,
    EveryEvents,
    EverySeconds,
    Fading,
    LastDuration,
    LastEvents,
    Window,
)

from .core import CHUNK, Chunk, Events, machine, make_events, numbers, ratio, river, slow, table, take_turns
from .pages import with_commit

MICROS = 1_000_000

HEAD = """# Windows beside each other

`python -m benchmarks.windows` wrote this page. Microseconds of processor time per event: minimum, median, p99
of calls of 1,000 events to one `ModelEvaluator` with every default measure, rows included. In bold the median
ratio of turns that followed each other.
"""

SAID = {
    "At the same size": """Ratios are to `last:k`, whose sums are whole numbers. `last:ks` is a window of
the last k seconds, in which one event comes each second. Points of the grid are as far apart as the rows of
the other columns. The half-life of the fading window is chosen so that about k events are held.
""",
    "A row after every event": "",
    "Adaptive": """A window that does not shrink, with a row every 100 events; the ratio is to `last:k` and
river's ADWIN (its update alone, one value an event) together.
""",
    "Beside river": """A row after every event, with the AUC and its interval alone, and with every default
measure, against river's AUC alone, which counts events and is asked after every event. The ratio is of
medians.
""",
}


def evaluator(
    window: Window,
    every: Emission,
    events: Events,
    held: int,
    weights: np.ndarray | None = None,
    measures: tuple[str, ...] | None = None,
) -> Chunk:
    """A ModelEvaluator with the usual measures, which has had `held` events."""
    labels, scores = events
    times = np.arange(len(labels)) * MICROS
    settings = EvaluatorSettings(window=window, every=every, measures=measures)
    warm_up(settings)
    ev = ModelEvaluator(settings)
    ev.apply(scores[:held], labels[:held], times[:held], weights=None if weights is None else weights[:held])

    def chunk(begin: int, end: int) -> float:
        start = time.thread_time()
        some = slice(begin, end)
        ev.apply(scores[some], labels[some], times[some], weights=None if weights is None else weights[some])
        return time.thread_time() - start

    return chunk


def adwin_of_river(events: Events) -> Chunk:
    """ADWIN of river fed with a placement-like value for each event: its update alone."""
    from river.drift import ADWIN

    values = np.random.default_rng(0).random(len(events[0])).tolist()
    detector = ADWIN(delta=0.002)

    def chunk(begin: int, end: int) -> float:
        some = values[begin:end]
        start = time.thread_time()
        for value in some:
            detector.update(value)
        return time.thread_time() - start

    return chunk


def half_life_of(k: int) -> int:
    """Return the half-life at which a fading window holds about so many events.

    An event goes when its weight is 2^-53 of the mass of its class, a third or two thirds of some 1.44 T.
    """
    half_life = k / 45
    for _ in range(20):
        half_life = k / (53 - np.log2(1.44 * half_life * 0.58))
    return round(half_life)


def side_by_side(sizes: list[int], strides: tuple[int, ...], chunks: int) -> str:
    out = []
    for k in sizes:
        events = make_events(k + chunks * CHUNK + 1)
        weights = np.random.default_rng(5).lognormal(size=len(events[0]))
        for stride in strides:
            every = EveryEvents(stride)
            contenders = {
                "last": evaluator(LastEvents(k), every, events, k),
                "duration": evaluator(LastDuration(k), every, events, k),
                "grid": evaluator(LastEvents(k), EverySeconds(stride), events, k),
                "weighted": evaluator(LastEvents(k), every, events, k, weights),
                "fading": evaluator(Fading(half_life_of(k)), every, events, k),
            }
            times = take_turns(contenders, k, chunks if stride > 1 else max(20, chunks // 5))
            cells = [f"{k:,}", f"{stride:,}", numbers(times["last"])]
            cells += [
                f"{numbers(times[name])} **{ratio(times[name], times['last'])}**"
                for name in ("duration", "grid", "weighted", "fading")
            ]
            out.append(cells)
            print(cells, flush=True)
    head = ["held", "a row every", "last:k", "last:ks", "last:k, rows on a grid", "last:k, weights", "fading"]
    return table(head, out)


def adaptive(sizes: list[int], chunks: int) -> str:
    """An adaptive window that does not shrink, from the size given on, beside one of all events in it."""
    out = []
    for k in sizes:
        events = make_events(k + chunks * CHUNK + 1)
        every = EveryEvents(100)
        contenders = {
            "last": evaluator(LastEvents(k), every, events, k),
            "adwin": adwin_of_river(events),
            **{
                signal: evaluator(Adaptive(signal=signal), every, events, k)  # type: ignore[arg-type]
                for signal in ("placement", "error")
            },
        }
        times = take_turns(contenders, k, chunks)
        both = times["last"] + times["adwin"]
        cells = [f"{k:,}", numbers(times["last"]), numbers(times["adwin"])]
        cells += [f"{numbers(times[s])} **{ratio(times[s], both)}**" for s in ("placement", "error")]
        out.append(cells)
        print(cells, flush=True)
    return table(["held at first", "last:k", "river's ADWIN alone", "placement", "error"], out)


def against_river(sizes: list[int], chunks: int) -> str:
    """Weighted and fading windows with every measure, beside river's AUC of counts, a row an event."""
    out = []
    for k in sizes:
        events = make_events(k + chunks * CHUNK + 1)
        weights = np.random.default_rng(5).lognormal(size=len(events[0]))
        alone = slow(river(k, make_events(k + 100 * CHUNK)), k)
        fading, one = Fading(half_life_of(k)), EveryEvents(1)
        contenders = {
            "weighted AUC": evaluator(LastEvents(k), one, events, k, weights, ("auc",)),
            "fading AUC": evaluator(fading, one, events, k, None, ("auc",)),
            "weighted": evaluator(LastEvents(k), one, events, k, weights),
            "fading": evaluator(fading, one, events, k),
        }
        times = take_turns(contenders, k, chunks)
        cells = [f"{k:,}", numbers(alone)]
        cells += [f"{numbers(its)} **{np.median(its) / np.median(alone):.2f}x**" for its in times.values()]
        out.append(cells)
        print(cells, flush=True)
    names = ["last:k, weights, AUC", "fading, AUC", "last:k, weights", "fading"]
    return table(["held", "river's RollingROCAUC", *names], out)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small windows and few turns")
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks/windows.md"))
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    sizes, chunks = ([1_000, 10_000], 20) if options.quick else ([1_000, 10_000, 100_000, 400_000], 100)
    parts = {
        "At the same size": side_by_side(sizes, (100, 1_000), chunks),
        "A row after every event": side_by_side(sizes[:2], (1,), chunks),
        "Adaptive": adaptive(sizes[:3], chunks),
        "Beside river": against_river(sizes[:2], min(chunks, 20)),
    }
    page = [HEAD, machine(0.0)]
    page += [f"## {title}\n\n{SAID[title]}\n{part}" for title, part in parts.items()]
    page.append(f"It took {time.perf_counter() - start:.0f} s.\n")
    options.output.write_text(with_commit("\n".join(page)))


if __name__ == "__main__":
    main()
