from __future__ import annotations

from datetime import UTC, datetime

import pytest

from evalpipe.history.candidates import Candidate
from evalpipe.history.decision import Category, MiningReason
from evalpipe.history.pull_requests import Forge
from evalpipe.history.shapes import Shape
from evalpipe_tests.history.builder import Builder, File
from evalpipe_tests.history.mining import START, WORK, merge_of, mined, only


def test_direct_commit(clock: Builder) -> None:
    parent = clock.branches["main"]
    commit = clock.commit(WORK, "Repair the hand", author_date=START)
    candidate = only(clock)
    assert (candidate.shape, candidate.number, candidate.reason) == (Shape.direct, None, MiningReason.kept)
    assert (candidate.commit, candidate.parent, candidate.tree) == (commit, parent, clock.tree(commit))
    assert candidate.candidate_id == f"clock-{commit[:10]}"
    assert candidate.author_date == datetime.fromtimestamp(START, UTC)
    assert candidate.merge_date == datetime.fromtimestamp(clock.clock, UTC)
    assert candidate.source_files == (b"src/clock.py",)
    assert candidate.test_files == (b"tests/test_clock.py",)
    assert (candidate.files_changed, candidate.lines_added, candidate.lines_removed) == (2, 3, 1)
    assert candidate.decision == "kept"


@pytest.mark.parametrize(
    "message",
    [
        "Repair (#12)",
        "Merged PR 12: Repair",
        "Repair\n\nSee merge request team/clock!12",
        "Merged in fix (pull request #12)\n\nRepair",
        "Pull request #12: Repair",
        "Repair\n\nReviewed-on: https://review.example.org/c/clock/+/12",
        "Repair\n\nDifferential Revision: https://phab.example.org/D12",
    ],
)
def test_squash_of_every_forge(clock: Builder, message: str) -> None:
    commit = clock.commit(WORK, message)
    candidate = only(clock)
    assert (candidate.shape, candidate.number) == (Shape.squash, 12)
    assert candidate.candidate_id == f"clock-12-{commit[:10]}"


def test_change_of_gerrit_without_a_number_is_a_squash(clock: Builder) -> None:
    clock.commit(WORK, f"Repair\n\nChange-Id: I{'a' * 40}\n")
    candidate = only(clock)
    assert (candidate.shape, candidate.number, candidate.change_id) == (Shape.squash, None, f"I{'a' * 40}")


@pytest.mark.parametrize(
    ("message", "forge"),
    [
        ("Merge pull request #12 from grace/fix", Forge.github),
        ("Merge pull request #12 in TEAM/clock from fix to main", Forge.bitbucket),
        ("Merge pull request 12 from fix into main", Forge.azure_devops),
        ("Merged in grace/fix (pull request #12)\n\nRepair", Forge.bitbucket),
        ("Merge branch 'fix' into 'main'\n\nRepair\n\nSee merge request team/clock!12", Forge.gitlab),
        ("Merge branch 'main' into 'main'\n\nRepair\n\nSee merge request team/clock!12", Forge.gitlab),
    ],
)
def test_merge_of_every_forge(clock: Builder, message: str, forge: Forge) -> None:
    merge_of(clock, WORK, message, "Repair")
    candidate = only(clock)
    assert (candidate.shape, candidate.forge, candidate.number) == (Shape.merge, forge, 12)
    assert candidate.reason is MiningReason.kept


def test_merge_is_one_change_by_its_branch_author(clock: Builder) -> None:
    merge_of(clock, WORK, "Merge pull request #12 from grace/fix\n\nRepair", "one", "two", "three")
    candidate = only(clock)
    assert (candidate.shape, candidate.number, candidate.author) == (Shape.merge, 12, "Grace")
    assert candidate.subject == "Merge pull request #12 from grace/fix"
    assert candidate.author_date == datetime.fromtimestamp(START + 2 * 3600, UTC)
    assert candidate.files_changed == 3


def test_rebase_merge_is_one_change(clock: Builder) -> None:
    parent = clock.branches["main"]
    clock.commit({b"src/clock.py": b"1\n", b"draft": b"1\n"}, "Repair, part 1 (#12)")
    clock.commit({b"src/clock.py": b"2\n", b"draft": None}, "Repair, part 2 (#12)")
    last = clock.commit({b"tests/test_clock.py": b"1\n"}, "Test it (#12)")
    clock.commit({b"src/clock.py": b"3\n"}, "Something else (#13)")
    change, other = mined(clock)
    assert (change.shape, change.commit, change.parent) == (Shape.rebase, last, parent)
    assert (len(change.branch_commits), other.branch_commits) == (2, ())
    assert change.source_files == (b"src/clock.py",)
    assert (change.files_changed, change.lines_added, change.lines_removed) == (2, 2, 1)
    assert (change.reason, change.category) == (MiningReason.kept, Category.single_file_repair)
    assert (other.shape, other.number) == (Shape.squash, 13)


