"""What was on the mainline before: finds the change that a later one reverts, picks, or lands again.

Every change is entered under the commits it came with, its pull request, its Change-Id and its patch. It must stay
small for long histories, so a commit is known by its first digits as one integer, and a change by its place in a
list.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from evalpipe.history.messages import may_pick, picked_commits, reverted_commits, reverted_number
from evalpipe.history.pull_requests import Forge, PullRequest
from evalpipe.history.shapes import Change

# The fewest digits that a message shortens a commit to, and how many of them tell two commits apart for sure.
_SHORT: Final = 7
_SURE: Final = 16
_REST_BITS: Final = 4 * (_SURE - _SHORT)
_REST: Final = (1 << _REST_BITS) - 1
_FORGE_NUMBERS: Final = {forge: number for number, forge in enumerate(Forge)}
_FORGES_OF_SIGN: Final = {
    "#": (Forge.github, Forge.bitbucket),
    "!": (Forge.gitlab, Forge.azure_devops),
    "D": (Forge.phabricator,),
}


class Entry(NamedTuple):
    """What the ledger knows a change by; `commits` are all that it came with, the change's own last."""

    commits: Sequence[str]
    pull_request: PullRequest | None
    change_id: str | None
    patch_id: str | None
    files: tuple[bytes, ...]
    """Its source and test files."""
    reverts: str | None
    repeats: str | None
    kept: bool


class Relations(NamedTuple):
    """Earlier changes, by their commits, that a change refers to or equals.

    `reverts` are taken back by it. `repeats` is on the mainline a second time with it: picked, forwarded or landed
    again. `copied` is the kept change behind `repeats`, so that the two would be one task twice.
    """

    reverts: tuple[str, ...]
    repeats: str | None
    copied: str | None


NO_RELATIONS: Final = Relations((), None, None)


class Ledger:
    """The changes so far, in order."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        # The ids end to end, since a list of them would be four times as large.
        self._commits = bytearray()
        self._id_length = 0
        self._files = array("q")
        # What only takes back another change, and that one.
        self._reverts: dict[int, int] = {}
        # For a change that is a task or repeats one: the place of that task's change.
        self._task: dict[int, int] = {}
        self._by_commit: dict[int, int] = {}
        self._clashes: list[tuple[str, int]] = []
        self._by_request: dict[int, int] = {}
        self._by_change_id: dict[str, int] = {}
        self._by_patch: dict[str, int] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: Entry) -> None:
        """Enter the next change of the mainline."""
        commits, pull_request, change_id, patch_id, files, reverts, repeats, kept = entry
        place = len(self._files)
        commit_id = bytes.fromhex(commits[-1])
        self._commits += commit_id
        self._id_length = len(commit_id)
        self._files.append(hash(files))
        for commit in commits:
            digits = int(commit[:_SURE], 16)
            value = place << _REST_BITS | digits & _REST
            if self._by_commit.setdefault(digits >> _REST_BITS, value) != value:
                self._clashes.append((commit, place))
        if pull_request is not None:
            self._by_request.setdefault(_as_integer(pull_request), place)
        if change_id is not None:
            self._by_change_id.setdefault(change_id, place)
        if patch_id is not None:
            self._by_patch.setdefault(patch_id, place)
        reverted = None if reverts is None else self._find(reverts)
        repeated = None if repeats is None else self._find(repeats)
        if reverted is not None and repeated is None:
            self._reverts[place] = reverted
        if kept:
            self._task[place] = place
        elif repeated is not None and repeated in self._task:
            self._task[place] = self._task[repeated]

    def relations_of(self, change: Change, files: tuple[bytes, ...], patch_id: str | None) -> Relations:
        """What a change, which is not entered yet, has to do with earlier ones; `files` are its source and tests."""
        reverted: list[int] = []
        picked: int | None = None
        for commit in change.all_commits:
            message = commit.message
            # Nearly all messages have neither word.
            if "evert" in message or "Original Phab" in message:
                reverted += self._reverted_in(message)
            if picked is None and may_pick(message):
                picked = self._picked_by(change)
        repeated = self._repeated_by(change, files, patch_id, reverted, picked)
        if not reverted and repeated is None:
            return NO_RELATIONS
        task = None if repeated is None else self._task.get(repeated)
        return Relations(
            tuple(self._commit(place) for place in dict.fromkeys(reverted)),
            None if repeated is None else self._commit(repeated),
            None if task is None else self._commit(task),
        )

    def _reverted_in(self, message: str) -> list[int]:
        found = [self._find(commit) for commit in reverted_commits(message)]
        sign, number = reverted_number(message) or ("", 0)
        requests = [_as_integer(PullRequest(forge, number)) for forge in _FORGES_OF_SIGN.get(sign, ())]
        found.append(next((self._by_request[key] for key in requests if key in self._by_request), None))
        return [place for place in dict.fromkeys(found) if place is not None]

    def _repeated_by(
        self, change: Change, files: tuple[bytes, ...], patch_id: str | None, reverted: list[int], picked: int | None
    ) -> int | None:
        for place in reverted:
            if place in self._reverts:
                return self._reverts[place]
        if picked is not None:
            return picked
        change_id = change.change_id
        if change_id is not None and change_id in self._by_change_id:
            return self._by_change_id[change_id]
        if patch_id is not None and patch_id in self._by_patch:
            return self._by_patch[patch_id]
        if change.pull_request is not None and files:
            same = self._by_request.get(_as_integer(change.pull_request))
            if same is not None and self._files[same] == hash(files):
                return same
        return None

    def _picked_by(self, change: Change) -> int | None:
        """The change that this one was picked from: by its own message, or by every message of its branch."""
        own = picked_commits(change.last.message)
        picked = [own] if own else [picked_commits(commit.message) for commit in change.work]
        if not all(picked):
            return None
        found = (self._find(commit) for commits in picked for commit in commits)
        return next((place for place in found if place is not None), None)

    def _commit(self, place: int) -> str:
        return self._commits[place * self._id_length : (place + 1) * self._id_length].hex()

    def _find(self, commit: str) -> int | None:
        """The place of the change that a commit, of seven digits or more, came with."""
        known = self._by_commit.get(int(commit[:_SHORT], 16))
        if known is None:
            return None
        if f"{known & _REST:0{_SURE - _SHORT}x}".startswith(commit[_SHORT:_SURE]):
            return known >> _REST_BITS
        return next((place for full, place in self._clashes if full.startswith(commit)), None)


def _as_integer(request: PullRequest) -> int:
    return request.number << 4 | _FORGE_NUMBERS[request.forge]
