"""Filters the log of a remote runner: repeated lines pass rarely, rocsteady errors pass as one sentence."""

from __future__ import annotations

import logging

from ...core.errors import RocsteadyError
from ...core.process.rare_log import RareLog

_CHECKED = "Unparseable argument: "
"""The start of Beam's warning about options unknown to Beam's Python; rocsteady has checked these options."""


class RunnerLog(RareLog):
    """A log filter that passes a runner's lines; similar lines pass once a minute.

    A rocsteady error comes from a worker with several tracebacks, and again at each restart of the job. The
    filter logs the error's sentence instead of the tracebacks.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record may pass; replace tracebacks of a rocsteady error by the error's sentence."""
        text = record.getMessage()
        if text.startswith(_CHECKED):
            return False
        error = record.exc_info[1] if record.exc_info else None
        sentence = str(error) if isinstance(error, RocsteadyError) else sentence_in(text)
        if sentence is not None:
            record.msg, record.args, record.exc_info, record.exc_text = sentence, (), None, None
        return super().filter(record)


def sentence_in(text: str) -> str | None:
    r"""Return the sentence of a rocsteady error in a text with tracebacks: the text after the class's name.

    >>> sentence_in("instruction 7: Traceback: ...\nrocsteady.core.errors.InputError: a file is short")
    'a file is short'
    """
    for line in text.splitlines():
        name, colon, sentence = line.partition(": ")
        if colon and name.startswith("rocsteady.core.errors."):
            return sentence
    return None
