"""Sentences of the page that are made from the figures, so that another run cannot make them wrong."""

from __future__ import annotations

import math
from statistics import median

from .constructed import CHANGES
from .runs import Results
from .streams import KINDS, LEARNERS, MODES, STILL
from .tables import PUBLISHED, Measured, drifts, middle, pooled, rate, share
from .watchers import EVERY, LAG, LONG, RIGHT, SHIFT, SIGNALS, SLOW, WRONG, as_published

RARE = 2.0
"""False alarms in 100,000 events that a sentence calls few."""

FAST = f"`auc drops against {LAG} rows`"
RULE = f"`auc drops against {LAG} rows for {LONG} rows`"
PREVALENCE = f"`prevalence` drops or rises by {SHIFT} against {LAG} rows for {LONG} rows"
SURELY = "`auc surely < BOUND at 1e6`"


class Figures:
    """What was found by all learners together, by those that learn on, and by the frozen one."""

    def __init__(self, measured: Measured) -> None:
        by_learner = {
            learner: pooled(found for (_, name), found in measured.found.items() if name == learner)
            for learner in LEARNERS
        }
        self.whole = pooled(by_learner.values())
        self.on = pooled(by_learner[name] for name in LEARNERS if name.endswith("learns on"))
        self.frozen = pooled(by_learner[name] for name in LEARNERS if not name.endswith("learns on"))
        self.constructed = measured.constructed

    def seen(self, name: str, *kinds: str, modes: tuple[str, ...] = MODES) -> str:
        """Return the share of drifts that were detected, of all kinds if none is given."""
        return f"{share(drifts(self.whole[name], kinds or KINDS, modes)):.0%}"

    def late(self, name: str) -> str:
        """Return the median delay of abrupt drifts."""
        found = middle(drifts(self.whole[name], modes=("abrupt",)))
        return "never" if math.isnan(found) else f"{found:,.0f} events"


def on_all_drifts(figures: Figures) -> str:
    parts = (_best, _chance, _window, _signals, _rule, _evidence, _prevalence, _filtering, _still, _fhddm)
    return "\n".join(f"- {part(figures)}" for part in parts)


def _best(figures: Figures) -> str:
    """Who detects most among those with few false alarms."""
    names = figures.whole
    calm = [
        name
        for name in names
        if name != SLOW and max(rate(found[name].false)[0] for found in (figures.on, figures.frozen)) <= RARE
    ]
    order = sorted(calm, key=lambda name: -share(drifts(figures.whole[name])))
    if not order:
        return f"No detector has {RARE:g} false alarms in 100,000 events or fewer."
    best = ", ".join(f"{name} ({figures.seen(name)}, {figures.late(name)})" for name in order[:4])
    return (
        f"**Few false alarms.** With at most {RARE:g} false alarms in 100,000 events, whether the learner "
        f"learns on or not, these detect most: {best}. The events are the median delay after an abrupt drift."
    )


def _chance(figures: Figures) -> str:
    """Whose detections chance explains in part."""
    chance = {name: share(drifts(figures.whole[name], (STILL,))) for name in figures.whole}
    often = sorted((name for name in chance if chance[name] >= 0.1), key=lambda name: -chance[name])
    if not often:
        return "**Chance.** No detector has an alarm in a tenth of the streams without a drift."
    said = ", ".join(f"{name} {figures.seen(name)} ({chance[name]:.0%})" for name in often)
    return (
        f"**Chance.** Detections of those that give an alarm in a tenth or more of the stretches without a "
        f"drift are partly chance. Drifts detected, and in brackets the share without a drift: {said}."
    )


def _window(figures: Figures) -> str:
    """Our adaptive window of errors beside river's ADWIN."""
    ours, theirs = (drifts(figures.whole[name]) for name in ("adaptive window (error)", "ADWIN"))
    pairs = list(zip(ours, theirs, strict=True))
    alike = sum(math.isfinite(one) == math.isfinite(other) for one, other in pairs) / len(pairs)
    later = [one - other for one, other in pairs if math.isfinite(one) and math.isfinite(other)]
    waits = f", {median(later):,.0f} events later in the median" if later else ""
    return (
        f"**ADWIN twice.** `adaptive window (error)` is ADWIN on the same errors as river's. In {alike:.0%} "
        f"of the drifts both give an alarm, or both give none. Ours says so in its next row{waits}."
    )


