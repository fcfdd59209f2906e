from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalpipe.history.candidates import MiningRules, candidate_id, funnel
from evalpipe.history.decision import Category, CategoryRule, MiningReason
from evalpipe.history.issues import IssueText, IssueTexts, TextKind
from evalpipe.history.links import IssueLink, LinkPlace, LinkStrength
from evalpipe.history.mining import Mining
from evalpipe.history.problem import ProblemSource, TextFault
from evalpipe.history.repository import Repository
from evalpipe_tests.history.builder import SUBMODULE, Builder, File
from evalpipe_tests.history.mining import START, WORK, merge_of, mined, only

# Reasons


def many(name: bytes, count: int) -> dict[bytes, File]:
    return {b"src/%s%d.py" % (name, number): b"1" for number in range(count)}


def test_reasons_by_what_changed(clock: Builder) -> None:
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
        ({b".github/workflows/a.yml": b"1"}, "CI", MiningReason.no_source),
        (
            {b"src/e.py": b"1", b"tests/test_e.py": b"1"},
            "[pre-commit.ci] pre-commit autoupdate",
            MiningReason.dependency_only,
        ),
        ({b"src/parser.y": b"1", b"tests/test_y.py": b"1"}, "Grammar", MiningReason.kept),
        ({b"pkg/bench/x.py": b"1", b"tests/test_x.py": b"1"}, "Benchmark", MiningReason.no_source),
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
        clock.commit(files, message)
    found = mined(clock)
    assert [(row.subject, row.reason) for row in found] == [(message, reason) for _f, message, reason in changes]
    assert [row.reason_detail for row in found if row.subject == "Many"] == ["26 files, 25 are allowed"]
    assert found[6].lines_added is None


def test_merge_that_changes_nothing(clock: Builder) -> None:
    base = clock.branches["main"]
    topic = clock.commit(WORK, "work", branch="topic", parents=[base])
    clock.commit({}, "Merge pull request #12 from a/b", parents=[base, topic])
    assert only(clock).reason is MiningReason.merge_without_change


def test_paths_with_any_bytes_are_carried(clock: Builder) -> None:
    clock.commit({b"src/\xff one.py": b"1\n", b'tests/a"b\t.py': b"1\n"}, "Repair")
    candidate = only(clock)
    assert candidate.source_files == (b"src/\xff one.py",)
    assert candidate.test_files == (b'tests/a"b\t.py',)
    assert candidate.lines_added == 2


def test_team_globs_and_limits(clock: Builder) -> None:
    clock.commit({b"checks/a.txt": b"1", b"scripts/a.py": b"1", b"big/gen.py": b"1"}, "Repair")
    assert only(clock).reason is MiningReason.no_tests
    rules: dict[str, Any] = {
        "test_globs": ("checks/**",),
        "source_globs": ("scripts/**",),
        "generated_globs": ("big/**",),
    }
    assert only(clock, **rules).reason is MiningReason.kept
    assert only(clock, **rules, max_files=1).reason is MiningReason.too_many_files
    assert only(clock, **rules, max_files=2).reason is MiningReason.kept


def test_categories_have_their_rule(clock: Builder) -> None:
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
        clock.commit(files)
    assert [(row.category, row.category_rule) for row in mined(clock)] == [row[1:] for row in changes]


def test_team_overrules_the_category(clock: Builder) -> None:
    first = clock.commit({b"src/a.py": b"1", b"tests/t.py": b"1"}, "One (#12)")
    second = clock.commit({b"src/a.py": b"2", b"tests/t.py": b"2"}, "Two")
    third = clock.commit({b"src/a.py": b"3", b"tests/t.py": b"3"}, "Three (#14)")
    clock.commit({b"src/a.py": b"4", b"tests/t.py": b"4"}, "Four (#15)")
    said = {
        "#12": Category.other,
        second[:7]: Category.multi_file_feature,
        candidate_id("clock", 14, third): Category.test_only,
        "#99": Category.other,
        first: Category.dependency_chore,
    }
    assert [(row.category, row.category_rule) for row in mined(clock, categories=said)] == [
        (Category.other, CategoryRule.override),
        (Category.multi_file_feature, CategoryRule.override),
        (Category.test_only, CategoryRule.override),
        (Category.single_file_repair, CategoryRule.one_source_file),
    ]


def test_equal_rules_have_equal_digests() -> None:
    rules = MiningRules("clock", categories={"#1": Category.other, "#2": Category.other})
    same = MiningRules("clock", categories={"#2": Category.other, "#1": Category.other})
    assert rules.digest == same.digest
    others = [
        MiningRules("clock"),
        MiningRules("clock", test_globs=("a",)),
        MiningRules("clock", source_globs=("a",)),
        MiningRules("clock", jira_projects=("A",)),
        MiningRules("clock", mainline="main"),
    ]
    assert len({one.digest for one in [rules, *others]}) == 6


