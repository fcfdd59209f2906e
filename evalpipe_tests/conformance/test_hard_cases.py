"""Every runner is asked the same hard cases, with its real tools in containers; see `hard_cases`."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalpipe.runners import RunStatus, SuiteReport, SuiteRequest
from evalpipe.runners.suite import SuiteRun
from evalpipe.sandbox import DockerSandbox
from evalpipe_tests.conformance.environments import EnvironmentImages
from evalpipe_tests.conformance.hard_cases import HardCase, Row, Shown, outcomes
from evalpipe_tests.conformance.rows import ROWS

DOCUMENTATION = Path(__file__).parents[2] / "docs/runners.md"
NAMES = [row.name for row in ROWS]
TOGETHER = [(row, case) for row in ROWS for case in row.together]
ALONE = [(row, case) for row in ROWS for case in row.alone]


def ids(pairs: list[tuple[Row, HardCase]]) -> list[str]:
    return [f"{row.name}-{case.name.lower()}" for row, case in pairs]


class Runs:
    """One run of the project of each row for all tests that look at it."""

    def __init__(self, sandbox: DockerSandbox, images: EnvironmentImages) -> None:
        self.sandbox, self.images = sandbox, images
        self._done: dict[str, SuiteRun] = {}

    def together(self, row: Row) -> SuiteRun:
        if row.name not in self._done:
            self._done[row.name] = row.run(self.sandbox, self.images.image(row.environment), row.files)
        return self._done[row.name]

    def report(self, row: Row) -> SuiteReport:
        run = self.together(row)
        assert run.report.status is RunStatus.COMPLETED, (run.report, run.outcome)
        assert run.report.canary_failed, run.outcome
        return run.report


@pytest.fixture(scope="module")
def runs(docker_sandbox: DockerSandbox, environment_images: EnvironmentImages) -> Runs:
    return Runs(docker_sandbox, environment_images)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_every_case_has_its_place_in_the_row(row: Row) -> None:
    placed = [*row.together, *row.alone, *row.lacks]
    assert sorted(placed) == sorted(HardCase)


def test_the_documentation_names_every_case_that_a_runner_is_not_asked() -> None:
    lines = ["| runner | is not asked | because |", "|---|---|---|"]
    for row in ROWS:
        for reason in dict.fromkeys(row.lacks.values()):
            cases = "; ".join(case.value for case in HardCase if row.lacks.get(case) == reason)
            lines.append(f"| `{row.name}` | {cases} | {reason} |")
    asked = "; ".join(case.value for case in HardCase)
    page = DOCUMENTATION.read_text()
    assert asked in " ".join(page.split())
    assert "\n".join(lines) in page


@pytest.mark.docker
@pytest.mark.parametrize(("row", "case"), TOGETHER, ids=ids(TOGETHER))
def test_a_case_beside_others(runs: Runs, row: Row, case: HardCase) -> None:
    report, shown = runs.report(row), row.together[case]
    found = outcomes(report)
    assert {test: found.get(test) for test in shown.tests} == shown.tests
    assert shown.duplicates <= report.duplicates
    assert shown.uncollected <= report.uncollected.keys()


@pytest.mark.docker
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_a_report_has_what_its_cases_show_and_nothing_else(runs: Runs, row: Row) -> None:
    shown = (*row.together.values(), row.besides)
    expected = Shown(
        {test: outcome for part in shown for test, outcome in part.tests.items()},
        frozenset().union(*(part.duplicates for part in shown)),
        frozenset().union(*(part.uncollected for part in shown)),
    )
    check(runs.report(row), expected)


@pytest.mark.docker
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_failures_have_messages_and_all_text_can_be_stored(runs: Runs, row: Row) -> None:
    report = runs.report(row)
    failed = [result for result in report.tests.values() if result.outcome in ("failed", "error")]
    assert any("here is why" in result.message for result in failed), failed
    for text in (*report.tests, *report.uncollected, *(result.message for result in report.tests.values())):
        text.encode()
        assert len(text) < 6000
    assert all(0 <= result.seconds < 300 for result in report.tests.values())


@pytest.mark.docker
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_chosen_files_run_alone_in_another_order(runs: Runs, row: Row) -> None:
    files, expected = row.chosen
    request = SuiteRequest(files, shuffle_seed=7 if row.runner.can_shuffle else None)
    run = row.run(runs.sandbox, runs.images.image(row.environment), row.files, request)
    assert run.report.status is RunStatus.COMPLETED, (run.report, run.outcome)
    assert run.report.canary_failed
    whole = outcomes(runs.report(row))
    assert outcomes(run.report) == {test: whole[test] for test in expected}


@pytest.mark.docker
@pytest.mark.parametrize(("row", "case"), ALONE, ids=ids(ALONE))
def test_a_case_in_a_run_of_its_own(runs: Runs, row: Row, case: HardCase) -> None:
    alone = row.alone[case]
    run = row.run(runs.sandbox, runs.images.image(row.environment), alone.files)
    assert run.report.status in alone.statuses, (run.report, run.outcome)
    if run.report.status is RunStatus.COMPLETED:
        check(run.report, alone.shown)
    else:
        assert not run.report.tests


def check(report: SuiteReport, expected: Shown) -> None:
    assert outcomes(report) == expected.tests
    assert report.duplicates == expected.duplicates
    assert report.uncollected.keys() == expected.uncollected
