from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.history import messages
from evalpipe.history.messages import MergedBranch
from evalpipe.history.pull_requests import pull_request_of


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("Merge pull request #12 from ada/fix\n\nRepair the clock\n\nlong", "Repair the clock"),
        ("Merge pull request #12 from ada/fix", "Merge pull request #12 from ada/fix"),
        ("Merge pull request 'Repair it' (#12) from fix into main\n\nReviewed-on: x", "Repair it"),
        ("Merge branch 'fix' into 'main'\n\nRepair\n\nSee merge request a/b!1", "Repair"),
        ("Merge branch 'fix' into 'main'\n\nSee merge request a/b!1", "Merge branch 'fix' into 'main'"),
        ("Merged PR 12: Repair", "Repair"),
        ("Repair the clock (#12)\n\nbody", "Repair the clock"),
        ("Merge sort for the list", "Merge sort for the list"),
        ('Merge "Repair the clock" into main', "Repair the clock"),
        ("Repair the clock (GH-12)", "Repair the clock"),
        ("Pull request #12: Repair", "Repair"),
        ("Merged PR 12: Merged PR 11: Repair", "Repair"),
        ("Merge PR #12: Repair", "Repair"),
        ("Repair (!12)", "Repair"),
        ("Repair (team/clock!12)", "Repair"),
        ("Merge pull request 'Repair it' (!12) from fix into main", "Repair it"),
        ("Merge #12\n\n12: Repair it r=grace a=ada\n\nlong", "Repair it"),
        ("Merge branch 'x'\n\nAsk at 12: Repair r=grace a=ada", "Ask at 12: Repair r=grace a=ada"),
        ("Rollup merge of #12 - ada:fix, r=grace\n\nRepair", "Repair"),
        ("Merge pull request #12 from ada/fix\n\nAutomatic merge from submit-queue (batch 1, 2)\n\nRepair", "Repair"),
        ("Merge pull request #12 in TEAM/clock from fix to main\n\n* commit '0a1b':\n  Repair\n  More", "Repair"),
        ("Merge branch 'fix'\n\n* fix:\n  Repair\n  More\n", "Repair"),
        ("Merge remote branch 'ada/fix'\n\nRepair", "Repair"),
        ("Merge branch 'main' into fix\n\n# Conflicts:\n#\tsrc/a.py\n#\tb", "Merge branch 'main' into fix"),
        ("Merge branch 'fix'\n\nConflicts:\n\tsrc/a.py\n\nRepair", "Repair"),
        ("Merge commit 'abcdef1' into main\n\nRepair", "Repair"),
        ("", ""),
    ],
)
def test_title(message: str, title: str) -> None:
    assert messages.title_of(message) == title


def test_description_is_what_a_person_wrote() -> None:
    message = (
        "Merge pull request #12 from ada/fix\n\nRepair the clock\n\nIt was late.\n\n"
        "Co-authored-by: Grace <g@example.org>\nSigned-off-by: Ada <a@example.org>\n"
    )
    assert messages.description_of(message) == "Repair the clock\n\nIt was late."
    assert messages.description_of("Merge branch 'x'\n\nSee merge request a/b!1") == ""
    assert messages.description_of("Merge branch 'x'\n\nConflicts:\r\n\ta b\r\n\tc\n\nWhy") == "Why"
    assert messages.description_of("Merge #12\n\n12: Repair r=grace a=ada\n\nlong") == "Repair\n\nlong"
    assert messages.description_of("Repair\n\n* changes: many") == "Repair\n\n* changes: many"
    assert messages.description_of("Repair (#3)\n\n* one\n* two") == "Repair\n\n* one\n* two"


