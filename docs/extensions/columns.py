"""The columns of the tables that jobs write, as Markdown.

Types come from the schemas of the tables, meanings from docstrings and from the table of measures.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from rocsteady import (
    AlertRow,
    ClassMeans,
    ClassRow,
    ComparisonRow,
    FoldMean,
    MeasureRow,
    PairRow,
    RollUpRow,
)
from rocsteady.core.rows.arrow import CLASS_ROW_SCHEMA, ROW_SCHEMA
from rocsteady.core.rows.columns import COLUMNS, NUMBER_COLUMNS
from rocsteady.core.rows.measure_table import CONTENT_TABLE, EVIDENCE, MEASURE_TABLE, PROBABILITIES
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
    pa.list_(pa.string()): "list of texts",
    pa.list_(pa.float64()): "list of numbers",
}

UNITS = {"score": "In units of the score.", "count": "In events, or their weight."}
"""The units of measures that have one, by the format of their digits."""


def columns_markdown(kind: str) -> str:
    """Return the table of the columns of a kind of record."""
    schema, about = described_columns(kind)
    columns = [field for field in schema if field.name not in (*MEANINGS, *NUMBER_COLUMNS) or kind != "row"]
    rows = [
        [
            _anchored(field.name, kind),
            TYPES[field.type] + (" or null" if field.nullable else ""),
            _cell(about[field.name]),
        ]
        for field in columns
    ]
    names = [field.name for field in columns] if kind == "row" else []
    return _index(names) + table(["column", "type", "meaning"], rows)


def described_columns(kind: str) -> tuple[pa.Schema, Mapping[str, str]]:
    """Return the schema of a kind of record, and the meanings of its columns by name."""
    records = {
        "alert": AlertRow, "roll-up": RollUpRow, "pair": PairRow, "dead-letter": DeadLetter,
        "comparison": ComparisonRow, "mean": FoldMean,
    }  # fmt: skip
    if kind in records:
        about = described(records[kind].__doc__ or "")
        return schema_of(records[kind]), {name.rstrip("_"): meaning for name, meaning in about.items()}
    if kind == "row":
        return ROW_SCHEMA, described(MeasureRow.__doc__ or "")
    if kind == "class-row":  # without the columns of other rows
        own = [field for field in CLASS_ROW_SCHEMA if field.name not in COLUMNS]
        about = described(ClassRow.__doc__ or "") | described(ClassMeans.__doc__ or "")
        return pa.schema(own), about | {"class": about["class_"]}
    schema, home = {
        "curve-point": (CURVE_SCHEMA, ("CURVE_SCHEMA", "rocsteady.transforms.sinks.kinds")),
        "summary": (VERDICT, ("VERDICT", "rocsteady.pipelines.frames.summary")),
    }[kind]
    definition = definition_of(*home)
    return schema, described(definition.about if definition else "")


def measures_markdown(group: str) -> str:
    """Return the table of the measures of a group of `GROUPS`, in the order of a row's columns."""
    names = [name for name in COLUMNS if name in MEANINGS and MEANINGS[name].group == group]
    rows = [[_anchored(name, "row"), _meaning(name)] for name in names]
    return _index(names) + table(["column", "meaning"], rows)


def _meaning(name: str) -> str:
    """Return the meaning of a measure, its unit, which values are better, and the options that it needs."""
    measure = next(each for each in (*MEASURE_TABLE, *CONTENT_TABLE) if each.name == name)
    options = ["`--measures`"] if measure.reads else []
    options += ["`--evidence-below`"] if EVIDENCE in measure.needs else []
    options += ["`--probabilities`"] if PROBABILITIES in measure.needs else []
    is_better = measure.better and measure.by_itself
    parts = [
        _cell(measure.about),
        UNITS.get(measure.digits, ""),
        f"{measure.better.capitalize()} is better." if is_better else "",
        f"Null without {' and '.join(options)}." if options else "",
    ]
    return " ".join(filter(None, parts))


def _index(names: list[str]) -> str:
    """Return entries of the site's index, in which the search finds whole names first."""
    entries = ", ".join(f"! {name}" for name in names)  # "!" makes it a main entry
    return f"```{{index}} {entries}\n```\n\n" if names else ""


def _anchored(name: str, kind: str) -> str:
    """Return the name of a column as code; the columns of rows are targets of links."""
    return f"`{name}`" + (f"{{#{name}}}" if kind == "row" else "")


def _cell(text: str) -> str:
    return sentence(prose(text.strip())).replace("|", "\\|")
