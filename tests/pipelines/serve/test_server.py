"""The server over its socket: who may ask for what, what is answered, and how it ends."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import socket
import threading
import time
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
import rocsteady as rs
from rocsteady.core.errors import ConfigError, InputError
from rocsteady.pipelines.report.report_rows import EventCounters, report_rows
from rocsteady.pipelines.serve import app, server
from rocsteady.pipelines.serve.gauges import newest_of
from rocsteady.pipelines.serve.guard import HEADERS, token_of
from rocsteady.pipelines.serve.pages import Latest, page_script, plotly_script

from tests.support.pages.fleet_tables import fleet_rows, pair_rows
from tests.support.pages.report_tables import NASTIER, NASTY, alert_events, curve, evaluated_rows, filled
from tests.support.pages.served import PATIENCE, asked, numbers, parsed, served

TOKEN = "0123456789abcdef-secret"


@cache
def all_rows():
    return evaluated_rows(("good", NASTY, NASTIER), n=1_500)


@pytest.fixture(scope="module")
def full():
    began = time.time()
    with served() as here:
        here.began = began
        here.rows.put(all_rows())
        here.judged(len(all_rows()))
        yield here


@pytest.fixture(scope="module")
def guarded():
    with served(token=TOKEN) as here:
        yield here


class Stream:
    """An open stream of events."""

    def __init__(self, port, after="", **headers):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        self._connection.request(
            "GET", f"/api/stream?after={after}", headers={"Connection": "close", **headers}
        )
        self.answer = self._connection.getresponse()

    def event(self):
        lines = []
        while True:
            line = self.answer.readline().decode()
            if not line:
                return None
            if line != "\n":
                lines.append(line)
            elif not lines[0].startswith("retry"):
                return parsed("".join(lines))
            else:
                lines = []

    def close(self):
        """Leave, as a browser does whose tab is closed."""
        self.answer.close()
        self._connection.close()


def meta_of(page):
    return json.loads(page.decode().partition('id="meta">')[2].partition("</script>")[0])


def test_the_page_holds_no_code_and_names_only_as_text(full):
    status, headers, page = asked(full.port)
    text = page.decode()
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert re.findall(r"<script[^>]*>", text) == [
        '<script type="application/json" id="meta">', '<script src="static/page.js">',
    ]  # fmt: skip
    assert "<style" not in text
    assert not re.search(r"<[^>]+\son\w+=", text)
    assert not re.search(r"javascript:", text)
    outside = text.partition('<script type="application/json" id="meta">')
    assert NASTY not in outside[0] + outside[2].partition("</script>")[2]
    assert meta_of(page)["models"] == sorted(("good", NASTY, NASTIER))


@pytest.mark.parametrize(
    "path",
    ["/", "/static/page.js", "/api/models", "/api/blocks/x-1-1/auc", "/healthz", "/metrics", "/nowhere"],
)
def test_every_answer_has_the_headers_that_bind_a_browser(path, full):
    _, headers, _ = asked(full.port, path)
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert "no-store" in headers["cache-control"] or path.startswith("/static/")
    assert "server" not in headers
    assert not any(name.startswith("access-control") for name in headers)
    assert "unsafe-inline" not in headers["content-security-policy"]
    assert "unsafe" not in re.search(r"script-src [^;]*", headers["content-security-policy"]).group()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_only_get_and_head_are_answered(method, full):
    status, headers, _ = asked(full.port, "/", method)
    assert (status, headers["allow"]) == (405, "GET, HEAD")


def test_head_is_get_without_what_it_holds(full):
    status, headers, content = asked(full.port, "/", "HEAD")
    assert (status, content) == (200, b"")
    assert int(headers["content-length"]) == len(asked(full.port, "/")[2])


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "10.0.0.1", "localhost.evil",
     "localhost@evil.example", "localhost:80@evil.example", "[::1]evil.example", "[::1", "localhost."],
)  # fmt: skip
def test_a_name_that_is_not_of_this_machine_is_refused(host, full):
    assert asked(full.port, Host=host)[0] == 421


@pytest.mark.parametrize("host", ["localhost", "LocalHost:1", "127.0.0.1", "127.1.2.3:80", "[::1]:8080"])
def test_a_name_of_this_machine_is_answered(host, full):
    assert asked(full.port, Host=host)[0] == 200


PATHS = ("/", "/static/page.js", "/api/models", "/api/stream", "/healthz", "/metrics", "/nowhere")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer 0123456789abcdef-secreT"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Cookie": f"rocsteady={TOKEN}"},
        {"Cookie": 'rocsteady="'},
    ],
)
def test_without_the_token_nothing_is_answered(path, headers, guarded):
    status, told, content = asked(guarded.port, path, **headers)
    assert status == 401
    assert told["www-authenticate"].startswith("Bearer")
    assert b"A token is needed" in content


def test_the_token_opens_everything_as_a_header(guarded):
    for path in ("/", "/api/models", "/healthz", "/metrics"):
        assert asked(guarded.port, path, Authorization=f"Bearer {TOKEN}")[0] == 200
        assert asked(guarded.port, path, Authorization=f"bearer  {TOKEN}")[0] == 200


def test_the_token_in_an_address_becomes_a_cookie_once(guarded):
    status, headers, _ = asked(guarded.port, f"/?a=1&token={TOKEN}")
    assert (status, headers["location"]) == (303, "./?a=1")
    cookie, *attributes = headers["set-cookie"].split("; ")
    assert {*attributes} == {"Path=/", "HttpOnly", "SameSite=Lax"}
    assert cookie.startswith(f"rocsteady-{guarded.port}=")
    assert TOKEN not in cookie
    assert asked(guarded.port, "/", Cookie=f"other=1; {cookie}")[0] == 200
    assert asked(guarded.port, "/", Cookie=f"{cookie}0")[0] == 401
    assert asked(guarded.port, f"/?token={TOKEN}0")[0] == 401
    with served(token=TOKEN + "other") as other:
        assert asked(other.port, "/", Cookie=cookie.replace(str(guarded.port), str(other.port)))[0] == 401


@pytest.mark.parametrize(
    "others", ['look={"a":1}', "two words=1", 'open="', "caf\xe9=\xe9", "path=/", "=", "", "a=1,b=2"]
)
def test_cookies_of_other_programs_on_this_host_lock_nobody_out(others, guarded):
    _, headers, _ = asked(guarded.port, f"/?token={TOKEN}")
    cookie = headers["set-cookie"].partition(";")[0]
    name = cookie.partition("=")[0]
    for sent in (f"{others}; {cookie}", f"{cookie}; {others}", f"{name}=old; {others};{cookie}"):
        assert asked(guarded.port, "/healthz", Cookie=sent)[0] == 200
    assert asked(guarded.port, "/healthz", Cookie=f"{others}; {name}=old")[0] == 401


@pytest.mark.parametrize(
    "path",
    ["//evil.example/", "/evil:x", "/https:evil.example", "/%0d%0aSet-Cookie:%20a=b", "/%e2%80%ae", "/%ff",
     "/%5c%5cevil.example"],
)  # fmt: skip
def test_a_redirect_stays_on_the_server(path, guarded):
    status, headers, _ = asked(guarded.port, f"{path}?token={TOKEN}")
    assert status == 303
    assert headers["location"].startswith("./")
    assert headers["location"].isascii()
    assert [*headers].count("set-cookie") == 1


def test_a_token_is_needed_beyond_this_machine_and_cannot_be_short(tmp_path):
    assert token_of("--token", None, "127.0.0.1") is None
    assert token_of("--token", None, "localhost") is None
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", ""):
        with pytest.raises(ConfigError, match="other machines"):
            token_of("--token", None, host)
    file = tmp_path / "secret"
    file.write_text(f"{TOKEN}\nmore\n")
    assert token_of("--token", f"@{file}", "0.0.0.0") == TOKEN
    assert token_of("--token", TOKEN, "0.0.0.0") == TOKEN
    for wrong in ("", "short", "a" * 15, "with a space in it", "ümlaut-ümlaut-ümlaut"):
        with pytest.raises(ConfigError, match="16 or more"):
            token_of("--token", wrong, "0.0.0.0")
    with pytest.raises(ConfigError, match="cannot be read"):
        token_of("--token", f"@{tmp_path / 'none'}", "127.0.0.1")


def test_a_block_is_the_column_that_the_page_has(full):
    meta = meta_of(asked(full.port)[2])
    rows = report_rows(all_rows())
    assert meta["series"] == rows.series.tolist()
    for name in ("auc", "time", "h"):
        status, _, content = asked(full.port, f"/api/blocks/{meta['at']}/{name}")
        assert status == 200
        assert np.array_equal(numbers(content), rows.columns[name], equal_nan=True)


@pytest.mark.parametrize(
    ("at", "name", "status"),
    [
        ("other-1-5", "auc", 409), ("", "auc", 404), ("{at}", "nothing", 404), ("{at}", "row\n", 404),
        ("{at}9", "auc", 404), ("{at}99999999999999999999", "auc", 409), ("{at}x", "auc", 409),
        ("{at}", "..%2f..%2fetc%2fpasswd", 404), ("{at}", "__class__", 404), ("%00", "auc", 409),
    ],
)  # fmt: skip
def test_a_block_that_is_not_there_is_said_to_be_so(at, name, status, full):
    now = meta_of(asked(full.port)[2])["at"]
    path = f"/api/blocks/{at.replace('{at}', now)}/{name}".replace("\n", "%0A")
    assert asked(full.port, path)[0] == status


@pytest.mark.parametrize("name", ["nothing.js", "..%2fpages.py", "%2e%2e/pages.py", "page.js/x", ""])
def test_only_the_files_of_the_page_are_given(name, full):
    assert asked(full.port, f"/static/{name}")[0] == 404


def test_files_come_packed_where_the_browser_wants_that(full):
    for name, content in (("page.js", page_script()), ("plotly.js", plotly_script())):
        _, headers, plain = asked(full.port, f"/static/{name}")
        assert plain == content
        assert headers["content-type"].startswith("text/javascript")
        _, headers, packed = asked(full.port, f"/static/{name}", Accept_Encoding="gzip, br")
        assert headers["content-encoding"] == "gzip"
        assert gzip.decompress(packed) == content


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "gzip; q=0.0", "identity"])
def test_a_file_comes_plain_where_the_browser_takes_nothing_packed(accepted, full):
    _, headers, content = asked(full.port, "/static/page.js", Accept_Encoding=accepted)
    assert "content-encoding" not in headers
    assert content == page_script()


@pytest.mark.parametrize("path", ["/metrics/", "/api/models/", "/static/", "/healthz/", "//"])
def test_no_answer_leads_to_the_host_that_a_request_names(path, full):
    status, headers, _ = asked(full.port, path)
    assert status == 404
    assert "location" not in headers


@pytest.mark.parametrize(
    "last", ["-1", "\xff-\xfe", "a-9" + "9" * 400, "-", "x" * 6_000, "{run}--1", "{run}-1e3"]
)
def test_a_last_event_id_that_is_none_gets_the_page(last, full):
    run = meta_of(asked(full.port)[2])["at"].rpartition("-")[0]
    stream = Stream(full.port, **{"Last-Event-ID": last.replace("{run}", run)})
    event = stream.event()
    stream.close()
    assert (event["event"], event["id"]) == ("page", f"{run}-{len(all_rows())}")


def test_head_of_a_stream_ends(full):
    status, headers, content = asked(full.port, "/api/stream", "HEAD")
    assert (status, content) == (200, b"")
    assert headers["content-type"].startswith("text/event-stream")


def test_who_sends_no_request_holds_no_connection(monkeypatch):
    monkeypatch.setattr(server, "REQUEST_SECONDS", 0.2)
    with served(token=TOKEN) as here:
        silent = [socket.create_connection(("127.0.0.1", here.port), PATIENCE) for _ in range(20)]
        silent[0].sendall(b"GET / HTTP/1.1\r\nHost: ")
        for one in silent:
            assert one.recv(1) == b""
            one.close()
        monkeypatch.setattr(server, "REQUEST_SECONDS", PATIENCE)  # a request may be slow, and is answered
        with socket.create_connection(("127.0.0.1", here.port), PATIENCE) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = b""
            while part := stranger.recv(1 << 16):
                answer += part
            assert answer.startswith(b"HTTP/1.1 401")


def opened_at_ten(here, table):
    """The place in the stream of a page that has the first ten rows."""
    here.rows.put(table.slice(0, 10))
    here.judged(10)
    return meta_of(asked(here.port)[2])["at"]


@pytest.mark.slow
def test_browsers_that_read_nothing_cost_an_event_each_and_others_are_served():
    table = filled([("m", 60_000)])
    with served(judge=1_000.0) as here:
        at = opened_at_ten(here, table)
        here.rows.put(table.slice(10))
        here.has(60_000)
        idle = []
        for number in range(60):
            one = socket.create_connection(("127.0.0.1", here.port), PATIENCE)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            after = f"{at.rpartition('-')[0]}-{number}"
            one.sendall(f"GET /api/stream?after={after} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            idle.append(one)
        reader, rows = Stream(here.port, at), 0
        while rows < 60_000:
            event = reader.event()
            assert len(event["data"]) < 2_000_000
            rows = json.loads(event["data"]).get("to", rows)
        reader.close()
        for one in idle:
            one.close()


AWKWARD = (
    NASTY, NASTIER, "nul \0 and \x1b[2J", "two\r\nlines\u2028three", "\u202eright to left\u2066",
    'q"\\uote\'', "\ufeff",
    "a=b, c", "x" * 5_000, "${1}{{ 2 }}{% 3 %}", "\U0001f600 \u0301",
)  # fmt: skip


def test_awkward_names_are_whole_in_every_answer():
    from prometheus_client.parser import text_string_to_metric_families

    table = filled([(name, 3) for name in AWKWARD])
    with served(followed=("alerts",)) as here:
        here.rows.put(table)
        here.alerts.put(
            alert_events(*({"model": name, "row": 1, "message": name, "rule": name} for name in AWKWARD))
        )
        here.wait(lambda now: f"{len(AWKWARD)} alerts opened".encode() in now.page.html)
        told = json.loads(asked(here.port, "/api/models")[2])
        assert {row["model"] for row in told} == {*AWKWARD}
        meta = meta_of(asked(here.port)[2])
        assert {*meta["models"]} == {*AWKWARD}
        lines = json.loads(gzip.decompress(asked(here.port, f"/api/blocks/{meta['at']}/alerts")[2]))
        assert {line[5][-1] for line in lines} == {*AWKWARD}
        families = text_string_to_metric_families(asked(here.port, "/metrics")[2].decode())
        found = {one.labels.get("model") for family in families for one in family.samples} - {None}
        assert found == {*AWKWARD}


def test_the_latest_rows_are_given_as_json(full):
    _, headers, content = asked(full.port, "/api/models")
    assert headers["content-type"].startswith("application/json")
    rows = report_rows(all_rows())
    told = {(row["model"], row["slice"]): row for row in json.loads(content)}
    assert len(told) == len(rows.series)
    for model, part, _, stop in rows.series.tolist():
        row = told[rows.models[model], rows.slices[part]]
        for name in ("seq", "time", "auc"):
            expected = rows.columns[name][stop - 1]
            assert row[name] == (None if np.isnan(expected) else expected)


def fetched(port):
    """The samples at /metrics by name and labels."""
    from prometheus_client.parser import text_string_to_metric_families

    status, headers, content = asked(port, "/metrics")
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(content.decode())
        for sample in family.samples
    }


def test_prometheus_reads_the_gauges(full):
    asked_at = time.time()
    found = fetched(full.port)
    answered_at = time.time()
    rows = report_rows(all_rows())
    for model, part, _, stop in rows.series.tolist():
        names = (rows.models[model], rows.slices[part]) if rows.slices[part] else (rows.models[model],)
        kind = "slice" if rows.slices[part] else "model"
        for name in ("auc", "auc_low", "auc_high", "window_events"):
            value = found[f"rocsteady_{kind}_{name}", *names]
            assert np.array_equal(value, rows.columns[name][stop - 1], equal_nan=True)
        if kind == "model":
            assert np.array_equal(
                found["rocsteady_model_h", *names], rows.columns["h"][stop - 1], equal_nan=True
            )
            assert found["rocsteady_model_events", *names] == rows.columns["seq"][stop - 1]
            assert found["rocsteady_model_newest_event_timestamp_seconds", *names] == pytest.approx(
                rows.event_times[stop - 1] / 1e6
            )
    newest = float(np.nanmax(rows.event_times)) / 1e6
    assert found["rocsteady_newest_event_timestamp_seconds",] == newest
    assert asked_at <= newest + found["rocsteady_event_lag_seconds",] + 1e-3 <= answered_at + 2e-3
    assert found["rocsteady_rows_followed_total",] == len(all_rows())
    assert full.began <= found["rocsteady_newest_row_timestamp_seconds",] <= answered_at
    assert found["rocsteady_models_without_gauges",] == found["rocsteady_slices_without_gauges",] == 0
    assert ("rocsteady_alerts_open",) not in found, "no alerts are followed"


def test_models_and_slices_beyond_a_thousand_have_no_gauges_and_are_counted():
    models = [Latest(f"m{n}", "", 1.0, 1.0, 0.5, 0.4, 0.6, 0.1, 2.0, None, None) for n in range(1_003)]
    parts = [models[0]._replace(slice=f"s{n}") for n in range(1_001)]
    found = newest_of([*models, *parts])
    assert (len(found.models), len(found.slices)) == (1_000, 1_000)
    assert (found.models_beyond, found.slices_beyond) == (3, 1)


def test_open_alerts_are_counted_for_prometheus():
    with served(followed=("alerts",)) as here:
        here.rows.put(all_rows())
        assert fetched(here.port)["rocsteady_alerts_open",] == 0
        opened = [{"model": "good", "row": row} for row in (3, 9, 12)]
        closed = {"model": "good", "row": 10, "since_row": 9, "state": "closed"}
        here.alerts.put(alert_events(*opened, closed))
        here.wait(lambda _: here.keeper.gathered.alerts.num_rows == 4)
        assert fetched(here.port)["rocsteady_alerts_open",] == 2


def test_a_stream_gives_rows_as_they_come_and_goes_on_after_a_cut():
    table = filled([("m", 50)])
    with served(judge=1_000.0) as here:
        at = opened_at_ten(here, table)
        stream = Stream(here.port, at)
        assert stream.answer.getheader("content-type").startswith("text/event-stream")
        assert stream.event()["event"] == "page"
        here.rows.put(table.slice(10, 5))
        event = stream.event()
        assert (event["event"], json.loads(event["data"])["to"]) == ("rows", 15)
        stream.close()
        here.rows.put(table.slice(15, 7))
        here.has(22)
        again = Stream(here.port, "what-the-address-said", **{"Last-Event-ID": event["id"]})
        assert again.event()["event"] == "page"
        told = json.loads(again.event()["data"])
        assert (told["from"], told["to"]) == (15, 22)
        again.close()


def test_a_stream_of_silence_says_that_it_is_there(monkeypatch):
    monkeypatch.setattr(app, "BEAT_SECONDS", 0.05)
    with served() as here:
        stream = Stream(here.port)
        assert stream.event()["event"] == "page"
        assert [stream.event()["event"] for _ in range(3)] == ["beat"] * 3
        stream.close()


def test_streams_beyond_the_most_are_refused_and_places_become_free(monkeypatch):
    monkeypatch.setattr(app, "STREAMS", 2)
    monkeypatch.setattr(app, "BEAT_SECONDS", 0.05)
    with served() as here:
        streams = [Stream(here.port) for _ in range(2)]
        assert all(stream.event() for stream in streams)
        assert asked(here.port, "/api/stream")[0] == 503
        streams[0].close()
        until = time.monotonic() + PATIENCE
        while (again := Stream(here.port)).answer.status != 200:
            again.close()
            assert time.monotonic() < until
            time.sleep(0.05)
        again.close()
        streams[1].close()


def test_streams_that_begin_at_once_are_not_more_than_the_most(monkeypatch):
    monkeypatch.setattr(app, "STREAMS", 5)
    with served() as here:
        asking = [socket.create_connection(("127.0.0.1", here.port), PATIENCE) for _ in range(40)]
        for one in asking:
            one.sendall(b"GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answers = [one.recv(12) for one in asking]
        for one in asking:
            one.close()
    assert answers.count(b"HTTP/1.1 200") == 5
    assert answers.count(b"HTTP/1.1 503") == 35


def test_a_server_ends_though_pages_are_open():
    with served() as here:
        stream = Stream(here.port)
        stream.event()
        ended = []
        thread = threading.Thread(target=lambda: ended.append(stream.event()))
        thread.start()
    thread.join(PATIENCE)
    stream.close()
    assert ended == [None]
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", here.port))


def test_a_port_that_is_taken_is_said_to_be_so():
    with (
        served() as here,
        pytest.raises(InputError, match="nothing can listen there"),
        served(port=here.port),
    ):
        pass


def test_alerts_open_and_close_on_the_page():
    rows = filled([("m", 20)])
    with served(followed=("alerts",)) as here:
        here.rows.put(rows)
        here.alerts.put(alert_events({"model": "m", "row": 3}))
        here.wait(lambda now: b"1 alert opened, 1 still open" in now.page.html)
        here.alerts.put(alert_events({"model": "m", "row": 7, "since_row": 3, "state": "closed"}))
        here.wait(lambda now: b"1 alert opened, 0 still open" in now.page.html)


def test_records_that_cannot_be_shown_are_told_and_the_others_are_shown():
    with served(followed=("alerts",)) as here:
        here.rows.put(filled([("m", 20)]))
        here.alerts.put(alert_events({"model": "m", "row": 3, "state": "ajar"}))
        here.alerts.put(alert_events({"model": "m", "row": 3}))
        here.wait(
            lambda now: (
                b"1 alert opened, 1 still open" in now.page.html
                and b"Left out: records of a test, an alert of the model" in now.page.html
            )
        )


ALL = ("alerts", "roll-ups", "pairs", "curves")


def test_roll_ups_pairs_curves_and_their_alerts_are_on_the_page():
    models = {f"{team}/{name}": [0.8, 0.7 if name == "x" else 0.8] for team in "ab" for name in "xyz"}
    rows = pa.concat_tables([fleet_rows(models), filled([("curved", 3)]).cast(fleet_rows(models).schema)])
    with served(followed=ALL) as here:
        here.rows.put(rows)
        here.fed["roll-ups"].put(rs.roll_up(rows, by=["models", "a/*"]))
        here.fed["pairs"].put(pair_rows({}, {"verdict": "better"}, model=NASTY, against="a/x"))
        here.fed["curves"].put(curve_table("curved", 300))
        here.alerts.put(
            alert_events(
                {"model": "a/*", "row": 1, "column": "members_below"},
                {"model": f"{NASTY} against a/x", "row": 1, "column": "anytime_low"},
                {"model": "nowhere", "row": 1},
            )
        )
        here.wait(lambda now: b"2 alerts opened" in now.page.html and b'id="pairs"' in now.page.html)
        here.wait(lambda now: meta_of(now.page.html)["curves"] and b'id="roll_ups"' in now.page.html)
        _, _, page = asked(here.port)
        assert b"ranks better than a/x" in page
        assert b"1 alert is left out" in page
        meta = meta_of(page)
        at = meta["at"]
        chart = json.loads(gzip.decompress(asked(here.port, f"/api/blocks/{at}/roll_ups_chart")[2]))
        assert {one["name"] for one in chart["series"]} == {"models", "a/*"}
        lines = json.loads(gzip.decompress(asked(here.port, f"/api/blocks/{at}/pairs")[2]))
        assert len(lines) == 1
        assert NASTY not in lines[0]["html"]
        block = f"/api/blocks/{at}/curve_tp-{meta['curvesAt']}"
        assert numbers(asked(here.port, block)[2]).tolist() == curve_table("curved", 300)["tp"].to_pylist()
        assert asked(here.port, f"/api/blocks/{at}/curve_tp-0")[0] == 404


def curve_table(model, seq):
    rng = np.random.default_rng(1)
    labels = np.append([0, 1], rng.integers(0, 2, 60))
    return curve(model, seq, labels, rng.random(62))


def test_a_row_beside_the_rows_that_cannot_be_shown_is_told_and_the_others_are_shown():
    good = rs.roll_up(fleet_rows({"a": [0.8, 0.8], "b": [0.8, 0.7]}), by=["models"])
    due = good.schema.get_field_index("due")
    bad = good.set_column(due, "due", pa.nulls(len(good), good.schema.field("due").type))
    with served(followed=ALL) as here:
        here.rows.put(filled([("m", 20)]))
        here.fed["roll-ups"].put(bad)
        here.fed["roll-ups"].put(good)
        here.wait(
            lambda now: b'id="roll_ups"' in now.page.html and b"Left out: records of a test" in now.page.html
        )


def test_the_counts_of_a_job_are_on_the_page():
    with served() as here:
        here.rows.put(filled([("m", 20)]))
        here.judged(20)
        assert b"Dead letters" not in asked(here.port)[2]
        here.keeper.count(EventCounters(2_345, 2_000, (("invalid", f"{NASTY} is no score", 345),)))
        here.wait(lambda now: b"2,345" in now.page.html and b"345 &times;" in now.page.html)
        assert NASTY.encode() not in asked(here.port)[2]


def test_rows_that_differ_and_rows_that_are_thinned_are_told():
    with served(most=1_000) as here:
        for start in range(0, 5_000, 250):
            here.rows.put(filled([("m", 5_000)]).slice(start, 250))
        here.rows.put(filled([("m", 5_000)], auc=np.linspace(0, 1, 5_000)).slice(4_990))
        here.wait(lambda now: b"10 rows came again with other values" in now.page.html)
        assert b"5,000 rows came, and this page has" in here.keeper.published.page.html


def test_the_rows_of_a_thousand_models_are_served_in_time():
    table = filled([(f"m{n}", 20) for n in range(1_000)])
    with served(judge=1_000.0) as here:
        here.rows.put(table.slice(0, 10))
        here.judged(10)
        here.rows.put(table)
        here.has(20_000)
        assert len(meta_of(asked(here.port)[2])["models"]) == 1_000
        assert len(json.loads(asked(here.port, "/api/models")[2])) == 1_000


def test_a_keeper_takes_rows_of_an_older_version():
    table = filled([("m", 20)])
    table = table.set_column(
        table.schema.get_field_index("due"), "due", pa.nulls(20, pa.timestamp("us", "UTC"))
    )
    with served() as here:
        here.rows.put(table)
        here.judged(20)
