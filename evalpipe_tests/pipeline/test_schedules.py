"""The schedules and the sensors: present, stopped, and what they ask for can run."""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping

import dagster as dg
import pytest
from dagster._utils.schedules import cron_string_iterator

from evalpipe.pipeline.assembly import build_definitions
from evalpipe.pipeline.partitions import RANGE_END, RANGE_START
from evalpipe.pipeline.schedules import QUARTERLY, RERUN_OF, WEEKLY
from evalpipe.stages.bench import Workbench
from evalpipe.stages.images import build_images
from evalpipe.stages.mining import mine_repository
from evalpipe.stages.validating import ValidationPass, validate_candidate
from evalpipe.tasks import load_task_set
from evalpipe_tests.history.builder import git
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace

pytestmark = pytest.mark.slow

Copied = Callable[[Walk], TinyWorkspace]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture
def repository(frozen: Walk) -> dg.RepositoryDefinition:
    return build_definitions(frozen.tiny.workspace).get_repository_def()


@pytest.fixture
def whole(frozen: Walk) -> dict[str, str]:
    """The range of every sample and task of the sweep."""
    tasks = list(load_task_set(frozen.tiny.workspace.task_sets_dir / "tiny").tasks)
    return {RANGE_START: f"original-1|{tasks[0]}", RANGE_END: f"original-2|{tasks[-1]}"}


def test_all_are_stopped_until_somebody_starts_them(repository: dg.RepositoryDefinition) -> None:
    assert [one.default_status for one in repository.schedule_defs] == [dg.DefaultScheduleStatus.STOPPED] * 2
    assert [one.default_status for one in repository.sensor_defs] == [dg.DefaultSensorStatus.STOPPED] * 8


def test_each_can_be_run_by_hand(repository: dg.RepositoryDefinition) -> None:
    """What a schedule or a sensor asks for is a job, which the UI and the command line start too."""
    jobs = set(repository.job_names)
    for schedule in repository.schedule_defs:
        assert schedule.job_name in jobs
    for sensor in repository.sensor_defs:
        assert sensor.description, sensor.name
        assert {target.job_name for target in sensor.targets} <= jobs
        assert sensor.targets, sensor.name


