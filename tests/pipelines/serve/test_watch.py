"""`rocsteady watch` in a terminal and in a pipe."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from functools import cache

import numpy as np
import pytest
from rocsteady.pipelines.report.glance import glance
from rocsteady.pipelines.report.report_rows import report_rows
from rocsteady.pipelines.report.sparkline import spark_text
from rocsteady.pipelines.report.verdicts import judge_rows
from rocsteady.transforms.sinks.table import cleaned, text_lines, write_table

from tests.support.pages.report_tables import NASTY, evaluated_rows, filled
from tests.support.pages.served import PATIENCE
from tests.support.processes.command import COMMAND, call

unix = pytest.mark.skipif(sys.platform == "win32", reason="terminals are other ones on Windows")


@cache
def all_rows():
    return evaluated_rows(("good", NASTY, "esc\x1b[2J"), n=3_000)


def appended(path, table):
    """Append rows in one piece: who looks meanwhile sees all of them, or none."""
    with path.open("ab", buffering=0) as file:
        file.write(b"".join(text_lines(cleaned(table, csv_safe=False), as_csv=False)))


@unix
@pytest.mark.parametrize("key", [b"q", b"Q", b"\x03"], ids=["q", "Q", "ctrl-c"])
def test_in_a_terminal_the_table_follows_the_rows_and_gives_the_screen_back(key, tmp_path):
    from tests.support.processes.terminal import Terminal

    path = tmp_path / "rows.jsonl"
    terminal = Terminal("watch", str(path), "--refresh", "0.1")
    terminal.until("\x1b[?1049h")
    terminal.until("no rows in")
    assert not terminal.is_echoing()
    appended(path, filled([("first", 40)]))
    terminal.until("change since")
    terminal.until("first")
    appended(path, filled([("second", 40)]))
    terminal.until("second")
    terminal.press(key)
    status, rest = terminal.end()
    assert status == 0
    assert "\x1b[?1049l" in rest
    assert "\x1b[?25h" in rest
    assert "Traceback" not in rest


@unix
def test_a_name_does_not_move_the_cursor(tmp_path):
    from tests.support.processes.terminal import Terminal

    write_table(all_rows(), str(tmp_path / "rows.parquet"))
    terminal = Terminal("watch", str(tmp_path))
    terminal.until("esc\\x1b[2J")
    terminal.press(b"q")
    status, rest = terminal.end()
    assert status == 0
    assert "\x1b[2J" not in rest


def test_in_a_pipe_each_new_table_is_plain_text_below_the_one_before(tmp_path):
    path = tmp_path / "rows.jsonl"
    appended(path, filled([("first", 40)]))
    running = subprocess.Popen(
        [*COMMAND, "watch", str(path), "--refresh", "0.1"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip
    guard = threading.Timer(PATIENCE, running.kill)
    guard.start()
    lines = []

    def until(text):
        while text not in (line := running.stdout.readline()):
            assert line, lines
            lines.append(line)
        lines.append(line)

    until("40 rows of")
    appended(path, filled([("second", 40)]))
    until("80 rows of")
    running.send_signal(signal.SIGINT)
    rest, errors = running.communicate()
    guard.cancel()
    assert (running.returncode, errors) == (0, "")
    text = "".join(lines) + rest
    assert "\x1b" not in text
    assert text.count("change since") == 2
    assert text.index("first") < text.index("second")


def test_the_table_has_the_lines_of_show_and_the_courses_beside_them():
    rows = report_rows(all_rows())
    plain, drawn = glance(rows, 0.95, width=200), glance(rows, 0.95, width=200, sparks=True)
    assert len(plain) == len(drawn)
    (place,) = {line.index("over time") for line in drawn if "over time" in line}
    judged = judge_rows(rows, 0.95, None)
    for one, with_course, without in zip(judged.models, drawn[3:], plain[3:], strict=False):
        course = spark_text(one.series[one.shown.slice], 16)
        assert len(course) == 16
        assert course in with_course
        assert with_course.replace(course, "").split() == without.split()
        assert with_course.index(course) + 16 == place + len("over time")


def test_a_course_is_high_where_the_auc_is():
    def course(auc):
        rows = report_rows(filled([("m", len(auc))], auc=np.array(auc)))
        return spark_text(judge_rows(rows, 0.95, None).models[0].series[0], 16)

    text = course(np.repeat([0.9, 0.6, 0.9, 0.9], 200))
    assert text[0] == text[-1] == "█"
    assert set(text[5:7]) == {"▁"}
    assert set(course([0.7] * 80)) == {"▅"}
    assert course([0.7, 0.7]) == "▅▅"
    assert course([0.7]) == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--refresh", "0"), "--refresh '0': give seconds between two tables"),
        (("--refresh", "x"), "--refresh 'x': give seconds"),
        (("--reference", "soon"), "reference 'soon' is none of"),
    ],
)
def test_a_wrong_option_is_told(words, told, capsys):
    ran = call(capsys, "watch", "rows/", *words)
    assert ran.status == 2
    assert told in ran.lines[0]
