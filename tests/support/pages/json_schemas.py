"""JSON Schemas of what sinks write, and the table of reasons for the docs; `written` writes both."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
from rocsteady.core.events.rejected import Reason
from rocsteady.core.rows.reasons import REASONS
from rocsteady.transforms.events.dead_letters import KINDS as LETTER_KINDS
from rocsteady.transforms.sinks.kinds import CLASS_ROWS, DEAD_LETTERS, TableKind

from tests.support import ROOT

FOLDER = ROOT / "docs" / "schemas"
REASONS_PAGE = FOLDER.parent / "reference/reasons.md"
WORDS = {"kind": [*LETTER_KINDS], "reason": [reason.value for reason in Reason]}
"""The columns of a dead letter that hold one of a few words."""


def json_schema(kind: TableKind) -> dict[str, Any]:
    """All columns are there, null where they have no value; later versions may add some."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"rocsteady {kind.name}",
        "type": "object",
        "properties": {
            field.name: _property(field)
            | ({"enum": WORDS[field.name]} if kind is DEAD_LETTERS and field.name in WORDS else {})
            for field in kind.schema
        },
        "required": kind.schema.names,
    }


def _property(field: pa.Field) -> dict[str, Any]:
    more = {}
    if pa.types.is_timestamp(field.type):
        name, more = "string", {"format": "date-time"}
    elif pa.types.is_string(field.type):
        name = "string"
    elif pa.types.is_boolean(field.type):
        name = "boolean"
    elif pa.types.is_list(field.type):
        of_texts = pa.types.is_string(field.type.value_type)
        name, more = "array", {"items": {"type": "string" if of_texts else ["number", "null"]}}
    else:
        name = "integer" if pa.types.is_integer(field.type) else "number"
    return {"type": [name, "null"] if field.nullable else name, **more}


def path_of(kind: TableKind) -> Path:
    """Return the file of a kind's schema; rows of classes are rows, too."""
    return FOLDER / f"{'class-' if kind is CLASS_ROWS else ''}{kind.name}.json"


def text_of(kind: TableKind) -> str:
    return json.dumps(json_schema(kind), indent=2) + "\n"


def reasons_table() -> str:
    """Return the table of the reasons of dead letters, in Markdown."""
    lines = ["| kind | reason | what it says | what to do |", "|---|---|---|---|"]
    for reason in Reason:
        kinds = " or ".join(f"`{kind}`" for kind in reason.kinds)
        said = (
            re.sub(r"(--[a-z-]+(?: time:1h| dead-letter)?)", r"`\1`", text)
            for text in (reason.means, reason.remedy)
        )
        lines.append(f"| {kinds} | {reason} | {' | '.join(said)} |")
    return "\n".join(lines) + "\n"


def words_list() -> str:
    """Return the list of the reasons of measures, in Markdown."""
    return "".join(f"- {words}\n" for words in REASONS if words)


def filled(page: str) -> str:
    """Return the page of reasons with its tables made anew; each is between two comments."""
    for name, text in (("letters", reasons_table()), ("measures", words_list())):
        page = re.sub(rf"(?s)(<!-- {name} -->\n).*?(<!-- end -->)", lambda m, t=text: m[1] + t + m[2], page)
    return page
