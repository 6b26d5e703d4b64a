"""Alerts in the report: an opening and its closing are one alert, told where the alert belongs."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rocsteady as rs
from rocsteady.core.errors import InputError
from rocsteady.pipelines.report.alerts import alerts_of, shown_alerts
from rocsteady.pipelines.report.fleet.pairs import pairs_section
from rocsteady.pipelines.report.fleet.roll_ups import roll_ups_section
from rocsteady.pipelines.report.report import report_page, write_report
from rocsteady.pipelines.report.report_rows import Tables, report_rows
from rocsteady.transforms.sinks.table import write_table

from tests.support.pages.fleet_tables import fleet_rows, pair_rows
from tests.support.pages.report_tables import NASTIER, NASTY, START, alert_events, filled
from tests.support.processes.command import call

HOUR = 3_600_000_000


def lines_of(page):
    """The alerts as the page's code gets them."""
    packed = re.search(r'id="block-alerts">([^<]*)</script>', page).group(1)
    return json.loads(gzip.decompress(b64decode(packed)))


def test_an_opening_and_its_closing_are_one_alert_in_whatever_order_they_come():
    events = [
        {"row": 3}, {"state": "closed", "row": 5, "since_row": 3},
        {"row": 7}, {"model": "b", "row": 3}, {"slice": "site=x", "row": 3}, {"rule": "h < 0.1", "row": 3},
    ]  # fmt: skip
    for order in (events, events[::-1], *list(permutations(events))[100:600:100]):
        found = alerts_of(alert_events(*order))
        assert len(found) == 5
        (closed,) = [alert for alert in found if alert.closed is not None]
        assert (closed.rule, closed.model, closed.slice) == ("auc < 0.6", "a", "")
        assert (closed.opened.row, closed.closed.row) == (3, 5)
        assert found[-1] is closed  # the open ones come first
    rows = report_rows(filled([("a", 9), ("b", 9)]))
    assert shown_alerts(alert_events(*events), rows, 50, dates=False).open_of_models == {"a": 2, "b": 1}


