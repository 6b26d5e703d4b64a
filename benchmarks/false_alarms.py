"""False alarms of adaptive windows on streams that stand still, and how late they see one that does not.

    python -m benchmarks.false_alarms [STREAMS]        writes docs/benchmarks/false_alarms.md

A model's scores are those of two normal distributions, turned into probabilities that are calibrated while
the AUC is .85. A still stream has 20,000 such events; in others the AUC falls to .70 at event 10,000, because
positives get lower scores or because negatives get higher ones.
The windows are simulated over the kernels in chunks that end where ADWIN makes a check, and held against the
slow oracle of the tests first.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rocsteady.core.evaluator.adwin import Adwin
from rocsteady.core.measures.sorted import place
from scipy.stats import norm

from tests.support.invariants.sliding_window import SlidingWindow
from tests.support.oracles.adaptive import AdaptiveOracle

from .pages import with_commit

EVENTS = 20_000
CHANGE = EVENTS // 2
AUC_BEFORE, AUC_AFTER = 0.85, 0.70
PREVALENCES = (0.5, 0.2, 0.05, 0.02)
STREAMS = 300
FALLS = ("none", "positives", "negatives")
"""Whose scores change."""

DELTA = 0.002
PAGE = Path("docs/benchmarks/false_alarms.md")

Cuts = list[int]
"""Indices of the events at which a window shrank."""


def stream(rng: np.random.Generator, prevalence: float, falls: str, events: int = EVENTS) -> tuple[Any, Any]:
    """Labels and scores; in the second half one class comes closer to the other. falls: see `FALLS`."""
    distance, closer = np.sqrt(2) * norm.ppf([AUC_BEFORE, AUC_AFTER])
    labels = (rng.random(events) < prevalence).astype(np.int8)
    changed = np.arange(events) >= events // 2
    means = np.where(labels == 1, distance, 0.0)
    if falls == "positives":
        means[changed & (labels == 1)] = closer
    elif falls == "negatives":
        means[changed & (labels == 0)] = distance - closer
    logits = np.log(prevalence / (1 - prevalence)) + distance * rng.normal(means) - distance**2 / 2
    return labels, 1 / (1 + np.exp(-logits))


def placement_cuts(labels: Any, scores: Any, delta: float, fed_all: bool) -> Cuts:
    """Cuts of the window that ADWIN keeps of placement values, of all events or of the rarer class."""
    positives_before = np.concatenate([[0], np.cumsum(labels)])
    window, adwin = SlidingWindow(None, stride=len(labels) + 1, keeps_hull=False), Adwin(delta)
    oldest, at, cuts = 0, 0, []
    fed = np.empty(0, np.int64)
    while at < len(labels):
        ahead = np.arange(at, min(at + 4_096, len(labels)))
        positives = positives_before[ahead] - positives_before[oldest]
        rarer = positives <= ahead - oldest - positives
        feeding = ahead[rarer == (labels[ahead] == 1)] if not fed_all else ahead
        feeding = feeding[: adwin.until_check]
        end = int(feeding[-1] if len(feeding) == adwin.until_check else ahead[-1]) + 1
        new, tree = slice(at, end), window.tree
        ranks, each = tree.ranks(scores[new]), np.arange(end - at)
        values = np.empty(end - at)
        place(labels[new], scores[new], each, ranks, tree.negatives, tree.positives, values)
        window.slide(labels[new], scores[new], np.zeros(end - at))
        adwin.update(np.nan_to_num(values[feeding - at], nan=0.5))
        fed = np.concatenate([fed, feeding])
        if len(fed) > adwin.width:
            fed = fed[len(fed) - adwin.width :]
            oldest = int(fed[0])
            window.load(labels[oldest:end], scores[oldest:end])
            cuts.append(end - 1)
        at = end
    return cuts


def plain_cuts(values: Any, delta: float) -> Cuts:
    """Cuts of the window that ADWIN keeps of one value of every event."""
    widths = Adwin(delta).update(values)
    return np.flatnonzero(np.diff(widths, prepend=0) < 1).tolist()


SIGNALS: dict[str, Callable[[Any, Any, float], Cuts]] = {
    "placement of the rarer class": lambda y, s, delta: placement_cuts(y, s, delta, False),
    "placement of all events": lambda y, s, delta: placement_cuts(y, s, delta, True),
    "error": lambda y, s, delta: plain_cuts((s >= 0.5) != (y == 1), delta),
    "brier": lambda y, s, delta: plain_cuts((s - y) ** 2, delta),
}


def share_of_alarms(cuts: list[Cuts]) -> str:
    """Streams with a cut, and cuts per 100,000 events."""
    share = sum(map(bool, cuts)) / len(cuts)
    rate = sum(map(len, cuts)) / (len(cuts) * EVENTS / 100_000)
    return f"{share:.1%} / {rate:.2f}"


def delay(cuts: list[Cuts]) -> str:
    """Events from the change to the first cut after it: median over streams, and how many have one."""
    seen = [[cut for cut in of_stream if cut >= CHANGE] for of_stream in cuts]
    share = sum(map(bool, seen)) / len(seen)
    middle = median(after[0] - CHANGE + 1 if after else np.inf for after in seen)
    return f"{middle:,.0f} ({share:.0%})" if middle < np.inf else f"- ({share:.0%})"


def simulated(signal: str, prevalence: float, falls: str, streams: int) -> list[Cuts]:
    """Cuts of each stream; the streams are the same for all signals."""
    seeds = [[seed, round(1_000 * prevalence), FALLS.index(falls)] for seed in range(streams)]
    return [SIGNALS[signal](*stream(np.random.default_rng(seed), prevalence, falls), DELTA) for seed in seeds]


def check_against_oracle() -> None:
    """Every simulated window shrinks where the oracle's does."""
    for signal in SIGNALS:
        if signal == "placement of all events":
            continue
        seen = 0
        for prevalence in (0.5, 0.1):
            labels, scores = stream(np.random.default_rng(3), prevalence, "positives", 3_000)
            oracle = AdaptiveOracle(0.2, signal.split()[0])
            cuts = [at for at in range(len(labels)) if oracle.add(int(labels[at]), float(scores[at]))]
            assert cuts == SIGNALS[signal](labels, scores, 0.2), signal
            seen += len(cuts)
        assert seen, f"{signal}: a check without a cut says nothing"


