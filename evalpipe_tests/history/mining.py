"""What the tests of mining share: a small repository, and ways to let it grow and to mine it."""

from __future__ import annotations

from typing import Any

from evalpipe.history.candidates import Candidate, MiningRules
from evalpipe.history.decision import MiningReason
from evalpipe.history.issues import IssueTexts
from evalpipe.history.mining import Mining
from evalpipe.history.repository import Repository
from evalpipe_tests.history.builder import Builder, File

WORK: dict[bytes, File] = {b"src/clock.py": b"1\n2\n", b"tests/test_clock.py": b"1\n"}
START = 1_700_000_000


def mined(source: Builder, texts: IssueTexts | None = None, **rules: Any) -> list[Candidate]:
    """Everything after the root."""
    settings = MiningRules(repository="clock", **rules)
    root, *others = Mining(Repository(source.path), source.branches["main"], settings, texts)
    assert root.reason is MiningReason.root
    return others


def only(source: Builder, texts: IssueTexts | None = None, **rules: Any) -> Candidate:
    (candidate,) = mined(source, texts, **rules)
    return candidate


def merge_of(source: Builder, files: dict[bytes, File], message: str, *work: str) -> str:
    """A merge commit of a branch with one commit for each message of `work`, the last of which changes the files."""
    base = tip = source.branches["main"]
    for number, text in enumerate(work, start=1):
        content = files if number == len(work) else {b"progress": b"%d\n" % number}
        tip = source.commit(content, text, branch="topic", parents=[tip], author="Grace <g@example.org>")
    merged = {**({b"progress": b"%d\n" % (len(work) - 1)} if len(work) > 1 else {}), **files}
    return source.commit(merged, message, parents=[base, tip])
