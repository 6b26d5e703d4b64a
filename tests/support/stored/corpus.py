"""The corpus: bytes of every stored form, and what they said when they were written.

    python -m tests.support.stored.corpus

writes the samples of each reader of `readers.FORMS`, and what `said` finds in them, into the file of the
version in pyproject.toml, such as `corpus-0.1.0.json`. Until that version is released, whoever changes a form
writes the file anew. The files of released versions stay as they are: every later version must read them.
"""

from __future__ import annotations

import base64
import io
import json
import math
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rocsteady.core.compare.fold_report import FoldReport, PairedFold
from rocsteady.core.errors import ForeignBytesError
from rocsteady.core.events.columns import IdColumn, TextColumn
from rocsteady.core.events.records import EndOfInput, EndOfPartition, StateMarker, unpack_record
from rocsteady.core.join.state import JoinState, describe_join
from rocsteady.core.prequential.wire import pack_learner
from rocsteady.core.rows.class_rows import ClassRow
from rocsteady.core.rows.records import MeasureRow, Measures
from rocsteady.core.settings.table import TableSettings
from rocsteady.core.version import __version__
from rocsteady.transforms.evaluate.shards import RowsCoder
from rocsteady.transforms.prequential.folds import FoldOutputCoder
from rocsteady.transforms.sources.streams.offsets import FolderPlace

from tests.support import ROOT
from tests.support.pages.fold_reports import reports_of
from tests.support.stored import readers
from tests.support.stored.class_bytes import class_packets
from tests.support.stored.readers import FORMS, SECOND, Form

FOLDER = Path(__file__).parent
CHANGELOG = ROOT / "CHANGELOG.md"
NEWEST = FOLDER / f"corpus-{__version__}.json"

OF_ROWS = ("model", "slice", "class_", "row", "seq", "auc", "auc_macro", "config")
"""What is kept of a row: who it is of, its place, and its AUC."""

_FEW = 5
"""How many of the last comparisons of learners are kept."""


class Stored(NamedTuple):
    """The samples of a form in a corpus, and what each of them says."""

    samples: list[bytes]
    says: list[Any]


def files() -> list[Path]:
    """Return the corpora of all versions."""
    return sorted(FOLDER.glob("corpus-*.json"))


def read(file: Path) -> dict[str, Stored]:
    """Return a corpus by the names of its forms."""
    content = json.loads(file.read_text("utf-8"))
    found = {}
    for name, (key, says) in content["forms"].items():
        sizes, packed = content["bytes"][key]
        data = io.BytesIO(_unpacked(packed))
        found[name] = Stored([data.read(size) for size in sizes], json.loads(_unpacked(says)))
    return found


def text_of(forms: Mapping[str, Form]) -> str:
    """Return the corpus that today's code writes. Forms that read the same samples share their bytes."""
    of_bytes, of_forms = {}, {}
    for name, form in sorted(forms.items()):
        samples = form.samples()
        data = b"".join(samples)
        says = [said(name, form.read(sample)) for sample in samples]
        of_bytes[key := f"{zlib.crc32(data):08x}"] = [*map(len, samples)], _packed(data)
        of_forms[name] = key, _packed(json.dumps(says).encode())
    return "\n".join(
        ['{"bytes": {', *_lines(of_bytes), '}, "forms": {', *_lines(of_forms), "}}", ""],
    )


