"""A sketch is exact while it fits, certain of its bounds beyond, and the same bytes however it came about."""

from __future__ import annotations

import pickle
import random
import struct
import zlib
from collections.abc import Iterator
from itertools import chain, pairwise

import numpy as np
import pytest
import rocsteady as rs
from hypothesis import given, settings
from hypothesis import strategies as st
from rocsteady.core.sketches import cells as score_cells
from rocsteady.core.sketches.auc_sketch import AucSketch
from rocsteady.core.sketches.cells import EXACT
from sklearn.metrics import roc_auc_score

from tests.support.oracles.measures import beta_density, h_by_integration
from tests.support.oracles.score_tree import Oracle, streams
from tests.support.streams.batches import flips, truncations, with_right_checksum
from tests.support.thorough import at_length, examples

HEAD, CRC = 20, 16
COSTS = [rs.BetaCost(), rs.UniformCost(), rs.SeverityCost(), rs.SeverityCost("balanced"), rs.BetaCost(3, 1.5)]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def all_streams(events: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Those of the tree's tests, as far as scores are finite, and scores that crowd."""
    for name, labels, scores in streams(events, 5):
        yield name, labels[np.isfinite(scores)], scores[np.isfinite(scores)]
    rng = np.random.default_rng(6)
    labels = (rng.random(events) < 0.4).astype(np.int8)
    noise = rng.normal(size=events)
    share = np.where(labels == 1, rng.random(events) ** 2, rng.random(events))
    yield "sorted", np.sort(labels), np.sort(noise)
    yield "probabilities", labels, sigmoid(noise + labels)
    yield "overconfident", labels, sigmoid(9 * (noise + labels - 0.5))
    yield "crowded at 0", labels, 10.0 ** (-300 * share)
    yield "crowded at 1", labels, 1 - 1e-6 * share
    yield "clipped", labels, np.clip(noise + labels, -1, 1)
    yield "large and near", labels, 1.7e9 + noise + labels
    magnitudes = rng.integers(0, 0x7FF0000000000000, events).view(np.float64)
    yield "all magnitudes", labels, np.where(rng.random(events) < 0.5, magnitudes, -magnitudes)
    yield "one score but one", labels, (np.arange(events) == 7) * 1e-9


STREAMS = [name for name, _, _ in all_streams(8)]


def stream(name: str, events: int) -> tuple[np.ndarray, np.ndarray]:
    labels, scores = next((y, s) for other, y, s in all_streams(events) if other == name)
    return labels[np.isfinite(scores)], scores[np.isfinite(scores)]


def sketch_of(labels: np.ndarray, scores: np.ndarray, max_bytes: int = 1024) -> AucSketch:
    sketch = AucSketch(max_bytes)
    sketch.add(labels, scores)
    return sketch


def exact_h(labels: np.ndarray, scores: np.ndarray, **choice: object) -> float | None:
    ev = rs.ModelEvaluator(window=rs.AllEvents(), every=rs.EveryEvents(10**9), measures=("h",), **choice)
    ev.update(labels, scores)
    return ev.measures().h


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_it_is_exact_while_distinct_scores_fit(name: str) -> None:
    labels, scores = stream(name, 500)
    sketch = sketch_of(labels, scores, 16_384)
    assert (sketch.events, sketch.positives) == (len(labels), labels.sum())
    assert sketch.negatives == len(labels) - labels.sum()
    assert sketch.is_exact
    low, auc, high = sketch.bounds()
    if len(set(labels.tolist())) < 2:
        assert (low, auc, high) == sketch.h_bounds() == (None, None, None)
        return
    with np.errstate(all="ignore"):  # scikit-learn sums the largest floats
        assert low == auc == high == pytest.approx(roc_auc_score(labels, scores), abs=1e-13)
    for cost in COSTS:
        for priors in ("window", 0.2):
            bounds = sketch.h_bounds(cost, priors)
            wanted = exact_h(labels, scores, cost=cost, priors=priors)
            assert bounds.low == bounds.h == bounds.high == pytest.approx(wanted, abs=1e-12)


def test_exact_h_is_that_of_the_definition() -> None:
    labels, scores = stream("ties to one decimal", 60)
    wanted = h_by_integration(labels.tolist(), scores.tolist(), beta_density(2, 2))
    assert sketch_of(labels, scores).h_bounds().h == pytest.approx(wanted, abs=1e-8)


@pytest.mark.at_length
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("max_bytes", [1024, 5000])
def test_certified_bounds_hold_the_exact_auc_and_h(name: str, max_bytes: int) -> None:
    labels, scores = stream(name, at_length(6_000, 3_000))
    sketch = sketch_of(labels, scores, max_bytes)
    assert len(sketch.to_bytes()) <= max_bytes
    if len(set(labels.tolist())) < 2:
        assert sketch.bounds().auc is sketch.h_bounds().h is None
        return
    oracle = Oracle(list(zip(labels.tolist(), scores.tolist(), strict=True)))
    auc = oracle.pairs2() / (2 * oracle.positives * oracle.negatives)
    bounds = sketch.bounds()
    assert bounds.low <= auc <= bounds.high
    assert bounds.auc == pytest.approx((bounds.low + bounds.high) / 2, abs=1e-15)
    assert sketch.is_exact == (bounds.low == bounds.high)
    for cost in COSTS:
        for priors in ("window", 0.2):
            h = sketch.h_bounds(cost, priors)
            wanted = exact_h(labels, scores, cost=cost, priors=priors)
            if sketch.is_exact:
                assert h.low == h.h == h.high == pytest.approx(wanted, abs=1e-12)
            else:
                assert 0 <= h.low <= wanted <= h.high <= 1
                assert h.low <= h.h <= h.high


@pytest.mark.parametrize(
    ("name", "half_width"),
    [("random", 0.011), ("probabilities", 0.008), ("overconfident", 0.006), ("crowded at 0", 0.005),
     ("crowded at 1", 0.02), ("clipped", 0.005), ("large and near", 0.03), ("all equal", 0.0),
     ("ties to whole numbers", 0.0), ("one score but one", 0.0)],
)  # fmt: skip
def test_bounds_are_narrow_in_few_bytes(name: str, half_width: float) -> None:
    bounds = sketch_of(*stream(name, 50_000)).bounds()
    assert (bounds.high - bounds.low) / 2 <= half_width


def test_bounds_narrow_with_bytes() -> None:
    labels, scores = stream("random", 100_000)
    widths = []
    for max_bytes in (1024, 4096, 16_384, 65_536):
        sketch = sketch_of(labels, scores, max_bytes)
        widths.append(sketch.bounds().high - sketch.bounds().low)
        assert 0.9 * max_bytes < len(sketch.to_bytes()) <= max_bytes
    assert all(wide > 3 * narrow for wide, narrow in pairwise(widths))


def test_two_data_sets_with_one_sketch_are_both_within_its_bounds() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 20_000)
    coarse = rng.integers(1, 40, 20_000) + 2.0**-20
    right, wrong = coarse + labels * 2.0**-30, coarse - labels * 2.0**-30
    right, wrong = (np.concatenate([s, rng.permuted(np.linspace(100, 200, 5000))]) for s in (right, wrong))
    right[20_000:] = wrong[20_000:]
    labels = np.concatenate([labels, np.arange(5000) % 2])
    best, worst = sketch_of(labels, right), sketch_of(labels, wrong)
    assert best.to_bytes() == worst.to_bytes()
    low, _, high = best.bounds()
    assert low <= roc_auc_score(labels, wrong) < roc_auc_score(labels, right) <= high
    h = best.h_bounds()
    assert h.low <= exact_h(labels, wrong) < exact_h(labels, right) <= h.high


