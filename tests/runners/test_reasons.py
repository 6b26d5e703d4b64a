"""The reason of a failed job is one sentence; a runner's log says an error of ours once, as its sentence."""

from __future__ import annotations

import io
import logging

import pytest
from rocsteady.core.errors import InputError, RocsteadyError
from rocsteady.runners.reasons import RunnerLog, reason_of


def test_the_sentence_is_found_in_what_an_engine_made_of_it():
    sentence = "a.csv is damaged; restore it"
    assert reason_of(InputError(f"{sentence} [while running 'Read/Read']")) == sentence
    trace = [
        "Traceback (most recent call last):",
        "  File ...",
        f"rocsteady.core.errors.InputError: {sentence}",
    ]
    text = "\n".join(trace) + " [while running 'x']\n"
    assert reason_of(RuntimeError(text)) == sentence
    outer = ValueError("a bundle failed 4 times")
    outer.__cause__ = RocsteadyError(sentence)
    assert reason_of(outer) == sentence
    assert reason_of(
        RuntimeError("Traceback ...\nOSError: [Errno 28] No space left on device [while running 'W']")
    ) == ("the job failed: OSError: [Errno 28] No space left on device")
    remark = (
        "utf-8 [while running 'Read/Read/ParDo(_ReadFile)']"  # Beam's, into the first argument of any error
    )
    assert reason_of(UnicodeEncodeError(remark, "\udcff", 0, 1, "surrogates not allowed")) == (
        "the job failed: UnicodeEncodeError: 'utf-8' codec can't encode character '\\udcff' in position 0: "
        "surrogates not allowed"
    )
    cancelled = RuntimeError(
        "Pipeline nightly failed: org.apache...JobCancellationException: Job was cancelled."
    )
    assert reason_of(cancelled).startswith("the job was cancelled on its cluster")
    assert reason_of(KeyError("a")) == "the job failed: KeyError: 'a'"
    assert reason_of(ValueError()) == "the job failed: ValueError: "


@pytest.fixture
def logged():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RunnerLog())
    logger = logging.Logger("runner")
    logger.addHandler(handler)

    def lines(*calls):
        for call in calls:
            call(logger)
        return stream.getvalue().splitlines()

    return lines


def failed(logger, error):
    logger.error("%s [while running 'Apply']", error, exc_info=error)


def test_an_error_of_ours_is_a_sentence_and_comes_once(logged):
    said = "window was 'last:5'"
    texts = [f"instruction {n}:\n  File x\nrocsteady.core.errors.InputError: {said}" for n in range(3)]
    calls = [lambda logger, text=text: logger.error(text) for text in texts]
    assert logged(lambda logger: failed(logger, InputError(said)), *calls) == [said]


def test_other_lines_pass_with_their_tracebacks(logged):
    lines = logged(lambda logger: failed(logger, ValueError("not ours")))
    assert lines == ["not ours [while running 'Apply']", "ValueError: not ours"]


def test_options_that_were_checked_are_not_remarked_on(logged):
    assert logged(
        lambda logger: logger.warning("Unparseable argument: --max_bundle_size=1000"),
        lambda logger: logger.warning("Waiting for a channel"),
    ) == ["Waiting for a channel"]