# Issues and texts


def issue(
    number: int,
    created: int,
    title: str,
    kind: TextKind = TextKind.issue,
    closed_by: str | None = None,
    edited: int | None = None,
    closes: tuple[int, ...] = (),
) -> IssueText:
    times = [None if time is None else datetime.fromtimestamp(time, UTC) for time in (created, edited)]
    assert times[0] is not None
    return IssueText(number, kind, title, "Body" if title else "", "ada", times[0], closed_by, (), times[1], closes)


def test_links_are_found_in_every_place(clock: Builder) -> None:
    files = {**WORK, b"CHANGELOG.md": b"- new, :issue:`5`\n", b"changelog/6.bugfix.rst": b"Hand\n"}
    merge_of(clock, files, "Merge pull request #12 from a/b\n\nRepair, fixes #3", "part of #4", "done (#12)")
    texts = IssueTexts(
        [
            issue(12, START, "Repair, see #7 and #9", TextKind.pull_request),
            issue(8, START, "Late", closed_by="12"),
            issue(9, START, "Other work", TextKind.pull_request),
        ]
    )
    candidate = only(clock, texts)
    assert candidate.issues == (
        IssueLink("#3", 3, LinkPlace.merge_message, LinkStrength.closing),
        IssueLink("#8", 8, LinkPlace.pull_request, LinkStrength.closing),
        IssueLink("#7", 7, LinkPlace.pull_request, LinkStrength.mention),
        IssueLink("#4", 4, LinkPlace.branch_commit, LinkStrength.mention),
        IssueLink("#6", 6, LinkPlace.changelog, LinkStrength.mention),
        IssueLink("#5", 5, LinkPlace.changelog, LinkStrength.mention),
    )


def test_only_changelog_lines_that_were_added_count(clock: Builder) -> None:
    clock.commit({b"CHANGELOG.md": b"- old #1\n- older #2\n"}, "Log")
    clock.commit({**WORK, b"CHANGELOG.md": b"- older #2\n- new #3\n- old #1\n"}, "Repair")
    assert [link.key for link in mined(clock)[-1].issues] == ["#3"]


def test_problem_text_is_the_issue_that_was_there_first(clock: Builder) -> None:
    clock.commit(WORK, "Repair (#12)\n\nFixes #1, fixes #2\nsee #3", author_date=START)
    both = IssueTexts([issue(1, START - 9, "One"), issue(2, START - 5, "Two"), issue(3, START - 9, "Three")])
    assert only(clock, both).problem_text == "One\n\nBody\n\nTwo\n\nBody"
    late = IssueTexts([issue(1, START, "One"), issue(3, START - 9, "Three")])
    assert (only(clock, late).problem_source, only(clock, late).problem_text) == (
        ProblemSource.issue,
        "Three\n\nBody",
    )


def test_problem_text_falls_back_to_the_pull_request_then_to_the_message(clock: Builder) -> None:
    clock.commit(WORK, "Repair (#12)\n\nIt was late.\n\nSigned-off-by: Ada <a@b>", author_date=START)
    texts = IssueTexts([issue(12, START + 60, "Request", TextKind.pull_request)])
    assert (only(clock, texts).problem_source, only(clock, texts).problem_text) == (
        ProblemSource.pull_request,
        "Request\n\nBody",
    )
    after_merge = IssueTexts([issue(12, clock.clock, "Request", TextKind.pull_request)])
    for texts_or_none in (after_merge, None):
        candidate = only(clock, texts_or_none)
        assert candidate.problem_source is ProblemSource.commit_message
        assert candidate.problem_text == "Repair\n\nIt was late."


def test_text_that_was_edited_after_the_work_began_is_not_used(clock: Builder) -> None:
    clock.commit(WORK, "Repair (#12)\n\nFixes #1, fixes #2, see #3", author_date=START)
    edited = issue(1, START - 9, "One", edited=START)
    empty = issue(3, START - 9, "")
    texts = IssueTexts([edited, issue(2, START - 9, "Two", edited=START - 1), empty])
    candidate = only(clock, texts)
    assert (candidate.problem_source, candidate.problem_text) == (ProblemSource.issue, "Two\n\nBody")
    assert candidate.unused_texts == (("#1", TextFault.edited_too_late), ("#3", TextFault.empty))
    request = issue(12, START + 60, "Request", TextKind.pull_request)
    candidate = only(clock, IssueTexts([edited, issue(2, START, "Two"), request]))
    assert (candidate.problem_source, candidate.problem_text) == (ProblemSource.pull_request, "Request\n\nBody")
    assert candidate.unused_texts == (("#1", TextFault.edited_too_late), ("#2", TextFault.created_too_late))
    request = issue(12, START + 60, "Request", TextKind.pull_request, edited=START + 90)
    candidate = only(clock, IssueTexts([request]))
    assert (candidate.problem_source, candidate.problem_text) == (
        ProblemSource.commit_message,
        "Repair\n\nFixes #1, fixes #2, see #3",
    )
    assert candidate.unused_texts == (("pull request 12", TextFault.edited_too_late),)
    assert only(clock).unused_texts == ()


