"""Assets from the history to validated tasks: candidate_commits, task_images, validation_runs, validated_tasks.

What makes tables and plots is imported where it is used, here and in the other assets: it takes a third of the time
that the process of a run needs to start, and most runs have no use for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import dagster as dg

from evalpipe.config import RepositoryConfig
from evalpipe.environments import BuildStatus
from evalpipe.lake import Row
from evalpipe.pipeline.batch import BatchResults, PartitionDone, PartitionFailed, end_batch, run_batch
from evalpipe.pipeline.columns import columns_of
from evalpipe.pipeline.metadata import series
from evalpipe.pipeline.partitions import (
    CANDIDATE_PASSES,
    CANDIDATES,
    checked_keys,
    keys_of_run,
    repositories_partitions,
)
from evalpipe.pipeline.pools import BOXES, IMAGES
from evalpipe.stages.bench import Workbench
from evalpipe.stages.images import build_images, count_images
from evalpipe.stages.judging import judge_candidates
from evalpipe.stages.mining import mine_repository, mining_funnel, stored_validation_funnel
from evalpipe.stages.validating import ValidationPass, validate_candidate, validation_limits
from evalpipe.stages.validation_rows import is_test, summaries

# Groups are listed by name in the UI: this one comes before `frozen_sets` and `sweep_…`.
GROUP = "candidates"
VALIDATION_BATCH = 40
Bench = dg.ResourceParam[Workbench]


class ImageOptions(dg.Config):
    """Run configuration of task_images. `newest` builds only what so many of the newest candidates need.

    `retry_failed` tries builds again that failed before.
    """

    newest: int | None = None
    retry_failed: bool = False


class ValidationOptions(dg.Config):
    """Run configuration of validation_runs. `same_day` runs the second pass on the day of the first."""

    same_day: bool = False


def history_assets(repositories: Mapping[str, RepositoryConfig]) -> list[dg.AssetsDefinition]:
    """The four assets over the repositories of the workspace, in the order of the way."""
    partitions = repositories_partitions(repositories)
    owners = owners_of(repositories.values())
    commits = _candidate_commits(repositories, partitions, owners)
    images = _task_images(repositories, partitions, owners, commits)
    runs = _validation_runs(repositories, owners, images)
    return [commits, images, runs, _validated_tasks(repositories, partitions, owners, runs)]


def owners_of(repositories: Iterable[RepositoryConfig]) -> list[str]:
    """Who answers for any of some repositories."""
    return sorted({owner for config in repositories for owner in config.owners})


def _candidate_commits(
    repositories: Mapping[str, RepositoryConfig], partitions: dg.StaticPartitionsDefinition, owners: Sequence[str]
) -> dg.AssetsDefinition:
    @dg.asset(
        partitions_def=partitions,
        group_name=GROUP,
        kinds={"git", "parquet"},
        owners=owners,
        metadata=columns_of("candidate_commits"),
    )
    def candidate_commits(context: dg.AssetExecutionContext, bench: Bench) -> dg.MaterializeResult[Any]:
        """Every mainline change of a repository, kept as a candidate or rejected with one typed reason."""
        from evalpipe.reports import funnel_markdown

        mined = mine_repository(bench, repositories[context.partition_key])
        context.instance.add_dynamic_partitions(str(CANDIDATES.name), checked_keys(mined.kept))
        for warning in mined.warnings:
            context.log.warning(warning)
        funnel = mining_funnel(mined)
        return dg.MaterializeResult(
            metadata={
                "changes": mined.changes,
                "kept": len(mined.kept),
                "funnel": dg.MetadataValue.md(funnel_markdown(funnel, [])),
                **series("reason", {name: count for name, count in funnel if count}),
                "warnings": dg.MetadataValue.md("\n".join(f"- {warning}" for warning in mined.warnings)),
            }
        )

    return candidate_commits


def _task_images(
    repositories: Mapping[str, RepositoryConfig],
    partitions: dg.StaticPartitionsDefinition,
    owners: Sequence[str],
    commits: dg.AssetsDefinition,
) -> dg.AssetsDefinition:
    @dg.asset(
        partitions_def=partitions,
        group_name=GROUP,
        kinds={"docker", "parquet"},
        owners=owners,
        deps=[commits],
        pool=IMAGES,
        metadata=columns_of("task_images"),
    )
    def task_images(context: dg.AssetExecutionContext, config: ImageOptions, bench: Bench) -> dg.MaterializeResult[Any]:
        """The environments in which a repository's candidates run: build key, image digest, build log."""
        rows = build_images(bench, repositories[context.partition_key], config.newest, retry_failed=config.retry_failed)
        failed = [row for row in rows if row["status"] != BuildStatus.BUILT]
        for row in failed:
            context.log.error(f"{row['status']}, for {len(row['candidates'])} candidates: {row['log_tail']}")
        logs = [f"{row['status']}\n```\n{row['log_tail']}\n```" for row in failed]
        return dg.MaterializeResult(
            metadata={**asdict(count_images(rows)), "log": dg.MetadataValue.md("\n".join(logs))}
        )

    return task_images