def test_heavy_ties_stay_ties_among_continuous_scores() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 60_000)
    scores = rng.normal(size=60_000) + labels
    for place, value in enumerate((0.0, 1.0, -1.0, 0.5)):
        scores[place * 10_000 : (place + 1) * 10_000] = value
    bounds = sketch_of(labels, scores, 4096).bounds()
    assert bounds.high - bounds.low < 0.002  # one tie that is not told would make it 0.028


def test_zero_has_one_sign() -> None:
    labels = [0, 1, 0, 1]
    one, other = sketch_of(labels, np.array([0.0, -0.0, -0.0, 0.0])), sketch_of(labels, np.zeros(4))
    assert one.to_bytes() == other.to_bytes()
    assert one.bounds() == (0.5, 0.5, 0.5)


def merged_at_random(parts: list[AucSketch], rng: random.Random) -> AucSketch:
    while len(parts) > 1:
        rng.shuffle(parts)
        other = parts.pop()
        if rng.random() < 0.3:
            other = AucSketch.from_bytes(other.to_bytes())
        if rng.random() < 0.2:
            other = pickle.loads(pickle.dumps(other))
        before = other.to_bytes()
        assert parts[0].merge(other) is parts[0]
        assert other.to_bytes() == before
    return parts[0]


@settings(max_examples=examples(150))
@given(
    name=st.sampled_from(STREAMS),
    events=st.integers(1, 3_000),
    max_bytes=st.sampled_from([1024, 1500, 3000]),
    seed=st.integers(0, 2**32),
)
def test_bytes_depend_on_the_events_alone(name: str, events: int, max_bytes: int, seed: int) -> None:
    labels, scores = stream(name, events)
    rng = random.Random(seed)
    whole = sketch_of(labels, scores, max_bytes).to_bytes()
    order = np.random.default_rng(seed).permutation(len(scores))
    if rng.random() < 0.3:
        order = np.argsort(scores, kind="stable")  # parts that have no range in common
    parts = [AucSketch(max_bytes)]
    for places in np.split(order, np.sort([rng.randint(0, len(order)) for _ in range(rng.randint(0, 7))])):
        part = AucSketch(max_bytes)
        for some in np.array_split(places, rng.randint(1, 3)):
            part.add(labels[some], scores[some])
            if rng.random() < 0.5:
                part.bounds()
        parts.append(part)
    assert merged_at_random(parts, rng).to_bytes() == whole


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=examples(60))
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 1), finite), max_size=120),
        min_size=3,
        max_size=3,
    )
)
def test_merging_is_associative_and_commutative(listed: list[list[tuple[int, float]]]) -> None:
    def made(events: list[tuple[int, float]]) -> AucSketch:
        sketch = AucSketch(1024)
        for label, score in events:
            sketch.add(label, score)
        return sketch

    def bytes_of(*order: int, right_first: bool) -> bytes:
        a, b, c = (made(listed[place]) for place in order)
        return (a.merge(b.merge(c)) if right_first else a.merge(b).merge(c)).to_bytes()

    expected = made(list(chain(*listed))).to_bytes()
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2)):
        assert bytes_of(*order, right_first=True) == bytes_of(*order, right_first=False) == expected