def table(falls: str, streams: int) -> str:
    """A line for each prevalence, a column for each signal."""
    lines = ["| prevalence | " + " | ".join(SIGNALS) + " |", "| --- " * (len(SIGNALS) + 1) + "|"]
    cell = share_of_alarms if falls == "none" else delay
    for prevalence in PREVALENCES:
        cells = [cell(simulated(signal, prevalence, falls, streams)) for signal in SIGNALS]
        lines.append(f"| {prevalence:.0%} | " + " | ".join(cells) + " |")
    print(*lines, "", sep="\n", flush=True)
    return "\n".join(lines)


def main() -> None:
    streams = int(sys.argv[1]) if len(sys.argv) > 1 else STREAMS
    check_against_oracle()
    text = TEXT.format(streams=streams, **{falls: table(falls, streams) for falls in FALLS})
    PAGE.write_text(with_commit(text))


TEXT = f"""# False alarms of the adaptive window, and its delays

`python -m benchmarks.false_alarms`, about 3 minutes of one core: {{streams}} streams of {EVENTS:,}
events for each line, the same for every signal; delta {DELTA}. Scores are those of two normal
distributions of one variance, as probabilities that are calibrated while the AUC is {AUC_BEFORE}.
`Adaptive` feeds placements of the class that is rarer in the window. The other columns show what happens
with placements of all events, and with the two other signals.

## Streams that stand still

Streams that see a cut / cuts per 100,000 events. All of them are false.

{{none}}

All placements of the common class are taken among the same few rare events of the window. One rare event
that comes or goes moves every placement after it. ADWIN takes its values for independent, so it sees a
change. Placements of the rarer class share their events, too, but these are many. So delta is nominal: it
is not the chance of an alarm per event or per stream. It only orders windows from calm (small delta) to
nervous (large delta).

## Streams whose AUC falls from {AUC_BEFORE:.2f} to {AUC_AFTER:.2f} at event {CHANGE:,}

Events from the change to the first cut after it: the median of all streams. A dash means that half of the
streams or more have no cut in {CHANGE:,} events. In brackets stands the share of streams with a cut.

Because positives get lower scores:

{{positives}}

Because negatives get higher scores:

{{negatives}}

This is the price of few false alarms. A change in the scores of the rarer class is seen as soon as enough
events of that class have come. A change in the scores of the common class is seen late or never. The rarer
class is placed among events of the common class, and most of these are old. So the mean moves only as fast
as new events outnumber the old, and more slowly the larger the window has grown. `error` and `brier` watch
every event, but where positives are few, both say little about the positives. To see such changes, watch a
window of fixed length beside the adaptive window.
"""

if __name__ == "__main__":
    main()
