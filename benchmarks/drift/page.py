"""The page of the drift benchmark: the text around the tables."""

from __future__ import annotations

import textwrap
from importlib.metadata import version

from .constructed import EVENTS
from .sentences import Figures, on_all_drifts, on_constructed_changes, on_published_figures
from .streams import DRIFT_REGION, JUDGED, SKIPPED, START
from .tables import Measured, by_kind, constructed_table, overview, published_table
from .watchers import EVERY, SHIFT, WINDOW

WIDTH = 106


def page(measured: Measured) -> str:
    """Return the page without its commit."""
    figures = Figures(measured)
    streams = len(next(iter(measured.paper.values())).false)
    paper = (
        PAPER.format(streams=streams)
        + published_table(measured.paper)
        + "\n\n"
        + on_published_figures(measured.paper)
    )
    kinds = "\n\n".join(
        f"The learner {'learns on' if learns else 'is frozen'}, and drifts are "
        f"{mode}:\n\n{by_kind(results, mode)}"
        for learns, results in ((True, figures.on), (False, figures.frozen))
        for mode in ("abrupt", "gradual")
    )
    text = TEXT.format(
        river=version("river"),
        trials=measured.trials,
        slow=measured.slow,
        sets=", ".join(dict.fromkeys(name for name, _ in measured.found)),
        overview=overview(measured),
        sentences=on_all_drifts(figures),
        tables=kinds,
        constructed=constructed_table(measured),
        constructed_sentences=on_constructed_changes(figures),
        paper=paper,
    )
    return wrapped(text)


def wrapped(text: str) -> str:
    """Return Markdown with its paragraphs and points filled; tables and titles stay."""
    parts = []
    for block in text.strip().split("\n\n"):
        if block.startswith(("|", "#")):
            parts.append(block)
            continue
        points = block.split("\n- ") if block.startswith("- ") else [block]
        for place, point in enumerate(points):
            is_point = block.startswith("- ")
            words = " ".join((point[2:] if is_point and place == 0 else point).split())
            start, rest = ("- ", "  ") if is_point else ("", "")
            points[place] = textwrap.fill(
                words, WIDTH, initial_indent=start, subsequent_indent=rest,
                break_long_words=False, break_on_hyphens=False,
            )  # fmt: skip
        parts.append("\n".join(points))
    return "\n\n".join(parts) + "\n"


TEXT = f"""# Drift detectors on the same streams

`python -m benchmarks.drift`, some eight minutes of one core. A *drift* is a change of the data. A detector
should give an alarm soon after a drift, and none before. The streams follow the protocol of Cerqueira,
Gomes, Heyden, Pfahringer and Bifet, *A Framework for Evaluating and Benchmarking Concept Drift Detection
Methods* ([arXiv 2606.07789](https://arxiv.org/abs/2606.07789), June 2026). This page is made from the
abstract, and from the authors' [code and
results](https://github.com/vcerqueira/experiments-drift_evaluation) at their commit 7c2af93. The text of
the paper could not be had.

## The protocol

A data set is shuffled, so that it has no drift of its own. At a random place between {DRIFT_REGION[0]:.0%}
and {DRIFT_REGION[1]:.0%} of the stream one drift is put in. It is *abrupt*, or *gradual*: then an event is
of the new concept with a chance that grows from 0 to 1 over 2,500 events (NOAA: 1,500).

| drift | from its place on |
| --- | --- |
| class prior | {SKIPPED:.0%} of the events of one class are left out |
| label swap | all events of one class get the other label |
| half of a label swap | half of the events of one class get the other label; this drift is not the paper's |
| feature permutation | the features change places |
| feature filtering | events with a feature above its median are left out |

A learner predicts every event. Detectors start at {START:.0%} of the stream. Alarms count from {JUDGED:.1%}
on, since our rules take their reference from the events between. An alarm detects the drift if it comes at
most 2,500 events (NOAA: 1,500) after the drift is complete. An alert that was open before the drift is no
alarm. Events that are left out count as time, as in the paper's code.

What differs from the paper:

- **Data.** Three of its seven data sets are here: Electricity, NOAA and Covertype. Asfault, GasSensorArray,
Posture and Rialto are not. Covertype is class 2 against the others, with its ten numbers, and 30,000 events
of each shuffle. With two classes, a label swap leaves a single class.
- **Detectors.** Of its 14 methods, river {{river}} has ADWIN, DDM, HDDM_A, HDDM_W and PageHinkley. river's
EDDM, FHDDM and KSWIN are added. The other methods of the paper are not here, nor are detectors that watch
features.
- **Learners.** The paper's Hoeffding tree and naive Bayes learn on after the drift. A logistic regression
that is frozen when the detectors start is added: it stands for a model in production.
- **Settings.** Every detector has its defaults. The paper's tuning over other data sets is not repeated.
- **False alarms** are those on streams without a drift. The paper's code counts every alarm outside of its
delay as false, also late alarms after the drift. Its rate divides the alarms of 50 streams by the events of
one stream, so the rate is 50 times too high. And after a gradual drift its code waits from the beginning of
the drift on, while the documentation of its evaluator says from the end on. Here it is from the end on.

There are {{trials}} shuffles of each data set ({{sets}}) for each learner. KSWIN costs more than all others
together, so the number of shuffles that it watches is {{slow}}.

Ours:

- `adaptive window` is `Adaptive()`, with the named signal. An alarm is a row that says `drift`. Rows come
every {EVERY} events.
- Alert rules go by rows of `last:{WINDOW}` every {EVERY} events. An alarm is an alert that opens. PERIOD is
the time between {START:.0%} and {JUDGED:.1%} of the stream. BOUND is the lower end of the AUC's interval in
that period. The rules on `accuracy` and `prevalence` ask for a change of {SHIFT / 2} and {SHIFT}.

## All drifts together

Shares have Wilson's 95% intervals in brackets. *Alarms without a drift* are streams without a drift that
have an alarm in a stretch as long as that of a drift: so much is detected by chance alone. The delay is the
median, in events, of the abrupt drifts that were detected. False alarms are those in 100,000 events; their
95% intervals allow for alarms that cluster in a stream. The last column is seconds of one core for a
million events.

{{overview}}

{{sentences}}

## Each kind of drift

A cell has the share of drifts that were detected, its interval, and the median delay of those, in events.

{{tables}}

## Where each kind of alarm is blind

Detectors of errors see decisions, and rules on the AUC see the ranking. Here are changes that move one of
the two alone. Scores are those of two normal distributions, calibrated before the change. A stream has
{EVENTS:,} events, and the change is in the middle. A cell has the share of streams with an alarm in the
next {EVENTS // 4:,} events, its interval, and the median delay. Events are independent here and nothing
learns, so the false alarms of the last column, in 100,000 events before such changes, are those of the
detectors alone.

{{constructed}}

{{constructed_sentences}}

{{paper}}"""

PAPER = """## The paper's figures beside these

In the paper's code a detector is told `int(true == pred)`, which is 1 for a right prediction. MOA's DDM,
PageHinkley, HDDM_A and HDDM_W take 1 for an error, and give an alarm when the mean rises. So in the paper
they give an alarm when the learner becomes better, which is when it has begun to recover from the drift.
The table has Electricity, a Hoeffding tree, abrupt drifts and default settings. It has the published
shares and mean delays, and the shares and median delays of river's detectors on {streams} streams here,
told either way. As MOA's detectors do, HDDM_A and HDDM_W begin anew where the mean falls, and PageHinkley
watches for a rise. Of ADWIN's alarms those count at which the mean rose, as in some versions of MOA.

"""