def test_events_one_by_one_and_in_arrays_are_the_same() -> None:
    labels, scores = stream("random", 40_000)
    single = AucSketch(2048)
    for label, score in zip(labels.tolist(), scores.tolist(), strict=True):
        single.add(label, score)
    assert (single.events, single.positives) == (40_000, labels.sum())
    assert single.to_bytes() == sketch_of(labels, scores, 2048).to_bytes()
    for kind in (labels == 1, labels * 2 - 1, labels.astype(float), (labels == 1).tolist()):
        assert sketch_of(kind, scores.astype(np.float64), 2048).to_bytes() == single.to_bytes()


def test_merging_with_itself_doubles_every_count() -> None:
    labels, scores = stream("ties to one decimal", 3_000)
    spread = scores + np.linspace(0, 0.01, 3_000)
    exact, coarse = sketch_of(labels, scores, 65_536), sketch_of(labels, spread)
    assert not coarse.is_exact
    before, h = exact.bounds(), exact.h_bounds()
    for times in range(1, 41):
        exact.merge(exact)
        coarse.merge(coarse)
        assert exact.events == coarse.events == 3_000 * 2**times
    assert exact.bounds() == before
    assert exact.h_bounds().h == pytest.approx(h.h, abs=1e-14)
    assert len(coarse.to_bytes()) <= 1024
    assert coarse.bounds().low <= roc_auc_score(labels, spread) <= coarse.bounds().high
    assert AucSketch.from_bytes(coarse.to_bytes()).to_bytes() == coarse.to_bytes()
    for _ in range(10):
        exact.merge(exact)
    assert exact.bounds() == before
    with pytest.raises(rs.InputError, match=r"a sketch counts up to 2\^62"):
        exact.merge(exact)


def test_the_smaller_limit_of_two_holds_for_both() -> None:
    labels, scores = stream("random", 9_000)
    wanted = sketch_of(labels, scores, 1024).to_bytes()
    for first, second in ((1024, 9999), (9999, 1024)):
        merged = sketch_of(labels[:5000], scores[:5000], first)
        merged.merge(sketch_of(labels[5000:], scores[5000:], second))
        assert merged.to_bytes() == wanted


def test_nothing_and_one_class_have_no_auc() -> None:
    sketch = AucSketch()
    assert (sketch.events, sketch.is_exact, sketch.bounds(), sketch.h_bounds()) == (
        0, True, (None, None, None), (None, None, None),
    )  # fmt: skip
    sketch.add([], [])
    assert AucSketch.from_bytes(sketch.to_bytes()).events == 0
    sketch.add([1, 1], [0.5, 0.25])
    assert (sketch.bounds().auc, sketch.h_bounds().h) == (None, None)
    assert repr(sketch) == "AucSketch(0 negatives, 2 positives, every score kept, max_bytes=65536)"


