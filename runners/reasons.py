"""Finds the reason why a job failed, as one sentence, in errors and log records of a runner.

Runners pass an error of a worker on as text, with its traceback. `reason_of` reads an error that a runner
raised. `RunnerLog` filters the log of a remote runner: repeated lines pass rarely, rocsteady errors as one
sentence.
"""

from __future__ import annotations

import logging
import re

from ..core.errors import RocsteadyError
from ..core.process.console import RareLog

_STEP = re.compile(r" \[while running '.*?'\]")
"""Beam's remark on the step in which an error occurred. It may be in the middle of an error's text."""

CANCELLED = "the job was cancelled on its cluster; its counters are not known, and what was written stays"

_CHECKED = "Unparseable argument: "
"""The start of Beam's warning about options unknown to Beam's Python; rocsteady has checked these options."""


def reason_of(error: BaseException) -> str:
    """Return the sentence of a rocsteady error, extracted from the error that a runner raised.

    Runners pass an error from a worker on as text, including the traceback.
    """
    seen: BaseException | None = error
    while seen is not None:
        sentence = str(seen) if isinstance(seen, RocsteadyError) else sentence_in(str(seen))
        if sentence is not None:
            return _STEP.sub("", sentence)
        seen = seen.__cause__ or seen.__context__
    if "JobCancellationException" in str(error):  # Flink reports a cancellation as an error
        return CANCELLED
    last = (str(error).strip().splitlines() or [""])[-1]
    name = type(error).__name__
    said = last if name == "RuntimeError" else f"{name}: {last}"  # a worker's error text includes its name
    return f"the job failed: {_STEP.sub('', said)}"


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
