"""The reasons why a record does not count: a closed list of short phrases, without values.

A dead letter's `reason` is one of these phrases, so that letters can be grouped by it. The values are in the
letter's other columns. The list is a contract: a phrase is never changed or given another meaning; a later
version may add one. docs/reasons.md and docs/schemas/dead-letter.json are made from it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

RejectedKind = Literal["invalid", "late", "unmatched", "duplicate"]
"""Kinds of records that do not count."""


class Reason(StrEnum):
    """A reason, with the texts of its row in the docs.

    kinds   the kinds of dead letter that have this reason
    option  the option that names the column at fault; "" if no column is at fault
    means   the fault of the record, in words
    remedy  the action to take, in options of the command

    >>> Reason.SCORE_NOT_A_NUMBER, Reason.SCORE_NOT_A_NUMBER.kinds
    (<Reason.SCORE_NOT_A_NUMBER: 'score is not a number'>, ('invalid',))
    """

    kinds: tuple[RejectedKind, ...]
    option: str
    means: str
    remedy: str

    def __new__(
        cls, words: str, kinds: RejectedKind | tuple[RejectedKind, ...], option: str, means: str, remedy: str
    ) -> Reason:
        """Make a member whose value is its phrase."""
        self = str.__new__(cls, words)
        self._value_ = words
        self.kinds = (kinds,) if isinstance(kinds, str) else kinds
        self.option, self.means, self.remedy = option, means, remedy
        return self

    MODEL_MISSING = (
        "model is missing", "invalid", "model", "the record names no model",
        "check --model, or give all records one name with --model-name",
    )  # fmt: skip
    SCORE_MISSING = "score is missing", "invalid", "score", "the record has no score", "check --score"
    SCORE_NOT_A_NUMBER = (
        "score is not a number", "invalid", "score", "the score is text that is no number", "check --score",
    )  # fmt: skip
    SCORE_NOT_FINITE = (
        "score is not finite", "invalid", "score", "the score is infinite or NaN",
        "mend the model that gives such scores",
    )  # fmt: skip
    SCORE_NOT_A_PROBABILITY = (
        "score is not a probability", "invalid", "score",
        "--probabilities is given, and the score is below 0 or above 1",
        "leave out --probabilities, or check --score",
    )  # fmt: skip
    LABEL_MISSING = "label is missing", "invalid", "label", "the record has no label", "check --label"
    LABEL_UNKNOWN = (
        "label is unknown", "invalid", "label", "the label is none of 1, 0, -1, true, false",
        "name the positive class with --positive, or check --label",
    )  # fmt: skip
    PREDICTED_MISSING = (
        "predicted class is missing", "invalid", "predicted", "the record has no predicted class",
        "check --predicted",
    )  # fmt: skip
    TIME_MISSING = "time is missing", "invalid", "time", "the record has no time", "check --time"
    TIME_UNREADABLE = (
        "time cannot be read", "invalid", "time",
        "the time is neither RFC 3339, nor a date, nor a number in --time-unit",
        "check --time and --time-unit, or name the form of texts with --time-format",
    )  # fmt: skip
    TIME_UNFIT = (
        "time does not fit the format", "invalid", "time",
        "the time has another form than --time-format says",
        "check --time and --time-format",
    )  # fmt: skip
    TIME_OUT_OF_RANGE = (
        "time is out of range", "invalid", "time",
        "in --time-unit the number lies outside the years 1 to 9999",
        "give another --time-unit, or --time-format where digits are a date",
    )  # fmt: skip
    TIME_TOO_FAR_AHEAD = (
        "time is too far ahead", "invalid", "time",
        "the time is further ahead of the clock on the wall than --max-ahead allows",
        "mend the clock of the sender, or allow more with --max-ahead",
    )  # fmt: skip
    ID_MISSING = (
        "id is missing", "invalid", "id", "the record has no id, and a join or a fold needs one",
        "check --id",
    )  # fmt: skip
    WEIGHT_MISSING = "weight is missing", "invalid", "weight", "the record has no weight", "check --weight"
    WEIGHT_NOT_A_NUMBER = (
        "weight is not a number", "invalid", "weight", "the weight is text that is no number",
        "check --weight",
    )  # fmt: skip
    WEIGHT_NOT_FINITE = (
        "weight is not finite", "invalid", "weight", "the weight is infinite or NaN", "check --weight",
    )  # fmt: skip
    WEIGHT_NOT_POSITIVE = (
        "weight is not positive", "invalid", "weight", "the weight is 0 or negative",
        "leave out events that shall not count, or check --weight",
    )  # fmt: skip
    FEATURE_MISSING = (
        "feature is missing", "invalid", "feature", "a feature that is a number is the empty text",
        "leave the field out where there is no value",
    )  # fmt: skip
    FEATURE_NOT_A_NUMBER = (
        "feature is not a number", "invalid", "feature", "a feature that is a number is other text",
        "check --feature, or name the column with --category",
    )  # fmt: skip
    FEATURE_NOT_FINITE = (
        "feature is not finite", "invalid", "feature", "a feature is infinite",
        "mend the source of the feature",
    )  # fmt: skip
    WRONG_NUMBER_OF_FIELDS = (
        "wrong number of fields", "invalid", "",
        "a line of CSV has more or fewer fields than the header names",
        "mend the line; perhaps a field with a comma is not quoted",
    )  # fmt: skip
    NOT_UTF8 = (
        "not UTF-8", "invalid", "", "a cell or a line holds bytes that are not UTF-8",
        "convert the file to UTF-8",
    )  # fmt: skip
    NOT_A_JSON_OBJECT = (
        "not a JSON object", "invalid", "", "a line or a message is no JSON, or JSON that is no object",
        "write one JSON object on each line or in each message",
    )  # fmt: skip
    LINE_TOO_LONG = (
        "line is too long", "invalid", "", "a line of JSON, or a message, has more than 8 MiB",
        "write one record on each line, each no longer than that",
    )  # fmt: skip
    EMPTY_MESSAGE = (
        "empty message", "invalid", "", "a message of a topic has no value",
        "leave out messages that only mark a deletion",
    )  # fmt: skip
    MESSAGES_DELETED = (
        "messages deleted before they were read", "invalid", "",
        "the topic's retention deleted messages; this letter stands for all of them, from its position on",
        "keep messages for longer than the job may be behind",
    )  # fmt: skip
    FILE_UNREADABLE = (
        "file cannot be read", "invalid", "",
        "a file of a watched folder is damaged or gone; this letter stands for the rest of its records",
        "write the file anew, under another name",
    )  # fmt: skip
    FILE_CHANGED = (
        "file changed after it was found", "invalid", "",
        "a file of a watched folder was written to after it was read; what was added is not read",
        "rename files into the folder when they are whole",
    )  # fmt: skip
    NOT_A_RECORD = (
        "not a record", "invalid", "", "an element of a PCollection has no fields",
        "give dicts, NamedTuples, beam.Rows or packed batches",
    )  # fmt: skip
    PACKED_BATCH_UNFIT = (
        "packed batch does not fit", "invalid", "",
        "packed events are damaged, or lack what the settings need; this letter stands for the whole batch",
        "pack events with the columns that the settings name",
    )  # fmt: skip
    LEARNER_FAILED = (
        "learner failed", "invalid", "", "a learner raised an error at this instance, in one fold",
        "mend the learner; `detail` has its error",
    )  # fmt: skip
    LATE = (
        "later than allowed", "late", "",
        "the time is further behind the greatest time before it in its source than --order allows",
        "allow more, as in --order time:1h",
    )  # fmt: skip
    BEHIND_THE_CLOCK = (
        "behind the clock", "late", "",
        "the runner's watermark, the cut of an imported state, or the end of the input had passed the time",
        "allow more in order=, mend the watermark of the source, or give each job whole spans of time",
    )  # fmt: skip
    NO_LABEL = (
        "no label within ttl", "unmatched", "", "a prediction: no label of its id came within --ttl",
        "check --id, which both sides must have, --label-time and --ttl",
    )  # fmt: skip
    NO_LABEL_AT_END = (
        "no label within ttl before the input ended", "unmatched", "",
        "a prediction: the input ended before --ttl had passed, and no label had come",
        "nothing, if labels are still to come: export the state, and go on with the next input",
    )  # fmt: skip
    NO_PREDICTION = (
        "no prediction within ttl", "unmatched", "",
        "a label: no prediction of its id came within --ttl; an older one may have come, and is forgotten",
        "give a longer --ttl, if labels may take longer; else check --id",
    )  # fmt: skip
    NO_PREDICTION_AT_END = (
        "no prediction within ttl before the input ended", "unmatched", "",
        "a label: the same, and the input ended before --label-lead had passed",
        "read predictions that were made later, too; else check --id and --ttl",
    )  # fmt: skip
    SAME_LABEL = (
        "same label again", "duplicate", "", "a label with the id, time and label of one that came before",
        "nothing: the label counts once",
    )  # fmt: skip
    SECOND_LABEL = (
        "second label", ("duplicate", "invalid"), "",
        "another label of this id counts; invalid with --second-label dead-letter",
        "choose which label counts with --second-label",
    )  # fmt: skip
    SECOND_EVENT = (
        "second event of this model and id", "duplicate", "",
        "an event of this model and id came before, within --deduplicate of its time",
        "nothing, if it was delivered twice; else check --id",
    )  # fmt: skip
