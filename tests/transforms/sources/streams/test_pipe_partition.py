"""Lines on a pipe as a partition: every line once, in order, however it came."""

from __future__ import annotations

import io
import os
import select
import threading
import time
from contextlib import contextmanager
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import RocsteadyError
from rocsteady.core.events.records import StateMarker, unpack_record
from rocsteady.core.ids.sharding import Cut
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import ANY_TIME
from rocsteady.transforms.events.validate import validate_as
from rocsteady.transforms.files.lines import WholeLines
from rocsteady.transforms.sources.files.json_lines import JsonLines
from rocsteady.transforms.sources.streams import pipe_partition
from rocsteady.transforms.sources.streams.pipe_partition import PipeLines, PipePartition
from rocsteady.transforms.sources.streams.reader import StreamReader
from rocsteady.transforms.sources.streams.stream_input import StreamInput

from tests.support.thorough import examples

FIELDS = EventFields(model_name="m")

AWKWARD = [
    b'{"score": 0.25, "label": 1}',
    b'{"label": 0, "score": 1}\r',
    b"",
    b"   ",
    b"no object",
    b"[1, 2]",
    b"null",
    b'{"score": 0.5, "label": 1, "more": {"a": [1, null]}}',
    b'{"score": "\xff", "label": 1}',
    '{"score": 0.75, "label": 0, "name": "Zoë \U0001f600"}'.encode(),
    b'{"score": NaN, "label": 1}',
    b'{"score": 3, "label": 2}',
    b'{"score": 3, "label": 0.5}',
    b'{"score": 0.125',
]
"""Lines of every kind; a newline may or may not follow the last one."""


def judged(chunk):
    """(position, what became of it) of every record of a chunk."""
    events, letters = validate_as("event", chunk, FIELDS, "stdin", 0, ANY_TIME, located=True)
    sound = zip(
        events.positions.tolist(), map(str, zip(events.scores, events.labels, strict=True)), strict=True
    )
    return [*sound, *((letter.position, str(letter)) for letter in (*chunk.dead, *letters))]


class Lines:
    """What a partition gives, fetch by fetch."""

    def __init__(self, handle, fields=FIELDS):
        self.partition = PipePartition(PipeLines(handle), fields)
        self.offset, self.ended = 0, False

    def next(self, wait=0.0):
        fetched = self.partition.fetch(self.offset, 1_000, wait)
        self.offset, self.ended = fetched.next, fetched.ended
        return list(fetched.parts)

    def rest(self):
        parts = []
        while not self.ended:
            parts += self.next(0.01)
        return parts


@contextmanager
def pipe():
    receive, send = os.pipe()
    try:
        with os.fdopen(send, "wb", buffering=0) as file:
            yield receive, file
    finally:
        os.close(receive)


def read_in_pieces(pieces, fields=FIELDS):
    """The parts of pieces that come one by one."""
    found = []
    with pipe() as (receive, send):
        lines = Lines(receive, fields)
        for piece in pieces:
            send.write(piece)
            found += lines.next()
        send.close()
        return found + lines.rest()


@settings(max_examples=examples(150))
@given(
    lines=st.lists(st.sampled_from(AWKWARD), max_size=8),
    mark=st.booleans(),
    ended=st.booleans(),
    cuts=st.lists(st.integers(0, 400), max_size=6),
)
def test_lines_cut_anywhere_are_the_lines_of_a_file(lines, mark, ended, cuts):
    data = b"\xef\xbb\xbf" * mark + b"\n".join(lines) + b"\n" * (ended and bool(lines))
    bounds = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    found = read_in_pieces([data[a:b] for a, b in pairwise(bounds)])
    whole = JsonLines("stdin", ["label"], FIELDS.columns).of_stream(io.BytesIO(data))
    places = sorted(place for part in found for place in judged(part.chunk))
    assert places == sorted(place for chunk in whole for place in judged(chunk))
    assert [place for place, _ in places] == list(range(len(places)))
    assert {part.source for part in found} <= {"stdin"}


@settings(max_examples=examples(100), deadline=None)
@given(
    lines=st.lists(st.sampled_from(AWKWARD), min_size=1, max_size=8),
    mark=st.booleans(),
    cut=st.integers(0, 400),
    ended=st.booleans(),
)
def test_another_process_goes_on_behind_the_records_that_were_read(lines, mark, cut, ended):
    data = b"\xef\xbb\xbf" * mark + b"\n".join(lines) + b"\n" * ended
    with pipe() as (receive, send):
        send.write(data[:cut])
        before = PipePartition(PipeLines(receive), FIELDS).fetch(0, 1_000, 0.0)
    with pipe() as (receive, send):
        send.write(data)
        send.close()
        partition, found, ended = PipePartition(PipeLines(receive), FIELDS), [], False
        offset = before.next
        while not ended:
            fetched = partition.fetch(offset, 1_000, 0.0, before.place)
            found += fetched.parts
            offset, ended = fetched.next, fetched.ended
    parts = [*before.parts, *found]
    whole = JsonLines("stdin", ["label"], FIELDS.columns).of_stream(io.BytesIO(data))
    places = sorted(place for part in parts for place in judged(part.chunk))
    assert places == sorted(place for chunk in whole for place in judged(chunk))


