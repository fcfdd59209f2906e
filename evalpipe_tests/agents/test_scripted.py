"""Agents that replay patches: what they leave is exactly what the patch says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from evalpipe.agents import AttemptOutcome, PatchReplay, PatchScript, ScriptError
from evalpipe.tasks import PromptMode
from evalpipe_tests.agents.conftest import Place
from evalpipe_tests.history.builder import EXECUTABLE, LINK, REGULAR, File

CHANGES: dict[str, dict[bytes, File]] = {
    "edit": {b"clock.py": b"def noon():\n    return 12\n"},
    "new": {b"a/b/new.py": b"1\n", b"empty": b"", b"--rf": b"2\n", b"sp ace\nline\xff": b"3\n"},
    "deletion": {b"docs/index.md": None, b"caf\xe9.txt": None},
    "rename": {b"docs/more/deep.md": None, b"docs/deep.md": b"more\n"},
    "mode": {b"clock.py": (EXECUTABLE, b"def noon():\n    return 11\n"), b"run": (REGULAR, b"#!/bin/sh\n")},
    "symlink": {b"other": (LINK, b"docs"), b"link": (LINK, b"run")},
    "link_to_file": {b"link": b"a file now\n"},
    "file_to_link": {b"clock.py": (LINK, b"run")},
    "file_to_folder": {b"clock.py": None, b"clock.py/inner.py": b"1\n"},
    "folder_to_file": {b"docs/index.md": None, b"docs/more/deep.md": None, b"docs": b"flat\n"},
    "folder_to_link": {b"docs/index.md": None, b"docs/more/deep.md": None, b"docs": (LINK, b"run")},
    "ignored": {b"out.log": b"kept\n", b"bytes.bin": bytes(range(256))},
}


@pytest.mark.parametrize("name", CHANGES)
def test_replayed_patch_comes_out_as_it_went_in(process_place: Place, name: str) -> None:
    patch = _patch(process_place, CHANGES[name])
    result = process_place.attempt(PatchReplay(lambda assignment: patch))
    assert result.outcome is AttemptOutcome.FINISHED, result.transcript
    assert result.patch == patch
    assert result.files_changed == len(CHANGES[name])


@pytest.mark.docker
def test_many_replays_at_once_in_a_container(docker_place: Place) -> None:
    changes = {**CHANGES["new"], **CHANGES["link_to_file"], **CHANGES["folder_to_file"], **CHANGES["file_to_folder"]}
    patch = _patch(docker_place, changes)
    assert docker_place.attempt(PatchReplay(lambda assignment: patch)).patch == patch


def test_no_patch_changes_nothing(process_place: Place) -> None:
    result = process_place.attempt(PatchReplay(lambda assignment: b""))
    assert (result.outcome, result.patch, result.exit_code) == (AttemptOutcome.EMPTY_PATCH, b"", 0)


def test_patch_that_does_not_apply_names_the_task(process_place: Place) -> None:
    with pytest.raises(ScriptError, match="clock-12-0123456789"):
        process_place.attempt(PatchReplay(lambda assignment: b"garbage\n"))


def _patch(place: Place, files: Mapping[bytes, File]) -> bytes:
    other = place.builder.commit(files, parents=[place.parent], branch=None)
    return place.repository.diff(place.parent, other)


def _script(folder: Path, patches: object) -> Path:
    (folder / "one.patch").write_bytes(b"one\xff")
    (folder / "two.patch").write_bytes(b"two")
    path = folder / "script.json"
    path.write_text(json.dumps({"patches": patches}))
    return path


def test_script_takes_patches_in_turn_by_number_and_sample(tmp_path: Path, process_place: Place) -> None:
    script = PatchScript.read(_script(tmp_path, {"12": ["one.patch", None, "two.patch"], "13": []}))
    first = process_place.assignment
    taken = [script.choose(replace(first, sample=sample)) for sample in range(1, 8)]
    assert taken == [b"one\xff", b"", b"two", b"one\xff", b"", b"two", b"one\xff"]
    assert script.choose(replace(first, mode=PromptMode.TERSE)) == b"one\xff"
    for number in (13, 14, None):
        other = replace(first, task=first.task.model_copy(update={"number": number}))
        assert script.choose(other) == b""


def test_digest_of_a_script_depends_on_its_text_and_its_patches(tmp_path: Path) -> None:
    path = _script(tmp_path, {"12": ["one.patch"]})
    first = PatchScript.read(path).digest()
    assert PatchScript.read(path).digest() == first
    (tmp_path / "two.patch").write_bytes(b"unused")
    assert PatchScript.read(path).digest() == first
    (tmp_path / "one.patch").write_bytes(b"other")
    second = PatchScript.read(path).digest()
    third = PatchScript.read(_script(tmp_path, {"12": ["one.patch", None]})).digest()
    assert len({first, second, third}) == 3


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b"{}", b"\xff", b'{"patches": []}', b'{"patches": {"1": "x"}}', b'{"patches": {"1": [2]}}'],
)
def test_what_is_no_script_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "script.json"
    path.write_bytes(content)
    with pytest.raises(ScriptError, match=r"script\.json"):
        PatchScript.read(path)


def test_missing_script_and_missing_patch_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=r"none\.json"):
        PatchScript.read(tmp_path / "none.json")
    with pytest.raises(ScriptError, match=r"three\.patch, which is not there"):
        PatchScript.read(_script(tmp_path, {"12": ["three.patch"]}))
