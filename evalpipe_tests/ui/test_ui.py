"""The pages of the Dagster UI in a real browser, on the workspace of the demo.

With EVALPIPE_PICTURES=FOLDER their pictures are kept there: those of docs/images are made in this way.
"""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from evalpipe_tests.pipeline.demos import Demo
from evalpipe_tests.pipeline.workspaces import TinyWorkspace, wait_until
from evalpipe_tests.reports.browser import CHROMIUM, Browser
from evalpipe_tests.ui.dagster_ui import DagsterUi, serving
from evalpipe_tests.ui.pages import Page, clicked, materialized_by_hand, partition_page, visit

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        CHROMIUM is None and not os.environ.get("EVALPIPE_REQUIRE_CHROMIUM"), reason="there is no chromium"
    ),
]
GRADES = ("demo", "broad", "graded_results")
_HERE = '{repositoryName: "__repository__", repositoryLocationName: "evalpipe"}'
_STATES = ") { ... on Schedules { results { name scheduleState { status } } } } }"


@dataclass(frozen=True, slots=True)
class Opened:
    """The UI of a demo in which one attempt was lost: a backfill could grade every sample but one."""

    ui: DagsterUi
    browser: Browser
    workspace: TinyWorkspace
    lost: str
    kept: str
    backfill: str
    run: str

    def says(self, page: Page) -> str:
        text = visit(self.browser, self.ui.url, page)
        if folder := os.environ.get("EVALPIPE_PICTURES"):
            (Path(folder) / f"{page.picture}.png").write_bytes(self.browser.picture())
        return text


