"""The served page in a browser: it grows while it is open, and goes on after whatever is cut."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pyarrow as pa
import pytest
from playwright.sync_api import Error as PlaywrightError
from report_tables import NASTIER, NASTY, alert_events, evaluated_rows, filled
from rocsteady.pipelines.report.rows import report_rows
from served import PATIENCE, served

TOKEN = "0123456789abcdef-secret"
ROWS = evaluated_rows(("good", NASTY, NASTIER), n=6_000)
IN_TIME = ROWS.take(pa.array(np.argsort(ROWS.column("seq").to_numpy(), kind="stable")))

LINES = """() => Object.fromEntries((document.getElementById("main-chart").data || [])
    .filter((trace) => trace.kind === "line").map((trace) => [trace.model, trace.y]))"""
NET = "Failed to load resource: net::"


def until(page, holds, arg=None):
    """Wait until an expression, or a function of `arg`, holds; Playwright's wait uses eval in the page."""
    end = time.monotonic() + PATIENCE
    while True:
        with suppress(PlaywrightError):  # the page is being loaded
            if page.evaluate(holds, arg):
                return
        assert time.monotonic() < end, holds
        time.sleep(0.02)


@contextmanager
def opened_live(browser, address, *, fragment="", allowed=(), navigations=1, **options):
    """Open a served page; at the end nothing erred, nothing came from elsewhere, nothing was loaded anew."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, **options)
    page = context.new_page()
    said, requested, navigated = [], [], []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: requested.append(request))
    page.on("request", lambda one: navigated.append(one.url) if one.is_navigation_request() else None)
    try:
        page.goto(address + fragment)
        until(page, "document.documentElement.dataset.ready === '1'")
        yield page
        assert [text for text in said if not any(each in text for each in allowed)] == []
        assert {urlsplit(request.url).netloc for request in requested} == {urlsplit(address).netloc}
        assert {request.method for request in requested} == {"GET"}
        assert len(navigated) == navigations, navigated
    finally:
        context.close()


def at(page, rows):
    """Wait until the page has so many rows, and has drawn them."""
    until(page, "(rows) => (document.documentElement.dataset.at || '').endsWith('-' + rows)", arg=rows)


def chart_has(page, rows, models=None):
    """Wait until the large chart has the rows of the chosen models."""
    expected = {}
    for model, part, first, stop in rows.whole_models().tolist():
        assert rows.slices[part] == ""
        if models is None or rows.models[model] in models:
            values = rows.columns["auc"][first:stop]
            expected[str(model)] = [None if np.isnan(value) else value for value in values.tolist()]
    until(page, f"(expected) => JSON.stringify(({LINES})()) === JSON.stringify(expected)", arg=expected)


def test_a_page_that_is_open_grows_with_the_stream(browser):
    with served() as here:
        here.rows.put(IN_TIME.slice(0, 200))
        here.judged(200)
        with opened_live(browser, here.address, fragment="#model=good&measure=auc") as page:
            for end in range(220, len(IN_TIME) + 1, 20):
                here.rows.put(IN_TIME.slice(end - 20, 20))
                at(page, end)
            rows = report_rows(IN_TIME)
            chart_has(page, rows, ("good",))
            here.judged(len(IN_TIME))
            until(page, "document.querySelector('.lead').innerText.includes('360 rows')")
            assert page.locator("#stream-state").inner_text() == "live"
            sentence = here.keeper.published.page.html.decode()
            assert page.locator("#overview-title").inner_text() in sentence
            latest = page.locator("#legend .value").inner_text()
            series = next(s for s in rows.whole_models().tolist() if rows.models[s[0]] == "good")
            assert latest == f"{rows.columns['auc'][series[3] - 1]:.3f}"


def test_a_page_opened_before_the_first_row_shows_the_first_rows(browser):
    with served() as here, opened_live(browser, here.address, navigations=2) as page:
        assert "No rows came yet" in page.locator(".lead").inner_text()
        here.rows.put(filled([("m", 40)]))
        until(page, "document.querySelector('#overview') !== null")
        at(page, 40)
        until(page, "document.documentElement.dataset.ready === '1'")
        chart_has(page, report_rows(filled([("m", 40)])))


@pytest.mark.slow
def test_new_models_and_thinned_rows_leave_the_readers_choice(browser):
    table = filled([("b", 600), ("a", 300)])
    early, late = table.slice(0, 600), table.slice(600)
    with served(most=1_000) as here:
        here.rows.put(early.slice(0, 300))
        here.judged(300)
        arranged_anew = ("status of 409",)  # for a block of an epoch that ended while the page fetched it
        with opened_live(browser, here.address, fragment="#model=b&measure=h", allowed=arranged_anew) as page:
            at(page, 300)
            here.rows.put(early.slice(300))
            here.rows.put(late)
            here.judged(900)
            at(page, 900)
            for start in range(0, 3_000, 200):
                here.rows.put(filled([("b", 3_600)]).slice(600 + start, 200))
            here.wait(lambda now: b"3,900 rows came, and this page has" in now.page.html)
            here.wait(lambda now: now.position == now.page.position)
            at(page, here.keeper.published.position)
            asked = parse_qs(urlsplit(page.url).fragment)
            assert (asked["model"], asked["measure"]) == (["b"], ["h"])
            assert page.locator("#model-count").inner_text() == "1 of 2 chosen"
            assert "H-measure" in page.locator("#main-title").inner_text()


def test_an_alert_opens_and_closes_before_ones_eyes(browser):
    with served(alerted=True) as here:
        here.rows.put(filled([("m", 20)]))
        here.judged(20)
        with opened_live(browser, here.address) as page:
            assert "0 alerts opened" in page.locator(".counts").inner_text()
            here.alerts.put(alert_events({"model": "m", "row": 3, "message": NASTY}))
            until(page, "document.querySelectorAll('#alerts-table tr.open').length === 1")
            assert NASTY in page.locator("#alerts-table tbody").inner_text()
            assert "1 alert opened, 1 still open" in page.locator(".counts").inner_text()
            here.alerts.put(alert_events({"model": "m", "row": 7, "since_row": 3, "state": "closed"}))
            until(page, "document.querySelectorAll('#alerts-table tr.open').length === 0")
            until(page, "document.querySelector('.counts').innerText.includes('0 still open')")


class Proxy:
    """Leads connections to a server, and cuts them."""

    def __init__(self, port):
        self._to = port
        self._open = []
        self.refuses = False
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            if self.refuses:
                client.close()
                continue
            server = socket.create_connection(("127.0.0.1", self._to))
            self._open += [client, server]
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(one, other), daemon=True).start()

    def _copy(self, one, other):
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def cut(self):
        cut, self._open = self._open, []
        for one in cut:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def close(self):
        self.refuses = True
        self._listening.close()
        self.cut()


def test_a_connection_that_is_cut_goes_on_with_the_rows_that_came_meanwhile(browser):
    with served() as here:
        here.rows.put(IN_TIME.slice(0, 200))
        here.judged(200)
        proxy = Proxy(here.port)
        address = f"http://127.0.0.1:{proxy.port}/"
        with opened_live(browser, address, fragment="#model=good", allowed=(NET,)) as page:
            at(page, 200)
            for end in (220, 240, 260):
                proxy.refuses = True
                proxy.cut()
                until(page, "document.getElementById('stream-state').innerText.includes('lost')")
                here.rows.put(IN_TIME.slice(end - 20, 20))
                here.has(end)
                proxy.refuses = False
                at(page, end)
                until(page, "document.getElementById('stream-state').innerText === 'live'")
            chart_has(page, report_rows(IN_TIME.slice(0, 260)), ("good",))
        proxy.close()


def test_a_server_that_is_started_anew_is_taken_up_again(browser):
    with served() as here:
        here.rows.put(IN_TIME.slice(0, 200))
        here.judged(200)
        port, address = here.port, here.address
        opening = opened_live(browser, address, fragment="#model=good&measure=auc", allowed=(NET,))
        page = opening.__enter__()
        at(page, 200)
    with served(port=port) as again:
        again.rows.put(IN_TIME)
        again.judged(len(IN_TIME))
        at(page, len(IN_TIME))
        chart_has(page, report_rows(IN_TIME), ("good",))
        until(page, "document.getElementById('stream-state').innerText === 'live'")
        opening.__exit__(None, None, None)


@pytest.mark.slow
def test_a_link_holds_the_range_which_follows_the_newest_row(browser):
    hour = 3_600_000
    table = filled([("m", 100)])
    view = "() => document.getElementById('main-chart').layout.xaxis.range?.map((x) => Date.parse(x))"
    with served() as here:
        here.rows.put(table.slice(0, 60))
        here.judged(60)
        with opened_live(browser, here.address) as page:
            page.select_option("#range", "21600")
            until(page, f"(({view})() || []).length === 2")
            assert parse_qs(urlsplit(page.url).fragment)["last"] == ["21600"]
            low, high = page.evaluate(view)
            assert high - low == 6 * hour
            here.rows.put(table.slice(60))
            at(page, 100)
            until(page, f"(high) => (({view})()[1] === high)", arg=high + 40 * hour)
            link = urlsplit(page.url).fragment
        with opened_live(browser, here.address, fragment=f"#{link}") as other:
            until(other, f"(high) => ((({view})() || [])[1] === high)", arg=high + 40 * hour)
            assert other.input_value("#range") == "21600"
            other.click("[data-zoom=left]")
            until(other, f"(high) => (({view})()[1] < high)", arg=high + 40 * hour)
            assert other.input_value("#range") == "view"
            zoomed, link = other.evaluate(view), urlsplit(other.url).fragment
            assert "last" not in parse_qs(link)
        with opened_live(browser, here.address, fragment=f"#{link}") as third:
            until(third, f"((({view})() || []).length === 2)")
            assert third.evaluate(view) == zoomed


def test_a_token_in_the_address_opens_the_page_and_leaves_the_address(browser):
    with served(token=TOKEN) as here:
        here.rows.put(filled([("m", 40)]))
        here.judged(40)
        with opened_live(browser, f"{here.address}?token={TOKEN}", navigations=2) as page:
            at(page, 40)
            assert TOKEN not in page.url
            here.rows.put(filled([("m", 60)]).slice(40))
            at(page, 60)


@pytest.mark.slow
def test_a_thousand_models_grow_on_one_page(browser):
    table = filled([(f"m{n:03}", 30) for n in range(1_000)])
    in_time = table.take(pa.array(np.argsort(table.column("row").to_numpy(), kind="stable")))
    with served(tick=0.2, judge=2.0) as here:
        here.rows.put(in_time.slice(0, 20_000))
        here.judged(20_000)
        with opened_live(browser, here.address, fragment="#model=m500") as page:
            for end in range(21_000, 30_001, 1_000):
                here.rows.put(in_time.slice(end - 1_000, 1_000))
                at(page, end)
            chart_has(page, report_rows(table), ("m500",))
            page.fill("#overview-search", "m77")
            until(page, "document.getElementById('overview-page').innerText.startsWith('10 models')")


INLINE = (
    "const s = document.createElement('script'); s.textContent = 'ran = 1'; document.head.append(s)",
    "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"ran = 1\">')",
    "const f = document.createElement('iframe'); f.src = 'http://127.0.0.1:9/'; document.body.append(f)",
)


def test_the_policy_stops_code_that_stands_in_the_page(browser):
    with served() as here:
        here.rows.put(filled([("m", 40)]))
        here.judged(40)
        with opened_live(browser, here.address, allowed=("Content Security Policy", "404")) as page:
            for code in INLINE:
                page.evaluate(f"() => {{ {code} }}")
            page.wait_for_timeout(200)
            assert page.evaluate("window.ran") is None


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_hidden_tab_is_drawn_when_it_is_seen_again(browser, scheme):
    hidden = "Object.defineProperty(document, 'hidden', { get: () => window.isHidden, configurable: true })"
    with served() as here:
        here.rows.put(filled([("m", 60)]).slice(0, 40))
        here.judged(40)
        with opened_live(browser, here.address, color_scheme=scheme) as page:
            page.evaluate(f"() => {{ window.isHidden = true; {hidden}; }}")
            here.rows.put(filled([("m", 60)]).slice(40))
            at(page, 60)
            assert len(page.evaluate(LINES)["0"]) == 40
            page.evaluate(
                "() => { window.isHidden = false; document.dispatchEvent(new Event('visibilitychange')) }"
            )
            chart_has(page, report_rows(filled([("m", 60)])))
