from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalpipe.history.candidates import Candidate, MiningRules, candidate_id, funnel, mine
from evalpipe.history.decision import Category, CategoryRule, MiningReason
from evalpipe.history.issues import IssueLink, IssueText, IssueTexts, LinkPlace, LinkStrength, TextKind
from evalpipe.history.problem import ProblemSource
from evalpipe.history.repository import Repository
from evalpipe.history.shapes import Shape
from evalpipe_tests.history.builder import SUBMODULE, Builder, File

WORK: dict[bytes, File] = {b"src/clock.py": b"1\n2\n", b"tests/test_clock.py": b"1\n"}
START = 1_700_000_000


@pytest.fixture
def source(tmp_path: Path) -> Builder:
    builder = Builder(tmp_path / "source.git")
    builder.commit({b"README": b"clock\n", b"src/clock.py": b"0\n", b"pyproject.toml": b"[project]\n"}, "start")
    return builder


def mined(source: Builder, texts: IssueTexts | None = None, **rules: Any) -> list[Candidate]:
    """Everything after the root."""
    settings = MiningRules(repository="clock", **rules)
    root, *others = mine(Repository(source.path), source.branches["main"], settings, texts)
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


# Shapes


def test_direct_commit(source: Builder) -> None:
    parent = source.branches["main"]
    commit = source.commit(WORK, "Repair the hand", author_date=START)
    candidate = only(source)
    assert (candidate.shape, candidate.number, candidate.reason) == (Shape.direct, None, MiningReason.kept)
    assert (candidate.commit, candidate.parent, candidate.tree) == (commit, parent, source.tree(commit))
    assert candidate.candidate_id == f"clock-{commit[:10]}"
    assert candidate.author_date == datetime.fromtimestamp(START, UTC)
    assert candidate.merge_date == datetime.fromtimestamp(source.clock, UTC)
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
    ],
)
def test_squash_of_every_forge(source: Builder, message: str) -> None:
    commit = source.commit(WORK, message)
    candidate = only(source)
    assert (candidate.shape, candidate.number) == (Shape.squash, 12)
    assert candidate.candidate_id == f"clock-12-{commit[:10]}"


def test_merge_is_one_change_by_its_branch_author(source: Builder) -> None:
    merge_of(source, WORK, "Merge pull request #12 from grace/fix\n\nRepair", "one", "two", "three")
    candidate = only(source)
    assert (candidate.shape, candidate.number, candidate.author) == (Shape.merge, 12, "Grace")
    assert candidate.subject == "Merge pull request #12 from grace/fix"
    assert candidate.author_date == datetime.fromtimestamp(START + 2 * 3600, UTC)
    assert candidate.files_changed == 3


def test_rebase_merge_is_one_change(source: Builder) -> None:
    parent = source.branches["main"]
    source.commit({b"src/clock.py": b"1\n", b"draft": b"1\n"}, "Repair, part 1 (#12)")
    source.commit({b"src/clock.py": b"2\n", b"draft": None}, "Repair, part 2 (#12)")
    last = source.commit({b"tests/test_clock.py": b"1\n"}, "Test it (#12)")
    source.commit({b"src/clock.py": b"3\n"}, "Something else (#13)")
    change, other = mined(source)
    assert (change.shape, change.commit, change.parent) == (Shape.rebase, last, parent)
    assert change.source_files == (b"src/clock.py",)
    assert (change.files_changed, change.lines_added, change.lines_removed) == (2, 2, 1)
    assert (change.reason, change.category) == (MiningReason.kept, Category.single_file_repair)
    assert (other.shape, other.number) == (Shape.squash, 13)


def test_same_number_later_on_is_another_change(source: Builder) -> None:
    source.commit(WORK, "Repair (#12)")
    source.commit({b"x": b"1"}, "Other")
    source.commit({b"src/clock.py": b"5\n"}, "Repair again (#12)")
    assert [candidate.shape for candidate in mined(source)] == [Shape.squash, Shape.direct, Shape.squash]