def _signals(figures: Figures) -> str:
    """The signals of adaptive windows, by what their learner does."""
    said = [
        f"`{signal}` detects {figures.seen(name)} of the drifts, with {_false(figures.frozen, name)} false "
        f"alarms in 100,000 events of the frozen learner, and {_false(figures.on, name)} of those that learn "
        f"on"
        for signal in SIGNALS
        for name in [f"adaptive window ({signal})"]
    ]
    return (
        f"**Signals of the adaptive window.** {'; '.join(said)}. `placement` compares scores of different "
        f"times, and a learner that learns on changes its scores."
    )


def _false(results: Results, name: str) -> str:
    return f"{rate(results[name].false)[0]:.2f}"


def _rule(figures: Figures) -> str:
    """What alert rules on the AUC see, and what they do not."""
    seen = ", ".join(f"{kind} {figures.seen(RULE, kind)}" for kind in KINDS)
    swap = figures.seen(RULE, "label swap", modes=("abrupt",))
    return (
        f"**Alert rules on the AUC.** {RULE} detects: {seen}. After a label swap all labels are the same, so "
        f"soon there is no AUC: of the abrupt swaps the rule detects {swap}. Its delay after an abrupt drift "
        f"is {figures.late(RULE)}, as {LONG} rows of {EVERY} events must agree, and that of HDDM_A "
        f"{figures.late('HDDM_A')}. Without `for {LONG} rows` the rule detects {figures.seen(FAST)} in place "
        f"of {figures.seen(RULE)}, has a delay of {figures.late(FAST)}, and {_false(figures.whole, FAST)} "
        f"false alarms in 100,000 events in place of {_false(figures.whole, RULE)}."
    )


def _evidence(figures: Figures) -> str:
    """False alarms of evidence beside its promise, which holds for a constant AUC."""

    def count(results: Results) -> str:
        alarms = {}
        for level in ("1e4", "1e6"):
            false = results[f"`auc surely < BOUND at {level}`"].false
            alarms[level] = sum(each for each, _ in false)
        events = sum(each for _, each in false)
        return (
            f"{' and '.join(f'{number} at {level}' for level, number in alarms.items())} in {events:,} events"
        )

    frozen, on = count(figures.frozen), count(figures.on)
    return (
        f"**Evidence.** False alarms of `auc surely < BOUND`: {frozen} of the frozen learner; {on} of those "
        f"that learn on. For a model that ranks no worse than the bound the promise is one false alarm in "
        f"80,000 events at most, at 1e4, and one in 8 million, at 1e6, as a block has 8 events or more. A "
        f"learner that learns on may rank below its bound for a while. Then an alarm is right about the "
        f"learner, and counts as false here because the data do not drift. And a bound that is the lower end "
        f"of a 95% interval lies above the true AUC once in 40 times. {SURELY} detects "
        f"{figures.seen(SURELY)} of the drifts and {RULE} {figures.seen(RULE)}; the median delays after "
        f"abrupt drifts are {figures.late(SURELY)} and {figures.late(RULE)}."
    )


def _prevalence(figures: Figures) -> str:
    prior, swap, half = (figures.seen(PREVALENCE, kind) for kind in KINDS[:3])
    others = ", ".join(f"{name} {figures.seen(name, KINDS[0])}" for name in ("ADWIN", "DDM", "HDDM_A"))
    return (
        f"**Drifts of labels show in the labels.** The rule on `prevalence` detects {prior} of the changes "
        f"of the class prior ({others}), {swap} of the label swaps, and {half} of the halves of a swap. It "
        f"has {_false(figures.whole, PREVALENCE)} false alarms in 100,000 events."
    )


def _filtering(figures: Figures) -> str:
    """Whether any detector sees the filtering of a feature."""
    kind = KINDS[-1]

    def gain(name: str) -> float:
        return share(drifts(figures.whole[name], (kind,))) - share(drifts(figures.whole[name], (STILL,)))

    best = max((name for name in figures.whole if name != SLOW), key=gain)
    return (
        f"**{kind.capitalize()}** leaves events out, and changes nothing in the others. The events that are "
        f"left may be as easy as before. {best} detects most beyond chance: {figures.seen(best, kind)}, "
        f"where {figures.seen(best, STILL)} of the streams without a drift have an alarm."
    )


