"""The pictures of docs/concepts/windows.md and adaptive-windows.md, drawn of what the code does.

python -m benchmarks.window_pictures [FOLDER]
"""

from __future__ import annotations

import numpy as np
import rocsteady as rs
from rocsteady.core.evaluator.adwin import BUCKET_TOTAL, FIRST_ROW, ROWS_USED, Adwin
from scipy.special import ndtr

from .concept_pictures import TRUE_AUC, events, thousands
from .svg import BLUE, DARK, GREEN, GREY, RED, Axes, Picture, write


def kinds() -> Picture:
    """Draw how much each of 60 events counts in each window, the newest to the right."""
    rng = np.random.default_rng(5)
    minutes = np.cumsum(rng.choice([1, 1, 1, 6], 60))
    age = np.arange(60)[::-1]
    counts = {
        "last:20": np.where(age < 20, 1.0, 0.0),
        "last:1h": np.where(minutes > minutes[-1] - 60, 1.0, 0.0),
        "fading:10": 2.0 ** (-age / 10),
        "adaptive": np.where(age < 34, 1.0, 0.0),
        "all": np.ones(60),
    }
    picture = Picture(
        "How much an event counts in each window",
        680,
        250,
        "Five lines of 60 events in time. The bars of events that count are tall; in the fading "
        "window they shrink with "
        "age; the adaptive window begins at a change.",
    )
    across = lambda event: 110 + 545 * (minutes[event] - minutes[0]) / (minutes[-1] - minutes[0])  # noqa: E731
    for line, (name, weights) in enumerate(counts.items()):
        foot = 55 + 42 * line
        picture.text(20, foot - 6, name, DARK)
        picture.line([(105, foot), (662, foot)], GREY, 0.7)
        for event, weight in enumerate(weights):
            picture.line([(round(across(event), 1), foot), (round(across(event), 1), foot - 4)], "#bbb", 3)
            if weight > 0.01:
                top = round(foot - 27 * weight, 1)
                picture.line([(round(across(event), 1), foot), (round(across(event), 1), top)], BLUE, 3)
    change = round(across(26) - 4, 1)
    picture.line([(change, 150), (change, 187)], RED, 1.5, "4 3")
    picture.text(change - 5, 160, "a change", RED, "end")
    picture.text(662, 245, "time", GREY, "end")
    return picture


def answers() -> Picture:
    """Evaluate one stream in four windows; draw the AUC of each around a sudden change."""
    n, change = 40_000, 20_000
    labels, scores = events(n, 0.3, 7, np.where(np.arange(n) < change, 1.5, 0.7))
    picture = Picture(
        "How each window answers a sudden change",
        680,
        290,
        "The AUC falls at event 20,000. The adaptive window falls first. The window of 5,000 events "
        "reaches the new level 5,000 events later, the fading window approaches it, and the window of "
        "all events does not reach it.",
    )
    axes = Axes(picture, (50, 30, 595, 200), (15_000, 35_000), (0.66, 0.88))
    axes.frame("events", "AUC", range(15_000, 35_001, 5_000), (0.7, 0.75, 0.8, 0.85), thousands)
    axes.curve(
        [15_000, change, change, 35_000], [TRUE_AUC] * 2 + [float(ndtr(0.7 / np.sqrt(2)))] * 2, DARK, 1, "6 3"
    )
    windows = {
        "last:5000": (rs.LastEvents(5_000), BLUE),
        "fading:1733": (rs.Fading(1_733), GREEN),
        "adaptive": (rs.Adaptive(), RED),
        "all": (rs.AllEvents(), GREY),
    }
    for place, (name, (window, colour)) in enumerate(windows.items()):
        ev = rs.ModelEvaluator(window=window, every=rs.EveryEvents(100), measures=["auc"])
        rows = [row for row in ev.update(labels, scores) if 15_000 <= row.seq <= 35_000]
        axes.curve([row.seq for row in rows], [row.auc for row in rows], colour)
        picture.text(50 + 110 * place, 280, name, colour)
    picture.text(500, 280, "dashed: the true AUC", GREY)
    return picture


# ---- the adaptive window