def test_gitlab_squash_with_merge_commit_is_one_change(source: Builder) -> None:
    base = source.branches["main"]
    squash = source.commit(WORK, "Repair", branch="topic", parents=[base])
    merge = source.commit(
        WORK, "Merge branch 'fix' into 'main'\n\nRepair\n\nSee merge request team/clock!12", parents=[base, squash]
    )
    assert source.tree(merge) == source.tree(squash)
    candidate = only(source)
    assert (candidate.commit, candidate.shape, candidate.number) == (merge, Shape.merge, 12)
    assert candidate.reason is MiningReason.kept


def test_branch_that_took_in_the_mainline_changes_only_its_own_files(source: Builder) -> None:
    base = source.branches["main"]
    work = source.commit(WORK, "work", branch="topic", parents=[base])
    main = source.commit({b"other.py": b"1"}, "Other")
    back = source.commit({b"other.py": b"1"}, "Merge branch 'main' into topic", branch="topic", parents=[work, main])
    source.commit(WORK, "Merge pull request #12 from a/topic", parents=[main, back])
    _other, merge = mined(source)
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
def test_foxtrot_is_a_back_merge(source: Builder, subject: str) -> None:
    base = source.branches["main"]
    topic = source.commit({b"src/clock.py": b"9\n"}, "work", branch="topic", parents=[base])
    others = source.commit(WORK, "Other people's work (#3)")
    source.commit(WORK, subject, parents=[topic, others])
    work, foxtrot = mined(source)
    assert work.shape is Shape.direct
    assert (foxtrot.shape, foxtrot.reason) == (Shape.back_merge, MiningReason.back_merge)


def test_mainline_of_another_name_is_known_to_the_rules(source: Builder) -> None:
    base = source.branches["main"]
    topic = source.commit({b"x": b"9\n"}, "work", branch="topic", parents=[base])
    others = source.commit(WORK, "Other people's work (#3)")
    source.commit(WORK, "Merge branch 'stable' into topic", parents=[topic, others])
    assert mined(source)[-1].shape is Shape.merge
    assert mined(source, mainline="stable")[-1].shape is Shape.back_merge


def test_merge_of_what_was_already_there_is_a_back_merge(source: Builder) -> None:
    old = source.branches["main"]
    tip = source.commit({b"x": b"1"})
    source.commit(WORK, "Merge pull request #12 from a/old", parents=[tip, old])
    assert mined(source)[-1].reason is MiningReason.back_merge


def test_octopus(source: Builder) -> None:
    base = source.branches["main"]
    tips = [source.commit({b"src/%d.py" % n: b"1"}, branch=f"t{n}", parents=[base]) for n in range(2)]
    source.commit(WORK, "Merge branches 't0' and 't1'", parents=[base, *tips])
    candidate = only(source)
    assert (candidate.shape, candidate.reason) == (Shape.octopus, MiningReason.kept)


def test_reverts_are_linked_and_what_they_revert_stays(source: Builder) -> None:
    work = source.commit(WORK, "Repair (#12)")
    back = {b"src/clock.py": b"0\n", b"tests/test_clock.py": b"0\n"}
    revert = source.commit(back, f'Revert "Repair (#12)"\n\nThis reverts commit {work}.')
    source.commit(WORK, f'Reapply "Repair (#12)"\n\nThis reverts commit {revert}.')
    source.commit(back, 'Revert "Repair" (#14)\n\nReverts team/clock#12')
    merge_of(source, WORK, "Merge pull request #15 from a/revert", f"Take it back\n\nThis reverts commit {work}.")
    candidates = mined(source)
    assert [candidate.reason for candidate in candidates] == [MiningReason.kept] + [MiningReason.revert] * 4
    assert [candidate.reverts for candidate in candidates] == [None, work, revert, work, work]


