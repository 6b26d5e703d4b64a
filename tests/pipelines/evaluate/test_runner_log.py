"""What a runner logs: like lines rarely, errors of ours as their sentence, no remarks on checked options."""

from __future__ import annotations

import io
import logging

import pytest
from rocsteady.core.errors import InputError
from rocsteady.pipelines.evaluate.run import RunnerLog


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
