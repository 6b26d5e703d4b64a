"""The one rule that decides which values are one class, and the classes of a job.

Every part that takes labels (files, frames, Beam, joins, learners, evaluators) compares the `class_text` of
labels, predicted classes, the positive class and names of classes:

    number               its value: 1, 1.0, "1", "01" and "1e0" are the class "1"
    true, false          1 and 0, in any case, as booleans or as words
    -1                   0, where labels or predictions have -1 beside 1 and never both -1 and 0 (`negatives`)
    any other text       its letters, without blanks around them; "Yes" and "yes" are two classes
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

_BOOLEANS = {"true": "1", "false": "0"}

MINUS_ONE, ZERO, ONE = "-1", "0", "1"
"""The classes of binary labels, by their `class_text`."""


def class_text(value: object) -> str:
    """Return the text by which a class is compared: two values are one class if their texts are equal.

    The exception is -1 together with 1: the module says when -1 is the class 0.

    >>> class_text(1.0), class_text(" 1 "), class_text(True), class_text("UP"), class_text(0.5)
    ('1', '1', '1', 'UP', '0.5')
    """
    name = class_name(value)
    return _BOOLEANS.get(name, name)


def class_name(value: object) -> str:
    """Return the name of a class as rows show it: its `class_text`, but "true" and "false" stay words.

    >>> class_name("1.0"), class_name(True), class_name("UP")
    ('1', 'true', 'UP')
    """
    if hasattr(value, "item"):
        value = value.item()  # value is a scalar of numpy
    elif hasattr(value, "as_py"):
        value = value.as_py()  # value is a scalar of Arrow
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    text = str(value).strip()
    if text.lower() in _BOOLEANS:
        return text.lower()
    if not text or text[0] not in "+-.0123456789" or "_" in text or not text.isascii():
        return text
    if text[text[0] in "+-" :].isdecimal() and len(text) < 4000:  # int() refuses longer numbers
        return str(int(text))
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        return text
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def named_classes(names: Iterable[str]) -> dict[str, str]:
    """Return the name of each class by the texts that labels and predictions may have for the class.

    names  the names of all classes. If the names are 1 and 0, then -1 is the class 0; if they are 1 and -1,
           then 0 is the class -1.

    >>> named_classes(["true", "false"])
    {'1': 'true', '0': 'false', '-1': 'false'}
    """
    found = {class_text(name): name for name in names}
    for lacking, other in ((MINUS_ONE, ZERO), (ZERO, MINUS_ONE)):
        if found.keys() == {ONE, other}:
            found[lacking] = found[other]
            break
    return found


def are_one(labels: Collection[str], predicted: Collection[str]) -> bool:
    """Return whether -1 and 0 are one class.

    This is so if labels and predictions have only the classes -1, 0 and 1, and each side has either -1 or 0.

    >>> are_one(["1", "-1"], ["1", "0"]), are_one(["1", "-1", "0"], ["1", "0"]), are_one(["2", "-1"], ["0"])
    (True, False, False)
    """
    pair = {MINUS_ONE, ZERO}
    sides = [pair.intersection(labels), pair.intersection(predicted)]
    return {*labels, *predicted} <= {*pair, ONE} and all(len(s) == 1 for s in sides) and sides[0] != sides[1]


def shared_classes(labels: Collection[str], predicted: Collection[str], positive: str | None) -> set[str]:
    """Return the classes that labels and predictions have in common, as `class_text`.

    positive  the positive class, or None: if another class than 1 is positive, -1 is not the class 0
    """
    common = {*labels} & {*predicted}
    return common | {ZERO} if positive in (None, ONE) and are_one(labels, predicted) else common


@dataclass(frozen=True)
class Classes:
    """The classes of the models of a job, which have a score of each class.

    names        the names of the classes, in the order of the scores
    multi_label  whether an event may be of none, one or several classes
    """

    names: tuple[str, ...]
    multi_label: bool = False