# Reasons


def many(name: bytes, count: int) -> dict[bytes, File]:
    return {b"src/%s%d.py" % (name, number): b"1" for number in range(count)}


def test_reasons_by_what_changed(source: Builder) -> None:
    changes: list[tuple[dict[bytes, File], str, MiningReason]] = [
        ({}, "Nothing", MiningReason.no_change),
        ({b"docs/testing.md": b"1", b"README": b"2"}, "Docs", MiningReason.docs_only),
        ({b"requirements.txt": b"a", b"CHANGELOG.md": b"1"}, "Dependencies", MiningReason.dependency_only),
        ({b"vendor/x.go": b"1"}, "Vendored", MiningReason.generated_only),
        ({b"lib": (SUBMODULE, b"1" * 40), b".gitmodules": b"x"}, "Submodule", MiningReason.submodule_only),
        ({b"tests/test_a.py": b"1"}, "Tests", MiningReason.no_source),
        ({b"src/a.py": b"1"}, "Source", MiningReason.no_tests),
        ({b"src/latest.py": b"1", b"docs/testing.md": b"2"}, "Source and docs", MiningReason.no_tests),
        ({b"src/a.py": b"2", b"tests/test_a.py": None}, "Tests go away", MiningReason.no_tests),
        ({b".github/workflows/a.yml": b"1"}, "CI", MiningReason.no_tests),
        (
            {**many(b"b", 25), b"tests/test_b.py": b"1"},
            "Many",
            MiningReason.too_many_files,
        ),
        ({**many(b"c", 24), b"tests/test_c.py": b"1"}, "Just few", MiningReason.kept),
        ({b"src/clock.py": b"9", b"tests/test_a.py": b"9"}, "Release 1.2.0", MiningReason.release),
        ({b"src/d.py": b"1", b"tests/test_d.py": b"1", b"lib": (SUBMODULE, b"2" * 40)}, "All", MiningReason.kept),
    ]
    for files, message, _reason in changes:
        source.commit(files, message)
    found = mined(source)
    assert [(row.subject, row.reason) for row in found] == [(message, reason) for _f, message, reason in changes]
    assert found[10].reason_detail == "26 files, 25 are allowed"
    assert found[6].lines_added is None


def test_merge_that_changes_nothing(source: Builder) -> None:
    base = source.branches["main"]
    topic = source.commit(WORK, "work", branch="topic", parents=[base])
    source.commit({}, "Merge pull request #12 from a/b", parents=[base, topic])
    assert only(source).reason is MiningReason.merge_without_change


def test_paths_with_any_bytes_are_carried(source: Builder) -> None:
    source.commit({b"src/\xff one.py": b"1\n", b'tests/a"b\t.py': b"1\n"}, "Repair")
    candidate = only(source)
    assert candidate.source_files == (b"src/\xff one.py",)
    assert candidate.test_files == (b'tests/a"b\t.py',)
    assert candidate.lines_added == 2


def test_team_globs_and_limits(source: Builder) -> None:
    source.commit({b"checks/a.txt": b"1", b"scripts/a.py": b"1", b"big/gen.py": b"1"}, "Repair")
    assert only(source).reason is MiningReason.no_tests
    rules: dict[str, Any] = {
        "test_globs": ("checks/**",),
        "source_globs": ("scripts/**",),
        "generated_globs": ("big/**",),
    }
    assert only(source, **rules).reason is MiningReason.kept
    assert only(source, **rules, max_files=1).reason is MiningReason.too_many_files
    assert only(source, **rules, max_files=2).reason is MiningReason.kept


