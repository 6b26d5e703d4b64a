"""The columns of the tables that jobs write, as Markdown.

Types come from the schemas of the tables, meanings from docstrings and from the report's glossary.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from rocsteady import AlertRow, ComparisonRow, FoldMean, MeasureRow
from rocsteady.core.rows.arrow import ROW_SCHEMA
from rocsteady.core.rows.columns import COLUMNS, NUMBER_COLUMNS
from rocsteady.core.settings.measure_names import COSTLY_MEASURES, PROBABILITY_MEASURES
from rocsteady.pipelines.frames.summary import VERDICT
from rocsteady.pipelines.report.data import MEANINGS
from rocsteady.transforms.events.dead_letters import DeadLetter, schema_of
from rocsteady.transforms.sinks.kinds import CURVE_SCHEMA

from .definitions import definition_of
from .docstrings import described
from .markdown import prose, sentence, table

TYPES = {
    pa.string(): "text",
    pa.int64(): "whole number",
    pa.float64(): "number",
    pa.bool_(): "true, false",
    pa.timestamp("us", "UTC"): "time",
}

UNITS = {"rank": "none", "share": "none", "score": "of the score", "count": "events, or their weight"}
"""The unit of a measure, by the format of its digits."""


def columns_markdown(kind: str) -> str:
    """Return the table of the columns of a kind of record."""
    schema, about = described_columns(kind)
    columns = [field for field in schema if field.name not in (*MEANINGS, *NUMBER_COLUMNS) or kind != "row"]
    rows = [
        [
            _anchored(field.name, kind),
            TYPES[field.type],
            "can be" if field.nullable else "",
            _cell(about[field.name]),
        ]
        for field in columns
    ]
    return table(["column", "type", "null", "meaning"], rows)


def described_columns(kind: str) -> tuple[pa.Schema, Mapping[str, str]]:
    """Return the schema of a kind of record, and the meanings of its columns by name."""
    records = {"alert": AlertRow, "dead-letter": DeadLetter, "comparison": ComparisonRow, "mean": FoldMean}
    if kind in records:
        return schema_of(records[kind]), described(records[kind].__doc__ or "")
    if kind == "row":
        return ROW_SCHEMA, described(MeasureRow.__doc__ or "")
    schema, home = {
        "curve-point": (CURVE_SCHEMA, ("CURVE_SCHEMA", "rocsteady.transforms.sinks.kinds")),
        "summary": (VERDICT, ("VERDICT", "rocsteady.pipelines.frames.summary")),
    }[kind]
    definition = definition_of(*home)
    return schema, described(definition.about if definition else "")


def measures_markdown(group: str) -> str:
    """Return the table of the measures of a group of `GROUPS`, in the order of a row's columns."""
    rows = [
        [
            _anchored(name, "row"),
            UNITS[meaning.digits],
            meaning.better,
            _asked(name),
            _cell(meaning.sentence),
        ]
        for name in COLUMNS
        if (meaning := MEANINGS.get(name)) is not None and meaning.group == group
    ]
    return table(["column", "unit", "better", "asked by", "meaning"], rows)


def _asked(name: str) -> str:
    options = ["`--measures`"] if name in COSTLY_MEASURES else []
    options += ["`--probabilities`"] if name in PROBABILITY_MEASURES else []
    return " and ".join(options) or "always there"


def _anchored(name: str, kind: str) -> str:
    """Return the name of a column as code; the columns of rows are targets of links."""
    return f"`{name}`" + (f"{{#{name}}}" if kind == "row" else "")


def _cell(text: str) -> str:
    return sentence(prose(text.strip())).replace("|", "\\|")