def test_h_that_is_no_number_is_none() -> None:
    sketch = sketch_of(np.array([0, 1]), np.array([0.0, 1.0]))
    assert sketch.h_bounds(rs.BetaCost(1e308, 1e308)) == (None, None, None)


@pytest.mark.parametrize(
    ("labels", "scores", "words"),
    [
        ([0, 1], [0.5, float("nan")], r"scores\[1\] is nan: a score is a finite number; leave the event out"),
        (1, float("inf"), r"scores\[0\] is inf"),
        ([0, 1], [-np.inf, 1], r"scores\[0\] is -inf"),
        (2, 0.5, r"labels\[0\] is .*2.*: a label is 1, 0, -1, True or False; map other labels to 1 and 0"),
        (["up"], [0.5], r"labels\[0\] is .*up"),
        (None, 0.5, r"labels\[0\] is None"),
        ([0, 1], [0.5], r"labels of shape \(2,\) and scores of shape \(1,\): give one of each per event"),
        ([[0, 1]], [[0.5, 1]], r"shape \(1, 2\)"),
        (0, "high", "scores are not numbers"),
        (0, 1j, "scores are complex"),
    ],
)
def test_what_is_no_event_is_refused_and_changes_nothing(labels: object, scores: object, words: str) -> None:
    sketch = sketch_of(np.array([0, 1]), np.array([0.1, 0.2]))
    before = sketch.to_bytes()
    with pytest.raises(rs.InputError, match=words):
        sketch.add(labels, scores)
    assert sketch.to_bytes() == before


def test_every_kernel_is_compiled_once() -> None:
    if not hasattr(score_cells.coarsen, "signatures"):
        pytest.skip("numba is switched off by NUMBA_DISABLE_JIT")
    labels, scores = stream("random", 20_000)
    frozen = scores.copy()
    frozen.flags.writeable = False
    for classes in (labels, labels == 1, labels.tolist(), labels[::-1]):
        for values in (scores, frozen, scores[::-1], scores.astype(np.float32), scores.tolist()):
            sketch = sketch_of(classes, values)
            AucSketch.from_bytes(sketch.to_bytes()).merge(sketch).merge(sketch_of(classes[:9], values[:9]))
            sketch.h_bounds()
            sketch.add(classes, values)  # to cells that are coarse by now
            sketch.bounds()
    for kernel in (
        score_cells.cells_of, score_cells.count_cells, score_cells.coarsen, score_cells.add_cells,
        score_cells.wire_size, score_cells.write_cells, score_cells.read_cells,
    ):  # fmt: skip
        assert len(kernel.signatures) == 1, (kernel.__name__, kernel.signatures)  # type: ignore[attr-defined]


def test_settings_that_cannot_be_are_refused() -> None:
    for wrong in (0, 1023, 2**40, 1e4, "64k", True, None):
        with pytest.raises(rs.ConfigError, match="give a whole number of bytes, 1024 or more"):
            AucSketch(wrong)
    sketch = sketch_of(np.array([0, 1]), np.array([0.1, 0.2]))
    with pytest.raises(rs.ConfigError, match="priors=2"):
        sketch.h_bounds(priors=2)
    with pytest.raises(rs.ConfigError, match="cost='beta'"):
        sketch.h_bounds("beta")
    with pytest.raises(rs.InputError, match="a bytes is no AucSketch; read bytes with from_bytes"):
        sketch.merge(sketch.to_bytes())


KINDS = ("exact", "coarse")


def stored(kind: str) -> AucSketch:
    if kind == "exact":
        return sketch_of(np.array([0, 1, 1, 0, 1]), np.array([0.5, 0.25, -0.25, 0.5, 1e300]))
    place = np.arange(2000)
    return sketch_of(place % 3 % 2, (place * 7919 % 2000 - 700) / 2.0**11)


@pytest.mark.parametrize("kind", KINDS)
def test_every_truncation_and_every_changed_byte_is_told(kind: str) -> None:
    data = stored(kind).to_bytes()
    for cut in truncations(data):
        with pytest.raises(rs.TruncatedBytesError if cut else rs.ForeignBytesError):
            AucSketch.from_bytes(cut)
    for damaged in flips(data):
        with pytest.raises(rs.WireError):
            AucSketch.from_bytes(damaged)