def test_categories_have_their_rule(source: Builder) -> None:
    changes: list[tuple[dict[bytes, File], Category, CategoryRule]] = [
        ({b"src/a.py": b"1", b"tests/t.py": b"1"}, Category.single_file_repair, CategoryRule.one_source_file),
        (
            {b"src/a.py": b"2", b"src/b.py": b"2", b"tests/t.py": b"2"},
            Category.multi_file_feature,
            CategoryRule.several_source_files,
        ),
        (
            {b"src/a.py": b"3", b"requirements.txt": b"a==3", b"tests/t.py": b"3"},
            Category.dependency_chore,
            CategoryRule.dependency_and_at_most_one_source_file,
        ),
        (
            {b"src/a.py": b"4", b"pyproject.toml": b"[project]\n[tool.x]\n", b"tests/t.py": b"4"},
            Category.single_file_repair,
            CategoryRule.one_source_file,
        ),
        (
            {b"src/a.py": b"5", b"src/b.py": b"5", b"requirements.txt": b"a==5", b"tests/t.py": b"5"},
            Category.multi_file_feature,
            CategoryRule.several_source_files,
        ),
        ({b"tests/t.py": b"6"}, Category.test_only, CategoryRule.tests_without_source),
        ({b"README": b"6"}, Category.other, CategoryRule.no_source),
    ]
    for files, _category, _rule in changes:
        source.commit(files)
    assert [(row.category, row.category_rule) for row in mined(source)] == [row[1:] for row in changes]


# Issues and texts


def issue(
    number: int, created: int, title: str, kind: TextKind = TextKind.issue, closed_by: str | None = None
) -> IssueText:
    return IssueText(number, kind, title, "Body", "ada", datetime.fromtimestamp(created, UTC), closed_by, ())


def test_links_are_found_in_every_place(source: Builder) -> None:
    files = {**WORK, b"CHANGELOG.md": b"- new, :issue:`5`\n", b"changelog/6.bugfix.rst": b"Hand\n"}
    merge_of(source, files, "Merge pull request #12 from a/b\n\nRepair, fixes #3", "part of #4", "done (#12)")
    texts = IssueTexts(
        [
            issue(12, START, "Repair, see #7 and #9", TextKind.pull_request),
            issue(8, START, "Late", closed_by="12"),
            issue(9, START, "Other work", TextKind.pull_request),
        ]
    )
    candidate = only(source, texts)
    assert candidate.issues == (
        IssueLink("#3", 3, LinkPlace.merge_message, LinkStrength.closing),
        IssueLink("#8", 8, LinkPlace.pull_request, LinkStrength.closing),
        IssueLink("#7", 7, LinkPlace.pull_request, LinkStrength.mention),
        IssueLink("#4", 4, LinkPlace.branch_commit, LinkStrength.mention),
        IssueLink("#6", 6, LinkPlace.changelog, LinkStrength.mention),
        IssueLink("#5", 5, LinkPlace.changelog, LinkStrength.mention),
    )


def test_only_changelog_lines_that_were_added_count(source: Builder) -> None:
    source.commit({b"CHANGELOG.md": b"- old #1\n- older #2\n"}, "Log")
    source.commit({**WORK, b"CHANGELOG.md": b"- new #3\n- old #1\n"}, "Repair")
    assert [link.key for link in mined(source)[-1].issues] == ["#3"]


def test_problem_text_is_the_issue_that_was_there_first(source: Builder) -> None:
    source.commit(WORK, "Repair (#12)\n\nFixes #1, fixes #2\nsee #3", author_date=START)
    both = IssueTexts([issue(1, START - 9, "One"), issue(2, START - 5, "Two"), issue(3, START - 9, "Three")])
    assert only(source, both).problem_text == "One\n\nBody\n\nTwo\n\nBody"
    late = IssueTexts([issue(1, START, "One"), issue(3, START - 9, "Three")])
    assert (only(source, late).problem_source, only(source, late).problem_text) == (
        ProblemSource.issue,
        "Three\n\nBody",
    )


