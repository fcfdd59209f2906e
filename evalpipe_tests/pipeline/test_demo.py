"""The demo from its text to its report: held to data/demo/expected.json and expected_agents.json.

In the process sandbox, and of CI's own demo, which runs in Docker; see `demos`.
"""

from pathlib import Path

import pytest

from evalpipe_tests.demo.expectations import expected_changes, expected_resolved, expected_tip
from evalpipe_tests.history.builder import git
from evalpipe_tests.pipeline.demos import Demo
from evalpipe_tests.reports.browser import NEEDS_CHROMIUM, Browser, check

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


def test_it_ends_with_funnel_scoreboard_and_report(demo: Demo) -> None:
    assert demo.first.code == 0, demo.first.err
    for part in ("all changes looked at", "valid", "no signal", "flaky", "scripted", "steady", "broad"):
        assert part in demo.first.out
    (line,) = (line for line in demo.first.out.splitlines() if line.startswith("report: "))
    assert Path(line.split()[1]).is_file()
    assert "sandbox: " in demo.first.err


def test_it_runs_on_the_repository_that_is_expected(demo: Demo) -> None:
    assert git(demo.tiny.lake / "demo/repository", "rev-parse", "main").decode().strip() == expected_tip()


def test_every_change_is_mined_as_expected(demo: Demo) -> None:
    found = {row["commit"]: (row["reason"], row["shape"], row["number"]) for row in demo.rows("candidate_commits")}
    assert found == {change.commit: (change.reason, change.shape, change.number) for change in expected_changes()}
    kept = {row["commit"]: row["category"] for row in demo.rows("candidate_commits") if row["reason"] == "kept"}
    assert kept == {change.commit: change.category for change in expected_changes() if change.kept}


def test_every_candidate_is_classed_as_expected(demo: Demo) -> None:
    commits = {row["candidate_id"]: row["commit"] for row in demo.rows("candidate_commits") if row["reason"] == "kept"}
    classes = {commits[row["candidate_id"]]: row["validation_class"] for row in demo.rows("validated_tasks")}
    assert classes == {change.commit: change.task_class for change in expected_changes() if change.kept}
    lists = {
        commits[row["candidate_id"]]: frozenset(row["fail_to_pass"])
        for row in demo.rows("validated_tasks")
        if row["validation_class"] == "valid"
    }
    valid = [change for change in expected_changes() if change.task_class == "valid"]
    assert lists == {change.commit: change.fail_to_pass for change in valid}
    assert len(lists) == 10


def test_every_sample_is_resolved_or_not_as_expected(demo: Demo) -> None:
    numbers = {row["candidate_id"]: row["number"] for row in demo.rows("candidate_commits") if row["reason"] == "kept"}
    found: dict[str, dict[int, list[bool]]] = {}
    for row in sorted(demo.rows("graded_results"), key=lambda row: int(row["sample"].rpartition("-")[2])):
        found.setdefault(row["agent"], {}).setdefault(numbers[row["task_id"]], []).append(row["resolved"])
    assert {agent: found[agent] for agent in ("steady", "broad")} == expected_resolved()
    tasks = expected_resolved()["steady"]
    assert found["reference"] == {number: [True] * 4 for number in tasks}
    assert found["empty"] == {number: [False] * 4 for number in tasks}


def test_broad_once_repairs_the_bug_and_breaks_another_test(demo: Demo) -> None:
    broken = [row for row in demo.rows("graded_results") if row["verdict"] == "pass_to_pass_broken"]
    assert broken
    assert {row["agent"] for row in broken} == {"broad"}
    assert all(row["fail_to_pass_passed"] == row["fail_to_pass_total"] for row in broken)


def test_the_mark_provisional_stands_in_every_form_of_the_report(demo: Demo) -> None:
    assert "provisional" in demo.first.out
    report = demo.tiny.succeed("report", "demo", "--json").json()
    assert report["provisional"] is True
    rates = {agent["agent"]: agent["pass_at_1"] for agent in report["agents"]}
    assert (rates["reference"], rates["empty"]) == (1.0, 0.0)
    assert rates["steady"] == pytest.approx(29 / 40)
    assert rates["broad"] == pytest.approx(28 / 40)
    html = (demo.tiny.lake / "reports/demo/report.html").read_text(encoding="utf-8")
    assert "provisional" in html.lower()
    assert "scripted" in html


def test_the_redacted_report_has_the_numbers_and_no_name_of_a_task_test_or_package(demo: Demo) -> None:
    printed = demo.tiny.succeed("report", "demo", "--redacted", "--json").out
    assert "Which of the two scripted agents" in printed
    assert '"pass_at_1": 0.725' in printed
    assert str(demo.tiny.lake) not in printed
    folder = demo.tiny.lake / "reports/demo/redacted"
    written = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"| 0.72 |" in (folder / "report.md").read_bytes()
    # The name of a sign is no name of a test.
    for text in (printed.replace("test_infrastructure_edited", "").encode(), written):
        assert b"task-001" in text
        assert not [name for name in (b"larder", b"demo-1", b"demo-2", b"test_") if name in text]
    assert {path.name for path in folder.iterdir()} == {"report.html", "report.md", "tables"}


@NEEDS_CHROMIUM
def test_the_report_opens_in_a_browser_on_a_desk_and_on_a_phone(demo: Demo, tmp_path: Path) -> None:
    report = demo.tiny.lake / "reports/demo/report.html"
    with Browser(tmp_path / "profile") as browser:
        for width, height in ((1280, 900), (390, 844)):
            for dark in (False, True):
                check(browser.render(report, width=width, height=height, dark=dark), width=width, dark=dark)
        assert "Which of the two scripted agents" in browser.text()
        linked = browser.evaluate("[...document.querySelectorAll('a')].map(one => one.href)")
    transcripts = {Path(link.removeprefix("file://")) for link in linked if link.endswith(".txt")}
    assert transcripts
    assert all(path.is_file() for path in transcripts)


def test_a_second_demo_opens_no_box_and_makes_no_attempt(demo: Demo) -> None:
    assert demo.second.code == 0, demo.second.err
    assert demo.changed_by_second == set()
    boards = [done.out[: done.out.index("report: ")] for done in (demo.first, demo.second)]
    assert boards[0] == boards[1]
    assert demo.second_seconds < 60  # 15 s on a quiet machine; this one may be busy