def test_what_the_forge_says_that_a_pull_request_closes_is_a_closing_link(clock: Builder) -> None:
    clock.commit(WORK, "Repair (#12)\n\nsee #5", author_date=START)
    texts = IssueTexts(
        [issue(12, START, "Request", TextKind.pull_request, closes=(5, 4)), issue(4, START - 9, "Late")],
    )
    candidate = only(clock, texts)
    assert candidate.issues == (
        IssueLink("#4", 4, LinkPlace.pull_request, LinkStrength.closing),
        IssueLink("#5", 5, LinkPlace.pull_request, LinkStrength.closing),
    )
    assert candidate.problem_text == "Late\n\nBody"


def test_merge_without_own_words_takes_those_of_its_branch(clock: Builder) -> None:
    merge_of(clock, WORK, "Merge branch 'fix'", "Start", "Repair the hand\n\nIt was late.")
    assert only(clock).problem_text == "Start\n\nRepair the hand\n\nIt was late."


def test_key_of_a_jira_project_is_an_issue_of_this_repository(clock: Builder) -> None:
    clock.commit(WORK, "ABC-12: repair, not UTF-8 this time")
    assert only(clock, require_issue=True).reason is MiningReason.no_issue
    candidate = only(clock, require_issue=True, jira_projects=("ABC",))
    assert candidate.reason is MiningReason.kept
    assert candidate.issues == (IssueLink("ABC-12", None, LinkPlace.merge_message, LinkStrength.mention),)


def test_issue_of_gitlab_may_have_the_number_of_the_merge_request(clock: Builder) -> None:
    clock.commit(WORK, "Repair, closes #12\n\nSee merge request team/clock!12")
    assert [link.key for link in only(clock).issues] == ["#12"]


def test_issue_can_be_required(clock: Builder) -> None:
    clock.commit(WORK, "Repair, see other/watch#1 and !2")
    clock.commit({b"src/clock.py": b"7", b"tests/test_clock.py": b"7"}, "Repair, see #1")
    without, with_issue = mined(clock, require_issue=True)
    assert (without.reason, without.lines_added) == (MiningReason.no_issue, 3)
    assert with_issue.reason is MiningReason.kept
    assert [row.reason for row in mined(clock)] == [MiningReason.kept] * 2


def test_coding_agent_in_a_branch_commit_is_seen(clock: Builder) -> None:
    merge_of(clock, WORK, "Merge branch 'fix'", "x\n\nCo-authored-by: Claude <noreply@anthropic.com>", "y")
    clock.commit({b"src/x.py": b"1", b"tests/test_x.py": b"1"}, "By hand")
    assert [row.coding_agent for row in mined(clock)] == [True, False]


# The whole


def test_funnel_counts_every_change_once_in_order(clock: Builder) -> None:
    clock.commit({b"README": b"2"}, "Docs")
    clock.commit(WORK, "Repair")
    rows = list(Mining(Repository(clock.path), clock.branches["main"], MiningRules("clock"), None))
    counts = funnel(row.reason for row in rows)
    assert [reason for reason, _count in counts] == list(MiningReason)
    assert counts[-1] == (MiningReason.kept, 1)
    assert dict(counts)[MiningReason.docs_only] == 1
    assert sum(count for _reason, count in counts) == len(rows) == 3


def test_more_changes_than_one_batch(clock: Builder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalpipe.history.mining._BATCH", 2)
    clock.commit(WORK, "Change (#0)")
    for number in range(1, 6):
        clock.commit({b"src/a.py": b"%d\n" % number, b"tests/a.py": b"%d\n" % number}, f"Change (#{number})")
    clock.commit({b"src/a.py": b"1"}, "Back (#6)\n\nReverts #1")
    rows = mined(clock)
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
    other = Builder(tmp_path / "source.git", object_format="sha256")
    other.commit({b"src/clock.py": b"0\n"})
    other.commit(WORK, "Repair")
    candidate = only(other)
    assert len(candidate.commit) == 64
    assert (candidate.reason, candidate.lines_added) == (MiningReason.kept, 3)
