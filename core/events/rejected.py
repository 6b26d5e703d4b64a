"""Records that do not count, and the reasons: a closed list of short phrases, without values.

`Rejected` has records that a state machine did not apply: late, unmatched, duplicate, and some invalid
records. A dead letter's `reason` is one of the phrases of `Reason`, so that letters can be grouped by it. The
values are in the letter's other columns. The list is a contract: a phrase is never changed or given another
meaning; a later version may add one. docs/schemas/dead-letter.json is made from it, and docs/reasons.md says
which kinds of record have a reason, and what the reason means.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np

from ..arrays import Int64Array
from ..settings.durations import duration_text
from .batch import EventBatch
from .columns import TextColumn
from .unjoined import LabelBatch

RejectedKind = Literal["invalid", "late", "unmatched", "duplicate"]
"""Kinds of records that do not count."""

_COLUMNS = {"model", "score", "label", "predicted", "time", "id", "weight", "feature"}


class Reason(StrEnum):
    """A reason, with its remedy: the action to take, in options of the command. docs/reasons.md explains it.

    >>> Reason.SCORE_NOT_FINITE, Reason.SCORE_NOT_FINITE.option, Reason.SCORE_NOT_FINITE.remedy
    (<Reason.SCORE_NOT_FINITE: 'score is not finite'>, 'score', 'mend the model that gives such scores')
    """

    remedy: str

    def __new__(cls, words: str, remedy: str) -> Reason:
        """Make a member whose value is its phrase."""
        self = str.__new__(cls, words)
        self._value_, self.remedy = words, remedy
        return self

    @property
    def option(self) -> str:
        """The option that names the column at fault, with which the member's name begins; else ""."""
        option = self.name.partition("_")[0].lower()
        return option if option in _COLUMNS else ""

    MODEL_MISSING = "model is missing", "check --model, or give all records one name with --model-name"
    SCORE_MISSING = "score is missing", "check --score"
    SCORE_NOT_A_NUMBER = "score is not a number", "check --score"
    SCORE_NOT_FINITE = "score is not finite", "mend the model that gives such scores"
    SCORE_NOT_A_PROBABILITY = "score is not a probability", "leave out --probabilities, or check --score"
    LABEL_MISSING = "label is missing", "check --label"
    LABEL_UNKNOWN = "label is unknown", "name the positive class with --positive, or check --label"
    PREDICTED_MISSING = "predicted class is missing", "check --predicted"
    TIME_MISSING = "time is missing", "check --time"
    TIME_UNREADABLE = (
        "time cannot be read", "check --time and --time-unit, or name the form of texts with --time-format",
    )  # fmt: skip
    TIME_UNFIT = "time does not fit the format", "check --time and --time-format"
    TIME_OUT_OF_RANGE = (
        "time is out of range", "give another --time-unit, or --time-format where digits are a date",
    )  # fmt: skip
    TIME_TOO_FAR_AHEAD = (
        "time is too far ahead", "mend the clock of the sender, or allow more with --max-ahead",
    )  # fmt: skip
    ID_MISSING = "id is missing", "check --id"
    WEIGHT_MISSING = "weight is missing", "check --weight"
    WEIGHT_NOT_A_NUMBER = "weight is not a number", "check --weight"
    WEIGHT_NOT_FINITE = "weight is not finite", "check --weight"
    WEIGHT_NOT_POSITIVE = "weight is not positive", "leave out events that shall not count, or check --weight"
    FEATURE_MISSING = "feature is missing", "leave the field out where there is no value"
    FEATURE_NOT_A_NUMBER = "feature is not a number", "check --feature, or name the column with --category"
    FEATURE_NOT_FINITE = "feature is not finite", "mend the source of the feature"
    WRONG_NUMBER_OF_FIELDS = (
        "wrong number of fields", "mend the line; perhaps a field with a comma is not quoted",
    )  # fmt: skip
    NOT_UTF8 = "not UTF-8", "convert the file to UTF-8"
    NOT_A_JSON_OBJECT = "not a JSON object", "write one JSON object on each line or in each message"
    LINE_TOO_LONG = "line is too long", "write one record on each line, each no longer than that"
    EMPTY_MESSAGE = "empty message", "leave out messages that only mark a deletion"
    MESSAGES_DELETED = (
        "messages deleted before they were read", "keep messages for longer than the job may be behind",
    )  # fmt: skip
    FILE_UNREADABLE = "file cannot be read", "write the file anew, under another name"
    FILE_CHANGED = "file changed after it was found", "rename files into the folder when they are whole"
    NOT_A_RECORD = "not a record", "give dicts, NamedTuples, beam.Rows or packed batches"
    PACKED_BATCH_UNFIT = "packed batch does not fit", "pack events with the columns that the settings name"
    LEARNER_FAILED = "learner failed", "mend the learner; `detail` has its error"
    LATE = "later than allowed", "allow more, as in --order time:1h"
    BEHIND_THE_CLOCK = (
        "behind the clock",
        "allow more in order=, mend the watermark of the source, or give each job whole spans of time",
    )
    NO_LABEL = "no label within ttl", "check --id, which both sides must have, --label-time and --ttl"
    NO_LABEL_AT_END = (
        "no label within ttl before the input ended",
        "nothing, if labels are still to come: export the state, and go on with the next input",
    )
    NO_PREDICTION = (
        "no prediction within ttl", "give a longer --ttl, if labels may take longer; else check --id",
    )  # fmt: skip
    NO_PREDICTION_AT_END = (
        "no prediction within ttl before the input ended",
        "read predictions that were made later, too; else check --id and --ttl",
    )
    SAME_LABEL = "same label again", "nothing: the label counts once"
    SECOND_LABEL = "second label", "choose which label counts with --second-label"
    SECOND_EVENT = "second event of this model and id", "nothing, if it was delivered twice; else check --id"


_UNITS = (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1)


@dataclass(frozen=True, eq=False)
class Rejected:
    """n records of one kind and one reason that a state machine did not apply.

    kind      one of the kinds that docs/reasons.md names for the reason
    records   the events or labels; predictions are events whose labels have no meaning
    reason    the reason, which all n records share
    details   a sentence for each record, with the values of the reason
    gaps      int64[n] microseconds: lateness, waiting time or distance of each record, depending on the
              reason; negative: not known. None: the reason has no such time
    limit     microseconds: the limit that `gaps` exceed; None: no limit
    unlabelled  whether the records are predictions
    """

    kind: RejectedKind
    records: EventBatch | LabelBatch
    reason: Reason
    details: TextColumn
    gaps: Int64Array | None = None
    limit: int | None = None
    unlabelled: bool = False

    def __len__(self) -> int:
        return len(self.records)


def details_of(gaps: Int64Array, sentence: Callable[[int], str]) -> TextColumn:
    """Return the sentence of each gap; `sentence` is called once for each distinct gap. O(n log n)."""
    distinct, which = np.unique(gaps, return_inverse=True)
    return TextColumn(which.astype(np.int32), tuple(map(sentence, distinct.tolist())))


def in_words(micros: int) -> str:
    """Return a length of time in its two largest units.

    >>> in_words(93_784_000_000), in_words(1_500)
    ('1d 2h', '1ms 500us')
    """
    unit = next((unit for unit in _UNITS if micros >= unit), 1)
    smaller = next((each for each in _UNITS if each < unit), 1)
    largest, rest = micros // unit * unit, micros % unit // smaller * smaller
    return f"{duration_text(largest)} {duration_text(rest)}" if rest else duration_text(largest)