def _lines(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the entries of an object of JSON, one a line, so that a comparison of files names the forms."""
    for number, (name, value) in enumerate(content.items(), 1):
        yield f"{json.dumps(name)}: {json.dumps(value)}" + "," * (number < len(content))


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))


# ---- what bytes say


def said(name: str, read: Any) -> Any:
    """Return what was read of a form, or what it does with later records, as JSON values."""
    return plain(_SAYS.get(name, plain)(read))


def plain(value: Any) -> Any:
    """Return a value as JSON. Fields that are None are left out, so that later versions may add fields."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, MeasureRow | ClassRow):
        value = {name: getattr(value, name, None) for name in OF_ROWS}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(f"{value:.9g}") if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _of_bytes(bytes(value))
    if isinstance(value, TextColumn | IdColumn):
        return plain(value.to_list())
    if isinstance(value, TableSettings):
        return plain(value.meaning())
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    elif is_dataclass(value) and not isinstance(value, type) and not isinstance(value, Iterable):
        value = {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items() if each is not None}
    if isinstance(value, Iterable):
        return [*map(plain, sorted(value) if isinstance(value, set | frozenset) else value)]
    return str(value)


def _of_bytes(data: bytes) -> Any:
    """Return what a record says; of other bytes their number and checksum."""
    for unpack in (unpack_record, FoldReport.unpack, PairedFold.unpack):
        try:
            return plain(unpack(data))
        except ForeignBytesError:
            pass
    return f"{len(data)} bytes {zlib.crc32(data):08x}"


def agrees(then: Any, now: Any) -> bool:
    """Whether all that was said then is said now; what was added since is not compared."""
    if isinstance(then, dict):
        return isinstance(now, dict) and all(agrees(each, now.get(name)) for name, each in then.items())
    if isinstance(then, list):
        return isinstance(now, list) and len(then) == len(now) and all(map(agrees, then, now))
    if isinstance(then, float) and isinstance(now, float | int):
        return math.isclose(then, now, rel_tol=1e-8)
    return bool(then == now)


def _outputs(machine: Any, records: Iterable[bytes]) -> list[Any]:
    return [each for record in records for each in machine.apply(record)]


def _of_table(table: Any) -> Any:
    is_of_classes = table.settings.classes is not None
    later = class_packets(table.settings, later=True) if is_of_classes else readers.later_packets()
    return {"settings": table.settings, "rows": _outputs(table, later)}


def _of_snapshot(snapshot: Any) -> Any:
    names = [
        (each.model, each.slice, each.seq, each.next_row, len(each.scores)) for each in snapshot.evaluators
    ]
    return snapshot.settings, snapshot.progress, snapshot.held, names, sorted(snapshot.beside.items())


def _of_join(join: Any) -> Any:
    state, _ = JoinState.unpack(join.to_bytes())
    return _outputs(join, readers.later_labels(state)), join.counts()


def _of_matcher(matcher: Any) -> Any:
    before = matcher.waiting, matcher.held
    readers.use_matcher(matcher, b"")
    return before, (matcher.waiting, matcher.held)


def _of_deduplicator(deduplicator: Any) -> Any:
    ids = IdColumn.of([f"e{number}" for number in range(90)])
    remembered = len(deduplicator)
    return remembered, deduplicator.judge(TextColumn.of(["m1"] * 90), ids, np.arange(90) * SECOND)


def _of_alerts(table: Any) -> Any:
    return table.rules, _outputs(table, [readers.watched(50, columns=table.columns).pack()]), table.counts()


def _of_fleet(table: Any) -> Any:
    records = [readers.of_members().pack(), EndOfInput().pack()]
    return [dict(row._asdict(), reason=None) for row in _outputs(table, records)]


def _of_pairs(table: Any) -> Any:
    ends = [EndOfPartition("s.csv", 0, 2, 1).pack(), EndOfPartition("t.csv", 1, 2, 0).pack()]
    return _outputs(table, ends), table.counts()


def _of_waiting(machine: Any) -> Any:
    return _outputs(machine, [StateMarker("s.csv", 1, 2, 0, "id", "folder").pack()])


def _of_folds(machine: Any) -> Any:
    return _outputs(machine, [each.pack() for each in reports_of(3, 10) if each.fold == 1])[-_FEW:]


def _of_comparisons(made: Any) -> Any:
    return _outputs(made, [replace(readers.paired(), fold=fold).pack() for fold in range(3)])[-_FEW:]


def _of_evaluator(evaluator: Any) -> Any:
    shown = {name: getattr(evaluator.measures(), name) for name in OF_ROWS if name in Measures._fields}
    return evaluator.settings, evaluator.model, evaluator.seq, shown, evaluator.finish()


def _of_classes(evaluator: Any) -> Any:
    shown = evaluator.settings.meaning(), evaluator.seq, evaluator.means()
    return *shown, [evaluator.measures(name).auc for name in evaluator.settings.classes]


def _of_fold(fold: Any) -> Any:
    ends = EndOfPartition("s", 0, 1, 2, 60 * SECOND)
    return _outputs(fold, [replace(readers.prequential_batch(), sequence=1).pack(), ends.pack()])


def _of_learner(learner: Any) -> Any:
    return learner.predict_proba_one({"x": 1.0, "colour": "a"})


_SAYS: dict[str, Callable[[Any], Any]] = {
    "core.evaluator.adwin:Adwin.from_bytes": lambda made: (
        made.width, made.update(np.repeat([0.0, 1.0], 100)),
    ),
    "core.evidence.below:EvidenceBelow.from_bytes": lambda made: (
        made.bound, made.evidence, made.since, made.events, made.full_blocks, made.block_events,
    ),
    "core.fleet.table:FleetTable.from_bytes": _of_fleet,
    "core.pairs.evaluator:PairEvaluator.from_bytes": lambda pair: pair.now(),
    "core.pairs.table:PairTable.from_bytes": _of_pairs,
    "core.alerts.table:AlertTable.from_bytes": _of_alerts,
    "core.learning.aum.learner:AumLearner.from_bytes": _of_learner,
    "core.learning.polynomial.learner:PolynomialAucLearner.from_bytes": _of_learner,
    "core.sketches.auc_sketch:AucSketch.from_bytes": lambda made: (
        made.events, made.bounds(), made.h_bounds(),
    ),
    "core.sketches.wire:unpack": lambda read: (read[:2], [each.sum() for each in read[2]]),
    "core.ids.deduplicator:Deduplicator.from_bytes": _of_deduplicator,
    "core.table.table:EvaluatorTable.from_bytes": _of_table,
    "core.evaluator.snapshot:Snapshot.unpack": _of_snapshot,
    "core.compare.fold_pairs:FoldPairs.from_bytes": _of_folds,
    "core.compare.learners:LearnerComparisons.from_bytes": _of_comparisons,
    "core.join.join:LabelJoin.from_bytes": _of_join,
    "core.join.state:JoinState.unpack": lambda read: describe_join(*read).split("\n")[1:],
    "core.join.matching:LabelMatcher.from_bytes": _of_matcher,
    "core.classes.evaluator:MulticlassEvaluator.from_bytes": _of_classes,
    "core.classes.state:ClassState.unpack": lambda state: (
        state.settings.meaning(), state.model, state.slice, state.pane, len(state.evaluators),
    ),
    "core.evaluator.evaluator:ModelEvaluator.from_bytes": _of_evaluator,
    "core.measures.polynomial_auc:PolynomialAuc.from_bytes": lambda made: (
        made.events, made.positives, made.estimate(),
    ),
    "core.prequential.fold:PrequentialFold.from_bytes": _of_fold,
    "core.prequential.wire:own_record": unpack_record,
    "core.state.export:ExportingMachine.from_bytes": _of_waiting,
    "transforms.sources.streams.offsets:ReaderState.from_bytes": lambda state: (
        state, FolderPlace.of(state.place),
    ),
}  # fmt: skip
"""What is asked of forms whose result is no plain record."""


_CODERS = {
    "transforms.evaluate.shards:RowsCoder.decode": RowsCoder(),
    "transforms.prequential.folds:FoldOutputCoder.decode": FoldOutputCoder(),
}


def rewritten(name: str, read: Any) -> bytes | None:
    """Return the bytes that today's writer makes of what was read; None: it writes no such form alone."""
    if name == "core.prequential.wire:unpack_learner":
        return pack_learner("", *read)
    if name == "core.join.state:JoinState.unpack":
        state, meaning = read
        return bytes(state.pack(meaning))
    if name in _CODERS:
        return bytes(_CODERS[name].encode(read))
    writer = getattr(read, "to_bytes", None) or getattr(read, "pack", None)
    return None if writer is None else bytes(writer())


def released(changelog: str) -> list[str]:
    """Return the versions that the text of CHANGELOG.md has with a date, newest first."""
    return re.findall(r"^## (\S+) \((?!unreleased)", changelog, re.MULTILINE)


def write(dated: list[str]) -> None:
    """Write the corpus of this version anew. Exits with a message if the version is one of those released."""
    if __version__ in dated:
        sys.exit(f"{__version__} is released: {NEWEST.name} stays. Raise the version in pyproject.toml first")
    NEWEST.write_text(text_of(FORMS), "utf-8")


if __name__ == "__main__":
    write(released(CHANGELOG.read_text("utf-8")))
