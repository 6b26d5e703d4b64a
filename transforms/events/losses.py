"""Whether many of the records that were read are dead letters, and why most often.

Many are more than a tenth of at least 100 records, or all records of any number. Duplicates do not count:
they are left out on purpose. A label without a prediction does not count either: labels may serve other
models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from ...core.events.batch import LabelBatch
from ...core.events.earlier import EARLIER_LOST
from ...core.events.rejected import Reason, Rejected
from ...core.process.console import logger, name_text
from .dead_letters import DeadLetter
from .doubts.once import is_new
from .fields import RECORD_COUNTERS

FEW = 100
"""The fewest records whose share of dead letters is reported: with fewer records, some dead letters show
little.
"""

_MANY = 10
"""Dead letters are many if they are more than one in so many records."""

_WIDTH = 160
"""The most characters of a record that a line shows."""

_OF_LABELS = frozenset((Reason.NO_PREDICTION, Reason.NO_PREDICTION_AT_END))
"""Reasons of labels without a prediction."""

_OF_FOLDS = frozenset((Reason.LEARNER_FAILED,))
"""Reasons of records that are sound, but at which a learner failed."""

_logger = logger("rocsteady.dead_letters")


LossRole = Literal["event", "label"]
"""The two groups of records that are reported: events, predictions and instances together; and labels."""


def role_of(rejected: Rejected) -> LossRole:
    """Return the group of the records that a machine refused."""
    return "label" if isinstance(rejected.records, LabelBatch) else "event"


class Loss(NamedTuple):
    """A loss: many dead letters among the records of a group.

    dead           dead letters, of all reasons
    kind, reason   of the most frequent dead letters; `number` is how many there are
    """

    role: LossRole
    read: int
    dead: int
    kind: str
    reason: str
    number: int

    @property
    def share(self) -> str:
        """The share of the records that are dead letters, as text."""
        return f"{self.dead / self.read:.0%}"

    @property
    def remedy(self) -> str:
        """The action to take, in options of the command."""
        return {each.value: each for each in Reason}[self.reason].remedy


def losses(
    counts: Mapping[str, int], letters: Iterable[tuple[str, str, int]], least: int = 1
) -> Iterator[Loss]:
    """Yield the losses among events (or predictions) and among labels.

    A loss of events comes before a loss of labels.

    counts   a job's counters by name
    letters  (kind, reason, number) of its dead letters
    least    the fewest records for which a loss of all records is reported
    """
    ranked = sorted(letters, key=lambda letter: (-letter[2], letter[:2]))
    roles: tuple[tuple[LossRole, tuple[str, ...]], ...] = (
        ("event", ("invalid", "late", "unmatched")), ("label", ("invalid", "late")),
    )  # fmt: skip
    for role, kinds in roles:
        names = {**RECORD_COUNTERS[role], "unmatched": "unmatched"}
        of_kind = {kind: counts.get(names[kind], 0) for kind in kinds}
        read, dead = counts.get(names["read"], 0), sum(of_kind.values())
        if role == "event":
            dead -= counts.get(EARLIER_LOST, 0)
        others = _OF_FOLDS | _OF_LABELS
        whys = [letter for letter in ranked if of_kind.get(letter[0]) and letter[1] not in others]
        is_all = dead >= read >= least
        if read and whys and (is_all or (read >= FEW and dead * _MANY > read)):
            yield Loss(role, read, dead, *whys[0])


def example_text(letter: DeadLetter) -> str:
    """Return a dead letter in words: its record, which is cut if it is long, and the place of the record.

    >>> example_text(DeadLetter("invalid", "score is missing", "day.csv", 7, raw='{"label": "1"}'))
    '{"label": "1"} (day.csv, position 7)'
    """
    place = "" if letter.position is None else f", position {letter.position:,}"
    return f"{name_text(letter.raw or '', _WIDTH)} ({letter.source}{place})".lstrip()


def tell(
    counts: Mapping[str, int],
    letters: Iterable[tuple[str, str, int]],
    example: Callable[[LossRole, str], str | None],
    least: int = FEW,
) -> None:
    """Warn in the log of each loss, once for each reason.

    This is for processes that print no lines of their own.

    example  returns, in words, a record of a group with a reason; None if no record is known
    least    see `losses`
    """
    for loss in losses(counts, letters, least):
        one = example(loss.role, loss.reason)
        such = "" if one is None else f", such as {one}"
        why = f"most often {loss.reason}{such}; {loss.remedy}"
        text = f"{loss.share} of the {loss.role}s are dead letters: {why}"
        if is_new((f"dead {loss.role}s", loss.reason), text):
            _logger.warning("%s", text)