@pytest.mark.parametrize(
    "trailer",
    [
        "PR-URL: https://github.com/team/clock/pull/12",
        "Part-of: <https://gitlab.example.org/team/clock/-/merge_requests/12>",
    ],
)
def test_rebase_merge_by_a_trailer_is_one_change(clock: Builder, trailer: str) -> None:
    clock.commit({b"src/clock.py": b"1\n"}, f"Repair\n\n{trailer}")
    clock.commit({b"tests/test_clock.py": b"1\n"}, f"Test it\n\n{trailer}\n")
    candidate = only(clock)
    assert (candidate.shape, candidate.number, candidate.files_changed) == (Shape.rebase, 12, 2)


def test_same_number_later_on_is_another_change(clock: Builder) -> None:
    clock.commit(WORK, "Repair (#12)")
    clock.commit({b"x": b"1"}, "Other")
    clock.commit({b"src/clock.py": b"5\n"}, "Repair again (#12)")
    assert [candidate.shape for candidate in mined(clock)] == [Shape.squash, Shape.direct, Shape.squash]


def test_gitlab_squash_with_merge_commit_is_one_change(clock: Builder) -> None:
    base = clock.branches["main"]
    squash = clock.commit(WORK, "Repair", branch="topic", parents=[base])
    merge = clock.commit(
        WORK, "Merge branch 'fix' into 'main'\n\nRepair\n\nSee merge request team/clock!12", parents=[base, squash]
    )
    assert clock.tree(merge) == clock.tree(squash)
    candidate = only(clock)
    assert (candidate.commit, candidate.shape, candidate.number) == (merge, Shape.merge, 12)
    assert candidate.reason is MiningReason.kept


def test_branch_that_took_in_the_mainline_changes_only_its_own_files(clock: Builder) -> None:
    base = clock.branches["main"]
    work = clock.commit(WORK, "work", branch="topic", parents=[base])
    main = clock.commit({b"other.py": b"1"}, "Other")
    back = clock.commit({b"other.py": b"1"}, "Merge branch 'main' into topic", branch="topic", parents=[work, main])
    clock.commit(WORK, "Merge pull request #12 from a/topic", parents=[main, back])
    _other, merge = mined(clock)
    assert (merge.shape, merge.files_changed, merge.reason) == (Shape.merge, 2, MiningReason.kept)


@pytest.mark.parametrize(
    "subject",
    [
        "Merge branch 'main' into topic",
        "Merge branch 'main' of example.org:team/clock",
        "Merge remote-tracking branch 'origin/main'",
        "Merge branch 'master'",
    ],
)
def test_foxtrot_is_a_back_merge(clock: Builder, subject: str) -> None:
    base = clock.branches["main"]
    topic = clock.commit({b"src/clock.py": b"9\n"}, "work", branch="topic", parents=[base])
    others = clock.commit(WORK, "Other people's work (#3)")
    clock.commit(WORK, subject, parents=[topic, others])
    work, foxtrot = mined(clock)
    assert work.shape is Shape.direct
    assert (foxtrot.shape, foxtrot.reason) == (Shape.back_merge, MiningReason.back_merge)


def foxtrot(clock: Builder, own: dict[bytes, File], others: dict[bytes, File], more: dict[bytes, File]) -> Candidate:
    """The last row: a `git pull` on top of the work `own`, which met a squashed pull request and changed `more`."""
    base = clock.branches["main"]
    local = clock.commit(own, "local work", branch="own", parents=[base])
    request = clock.commit(others, "Repair the hand (#3)", branch=None, parents=[base], author="Grace <g@example.org>")
    clock.commit({**others, **more}, "Merge branch 'main' of example.org:team/clock", parents=[local, request])
    return mined(clock)[-1]


def test_foxtrot_that_is_one_pull_request_to_the_letter_is_that_pull_request(clock: Builder) -> None:
    late = foxtrot(clock, {b"src/own.py": b"1\n"}, WORK, {})
    assert (late.shape, late.number, late.reason) == (Shape.merge, 3, MiningReason.kept)
    assert late.problem_text == "Repair the hand"


@pytest.mark.parametrize(
    ("own", "more"),
    [
        ({b"src/clock.py": b"0\n\n\n3\n"}, {b"src/clock.py": b"1\n2\n\n\n3\n"}),
        ({b"src/own.py": b"1\n"}, {b"src/clock.py": b"1\n2\n3\n"}),
        ({b"src/own.py": b"1\n"}, {b"src/own.py": b"2\n"}),
        ({b"src/own.py": b"1\n"}, {b"tests/test_clock.py": b"0\n"}),
    ],
    ids=["both changed a file", "a file of it changed again", "another file changed", "a file of it left out"],
)
def test_foxtrot_that_is_not_exactly_its_pull_request_stays_a_back_merge(
    clock: Builder, own: dict[bytes, File], more: dict[bytes, File]
) -> None:
    clock.commit({b"tests/test_clock.py": b"0\n"}, "Test")
    assert foxtrot(clock, own, WORK, more).shape is Shape.back_merge


