"""Which files a patch may leave behind: a pure check of the tree before and after it was applied.

The threats are P-1 to P-3 of `threats.md`: paths that escape, `.git` in one of its disguises, submodules, and
symlinks through which later tools would leave the tree. What the old tree already had is not the patch's
doing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from typing import Final

from evalpipe.history.objects import GITLINK, SYMLINK, Tree, TreeEntry

_MOST_LINKS_FOLLOWED: Final = 40

# Code points that HFS+ ignores in a name (git: utf8.c, next_hfs_char), so that `.g<U+200C>it` is `.git`
# there.
_IGNORED_BY_HFS: Final = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
# The short name that Windows makes for `.git` (git: path.c, is_ntfs_dotgit).
_SHORT_NAME_OF_GIT: Final = re.compile(r"git~\d+")
_DRIVE_LETTER: Final = re.compile(rb"[A-Za-z]:")
_UNSAFE_CHARACTERS: Final = re.compile(rb"[\x00-\x1f\x7f\\]")


class PatchViolationReason(StrEnum):
    """Why a file of a patched tree is refused."""

    git_directory = auto()
    """A component is `.git`, in any case, or a name that some file system takes for it."""
    outside_tree = auto()
    """Absolute, with a drive letter, or with an empty, `.` or `..` component."""
    unsafe_characters = auto()
    """A backslash or a control character."""
    submodule = auto()
    """A new or changed submodule: its content is not in the patch."""
    link_outside_tree = auto()
    """A symlink whose target is empty, absolute, leaves the tree, or has no end."""
    link_into_git_directory = auto()
    """A symlink whose target passes through `.git`."""


@dataclass(frozen=True, slots=True)
class PatchViolation:
    """One file that a patch may not leave behind, with the first reason that applies."""

    path: bytes
    reason: PatchViolationReason


def check_patch_result(old: Tree, new: Tree, read_link: Callable[[str], bytes]) -> list[PatchViolation]:
    """The violations that `new` has and `old` has not, sorted by path; empty when all is well.

    `read_link` gives a symlink's target by its blob id. A symlink that the patch did not touch is judged
    again too: what it leads through may have become a symlink.
    """
    old_links = _links(old, read_link)
    new_links = _links(new, read_link)
    violations = []
    for path, entry in sorted(new.items()):
        reason = _link_reason(path, new_links)
        if old.get(path) != entry:
            reason = _path_reason(path, is_new=path not in old) or _mode_reason(entry) or reason
        elif reason == _link_reason(path, old_links):
            reason = None
        if reason is not None:
            violations.append(PatchViolation(path, reason))
    return violations


def _links(tree: Tree, read_link: Callable[[str], bytes]) -> dict[bytes, bytes]:
    return {path: read_link(entry.oid) for path, entry in tree.items() if entry.mode == SYMLINK}


def _path_reason(path: bytes, is_new: bool) -> PatchViolationReason | None:
    if any(_is_git_directory(name) for name in re.split(rb"[/\\]", path)):
        return PatchViolationReason.git_directory
    if _DRIVE_LETTER.match(path) or any(name in (b"", b".", b"..") for name in path.split(b"/")):
        return PatchViolationReason.outside_tree
    if is_new and _UNSAFE_CHARACTERS.search(path):
        return PatchViolationReason.unsafe_characters
    return None


def _mode_reason(entry: TreeEntry) -> PatchViolationReason | None:
    return PatchViolationReason.submodule if entry.mode == GITLINK else None


def _is_git_directory(name: bytes) -> bool:
    text = _IGNORED_BY_HFS.sub("", name.decode("utf-8", "surrogateescape")).lower()
    # NTFS drops what follows a colon (a stream of the file) and trailing dots and spaces.
    text = text.partition(":")[0].rstrip(". ")
    return text == ".git" or _SHORT_NAME_OF_GIT.fullmatch(text) is not None


def _link_reason(path: bytes, links: Mapping[bytes, bytes]) -> PatchViolationReason | None:
    """Follow a symlink by name, through further symlinks of the tree, as the kernel would."""
    if path not in links:
        return None
    here = path.split(b"/")[:-1]
    ahead = _steps(links[path])
    followed = 1
    if not links[path]:
        return PatchViolationReason.link_outside_tree
    while ahead:
        step = ahead.pop()
        if step == b"/" or (step == b".." and not here) or followed > _MOST_LINKS_FOLLOWED:
            return PatchViolationReason.link_outside_tree
        if _is_git_directory(step):
            return PatchViolationReason.link_into_git_directory
        if step == b"..":
            here.pop()
            continue
        here.append(step)
        target = links.get(b"/".join(here))
        if target is not None:
            here.pop()
            ahead += _steps(target)
            followed += 1
    return None


def _steps(target: bytes) -> list[bytes]:
    """The steps of a symlink's target, last one first; a leading slash is a step of its own."""
    steps = [step for step in target.split(b"/") if step not in (b"", b".")]
    return [*reversed(steps), *([b"/"] if target.startswith(b"/") else [])]