def test_problem_text_falls_back_to_the_pull_request_then_to_the_message(source: Builder) -> None:
    source.commit(WORK, "Repair (#12)\n\nIt was late.\n\nSigned-off-by: Ada <a@b>", author_date=START)
    texts = IssueTexts([issue(12, START + 60, "Request", TextKind.pull_request)])
    assert (only(source, texts).problem_source, only(source, texts).problem_text) == (
        ProblemSource.pull_request,
        "Request\n\nBody",
    )
    after_merge = IssueTexts([issue(12, source.clock, "Request", TextKind.pull_request)])
    for texts_or_none in (after_merge, None):
        candidate = only(source, texts_or_none)
        assert candidate.problem_source is ProblemSource.commit_message
        assert candidate.problem_text == "Repair\n\nIt was late."


def test_merge_without_own_words_takes_those_of_its_branch(source: Builder) -> None:
    merge_of(source, WORK, "Merge branch 'fix'", "Start", "Repair the hand\n\nIt was late.")
    assert only(source).problem_text == "Start\n\nRepair the hand\n\nIt was late."


def test_issue_can_be_required(source: Builder) -> None:
    source.commit(WORK, "Repair, see other/watch#1 and !2")
    source.commit({b"src/clock.py": b"7", b"tests/test_clock.py": b"7"}, "Repair, see #1")
    without, with_issue = mined(source, require_issue=True)
    assert (without.reason, without.lines_added) == (MiningReason.no_issue, 3)
    assert with_issue.reason is MiningReason.kept
    assert [row.reason for row in mined(source)] == [MiningReason.kept] * 2


def test_coding_agent_in_a_branch_commit_is_seen(source: Builder) -> None:
    merge_of(source, WORK, "Merge branch 'fix'", "x\n\nCo-authored-by: Claude <noreply@anthropic.com>", "y")
    source.commit({b"src/x.py": b"1", b"tests/test_x.py": b"1"}, "By hand")
    assert [row.coding_agent for row in mined(source)] == [True, False]


# The whole


def test_funnel_counts_every_change_once_in_order(source: Builder) -> None:
    source.commit({b"README": b"2"}, "Docs")
    source.commit(WORK, "Repair")
    rows = list(mine(Repository(source.path), source.branches["main"], MiningRules("clock"), None))
    counts = funnel(rows)
    assert [reason for reason, _count in counts] == list(MiningReason)
    assert counts[-1] == (MiningReason.kept, 1)
    assert dict(counts)[MiningReason.docs_only] == 1
    assert sum(count for _reason, count in counts) == len(rows) == 3


def test_more_changes_than_one_batch(source: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalpipe.history.candidates._BATCH", 2)
    source.commit(WORK, "Change (#0)")
    for number in range(1, 6):
        source.commit({b"src/a.py": b"%d\n" % number, b"tests/a.py": b"%d\n" % number}, f"Change (#{number})")
    source.commit({b"src/a.py": b"1"}, "Back (#6)\n\nReverts #1")
    rows = mined(source)
    assert [row.number for row in rows] == list(range(7))
    assert [row.lines_added for row in rows] == [3, 2, 2, 2, 2, 2, None]
    assert rows[6].reverts == rows[1].commit


def test_candidate_id_is_a_slug() -> None:
    for repository in ("my clock/ü", "x" * 200, "a.b_c-d"):
        for number in (None, 12):
            slug = candidate_id(repository, number, "0123456789abcdef")
            assert re.fullmatch(r"[A-Za-z0-9_.-]{1,120}", slug)
            assert slug.endswith("-0123456789")
    assert candidate_id("clock", 12, "0123456789abcdef") == "clock-12-0123456789"


def test_sha256_repository_is_mined(tmp_path: Path) -> None:
    source = Builder(tmp_path / "source.git", object_format="sha256")
    source.commit({b"src/clock.py": b"0\n"})
    source.commit(WORK, "Repair")
    candidate = only(source)
    assert len(candidate.commit) == 64
    assert (candidate.reason, candidate.lines_added) == (MiningReason.kept, 3)
