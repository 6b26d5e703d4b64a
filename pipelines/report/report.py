"""The report: rows of measures as one page that explains itself and needs no network.

`report_page` fills the template (page/page.html) with facts about rows (`facts`), the data and the code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...core.alerts.rules import Span
from ...core.errors import ConfigError, InputError
from ...core.settings.periods import Period
from ...transforms.files.formats import has_scheme
from ...transforms.sinks.table import check_file, replaced
from ..outputs import STDOUT, told
from .data import packed_text, script_json
from .facts import TITLE, page_facts
from .render import packed_library, render
from .report_rows import NO_TABLES, ReportRows, Tables, report_rows


def report_page(rows: ReportRows, tables: Tables = NO_TABLES, **look: Any) -> str:
    """Return the page as text; for `look` see `page_facts`."""
    facts = page_facts(rows, tables, **look)
    facts.blocks["plotly"] = packed_library()
    facts.blocks.update({name: packed_text(text) for name, text in facts.texts.items()})
    return render(
        "page.html", blocks=facts.blocks, meta=script_json(facts.meta), live=None, curved=True, **facts.shown
    )


def check_report_path(path: str | os.PathLike[str]) -> None:
    """Check before any work that a report can be written to a path. Raises ConfigError or InputError."""
    text = os.fspath(path)
    if text == STDOUT:
        raise ConfigError("--output -: a report is a file; name it, such as report.html")
    if not text.lower().endswith((".html", ".htm")):
        raise InputError(f"output {text!r}: a report is HTML; give it a name that ends in .html")
    check_file(_final(text))


def _final(path: str) -> str:
    """Return the path with links resolved: the report replaces the link's target, and the link stays."""
    return path if has_scheme(path) else os.path.realpath(path)


def write_report(
    rows: pa.Table,
    path: str | os.PathLike[str],
    tables: Tables = NO_TABLES,
    *,
    title: str = TITLE,
    confidence: float = 0.95,
    reference: Span | Period | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    notes: Sequence[str] = (),
) -> int:
    """Write the report of rows (ROW_SCHEMA) to an HTML file; return its size in bytes.

    confidence  the confidence level of the rows' intervals
    reference   what the latest windows are compared with (`reference_of`); None: all earlier windows
    settings    settings by the rows' `config`, as far as known: the page names and draws separately the
                evaluations of one model in several windows
    title       the title of the page; TITLE names the model where there is only one
    notes       sentences above all other content

    O(n log n) in rows; some 7 s for 2 million (docs/benchmarks/report.md). Raises InputError where the file
    cannot be written, RocsteadyError where writing it fails.

    >>> import tempfile
    >>> from rocsteady.core.rows.arrow import ROW_SCHEMA
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(ROW_SCHEMA.empty_table(), f"{folder}/report.html") > 1_000_000
    True
    """
    check_report_path(path)
    text = report_page(
        report_rows(rows, notes, settings),
        tables,
        title=title,
        confidence=confidence,
        reference=reference,
    ).encode()
    final = _final(os.fspath(path))
    with told(os.fspath(path)), replaced(final) as file:
        file.write(text)
    return len(text)
