"""What a runner logs while a job runs elsewhere: the same words rarely, errors of ours as a sentence."""

from __future__ import annotations

import logging

from ...core.errors import RocsteadyError
from ...core.process.rare_log import RareLog

_CHECKED = "Unparseable argument: "
"""Beam's remark on an option of its runner that Beam's Python does not know; each was looked at before."""


class RunnerLog(RareLog):
    """Lets a runner's lines pass, like ones once a minute.

    An error of ours comes from a worker with several tracebacks, and again at each restart of the job: its
    sentence is logged in their place.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record may pass; put the sentence of an error of ours in place of its tracebacks."""
        text = record.getMessage()
        if text.startswith(_CHECKED):
            return False
        error = record.exc_info[1] if record.exc_info else None
        sentence = str(error) if isinstance(error, RocsteadyError) else sentence_in(text)
        if sentence is not None:
            record.msg, record.args, record.exc_info, record.exc_text = sentence, (), None, None
        return super().filter(record)


def sentence_in(text: str) -> str | None:
    r"""Find the sentence of an error of ours in a text with tracebacks: it stands after its class's name.

    >>> sentence_in("instruction 7: Traceback: ...\nrocsteady.core.errors.InputError: a file is short")
    'a file is short'
    """
    for line in text.splitlines():
        name, colon, sentence = line.partition(": ")
        if colon and name.startswith("rocsteady.core.errors."):
            return sentence
    return None
