"""What every sandbox owes its callers of files: exact bytes in both ways, and nothing from outside."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalpipe.sandbox import EXECUTABLE, REGULAR, SYMLINK, Box, FileEntry, OutputTooLarge, TreeLimits, UnsafeOutput
from evalpipe_tests.conformance.sandboxes.places import KINDS, LIMITS, TREE, Place, place_of, python

# Each takes a fraction of a second, and all of them together too long for `make check`.
pytestmark = pytest.mark.slow

ODD_NAMES = [
    b"with blank",
    b"quotes'\"",
    b"new\nline",
    b"caf\xe9 not UTF-8",
    "grün".encode(),
    b"-dash",
    b"back\\slash",
    b"*?[a]",
    b"deep/\xff\xfe/er",
    b"long/" + b"n" * 200,
]


@pytest.fixture(scope="module", params=[*KINDS, pytest.param("docker, not built", marks=pytest.mark.docker)])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Each kind of sandbox: into an image that evalpipe built, files come in another way than into any other."""
    yield from place_of(request.param, request)


def test_odd_names_and_bytes_survive_both_ways(place: Place) -> None:
    files = {name: FileEntry(name, REGULAR, b"\0\r\n\xff" + name) for name in ODD_NAMES}
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put(files.values())
        outcome = box.run(python("import os", "print(sum(len(f) for _, _, f in os.walk(b'.')))"), env={}, cwd=".")
        assert outcome.stdout.strip() == str(len(files)).encode()
        assert {entry.path: entry for entry in box.read_tree(".", TREE)} == files
        for name, entry in files.items():
            assert box.read_file(name.decode("utf-8", "surrogateescape"), 10_000) == entry.data


def test_modes_and_links_survive_both_ways(place: Place) -> None:
    files = [
        FileEntry(b"plain", REGULAR, b"x"),
        FileEntry(b"tool", EXECUTABLE, b"#!/bin/sh\necho ran\n"),
        FileEntry(b"link", SYMLINK, b"plain"),
        FileEntry(b"dangling", SYMLINK, b"/no/\xffwhere\n"),
    ]
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put(files)
        assert box.run(["./tool"], env={}, cwd=".").stdout == b"ran\n"
        assert sorted(box.read_tree(".", TREE), key=lambda entry: files.index(entry)) == files


