"""JSON Schemas of what sinks write, made of the columns; run as a program it renews docs/schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from rocsteady.transforms.table_kinds import ALERTS, CURVES, DEAD_LETTERS, ROWS, TableKind

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"
KINDS = (ROWS, ALERTS, DEAD_LETTERS, CURVES)


def json_schema(kind: TableKind) -> dict[str, Any]:
    """All columns are there, null where they have no value; later versions may add some."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": f"rocsteady {kind.name}",
        "type": "object",
        "properties": {field.name: _property(field) for field in kind.schema},
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
    else:
        name = "integer" if pa.types.is_integer(field.type) else "number"
    return {"type": [name, "null"] if field.nullable else name, **more}


def text_of(kind: TableKind) -> str:
    return json.dumps(json_schema(kind), indent=2) + "\n"


if __name__ == "__main__":
    for each in KINDS:
        (FOLDER / f"{each.name}.json").write_text(text_of(each))