def test_panes_have_their_own_alerts_and_an_event_that_came_twice_counts_once():
    panes = [{"row": 3, "pane_start": START, "pane_end": START + hours * HOUR} for hours in (1, 2)]
    closing = {**panes[1], "state": "closed", "row": 4, "since_row": 3}
    found = alerts_of(alert_events(*panes, closing, *panes, closing))
    assert [(alert.pane[1] - START) // HOUR for alert in found] == [1, 2]
    assert [alert.closed is None for alert in found] == [True, False]


def test_a_closing_without_its_opening_knows_when_it_opened():
    (alert,) = alerts_of(
        alert_events({"state": "closed", "row": 9, "since_row": 4, "since_time": START + HOUR})
    )
    assert (alert.opened.row, alert.opened.time, alert.opened.value) == (4, START + HOUR, None)
    assert alert.closed.row == 9
    assert alerts_of(alert_events()) == []


def test_a_state_that_rocsteady_does_not_write_is_refused():
    with pytest.raises(InputError, match="model 'a' has the state 'ajar', which is neither open nor closed"):
        alerts_of(alert_events({"state": "ajar", "row": 1}))


def test_alerts_of_what_the_rows_lack_are_left_out_and_told():
    rows = report_rows(filled([("a", 4)]))
    table = alert_events({"row": 1}, {"model": "z", "row": 1}, {"slice": "site=q", "row": 1})
    told = shown_alerts(table, rows, 50, dates=False)
    assert (told.opened, told.still_open, len(told.lines)) == (1, 1, 1)
    assert told.note == (
        "2 alerts are left out: the page does not have their models, slices, groups or pairs."
    )
    assert told.note in report_page(rows, Tables(alerts=table))


def test_alerts_of_groups_and_pairs_are_listed_and_show_their_chart():
    group = {"model": "models", "row": 2, "column": "members_below", "rule": "members_below > 0"}
    pair = {"model": "a against old", "row": 0, "column": "anytime_high", "rule": "anytime_high < 0"}
    table = alert_events(
        group, {**group, "model": "gone/*"}, pair, {**pair, "slice": "c=x", "row": 1},
        {**pair, "state": "closed", "slice": "c=x", "row": 3, "since_row": 1},
    )  # fmt: skip
    rows = report_rows(filled([("a", 4), ("models", 4)]))
    groups = rs.roll_up(fleet_rows({"a": [0.8], "b": [0.7]}), by="models")
    pairs = pa.concat_tables([pair_rows({"verdict": "worse"}, model="a", slice=part) for part in ("", "c=x")])
    sections = [roll_ups_section(groups, 0.95), pairs_section(pairs, 0.95)]
    told = shown_alerts(table, rows, 50, dates=False, sections=sections)
    assert (told.opened, told.still_open) == (3, 2)
    assert told.open_of_models == {"a": 1}  # that of its pair, and none of a model called "models"
    assert told.note.startswith("1 alert is left out")
    assert {(line[2], tuple(line[7])) for line in told.lines} == {
        ("models", ("roll_ups", 0, "")),
        ("a against old", ("pairs", 0, "")),
        ("a against old", ("pairs", 1, "c=x")),
    }
    assert [line[0] for line in told.lines if line[7][0] == "roll_ups"] == [[]]
    assert [line[0] for line in told.lines if line[7][0] == "pairs"] == [[0], [0]]  # the challenger
    page = report_page(rows, Tables(alerts=table, roll_ups=groups, pairs=pairs))
    head = page.partition("</header>")[0]
    assert "3 alerts opened, 2 still open" in head
    assert "The newest open alert, since row 2: models, members_below &gt; 0</p>" in head
    assert len(lines_of(page)) == 3


def test_a_model_under_two_settings_has_its_alerts_under_each_and_its_row_where_the_time_is_its_own():
    times = [pa.array([START + hour * HOUR for hour in hours], pa.timestamp("us", "UTC"))
             for hours in ((1, 2, 3), (1, 4, 9))]  # fmt: skip
    parts = [filled([("a", 3)], time=time, config=pa.array([config] * 3), seq=[10, seq, 90])
             for time, config, seq in zip(times, "vw", (20, 50), strict=True)]  # fmt: skip
    rows = report_rows(pa.concat_tables(parts))
    told = shown_alerts(alert_events({"row": 1, "time": START + 4 * HOUR}), rows, 50, dates=False)
    ((models, _, name, *_, opening, closing, elsewhere),) = told.lines
    assert ([rows.models[place] for place in models], name) == (["a (config v)", "a (config w)"], "a")
    assert opening[:2] == [1, [None, 50]]
    assert (closing, elsewhere) == (None, None)


def test_the_page_counts_lists_and_holds_alerts_and_names_are_text():
    rows = report_rows(filled([(NASTY, 6), (NASTIER, 6)]))
    table = alert_events(
        {"model": NASTY, "row": 2, "time": START + 3 * HOUR, "value": 0.5, "message": NASTY},
        {"model": NASTIER, "row": 1, "time": START + 2 * HOUR},
        {
            "model": NASTIER,
            "state": "closed",
            "row": 3,
            "since_row": 1,
            "time": START + 4 * HOUR,
            "value": 0.75,
        },
    )
    page = report_page(rows, Tables(alerts=table))
    assert NASTY not in page
    assert "2 alerts opened, 1 still open" in page.partition("</header>")[0]
    table = page.partition('id="alerts-table"')[2]
    cells = re.findall(r'<td class="text[^>]*>(?:<div>)?(.*?)(?:</div>)?</td>', table)
    assert cells[:6] == [
        "all events", "auc &lt; 0.6", "2013-01-01 03:26", "still open", "auc 0.500",
        "&lt;script&gt;alert(1)&lt;/script&gt;",
    ]  # fmt: skip
    assert cells[8:11] == ["2013-01-01 02:26", "2013-01-01 04:26", "auc 0.750"]
    seqs = [(line[2], line[5][1], line[6] and line[6][1]) for line in lines_of(page)]
    assert seqs == [(NASTY, [300], None), (NASTIER, [200], [400])]


def test_without_alerts_the_page_says_nothing_of_them_and_with_none_that_there_are_none():
    rows = report_rows(filled([("a", 3)]))
    page = report_page(rows).partition("<script")[0]
    assert 'id="alerts' not in page
    assert "alerts opened" not in page
    assert "0 alerts opened, 0 still open" in report_page(rows, Tables(alerts=alert_events()))


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl.gz"])
def test_the_command_reads_alerts_in_every_format_from_several_files(ending, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pq.write_table(filled([("a", 6)]), "rows.parquet")
    write_table(alert_events({"row": 1}, {"row": 3}), f"one{ending}")
    write_table(alert_events({"state": "closed", "row": 2, "since_row": 1}), f"two{ending}")
    ran = call(
        capsys,
        "report",
        "rows.parquet",
        "--alerts",
        f"one{ending}",
        "--alerts",
        f"two{ending}",
        "-o",
        "r.html",
    )
    assert ran.status == 0, ran
    assert "2 alerts opened, 1 still open" in Path("r.html").read_text()


def test_a_file_of_something_else_is_no_file_of_alerts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pq.write_table(filled([("a", 6)]), "rows.parquet")
    ran = call(capsys, "report", "rows.parquet", "--alerts", "rows.parquet", "-o", "r.html")
    assert (ran.status, len(ran.lines)) == (2, 1)
    assert "rows.parquet holds no alerts" in ran.lines[0]
    assert "rocsteady evaluate --alerts" in ran.lines[0]


def test_many_alerts_take_no_room_in_the_html(tmp_path):
    table = alert_events(*({"row": row, "time": START + row * HOUR} for row in range(2_000)))
    write_report(filled([("a", 2_000)]), tmp_path / "r.html", Tables(alerts=table))
    page = (tmp_path / "r.html").read_text()
    assert page.partition('id="alerts-table"')[2].partition("</table>")[0].count("<tr") == 51
    assert len(lines_of(page)) == 2_000