def test_foxtrot_of_a_merged_pull_request_is_called_as_that_is(clock: Builder) -> None:
    base = clock.branches["main"]
    local = clock.commit({b"src/own.py": b"1\n"}, "local work", branch="own", parents=[base])
    work = [base]
    for number in range(2):
        work.append(clock.commit({**WORK, b"x": b"%d" % number}, f"Work {number}", branch=None, parents=[work[-1]]))
    message = 'Merge pull request #3 from a/b\n\nRevert "Repair"'
    request = clock.commit({**WORK, b"x": b"1"}, message, branch=None, parents=[base, work[-1]])
    clock.commit({**WORK, b"x": b"1"}, "Merge branch 'main' of example.org:team/clock", parents=[local, request])
    late = mined(clock)[-1]
    assert (late.shape, late.number, late.reason) == (Shape.merge, 3, MiningReason.revert)


def test_mainline_of_another_name_is_known_to_the_rules(clock: Builder) -> None:
    base = clock.branches["main"]
    topic = clock.commit({b"x": b"9\n"}, "work", branch="topic", parents=[base])
    others = clock.commit(WORK, "Other people's work (#3)")
    others = clock.commit({b"y": b"1"}, "More of it", branch=None, parents=[others])
    clock.commit({**WORK, b"y": b"1"}, "Merge branch 'stable' into topic", parents=[topic, others])
    assert mined(clock)[-1].shape is Shape.merge
    assert mined(clock, mainline="stable")[-1].shape is Shape.back_merge


def test_pull_request_with_other_work_beside_it_does_not_name_the_merge(clock: Builder) -> None:
    base = tip = clock.branches["main"]
    for number, message in enumerate(("Work", "Bump x from 1 to 2 (#3)")):
        tip = clock.commit({**WORK, b"x": b"%d" % number}, message, branch=None, parents=[tip])
    clock.commit({**WORK, b"x": b"1"}, "Merge branch '8.1.x'", parents=[base, tip])
    candidate = only(clock)
    assert (candidate.number, candidate.reason) == (3, MiningReason.kept)


def test_merge_of_what_was_already_there_is_a_back_merge(clock: Builder) -> None:
    old = clock.branches["main"]
    tip = clock.commit({b"x": b"1"})
    clock.commit(WORK, "Merge pull request #12 from a/old", parents=[tip, old])
    assert mined(clock)[-1].reason is MiningReason.back_merge


def test_octopus(clock: Builder) -> None:
    base = clock.branches["main"]
    tips = [clock.commit({b"src/%d.py" % n: b"1"}, branch=f"t{n}", parents=[base]) for n in range(2)]
    clock.commit(WORK, "Merge branches 't0' and 't1'", parents=[base, *tips])
    candidate = only(clock)
    assert (candidate.shape, candidate.reason) == (Shape.octopus, MiningReason.kept)


# Foxtrots, forks and long-lived branches, by ancestry

MERGER, OTHERS = "Ada <ada@example.org>", "Grace <g@example.org>"


def pull(clock: Builder, subject: str, others: list[str], own_authors: tuple[str, ...] = (MERGER,)) -> Builder:
    """A merge whose first parent has the commits of `own_authors`, and its second the commits `others`."""
    own = side = clock.branches["main"]
    for number, author in enumerate(own_authors):
        own = clock.commit({b"own%d" % number: b"1"}, "local work", branch="own", parents=[own], author=author)
    brought: dict[bytes, File] = {}
    for number, message in enumerate(others):
        files: dict[bytes, File] = {b"src/%d.py" % number: b"1", b"tests/test_%d.py" % number: b"1"}
        brought |= files
        if message.startswith("Merge"):
            tip = clock.commit(files, "work", branch=None, parents=[side], author=OTHERS)
            side = clock.commit(files, message, branch=None, parents=[side, tip], author=OTHERS)
        else:
            side = clock.commit(files, message, branch=None, parents=[side], author=OTHERS)
    clock.commit(brought, subject, parents=[own, side], author=MERGER)
    return clock


@pytest.mark.parametrize("subject", ["Get the others' work", "Sync", "Merged the newest state"])
@pytest.mark.parametrize("others", [["One (#3)"], ["One (#3)", "Two (#4)"], ["Merge pull request #3 from a/b"]])
def test_foxtrot_with_words_of_its_own_is_a_back_merge(clock: Builder, subject: str, others: list[str]) -> None:
    merge = mined(pull(clock, subject, others))[-1]
    assert (merge.shape, merge.reason) == (Shape.back_merge, MiningReason.back_merge)


