"""The pictures of the pages of docs/concepts, drawn of what the code does.

python -m benchmarks.concept_pictures [FOLDER]

`streams_pictures` and `window_pictures` draw those of the pages about streams and windows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import rocsteady as rs
from rocsteady.core.verdicts.judge import Judged, judge
from rocsteady.core.verdicts.reference import difference_to, latest_full
from rocsteady.core.verdicts.series import series_of
from scipy.special import ndtr
from scipy.stats import beta

from .svg import BLUE, DARK, GREEN, GREY, ORANGE, RED, Axes, Picture, write

Floats = npt.NDArray[np.float64]
SEPARATION = 1.5
"""Positives score this much higher, in standard deviations, where nothing else is said."""
TRUE_AUC = float(ndtr(SEPARATION / np.sqrt(2)))
"""The AUC of normal scores so far apart."""


def events(
    n: int, prevalence: float, seed: int, separation: float | Floats = SEPARATION
) -> tuple[Floats, Floats]:
    """Return labels and scores of n events; scores are normal, and those of positives lie higher."""
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < prevalence
    return labels, rng.normal(labels * separation)


def thousands(value: float) -> str:
    return f"{value:,.0f}"


def percent(value: float) -> str:
    return f"{value:.0%}"


# ---- intervals


def coverage() -> Picture:
    """Evaluate windows without a common event; draw their intervals, in red where they miss."""
    windows, size = 100, 1_000
    ev = rs.ModelEvaluator(window=rs.LastEvents(size), every=rs.EveryEvents(size), measures=["auc"])
    rows = list(ev.update(*events(windows * size, 0.05, seed=6)))
    missing = [row for row in rows if not row.auc_low <= TRUE_AUC <= row.auc_high]
    picture = Picture(
        "95% intervals of 100 windows, and the true AUC",
        680,
        270,
        f"Each upright bar is the interval of one window. {len(missing)} of 100 bars, in red, miss "
        f"the true AUC.",
    )
    axes = Axes(picture, (50, 30, 615, 190), (-1, windows), (0.66, 0.96))
    axes.frame("window", "AUC", range(0, windows, 20), (0.7, 0.75, 0.8, 0.85, 0.9, 0.95))
    for number, row in enumerate(rows):
        colour = RED if row in missing else BLUE
        axes.curve([number] * 2, [row.auc_low, row.auc_high], colour, 2.2)
        axes.dot(number, row.auc, colour, 2)
    axes.curve([-1, windows], [TRUE_AUC] * 2, DARK, 1.2, "6 3")
    picture.text(50, 258, f"dashed: the true AUC, {TRUE_AUC:.3f}", GREY)
    picture.text(330, 258, f"red: the {len(missing)} intervals that miss it", RED)
    return picture


def overlap() -> Picture:
    """Evaluate a stream that stands still, a row every 20 events; draw the rows."""
    size, stride, n = 1_000, 20, 12_000
    ev = rs.ModelEvaluator(window=rs.LastEvents(size), every=rs.EveryEvents(stride), measures=["auc"])
    rows = [row for row in ev.update(*events(n, 0.05, seed=6)) if row.seq >= size]
    seq = [row.seq for row in rows]
    picture = Picture(
        "Rows of overlapping windows wander, though the true AUC stands still",
        680,
        285,
        "A line of AUC over events goes up and down slowly around a level line. Dots mark windows "
        "that share no event.",
    )
    axes = Axes(picture, (50, 30, 600, 190), (size, n), (0.72, 0.98))
    axes.frame(
        "events",
        "AUC of the last 1,000 events",
        range(1_000, n + 1, 1_000),
        (0.75, 0.8, 0.85, 0.9, 0.95),
        thousands,
    )
    axes.band(seq, [row.auc_low for row in rows], [row.auc_high for row in rows], BLUE)
    axes.curve(seq, [row.auc for row in rows], BLUE)
    axes.curve([size, n], [TRUE_AUC] * 2, DARK, 1.2, "6 3")
    for row in rows[:: size // stride]:
        axes.dot(row.seq, row.auc, ORANGE)
    picture.text(50, 274, f"line: a row every {stride} events, with its interval", BLUE)
    picture.text(325, 274, "dots: windows that share no event", ORANGE)
    picture.text(540, 274, "dashed: the true AUC", GREY)
    return picture


# ---- kappa-m


def prevalence() -> Picture:
    """Evaluate one detector under ever fewer positives; draw accuracy, kappa and kappa-m."""
    shares = np.array([0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02])
    found = []
    for share in shares:
        rng = np.random.default_rng(1)
        labels = rng.random(200_000) < share
        decided = rng.random(200_000) < np.where(labels, 0.6, 0.03)
        ev = rs.ModelEvaluator(window=rs.AllEvents(), measures=["accuracy", "kappa", "kappa_m"])
        ev.update(labels, decided.astype(float))
        found.append(ev.measures())
    picture = Picture(
        "Fewer positives: accuracy rises, kappa-m falls below 0",
        680,
        300,
        "The same detector at shares of positives from 50% to 2%. Its accuracy rises towards 1, "
        "kappa falls, "
        "and kappa-m falls below 0 where always answering no makes fewer errors.",
    )
    axes = Axes(picture, (50, 30, 480, 210), (0, len(shares) - 1), (-0.9, 1))
    at = range(len(shares))
    axes.frame("share of positives", "", at, (-0.5, 0, 0.5, 1), lambda place: percent(shares[int(place)]))
    axes.curve([0, len(shares) - 1], [0, 0], GREY, 1, "2 3")
    curves = (
        ("accuracy", [one.accuracy for one in found], BLUE, ""),
        ("accuracy of always no", (1 - shares).tolist(), GREY, "6 3"),
        ("kappa", [one.kappa for one in found], GREEN, ""),
        ("kappa-m", [one.kappa_m for one in found], RED, ""),
    )
    for (name, values, colour, dash), down in zip(curves, (-8, 10, 4, 4), strict=True):
        axes.curve(at, values, colour, 2, dash)
        x, y = axes.at(at[-1], values[-1])
        picture.text(x + 8, y + down, name, colour)
    return picture


# ---- H-measure


def crossing() -> tuple[Floats, dict[str, Floats]]:
    """Return labels, and the scores of two models of about the same AUC whose ROC curves cross.

    Model "a" finds half of the positives without a false alarm, and guesses at the rest. Model "b" clears
    half of the negatives without a miss, and guesses at the rest.
    """
    rng = np.random.default_rng(3)
    labels = rng.random(20_000) < 0.5
    guess = rng.random(20_000)
    a = np.where(labels & (rng.random(20_000) < 0.5), 1 + guess, guess)
    b = np.where(~labels & (rng.random(20_000) < 0.5), guess - 1, guess)
    return labels, {"a": a, "b": b}


def costs() -> Picture:
    """Draw the ROC curves of two models of one AUC, and the least loss of each at each cost."""
    labels, models = crossing()
    picture = Picture(
        "Two models of one AUC: their ROC curves, and what each costs",
        680,
        300,
        "Left: two ROC curves cross. Right: the least loss at each cost of a false positive. Model "
        "a is cheaper where "
        "false positives cost more, model b where missed positives cost more.",
    )
    left = Axes(picture, (50, 30, 250, 210), (0, 1), (0, 1))
    left.frame("false positive rate", "true positive rate", (0, 0.5, 1), (0, 0.5, 1))
    left.curve([0, 1], [0, 1], GREY, 1, "2 3")
    right = Axes(picture, (385, 30, 280, 210), (0, 1), (0, 0.26))
    right.frame("cost of a false positive, c", "least loss", (0, 0.25, 0.5, 0.75, 1), (0, 0.1, 0.2))
    cost = np.linspace(0, 1, 101)
    for (low, words, y), (a, b) in zip(
        ((0.2, "severity:0.25", 0.235), (0.8, "severity:4", 0.235)), ((2, 5), (2, 1.25)), strict=True
    ):
        density = beta(a, b).pdf(cost[1:-1])
        right.band(cost[1:-1].tolist(), [0.0] * 99, (0.2 * density / density.max()).tolist(), GREY, 0.15)
        right.text(low, y, words, GREY, "middle")
    share = float(labels.mean())
    for (name, scores), colour in zip(models.items(), (BLUE, ORANGE), strict=True):
        ev = rs.ModelEvaluator(window=rs.AllEvents())
        ev.update(labels, scores)
        curve = ev.curve()
        fpr, tpr = curve.fpr[curve.on_hull], curve.tpr[curve.on_hull]
        left.curve(fpr, tpr, colour, 2.2)
        loss = np.min(cost[:, None] * (1 - share) * fpr + (1 - cost[:, None]) * share * (1 - tpr), axis=1)
        right.curve(cost, loss, colour, 2.2)
        picture.text(50 if name == "a" else 185, 292, f"model {name}: AUC {ev.measures().auc:.3f}", colour)
    picture.text(385, 292, "grey: how two severity ratios weigh the costs", GREY)
    return picture


# ---- the tree


def path() -> Picture:
    """Draw a balanced tree of buckets: one event changes one bucket and the path above it."""
    levels, changed = 4, 5
    picture = Picture(
        "One event changes one path of the tree",
        680,
        290,
        "A binary tree over 16 buckets of scores in order. One bucket and the four nodes above it "
        "are marked: an event "
        "changes these and nothing else.",
    )
    place = lambda level, node: (  # noqa: E731
        40 + 600 * (node + 0.5) / 2**level,
        40 + 48 * level,
    )
    for level in range(levels):
        for node in range(2**level):
            for child in (2 * node, 2 * node + 1):
                on_path = child == changed * 2 ** (level + 1) // 2**levels
                picture.line(
                    [place(level, node), place(level + 1, child)],
                    RED if on_path else GREY,
                    2 if on_path else 0.8,
                )
    for level in range(levels + 1):
        for node in range(2**level):
            on_path = node == changed * 2**level // 2**levels
            x, y = place(level, node)
            if level == levels:
                picture.box(x - 16, y - 7, 32, 14, RED if on_path else BLUE, 0.8 if on_path else 0.35)
            else:
                picture.dot(x, y, RED if on_path else BLUE, 6)
    x, _ = place(levels, changed)
    picture.text(40, 258, "low scores", GREY)
    picture.text(640, 258, "high scores", GREY, "end")
    picture.text(x, 258, "an event comes", RED, "middle")
    picture.text(
        40,
        280,
        "box: a bucket of up to 62 scores. dot: a node with the counts, pairs and bridge of its two parts",
        GREY,
    )
    picture.text(360, 36, "the root: AUC, H, KS of the window", RED)
    return picture


# ---- verdicts


def verdict() -> Picture:
    """Judge a model whose AUC falls; draw its windows, the chain of the reference, and the change."""
    n, size, stride, falls = 6_000, 500, 50, 4_500
    ev = rs.ModelEvaluator(window=rs.LastEvents(size), every=rs.EveryEvents(stride), measures=["auc"])
    rows = list(ev.update(*events(n, 0.5, 1, np.where(np.arange(n) < falls, SEPARATION, 0.6))))
    seq, auc, low, high = (
        np.array([getattr(row, name) for row in rows], float)
        for name in ("seq", "auc", "auc_low", "auc_high")
    )
    columns = {
        name: np.array([getattr(row, name) for row in rows], float)
        for name in (*rows[0]._fields[3:15], "auc", "auc_low", "auc_high")
    }
    series = series_of(columns, slice(0, len(rows)))
    found = judge([Judged(0, 0, "", series)], 0.95)[0]
    compared = difference_to(series, series.variance(0.95), latest_full(series), None)
    if compared is None or found.since is None:
        raise AssertionError("the fall is found")
    picture = Picture(
        "The latest window, the windows of the reference, and the change",
        680,
        330,
        "The AUC of a model over events falls. The latest window is compared with the mean of a "
        "chain of earlier windows, "
        "no two of which share an event.",
    )
    axes = Axes(picture, (50, 30, 500, 220), (0, n), (0.5, 0.95))
    axes.frame(
        "events", "AUC of the last 500 events", range(0, n + 1, 1_000), (0.6, 0.7, 0.8, 0.9), thousands
    )
    axes.band(seq.tolist(), low.tolist(), high.tolist(), GREY)
    axes.curve(seq, auc, GREY, 1.2)
    for row in compared.chain.tolist():
        axes.curve([seq[row] - size + 15, seq[row] - 15], [auc[row]] * 2, BLUE, 3)
    last = found.row
    axes.curve([seq[last] - size + 15, seq[last]], [auc[last]] * 2, RED, 3)
    axes.curve([0, n], [found.reference] * 2, BLUE, 1.2, "6 3")
    began = found.since.place
    axes.curve([began] * 2, [0.5, 0.95], ORANGE, 1.5, "4 3")
    axes.text(began - 60, 0.53, f"since event {began:,.0f}", ORANGE, "end")
    x, y = axes.at(n, found.reference)
    _, low_end = axes.at(n, auc[last])
    picture.line([(x + 10, y), (x + 10, low_end)], DARK, 1.5)
    picture.text(x + 16, y + 4, f"reference {found.reference:.3f}", BLUE)
    picture.text(x + 16, low_end + 4, f"latest {auc[last]:.3f}", RED)
    picture.text(x + 16, (y + low_end) / 2 - 4, f"change {found.change:.3f}")
    picture.text(x + 16, (y + low_end) / 2 + 11, f"[{found.low:.3f}, {found.high:.3f}]")
    picture.text(50, 315, f"blue: the {found.windows} windows of the reference; no two share an event", BLUE)
    picture.text(430, 315, "red: the latest full window", RED)
    return picture


# ---- fleets


def fleet() -> Picture:
    """Evaluate nine models on events of their own, one of them worse; draw the members of a roll-up row."""
    rng = np.random.default_rng(4)
    rows = []
    for place in range(9):
        separation = 1.0 if place == 6 else 1.5
        labels = rng.random(1_200) < 0.3
        ev = rs.ModelEvaluator(model=f"m{place}", every=rs.EverySeconds("1h"), window=rs.AllEvents())
        rows += ev.update(labels, rng.normal(separation * labels), times=np.arange(1_200).astype("M8[s]"))
        rows += ev.advance_to(7_200_000_000)
    rows = [row for row in rows if row.due == 3_600_000_000]
    table = rs.FleetTable(rs.RollUpSettings())
    [found] = table.take(rows) + table.finish()
    picture = Picture(
        "The members of a roll-up row, and what the row says of them",
        680,
        300,
        "Nine AUCs with intervals, one below each other. Eight intervals hold the mean, and one lies below.",
    )
    axes = Axes(picture, (70, 20, 580, 225), (0.66, 0.92), (-1.6, 9))
    axes.frame("AUC", "", (0.7, 0.75, 0.8, 0.85, 0.9), (), lambda value: f"{value:.2f}")
    for place, row in enumerate(sorted(rows, key=lambda row: row.model)):
        colour = RED if row.model == found.worst else BLUE
        axes.curve([row.auc_low, row.auc_high], [8 - place] * 2, colour, 2)
        axes.dot(row.auc, 8 - place, colour)
        picture.text(62, axes.at(0.7, 8 - place)[1] + 4, row.model, colour, "end")
    axes.curve([found.auc_mean] * 2, [-0.6, 8.6], GREY, 1.2, "6 3")
    axes.curve([found.auc_mean_low, found.auc_mean_high], [-1] * 2, ORANGE, 3)
    axes.dot(found.auc_mean, -1, ORANGE)
    picture.text(62, axes.at(0.7, -1)[1] + 4, "mean", ORANGE, "end")
    said = f"worst_gap {found.worst_gap:.3f}, worst_p {found.worst_p:.2g}"
    axes.text(0.665, 2.35, said, RED)
    words = f"orange: auc_mean with its interval; heterogeneity_p {found.heterogeneity_p:.2g}"
    picture.text(70, 292, words, ORANGE)
    return picture


# ---- evidence


def evidence() -> Picture:
    """Follow a model that falls and one that does not; draw their evidence, and where an alarm is given."""
    n, falls, blocks = 20_000, 12_000, 1_000_000
    picture = Picture(
        "The evidence of a model that falls, and of one that does not",
        680,
        290,
        "Two curves of evidence over events. Both stay below 5 for 12,000 events. Then one of them "
        "rises at once and crosses the line of an alarm, at 13.8.",
    )
    axes = Axes(picture, (50, 30, 590, 200), (0, n), (-2, 30))
    axes.frame("events", "evidence that the AUC is below 0.8", range(0, n + 1, 4_000), (0, 10, 20), thousands)
    level = float(np.log(blocks))
    axes.curve([0, n], [level] * 2, ORANGE, 1.2, "6 3")
    axes.text(
        200, level + 1, f"log({blocks:,}) = {level:.1f}: once in a million blocks, if all is well", ORANGE
    )
    axes.curve([falls] * 2, [-2, 30], GREY, 1.2, "4 3")
    for colour, after in ((BLUE, SEPARATION), (RED, 0.7)):
        labels, scores = events(n, 0.3, 4, np.where(np.arange(n) < falls, SEPARATION, after))
        followed = rs.EvidenceBelow(0.8).update(labels, scores)
        shown = np.flatnonzero((followed <= 30) & (np.arange(n) % 20 == 0))
        axes.curve(shown, followed[shown], colour)
        if after != SEPARATION:
            alarm = int(np.argmax(followed >= level))
            axes.dot(alarm, level, RED)
            axes.text(alarm + 900, level - 4, f"alarm: {alarm - falls:,} events after the fall", RED)
    picture.text(50, 282, "red: an AUC of .86, then of .69", RED)
    picture.text(300, 282, "blue: an AUC of .86 throughout", BLUE)
    return picture


# ---- pairs


def pair() -> Picture:
    """Compare two models of equal AUC, a row every 200 instances; draw the intervals of both kinds."""
    n, every = 8_000, 200
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 2, n)
    shared = rng.normal(size=n) + labels
    champion, challenger = shared + rng.normal(size=(2, n))
    compared = rs.PairEvaluator(window=rs.AllEvents(), every=rs.EveryEvents(every))
    rows = compared.update(labels, challenger, champion)
    wrong = [row for row in rows if row.p < 0.05]
    picture = Picture(
        "Two models of equal AUC, looked at 40 times",
        680,
        285,
        f"Bars around the difference, for one look each, leave out 0 at {len(wrong)} of 40 rows, in red. A "
        "wider band that only narrows, for all looks at once, always holds 0.",
    )
    axes = Axes(picture, (60, 25, 600, 195), (0, n), (-0.1, 0.1))
    ticks = (-0.1, -0.05, 0, 0.05, 0.1)
    axes.frame("instances", "difference of the AUCs", range(0, n + 1, 2_000), ticks, thousands)
    some = [row for row in rows if row.anytime_low is not None]
    low, high = [max(row.anytime_low, -0.1) for row in some], [min(row.anytime_high, 0.1) for row in some]
    axes.band([row.seq for row in some], low, high, GREEN)
    for row in rows:
        colour = RED if row in wrong else BLUE
        axes.curve([row.seq] * 2, [max(row.difference_low, -0.1), min(row.difference_high, 0.1)], colour, 2.2)
        axes.dot(row.seq, row.difference, colour, 2)
    axes.curve([0, n], [0, 0], DARK, 1.2, "6 3")
    picture.text(60, 274, "bars: the interval for one look", BLUE)
    picture.text(265, 274, f"red: {len(wrong)} looks with p < 0.05", RED)
    picture.text(450, 274, "green: the interval for all looks", GREEN)
    return picture


PICTURES = {
    "intervals-coverage": coverage,
    "intervals-overlap": overlap,
    "kappa-m-prevalence": prevalence,
    "h-measure-costs": costs,
    "tree-path": path,
    "verdicts-chain": verdict,
    "fleet-members": fleet,
    "evidence-alarm": evidence,
    "pairs-looks": pair,
}


if __name__ == "__main__":
    write(PICTURES)
