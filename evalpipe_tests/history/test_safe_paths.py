from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.history.objects import EXECUTABLE_FILE, GITLINK, REGULAR_FILE, SYMLINK, Tree, TreeEntry
from evalpipe.history.safe_paths import PatchViolation, PatchViolationReason, check_patch_result

FILE = TreeEntry(REGULAR_FILE, "f" * 40)
OTHER = TreeEntry(EXECUTABLE_FILE, "e" * 40)
REASON = PatchViolationReason


def link(target: bytes) -> TreeEntry:
    return TreeEntry(SYMLINK, target.hex())


def violations(old: Tree, new: Tree) -> dict[bytes, PatchViolationReason]:
    found = check_patch_result(old, new, bytes.fromhex)
    assert len({violation.path for violation in found}) == len(found)
    return {violation.path: violation.reason for violation in found}


@pytest.mark.parametrize(
    "path",
    [
        b".git/config",
        b".GIT/config",
        b".Git",
        b"a/.git/hooks/post-checkout",
        b".git /config",
        b".git./config",
        b".git. . /config",
        b"git~1/config",
        b"GIT~1",
        b".git::$INDEX_ALLOCATION/config",
        b".git\\config",
        b"a\\.git\\config",
        ".g\u200cit/config".encode(),
        "\ufeff.git/config".encode(),
    ],
)
def test_git_directory_in_every_disguise(path: bytes) -> None:
    assert violations({}, {path: FILE}) == {path: REASON.git_directory}


@pytest.mark.parametrize("path", [b"/etc/passwd", b"../x", b"a/../../x", b"a//b", b"./a", b"a/.", b"C:/x", b"c:x", b""])
def test_path_outside_the_tree(path: bytes) -> None:
    assert violations({}, {path: FILE}) == {path: REASON.outside_tree}


@pytest.mark.parametrize("path", [b"a\\b", b"a\nb", b"a\x00b", b"a\x1b[31m", b"a\x7f"])
def test_unsafe_characters_are_refused_in_new_paths_only(path: bytes) -> None:
    assert violations({}, {path: FILE}) == {path: REASON.unsafe_characters}
    assert violations({path: FILE}, {path: OTHER}) == {}


@pytest.mark.parametrize(
    "path",
    [
        b".gitignore",
        b".github/workflows/x.yml",
        b"git/x",
        b"a.git/x",
        b"..a/b..",
        b"...",
        b"a b/\xff\xfe.py",
        "é/日本.py".encode(),
        b"digit~1",
        b"ab:c",
    ],
)
def test_ordinary_paths_are_fine(path: bytes) -> None:
    assert violations({}, {path: FILE}) == {}


def test_submodule_may_stay_and_go_but_not_come_or_change() -> None:
    one, two = TreeEntry(GITLINK, "1" * 40), TreeEntry(GITLINK, "2" * 40)
    assert violations({b"s": one}, {b"s": one, b"x": FILE}) == {}
    assert violations({b"s": one}, {}) == {}
    assert violations({b"s": one}, {b"s": two}) == {b"s": REASON.submodule}
    assert violations({}, {b"s": one}) == {b"s": REASON.submodule}
    assert violations({b"s": FILE}, {b"s": one}) == {b"s": REASON.submodule}


@pytest.mark.parametrize("target", [b"/etc/passwd", b"..", b"../x", b"a/../../x", b"//x", b"", b"./../x"])
def test_link_that_leaves_the_tree(target: bytes) -> None:
    assert violations({}, {b"l": link(target)}) == {b"l": REASON.link_outside_tree}


@pytest.mark.parametrize("target", [b".git/config", b"a/.GIT", b"./.git"])
def test_link_into_the_git_directory(target: bytes) -> None:
    assert violations({}, {b"l": link(target)}) == {b"l": REASON.link_into_git_directory}


@pytest.mark.parametrize("target", [b"x", b".", b"a/b/../c", b"./x//y", b"missing\xff"])
def test_link_that_stays_inside(target: bytes) -> None:
    assert violations({}, {b"l": link(target)}) == {}


def test_link_in_a_folder_may_go_up_as_far_as_the_root() -> None:
    assert violations({}, {b"a/b/l": link(b"../../x")}) == {}
    assert violations({}, {b"a/b/l": link(b"../../../x")}) == {b"a/b/l": REASON.link_outside_tree}


def test_links_are_followed_through_other_links() -> None:
    new = {b"a/b/up": link(b"../.."), b"l": link(b"a/b/up/../x")}
    assert violations({}, new) == {b"l": REASON.link_outside_tree}
    assert violations({}, {b"x": link(b"y"), b"y": link(b"x")}) == {
        b"x": REASON.link_outside_tree,
        b"y": REASON.link_outside_tree,
    }


def test_link_that_the_patch_did_not_touch_but_redirected() -> None:
    old = {b"a/b/c": FILE, b"l": link(b"a/b/../../x")}
    new = {b"a/b": link(b".."), b"l": link(b"a/b/../../x")}
    assert violations({}, old) == {}
    assert violations(old, new) == {b"l": REASON.link_outside_tree}


def test_what_the_old_tree_already_had_is_not_the_patch() -> None:
    old = {b"l": link(b"/etc"), b"a\\b": FILE, b"s": TreeEntry(GITLINK, "1" * 40)}
    assert violations(old, old | {b"x": FILE}) == {}
    assert violations(old, old | {b"l": link(b"/usr")}) == {b"l": REASON.link_outside_tree}


def test_violations_are_sorted_by_path() -> None:
    found = check_patch_result({}, {b"z\\": FILE, b"..": FILE}, bytes.fromhex)
    assert found == [
        PatchViolation(b"..", REASON.outside_tree),
        PatchViolation(b"z\\", REASON.unsafe_characters),
    ]


@given(st.lists(st.binary(min_size=1, max_size=4), min_size=1, max_size=4).map(b"/".join))
def test_accepted_paths_name_a_place_inside_the_tree(path: bytes) -> None:
    if violations({}, {path: FILE}):
        return
    assert not path.startswith(b"/")
    assert all(name not in (b"", b".", b"..") and name.lower() != b".git" for name in path.split(b"/"))
    assert all(32 <= byte != 127 for byte in path)


@given(
    st.dictionaries(
        st.sampled_from([b"a", b"b", b"c/d", b"c/e"]),
        st.sampled_from([b"a", b"..", b"c/d", b"../b", b"c/.."]),
    ),
    st.dictionaries(
        st.sampled_from([b"a", b"b", b"c/d", b"c/e"]), st.sampled_from([b"a", b"..", b"c/d", b"../b", b"/x"])
    ),
)
def test_following_links_always_ends(old: dict[bytes, bytes], new: dict[bytes, bytes]) -> None:
    found = violations({p: link(t) for p, t in old.items()}, {p: link(t) for p, t in new.items()})
    assert set(found) <= set(new)
