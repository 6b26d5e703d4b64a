"""Text for people: nothing from outside moves a cursor, forges a line or reverses what follows."""

import io
import logging
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rocsteady.core.process import console
from rocsteady.core.process.console import ConsoleFormatter, lines_text, logger, name_text, say, show, visible

HOSTILE = "\x1b[2J \x1b]0;title\x07 \x9b31m \r\n\t\x00\x7f \u202e\u2066\u200e\u200b\ufeff \u2028\u2029 \udc80"
"""ESC, OSC with BEL, CSI as one byte of C1, CR, LF, TAB, NUL, DEL, marks of direction and of no width, line
separators, and what Python makes of a byte in a file name that is not UTF-8."""

PLAIN = "café 漢字 🚀 Привет عربي"


def is_safe(text, allowed=""):
    return not [
        c for c in text if c not in allowed and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]


def test_no_character_that_a_terminal_obeys_is_left():
    assert is_safe(visible(HOSTILE))
    found = visible(HOSTILE)
    assert found.startswith(
        r"\x1b[2J \x1b]0;title\x07 \x9b31m \r\n\t\x00\x7f \u202e\u2066\u200e\u200b\ufeff "
    )
    assert found.endswith(r"\u2028\u2029 \udc80")


def test_text_that_prints_as_itself_stays():
    assert visible(PLAIN) == PLAIN == name_text(PLAIN)
    assert visible(r"C:\new\x1b") == r"C:\new\x1b"


@given(st.text(max_size=300), st.integers(20, 100))
def test_a_name_of_any_characters_is_one_short_safe_line(name, width):
    shown = name_text(name, width)
    assert is_safe(shown)
    assert len(shown) <= width
    assert visible(visible(name)) == visible(name)
    if len(visible(name)) <= width:
        assert shown == visible(name)
    else:
        assert "..." in shown


def test_a_long_name_keeps_its_ends():
    assert name_text("a" * 10**6 + "z", 20) == "aaaaaaaaa...aaaaaaaz"
    assert name_text("\x1b" * 100, 21) == r"\x1b\x1b...\x1b\x1b"


def test_one_sentence_is_one_line(capsys):
    say(f"model {HOSTILE}")
    show(f"a{HOSTILE}", "b")
    out, err = capsys.readouterr()
    assert err.startswith("rocsteady: model ")
    assert err.count("\n") == 1
    assert out.count("\n") == 2
    assert is_safe(err + out, "\n")
    assert lines_text(["a\nb", "c"]) == "a\\nb\nc"


def test_a_value_of_megabytes_does_not_flood(capsys):
    say("value " + "x" * 10**6 + " is no number")
    err = capsys.readouterr().err
    assert len(err) < 5_000
    assert err.endswith("x is no number\n")


def test_a_stream_in_ascii_gets_escapes_in_place_of_an_error(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stderr", stream)
    say(PLAIN)
    assert stream.buffer.getvalue().startswith(b"rocsteady: caf\\xe9 \\u6f22")


def test_a_line_clears_the_progress_that_was_drawn(capsys):
    console.redraw("half\nway")
    say("done")
    say("ended")
    assert capsys.readouterr().err == "\r\033[Khalf\\nway\r\033[Krocsteady: done\nrocsteady: ended\n"


def test_records_of_a_log_are_one_line_each_and_tracebacks_indented():
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(ConsoleFormatter("rocsteady: %(message)s"))
    found = logger("rocsteady.tests.console")
    assert found is logger("rocsteady.tests.console")
    assert len(found.filters) == 1
    found.propagate = False
    found.addHandler(handler)
    try:
        found.warning("%s has %d rows of %.1f MB", HOSTILE, 3, 2.5)
        found.error("failed", exc_info=ValueError("x\nrocsteady: forged" + HOSTILE))
    finally:
        found.removeHandler(handler)
    lines = stream.getvalue().splitlines(keepends=True)
    assert lines[0].endswith(" has 3 rows of 2.5 MB\n")
    assert is_safe("".join(lines), "\n")
    assert [line for line in lines if line.startswith("rocsteady: ")] == [lines[0], "rocsteady: failed\n"]


def test_a_warning_and_a_defect_are_safe_too(capsys):
    console.show_warning(f"rocsteady: {HOSTILE}", UserWarning, "x.py", 1)
    console.show_warning("old", DeprecationWarning, "x.py", 1)
    error = ValueError(f"forged\nrocsteady: {HOSTILE}")
    console.show_error(ValueError, error, None)
    lines = capsys.readouterr().err.splitlines()
    assert is_safe("".join(lines))
    assert lines[0].startswith(r"rocsteady: \x1b[2J")
    assert lines[1] == "rocsteady: DeprecationWarning: old"
    assert lines[2] == "ValueError: forged"
    assert all(line.startswith("    ") for line in lines[3:])


def test_an_error_of_the_parser_quotes_words_visibly(capsys):
    parser = console.ConsoleParser(prog="x")
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args([HOSTILE])
    assert is_safe(capsys.readouterr().err, "\n")