@pytest.mark.parametrize(
    ("subject", "branch"),
    [
        ("Merge branch 'main' into feature", MergedBranch("main", None, "feature")),
        ("Merge branch 'main' into 'feature/x'", MergedBranch("main", None, "feature/x")),
        ("Merge branch 'main' of github.com:team/clock", MergedBranch("main", "github.com:team/clock", None)),
        (
            "Merge branch 'main' of https://example.org/clock into x",
            MergedBranch("main", "https://example.org/clock", "x"),
        ),
        ("Merge remote-tracking branch 'origin/main' into x", MergedBranch("main", None, "x")),
        ("Merge remote-tracking branch 'upstream/main'", MergedBranch("main", None, None)),
        ("Merge remote-tracking branch 'refs/remotes/origin/main'", MergedBranch("main", None, None)),
        ("Merge commit 'origin/main' into fix", MergedBranch("main", None, "fix")),
        ("Merge commit 'abcdef1' into fix", None),
        ("Merge remote-tracking branch 'grace/main'", MergedBranch("grace/main", None, None)),
        ("Merge branch 'fix/main'", MergedBranch("fix/main", None, None)),
        ("Merge branches 'a' and 'b'", MergedBranch("a", None, None)),
        ("Merged in branch main into fix", MergedBranch("main", None, "fix")),
        ("Merge pull request #1 from ada/main", None),
        ("Merge tag 'v1'", MergedBranch("v1", None, None)),
        ("Merge tag '3.12.0' into next", MergedBranch("3.12.0", None, "next")),
    ],
)
def test_merged_branch(subject: str, branch: MergedBranch | None) -> None:
    assert messages.merged_branch(subject) == branch


@pytest.mark.parametrize(
    ("message", "commit"),
    [
        (f'Revert "x"\n\nThis reverts commit {"a" * 40}.', "a" * 40),
        (f'Revert "x"\n\nThis reverts commit {"a" * 40}, reversing\nchanges made to {"b" * 40}.', "a" * 40),
        ("x\n\nThis reverts commit abcdef1.", "abcdef1"),
        (f"x\n\nThis reverts commits:\n\n* {'a' * 40}\n* {'b' * 40}", "a" * 40),
        (f"x\n\nThis reverts commit {'a' * 64}", "a" * 64),
        (f"x\n\nHe said: if this reverts commit {'a' * 40} then", None),
        ("x\n\nThis reverts commit xyz", None),
    ],
)
def test_reverted_commit(message: str, commit: str | None) -> None:
    assert messages.reverted_commits(message)[:1] == ([] if commit is None else [commit])


def test_reverted_number() -> None:
    assert messages.reverted_number('Revert "x" (#13)\n\nReverts team/clock#12') == ("#", 12)
    assert messages.reverted_number("Reverts !12") == ("!", 12)
    assert messages.reverted_number("x\n\nThis reverts merge request team/clock!12") == ("!", 12)
    assert messages.reverted_number('Back out "x"\n\nOriginal Phabricator Diff: D12') == ("D", 12)
    assert messages.reverted_number("Reverts the list #12 times") is None
    assert messages.reverted_number('Revert "x (#12)" (#13)') == ("#", 12)
    assert messages.reverted_number('Revert "Revert "x (#11)" (#12)" (#13)') == ("#", 12)
    assert messages.reverted_number('Revert "x (#11)"\n\nReverts team/clock#12') == ("#", 12)
    assert messages.reverted_number('Revert "Revert "x (#12)""') is None
    assert messages.reverted_number('Reapply "x (#12)"') is None


@pytest.mark.parametrize(
    "title",
    [
        'Revert "x"',
        'Reverted "x"',
        'Reapply "x"',
        "revert: x",
        'Revert: "x"',
        'Back out "x"',
        'Backed out "x"',
        'Backout of "x"',
        "Backed out 3 changesets (bug 12) for failures",
        'Rollback "x"',
        "Automated rollback of commit 0123456789abcdef0123456789abcdef01234567.",
        "Automated g4 rollback of changelist 123456789.",
    ],
)
def test_revert_titles(title: str) -> None:
    assert messages.is_revert_title(title)


@pytest.mark.parametrize(
    "title",
    [
        "Revert to the saved state",
        "Add revert button",
        "Roll back 2 steps",
        "Rollback on errors",
        'Print "Revert" in the menu',
    ],
)
def test_titles_that_are_no_revert(title: str) -> None:
    assert not messages.is_revert_title(title)