def test_later_entries_replace_earlier_ones_of_any_kind(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put([FileEntry(b"tests", SYMLINK, b"/etc"), FileEntry(b"a/b", REGULAR, b"1"), FileEntry(b"c", REGULAR)])
        box.put([FileEntry(b"tests/x", REGULAR, b"2"), FileEntry(b"a", REGULAR, b"3"), FileEntry(b"c", EXECUTABLE)])
        box.put([FileEntry(b"a/again", REGULAR, b"4")])
        box.run(["true"], env={}, cwd=".")
        assert {(entry.path, entry.mode, entry.data) for entry in box.read_tree(".", TREE)} == {
            (b"tests/x", REGULAR, b"2"),
            (b"a/again", REGULAR, b"4"),
            (b"c", EXECUTABLE, b""),
        }
    assert not Path("/etc/x").exists()


@pytest.mark.parametrize("path", [b"", b"/etc/x", b"../x", b"a/../../x", b"./x", b"a//b", b"a\0b"])
def test_a_path_that_is_not_plainly_inside_is_refused(place: Place, path: bytes) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box, pytest.raises(ValueError, match="path"):
        box.put([FileEntry(path, REGULAR)])


def test_the_program_may_change_every_file_and_directory(place: Place) -> None:
    script = "echo 2 > top && rm deep/er/old && echo new > deep/er/new && mkdir own && echo o > own/file"
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put([FileEntry(b"top", REGULAR, b"1"), FileEntry(b"deep/er/old", REGULAR)])
        outcome = box.run(["sh", "-c", script], env={}, cwd=".")
        assert outcome.exit_code == 0, outcome.stderr
        assert {entry.path: entry.data for entry in box.read_tree(".", TREE)} == {
            b"top": b"2\n",
            b"deep/er/new": b"new\n",
            b"own/file": b"o\n",
        }


HOSTILE = """
mkfifo pipe
ln -s /etc/passwd link
ln -s /etc linkdir
ln -s . loop
mkdir dir; echo inside > dir/file; ln dir/file hard; ln dir/file dir/hard
printf odd > "$(printf 'odd\\377')"; ln "$(printf 'odd\\377')" "$(printf 'odd\\377hard')"
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
head -c 5000 /dev/zero > large
mkdir locked; echo hidden > locked/file; chmod 000 locked/file locked
"""


@pytest.fixture(scope="module")
def hostile(place: Place) -> Iterator[Box]:
    """A box in which a program left everything that could lead a careless reader astray; it can only be read."""
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        outcome = box.run(["sh", "-ec", HOSTILE], env={}, cwd=".")
        assert outcome.exit_code == 0, outcome.stderr
        yield box


@pytest.mark.parametrize("path", ["link", "linkdir/passwd", "dir", "pipe", "socket", ".", "dir/file/below"])
def test_read_file_hands_out_regular_files_only(hostile: Box, path: str) -> None:
    with pytest.raises(UnsafeOutput):
        hostile.read_file(path, 10_000)


def test_read_file_bounds_what_it_reads(hostile: Box) -> None:
    assert hostile.read_file("large", 5000) == bytes(5000)
    with pytest.raises(OutputTooLarge, match="large"):
        hostile.read_file("large", 4999)


@pytest.mark.parametrize("path", ["absent", "dir/absent", "absent/file"])
def test_read_file_of_what_is_not_there_is_none(hostile: Box, path: str) -> None:
    assert hostile.read_file(path, 1) is None


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "dir/../../x"])
def test_reading_outside_the_root_is_refused(hostile: Box, path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        hostile.read_file(path, 10_000)


def test_read_tree_hands_out_files_and_links_and_follows_none(hostile: Box) -> None:
    entries = {entry.path: entry for entry in hostile.read_tree(".", TREE)}
    links = {path: entry.data for path, entry in entries.items() if entry.mode == SYMLINK}
    assert links == {b"link": b"/etc/passwd", b"linkdir": b"/etc", b"loop": b"."}
    files = {path: entry.data for path, entry in entries.items() if entry.mode == REGULAR}
    assert files == {
        b"dir/file": b"inside\n",
        b"dir/hard": b"inside\n",
        b"hard": b"inside\n",
        b"odd\xff": b"odd",
        b"odd\xffhard": b"odd",
        b"large": bytes(5000),
        b"locked/file": b"hidden\n",
    }


def test_hard_links_with_odd_names_can_be_read_alone(hostile: Box) -> None:
    assert hostile.read_file("odd\udcffhard", 100) == b"odd"
    assert hostile.read_file("odd\udcff", 100) == b"odd"


def test_read_tree_of_a_directory_has_paths_relative_to_it(hostile: Box) -> None:
    assert {entry.path for entry in hostile.read_tree("dir", TREE)} == {b"file", b"hard"}
    assert list(hostile.read_tree("absent", TREE)) == []


@pytest.mark.parametrize("path", ["large", "linkdir", "linkdir/ssl"])
def test_read_tree_wants_a_directory(hostile: Box, path: str) -> None:
    with pytest.raises(UnsafeOutput):
        list(hostile.read_tree(path, TREE))


@pytest.mark.parametrize(
    "limits", [TreeLimits(5000, 10_000, 100), TreeLimits(100_000, 4999, 100), TreeLimits(100_000, 10_000, 5)]
)
def test_read_tree_keeps_its_limits(hostile: Box, limits: TreeLimits) -> None:
    with pytest.raises(OutputTooLarge):
        list(hostile.read_tree(".", limits))


def test_a_program_that_removes_everything_leaves_an_empty_tree(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put([FileEntry(b"d/f", REGULAR)])
        box.run(["sh", "-c", 'rm -rf "$PWD"'], env={}, cwd=".")
        assert list(box.read_tree(".", TREE)) == []
        assert box.read_file("d/f", 1) is None


def test_a_file_of_gigabytes_of_nothing_is_refused_unread(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        assert box.run(["truncate", "-s", "3G", "sparse"], env={}, cwd=".").exit_code == 0
        started = time.monotonic()
        with pytest.raises(OutputTooLarge):
            box.read_file("sparse", 1_000_000)
        with pytest.raises(OutputTooLarge):
            list(box.read_tree(".", TREE))
        assert time.monotonic() - started < 2
