"""Habits that real histories showed, each as the smallest input of its kind."""

from __future__ import annotations

import pytest

from evalpipe.history.decision import MiningReason
from evalpipe.history.messages import is_batch, is_release_title, is_revert_title, is_update_title
from evalpipe.history.paths import FileKind, default_kind
from evalpipe.history.shapes import Shape
from evalpipe_tests.history.builder import Builder, File
from evalpipe_tests.history.mining import WORK, mined, only


@pytest.mark.parametrize(
    "title",
    [
        "chore: Release",
        "-Increment version to 6.0.5",
        "[maven-release-plugin] prepare release gson-parent-2.8.9",
        "0.3.3 release (pinned to the old parser)",
        "This is 2.0",
        "Bump version and update changelog",
    ],
)
def test_titles_of_releases(title: str) -> None:
    assert is_release_title(title)


@pytest.mark.parametrize(
    "title", ["Update SDK version", "Update fmt version to 10.1", "Release the lock of 1.2 clocks"]
)
def test_titles_that_only_sound_like_releases(title: str) -> None:
    assert not is_release_title(title)


@pytest.mark.parametrize(
    "title", ["Revert D12345: [clock] faster hands", "Back out D12345", "Backed out changeset 0123456789ab"]
)
def test_titles_of_reverts(title: str) -> None:
    assert is_revert_title(title)


@pytest.mark.parametrize(
    ("title", "update"),
    [
        ("[pre-commit.ci] pre-commit autoupdate", True),
        ("build(deps): bump clock from 1.2 to 1.3", True),
        ("Bump the hand when it sticks", False),
        ("⬆ Bump clock from 1.2 to 1.3", True),
        ("fix(deps): update dependency @team/clock to v1.2.3 [security]", True),
        ("Update module example.org/clock to v2", True),
        ("Update actions/checkout action to v4 (major)", True),
        ("chore(deps): update all non-major dependencies", True),
        ("Lock file maintenance", True),
        ("Pin dependencies", True),
        ("Update dependency injection to use factories", False),
        ("Update the action to 2 steps", False),
    ],
)
def test_titles_of_bots(title: str, update: bool) -> None:
    assert is_update_title(title) is update


def test_batch_of_a_merge_queue_is_several_changes(clock: Builder) -> None:
    assert is_batch("Merge #2926 #2948\n\n2926: One\n2948: Two")
    assert not is_batch("Merge #2926\n\n2926: One")
    base = clock.branches["main"]
    tips = [clock.commit({b"src/%d.py" % n: b"1"}, "work", branch=None, parents=[base]) for n in (1, 2)]
    merged = {b"src/1.py": b"1", b"src/2.py": b"1", b"tests/test_a.py": b"1"}
    clock.commit(merged, "Merge #2926 #2948", parents=[base, *tips])
    change = mined(clock)[-1]
    assert (change.shape, change.reason) == (Shape.integration, MiningReason.several_changes)


@pytest.mark.parametrize("subject", ['Merge changes from topic "hands" into main', "Merge changes I0123abc,I4567def"])
def test_topic_of_gerrit_is_several_changes_when_it_brought_several(clock: Builder, subject: str) -> None:
    base = clock.branches["main"]
    one = clock.commit({b"src/1.py": b"1"}, "One\n\nChange-Id: I0123abcd", branch=None, parents=[base])
    two = clock.commit({b"tests/test_a.py": b"1"}, "Two\n\nChange-Id: I4567def0", branch=None, parents=[one])
    clock.commit(
        {b"src/1.py": b"1", b"tests/test_a.py": b"1"}, f"{subject}\n\n* changes:\n  Two\n  One", parents=[base, two]
    )
    clock.commit(
        {b"src/2.py": b"1"},
        'Merge changes from topic "one"',
        parents=[clock.branches["main"], clock.commit({b"src/2.py": b"1"}, branch=None)],
    )
    assert [change.shape for change in mined(clock)] == [Shape.integration, Shape.merge]


def test_rollup_of_rust_is_several_changes(clock: Builder) -> None:
    base = tip = clock.branches["main"]
    for number in (11, 12):
        work = clock.commit({b"src/%d.py" % number: b"1"}, "work", branch=None, parents=[base])
        message = f"Rollup merge of #{number} - ada:fix, r=grace\n\nRepair"
        tip = clock.commit({b"src/%d.py" % number: b"1"}, message, branch=None, parents=[tip, work])
    files: dict[bytes, File] = {b"src/11.py": b"1", b"src/12.py": b"1", b"tests/test_a.py": b"1"}
    clock.commit(files, "Auto merge of #13 - grace:rollup, r=grace\n\nRollup of 2", parents=[base, tip])
    assert only(clock).reason is MiningReason.several_changes


def test_what_git_subtree_takes_in_is_vendored(clock: Builder) -> None:
    base = clock.branches["main"]
    trailers = "git-subtree-dir: src/chime\ngit-subtree-split: 0123456789012345678901234567890123456789"
    other = clock.commit({b"chime.py": b"1"}, f"Squashed 'src/chime/' content\n\n{trailers}", branch=None, parents=[])
    taken: dict[bytes, File] = {b"src/chime/chime.py": b"1", b"src/chime/tests/test_a.py": b"1"}
    clock.commit(taken, "Merge commit '0123456' as 'src/chime'", parents=[base, other])
    more = clock.commit(
        {b"chime.py": b"2"}, f"Squashed 'src/chime/' changes\n\n{trailers}", branch=None, parents=[other]
    )
    own: dict[bytes, File] = {b"src/chime/chime.py": b"2", b"src/clock.py": b"9", b"tests/test_clock.py": b"9"}
    clock.commit(own, "Merge chime and use it", parents=[clock.branches["main"], more])
    assert [change.reason for change in mined(clock)] == [MiningReason.generated_only, MiningReason.kept]


def test_trailer_that_names_the_change_itself_links_no_issue(clock: Builder) -> None:
    clock.commit(WORK, "Repair\n\nGitHub-Pull-Request: golang/crypto#180\nPR-URL: https://example.org/o/r/pull/7")
    assert only(clock).issues == ()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (b"chacha20/chacha_arm64.s", FileKind.source),
        (b"acme/internal/acmetest/ca.go", FileKind.test),
        (b"Src/Clock.TestConsole/Program.cs", FileKind.other),
        (b"Src/Clock/Properties/AssemblyInfo.cs", FileKind.other),
        (b"src/main/java/com/example/Clock.java", FileKind.source),
        (b"clap-tests/src/main.rs", FileKind.test),
        (b"pkg/benches/wind.rs", FileKind.other),
        (b"src/parser.y", FileKind.source),
    ],
)
def test_files_of_real_projects(path: bytes, kind: FileKind) -> None:
    assert default_kind(path) is kind
