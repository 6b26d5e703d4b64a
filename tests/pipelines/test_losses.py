"""Many dead letters: told while a job runs and at its end, and no imported state hides them."""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
import rocsteady as rs
from rocsteady.core.events.earlier import EARLIER_LOST, EARLIER_USED
from rocsteady.pipelines.evaluate.exit_status import status_of
from rocsteady.pipelines.evaluate.summary import ProgressLine
from rocsteady.transforms.beam import metrics, progress
from rocsteady.transforms.events import doubts
from rocsteady.transforms.events.dead_letters import DeadLetter, DeadLetters
from rocsteady.transforms.events.losses import losses

from tests.support.processes.command import call

JOIN = ("--id", "id", "--time", "t", "--ttl", "100s")
TIMED = ("--time", "t", "--id", "id")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    doubts.reset()
    metrics.reset()
    progress.reset()


def write(path, records):
    Path(path).write_text("".join(f"{json.dumps(record)}\n" for record in records))


def events(ids, start=1000, **more):
    return [{"id": f"e{i}", "score": i % 10 / 10, "label": i % 2, "t": start + i, **more} for i in ids]


def predictions(ids, start=1000):
    return [{"id": f"e{i}", "score": i % 10 / 10, "t": start + i} for i in ids]


def labels(ids, start=1000):
    return [{"id": f"e{i}", "label": i % 2, "t": start + i} for i in ids]


def evaluate(capsys, *words):
    return call(capsys, "evaluate", *words, "--output", "rows.jsonl")


def warning(ran, *words):
    """Return the line with all of these words; it is there once."""
    (line,) = (line for line in ran.lines if all(word in line for word in words))
    return line


# ---- an imported state


def of_events(capsys, records, *more):
    """Evaluate records after a job whose state holds one event that waits."""
    write("first.jsonl", events(range(20)))
    first = [word for word in more if word not in ("--export-state", "next")]
    assert evaluate(capsys, "first.jsonl", *TIMED, *first, "--export-state", "state").status == 0
    write("next.jsonl", records)
    return evaluate(capsys, "next.jsonl", *TIMED, *more, "--import-state", "state")


@pytest.mark.parametrize(
    ("records", "why"),
    [
        (events(range(30), start=500), "all were late: they are earlier than the cut of the imported state"),
        (events(range(5), start=500), "all were late: they are earlier than the cut"),
        ([{**event, "score": "x"} for event in events(range(30, 60))], "most often score is not a number"),
        ([{**event, "score": "x"} for event in events([77])], "most often score is not a number"),
    ],
    ids=["late", "few late", "invalid", "one invalid"],
)
def test_an_event_of_the_state_does_not_hide_that_none_was_applied(records, why, capsys):
    ran = of_events(capsys, records)
    assert ran.status == 3, ran
    assert (
        f"{len(records):,} event{'s' * (len(records) > 1)} read + 1 of the state = 1 applied" in ran.lines[0]
    )
    assert "; one of them is {" in warning(ran, "no event that the job read was applied: ", why)
    none = f"of {len(records)} record{'s' * (len(records) > 1)} none was applied, and 1 of the imported state"
    assert warning(ran, "nothing that the job read was evaluated", none).endswith("; the exit status is 3")


@pytest.mark.parametrize(("score", "status"), [("x", 3), (0.5, 0)], ids=["invalid", "sound"])
def test_an_event_of_the_state_that_waits_on_in_an_export_hides_it_no_more(score, status, capsys):
    records = [{**event, "score": score} for event in events([40])]
    ran = of_events(capsys, records, "--export-state", "next")
    assert ran.status == status, ran
    assert "1 event read + 1 of the state = " in ran.lines[0]
    assert "1 kept in the state" in ran.lines[0]
    assert any("; the exit status is 3" in line for line in ran.lines) == (status == 3)


def test_of_duplicates_too_whose_positions_are_their_own(capsys):
    again = ("--deduplicate", "1000s", "--model-name", "m", "--dead-letters", "dead.jsonl")
    repeated = [{**events([19])[0], "t": time} for time in (1020, 1021, 1022)]
    ran = of_events(capsys, repeated, *again)
    assert ran.status == 3, ran
    assert "3 events read + 1 of the state = 1 applied + 0 dead letters + 3 duplicates" in ran.lines[0]
    letters = [json.loads(line) for line in Path("dead.jsonl").read_text().splitlines()]
    assert sorted(letter["position"] for letter in letters) == [0, 1, 2]


def test_one_event_of_its_own_is_enough(capsys):
    ran = of_events(capsys, [*events(range(9), start=500), *events([40])])
    assert ran.status == 0, ran
    assert any("= 2 applied + 0 dead letters + 9 late" in line for line in ran.lines)


def of_a_join(capsys, first, then, *more):
    """Evaluate (predictions, labels) after a job with others whose predictions wait in its state."""
    for name, (made, known) in (("first", first), ("next", then)):
        write(f"{name}-p.jsonl", made)
        write(f"{name}-l.jsonl", known)
    options = ("--labels", "first-l.jsonl", *JOIN, *more)
    ran = evaluate(capsys, "first-p.jsonl", *options, "--export-state", "state")
    assert ran.status == 0, ran
    options = ("--labels", "next-l.jsonl", *JOIN, *more, "--import-state", "state")
    return evaluate(capsys, "next-p.jsonl", *options)