@pytest.mark.parametrize(
    "title",
    [
        "Release 1.2",
        "Release v1.2.3",
        "release: 1.2.0",
        "chore(release): 1.2.0",
        "chore(release): release 1.2.0",
        "chore: release main 1.2.0",
        "Release version 1.2.0",
        "Preparing release 1.2.0",
        "Prepare for the next release",
        "prepare 0.3.1",
        "1.2.0",
        "v1.2.0-rc.1",
        "1.2.0rc1",
        "0.5.1 patch release",
        "Bump version",
        "Bump version to 1.2.0",
        "Bump version: 1.1.0 -> 1.2.0",
        "Bump to 1.2.0",
        "bump the package version number to 2.0",
        "Update version to 0.5.2.dev",
        "Version bump",
        "Back to development",
        "Begin development on 1.3",
        "chore(release): 1.2.0 [skip ci]",
        "chore(release): publish",
        "chore(release): publish v1.2.0",
        "Publish",
        "Version Packages",
        "Version Packages (beta)",
        "RELEASING: Releasing 1 package(s)",
        "Bump version: 1.2.3 → 1.2.4",
        "bump: version 1.2.3 → 1.2.4",
        "(cargo-release) version 1.2.3",
        ":bookmark: v1.2.3",
        "🔖 Release 1.2.3",
        "Updating version to 1.2.3",
        "Bump minor version",
        'Bump version to "3.0.0".',
        "Bump 1.2 to 1.3",
        "Tagging 1.2.3",
        "Start 2.0 development",
        "Post-release version bump",
    ],
)
def test_release_titles(title: str) -> None:
    assert messages.is_release_title(title)


@pytest.mark.parametrize(
    "title",
    [
        "Support Python 3.12",
        "Drop 3.7",
        "Bump ruff from 0.9.4 to 0.9.9",
        "Update version comparison to use packaging",
        "Release the lock when the thread ends",
        "Prepare release notes generator",
        "Start development server in background",
        "Set version of the protocol in the header",
        "Fix release of memory",
        "1.2 is too old for this",
        "Bump 2.1 tests to rc1",
        "Publish events on exit",
        "Version packages by their content",
        "Tag 1.2 images for the registry",
    ],
)
def test_titles_that_are_no_release(title: str) -> None:
    assert not messages.is_release_title(title)


def test_picked_commits_are_in_order() -> None:
    message = f"x\n\n(cherry picked from commit {'a' * 40})\n(cherry picked from commit {'b' * 40})\n"
    assert messages.picked_commits(message) == ["a" * 40, "b" * 40]
    assert messages.picked_commits("cherry picked from commit abcdef1") == []


@pytest.mark.parametrize(
    "line",
    [
        "This is a reland of abcdef1",
        "This is a reland of commit abcdef1, with a fix.",
        "This relands commit abcdef1.",
        "This reapplies commit abcdef1.",
        "Re-land of abcdef1",
        "Recommit abcdef1",
    ],
)
def test_what_lands_again_names_what_it_repeats(line: str) -> None:
    assert messages.picked_commits(f'Reland "x"\n\n{line}\n\n> Repair\n') == ["abcdef1"]
    assert messages.picked_commits(f"x\n\n> {line}\n") == []


@given(st.text(max_size=200))
def test_parsers_take_any_text(text: str) -> None:
    assert "\n" not in messages.title_of(text)
    assert messages.description_of(text) == messages.description_of(text).strip()
    messages.merged_branch(text)
    messages.is_release_title(text)
    messages.is_revert_title(text)
    messages.reverted_commits(text)
    messages.reverted_number(text)
    messages.picked_commits(text)


TITLES = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="#!'"), min_size=1, max_size=30)


@given(TITLES, st.integers(1, 10**7))
def test_number_and_title_come_back_out_of_a_forge_message(title: str, number: int) -> None:
    for message in (
        f"{title} (#{number})\n\nbody",
        f"Merge pull request #{number} from ada/fix\n\n{title}",
        f"Merged PR {number}: {title}",
        f"Merge branch 'fix' into 'main'\n\n{title}\n\nSee merge request team/clock!{number}",
    ):
        request = pull_request_of(message)
        assert request is not None
        assert request.number == number
        assert messages.title_of(message) == title or messages.description_of(title) == ""
