"""A folder that grows, as a partition: every record once, wherever a reader goes on from, by each driver."""

from __future__ import annotations

import gzip
import json
import random
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import CorruptBytesError, InputError, RocsteadyError
from rocsteady.core.events.batch import EventBatch
from rocsteady.core.events.records import EndOfPartition, unpack_record
from rocsteady.transforms.events.fields import EventFields
from rocsteady.transforms.events.lateness import Timing
from rocsteady.transforms.sources.streams import folder_listing
from rocsteady.transforms.sources.streams.folder_listing import END_FILE, FolderListing
from rocsteady.transforms.sources.streams.folder_partition import FolderPartition
from rocsteady.transforms.sources.streams.offsets import ReaderState
from rocsteady.transforms.sources.streams.reader import StreamReader
from rocsteady.transforms.sources.streams.stream_input import StreamInput

from tests.support.processes.clock import Clock
from tests.support.streams.folder_looks import DRIVERS, Looks
from tests.support.streams.list_partition import ListPartition
from tests.support.thorough import examples

FIELDS = EventFields(model_name="m")
PLENTY = 50_000
"""Records that no driver reads at one look."""


@pytest.fixture
def folder(tmp_path):
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    return inbox


@pytest.fixture(params=DRIVERS)
def driver(request):
    return request.param


@pytest.fixture(params=[name for name in DRIVERS if name != "anew"])
def one_process(request):
    """A driver that stays in one process: only that process can tell that a file is not as it was."""
    return request.param


def line(score):
    return f'{{"score": {score}, "label": 1}}\n'.encode()


def put(folder, name, n=3, score=0.5):
    """Let a file appear, whole."""
    hidden = folder / f".{name}"
    if name.endswith(".parquet"):
        pq.write_table(pa.table({"score": [score] * n, "label": [1] * n}), hidden)
    elif ".csv" in name:
        text = ("score,label\n" + f"{score},1\n" * n).encode()
        hidden.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    elif ".tsv" in name:
        hidden.write_text("score\tlabel\n" + f"{score}\t1\n" * n)
    else:
        hidden.write_bytes(gzip.compress(line(score) * n) if name.endswith(".gz") else line(score) * n)
    hidden.rename(folder / name)


def end(folder):
    (folder / END_FILE).touch()


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 100_000))
def test_every_record_comes_once_in_order_however_the_folder_grows(tmp_path, monkeypatch, seed):
    """Files of every format come, in any order of names; the last file of lines grows; bundles fail."""
    monkeypatch.setattr(folder_listing, "_SLOW_LISTING", float("inf"))  # on a busy machine, too, look at once
    rng = random.Random(seed)
    folder = tmp_path / f"f{len(list(tmp_path.iterdir()))}"
    folder.mkdir()
    fields = EventFields(model_name="m")
    partition = FolderPartition(str(folder), fields)
    source = StreamInput(partition, 0, 1, "event", fields, 0)
    written, found = [], []
    state, pending, growing = None, b"", None
    names = [f"part-{i:03d}" for i in range(40)]
    rng.shuffle(names) if rng.random() < 0.5 else names.reverse()

    def closed():
        """Write what is pending; the last line needs no newline."""
        if growing is not None and pending:
            with growing.open("ab") as file:
                file.write(pending.rstrip(b"\r\n"))
        return b""

    def taken(step):
        records = [unpack_record(packet) for _, packet in step.packets]
        return [score for batch in records if isinstance(batch, EventBatch) for score in batch.scores]

    for _ in range(rng.randrange(30)):
        what = rng.random()
        if what < 0.35 and growing is not None:
            scores = [len(written) + i for i in range(rng.randrange(4))]
            written += scores
            pending += b"".join(line(s).strip() + rng.choice([b"\n", b"\r\n", b"\n\n"]) for s in scores)
            cut = rng.randrange(len(pending) + 1)
            with growing.open("ab") as file:
                file.write(pending[:cut])
            pending = pending[cut:]
        elif what < 0.5:  # the next file comes when all that is there was read, so that its order is known
            pending = closed()
            while True:
                reader = StreamReader(source, 1, state)
                step = reader.step(100)
                found += taken(step)
                state = reader.state()
                if step.at_end:
                    break
            name = names.pop()
            if rng.random() < 0.5:
                growing = folder / f"{name}.jsonl"
                growing.touch()
            else:
                growing = None
                scores = [len(written) + i for i in range(rng.randrange(1, 9))]
                written += scores
                hidden = folder / f".{name}"
                if rng.random() < 0.5:
                    pq.write_table(pa.table({"score": scores, "label": [1] * len(scores)}), hidden)
                    hidden.rename(folder / f"{name}.parquet")
                else:
                    hidden.write_text("score,label\n" + "".join(f"{score},1\n" for score in scores))
                    hidden.rename(folder / f"{name}.csv")
        elif what < 0.65:  # another process goes on
            partition.close()
        else:
            reader = StreamReader(source, 1, state)
            step = reader.step(rng.randrange(1, 9))
            assert not reader.ended
            if rng.random() < 0.8:  # else the bundle failed: it is done again
                found += taken(step)
                state = reader.state()
    pending = closed()
    end(folder)
    reader = StreamReader(source, 1, state)
    for _ in range(len(written) + 100):  # each step reads a record at least, or looks in vain now and then
        if reader.ended:
            break
        step = reader.step(rng.randrange(1, 9))
        assert not len(step.letters)
        found += taken(step)
    partition.close()
    assert reader.ended
    assert found == written


