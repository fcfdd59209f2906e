"""Assembles the Definitions of a workspace from its YAML files. Cheap, and one bad file never hides the others."""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from evalpipe.config import AgentConfig, RepositoryConfig, SweepConfig, Workspace
from evalpipe.pipeline.checks import result_checks, set_checks
from evalpipe.pipeline.history_assets import history_assets
from evalpipe.pipeline.history_sensors import history_sensors
from evalpipe.pipeline.jobs import calibrate_job, dagster_name, history_jobs, sweep_jobs
from evalpipe.pipeline.report_assets import report_assets
from evalpipe.pipeline.schedules import quarterly_rerun, weekly_mining
from evalpipe.pipeline.sweep_assets import agent_assets
from evalpipe.pipeline.sweep_sensors import sweep_sensors
from evalpipe.pipeline.task_set_assets import TaskSetAssets, freeze_job, task_set_assets
from evalpipe.stages.bench import Workbench
from evalpipe.tasks import TaskSetError, frozen_sets

_log = logging.getLogger("evalpipe")


@dataclass
class _Parts:
    assets: list[Any] = field(default_factory=list)
    checks: list[dg.AssetChecksDefinition] = field(default_factory=list)
    jobs: list[Any] = field(default_factory=list)
    calibrations: dict[str, Any] = field(default_factory=dict)
    schedules: list[dg.ScheduleDefinition] = field(default_factory=list)
    sensors: list[dg.SensorDefinition] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def build_definitions(workspace: Workspace, bench: Workbench | None = None) -> dg.Definitions:
    """The Definitions of a workspace; `bench` is the resource that every asset works with.

    What cannot be loaded is left out and named in a warning: `evalpipe doctor` tells the same with all detail.
    """
    parts = _Parts()
    repositories = workspace.load_repositories()
    agents = workspace.load_agents()
    sweeps = workspace.load_sweeps()
    for problem in (*repositories.problems, *agents.problems, *sweeps.problems, *workspace.check_references()):
        parts.problems.append(str(problem))
    if repositories.items:
        parts.assets += history_assets(repositories.items)
        of_history = {job.name: job for job in history_jobs()}
        parts.jobs += [*of_history.values(), freeze_job(repositories.items)]
        parts.schedules.append(weekly_mining(repositories.items, of_history))
        parts.sensors += history_sensors(repositories.items, of_history)
    sets = dict(_load_sets(workspace, parts, repositories.items))
    unarchived = {sweep.name: sweep for sweep in sweeps.items.values() if not sweep.archived}
    live = {name: unarchived[name] for name in _distinct(parts, "sweep", unarchived)}
    for sweep in live.values():
        _add_sweep(parts, sweep, agents.items, sets)
    for of_set in sets.values():
        parts.checks += set_checks(of_set, live)
    for text in parts.problems:
        _log.warning("left out: %s", text)
    return dg.Definitions(
        assets=parts.assets,
        asset_checks=parts.checks,
        jobs=[*parts.jobs, *parts.calibrations.values()],
        schedules=parts.schedules,
        sensors=parts.sensors,
        resources={"bench": bench or Workbench(workspace)},
        executor=dg.in_process_executor,
    )


def _load_sets(
    workspace: Workspace, parts: _Parts, repositories: Mapping[str, RepositoryConfig]
) -> Iterator[tuple[str, TaskSetAssets]]:
    folders = {folder.name: folder for folder in frozen_sets(workspace.task_sets_dir)}
    for name in _distinct(parts, "task set", folders):
        try:
            of_set = task_set_assets(folders[name], repositories)
        except TaskSetError as error:
            parts.problems.append(str(error))
            continue
        parts.assets += [of_set.frozen, of_set.calibration]
        calibrate = calibrate_job(of_set.task_set.record.name)
        parts.calibrations[calibrate.name] = calibrate
        yield of_set.task_set.record.name, of_set


def _add_sweep(
    parts: _Parts, sweep: SweepConfig, agents: dict[str, AgentConfig], sets: dict[str, TaskSetAssets]
) -> None:
    missing = [name for name in sweep.agents if name not in agents]
    if missing:
        return  # check_references has named them
    of_set = sets.get(sweep.task_set)
    if of_set is None:
        # Not a fault: a sweep is written before its set is frozen, and appears when it is.
        _log.info("sweep %s waits for its task set %s to be frozen", sweep.name, sweep.task_set)
        return
    if list(_distinct(parts, f"agent of sweep {sweep.name}", sweep.agents)) != list(sweep.agents):
        return
    for name in sweep.agents:
        parts.assets += agent_assets(sweep, agents[name], of_set)
    parts.assets += report_assets(sweep, agents)
    parts.checks.append(result_checks(sweep, agents))
    of_sweep = {job.name: job for job in sweep_jobs(sweep)}
    parts.jobs += of_sweep.values()
    jobs = of_sweep | parts.calibrations
    parts.schedules.append(quarterly_rerun(sweep, of_set.task_set, jobs))
    parts.sensors += sweep_sensors(sweep, agents, of_set.task_set, jobs)


def _distinct(parts: _Parts, kind: str, names: Iterable[str]) -> Iterator[str]:
    """The names that stay apart in Dagster, where two that differ by `-`, `.` and `_` alone would be one."""
    found = list(names)
    times = Counter(map(dagster_name, found))
    for name in found:
        if times[dagster_name(name)] == 1:
            yield name
        else:
            parts.problems.append(f"{kind} {name}: another one has the same name but for `-`, `.` and `_`; rename one")
