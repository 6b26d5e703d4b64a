"""A quote of CSV that swallows records is an error that names its line; every other quote is text."""

from __future__ import annotations

import csv
import gzip
import io
import re
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.errors import InputError, RocsteadyError
from rocsteady.transforms.files.csv_chunks import csv_chunks
from rocsteady.transforms.files.csv_quotes import MOST_FIELD_BYTES, _searched, cut_records, quoted_fields
from rocsteady.transforms.files.csv_text import RecordStream
from rocsteady.transforms.sources.files.listing import column_names, list_sources
from rocsteady.transforms.sources.files.read import read_batches
from rocsteady.transforms.tables.read import read_tables

from tests.support.streams.url_files import url
from tests.support.thorough import examples

GOOD = "0.5,1,n\n"
TEXTS = st.text(st.sampled_from('ab",,\n\n\r"'), max_size=40).map(str.encode)


def slow_fields(text, delimiter):
    """Return the places of the quotes around each quoted field: one character after another."""
    found, state, start, at = [], "field begins", 0, 0
    while at < len(text):
        here = text[at : at + 1]
        if state == "in quotes":
            if here == b'"' and text[at + 1 : at + 2] == b'"':
                at += 1
            elif here == b'"':
                found.append((start, at))
                state = "in field"
        elif here == b'"' and state == "field begins":
            state, start = "in quotes", at
        else:
            state = "field begins" if here in (delimiter, b"\n", b"\r") else "in field"
        at += 1
    return [*found, (start, len(text))] if state == "in quotes" else found


@settings(max_examples=examples(600))
@given(TEXTS, st.sampled_from([b",", b"\t"]))
def test_quoted_fields_are_those_that_a_slow_reader_finds(text, delimiter):
    text = text.replace(b"b", b"\t")
    for way in (quoted_fields, _searched):
        starts, ends = way(text, delimiter)
        assert [*zip(starts.tolist(), ends.tolist(), strict=True)] == slow_fields(text, delimiter)


def blocks_of(text, size):
    stream = RecordStream(io.BytesIO(text), ",")
    return [*iter(lambda: stream.read(size), b"")], stream.fault


def records_of(text):
    lines = io.StringIO(text.decode(), newline="")
    return [record for record in csv.reader(lines) if record]


@settings(max_examples=examples(300))
@given(TEXTS, st.integers(60, 90))
def test_blocks_of_records_have_the_records_of_the_text_in_order(text, size):
    text = b"\n".join([text] * 6)
    blocks, fault = blocks_of(text, size)
    whole = b"".join(blocks)
    assert text.startswith(whole)
    assert (whole == text) == (fault is None)
    assert [*chain(*map(records_of, blocks))] == records_of(whole)
    if fault is not None and "longer" not in fault.what:
        rest = records_of(text[len(whole) :])
        assert any("\n" in field or "\r" in field for field in rest[0]) or len(rest) == 1


def put(folder, name, text, end="\n"):
    path = folder / name
    text = text.replace("\n", end)
    if ".tsv" in name:
        text = text.replace(",", "\t")
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def read(path, block=None):
    """Return the number of records that come, and the error behind them."""
    (source,) = list_sources(path)
    assert column_names(source) == ["score", "label", "note"]
    records = 0
    try:
        for chunk in read_batches(source) if block is None else csv_chunks(source, block):
            assert chunk.first_position == records
            records += chunk.records
    except RocsteadyError as error:
        return records, str(error)
    return records, ""


ENDS = pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])


@ENDS
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.tsv.gz"])
@pytest.mark.parametrize(
    "record", ['0.9,1,"cut off', '"0.9,1,cut off', '0.9,"1,cut off', '0.9,1,"cut ""off""']
)
def test_a_file_that_ends_inside_a_quote_is_an_error_that_names_the_line(tmp_path, name, record, end):
    path = put(tmp_path, name, f"score,label,note\n{GOOD}\n{GOOD}{record}\n" + GOOD * 1_000, end)
    records, error = read(path)
    assert records == 2
    assert error == (
        f"{path}, line 5: a quote opens a field here, and the file ends inside the field, 1,001 lines below; "
        "close the quote, and double each quote that is part of a text"
    )


