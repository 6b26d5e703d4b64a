"""Records that do not count, and the reasons: a closed list of short phrases, without values.

`Rejected` has records that a state machine did not apply: late, unmatched, duplicate, and some invalid
records. A dead letter's `reason` is one of the phrases of `Reason`, so that letters can be grouped by it. The
values are in the letter's other columns. The list is a contract: a phrase is never changed or given another
meaning; a later version may add one. The pages docs/reference/reasons.md and docs/schemas/dead-letter.json
are generated from this list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np

from ..arrays import Int64Array
from ..settings.durations import duration_text
from .batch import EventBatch, LabelBatch
from .columns import TextColumn

RejectedKind = Literal["invalid", "late", "unmatched", "duplicate"]
"""The kinds of records that do not count."""

_COLUMNS = {"model", "score", "label", "predicted", "time", "id", "weight", "feature"}


class Reason(StrEnum):
    """A reason, with the texts of its row in the docs.

    kinds   the kinds of dead letter that have this reason
    means   the fault of the record, in words
    remedy  the action to take, in options of the command

    >>> Reason.SCORE_NOT_A_NUMBER, Reason.SCORE_NOT_A_NUMBER.kinds
    (<Reason.SCORE_NOT_A_NUMBER: 'score is not a number'>, ('invalid',))
    """

    kinds: tuple[RejectedKind, ...]
    means: str
    remedy: str

    def __new__(
        cls,
        words: str,
        means: str,
        remedy: str,
        kinds: RejectedKind | tuple[RejectedKind, ...] = "invalid",
    ) -> Reason:
        """Make a member whose value is its phrase."""
        self = str.__new__(cls, words)
        self._value_ = words
        self.kinds = (kinds,) if isinstance(kinds, str) else kinds
        self.means, self.remedy = means, remedy
        return self

    @property
    def option(self) -> str:
        """The option that names the column at fault: the member's name begins with the option.

        "" if no option does.
        """
        option = self.name.partition("_")[0].lower()
        return option if option in _COLUMNS else ""

    MODEL_MISSING = (
        "model is missing", "the record names no model",
        "check --model, or give all records one name with --model-name",
    )  # fmt: skip
    SCORE_MISSING = "score is missing", "the record has no score", "check --score"
    SCORE_NOT_A_NUMBER = "score is not a number", "the score is text that is no number", "check --score"
    SCORE_NOT_FINITE = (
        "score is not finite", "the score is infinite or NaN", "mend the model that gives such scores",
    )  # fmt: skip
    SCORE_NOT_HELD = (
        "score is not held by a float",
        "no 64-bit float holds the whole number or the decimal, such as 2^53 + 1, so that scores would tie",
        "write scores as floats, or round or scale them before",
    )  # fmt: skip
    SCORE_NOT_A_PROBABILITY = (
        "score is not a probability", "--probabilities is given, and the score is below 0 or above 1",
        "leave out --probabilities, or check --score",
    )  # fmt: skip
    LABEL_MISSING = "label is missing", "the record has no label", "check --label"
    LABEL_UNKNOWN = (
        "label is unknown", "the label is none of 1, 0, -1, true, false",
        "name the positive class with --positive, or check --label",
    )  # fmt: skip
    LABEL_NOT_A_CLASS = (
        "label has no score", "with --class-scores, the label is none of the classes that have scores",
        "check --label, and the names in --class-scores",
    )  # fmt: skip
    PREDICTED_MISSING = "predicted class is missing", "the record has no predicted class", "check --predicted"
    PREDICTED_NOT_A_CLASS = (
        "predicted class has no score",
        "with --class-scores, the predicted class is none of the classes that have scores",
        "check --predicted, and the names in --class-scores",
    )  # fmt: skip
    TIME_MISSING = "time is missing", "the record has no time", "check --time"
    TIME_UNREADABLE = (
        "time cannot be read", "the time is neither RFC 3339, nor a date, nor a number in --time-unit",
        "check --time and --time-unit; name the form of texts with --time-format; give the begin of a period",
    )  # fmt: skip
    TIME_UNFIT = (
        "time does not fit the format", "the time has another form than --time-format says",
        "check --time and --time-format",
    )  # fmt: skip
    TIME_OUT_OF_RANGE = (
        "time is out of range", "in --time-unit the number lies outside the years 1 to 9999",
        "give another --time-unit, or --time-format where digits are a date",
    )  # fmt: skip
    TIME_TOO_FAR_AHEAD = (
        "time is too far ahead", "the time is further ahead of the clock on the wall than --max-ahead allows",
        "mend the clock of the sender, or allow more with --max-ahead",
    )  # fmt: skip
    ID_MISSING = "id is missing", "the record has no id, and a join or a fold needs one", "check --id"
    RECORD_KIND_MISSING = (
        "kind of record is missing", "the record has no value in the column that --label-records names",
        "check --label-records, or let the sender write the column in every record",
    )  # fmt: skip
    WEIGHT_MISSING = "weight is missing", "the record has no weight", "check --weight"
    WEIGHT_NOT_A_NUMBER = "weight is not a number", "the weight is text that is no number", "check --weight"
    WEIGHT_NOT_FINITE = "weight is not finite", "the weight is infinite or NaN", "check --weight"
    WEIGHT_NOT_POSITIVE = (
        "weight is not positive", "the weight is 0 or negative",
        "leave out events that shall not count, or check --weight",
    )  # fmt: skip
    FEATURE_MISSING = (
        "feature is missing", "a feature that is a number is the empty text",
        "leave the field out where there is no value",
    )  # fmt: skip
    FEATURE_NOT_A_NUMBER = (
        "feature is not a number", "a feature that is a number is other text",
        "check --feature, or name the column with --category",
    )  # fmt: skip
    FEATURE_NOT_FINITE = "feature is not finite", "a feature is infinite", "mend the source of the feature"
    WRONG_NUMBER_OF_FIELDS = (
        "wrong number of fields", "a line of CSV has more or fewer fields than the header names",
        "mend the line; perhaps a field with a comma is not quoted",
    )  # fmt: skip
    NOT_UTF8 = "not UTF-8", "a cell or a line holds bytes that are not UTF-8", "convert the file to UTF-8"
    NOT_A_JSON_OBJECT = (
        "not a JSON object", "a line or a message is no JSON, or JSON that is no object",
        "write one JSON object on each line or in each message",
    )  # fmt: skip
    LINE_TOO_LONG = (
        "line is too long", "a line of JSON, or a message, has more than 8 MiB",
        "write one record on each line, each no longer than that",
    )  # fmt: skip
    NOT_AN_ARROW_STREAM = (
        "not an Arrow stream",
        "--kafka-format is arrow, and the message is no Arrow IPC stream, or a damaged or too large one",
        "write each message with pyarrow.ipc.new_stream, or leave out --kafka-format",
    )  # fmt: skip
    EMPTY_MESSAGE = (
        "empty message", "a message of a topic has no value", "leave out messages that only mark a deletion",
    )  # fmt: skip
    MESSAGES_DELETED = (
        "messages deleted before they were read",
        "the topic's retention deleted messages; this letter stands for all of them, from its position on",
        "keep messages for longer than the job may be behind",
    )  # fmt: skip
    FILE_UNREADABLE = (
        "file cannot be read",
        "a file of a watched folder is damaged, gone or refused; this letter stands for its other records",
        "mend what `detail` says, and write the file anew, under another name",
    )  # fmt: skip
    FILE_CHANGED = (
        "file changed after it was found",
        "a file of a watched folder was written to after it was read; what was added is not read",
        "rename files into the folder when they are whole",
    )  # fmt: skip
    NOT_A_RECORD = (
        "not a record", "an element of a PCollection has no fields",
        "give dicts, NamedTuples, beam.Rows or packed batches",
    )  # fmt: skip
    PACKED_BATCH_UNFIT = (
        "packed batch does not fit",
        "packed events are damaged, or lack what the settings need; this letter stands for the whole batch",
        "pack events with the columns that the settings name",
    )  # fmt: skip
    LEARNER_FAILED = (
        "learner failed", "a learner raised an error at this instance, in one fold",
        "mend the learner; `detail` has its error",
    )  # fmt: skip
    LATE = (
        "later than allowed",
        "the time is further behind the greatest time before it in its source than --order allows",
        "allow more, as in --order time:1h", "late",
    )  # fmt: skip
    BEHIND_THE_CLOCK = (
        "behind the clock",
        "the runner's watermark, the cut of an imported state, or the end of the input had passed the time",
        "allow more in order=, mend the watermark of the source, or give each job whole spans of time",
        "late",
    )  # fmt: skip
    NEW_PARTITION = (
        "new partition",
        "its partition was added while the job ran or after an export, and the clock had passed the time",
        "begin a new job, with a new output, where rows must have all events of the new partition",
        "late",
    )  # fmt: skip
    NO_LABEL = (
        "no label within ttl", "a prediction: no label of its id came within --ttl",
        "check --id, which both sides must have, --label-time and --ttl", "unmatched",
    )  # fmt: skip
    NO_LABEL_AT_END = (
        "no label within ttl before the input ended",
        "a prediction: the input ended before --ttl had passed, and no label had come",
        "nothing, if labels are still to come: export the state, and go on with the next input", "unmatched",
    )  # fmt: skip
    NO_PREDICTION = (
        "no prediction within ttl",
        "a label: no prediction of its id came within --ttl; an older one may have come, and is forgotten",
        "give a longer --ttl, if labels may take longer; else check --id", "unmatched",
    )  # fmt: skip
    NO_PREDICTION_AT_END = (
        "no prediction within ttl before the input ended",
        "a label: the same, and the input ended before --label-lead had passed",
        "read predictions that were made later, too; else check --id and --ttl", "unmatched",
    )  # fmt: skip
    SAME_LABEL = (
        "same label again", "a label with the id, time and label of one that came before",
        "nothing: the label counts once", "duplicate",
    )  # fmt: skip
    SECOND_LABEL = (
        "second label", "another label of this id counts; invalid with --second-label dead-letter",
        "choose which label counts with --second-label", ("duplicate", "invalid"),
    )  # fmt: skip
    SECOND_EVENT = (
        "second event of this model and id",
        "an event of this model and id came before, within --deduplicate of its time",
        "nothing, if it was delivered twice; else check --id", "duplicate",
    )  # fmt: skip


_UNITS = (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1)


@dataclass(frozen=True, eq=False)
class Rejected:
    """n records of one kind and one reason that a state machine did not apply.

    kind      one of `reason.kinds`
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
    """Return the sentence for each gap; `sentence` is called once for each distinct gap. O(n log n)."""
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
