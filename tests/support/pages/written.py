"""All that a script writes from the table of measures, from schemas and from lists of reasons.

`python -m tests.support.pages.written` renews the fields of the named tuples of rows, the names in
core/rows/slots.py, docs/schemas, and the lists in docs/reference/reasons.md. A test compares each file with
what this module would write.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from rocsteady.core.rows.columns import MASS_COLUMNS
from rocsteady.core.rows.measure_table import MEASURES
from rocsteady.transforms.sinks.kinds import KINDS

from tests.support import ROOT
from tests.support.pages.json_schemas import REASONS_PAGE, filled, path_of, text_of

COMMAND = "python -m tests.support.pages.written"


def fields(default: str = "") -> str:
    """Return the fields of a named tuple for the masses and the measures of a row."""
    return "".join(f"    {name}: float | None{default}\n" for name in (*MASS_COLUMNS, *MEASURES))


def slots() -> str:
    """Return the statement that gives each measure its slot."""
    names = textwrap.fill(", ".join(name.upper() for name in MEASURES), 106)
    return f"(\n{textwrap.indent(names, '    ')},\n) = range({len(MEASURES)})  # fmt: skip\n"


PARTS = {
    "core/rows/records.py": {"measures of a window": fields(" = None"), "measures of a row": fields()},
    "core/rows/class_rows.py": {"measures of a row": fields()},
    "core/rows/slots.py": {"slots": slots()},
}
"""By file and name, the parts of modules: what stands between `# <name>` and `# </name>`."""


def with_parts(text: str, parts: dict[str, str]) -> str:
    """Return the text of a module with its written parts made anew."""
    for name, part in parts.items():
        text, found = re.subn(
            rf"(?sm)^( *# <{name}>\n).*?^( *# </{name}>)$", lambda m, new=part: m[1] + new + m[2], text
        )
        assert found == 1, f"{found} parts # <{name}>"
    return text


def written() -> dict[Path, str]:
    """Return the text of every file that is written, wholly or in part."""
    modules = {ROOT / name: with_parts((ROOT / name).read_text(), parts) for name, parts in PARTS.items()}
    schemas = {path_of(kind): text_of(kind) for kind in KINDS}
    return {**modules, **schemas, REASONS_PAGE: filled(REASONS_PAGE.read_text())}


if __name__ == "__main__":
    for path, text in written().items():
        path.write_text(text)
