"""The checks as Dagster shows them: which there are, that they run with their jobs, and what a blocking one stops."""

from collections.abc import Callable, Iterator

import dagster as dg
import pytest

from evalpipe.pipeline.assembly import build_definitions
from evalpipe.pipeline.partitions import RANGE_END, RANGE_START
from evalpipe.stages import health
from evalpipe.stages.bench import Workbench
from evalpipe.stages.health import Health
from evalpipe.tasks import load_task_set
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace

pytestmark = pytest.mark.slow
Copied = Callable[[Walk], TinyWorkspace]

OF_SET = ("files_as_frozen", "instances_give_nothing_away", "validation_is_recent", "enough_tasks_for_small")
OF_RESULTS = {
    "sandboxes_probed": "small/category_report",
    "few_invalid_attempts": "small/category_report",
    "tasks_tell_agents_apart": "small/category_report",
    "manifests_agree": "small/agent_comparison",
}


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


def definitions_of(tiny: TinyWorkspace) -> dg.Definitions:
    return build_definitions(tiny.workspace, Workbench(tiny.workspace, sandbox_kind="process"))


def evaluations(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetCheckEvaluation]:
    return {one.check_name: one for one in result.get_asset_check_evaluations()}


def calibrate(tiny: TinyWorkspace, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    definitions = definitions_of(tiny)
    tasks = list(load_task_set(tiny.workspace.task_sets_dir / "tiny").tasks)
    return definitions.resolve_job_def("calibrate_tiny").execute_in_process(
        instance=instance, tags={RANGE_START: tasks[0], RANGE_END: tasks[-1]}, raise_on_error=False
    )


def report(tiny: TinyWorkspace, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    return (
        definitions_of(tiny)
        .resolve_job_def("small__report")
        .execute_in_process(instance=instance, raise_on_error=False)
    )


def written(result: dg.ExecuteInProcessResult) -> set[str]:
    return {event.asset_key.to_user_string() for event in result.get_asset_materialization_events() if event.asset_key}


def test_every_check_of_a_set_runs_before_its_calibration(
    copied: Copied, finished: Walk, instance: dg.DagsterInstance
) -> None:
    result = calibrate(copied(finished), instance)
    assert result.success
    found = evaluations(result)
    assert found.keys() >= set(OF_SET)
    # Two tasks can show nothing, and the run goes on: that is for a person to decide.
    assert {name: one.passed for name, one in found.items() if name in OF_SET} == {
        **dict.fromkeys(OF_SET, True),
        "enough_tasks_for_small": False,
    }
    assert found["enough_tasks_for_small"].severity is dg.AssetCheckSeverity.WARN
    assert "task_sets/tiny/calibration" in written(result)


def test_a_changed_file_of_a_set_keeps_its_tasks_from_being_calibrated(
    copied: Copied, finished: Walk, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "files_as_frozen", lambda *_: Health(False, "gold.patch was changed"))
    result = calibrate(copied(finished), instance)
    assert not result.success
    found = evaluations(result)["files_as_frozen"]
    assert (found.passed, found.description) == (False, "gold.patch was changed")
    assert written(result) == set()


def test_every_check_of_results_runs_with_the_report(
    copied: Copied, finished: Walk, instance: dg.DagsterInstance
) -> None:
    result = report(copied(finished), instance)
    assert result.success
    found = evaluations(result)
    assert {name: one.asset_key.to_user_string() for name, one in found.items()} == OF_RESULTS
    for one in found.values():
        assert one.passed
        assert one.description
        assert one.metadata  # a number, which the UI plots over time


@pytest.mark.parametrize(("severe", "goes_on"), [(True, False), (False, True)])
def test_results_under_other_conditions_stop_the_report_and_a_warning_does_not(
    severe: bool,
    goes_on: bool,
    copied: Copied,
    finished: Walk,
    instance: dg.DagsterInstance,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(health, "manifests_agree", lambda *_: Health(False, "network: none, host", severe))
    result = report(copied(finished), instance)
    assert result.success is goes_on
    assert not evaluations(result)["manifests_agree"].passed
    assert ("small/evaluation_report" in written(result)) is goes_on


def test_the_command_line_says_which_check_stopped_it(
    copied: Copied, finished: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "manifests_agree", lambda *_: Health(False, "network: none, host"))
    done = copied(finished).call("report", "small")
    assert done.code == 1
    assert "manifests_agree" in done.err
    assert "network: none, host" in done.err
    assert "Traceback" not in done.err