FORMATS = ("a.csv", "b.csv.gz", "c.json", "d.jsonl", "e.jsonl.gz", "f.parquet", "g.tsv")


def test_files_of_every_format_are_read_once_each_in_order_of_names(folder, caplog, driver):
    for name in reversed(FORMATS):
        put(folder, name)
    for name in (".hidden.csv", "_SUCCESS", "half.csv.tmp"):
        (folder / name).write_text("not for us")
    (folder / "sub.csv").mkdir()
    end(folder)
    looks = Looks(folder, FIELDS, driver).rest(limit=2)
    assert (looks.files, looks.dead) == ([(name, 3) for name in FORMATS], [])
    assert not caplog.records
    assert looks.look() == 0


def test_files_that_come_later_are_read_later_whatever_their_names(folder, driver):
    looks = Looks(folder, FIELDS, driver)
    assert looks.look() == 0
    put(folder, "b.csv", 1)
    assert looks.look() == 1
    put(folder, "a.csv", 2)
    looks.look()
    put(folder, "c.jsonl", 3)
    looks.look()
    put(folder, "0.jsonl", 4)
    end(folder)
    assert looks.rest().files == [("b.csv", 1), ("a.csv", 2), ("c.jsonl", 3), ("0.jsonl", 4)]


def test_a_file_of_lines_grows_until_another_file_comes(folder, driver):
    looks = Looks(folder, FIELDS, driver)
    growing = folder / "b.jsonl"
    growing.write_bytes(line(1) + line(2)[:9])
    looks.look()
    assert looks.scores == [1]
    with growing.open("ab") as file:
        file.write(line(2)[9:] + line(3).strip())
    looks.look()
    assert looks.scores == [1, 2]
    put(folder, "a.csv", 1, score=4)
    looks.look()
    end(folder)
    assert looks.rest().scores == [1, 2, 3, 4]
    assert looks.dead == []


def test_a_model_without_a_name_is_the_stem_of_its_file(folder, driver):
    put(folder, "churn.csv")
    put(folder, "fraud.jsonl")
    (folder / "named.jsonl").write_text(
        '{"score": 1, "label": 1, "model": "own"}\n{"score": 1, "label": 1}\n'
    )
    end(folder)
    looks = Looks(folder, EventFields(), driver).rest(limit=1)
    assert looks.models == {"churn", "fraud", "own"}
    assert [letter.reason for letter in looks.letters] == ["model is missing"]


