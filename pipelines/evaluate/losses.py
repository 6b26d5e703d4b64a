"""Sentences about dead letters if there are many: their share, the most frequent reason, and one record.

`losses` of transforms/events decides when there are many. Progress lines and live jobs print such sentences
while a job runs; summaries, pages and the table of models print them at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...core.events.rejected import Reason
from ...core.settings.durations import duration_text
from ...transforms.beam import progress
from ...transforms.events.fields import EventFields
from ...transforms.events.losses import Loss, LossRole, losses
from ..sums import EVENTS, own_applied, own_waiting
from .job import Evaluation, Outcome

_NAMES_SHOWN = 10


def losses_of(outcome: Outcome, job: Evaluation) -> Iterator[str]:
    """Yield, at the end of a job, a sentence for each role of records that has many dead letters."""
    counts = outcome.counts
    came = counts["events_read"] + counts["labels_read"]
    if came and not own_waiting(counts) and not own_applied(counts):
        of_own = " that the job read" if counts[EVENTS.taken_up] else ""
        if (why := _why_none(outcome, job)) is not None:
            yield f"no event{of_own} was applied: {why}"
        return
    for loss in losses(counts, [letter[:3] for letter in outcome.letters]):
        yield _sentence(loss, outcome, job)


def refusal(outcome: Outcome, job: Evaluation) -> str | None:
    """Return a sentence on the reason that keeps many events out of the windows.

    None if few are dead letters.
    """
    letters = [letter[:3] for letter in outcome.letters]
    loss = next((each for each in losses(outcome.counts, letters) if each.role == "event"), None)
    if loss is None:
        return None
    what = f"{loss.dead:,} of {loss.read:,} events are dead letters"
    if loss.kind == "invalid":
        return f"{what}, {remedy_of(loss.reason, job.fields)}"
    return f"{what}, most often {loss.reason}"


def running_text(loss: Loss, fields: EventFields, noun: str | None = None) -> str:
    """Return a loss in a sentence, while the job runs.

    noun  the name of the records; None = the name of their role
    """
    noun = noun or loss.role
    if loss.kind == "invalid":
        why = remedy_of(loss.reason, fields)
    else:
        why = f"most often {loss.reason}; {loss.remedy}"
    share = f"{loss.share} of the first {loss.read:,} {noun}s are dead letters"
    if loss.dead == loss.read:
        done = "joined" if loss.role == "label" else "applied"
        share = f"none of the first {loss.read:,} {noun}s can be {done}"
    one = progress.example(loss.role, loss.reason)
    return f"{share}: {why}{'' if one is None else f'; one of them is {one}'}"


def short_text(loss: Loss) -> str:
    """Return share, reason and one record of a loss, for a progress line."""
    one = progress.example(loss.role, loss.reason)
    return f"{loss.share}, most often {loss.reason}{'' if one is None else f', such as {one}'}"


def _sentence(loss: Loss, outcome: Outcome, job: Evaluation) -> str:
    counts, one = outcome.counts, _example(loss.role, loss.kind, loss.reason, outcome)
    if loss.kind == "late":
        late = counts["late" if loss.role == "event" else "labels_late"]
        return f"{late / loss.read:.0%} of the {loss.role}s were late: {_late(outcome, job)}{one}"
    if loss.role == "event" and loss.kind == "unmatched" and job.join is not None:
        ttl = duration_text(job.join.settings.ttl)
        return (
            f"{counts['unmatched'] / loss.read:.0%} of the predictions got no label within --ttl {ttl}: give "
            f"more, if labels may take longer{one}"
        )
    why = remedy_of(loss.reason, job.fields) if loss.kind == "invalid" else f"most often {loss.reason}"
    return f"{loss.share} of the {loss.role}s are dead letters: {why}{one}"


def _why_none(outcome: Outcome, job: Evaluation) -> str | None:
    """Return the reason why no record of a job was applied.

    None if all are duplicates, or wait in the job's state.
    """
    counts, first = outcome.counts, dict[str, str]()
    for kind, reason, *_ in outcome.letters:
        first.setdefault(kind, reason)
    late, unmatched = counts["late"], counts["unmatched"]
    of_labels = counts["labels_invalid"] and not counts["labels_used"]
    if "invalid" in first and (of_labels or counts["dead_letters"] >= max(late, unmatched)):
        role: LossRole = "label" if of_labels else "event"
        return remedy_of(first["invalid"], job.fields) + _example(role, "invalid", first["invalid"], outcome)
    if "late" in first and late >= unmatched:
        all_or_most = "all" if late >= counts["events_read"] else "most"
        one = _example("event", "late", first["late"], outcome)
        return f"{all_or_most} were late: {_late(outcome, job)}{one}"
    if not unmatched:
        return None
    return (
        "no label came for any prediction; check --id, which both must have, --label-time and --ttl"
        f"{_example('event', 'unmatched', _of_predictions(outcome), outcome)}"
    )


def _late(outcome: Outcome, job: Evaluation) -> str:
    late = outcome.counts["late"]
    behind = sum(number for _, reason, number, _ in outcome.letters if reason == Reason.BEHIND_THE_CLOCK)
    if job.begins_with and 2 * behind > late:
        return "they are earlier than the cut of the imported state; give each job whole spans of time"
    new = sum(number for _, reason, number, _ in outcome.letters if reason == Reason.NEW_PARTITION)
    if 2 * new > late:
        return (
            "they are of partitions that were added, and the clock had passed their times; begin a new job, "
            "with a new output, where rows must have them"
        )
    return f"--order {job.settings.evaluator.order} allows too little, if not meant"


def _of_predictions(outcome: Outcome) -> str:
    """Return the reason why most predictions are unmatched; the reasons of labels are left out."""
    whys = (Reason.NO_LABEL, Reason.NO_LABEL_AT_END)
    return next((reason for _, reason, *_ in outcome.letters if reason in whys), "")


def _example(role: LossRole, kind: str, reason: str, outcome: Outcome) -> str:
    """Return the end of a sentence that shows one record, or the position of the first such record."""
    if (one := progress.example(role, reason)) is not None:
        return f"; one of them is {one}"
    first = next((at for *why, _, at in outcome.letters if why == [kind, reason]), -1)
    return "" if first < 0 else f"; the first of them is at position {first:,}"


def remedy_of(reason: str, fields: EventFields) -> str:
    """Return the remedy for the most frequent reason of invalid records."""
    known = {each.value: each for each in Reason}[reason]
    columns: tuple[str, ...] = (getattr(fields, known.option, None) or known.option,)
    remedy = known.remedy
    if known.option == "score" and fields.class_scores:
        columns, remedy = fields.class_scores, remedy.replace("--score", "--class-scores")
    elif known.option == "label" and fields.class_labels:
        columns, remedy = fields.class_labels, "write 1 or 0 for each class, or check --multi-label"
    elif known.option == "score" and fields.scores:
        columns = fields.scores
    where = f"in the column{'s' * (len(columns) > 1)} {_quoted(columns)}" if known.option else ""
    letter = progress.refused(reason)
    value = None if letter is None else letter.value
    facts = [where] * bool(where) + ([] if value is None else [f"such as {value!r}"])
    if known in (Reason.LABEL_NOT_A_CLASS, Reason.PREDICTED_NOT_A_CLASS):
        facts.append(f"and the classes are {_quoted(fields.class_names)}")
    said = ", ".join(facts)
    return f"most often {reason}{f' ({said})' if said else ''}; {remedy}"


def _quoted(names: Sequence[str]) -> str:
    """Return the first of many names, in quotes."""
    return ", ".join([*map(repr, names[:_NAMES_SHOWN]), *["..."] * (len(names) > _NAMES_SHOWN)])
