from __future__ import annotations

import pytest

from evalpipe.history.decision import MiningReason
from evalpipe.history.errors import ObjectMissing
from evalpipe_tests.history.builder import EXECUTABLE, LINK, SUBMODULE, Builder, File, git
from evalpipe_tests.history.mining import WORK, mined, only

TEXT = b"".join(b"line %d\n" % number for number in range(60))


def numstat(source: Builder, parent: str, commit: str) -> tuple[int, int]:
    lines = git(source.path, "diff", "--numstat", "--no-renames", parent, commit).decode("latin-1").splitlines()
    counts = [line.split("\t")[:2] for line in lines if not line.startswith("-")]
    return sum(int(added) for added, _removed in counts), sum(int(removed) for _added, removed in counts)


EDITS: dict[str, dict[bytes, File]] = {
    "several places": {b"src/a.py": TEXT.replace(b"line 3\n", b"new\nnew\n").replace(b"line 50\n", b"")},
    "moved lines": {b"src/a.py": TEXT[200:] + TEXT[:200]},
    "no last newline": {b"src/a.py": TEXT.rstrip()},
    "CRLF": {b"src/a.py": TEXT.replace(b"\n", b"\r\n")},
    "emptied": {b"src/a.py": b""},
    "deleted and new": {b"src/a.py": None, b"src/b.py": TEXT, b"src/c.py": b""},
    "binary": {b"src/x.bin": b"\0\1\2", b"src/a.py": b"1\n"},
    "latin-1": {b"src/a.py": b"caf\xe9\n" * 3},
    "text like a patch": {
        b"src/a.py": b"+++ b/x\n--- a/x\n@@ -1 +1 @@\ndiff --git a/x b/x\n" + b"a" * 40 + b"\n" + TEXT
    },
    "line like a commit": {b"src/a.py": TEXT + b"c" * 40 + b"\n"},
    "mode": {b"src/a.py": (EXECUTABLE, TEXT), b"src/b.py": b"1\n"},
    "mode alone": {b"src/a.py": (EXECUTABLE, TEXT)},
    "link": {b"link": (LINK, b"src/b.py"), b"src/b.py": b"1\n"},
    "submodule": {b"lib": (SUBMODULE, b"2" * 40), b"new": (SUBMODULE, b"3" * 40), b"src/b.py": b"1\n"},
    "strange names": {
        b"src/my file.py": b"1\n",
        b'src/q"t\t.py': b"1\n2\n",
        b"src/\xff.py": b"1\n",
        b"src/n\nl.py": b"1\n",
    },
    "folder for file": {b"plain": None, b"plain/x.py": b"1\n2\n"},
}


@pytest.mark.parametrize("edit", EDITS)
def test_lines_are_counted_as_git_does(clock: Builder, edit: str) -> None:
    before: dict[bytes, File] = {
        b"src/a.py": TEXT,
        b"plain": b"1\n",
        b"link": (LINK, b"a"),
        b"lib": (SUBMODULE, b"1" * 40),
    }
    parent = clock.commit(before, "Before")
    commit = clock.commit({**EDITS[edit], b"tests/test_a.py": TEXT}, "Repair")
    row = mined(clock)[-1]
    assert row.reason is MiningReason.kept
    assert (row.lines_added, row.lines_removed) == numstat(clock, parent, commit)


def test_change_of_type_counts_both_sides(clock: Builder) -> None:
    clock.commit({b"src/a.py": b"1\n2\n", b"tests/x": (LINK, b"y")}, "Before")
    clock.commit({b"src/a.py": (LINK, b"b.py"), b"src/b.py": b"1\n", b"tests/x": b"1\n2\n3\n"}, "Repair")
    row = mined(clock)[-1]
    assert (row.lines_added, row.lines_removed) == (1 + 1 + 3, 2 + 1)


def test_settings_of_the_repository_change_nothing(clock: Builder) -> None:
    for setting in ("diff.noprefix=true", "diff.algorithm=histogram", "diff.external=/bin/false", "color.ui=always"):
        git(clock.path, "config", *setting.split("="))
    clock.commit(WORK, "Repair")
    assert (only(clock).lines_added, only(clock).lines_removed) == (3, 1)


def test_patches_in_pieces_are_whole(clock: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        files = {b"src/a.py": TEXT * number + b"%d\n" % number, b"tests/test_a.py": b"%d\n" % number}
        clock.commit(files, f"Change {number}")
    whole = mined(clock)
    for piece in (1, 40, 41, 42, 300):
        monkeypatch.setattr("evalpipe.history.evidence._CHUNK", piece)
        assert mined(clock) == whole


@pytest.mark.parametrize("gone", ["{}:src/clock.py", "{}~1^{{tree}}", "{}:src", "{}^"])
def test_missing_object_is_named_with_the_way_out(clock: Builder, gone: str) -> None:
    clock.commit(WORK, "Repair")
    tip = clock.commit({b"src/clock.py": b"3\n", b"tests/test_clock.py": b"3\n"}, "Repair again")
    oid = git(clock.path, "rev-parse", gone.format(tip)).decode().strip()
    (clock.path / "objects" / oid[:2] / oid[2:]).unlink()
    with pytest.raises(ObjectMissing, match=f"{clock.path} lacks the object {oid}.*--refetch"):
        mined(clock)