@pytest.mark.parametrize("kind", KINDS)
def test_contents_with_a_right_checksum_crash_nothing(kind: str) -> None:
    rng = random.Random(1)
    data = stored(kind).to_bytes()
    read = 0
    for _ in range(examples(3000)):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(HEAD, HEAD + 24) if rng.random() < 0.4 else rng.randrange(HEAD, len(data))
            damaged[place] = rng.choice((0, 1, 2, 127, 128, 255, rng.randrange(256)))
        try:
            sketch = AucSketch.from_bytes(with_right_checksum(bytes(damaged), HEAD, CRC))
        except rs.CorruptBytesError:
            continue
        read += 1
        assert AucSketch.from_bytes(sketch.to_bytes()).bounds() == sketch.bounds()
        sketch.merge(stored(kind)).h_bounds()
    assert read > examples(3000) // 30


def test_each_kind_of_foreign_bytes_has_its_own_error() -> None:
    data = stored("exact").to_bytes()
    with pytest.raises(rs.ForeignBytesError, match=r"start with b'RSST' are no rocsteady sketch"):
        AucSketch.from_bytes(rs.ModelEvaluator().to_bytes())
    with pytest.raises(rs.ForeignBytesError, match="there are no bytes"):
        AucSketch.from_bytes(b"")
    with pytest.raises(rs.FutureVersionError, match="version 2: this rocsteady reads up to 1; upgrade it"):
        AucSketch.from_bytes(data[:4] + b"\2\0" + data[6:])
    with pytest.raises(rs.TruncatedBytesError, match=rf"ends after {len(data) - 1} of {len(data)} bytes"):
        AucSketch.from_bytes(data[:-1])
    with pytest.raises(rs.CorruptBytesError, match="3 too many"):
        AucSketch.from_bytes(data + b"abc")
    with pytest.raises(rs.CorruptBytesError, match="checksum"):
        AucSketch.from_bytes(data[:-1] + b"\0")


def packed(level: int, count: int, *cells: tuple[int, int, int], max_bytes: int = 1024) -> bytes:
    def number(value: int) -> bytes:
        out = b""
        while value >= 128:
            out, value = out + bytes([value & 127 | 128]), value >> 7
        return out + bytes([value])

    body = b"".join(number(value) for cell in cells for value in cell)
    payload = struct.pack("<QHI", max_bytes, level, count) + body
    return struct.pack("<4sHHQI", b"RSAS", 1, 0, len(payload), zlib.crc32(payload)) + payload


ZERO = 2**63  # the distance of the cell 0


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (packed(EXACT + 1, 0), "0 cells of level 490"),
        (packed(EXACT, 0, max_bytes=12), "0 cells of level 489 in 0 of 12 bytes"),
        (packed(EXACT, 0, max_bytes=600), "max_bytes=600"),
        (packed(EXACT, 0, max_bytes=2**50), "max_bytes"),
        (packed(EXACT, 2, (ZERO, 1, 0)), "not as many as it says"),
        (packed(EXACT, 9, (ZERO, 1, 0)), "9 cells of level 489 in 12 of 1024 bytes"),
        (packed(EXACT, 1, (ZERO, 1, 0), (1, 0, 1)), "not as many as it says"),
        (packed(EXACT, 2, (ZERO, 1, 0), (0, 0, 1)), "not in order"),
        (packed(EXACT, 2, (ZERO, 1, 0), (ZERO, 0, 1)), "not in order"),
        (packed(EXACT, 1, (ZERO, 0, 0)), "a cell is empty"),
        (packed(EXACT, 1, (ZERO, 2**62, 0)), "more events than there can be"),
        (packed(EXACT, 1, (ZERO - 1, 1, 0)), "where no score does"),
        (packed(EXACT, 1, (ZERO + 0x7FF0000000000000, 1, 0)), "where no score does"),
        (packed(EXACT, 1, (ZERO - 0x7FF0000000000001, 1, 0)), "where no score does"),
        (packed(0, 1, (ZERO + 2, 1, 0)), "where no score does"),
        (packed(0, 1, (ZERO - 3, 1, 0)), "where no score does"),
    ],
)  # fmt: skip
def test_cells_that_no_sketch_has_are_told(data: bytes, words: str) -> None:
    with pytest.raises(rs.CorruptBytesError, match=words):
        AucSketch.from_bytes(data)


def test_the_outermost_cells_are_read() -> None:
    edge = 0x7FEFFFFFFFFFFFFF
    sketch = AucSketch.from_bytes(packed(EXACT, 2, (ZERO - edge - 1, 1, 0), (2 * edge + 1, 0, 1)))
    assert sketch.bounds().auc == 1.0
    largest = np.array([-1.7976931348623157e308, 1.7976931348623157e308])
    assert sketch.to_bytes() == sketch_of(np.array([0, 1]), largest).to_bytes()
    assert AucSketch.from_bytes(packed(0, 2, (ZERO - 2, 1, 0), (3, 0, 1))).bounds().auc == 1.0