def test_mining_is_asked_for_each_repository_on_mondays(
    repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    schedule = repository.get_schedule_def("weekly_mining")
    assert (schedule.cron_schedule, schedule.execution_timezone, schedule.job_name) == (WEEKLY, "UTC", "mine")
    ticks = cron_string_iterator(dt.datetime(2026, 3, 5, tzinfo=dt.UTC).timestamp(), WEEKLY, "UTC")
    assert [next(ticks).strftime("%a %Y-%m-%d %H:%M") for _ in range(2)] == [
        "Mon 2026-03-09 04:00",
        "Mon 2026-03-16 04:00",
    ]
    context = dg.build_schedule_context(instance, repository_def=repository)
    (request,) = schedule.evaluate_tick(context).run_requests or []
    assert request.partition_key == "shop"


def test_a_repository_is_mined_once_for_each_tip_of_its_mainline(
    copied: Copied, mined: Walk, instance: dg.DagsterInstance
) -> None:
    tiny = copied(mined)
    tiny.write("data/repos/lost.yaml", (tiny.root / "data/repos/shop.yaml").read_text().replace("source.git", "lost"))
    bench = Workbench(tiny.workspace, sandbox_kind="process")
    repository = build_definitions(tiny.workspace, bench).get_repository_def()
    sensor = repository.get_sensor_def("mainline_moved")

    def asked() -> dg.RunRequest:
        context = dg.build_sensor_context(instance, repository_def=repository, resources={"bench": bench})
        (request,) = sensor.evaluate_tick(context).run_requests or []
        return request

    first = asked()
    assert (first.partition_key, first.run_key) == ("shop", asked().run_key)
    git(tiny.root / "source.git", "update-ref", "refs/heads/main", "main~1")
    moved = asked()
    assert (moved.partition_key, moved.run_key != first.run_key) == ("shop", True)
    git(tiny.root / "source.git", "update-ref", "refs/heads/topic", "main~2")
    assert asked().run_key == moved.run_key


def test_images_are_built_for_the_repository_that_was_mined(
    repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    sensor = repository.get_sensor_def("images_after_mining")
    assert isinstance(sensor, dg.RunStatusSensorDefinition)
    event = dg.DagsterEvent("PIPELINE_SUCCESS", "mine")
    for name, found in (("shop", dg.RunRequest), ("gone", dg.SkipReason)):
        run = dg.DagsterRun(job_name="mine", run_id="r", tags={"dagster/partition": name})
        answer = sensor(dg.build_run_status_sensor_context("s", event, instance, run))
        assert isinstance(answer, found)
        assert getattr(answer, "partition_key", name) == name


def test_the_rerun_is_on_the_first_day_of_each_quarter_in_the_time_zone_of_its_sweep(
    copied: Copied, frozen: Walk, repository: dg.RepositoryDefinition
) -> None:
    schedule = repository.get_schedule_def("small__quarterly")
    assert schedule.cron_schedule == QUARTERLY
    assert schedule.execution_timezone == "UTC"
    tiny = copied(frozen)
    file = tiny.root / "data/sweeps/small.yaml"
    file.write_text(file.read_text() + "time_zone: Asia/Kolkata\n")
    there = build_definitions(tiny.workspace).get_repository_def().get_schedule_def("small__quarterly")
    assert there.execution_timezone == "Asia/Kolkata"
    local = cron_string_iterator(dt.datetime(2026, 1, 15, tzinfo=dt.UTC).timestamp(), QUARTERLY, "Asia/Kolkata")
    assert next(local).astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M") == "2026-04-01 00:30"
    ticks = cron_string_iterator(dt.datetime(2026, 1, 15, tzinfo=dt.UTC).timestamp(), QUARTERLY, "UTC")
    moments = [next(ticks).strftime("%Y-%m-%d %H:%M") for _ in range(4)]
    assert moments == ["2026-04-01 06:00", "2026-07-01 06:00", "2026-10-01 06:00", "2027-01-01 06:00"]


def test_the_rerun_goes_from_the_calibration_to_the_report(
    copied: Copied, finished: Walk, whole: dict[str, str], instance: dg.DagsterInstance
) -> None:
    """Everything is made already, so this opens no box; every partition gets its event all the same."""
    tiny = copied(finished)
    definitions = build_definitions(tiny.workspace, Workbench(tiny.workspace, sandbox_kind="process"))
    repository = definitions.get_repository_def()
    schedule = repository.get_schedule_def("small__quarterly")
    (request,) = schedule.evaluate_tick(dg.build_schedule_context(instance)).run_requests or []
    assert schedule.job_name == "calibrate_tiny"
    calibration = definitions.resolve_job_def(schedule.job_name).execute_in_process(
        instance=instance, tags=request.tags
    )
    assert calibration.success
    assert len(instance.get_materialized_partitions(dg.AssetKey(["task_sets", "tiny", "calibration"]))) == 2

    after_calibration = _evaluate(repository, "small__attempts_after_calibration", instance, calibration)
    assert isinstance(after_calibration, dg.RunRequest)
    assert after_calibration.tags.items() >= whole.items()
    attempts = definitions.resolve_job_def("small__agent_runs").execute_in_process(
        instance=instance, tags=after_calibration.tags
    )
    assert attempts.success
    _all_materialized(instance, "agent_runs")

    after_attempts = _evaluate(repository, "small__grade_after_attempts", instance, attempts)
    assert isinstance(after_attempts, dg.RunRequest)
    assert after_attempts.tags.items() >= whole.items()
    # As the UI launches a range from the page of an asset: with the dimensions of its first partition beside it.
    first = dict(zip(("sample", "task"), whole[RANGE_START].split("|"), strict=True))
    beside = {f"dagster/partition/{name}": key for name, key in first.items()}
    grades = definitions.resolve_job_def("small__graded_results").execute_in_process(
        instance=instance, tags={**after_attempts.tags, **beside}
    )
    assert grades.success
    _all_materialized(instance, "graded_results")

    after_grades = _evaluate(repository, "small__report_after_grades", instance, grades)
    assert isinstance(after_grades, dg.RunRequest)
    report = definitions.resolve_job_def("small__report").execute_in_process(instance=instance)
    assert report.success
    _the_reports_tell_their_inputs_and_their_numbers(instance)


def _all_materialized(instance: dg.DagsterInstance, stage: str) -> None:
    for agent in ("reference", "empty", "half"):
        key = dg.AssetKey(["small", agent, stage])
        records = instance.fetch_materializations(key, limit=100).records
        assert len(records) == 4
        assert len({record.partition_key for record in records}) == 4
        for record in records:
            materialization = record.asset_materialization
            assert materialization is not None
            assert materialization.metadata
            assert (materialization.tags or {})["dagster/data_version"]


def _the_reports_tell_their_inputs_and_their_numbers(instance: dg.DagsterInstance) -> None:
    event = instance.get_latest_materialization_event(dg.AssetKey(["small", "evaluation_report"]))
    assert event is not None
    materialization = event.asset_materialization
    assert materialization is not None
    assert materialization.metadata["inputs"].value == (materialization.tags or {})["dagster/data_version"]
    assert "scoreboard" in materialization.metadata
    compared = instance.get_latest_materialization_event(dg.AssetKey(["small", "agent_comparison"]))
    assert compared is not None
    assert compared.asset_materialization is not None
    # The pair is half and empty, and half solves one of two tasks.
    assert compared.asset_materialization.metadata["difference_empty_minus_half_original"].value == -0.5


def _evaluate(
    repository: dg.RepositoryDefinition, name: str, instance: dg.DagsterInstance, result: dg.ExecuteInProcessResult
) -> object:
    (sensor,) = (one for one in repository.sensor_defs if one.name == name)
    success = next(event for event in result.all_events if event.event_type_value == "PIPELINE_SUCCESS")
    context = dg.build_run_status_sensor_context(
        sensor_name=name, dagster_event=success, dagster_instance=instance, dagster_run=result.dagster_run
    )
    assert isinstance(sensor, dg.RunStatusSensorDefinition)
    return sensor(context)


def test_passes_are_asked_for_when_their_day_has_come(
    copied: Copied, mined: Walk, instance: dg.DagsterInstance
) -> None:
    tiny = copied(mined)
    now = dt.datetime(2026, 5, 1, 23, 59, tzinfo=dt.UTC)
    bench = Workbench(tiny.workspace, clock=lambda: now, sandbox_kind="process")
    config = tiny.workspace.load_repository("shop")
    mine_repository(bench, config)
    build_images(bench, config)
    definitions = build_definitions(tiny.workspace, bench)
    kept = [row for row in bench.lake.rows("candidate_commits", "shop") if row["reason"] == "kept"]
    keys = [str(row["candidate_id"]) for row in kept]
    instance.add_dynamic_partitions("candidates", keys)
    (first_passes,) = _asked_for(definitions, bench, instance)
    assert first_passes.tags.items() >= {RANGE_START: f"{keys[0]}|first", RANGE_END: f"{keys[-1]}|first"}.items()
    # The first two candidates had their first pass, one of them late on this day, the other after midnight.
    for row, minutes in zip(kept[:2], (0, 2), strict=True):
        now = dt.datetime(2026, 5, 1, 23, 59, tzinfo=dt.UTC) + dt.timedelta(minutes=minutes)
        validate_candidate(bench, config, row, ValidationPass.FIRST, same_day=False, labels={})
    first_passes, first, not_wanted = _asked_for(definitions, bench, instance)
    # Stress passes that are not wanted, to be told to Dagster: nothing is then missing of what is done.
    assert not_wanted.tags.items() >= {RANGE_START: f"{keys[0]}|stress", RANGE_END: f"{keys[1]}|stress"}.items()
    assert first_passes.tags.items() >= {RANGE_START: f"{keys[0]}|first", RANGE_END: f"{keys[-1]}|first"}.items()
    assert first.tags.items() >= {RANGE_START: f"{keys[0]}|second", RANGE_END: f"{keys[0]}|second"}.items()
    now += dt.timedelta(days=1)
    _, both, _ = _asked_for(definitions, bench, instance)
    assert both.tags.items() >= {RANGE_START: f"{keys[0]}|second", RANGE_END: f"{keys[1]}|second"}.items()
    assert both.run_key != first.run_key

    validated = definitions.resolve_job_def("validate").execute_in_process(instance=instance, tags=both.tags)
    assert validated.success
    left, _ = _asked_for(definitions, bench, instance)
    assert left.tags[RANGE_START].endswith("|first")
    judge = _evaluate(definitions.get_repository_def(), "judge_after_validation", instance, validated)
    assert isinstance(judge, Iterator)
    (request,) = judge
    judged = definitions.resolve_job_def("judge").execute_in_process(
        instance=instance, partition_key=request.partition_key
    )
    assert judged.success
    classes = {row["candidate_id"]: row["validation_class"] for row in bench.lake.rows("validated_tasks", "shop")}
    assert [classes[key] for key in keys] == ["valid", "valid", "pending"]


def test_failed_attempts_are_asked_for_again_and_then_graded(
    repository: dg.RepositoryDefinition, instance: dg.DagsterInstance, whole: dict[str, str]
) -> None:
    """An agent may try three times; attempts that stay invalid do not keep the report away."""
    sensor = repository.get_sensor_def("small__again_after_failed_attempts")
    assert isinstance(sensor, dg.RunStatusSensorDefinition)
    event = dg.DagsterEvent("PIPELINE_FAILURE", "small__agent_runs")
    asked = []
    tags: Mapping[str, str] = whole
    for number in range(3):
        run = dg.DagsterRun(job_name="small__agent_runs", run_id=f"r{number}", tags=dict(tags))
        request = sensor(dg.build_run_status_sensor_context("s", event, instance, run))
        assert isinstance(request, dg.RunRequest)
        assert request.tags.items() >= whole.items()
        asked.append(request.job_name)
        tags = request.tags
    assert asked == ["small__agent_runs", "small__agent_runs", "small__graded_results"]
    part = dg.DagsterRun(job_name="small__agent_runs", run_id="p", tags={})
    assert isinstance(sensor(dg.build_run_status_sensor_context("s", event, instance, part)), dg.SkipReason)


def test_a_calibration_for_somebody_else_starts_no_attempts(
    repository: dg.RepositoryDefinition, instance: dg.DagsterInstance
) -> None:
    sensor = repository.get_sensor_def("small__attempts_after_calibration")
    assert isinstance(sensor, dg.RunStatusSensorDefinition)
    event = dg.DagsterEvent("PIPELINE_SUCCESS", "calibrate_tiny")
    for tags in ({}, {RERUN_OF: "another"}):
        run = dg.DagsterRun(job_name="calibrate_tiny", run_id="r", tags=tags)
        assert isinstance(sensor(dg.build_run_status_sensor_context("s", event, instance, run)), dg.SkipReason)


def test_a_report_goes_before_grades_and_grades_before_attempts(repository: dg.RepositoryDefinition) -> None:
    stages = ("small__report", "small__graded_results", "mine", "small__agent_runs")
    priorities = [int(repository.get_job(name).tags["dagster/priority"]) for name in stages]
    assert priorities == sorted(priorities, reverse=True)
    assert len(set(priorities)) == 4


def _asked_for(definitions: dg.Definitions, bench: Workbench, instance: dg.DagsterInstance) -> list[dg.RunRequest]:
    sensor = definitions.get_repository_def().get_sensor_def("passes_that_are_due")
    context = dg.build_sensor_context(instance, resources={"bench": bench})
    return list(sensor.evaluate_tick(context).run_requests or [])


@pytest.mark.parametrize("partial", ["one agent", "one task", "no range"])
def test_a_run_of_a_part_of_the_sweep_starts_nothing(
    partial: str, repository: dg.RepositoryDefinition, instance: dg.DagsterInstance, whole: dict[str, str]
) -> None:
    tags: Mapping[str, str] = whole
    selection = None
    if partial == "one agent":
        selection = {dg.AssetKey(["small", "half", "agent_runs"])}
    elif partial == "one task":
        tags = {RANGE_START: whole[RANGE_START], RANGE_END: whole[RANGE_START]}
    else:
        tags = {}
    run = dg.DagsterRun(job_name="small__agent_runs", run_id="r", tags=dict(tags), asset_selection=selection)
    (sensor,) = (one for one in repository.sensor_defs if one.name == "small__grade_after_attempts")
    event = dg.DagsterEvent("PIPELINE_SUCCESS", "small__agent_runs")
    context = dg.build_run_status_sensor_context("s", event, instance, run)
    assert isinstance(sensor, dg.RunStatusSensorDefinition)
    assert isinstance(sensor(context), dg.SkipReason)
