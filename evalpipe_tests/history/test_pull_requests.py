from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.history.pull_requests import Forge, PullRequest, change_id_of, pull_request_of

REQUESTS = {
    "Merge pull request #12 from ada/fix-3\n\nRepair the clock": Forge.github,
    "Merge pull request #12 in TEAM/clock from fix to main": Forge.bitbucket,
    "Merge pull request 'Repair the clock (#3)' (#12) from fix into main": Forge.github,
    "Merged in fix/clock (pull request #12)\n\nRepair": Forge.bitbucket,
    "Pull request #12: Repair the clock\n\nMerge in TEAM/clock from fix to main": Forge.bitbucket,
    "Merged PR 12: Repair the clock": Forge.azure_devops,
    "Merge pull request 12 from fix/clock into main": Forge.azure_devops,
    "Auto merge of #12 - ada:fix, r=grace": Forge.github,
    "Merge #12": Forge.github,
    "Merge PR #12: Repair": Forge.github,
    "Rollup merge of #12 - ada:fix, r=grace": Forge.github,
    "Merge pull request 'Repair (!3)' (!12) from fix into main\n\nReviewed-on: https://x.org/a/pulls/12": Forge.github,
    "Repair (!12)\n\nReviewed-on: https://git.example.org/team/clock/pulls/12": Forge.github,
    "Repair (!12)\n\n* more": Forge.gitlab,
    "Repair (#3) (team/sub/clock!12)": Forge.gitlab,
    "Merge branch 'fix' into 'main'\n\nSee merge request https://x.org/team/clock/-/merge_requests/12": Forge.gitlab,
    "Merge pull request #12 from team/gh-readonly-queue/main/pr-12-0123456789": Forge.github,
    "Merge #12: Repair": Forge.github,
    "Repair the clock (#12)": Forge.github,
    "Repair the clock (#3) (#12)\n\n* more": Forge.github,
    "bpo-3: Repair the clock (GH-12)": Forge.github,
    'Revert "Repair the clock (#12)" (#12)': Forge.github,
    "Repair the clock\n\nPR-URL: https://github.com/team/clock/pull/12\nReviewed-By: Grace": Forge.github,
    "Repair the clock\n\nReviewed-on: https://codeberg.org/team/clock/pulls/12": Forge.github,
    "Repair the clock\n\nSee merge request team/clock!12": Forge.gitlab,
    "Merge branch 'fix' into 'main'\n\nRepair\n\nSee merge request team/sub.group/clock!12\n": Forge.gitlab,
    "Merge branch 'fix' into 'main'\n\nSee merge request !12": Forge.gitlab,
    "Quoted\n\nSee merge request team/clock!3\n\nSee merge request team/clock!12": Forge.gitlab,
    "Repair\n\nPart-of: <https://gitlab.example.org/team/clock/-/merge_requests/12>": Forge.gitlab,
    "Repair\n\nChange-Id: I0123\nReviewed-on: https://review.example.org/c/clock/+/12": Forge.gerrit,
    "Repair\n\nReviewed-on: https://review.example.org/3\nReviewed-on: https://review.example.org/12": Forge.gerrit,
    "Repair\n\nReviewed-on: https://review.example.org/c/clock/+/12/3": Forge.gerrit,
    "Repair\n\nDifferential Revision: https://phab.example.org/D12": Forge.phabricator,
    "Repair\n\nReviewed By: grace\n\nDifferential Revision: D12\n\nfbshipit-source-id: 0123": Forge.phabricator,
}


@pytest.mark.parametrize("message", REQUESTS)
def test_number_of_every_forge(message: str) -> None:
    assert pull_request_of(message) == PullRequest(REQUESTS[message], 12)


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
        "Repair what is wrong (!)",
        "Repair (!12) again",
        "x\n\n> Reviewed-on: https://review.example.org/12",
        "x\n\nDifferential Revision: soon",
        "",
        "\n\n",
    ],
)
def test_number_that_is_none(message: str) -> None:
    assert pull_request_of(message) is None


def test_how_a_request_is_referred_to() -> None:
    references = {forge: PullRequest(forge, 12).own_reference for forge in Forge}
    assert references == {
        Forge.github: "#12",
        Forge.gitlab: "!12",
        Forge.azure_devops: "!12",
        Forge.bitbucket: None,
        Forge.gerrit: None,
        Forge.phabricator: None,
    }


def test_change_id_is_the_last_one() -> None:
    message = f"x\n\nChange-Id: I{'a' * 40}\n\nChange-Id: I{'b' * 40}\n"
    assert change_id_of(message) == f"I{'b' * 40}"
    assert change_id_of("x\n\nsee Change-Id: I0123456789") is None


@given(st.text(max_size=200))
def test_any_text_can_be_asked(text: str) -> None:
    request = pull_request_of(text)
    assert request is None or request.number >= 0
    change_id_of(text)


TITLES = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="#!'"), min_size=1, max_size=30)


@given(TITLES, st.integers(1, 10**7))
def test_number_comes_back_whatever_the_title(title: str, number: int) -> None:
    for message, forge in (
        (f"{title} (#{number})\n\nbody", Forge.github),
        (f"Merge pull request #{number} from ada/fix\n\n{title}", Forge.github),
        (f"Merged PR {number}: {title}", Forge.azure_devops),
        (f"Merged in fix (pull request #{number})\n\n{title}", Forge.bitbucket),
        (f"Merge branch 'fix' into 'main'\n\n{title}\n\nSee merge request team/clock!{number}", Forge.gitlab),
        (f"{title}\n\nReviewed-on: https://review.example.org/c/x/+/{number}", Forge.gerrit),
        (f"{title}\n\nDifferential Revision: https://phab.example.org/D{number}", Forge.phabricator),
    ):
        assert pull_request_of(message) == PullRequest(forge, number)
