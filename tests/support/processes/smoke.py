"""A program that tries what is installed: every public name, the help of the command, a file evaluated."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

import rocsteady as rs
from rocsteady.pipelines.cli import main


def call(*words: str) -> str:
    """Run a command in this process and return its stdout."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            status = main(list(words))
        except SystemExit as leave:  # --help and --version
            status = leave.code
    assert not status, (words, status)
    return out.getvalue()


def smoke() -> None:
    """Raise an error where something does not work."""
    for name in rs.__all__:
        getattr(rs, name)
    assert (Path(rs.__file__).parent / "py.typed").is_file()
    assert "rocsteady evaluate scores.csv" in call("--help")
    assert rs.__version__ in call("--version")
    with tempfile.TemporaryDirectory() as folder:
        scores, rows, page = (Path(folder) / name for name in ("scores.csv", "rows.csv", "report.html"))
        scores.write_text("score,label\n" + "".join(f"{i % 10 / 10},{i % 7 > 3:d}\n" for i in range(1_000)))
        call("evaluate", str(scores), "--every", "500", "--output", str(rows), "--report", str(page))
        assert rows.read_text().count("\n") == 3  # the header, and two rows
        assert "</html>" in page.read_text("utf-8")
        assert "0.501 [0.465, 0.537]" in call("show", str(rows))


if __name__ == "__main__":
    smoke()
    print(f"rocsteady {rs.__version__} works in {Path(rs.__file__).parent}")
