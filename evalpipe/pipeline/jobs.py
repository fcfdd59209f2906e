"""Jobs: the stages as a person or a schedule starts them. The command line runs the same ones."""

from typing import TYPE_CHECKING

import dagster as dg

from evalpipe.config import SweepConfig

if TYPE_CHECKING:  # Dagster gives this type out and does not export it.
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition

MINE = "mine"
BUILD_IMAGES = "build_images"
VALIDATE = "validate"
JUDGE = "judge"
FREEZE = "freeze"

PRIORITIES = {JUDGE: 5, VALIDATE: -5, "agent_runs": -5, "graded_results": 5, "report": 10}
"""In the queue of runs what takes a moment goes before what takes hours; all others, and the UI's backfills, have 0."""


def history_jobs() -> "list[UnresolvedAssetJobDefinition]":
    """Jobs over repositories and candidates, one for each partitioning."""
    return [
        _job(MINE, "candidate_commits", "Look at every mainline change of a repository."),
        _job(BUILD_IMAGES, "task_images", "Build the environments of a repository's candidates."),
        _job(VALIDATE, "validation_runs", "Run both sides of candidates."),
        _job(JUDGE, "validated_tasks", "Classify the candidates of a repository by their runs."),
    ]


def calibrate_job_name(task_set: str) -> str:
    return f"calibrate_{dagster_name(task_set)}"


def sweep_job_name(sweep: str, stage: str) -> str:
    """Name of the job of a sweep's stage: `agent_runs`, `graded_results` or `report`."""
    return f"{dagster_name(sweep)}__{stage}"


def stage_keys(sweep: SweepConfig, stage: str) -> list[dg.AssetKey]:
    """Keys of the assets of a stage, one for each agent of a sweep."""
    return [dg.AssetKey([sweep.name, agent, stage]) for agent in sweep.agents]


def calibrate_job(task_set: str) -> "UnresolvedAssetJobDefinition":
    frozen, calibration = dg.AssetKey(["task_sets", task_set]), dg.AssetKey(["task_sets", task_set, "calibration"])
    # With the checks of the set, which is written by `freeze`: what fails there must not be calibrated.
    selection = dg.AssetSelection.assets(calibration) | dg.AssetSelection.checks_for_assets(frozen)
    text = f"Check the frozen set {task_set} and calibrate its tasks."
    return dg.define_asset_job(calibrate_job_name(task_set), selection, description=text)


def sweep_jobs(sweep: SweepConfig) -> "list[UnresolvedAssetJobDefinition]":
    """The three jobs of a sweep: the attempts of every agent, their grades, the report."""
    jobs = []
    for stage in ("agent_runs", "graded_results"):
        selection = dg.AssetSelection.assets(*stage_keys(sweep, stage))
        text = f"{stage} of every agent of {sweep.name}; what is done already is not done again."
        name = sweep_job_name(sweep.name, stage)
        jobs.append(dg.define_asset_job(name, selection, description=text, tags=_priority(stage)))
    reports = [dg.AssetKey([sweep.name, name]) for name in ("category_report", "agent_comparison", "evaluation_report")]
    selection = dg.AssetSelection.assets(*reports)
    text = f"The report of {sweep.name}."
    name = sweep_job_name(sweep.name, "report")
    return [*jobs, dg.define_asset_job(name, selection, description=text, tags=_priority("report"))]


def _job(name: str, asset: str, description: str) -> "UnresolvedAssetJobDefinition":
    selection = dg.AssetSelection.assets(asset)
    return dg.define_asset_job(name, selection, description=description, tags=_priority(name))


def _priority(stage: str) -> dict[str, str]:
    return {"dagster/priority": str(PRIORITIES.get(stage, 0))}


def dagster_name(name: str) -> str:
    """`name` as Dagster's own names have it, which know letters, digits and `_`."""
    return name.replace("-", "_").replace(".", "_")