def test_topic_branch_merged_with_words_of_its_own_is_a_merge(clock: Builder) -> None:
    merge = mined(pull(clock, "Get the repair", ["One", "Two"]))[-1]
    assert (merge.shape, merge.reason) == (Shape.merge, MiningReason.kept)


def test_main_of_a_fork_is_a_contribution_when_others_wrote_the_mainline_meanwhile(clock: Builder) -> None:
    subject = "Merge branch 'main' of git://example.org/grace/clock"
    contribution = mined(pull(clock, subject, ["Repair"], own_authors=(MERGER, "Joan <j@example.org>")))[-1]
    assert (contribution.shape, contribution.reason) == (Shape.merge, MiningReason.kept)


def test_main_merged_into_a_topic_is_a_back_merge_whoever_wrote_the_topic(clock: Builder) -> None:
    subject = "Merge branch 'main' of git://example.org/team/clock into topic"
    merge = mined(pull(clock, subject, ["Repair"], own_authors=(MERGER, "Joan <j@example.org>")))[-1]
    assert merge.shape is Shape.back_merge


def test_maintenance_branch_with_several_pull_requests_is_an_integration(clock: Builder) -> None:
    merge = mined(pull(clock, "Merge branch '8.1.x'", ["One (#3)", "Merge pull request #4 from a/b"]))[-1]
    assert (merge.shape, merge.number, merge.reason) == (Shape.integration, None, MiningReason.several_changes)


def test_maintenance_branch_with_one_pull_request_forwards_it(clock: Builder) -> None:
    merge = mined(pull(clock, "Merge branch '8.1.x'", ["Merge pull request #4 from a/b", "Change notes"]))[-1]
    assert (merge.shape, merge.forge, merge.number) == (Shape.merge, Forge.github, 4)
    assert merge.reason is MiningReason.kept


@pytest.mark.parametrize(
    ("inner", "shape"),
    [
        (["Merge pull request #3 from a/b", "Merge pull request #4 from a/b"], Shape.integration),
        (["Merge pull request #3 from a/b"], Shape.merge),
        # By one author: people write `(#12)` for issues too.
        (["Repair (#3)", "Repair (#4)"], Shape.merge),
    ],
)
def test_pull_request_of_a_branch_to_which_others_were_merged(clock: Builder, inner: list[str], shape: Shape) -> None:
    merge = mined(pull(clock, "Merge pull request #12 from team/next", inner))[-1]
    assert (merge.shape, merge.number) == (shape, 12)


@pytest.mark.parametrize("subject", ["Merge tag '3.12.0'", "Merge branch '3.x'", "Get what was released"])
def test_line_with_a_release_and_several_changes_is_an_integration(clock: Builder, subject: str) -> None:
    merge = mined(pull(clock, subject, ["Repair the hand", "Wind the spring", "Release 3.12.0"]))[-1]
    assert (merge.shape, merge.reason) == (Shape.integration, MiningReason.several_changes)


def test_release_line_with_one_change_forwards_it(clock: Builder) -> None:
    merge = mined(pull(clock, "Merge tag '3.12.1'", ["Repair the hand", "Update changelog", "Release 3.12.1"]))[-1]
    assert (merge.shape, merge.reason) == (Shape.merge, MiningReason.kept)


def test_pull_request_that_brings_those_of_several_authors_is_an_integration(clock: Builder) -> None:
    base = clock.branches["main"]
    tip = clock.commit({b"src/a.py": b"1"}, "One (#3)", branch=None, parents=[base], author=OTHERS)
    tip = clock.commit({b"tests/test_a.py": b"1"}, "Two (#4)", branch=None, parents=[tip], author=MERGER)
    files: dict[bytes, File] = {b"src/a.py": b"1", b"tests/test_a.py": b"1"}
    clock.commit(files, "Merge pull request #12 from team/next", parents=[base, tip])
    assert mined(clock)[-1].shape is Shape.integration


def test_squash_of_several_squashed_pull_requests_is_an_integration(clock: Builder) -> None:
    clock.commit(WORK, "Merge next (#12)\n\n* Repair the hand (#3)\r\n\r\n* Wind the spring (#4)\r\n")
    assert only(clock).shape is Shape.integration


def test_fork_merged_into_a_branch_named_after_its_owner_is_a_contribution(clock: Builder) -> None:
    subject = "Merge branch 'main' of https://example.org/grace/clock into grace-main"
    assert mined(pull(clock, subject, ["Repair"]))[-1].shape is Shape.merge
