"""Tar streams: what is written can be read back, and what is torn or hostile is refused."""

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.sandbox import (
    DIRECTORY,
    EXECUTABLE,
    REGULAR,
    SYMLINK,
    EngineUnavailable,
    FileEntry,
    OutputTooLarge,
    TreeLimits,
)
from evalpipe.sandbox.archive import TarSpool, tar_members, tree_entries
from evalpipe.sandbox.paths import as_bytes, as_text, entry_path, inner_path, parents

PLENTY = TreeLimits(1_000_000, 1_000_000, 1_000)
NAMES = st.binary(min_size=1, max_size=300).filter(
    lambda name: b"/" not in name and b"\0" not in name and name not in (b".", b"..")
)


def no_hard_link(path: bytes) -> FileEntry | None:
    raise AssertionError(path)


def archive_of(*files: FileEntry) -> bytes:
    with TarSpool(1000, 1000) as spool:
        # Engines put the directory's own name first, which the reader takes off again.
        spool.add(FileEntry(b"top/" + entry.path, entry.mode, entry.data) for entry in files)
        return spool.finish().read()


@given(st.dictionaries(NAMES, st.tuples(st.sampled_from([REGULAR, EXECUTABLE]), st.binary(max_size=2000)), max_size=5))
def test_any_name_and_content_survives(content: dict[bytes, tuple[int, bytes]]) -> None:
    files = [FileEntry(name, mode, data) for name, (mode, data) in content.items()]
    assert list(tree_entries(io.BytesIO(archive_of(*files)), PLENTY, no_hard_link)) == files


def test_every_file_belongs_to_the_user_and_no_directory_is_left_to_the_engine() -> None:
    with TarSpool(1000, 1001) as spool:
        spool.add([FileEntry(b"a/b/c", REGULAR, b"x"), FileEntry(b"a/l", SYMLINK, b"b"), FileEntry(b"e", DIRECTORY)])
        assert spool.has_directory(b"a/b")
        assert not spool.has_directory(b"a/l")
        members = [(info.name, info.type, info.uid, info.gid) for info, _ in tar_members(spool.finish())]
    assert members == [
        ("a", tarfile.DIRTYPE, 1000, 1001),
        ("a/b", tarfile.DIRTYPE, 1000, 1001),
        ("a/b/c", tarfile.REGTYPE, 1000, 1001),
        ("a/l", tarfile.SYMTYPE, 1000, 1001),
        ("e", tarfile.DIRTYPE, 1000, 1001),
    ]


@pytest.mark.parametrize("kept", [0, 100, 512, 600, 1024, 1536, 2000, -1024])
def test_a_torn_archive_is_not_taken_for_a_short_one(kept: int) -> None:
    # An archive of one file: the directory, the file, its content, two blocks of zeros, and filling.
    whole = archive_of(FileEntry(b"f", REGULAR, b"x" * 700))
    end = 512 + 512 + 1024
    torn = whole[:kept] if kept >= 0 else whole[: end + 512 + kept]
    with pytest.raises(EngineUnavailable):
        list(tree_entries(io.BytesIO(torn), PLENTY, no_hard_link))


def test_limits_are_kept_before_content_is_read() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        info = tarfile.TarInfo("top/huge")
        info.size = 10**15
        stream.write(info.tobuf(tarfile.GNU_FORMAT))
        with pytest.raises(OutputTooLarge, match="huge"):
            list(tree_entries(io.BytesIO(stream.getvalue()), PLENTY, no_hard_link))
        tar.fileobj = io.BytesIO()


def test_devices_and_pipes_are_left_out_and_hard_links_are_asked_for() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, kind in (("top/p", tarfile.FIFOTYPE), ("top/d", tarfile.BLKTYPE), ("top/h", tarfile.LNKTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "top/../../etc/passwd"
            tar.addfile(info)
    entries = tree_entries(io.BytesIO(stream.getvalue()), PLENTY, lambda path: FileEntry(path, REGULAR, b"asked"))
    assert list(entries) == [FileEntry(b"h", REGULAR, b"asked")]


@given(st.binary())
def test_file_names_are_text_and_bytes_again(name: bytes) -> None:
    assert as_bytes(as_text(name)) == name


def test_paths_are_plain_or_refused() -> None:
    assert entry_path(b"a/b..c/ d") == b"a/b..c/ d"
    assert parents(b"a/b/c") == [b"a", b"a/b"]
    assert parents(b"a") == []
    assert inner_path(".") == inner_path("") == b""
    for path in ("/a", "a/", "../a", "a/..", "a//b", "a\0b"):
        with pytest.raises(ValueError, match="path"):
            inner_path(path)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="160000"):
        archive_of(FileEntry(b"submodule", 0o160000))
