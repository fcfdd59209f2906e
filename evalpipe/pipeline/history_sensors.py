"""Sensors from a mainline that has moved to classes of candidates. All are stopped until somebody switches them on."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import dagster as dg

from evalpipe.config import RepositoryConfig
from evalpipe.history import HistoryError, source_tip
from evalpipe.pipeline.due_passes import due_passes, runs_over
from evalpipe.pipeline.jobs import BUILD_IMAGES, JUDGE, MINE, VALIDATE
from evalpipe.pipeline.partitions import CANDIDATES, RANGE_END, RANGE_START
from evalpipe.stages.bench import Workbench
from evalpipe.stages.validating import ValidationPass
from evalpipe.stages.validation_rows import day_of

if TYPE_CHECKING:
    from evalpipe.pipeline.schedules import Jobs

FOLLOW_UP_S = 3600
"""How often it is looked for passes that are due: the lake is read for each candidate."""

MAINLINE_S = 900
"""How often repositories are asked for the tip of their mainlines."""

PARTITION = "dagster/partition"
Bench = dg.ResourceParam[Workbench]


def history_sensors(repositories: Mapping[str, RepositoryConfig], jobs: "Jobs") -> list[dg.SensorDefinition]:
    """In the order of the way: mining, images, passes, classes."""
    return [
        _mainline_moved(repositories, jobs),
        _images_after_mining(repositories, jobs),
        _passes_that_are_due(repositories, jobs),
        _judge_after_validation(repositories, jobs),
    ]


def _mainline_moved(repositories: Mapping[str, RepositoryConfig], jobs: "Jobs") -> dg.SensorDefinition:
    @dg.sensor(
        name="mainline_moved",
        job=jobs[MINE],
        minimum_interval_seconds=MAINLINE_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Mines a repository whose mainline has a new tip, which proposes its new changes as candidates.",
    )
    def mainline_moved(context: dg.SensorEvaluationContext, bench: Bench) -> Iterator[dg.RunRequest | dg.SkipReason]:
        silent = []
        for name, config in repositories.items():
            try:
                tip = source_tip(bench.workspace.repository_location(config), config.mainline)
            except HistoryError as error:
                # One repository that cannot be reached keeps no other from being mined.
                silent.append(f"{name}: {error}")
                continue
            # Dagster asks for nothing twice under one key: a tip is mined once.
            yield dg.RunRequest(run_key=f"{name} {tip}", partition_key=name)
        for text in silent:
            context.log.warning(text)
        if len(silent) == len(repositories):
            yield dg.SkipReason("; ".join(silent))

    return mainline_moved


def _images_after_mining(repositories: Mapping[str, RepositoryConfig], jobs: "Jobs") -> dg.SensorDefinition:
    @dg.run_status_sensor(
        name="images_after_mining",
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[jobs[MINE]],
        request_job=jobs[BUILD_IMAGES],
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Builds the environments of a repository that was mined; those that are there are not built again.",
    )
    def images_after_mining(context: dg.RunStatusSensorContext) -> dg.RunRequest | dg.SkipReason:
        name = context.dagster_run.tags.get(PARTITION)
        if name not in repositories:
            return dg.SkipReason(f"{name} is no repository of this workspace")
        return dg.RunRequest(run_key=context.dagster_run.run_id, partition_key=name)

    return images_after_mining


def _passes_that_are_due(repositories: Mapping[str, RepositoryConfig], jobs: "Jobs") -> dg.SensorDefinition:
    @dg.sensor(
        name="passes_that_are_due",
        job=jobs[VALIDATE],
        minimum_interval_seconds=FOLLOW_UP_S,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="First passes over candidates that have an environment, second ones when the first is a day old, "
        "and stress passes over what looks valid.",
    )
    def passes_that_are_due(context: dg.SensorEvaluationContext, bench: Bench) -> Iterator[dg.RunRequest]:
        known = context.instance.get_materialized_partitions(dg.AssetKey("validation_runs"))
        order = context.instance.get_dynamic_partitions(str(CANDIDATES.name))
        today = day_of(bench.clock())
        for one in ValidationPass:
            found = due_passes(bench, list(repositories.values()), one, known)
            for tags in runs_over(order, found, one):
                # What fails is asked for again on the next day, and not at every look.
                yield dg.RunRequest(run_key=f"{tags[RANGE_START]} {tags[RANGE_END]} {today}", tags=tags)

    return passes_that_are_due


def _judge_after_validation(repositories: Mapping[str, RepositoryConfig], jobs: "Jobs") -> dg.SensorDefinition:
    @dg.run_status_sensor(
        name="judge_after_validation",
        run_status=dg.DagsterRunStatus.SUCCESS,
        monitored_jobs=[jobs[VALIDATE]],
        request_job=jobs[JUDGE],
        default_status=dg.DefaultSensorStatus.STOPPED,
        description="Classifies the candidates after passes over them.",
    )
    def judge_after_validation(context: dg.RunStatusSensorContext) -> Iterator[dg.RunRequest]:
        for name in repositories:
            yield dg.RunRequest(run_key=f"{context.dagster_run.run_id} {name}", partition_key=name)

    return judge_after_validation