def buckets() -> Picture:
    """Feed an ADWIN a signal whose mean falls; draw its buckets just before the cut and just after."""
    rng = np.random.default_rng(4)
    signal = np.concatenate([rng.beta(4, 1, 700), rng.beta(1.6, 1, 700)])
    adwin, fed = Adwin(delta=0.002), 0
    while adwin.width == fed:
        before = Adwin.from_bytes(adwin.to_bytes())
        adwin.update(signal[fed : fed + 32])
        fed += 32
    after = adwin
    before.update(signal[fed - 32 : fed - 1])
    picture = Picture(
        "The numbers that ADWIN holds, before a cut and after",
        680,
        330,
        "Bars are the means of ADWIN's buckets over the numbers they sum up. Before the cut the "
        "old buckets have a higher mean than the new ones. The cut drops the oldest buckets.",
    )
    for panel, (words, held, until) in enumerate((("before", before, fed - 1), ("after", after, fed))):
        axes = Axes(picture, (50, 35 + 150 * panel, 600, 95), (0, 900), (0, 1))
        at_end = "number of the signal" if panel else ""
        axes.frame(at_end, "", range(0, 901, 100), (0, 0.5, 1), thousands)
        begin = until - held.width
        for size, total in bucket_sums(held):
            x, y = axes.at(begin, total / size)
            wide = axes.at(begin + size, 0)[0] - x
            picture.box(x + 0.3, y, round(wide - 0.6, 1), round(axes.at(0, 0)[1] - y, 1), BLUE, 0.35)
            begin += size
        axes.curve([700, 700], [0, 1.05], RED, 1.5, "4 3")
        picture.text(
            50, 27 + 150 * panel, f"{words}: {held.width} numbers in {len(bucket_sums(held))} buckets", DARK
        )
    picture.text(axes.at(700, 0)[0] + 5, 27, "the mean falls here", RED)
    return picture


def bucket_sums(adwin: Adwin) -> list[tuple[int, float]]:
    """Return the number of values and the sum of each bucket, the oldest first."""
    counters, _, rows = adwin.arrays
    return [
        (1 << row, float(rows[row, BUCKET_TOTAL, slot]))
        for row in range(counters[ROWS_USED] - 1, -1, -1)
        for slot in range(counters[FIRST_ROW + row])
    ]


def held() -> Picture:
    """Evaluate the stream of the page; draw how many events the adaptive window holds, and its AUC."""
    n, change = 30_000, 15_000
    rng = np.random.default_rng(7)
    labels = rng.random(n) < 0.3
    scores = rng.normal(labels * np.where(np.arange(n) < change, 1.5, 0.7))
    ev = rs.ModelEvaluator(window=rs.Adaptive(), every=rs.EveryEvents(50), measures=["auc"])
    rows = [row for row in ev.update(labels, scores) if row.seq >= 500]
    seq = [row.seq for row in rows]
    picture = Picture(
        "An adaptive window grows until the AUC changes",
        680,
        330,
        "Above: the events held rise with each event, fall at the change, and rise again. Below: "
        "the AUC with its interval, "
        "which narrows while the window grows.",
    )
    above = Axes(picture, (60, 30, 590, 100), (0, n), (0, 16_000))
    above.frame("", "events in the window", (), (0, 5_000, 10_000, 15_000), thousands, thousands)
    above.curve(seq, [row.window_events for row in rows], BLUE)
    below = Axes(picture, (60, 165, 590, 110), (0, n), (0.62, 0.9))
    below.frame("events", "AUC", range(0, n + 1, 5_000), (0.65, 0.75, 0.85), thousands)
    below.band(seq, [row.auc_low for row in rows], [row.auc_high for row in rows], BLUE)
    below.curve(seq, [row.auc for row in rows], BLUE)
    for row in rows:
        if row.drift:
            below.curve([row.seq] * 2, [0.62, 0.635], RED, 1)
    picture.text(60, 322, "red: rows that say drift", RED)
    return picture


PICTURES = {
    "windows-kinds": kinds,
    "windows-change": answers,
    "adaptive-buckets": buckets,
    "adaptive-held": held,
}


if __name__ == "__main__":
    write(PICTURES)