def _validation_runs(
    repositories: Mapping[str, RepositoryConfig], owners: Sequence[str], images: dg.AssetsDefinition
) -> dg.AssetsDefinition:
    @dg.asset(
        partitions_def=CANDIDATE_PASSES,
        group_name=GROUP,
        kinds={"docker", "parquet"},
        owners=owners,
        deps=[dg.AssetDep(images, partition_mapping=dg.AllPartitionMapping())],
        backfill_policy=dg.BackfillPolicy.multi_run(VALIDATION_BATCH),
        output_required=False,
        pool=BOXES,
        metadata=columns_of("validation_runs"),
    )
    def validation_runs(context: dg.AssetExecutionContext, config: ValidationOptions, bench: Bench) -> BatchResults:
        """Both sides of each candidate, and the after side under stress: one row for each test outcome."""
        candidates = {
            row["candidate_id"]: row for name in repositories for row in bench.lake.rows("candidate_commits", name)
        }

        def work(key: str, labels: dict[str, str]) -> PartitionDone:
            candidate_id, _, which = key.partition("|")
            candidate = candidates.get(candidate_id)
            if candidate is None or candidate["repository"] not in repositories:
                raise PartitionFailed(f"{candidate_id} is not in the last mining of any repository")
            repository = repositories[candidate["repository"]]
            one = ValidationPass(which)
            validate_candidate(bench, repository, candidate, one, same_day=config.same_day, labels=labels)
            return _validated(bench.lake.rows("validation_runs", candidate_id, which))

        failed: dict[str, str] = {}
        keys = keys_of_run(context)
        workers = max(bench.boxes_at_once([validation_limits(one)]) for one in repositories.values())
        for which in ValidationPass:  # the first one first: the others need it
            batch = [key for key in keys if key.endswith(f"|{which.value}")]
            failed |= run_batch(context, bench, batch, work, workers=workers)
        yield from end_batch(context, failed, len(keys))

    return validation_runs


def _validated(rows: Sequence[Row]) -> PartitionDone:
    """What a partition says of a pass, of which a stress pass that is not wanted has no rows."""
    if not rows:
        return PartitionDone("not wanted", {"stress": dg.MetadataValue.text("not wanted: it does not look valid")})
    runs = summaries(rows)
    return PartitionDone(
        rows[0]["content_key"],
        {
            "tests": dg.MetadataValue.int(sum(map(is_test, rows))),
            "seconds": dg.MetadataValue.float(sum(row["run_seconds"] for row in runs)),
            "suite_runs": dg.MetadataValue.text(", ".join(row["suite_run"] for row in runs)),
        },
    )


def _validated_tasks(
    repositories: Mapping[str, RepositoryConfig],
    partitions: dg.StaticPartitionsDefinition,
    owners: Sequence[str],
    runs: dg.AssetsDefinition,
) -> dg.AssetsDefinition:
    @dg.asset(
        partitions_def=partitions,
        group_name=GROUP,
        kinds={"parquet"},
        owners=owners,
        deps=[dg.AssetDep(runs, partition_mapping=dg.AllPartitionMapping())],
        metadata=columns_of("validated_tasks"),
    )
    def validated_tasks(context: dg.AssetExecutionContext, bench: Bench) -> dg.MaterializeResult[Any]:
        """One verdict and one reason for each candidate, with its fail-to-pass and pass-to-pass tests."""
        from evalpipe.reports import funnel_markdown

        rows = judge_candidates(bench, repositories[context.partition_key])
        funnel = stored_validation_funnel(bench, [context.partition_key])
        return dg.MaterializeResult(
            metadata={
                "candidates": len(rows),
                **series("class", dict(funnel)),
                "funnel": dg.MetadataValue.md(funnel_markdown([], funnel)),
            }
        )

    return validated_tasks