def test_a_silence_ends_a_folder_and_what_is_new_ends_the_silence(folder, monkeypatch):
    clock = Clock(monkeypatch)
    began = clock.now
    looks = Looks(folder, FIELDS, idle=60.0)
    clock.at(began + 40, lambda: put(folder, "a.csv"))
    assert looks.rest(wait=1.0).files == [("a.csv", 3)]
    assert began + 100 <= clock.now < began + 101


@pytest.mark.slow
def test_a_last_line_without_an_end_counts_when_a_silence_ends_the_folder(folder, monkeypatch):
    Clock(monkeypatch)
    (folder / "a.jsonl").write_bytes(line(1).strip())
    assert Looks(folder, FIELDS, idle=60.0).rest().scores == [1]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_folder_that_another_job_continues_leaves_that_job_the_growing_file(folder, pack):
    growing = folder / ("a.jsonl" if pack is bytes else "a.jsonl.gz")
    growing.write_bytes(pack(line(1) + line(2)[:9]))
    partition = FolderPartition(str(folder), FIELDS, idle=0.0).continued()
    first = StreamReader(StreamInput(partition, 0, 1, "event", FIELDS, 0), 1)
    while not first.ended:
        assert not len(first.step().letters)
    state = ReaderState.from_bytes(first.state())
    assert state.next == 1
    growing.write_bytes(pack(line(1) + line(2)) + pack(line(3)))
    partition.close()
    looks = Looks(folder, FIELDS, start=state.next, place=state.place)
    end(folder)
    assert (looks.rest().scores, looks.dead) == ([2, 3], [])


@pytest.mark.parametrize("more", [0, 2])
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_file_of_lines_that_another_file_replaces_is_a_dead_letter(folder, one_process, name, more):
    looks = Looks(folder, FIELDS, one_process)
    put(folder, name)
    assert looks.look() == 3
    put(folder, name, 3 + more)
    put(folder, "b.csv")
    end(folder)
    looks.rest()
    assert looks.files == [(name, 3), ("b.csv", 3)]
    ((dead, detail),) = looks.dead
    assert (dead, looks.letters[0].reason) == (name, "file changed after it was found")
    assert f"{name} was replaced by another file after it was read up to byte 81; rename files" in detail


def test_files_that_come_while_the_complete_folder_is_listed_are_read(folder, monkeypatch):
    """A listing may miss a file that came before `_END`; the listing after it has the file."""
    put(folder, "a.csv")
    put(folder, "b.csv")
    end(folder)
    listed = FolderListing._list
    missing = iter([{"b.csv"}, set()])
    monkeypatch.setattr(
        FolderListing,
        "_list",
        lambda listing: ((found := listed(listing))[0] - next(missing, set()), found[1]),
    )
    assert Looks(folder, FIELDS).rest().files == [("a.csv", 3), ("b.csv", 3)]


def test_a_link_to_itself_is_told_of_once_and_the_other_files_are_read(folder, caplog, driver):
    put(folder, "a.csv")
    (folder / "l.jsonl").symlink_to("l.jsonl")
    looks = Looks(folder, FIELDS, driver)
    looks.look()
    put(folder, "m.csv")
    end(folder)
    assert looks.rest().files == [("a.csv", 3), ("m.csv", 3)]
    (said,) = {record.getMessage() for record in caplog.records}
    assert "l.jsonl is not read: Too many levels of symbolic links" in said


def test_a_later_file_with_a_column_twice_is_a_dead_letter(folder, driver):
    put(folder, "a.csv")
    looks = Looks(folder, FIELDS, driver)
    looks.look()
    (folder / "b.csv").write_text("score,score,label\n0.5,0.5,1\n")
    put(folder, "c.csv")
    end(folder)
    looks.rest()
    assert looks.files == [("a.csv", 3), ("c.csv", 3)]
    ((name, detail),) = looks.dead
    assert name == "b.csv"
    assert "b.csv has 2 columns named 'score'; give each its own name" in detail


def test_a_first_file_without_any_line_of_json_is_refused(folder, driver):
    (folder / "a.jsonl").write_text("score,label\n0.5,1\n")
    with pytest.raises(InputError, match=r"a.jsonl is not JSON lines: no line is an object"):
        Looks(folder, FIELDS, driver).rest()


