"""What the p-values of a comparison are worth, in plain words, as far as the tests at hand ask for it."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.compare.comparisons import FEW_FOLDS
from ..words import counted, share
from .comparisons import Compared

_ONE_LOOK = (
    "<b>A p-value is for one look.</b> Who looks at 45 checkpoints of a stream and reports the best finds a "
    "difference that is none in 31% of all streams, at a level of 5%. \u201cSince\u201d tells how long the "
    "same has been found without a gap; it is no further test."
)
_ANYTIME = (
    "<b>The anytime-valid p</b> of McNemar's test is for looking as often as one likes: if both learners err "
    "alike, it falls to {0} or below, ever, in at most {0} of all streams. It rests on every instance of the "
    "fold up to the checkpoint, not on those of the window, and is not corrected for the number of pairs or "
    "folds."
)
_HOLM = (
    "<b>Holm's p</b> is corrected for the pairs of its test, measure, fold and checkpoint, and who is better "
    "is told by it. Nothing is corrected for several measures, several tests or several checkpoints."
)
_COARSE = (
    "<b>Few folds, coarse p-values.</b> Over {} neither the sign test nor Wilcoxon's can give less than "
    "{:.2g}, before Holm's correction."
)
_TOO_FEW = f" So no outcome reaches .05, however much better one is: evaluate with {FEW_FOLDS} folds or more."
_SHARED = (
    "<b>Folds share one stream.</b> They see much the same instances, so what is found over them is about "
    "this stream. Friedman's test, the ranks and the critical difference describe how the learners stand "
    "here; inference they are over streams that are independent of each other."
)
_WITHIN = (
    "<b>Tests within a fold</b> compare two learners on the very instances that the fold tested. In how many "
    "folds one is better is a count of dependent tests, and no test itself."
)


def worth_html(compared: Sequence[Compared]) -> str:
    """Return the notes; nothing where nothing was compared."""
    tests = {test for one in compared for pair in one.pairs for test in (*pair.over, *pair.within)}
    if not tests:
        return ""
    notes = [_ONE_LOOK]
    if any(found.p_anytime for one in compared for pair in one.pairs for found in pair.within.values()):
        notes.append(_ANYTIME.format(share(compared[0].alpha)))
    notes.append(_HOLM)
    if folds := min((one.folds for one in compared if {"sign", "wilcoxon"} & {*one.tests}), default=0):
        few = _TOO_FEW if folds < FEW_FOLDS else ""
        notes.append(_COARSE.format(counted(folds, "fold"), min(2.0 ** (1 - folds), 1.0)) + few)
    notes.append(_SHARED)
    if tests & {"mcnemar", "delong"}:
        notes.append(_WITHIN)
    items = "".join(f"<li>{note}</li>" for note in notes)
    return f'<h3 class="group-title">What these p-values are worth</h3><ul class="worth">{items}</ul>'
