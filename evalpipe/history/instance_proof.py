"""Proves that a git directory made for an agent holds nothing of the answer: by reachability, not by dates or names.

The files are read back from their bytes by a git of their own, so what is proven is what the agent gets.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from pathlib import Path
from typing import Final

from evalpipe.history.diffs import diff_trees
from evalpipe.history.git_command import GitCommand
from evalpipe.history.objects import ObjectReader, checked_id

DISTINCTIVE_CHARACTERS: Final = 12
"""Shorter lines are in every program (`threats.md`, B2.1)."""

_TELLING_SHARE: Final = 0.5
"""Of the change's distinctive lines in the older history: fewer come from code that merely looks alike."""

_FILES: Final = re.compile(rb"HEAD|config|index|refs/heads/main|objects/pack/pack-[0-9a-f]{40,64}\.(?:pack|idx)")
_SETTINGS: Final = frozenset({"core.repositoryformatversion", "core.filemode", "core.bare", "extensions.objectformat"})


class InstanceFault(StrEnum):
    """Why an instance must not be handed out."""

    unexpected_file = auto()
    unexpected_setting = auto()
    unexpected_ref = auto()
    foreign_object = auto()
    object_of_the_change = auto()
    lines_of_the_change = auto()


@dataclass(frozen=True, slots=True)
class InstanceFinding:
    """One fault, and what shows it."""

    fault: InstanceFault
    evidence: str


def prove_repository(
    source: ObjectReader, files: Mapping[bytes, bytes], start: str, parent: str, commit: str
) -> list[InstanceFinding]:
    """What is wrong with the repository that `files` (paths below `.git/`) are; an empty list is the proof.

    `start` is the commit that an agent starts from: `parent`, or one made from it whose tree lacks some files.
    `commit` is the reference change. `source` holds all three. Every object must be reachable from `parent`, except
    `start` and the folders that the missing files changed; nothing that only the reference change brought may be
    there; and half of its distinctive added lines may not stand in older versions of the files that it changed.
    """
    findings = [
        InstanceFinding(InstanceFault.unexpected_file, f".git/{path.decode(errors='backslashreplace')}")
        for path in files
        if _FILES.fullmatch(path) is None
    ]
    if findings:
        return findings
    with tempfile.TemporaryDirectory(prefix="evalpipe-proof-") as folder:
        git_dir = Path(folder) / "instance.git"
        _lay(git_dir, files)
        command = GitCommand(git_dir)
        findings += _settings_and_refs(command, start)
        stored = _words(command.run("cat-file", "--batch-all-objects", "--batch-check=%(objectname)"))
    reachable = _objects(source, parent)
    own = {
        start,
        *_words(source.command.run("ls-tree", "-r", "-t", "-d", "--object-only", start)),
        source.tree_id(start),
    }
    foreign = stored - reachable - own
    if foreign:
        findings.append(InstanceFinding(InstanceFault.foreign_object, _listed(foreign)))
    brought = _objects(source, commit) - reachable
    if stored & brought:
        findings.append(InstanceFinding(InstanceFault.object_of_the_change, _listed(stored & brought)))
    if _has_ancestors(source, start):
        findings += _older_lines(source, parent, commit)
    return findings


def distinctive_lines(source: ObjectReader, parent: str, commit: str) -> frozenset[bytes]:
    """Lines that the change from `parent` to `commit` adds and that stand nowhere in the parent's tree.

    Without the space around them; only lines of DISTINCTIVE_CHARACTERS or more.
    """
    added = {line for line in _added(diff_trees(source.command, parent, commit)) if len(line) >= DISTINCTIVE_CHARACTERS}
    blobs = {entry.oid for entry in source.read_tree(parent).values() if entry.mode != 0o160000}
    for _oid, content in source.read_blobs(blobs):
        if not added:
            break
        added.difference_update([line.strip() for line in content.split(b"\n")])
    return frozenset(added)


def versions_of(source: ObjectReader, commit: str, paths: Collection[bytes]) -> list[str]:
    """The blobs that ever stood at `paths` in the history of `commit`, newest first, each once."""
    log = source.command.run(
        *("log", "-m", "--raw", "-z", "--no-abbrev", "--format=", "--no-renames", "--root", checked_id(commit), "--"),
        *(path.decode("utf-8", "surrogateescape") for path in paths),
    )
    fields = iter(log.split(b"\0"))
    blobs: list[str] = []
    for field in fields:
        if field.startswith(b":"):
            _old_mode, mode, _old, new, _status = field.split(b" ")
            next(fields)  # the path, which may begin with a colon itself
            if mode not in (b"160000", b"000000"):
                blobs.append(new.decode("ascii"))
    return list(dict.fromkeys(blobs))


def _older_lines(source: ObjectReader, parent: str, commit: str) -> Iterable[InstanceFinding]:
    telling = distinctive_lines(source, parent, commit)
    before, after = source.read_tree(parent), source.read_tree(commit)
    changed = [path for path in {*before, *after} if before.get(path) != after.get(path)]
    found: set[bytes] = set()
    for _oid, content in source.read_blobs(versions_of(source, parent, changed)):
        found.update(telling.intersection([line.strip() for line in content.split(b"\n")]))
    if telling and len(found) >= _TELLING_SHARE * len(telling):
        example = min(found).decode(errors="backslashreplace")
        yield InstanceFinding(
            InstanceFault.lines_of_the_change,
            f"{len(found)} of {len(telling)} distinctive lines stand in the older history, for example {example!r}",
        )


def _added(diff: bytes) -> Iterable[bytes]:
    inside = False
    for line in diff.split(b"\n"):
        if line.startswith(b"diff --git "):
            inside = False
        elif line.startswith(b"@@ "):
            inside = True
        elif inside and line.startswith(b"+"):
            yield line[1:].strip()


def _settings_and_refs(command: GitCommand, start: str) -> Iterable[InstanceFinding]:
    named = _words(command.run("config", "--local", "--list", "--name-only"))
    for name in sorted(named - _SETTINGS):
        yield InstanceFinding(InstanceFault.unexpected_setting, name)
    refs = command.run("for-each-ref", "--format=%(refname) %(objectname)").decode().splitlines()
    if refs != [f"refs/heads/main {start}"] or command.run("symbolic-ref", "HEAD") != b"refs/heads/main\n":
        yield InstanceFinding(InstanceFault.unexpected_ref, ", ".join(refs) or "no ref at all")


def _objects(source: ObjectReader, commit: str) -> set[str]:
    return _words(source.command.run("rev-list", "--objects", "--no-object-names", checked_id(commit)))


def _has_ancestors(source: ObjectReader, commit: str) -> bool:
    return len(source.command.run("rev-list", "--max-count=2", checked_id(commit)).split()) > 1


def _words(output: bytes) -> set[str]:
    return set(output.decode("ascii").split())


def _listed(oids: Collection[str]) -> str:
    shown = ", ".join(sorted(oids)[:5])
    return shown if len(oids) <= 5 else f"{shown} and {len(oids) - 5} more"


def _lay(folder: Path, files: Mapping[bytes, bytes]) -> None:
    for path, content in files.items():
        target = folder / path.decode("ascii")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
