from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.history import messages

NUMBERS = {
    "Merge pull request #12 from ada/fix-3\n\nRepair the clock": 12,
    "Merge pull request #12 in TEAM/clock from fix to main": 12,
    "Merge pull request 'Repair the clock (#3)' (#12) from fix into main": 12,
    "Merged in fix/clock (pull request #12)\n\nRepair": 12,
    "Pull request #12: Repair the clock": 12,
    "Merged PR 12: Repair the clock": 12,
    "Auto merge of #12 - ada:fix, r=grace": 12,
    "Merge #12": 12,
    "Merge #12: Repair": 12,
    "Repair the clock (#12)": 12,
    "Repair the clock (#3) (#12)\n\n* more": 12,
    'Revert "Repair the clock (#12)" (#13)': 13,
    "Repair the clock\n\nSee merge request team/clock!12": 12,
    "Merge branch 'fix' into 'main'\n\nRepair\n\nCloses #3\n\nSee merge request team/sub.group/clock!12\n": 12,
    "Merge branch 'fix' into 'main'\n\nSee merge request !12": 12,
    "Quoted\n\nSee merge request team/clock!3\n\nSee merge request team/clock!12": 12,
}


@pytest.mark.parametrize("message", NUMBERS)
def test_number_of_every_forge(message: str) -> None:
    assert messages.pull_request_number(message) == NUMBERS[message]


@pytest.mark.parametrize(
    "message",
    [
        "Repair #12",
        "Repair the clock (#12) again",
        "Repair (fixes #12)",
        "Repair\n\nas in (#12)",
        'Revert "Repair the clock (#12)"',
        "Merge branch 'fix-12'",
        "I see merge request team/clock!12 was closed",
        "Merge pull request 12",
        "",
        "\n\n",
    ],
)
def test_number_that_is_none(message: str) -> None:
    assert messages.pull_request_number(message) is None


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
    assert messages.description_of("Repair (#3)\n\n* one\n* two") == "Repair\n\n* one\n* two"


@pytest.mark.parametrize(
    ("subject", "branch"),
    [
        ("Merge branch 'main' into feature", "main"),
        ("Merge branch 'main' of github.com:team/clock", "main"),
        ("Merge branch 'main' of https://example.org/clock into x", "main"),
        ("Merge remote-tracking branch 'origin/main' into x", "main"),
        ("Merge remote-tracking branch 'upstream/main'", "main"),
        ("Merge branch 'fix/main'", "fix/main"),
        ("Merge branches 'a' and 'b'", "a"),
        ("Merge pull request #1 from ada/main", None),
        ("Merge tag 'v1'", None),
    ],
)
def test_merged_branch(subject: str, branch: str | None) -> None:
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
    assert messages.reverted_commit(message) == commit


def test_reverted_number() -> None:
    assert messages.reverted_number('Revert "x" (#13)\n\nReverts team/clock#12') == 12
    assert messages.reverted_number("Reverts !12") == 12
    assert messages.reverted_number("Reverts the list #12 times") is None


@pytest.mark.parametrize("title", ['Revert "x"', 'Reverted "x"', 'Reapply "x"', "revert: x", 'Revert: "x"'])
def test_revert_titles(title: str) -> None:
    assert messages.is_revert_title(title)


@pytest.mark.parametrize("title", ["Revert to the saved state", "Add revert button", 'Print "Revert" in the menu'])
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
    ],
)
def test_titles_that_are_no_release(title: str) -> None:
    assert not messages.is_release_title(title)


@pytest.mark.parametrize(
    ("author", "message"),
    [
        ("Ada", "x\n\nCo-authored-by: Claude <noreply@anthropic.com>"),
        ("Ada", "x\n\nCo-Authored-By: Claude Opus 4.6 <noreply@anthropic.com>"),
        ("Ada", "x\n\n🤖 Generated with [Claude Code](https://claude.com/claude-code)"),
        ("Ada", "x\n\nCo-authored-by: Copilot <175728472+Copilot@users.noreply.github.com>"),
        ("Ada", "x\n\nCo-authored-by: Cursor <cursoragent@cursor.com>"),
        ("Ada", "x\n\nMade-with: Cursor"),
        ("Ada", "x\n\nCo-authored-by: aider (gpt-5) <noreply@aider.chat>"),
        ("Ada (aider)", "x"),
        ("devin-ai-integration[bot]", "x"),
        ("copilot-swe-agent[bot]", "x"),
    ],
)
def test_coding_agents_are_seen(author: str, message: str) -> None:
    assert messages.shows_coding_agent(author, message)


@pytest.mark.parametrize(
    ("author", "message"),
    [
        ("Ada", "Move the cursor\n\nCo-authored-by: Grace <g@example.org>"),
        ("Claude Shannon", "x\n\nSigned-off-by: Claude Shannon <c@example.org>"),
        ("dependabot[bot]", "Bump gemini from 1 to 2"),
        ("Ada", "Parser generated with bison"),
        ("Ada", "x\n\nCo-authored-by: Devina <d@example.org>"),
    ],
)
def test_people_are_no_coding_agents(author: str, message: str) -> None:
    assert not messages.shows_coding_agent(author, message)


@given(st.text(max_size=200))
def test_parsers_take_any_text(text: str) -> None:
    number = messages.pull_request_number(text)
    assert number is None or number >= 0
    assert "\n" not in messages.title_of(text)
    assert messages.description_of(text) == messages.description_of(text).strip()
    messages.merged_branch(text)
    messages.is_release_title(text)
    messages.is_revert_title(text)
    messages.shows_coding_agent(text, text)


TITLES = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="#!'"), min_size=1, max_size=30)


@given(TITLES, st.integers(1, 10**7))
def test_number_and_title_come_back_out_of_a_forge_message(title: str, number: int) -> None:
    for message in (
        f"{title} (#{number})\n\nbody",
        f"Merge pull request #{number} from ada/fix\n\n{title}",
        f"Merged PR {number}: {title}",
        f"Merge branch 'fix' into 'main'\n\n{title}\n\nSee merge request team/clock!{number}",
    ):
        assert messages.pull_request_number(message) == number
        assert messages.title_of(message) == title or messages.description_of(title) == ""