def test_a_last_line_that_is_cut_off_inside_a_quote_is_an_error_too(tmp_path):
    records, error = read(put(tmp_path, "a.csv", f'score,label,note\n{GOOD}0.5,1,"no'))
    assert records == 1
    assert ", line 3: a quote opens a field here, and the file ends inside the field; close" in error


def test_a_file_of_another_file_system_is_read_to_the_quote(tmp_path):
    path = url(put(tmp_path, "a.csv.gz", f'score,label,note\n{GOOD}0.9,1,"cut\n{GOOD}'))
    records, error = read(path)
    assert records == 1
    assert f"{path}, line 3: a quote opens a field here, and the file ends inside the field, 2 lines" in error


def test_a_quote_far_down_is_found_in_every_block(tmp_path):
    head = GOOD * 700_000  # longer than a block, which has 4 MiB or more
    records, error = read(put(tmp_path, "a.csv", f'score,label,note\n{head}0.9,1,"cut\n{head}'))
    assert (records, re.findall("line [0-9,]+", error)) == (700_000, ["line 700,002"])


@pytest.mark.parametrize("more", [0, 1])
@ENDS
def test_a_field_of_several_lines_has_a_limit_of_bytes(tmp_path, more, end):
    line = f"text, and more{end}"
    field = line * 4_000 + "x" * (MOST_FIELD_BYTES + more - 4_000 * len(line))
    text = f'score,label,note\n0.1,1,"of\ntwo"\n0.2,0,"FIELD"\n{GOOD * 9}'
    path = put(tmp_path, "a.csv", text, end)
    path.write_bytes(path.read_bytes().replace(b"FIELD", field.encode()))
    records, error = read(path)
    if more:
        assert records == 1
        assert ", line 4: a quote opens a field here, and the field is longer than 65,536 bytes" in error
    else:
        assert (records, error) == (11, "")


def test_a_field_of_one_line_swallows_nothing_and_may_be_longer(tmp_path):
    text = f'score,label,note\n0.2,0,"{"x" * 10 * MOST_FIELD_BYTES}"\n{GOOD}'
    assert read(put(tmp_path, "a.csv", text)) == (2, "")


def test_a_field_of_one_line_that_is_longer_than_a_block_is_an_error_with_its_line(tmp_path):
    text = f"score,label,note\n{GOOD}0.2,0,{'x' * 1_000}\n{GOOD}"
    records, error = read(put(tmp_path, "a.csv", text), 1_000)
    assert records == 1
    assert re.search(", line 3: the record that begins here has more than 1,000 bytes; ", error)


def test_a_quote_that_the_quote_of_a_later_record_closes_is_an_error(tmp_path):
    """Without the error, one record would be lost, and no other record would show it."""
    noted = '0.5,1,"a note"\n'
    records, error = read(put(tmp_path, "a.csv", f'score,label,note\n{noted * 7}0.9,1,"cut off\n{noted * 7}'))
    assert records == 7
    assert (
        ", line 9: a quote opens a field here, and other text follows the quote that closes the field, "
        "1 line below; close"
    ) in error


@pytest.mark.parametrize("closing", ['0.4,0,"\n', '0.4,0,",\n', '"\n', '",0\n'])
@pytest.mark.parametrize("lines", [12, 4_000])
def test_a_field_whose_lines_look_like_records_is_an_error(tmp_path, closing, lines):
    """The second stray quote closes the field of the first one, so that no byte is out of place."""
    swallowed = GOOD * (lines - 2) + "0.5,1\n\n"
    path = put(tmp_path, "a.csv", f'score,label,note\n{GOOD}0.9,1,"cut\n{swallowed}{closing}{GOOD * 9}')
    records, error = read(path)
    assert records == 1
    assert re.search(
        ", line 3: a quote opens a field here, and (other text|[0-9,]+ lines of the field)", error
    )
    if closing.endswith('"\n'):
        assert f"and {lines - 2:,} lines of the field have 3 fields, as records have; close" in error


