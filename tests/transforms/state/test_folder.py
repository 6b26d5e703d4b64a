"""Folders of exports: small shards share a file, old folders are read, and a manifest names no other file."""

from __future__ import annotations

import json
import os
import threading

import pytest
from rocsteady.core.errors import InputError
from rocsteady.core.state.exported import ShardState
from rocsteady.transforms.state import folder as state_folder
from rocsteady.transforms.state.folder import Step, read_export, write_state

from tests.support.streams.url_files import url

ID = "20260101T000000.000000-00000000"
STEPS = (Step("join", 3, {"ttl": "7d"}), Step("evaluators", 64, {"window": "last:10"}))


def state(step, shard, content=b"state", folder="x"):
    shards = {each.name: each.shards for each in STEPS}[step]
    return ShardState(ID, folder, step, shard, shards, {0: ("a.csv", '{"offset": 7}')}, content)


def written(folder, large=()):
    """Write an export, its shards in another order than their numbers; return the contents by shard."""
    places = [(step.name, shard) for step in STEPS for shard in range(step.shards)]
    contents = {
        place: (b"%d" % number) * (2_000 if place in large else 1) for number, place in enumerate(places)
    }
    for step, shard in reversed(places):
        write_state(state(step, shard, contents[step, shard]).pack(), str(folder), STEPS)
    return contents


def read(folder):
    export = read_export(str(folder))
    return {
        (step.name, each.shard): each.snapshot for step in export.steps for each in export.states(step.name)
    }


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_text())


def test_small_shards_share_files(tmp_path):
    folder = tmp_path / "state"
    contents = written(folder)
    assert read(folder) == contents
    assert len(list(folder.iterdir())) == 2
    assert manifest_of(folder)["format"] == 1


def test_files_of_packed_shards_are_bounded_and_large_shards_keep_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(state_folder, "SMALL", 1_000)
    monkeypatch.setattr(state_folder, "PACKED", 4_000)
    folder, large = tmp_path / "state", {("evaluators", 5), ("join", 1)}
    contents = written(folder, large)
    assert read(folder) == contents
    names = sorted(path.name for path in folder.iterdir())
    packed = [folder / name for name in names if name.startswith("shards-")]
    assert len(packed) > 2
    assert max(path.stat().st_size for path in packed) <= 4_000
    assert [name for name in names if name.startswith(("join", "evaluators"))] == [
        f"evaluators-005-of-064-{ID}.state", f"join-001-of-003-{ID}.state",
    ]  # fmt: skip


def test_an_export_behind_a_url_is_packed_and_read(tmp_path):
    folder = tmp_path / "state"
    contents = written(url(folder))
    assert len(list(folder.iterdir())) == 2
    assert read(url(folder)) == contents