@pytest.fixture(scope="module")
def opened(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    root = tmp_path_factory.mktemp("ui") / "workspace"
    shutil.copytree(demo.tiny.root, root, symlinks=True)
    tiny = TinyWorkspace(root.resolve(), demo.tiny.variables)
    (lost,) = (tiny.lake / "agent_runs/demo/broad").glob("*/demo-36-*/original-3.parquet")
    lost.unlink()
    keys = [f"original-3|{lost.parent.name}", f"original-4|{lost.parent.name}"]
    with serving(tiny) as ui, Browser(tmp_path_factory.mktemp("profile")) as browser:
        backfill = materialized_by_hand(browser, ui, GRADES)
        ended = ui.wait_for_backfill(backfill)
        assert ended["status"] == "COMPLETED_FAILED"
        failed = next(run["id"] for run in ended["runs"] if run["status"] == "FAILURE")
        yield Opened(ui, browser, tiny, keys[0], keys[1], backfill, failed)


def test_the_lineage_shows_the_stages_and_every_agent(opened: Opened) -> None:
    groups = ["candidates", "frozen_sets", *(f"sweep_demo__{name}" for name in ("broad", "empty", "steady"))]
    text = opened.says(Page("ui-lineage", "/asset-groups", [*groups, "sweep_demo_report"]))
    places = [text.index(group) for group in groups]
    assert places == sorted(places)


def test_a_group_shows_its_assets_in_order(opened: Opened) -> None:
    names = ["candidate_commits", "task_images", "validation_runs", "validated_tasks"]
    path = "/locations/evalpipe/asset-groups/candidates/lineage"
    text = opened.says(Page("ui-candidates", path, [*names, "Parquet", "Docker", "100% filled"]))
    assert "Failed" not in text


def test_the_partitions_of_an_agent_are_its_samples_and_tasks(opened: Opened) -> None:
    page = Page("ui-partitions", "/assets/demo/broad/agent_runs?view=partitions", ["original-4", "Materialized (40)"])
    text = opened.says(page)
    assert "40 Partitions Selected" in text
    assert "Failed (0)" in text
    assert text.count("demo-") >= 10


def test_the_page_of_a_grade_leads_to_its_attempt_in_the_report(opened: Opened) -> None:
    text = opened.says(Page("ui-grade", partition_page(GRADES, opened.kept), ["verdict", "fail_to_pass", "report"]))
    (line,) = (line for line in text.splitlines() if "report.html#" in line)
    path, _, attempt = line.strip().partition("#")
    report = Path(path)
    assert report.parts[-3:] == ("reports", "demo", "report.html")
    assert f'id="{attempt}"' in (opened.workspace.lake / "reports/demo/report.html").read_text(encoding="utf-8")


def test_the_page_of_a_failed_partition_says_why(opened: Opened) -> None:
    wanted = ["not_done_because", "broad has made no attempt", f"{opened.run[:8]} failed"]
    text = opened.says(Page("ui-failed-partition", partition_page(GRADES, opened.lost), wanted))
    assert "Failed (1)" in text
    assert "evalpipe run demo" in text


def test_the_page_of_a_backfill_counts_what_succeeded_and_failed(opened: Opened) -> None:
    wanted = ["demo / broad / graded_results", "Partitions targe", "Succeeded"]
    text = opened.says(Page("ui-backfill", f"/runs/b/{opened.backfill}", wanted))
    numbers = [line.strip() for line in text[text.index("graded_results") :].splitlines() if line.strip().isdigit()]
    assert numbers == ["40", "0", "39", "1"]  # targeted, in progress, succeeded, failed


def test_the_page_of_a_run_says_why_it_failed(opened: Opened) -> None:
    text = opened.says(Page("ui-run", f"/runs/{opened.run}", ["RUN_FAILURE", "partitions are not done"]))
    assert "broad has made no attempt" in text


def test_the_list_of_runs_names_jobs_and_hides_what_only_evalpipe_reads(opened: Opened) -> None:
    text = opened.says(Page("ui-runs", "/runs", ["demo__report", "demo__agent_runs", "judge"]))
    assert "owner" not in text


def test_the_checks_of_the_calibration_passed(opened: Opened) -> None:
    wanted = ["reference_resolved_and_empty_not", "blocking", "Evaluation result", "Passed"]
    opened.says(Page("ui-checks", "/assets/task_sets/demo/calibration?view=checks", wanted))


def test_the_report_shows_the_scoreboard_and_its_numbers_over_time(opened: Opened) -> None:
    wanted = ["scoreboard", "pass_at_1_steady_original", "0.725"]
    opened.says(Page("ui-report", "/assets/demo/evaluation_report", wanted))
    board = ["between steady and broad", "steady (scripted)", "95 % interval", "Close"]
    opened.says(Page("ui-scoreboard", "/assets/demo/evaluation_report", board, [clicked("[Show Markdown]")]))
    page = Page("ui-plots", "/assets/demo/evaluation_report", ["pass_at_1_broad_original"], [clicked("Plots")])
    opened.says(page)
    assert opened.browser.evaluate("document.querySelectorAll('canvas').length") >= 4


def test_mining_shows_its_funnel_and_the_columns_of_its_table(opened: Opened) -> None:
    wanted = ["all changes looked at", "reason_no_tests", "docs only"]
    opened.says(Page("ui-funnel", partition_page(["candidate_commits"], "demo"), wanted))
    opened.says(Page("ui-columns", "/assets/candidate_commits", ["Column name", "merge_date", "timestamp[us, tz=UTC]"]))


def test_schedules_and_sensors_are_there_and_off(opened: Opened) -> None:
    """And one is on once somebody clicks its switch."""
    wanted = ["demo__quarterly", "judge_after_validation", "passes_that_are_due"]
    opened.says(Page("ui-automation", "/automation", wanted))
    counted = "[...document.querySelectorAll('label[class*=Switch] input')].map(one => one.checked)"
    # A busy machine draws them one after another.
    wait_until(lambda: len(opened.browser.evaluate(counted)) == 10, "all switches are drawn")
    assert opened.browser.evaluate(counted) == [False] * 10
    opened.browser.evaluate("document.querySelectorAll('label[class*=Switch] input')[9].click()")
    # The page moves the switch before the server has heard of it.
    wait_until(lambda: _schedules_that_are_on(opened) == ["weekly_mining"], "the last one is on")
    assert opened.browser.evaluate(counted) == [False] * 9 + [True]


def _schedules_that_are_on(opened: Opened) -> list[str]:
    states = opened.ui.ask("{ schedulesOrError(repositorySelector: " + _HERE + _STATES, {})["schedulesOrError"]
    return [one["name"] for one in states["results"] if one["scheduleState"]["status"] == "RUNNING"]