def test_an_empty_file_is_told_of_once_while_a_fetch_waits(folder, caplog):
    put(folder, "a.csv")
    looks = Looks(folder, FIELDS)
    looks.look()
    (folder / "b.csv").touch()
    looks.look(wait=0.3)
    assert [record.getMessage() for record in caplog.records] == [
        f"{folder / 'b.csv'} is empty (0 bytes): it has no events"
    ]


def test_a_reader_that_is_finished_reads_the_file_that_it_began(folder, caplog):
    put(folder, "a.csv", 100_000)
    put(folder, "b.csv")
    looks = Looks(folder, FIELDS)
    looks.look(limit=10)
    looks.stop()
    assert looks.files == [("a.csv", 100_000)]
    assert "1 file was not read any more" in caplog.text
    assert "b.csv" in caplog.text


def broken_parquet(folder):
    (folder / "b.parquet").write_bytes(b"PAR1 no parquet at all")
    return "b.parquet is not a Parquet file"


@cache
def packed_table():
    lines = "".join(f"{i * 0.618 % 1:.12f},1\n" for i in range(300_000))
    return gzip.compress(f"score,label\n{lines}".encode())


@cache
def packed_lines():
    return gzip.compress(b"".join(line(random.Random(i).random()) for i in range(9_000)))


