"""Files that a container lays itself: which images, trees and environments that is for, and how a failure is told."""

from __future__ import annotations

import pytest

from evalpipe.sandbox import DIRECTORY, REGULAR, SYMLINK, DiskFull, EngineFault, FileEntry, Outcome
from evalpipe.sandbox.archive import TarSpool
from evalpipe.sandbox.container_stdin import StdinArchive, passes_a_shell


def ended(exit_code: int, stderr: bytes) -> Outcome:
    return Outcome(exit_code, False, False, 1.0, b"", stderr, False, False)


@pytest.mark.parametrize(
    ("entries", "replaces"),
    [
        ([FileEntry(b"a/b", REGULAR, b"1"), FileEntry(b"a/c", REGULAR, b"2"), FileEntry(b"a", DIRECTORY)], False),
        ([FileEntry(b"a", REGULAR, b"1"), FileEntry(b"a", REGULAR, b"2")], True),
        ([FileEntry(b"a", SYMLINK, b"/etc"), FileEntry(b"a/b", REGULAR, b"2")], True),
        ([FileEntry(b"a/b", REGULAR, b"1"), FileEntry(b"a", REGULAR, b"2")], True),
    ],
)
def test_a_tree_says_whether_an_entry_takes_the_place_of_another(entries: list[FileEntry], replaces: bool) -> None:
    with TarSpool(1000, 1000) as spool:
        spool.add(entries)
        assert spool.replaces is replaces


def test_names_that_a_shell_would_drop_are_seen() -> None:
    assert passes_a_shell(["PATH=/bin", "_A1=x=y", "HOSTNAME"])
    assert not passes_a_shell(["PATH=/bin", "npm_config_//registry=x"])
    assert not passes_a_shell(["A.B=1"])


def test_only_the_word_that_the_command_never_sees_says_that_files_were_not_laid() -> None:
    archive = StdinArchive()
    archive.require_laid(ended(125, b"tar: repo: Cannot mkdir: No space left on device"))
    archive.require_laid(ended(0, archive._token))
    with pytest.raises(EngineFault, match="cannot lay the files of a box: tar: no"):
        archive.require_laid(ended(125, b"tar: no\n" + archive._token))
    with pytest.raises(DiskFull, match="free some space"):
        archive.require_laid(ended(125, b"tar: x: No space left on device\n" + archive._token))
    assert archive._token.decode() not in " ".join(archive.wrapped(["true"], "/work", "/work/repo"))