@pytest.mark.parametrize(
    "note", ["one, two\n" * 100, "a, b, c\n" * 10, ("a, b, c\n" * 8 + "end\n\n") * 9, '""a"", b, c\nd\n' * 99]
)
def test_a_field_of_prose_is_read(tmp_path, note):
    path = put(tmp_path, "a.csv", f'score,label,note\n0.9,1,"{note}"\n{GOOD}')
    assert read(path) == (2, "")


def test_quotes_inside_fields_and_around_whole_fields_are_no_fault(tmp_path):
    text = 'score,label,note\n0.1,1,5" pipe\n0.2,0,"say ""no"",\nor yes"\n0.3,1,"a"b\n0.4,0,""\n0.5,1,""""\n'
    path = put(tmp_path, "a.csv", text)
    assert read(path) == (5, "")
    (chunk,) = csv_chunks(list_sources(path)[0])
    assert chunk.batch["note"].to_pylist() == ['5" pipe', 'say "no",\nor yes', "ab", None, '"']


@pytest.mark.parametrize(
    ("header", "line", "how"),
    [
        ('"score,label\n', 1, "the file ends inside the field, 1,001 lines below"),
        ('score,"label\n', 1, "the file ends inside the field, 1,001 lines below"),
        ('\n\nscore,"label\n', 3, "the file ends inside the field, 1,001 lines below"),
        ('score,"lab\nel"s,note\n', 1, "other text follows the quote that closes the field, 1 line below"),
    ],
)
def test_a_quote_of_the_header_is_an_error_before_the_job(tmp_path, header, line, how):
    path = put(tmp_path, "a.csv", header + GOOD * 1_000)
    with pytest.raises(InputError) as caught:
        column_names(list_sources(path)[0])
    assert str(caught.value).startswith(f"{path}, line {line}: a quote opens a field here, and {how}; close")


def test_a_header_of_several_lines_and_quotes_is_read(tmp_path):
    path = put(tmp_path, "a.csv", '"sco\nre","la""bel"\n1,2\n')
    assert column_names(list_sources(path)[0]) == ["sco\nre", 'la"bel']


def test_rows_in_a_file_that_ends_inside_a_quote_are_refused_with_the_line(tmp_path):
    path = put(tmp_path, "rows.csv", 'model,slice,seq,window_events\nm,"a\nb",1,2\nm,"b,1,2\nm,c,1,2\n')
    with pytest.raises(InputError, match=r"rows.csv, line 4: a quote opens a field here, and the file ends"):
        read_tables([str(path)], "rows")


def test_rows_with_a_field_too_few_or_bytes_that_are_no_text_are_refused(tmp_path):
    path = put(tmp_path, "rows.csv", "model,slice,seq,window_events\nm,b,1\n")
    with pytest.raises(InputError, match=r"rows.csv cannot be read as rows: .*Expected 4 columns, got 3"):
        read_tables([str(path)], "rows")
    path.write_bytes(b"model,slice,seq,window_events\nm,\xff,1,2\n")
    with pytest.raises(InputError, match=r"rows.csv is not UTF-8"):
        read_tables([str(path)], "rows")


def test_a_cut_leaves_the_rest_of_a_record_and_a_lone_carriage_return():
    for text, end in ((b'a\n"b\n', 2), (b"a\r", 0), (b"a\r\n", 3), (b"a\rb", 2), (b'"a\r\n"\r\n"b', 7)):
        assert cut_records(text, b",", is_last=False) == (end, -1, "")