def cut_gzip(folder):
    data = packed_table()
    (folder / "b.csv.gz").write_bytes(data[: len(data) // 2])
    return "b.csv.gz is damaged"


def cut_lines(folder):
    packed = packed_lines()
    (folder / "b.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    return "b.jsonl.gz is damaged after record"


def corrupt_lines(folder):
    packed = packed_lines()
    (folder / "b.jsonl.gz").write_bytes(packed[:1_000] + b"\xff" * 900 + packed[1_900:])
    return "b.jsonl.gz cannot be read: Error -3 while decompressing"


def no_gzip(folder):
    (folder / "b.jsonl.gz").write_bytes(line(1))
    return "b.jsonl.gz ends in .gz and is not compressed"


@pytest.mark.parametrize("damage", [broken_parquet, cut_gzip, cut_lines, corrupt_lines, no_gzip])
def test_a_damaged_file_is_said_and_a_dead_letter_and_others_are_read(folder, caplog, driver, damage):
    put(folder, "a.csv")
    sentence = damage(folder)
    put(folder, "c.csv")
    end(folder)
    looks = Looks(folder, FIELDS, driver).rest()
    assert looks.files[0] == ("a.csv", 3)
    assert looks.files[-1] == ("c.csv", 3)
    ((_, reason),) = looks.dead
    assert sentence in reason
    assert looks.letters[0].reason == "file cannot be read"
    assert [record.getMessage() for record in caplog.records] == [reason]


def test_what_could_be_read_of_a_damaged_file_counts(folder):
    lines = [line(i) for i in range(20_000)]
    packed = gzip.compress(b"".join(lines[:9_000])) + gzip.compress(b"".join(lines[9_000:]))[:-20]
    (folder / "a.jsonl.gz").write_bytes(packed)
    end(folder)
    looks = Looks(folder, FIELDS).rest(limit=1_000)
    assert looks.scores == [*range(len(looks.scores))]
    assert len(looks.scores) >= 9_000
    ((name, _),) = looks.dead
    assert (name, looks.letters[0].position) == ("a.jsonl.gz", len(looks.scores))


def test_a_file_that_vanishes_before_it_is_read_is_a_dead_letter(folder, caplog, one_process):
    put(folder, "a.csv", PLENTY)
    put(folder, "b.csv")
    looks = Looks(folder, FIELDS, one_process)
    assert 0 < looks.look() < PLENTY
    (folder / "b.csv").unlink()
    end(folder)
    looks.rest()
    assert looks.files == [("a.csv", PLENTY)]
    assert [name for name, _ in looks.dead] == ["b.csv"]
    assert "vanished before it was read" in caplog.text


def test_a_file_that_is_removed_before_it_was_read_to_its_end_is_a_dead_letter(folder, driver):
    put(folder, "d.jsonl", PLENTY)
    put(folder, "e.jsonl")
    looks = Looks(folder, FIELDS, driver)
    read = looks.look()
    assert 0 < read < PLENTY
    (folder / "d.jsonl").unlink()
    end(folder)
    looks.rest()
    ((name, detail),) = looks.dead
    assert name == "d.jsonl"
    assert detail.endswith(f"d.jsonl is gone, and was not read behind byte {read * len(line(0.5)):,}")
    assert looks.files == [("d.jsonl", read), ("e.jsonl", 3)]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_file_that_grows_after_it_was_read_is_a_dead_letter(folder, caplog, one_process, late, name):
    looks = Looks(folder, FIELDS, one_process)
    put(folder, name)
    looks.look()
    put(folder, "b.csv")
    looks.look()
    if late:
        end(folder)
    with (folder / name).open("a") as file:
        file.write("0.5,1\n")
    end(folder)
    looks.rest()
    assert looks.files == [(name, 3), ("b.csv", 3)]
    assert [each for each, _ in looks.dead] == [name]
    assert looks.letters[0].reason == "file changed after it was found"
    assert "grew by 6 bytes" in caplog.text


@pytest.mark.parametrize(("name", "pack"), [("a.jsonl", bytes), ("a.jsonl.gz", gzip.compress)])
def test_a_file_of_lines_that_was_written_anew_and_is_shorter_is_a_dead_letter(folder, driver, name, pack):
    (folder / name).write_bytes(pack(line(1) * 3))
    looks = Looks(folder, FIELDS, driver)
    assert looks.look() == 3
    (folder / name).write_bytes(pack(line(4)))
    put(folder, "b.jsonl")
    end(folder)
    looks.rest()
    assert looks.files == [(name, 3), ("b.jsonl", 3)]
    ((_, detail),) = looks.dead
    assert f"{name} was read up to byte 75 and is shorter now" in detail


def test_files_that_are_read_may_be_removed(folder, caplog, driver):
    looks = Looks(folder, FIELDS, driver)
    for name in ("a.csv", "b.jsonl"):
        put(folder, name)
        while not looks.look():  # after a slow listing, the next look may list nothing
            pass
    (folder / "a.csv").unlink()
    (folder / "b.jsonl").unlink()
    looks.look()
    put(folder, "c.parquet")
    end(folder)
    assert looks.rest().files == [("a.csv", 3), ("b.jsonl", 3), ("c.parquet", 3)]
    assert looks.dead == []
    assert not caplog.records


def test_empty_files_and_other_endings_are_said(folder, caplog, driver):
    put(folder, "a.csv")
    (folder / "b.csv").touch()
    (folder / "c.txt").write_text("no events")
    (folder / "d.txt").write_text("no events")
    end(folder)
    looks = Looks(folder, FIELDS, driver).rest()
    assert (looks.files, looks.dead) == ([("a.csv", 3)], [])
    said = sorted(record.getMessage() for record in caplog.records)
    assert len(said) == 2
    assert "b.csv is empty" in said[0]
    assert ".txt" in said[1]


@pytest.mark.parametrize("name", ["b.csv", "b.jsonl"])
def test_the_first_file_must_have_the_columns_and_later_ones_are_told_of(folder, caplog, driver, name):
    put(folder, name)
    with pytest.raises(InputError, match=rf"{name} has no column 'p'"):
        Looks(folder, EventFields(score="p", model_name="m"), driver).rest()
    (folder / "c.csv").write_text("p,label\n0.5,1\n")
    end(folder)
    looks = Looks(folder, FIELDS, driver).rest()
    assert looks.files == [(name, 3)]
    assert [each for each, _ in looks.dead] == ["c.csv"]
    assert "c.csv has no column 'score'" in caplog.text


def test_a_folder_that_vanishes_is_an_error(folder, driver):
    looks = Looks(folder, FIELDS, driver)
    folder.rmdir()
    with pytest.raises(RocsteadyError, match=r"the folder .*inbox cannot be listed: No such file"):
        looks.look()


def test_records_keep_their_places_in_their_files(folder, driver):
    (folder / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + line(1) + b"\n\r\nno\n" + line(1) + b"[1]\n")
    (folder / "b.csv").write_text("score,label\n1,1\n1\n1,1\nx,1\n")
    end(folder)
    looks = Looks(folder, FIELDS, driver).rest(limit=1)
    assert looks.files == [("a.jsonl", 2), ("b.csv", 2)]
    assert [(Path(letter.source).name, letter.position) for letter in looks.letters] == [
        ("a.jsonl", 1), ("a.jsonl", 3), ("b.csv", 1), ("b.csv", 3),
    ]  # fmt: skip


def test_a_packed_file_that_is_being_written_is_read_on_when_there_is_more(folder, driver):
    lines = b"".join(line(i) for i in range(20_000))
    packed = gzip.compress(lines)
    looks = Looks(folder, FIELDS, driver)
    for part in (packed[:4], packed[: len(packed) // 3], packed[: len(packed) // 2], packed):
        (folder / "a.jsonl.gz").write_bytes(part)
        for _ in range(2):
            looks.look()
    end(folder)
    assert looks.rest().scores == [*range(20_000)]
    assert looks.dead == []


def test_a_place_is_refused_that_contradicts_itself(folder):
    partition = FolderPartition(str(folder), FIELDS)
    for place in (
        "nonsense",
        "[1]",
        "{}",
        '{"file": ["a", 1, true, 2, null], "read": "eA=="}',
        '["a", -1, true]',
    ):
        with pytest.raises(CorruptBytesError, match="the place in a folder"):
            partition.fetch(0, 10, 0.0, place)


@pytest.mark.slow
def test_the_names_of_many_files_that_were_read_take_little_state(folder):
    files = 2_000
    for i in range(files):
        (folder / f"part-{i:06d}.jsonl").write_bytes(line(i))
    looks = Looks(folder, FIELDS, "anew")
    looks.look()
    assert looks.scores == [*range(files)]
    assert len(looks.read()) < 10_000


def test_a_complete_folder_gives_the_events_of_the_same_messages(folder):
    lines = [
        json.dumps({"score": i % 5 / 5, "label": i % 2, "time": i, "model": "m"}).encode() for i in range(50)
    ]
    for part in range(5):
        (folder / f"part-{part}.jsonl").write_bytes(b"\n".join(lines[part * 10 : part * 10 + 10]))
    end(folder)
    fields, given = EventFields(time="time", model="model"), []
    for partition, last in (
        (FolderPartition(str(folder), fields), None),
        (ListPartition(str(folder), tuple(lines)), 50),
    ):
        source = StreamInput(partition, 0, 1, "event", fields, 0, last, Timing(lateness=0))
        state, packets = None, []
        while not packets or not isinstance(packets[-1], EndOfPartition):
            reader = StreamReader(source, 1, state)
            packets += [unpack_record(packet) for _, packet in reader.step(7).packets]
            state = reader.state()
        assert reader.ended
        given.append([
            (packet.times.tolist(), packet.scores.tolist(), packet.source, packet.head)
            if isinstance(packet, EventBatch)
            else packet
            for packet in packets
        ])  # fmt: skip
    assert given[0] == given[1]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv"])
def test_a_quote_that_is_never_closed_ends_its_file_alone(folder, driver, name):
    text = "score,label,note\n" + "0.5,1,n\n" * 5 + '0.5,1,"cut\n' + "0.5,1,n\n" * 5
    data = text.replace(",", "\t" if name == "a.tsv" else ",").encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    put(folder, "b.csv")
    end(folder)
    looks = Looks(folder, FIELDS, driver).rest(limit=2)
    assert looks.files == [(name, 5), ("b.csv", 3)]
    ((dead, detail),) = looks.dead
    assert (dead, looks.letters[0].reason, looks.letters[0].position) == (name, "file cannot be read", 5)
    assert detail.startswith(f"{folder / name}, line 7: a quote opens a field here, and the file ends inside")