def test_states_that_several_workers_write_at_once_are_one_export(tmp_path):
    folder = str(tmp_path / "state")
    states = [state(step.name, shard).pack() for step in STEPS for shard in range(step.shards)]
    threads = [
        threading.Thread(
            target=lambda part: [write_state(each, folder, STEPS) for each in part], args=(part,)
        )
        for part in (states[0::2], states[1::2], states[::-3])
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(read(folder).values()) == {b"state"}


def change_file(folder, **changes):
    content = manifest_of(folder)
    content["steps"][1]["files"][3] |= changes
    (folder / "manifest.json").write_text(json.dumps(content))


def test_a_manifest_names_files_of_its_folder_alone(tmp_path):
    folder = tmp_path / "state"
    written(folder)
    (tmp_path / "secret").write_bytes(b"x" * 5_000_000)
    whole = (folder / "manifest.json").read_bytes()
    for name in ("../secret", str(tmp_path / "secret"), "/dev/zero", "..", "", "a\0b", "..\\secret", "C:a"):
        change_file(folder, name=name)
        with pytest.raises(InputError, match="is no bare name of a file in"):
            read(folder)
    (folder / "link").symlink_to(tmp_path / "secret")
    change_file(folder, name="link")
    with pytest.raises(InputError, match="outside of its folder; put the file itself there"):
        read(folder)
    (folder / "folder").mkdir()
    change_file(folder, name="folder")
    with pytest.raises(InputError, match=r"cannot be read: Is a directory|is no regular file"):
        read(folder)
    (folder / "manifest.json").write_bytes(whole)
    (packed,) = folder.glob("shards-*")
    packed.rename(folder / "other")
    packed.symlink_to("other")  # within the folder
    assert len(read(folder)) == 67


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs on this system")
def test_a_fifo_is_not_waited_for(tmp_path):
    folder = tmp_path / "state"
    written(folder)
    os.mkfifo(folder / "fifo")
    change_file(folder, name="fifo")
    with pytest.raises(InputError, match="fifo is no regular file"):
        read(folder)
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")
    with pytest.raises(InputError, match=r"manifest.json is no regular file"):
        read(folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bytes": 2**60}, "bytes: the export was damaged"),
        ({"at": 2**62}, "bytes: the export was damaged"),
        ({"bytes": 2**70}, "the manifest is damaged"),
        ({"bytes": -1}, "the manifest is damaged"),
        ({"at": -1}, "the manifest is damaged"),
        ({"at": "0"}, "the manifest is damaged"),
        ({"crc32": 1}, "fails its checksum"),
        ({"name": 7}, "the manifest is damaged"),
    ],
)
def test_sizes_are_checked_before_anything_is_read(tmp_path, changes, words):
    folder = tmp_path / "state"
    written(folder)
    change_file(folder, **changes)
    with pytest.raises(InputError, match=words):
        read(folder)


def changed(content, path, value):
    for step in path[:-1]:
        content = content[step]
    if value is None:
        del content[path[-1]]
    else:
        content[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), "2"), (("format",), None), (("format",), 0), (("id",), 7), (("steps",), {"a": 1}),
        (("steps", 0, "shards"), 10**30), (("steps", 0, "shards"), 2), (("steps", 1, "name"), "join"),
        (("steps", 0, "settings"), 7), (("positions", 0, "partition"), 1e999),
        (("positions", 0, "source"), None), (("positions",), 3), (("time",), None),
        (("steps",), []), (("steps", 1, "name"), "x"), (("steps", 1, "settings", "own_shards"), 5),
        (("steps", 1, "settings", "own_shards"), [[]]),
    ],
)  # fmt: skip
def test_a_manifest_that_no_rocsteady_writes_is_refused_in_words(tmp_path, path, value):
    folder = tmp_path / "state"
    written(folder)
    content = manifest_of(folder)
    changed(content, path, value)
    (folder / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="the manifest is damaged; export again, or copy it again"):
        read(folder)


def test_a_deep_a_long_and_an_endless_manifest_are_refused(tmp_path, monkeypatch):
    folder = tmp_path / "state"
    written(folder)
    manifest = folder / "manifest.json"
    for text in ('{"a":' * 100_000, "[" * 33 + "]" * 33, "[]", "nothing", '{"format": NaN}', ""):
        manifest.write_text(text)
        with pytest.raises(InputError, match="the manifest is damaged"):
            read(folder)
    monkeypatch.setattr(state_folder, "MOST_BYTES", 100)
    manifest.write_text(" " * 101)
    with pytest.raises(InputError, match="has 101 bytes, more than the 100 that can be"):
        read(folder)
    manifest.unlink()
    manifest.symlink_to("/dev/zero")
    with pytest.raises(InputError, match="is a link to /dev/zero, outside of its folder"):
        read(folder)


def test_a_writer_that_comes_behind_the_last_one_changes_nothing(tmp_path):
    folder = tmp_path / "state"
    written(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    write_state(state("join", 0, b"another").pack(), str(folder), STEPS)
    state_folder._finish(str(folder), ID, STEPS)  # found the last shard as well: the shards are gone by now
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