def _still(figures: Figures) -> str:
    """Which detectors give more alarms where a learner learns on."""
    more = [
        f"{name} ({_false(figures.on, name)} against {_false(figures.frozen, name)})"
        for name in figures.on
        if rate(figures.on[name].false)[1] > rate(figures.frozen[name].false)[2]
    ]
    head = (
        "**Learners that learn on.** Without a drift of the data their errors still change, as they learn. "
    )
    if not more:
        return head + "No detector has significantly more false alarms there than with the frozen learner."
    return (
        f"{head}More false alarms than with the frozen learner, with intervals apart, have {', '.join(more)}."
    )


def _fhddm(figures: Figures) -> str:
    other = f"FHDDM ({RIGHT})"
    kinds = ("label swap", "feature permutation")
    return (
        f"**FHDDM.** river's documentation says to tell it 1 for an error, but it gives an alarm when the "
        f"mean falls. Told 1 for an error it detects {figures.seen('FHDDM', *kinds)} of the label swaps and "
        f"feature permutations, and told 1 for a right prediction {figures.seen(other, *kinds)}."
    )


def on_constructed_changes(figures: Figures) -> str:
    ranking, moved, prior, rare = CHANGES
    errors = "HDDM_A"

    def seen(name: str, change: str) -> str:
        return f"{share(drifts(figures.constructed[change][name], (change,))):.0%}"

    both = (
        f"Where 40% are positive, {errors} sees the fall of the AUC in {seen(errors, ranking)} of the "
        f"streams, {RULE} in {seen(RULE, ranking)}, and {SURELY} in {seen(SURELY, ranking)}."
    )
    order = (
        f"Scores that all move up cross the threshold, and keep their order. {errors} sees this in "
        f"{seen(errors, moved)} of the streams, {RULE} in {seen(RULE, moved)}, and {SURELY} in "
        f"{seen(SURELY, moved)}. A window that holds events from before and from after ranks worse while it "
        f"mixes them: {FAST} sees this in {seen(FAST, moved)}."
    )
    share_of_positives = (
        f"A new prevalence changes the share of errors of the same ranking. {errors} sees this in "
        f"{seen(errors, prior)}, {RULE} in {seen(RULE, prior)}, and the rule on `prevalence` in "
        f"{seen(PREVALENCE, prior)}."
    )
    few = (
        f"Where 2% are positive, all decisions are negative before and after, and the errors are the "
        f"positives. {errors} sees the fall of the AUC in {seen(errors, rare)} of the streams, {SURELY} in "
        f"{seen(SURELY, rare)}, and {RULE} in {seen(RULE, rare)}: a window of 1,000 events has 20 positives, "
        f"and the rule asks for 30."
    )
    return "\n".join(f"- {sentence}" for sentence in (both, order, share_of_positives, few))


def on_published_figures(paper: Results) -> str:
    """How far the published shares lie from ours, by what the detectors are told."""

    def delays(name: str, way: str, kind: str) -> list[float]:
        return paper[f"{name} ({way})"].delays[kind, "abrupt"]

    lines = [(name, kind) for kind in PUBLISHED for name in as_published()]
    far, late = {}, {}
    for way in (RIGHT, WRONG):
        gaps = [abs(share(delays(name, way, kind)) - PUBLISHED[kind][name][0]) for name, kind in lines]
        far[way] = sum(gaps) / len(gaps)
        late[way] = middle([delay for name, kind in lines for delay in delays(name, way, kind)])
    published = [PUBLISHED[kind][name][1] for name, kind in lines]
    nearer = min(far, key=lambda way: far[way])
    return (
        f"Over the {len(lines)} lines the published shares differ from ours by {far[RIGHT]:.0%} in the mean "
        f"where detectors are {RIGHT}, and by {far[WRONG]:.0%} where they are {WRONG}: they are nearer to "
        f"those of detectors that are {nearer}. The median of the published mean delays is "
        f"{middle(published):,.0f} events. The median delay of all drifts that were detected here is "
        f"{late[RIGHT]:,.0f} events where detectors are {RIGHT}, and {late[WRONG]:,.0f} where they are "
        f"{WRONG}."
    )