WAITING = (predictions(range(50)), labels([0], start=1060))


@pytest.mark.parametrize(
    ("then", "status"),
    [
        # the job's predictions get no label; nor do those of the state
        ((predictions(range(500, 530), start=700), [{"id": "none", "label": 1, "t": 1300}]), 3),
        # the job's predictions get labels; 49 predictions of the state do not
        ((predictions(range(100, 130)), labels(range(100, 130), start=1010)), 0),
        # the job's predictions get none, and its labels serve predictions of the state
        ((predictions(range(500, 530), start=700), labels(range(1, 4), start=1070)), 0),
    ],
    ids=["unmatched", "matched", "labels of the state's"],
)
def test_of_a_join_counts_what_the_job_read_itself(then, status, capsys):
    ran = of_a_join(capsys, WAITING, then)
    assert "of the state" in ran.lines[0]
    assert ran.status == status, ran


def test_the_status_subtracts_what_the_state_lost():
    """500 predictions of a state and 500 of the job: which were unmatched decides."""
    counts = Counter(events_read=500, events_taken_up=500, events_applied=500, unmatched=500)
    assert status_of(counts, ()) == 3
    assert status_of(counts | Counter({EARLIER_LOST: 500}), ()) == 0
    assert status_of(counts | Counter({EARLIER_LOST: 1}), ()) == 0
    waits_on = Counter(events_applied=499, events_kept=1)  # 1 of the state's predictions
    assert status_of(counts - Counter(events_applied=500) + waits_on, ()) == 3
    assert status_of(counts - Counter(events_applied=1, unmatched=1) + Counter(events_kept=2), ()) == 0
    assert status_of(counts, (), goes_on=True) == 0
    of_labels = Counter(labels_read=9, events_taken_up=5, events_applied=5, labels_used=5)
    assert status_of(of_labels, ()) == 0
    assert status_of(of_labels | Counter({EARLIER_USED: 5}), ()) == 3


# ---- at the end


@pytest.mark.parametrize(
    ("dead", "sound", "is_told"),
    [(11, 99, False), (10, 90, False), (11, 89, True), (12, 88, True), (12, 87, False), (99, 0, True)],
)
def test_more_than_a_tenth_of_a_hundred_records_is_told(dead, sound, is_told, capsys):
    write("s.jsonl", [*events(range(sound)), *events(range(900, 900 + dead), score="high")])
    ran = evaluate(capsys, "s.jsonl")
    found = [line for line in ran.lines if "most often score is not a number" in line]
    assert len(found) == is_told, ran
    if is_told and sound:
        assert found[0].startswith(
            f"rocsteady: {dead}% of the events are dead letters: most often score is not a number (in the "
            "column 'score', such as 'high'); check --score; one of them is {"
        )
        assert found[0].endswith(f"(s.jsonl, position {sound})")
        assert '"score": "high"' in found[0]


def test_of_several_reasons_the_most_frequent_is_told_and_all_letters_count(capsys):
    records = [
        *events(range(88)), *events(range(100, 107), score=None), *events(range(200, 205), label="yes"),
    ]  # fmt: skip
    write("s.jsonl", records)
    ran = evaluate(capsys, "s.jsonl")
    assert warning(ran, "12% of the events are dead letters: most often score is missing")


def test_late_events_and_labels_that_are_no_labels_are_told(capsys):
    write("s.jsonl", [*events(range(300)), *events(range(40), start=0)])
    ran = evaluate(capsys, "s.jsonl", "--time", "t", "--order", "time:10s")
    late = warning(
        ran, "12% of the events were late: --order time:10s allows too little, if not meant; one of"
    )
    assert '"t": ' in late or '"time": ' in late
    write("p.jsonl", predictions(range(120)))
    write(
        "l.jsonl", [*labels(range(120), start=1010), *({**each, "label": "?"} for each in labels(range(60)))]
    )
    ran = evaluate(capsys, "p.jsonl", "--labels", "l.jsonl", *JOIN)
    told = warning(ran, "33% of the labels are dead letters: most often label is unknown")
    assert told.endswith("(l.jsonl, position 120)")


def test_few_records_that_are_all_dead_are_told_of_each_kind(capsys):
    write("first.jsonl", events(range(3), start=900))
    write("p.jsonl", predictions(range(3)))
    write("l.jsonl", [{"id": "none", "label": 1, "t": 1001}])
    ran = evaluate(capsys, "p.jsonl", "--labels", "l.jsonl", *JOIN)
    assert ran.status == 3
    assert '; one of them is {"' in warning(ran, "no event was applied: no label came for any prediction")