def test_a_line_that_is_too_long_is_skipped_as_one_record(monkeypatch):
    monkeypatch.setattr(WholeLines.__init__, "__defaults__", (200,))
    data = b'{"score": 0.5, "label": 1}\n' + b"x" * 300 + b'\n{"score": 0.25, "label": 0}\n'
    for changed, refused in ((data, False), (data.replace(b"x" * 300, b"y" * 300), True)):
        with pipe() as (receive, send):
            send.write(data[:-28])
            before = PipePartition(PipeLines(receive), FIELDS).fetch(0, 1_000, 0.0)
        assert before.next == 2
        with pipe() as (receive, send):
            send.write(changed)
            partition = PipePartition(PipeLines(receive), FIELDS)
            if refused:
                with pytest.raises(
                    RocsteadyError, match="does not begin with the 2 records that the job had"
                ):
                    partition.fetch(2, 1_000, 0.0, before.place)
            else:
                (part,) = partition.fetch(2, 1_000, 0.0, before.place).parts
                assert part.chunk.batch.to_pylist() == [{"score": 0.25, "label": 0}]


def test_a_line_waits_for_its_end_and_the_last_one_for_that_of_the_input():
    with pipe() as (receive, send):
        lines = Lines(receive)
        assert lines.next() == []
        send.write(b'{"score": 0.5, "la')
        assert lines.next() == []
        send.write(b'bel": 1}\n{"score": 0.25, "label": 0}')
        (part,) = lines.next()
        assert part.chunk.records == 1
        send.close()
        (part,) = lines.next()
        assert part.chunk.batch.to_pylist() == [{"score": 0.25, "label": 0}]
        assert lines.ended
        assert lines.next() == []


def test_a_wait_ends_with_the_first_bytes_and_otherwise_in_time():
    with pipe() as (receive, send):
        lines = Lines(receive)
        assert lines.next(0.01) == []
        later = threading.Timer(0.1, send.write, [b'{"score": 0.5, "label": 1}\n'])
        later.start()  # a call that does not wait gives nothing, and one that waits to its end takes an hour
        assert len(lines.next(3_600)) == 1
        later.join()


def test_pieces_that_come_soon_after_a_block_are_one_block(monkeypatch):
    line = b'{"score": 0.5, "label": 1}\n'
    with pipe() as (receive, send):
        lines = Lines(receive)
        send.write(line)
        assert len(lines.next()) == 1
        monkeypatch.setattr(pipe_partition, "_GATHER_SECONDS", 3_600)
        send.write(line)

        def send_another_piece():
            while select.select([receive], [], [], 0)[0]:
                time.sleep(0.001)
            send.write(line)
            send.close()

        later = threading.Thread(target=send_another_piece)
        later.start()
        (part,) = lines.next(3_600)
        later.join()
        assert part.chunk.records == 2


def reader_of(handle, **more):
    partition = PipePartition(PipeLines(handle), FIELDS)
    return StreamReader(StreamInput(partition, 0, 1, "event", FIELDS, 0, **more), 1)


def test_a_reader_that_is_finished_still_gives_what_is_in_the_pipe():
    with pipe() as (receive, send):
        reader = reader_of(receive)
        send.write(b'{"score": 0.5, "label": 1}\n' * 500 + b'{"score": 0.5, "label": 1}')
        assert sum(step.records for step in reader.finish()) == 501
        assert reader.ended


def test_a_state_says_how_many_records_were_read_and_no_offset_to_go_on_from():
    with pipe() as (receive, send):
        reader = reader_of(receive, cut=Cut("1", "folder"))
        send.write(b'{"score": 0.5, "label": 1}\n' * 3)
        packets = [packet for step in reader.finish() for _, packet in step.packets]
        marker = unpack_record(packets[-1])
        assert isinstance(marker, StateMarker)
        assert (marker.source, marker.position) == ("stdin", '{"records": 3}')


def test_what_cannot_be_read_is_an_error(tmp_path):
    handle = os.open(tmp_path, os.O_RDONLY)
    try:
        with pytest.raises(RocsteadyError, match="stdin cannot be read: Is a directory"):
            Lines(handle).next()
    finally:
        os.close(handle)


@pytest.mark.parametrize(
    ("lines", "model"),
    [
        (['{"score": 1}', '{"model": "a"}'], ("model_name", "stdin")),
        (['{"model": "a"}', '{"score": 1}'], ("model", "model")),
        (["[]", "x", '{"model": "a"}'], ("model", "model")),
    ],
)
def test_the_first_object_says_where_models_come_from(lines, model):
    role, name = model
    for pieces in ([f"{line}\n".encode() for line in lines], ["".join(f"{x}\n" for x in lines).encode()]):
        *_, last = read_in_pieces(pieces, EventFields())
        assert getattr(last.fields, role) == name
