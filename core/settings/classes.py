"""The spelling of a class of labels: a number, a truth value or a word has one text. The classes of a job."""

from __future__ import annotations

import math
from dataclasses import dataclass


def class_text(value: object) -> str:
    """Return the text of a class. Numbers count by value, so that 1, 1.0 and "1" are one class.

    >>> class_text(1.0), class_text(" 1 "), class_text(True), class_text("UP"), class_text(0.5)
    ('1', '1', 'true', 'UP', '0.5')
    """
    if hasattr(value, "item"):
        value = value.item()  # a scalar of numpy
    text = str(value).strip()
    if text.lower() in ("true", "false"):
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


@dataclass(frozen=True)
class Classes:
    """The classes of the models of a job, which have a score of each class.

    names        the names of the classes, in the order of the scores
    multi_label  whether an event may be of any number of classes
    """

    names: tuple[str, ...]
    multi_label: bool = False