def test_the_table_of_models_names_the_scores_that_were_refused(capsys):
    """Instead of "wait for more": of 2,400 events 2,200 are no probabilities, so two windows never come."""
    write("s.jsonl", [*events(range(200)), *events(range(300, 2_500), score=3.5)])
    ran = call(capsys, "evaluate", "s.jsonl", "--probabilities")
    said = " ".join(ran.out.split())
    assert "cannot tell: no earlier window" in said
    assert "wait for more" not in said
    assert (
        "2,200 of 2,400 events are dead letters, most often score is not a probability (in the column "
        "'score', such as '3.5'); leave out --probabilities, or check --score." in said
    )
    write("few.jsonl", events(range(200)))
    assert "wait for more" in " ".join(call(capsys, "evaluate", "few.jsonl").out.split())


def test_a_page_says_it_too(capsys):
    write("s.jsonl", [*events(range(88)), *events(range(100, 112), score="high")])
    assert call(capsys, "evaluate", "s.jsonl", "--report", "page.html").status == 0
    assert (
        "12% of the events are dead letters: most often score is not a number"
        in Path("page.html").read_text()
    )


# ---- while a job runs


@pytest.mark.parametrize(
    ("dead", "sound", "words"),
    [
        (12, 200, None),
        (60, 150, "of the first "),
        (15, 0, "none of the first 1"),
    ],
)
def test_a_live_job_says_so_once_as_soon_as_it_is_so(dead, sound, words, capsys, monkeypatch):
    records = [*events(range(sound)), *events(range(900, 900 + dead), score="high")]
    write("in.jsonl", records)
    with Path("in.jsonl").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        ran = call(capsys, "evaluate", "-", "--output", "rows.jsonl")
    end = next(number for number, line in enumerate(ran.lines) if " events read = " in line)
    told = [line for line in ran.lines[:end] if "most often" in line]
    assert len(told) == (words is not None), ran
    if words is not None:
        assert words in told[0]
        assert (
            "most often score is not a number (in the column 'score', such as 'high'); check --score"
            in told[0]
        )
        assert told[0].endswith(f"(stdin, position {sound})")


def refuse(number, read, reason="score is not a number"):
    letters = DeadLetters.of(
        DeadLetter("invalid", reason, "day.csv", 4 + i, raw='{"score": "high"}', value="high")
        for i in range(number)
    )
    metrics.count_records("event", read, letters, None, 0)


def test_a_progress_line_has_share_reason_and_a_record():
    with ProgressLine(enabled=False) as line:
        refuse(9, 99)
        assert line._loss() is None
        refuse(3, 1)
        assert line._line(progress.read(), 9.0, line._loss()) == (
            "100 events read, 12 dead letters (12%, most often score is not a number, such as "
            '{"score": "high"} (day.csv, position 4)); 9 s'
        )
    with ProgressLine(enabled=False) as line:  # what earlier jobs of this process counted is theirs
        assert line._loss() is None


def test_a_worker_elsewhere_warns_in_its_log_once(caplog):
    with caplog.at_level(logging.WARNING, "rocsteady.dead_letters"):
        refuse(9, 99)
        assert not caplog.messages
        refuse(50, 100)
        refuse(50, 100)
    (said,) = caplog.messages
    assert said == (
        "30% of the events are dead letters: most often score is not a number, such as "
        '{"score": "high"} (day.csv, position 4); check --score'
    )


@pytest.mark.parametrize(("dead", "sound", "share"), [(12, 88, "12%"), (3, 0, "100%"), (9, 88, None)])
def test_frames_warn(dead, sound, share, caplog):
    frame = pl.DataFrame(
        {"score": [*["high"] * dead, *["0.5"] * sound], "label": [1, 0] * 48 + [1] * (dead + sound - 96)}
        if dead + sound > 96
        else {"score": ["high"] * dead, "label": [1] * dead}
    )
    with caplog.at_level(logging.WARNING, "rocsteady.dead_letters"):
        rs.evaluate(frame)
    told = [message for message in caplog.messages if "dead letters" in message]
    assert len(told) == (share is not None)
    if share is not None:
        assert told[0].startswith(f"{share} of the events are dead letters: most often score is not a number")
        assert '{"score":"high"' in told[0].replace('": "', '":"')


def test_learners_say_so_of_their_instances(capsys):
    records = [{"x": i % 7, "label": i % 2, "t": 1000 + i} for i in range(100)]
    write("s.jsonl", [*records, *({**record, "t": "soon"} for record in records[:20])])
    words = ("--time", "t", "--learner", "majority", "--learner", "persistent", "--folds", "2")
    ran = call(capsys, "prequential", "s.jsonl", *words, "--output", "out")
    told = warning(ran, "17% of the first 120 instances are dead letters: most often time cannot be read")
    assert "; one of them is {" in told


# ---- by counters


def test_duplicates_and_labels_without_a_prediction_are_no_losses():
    letters = [
        ("duplicate", "second event of this model and id", 90),
        ("unmatched", "no prediction within ttl", 90),
    ]
    counts = {"events_read": 100, "duplicate": 90, "labels_read": 100, "labels_unmatched": 90}
    assert not [*losses(counts, letters)]
    (loss,) = losses({**counts, "unmatched": 11}, [*letters, ("unmatched", "no label within ttl", 11)])
    assert (loss.role, loss.dead, loss.reason, loss.share) == ("event", 11, "no label within ttl", "11%")
