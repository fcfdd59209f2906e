"""Stage `task_images`: the environments of a repository's candidates."""

from evalpipe.config import RepositoryConfig
from evalpipe.environments import BuildStatus
from evalpipe.lake import Row
from evalpipe.stages.bench import Workbench
from evalpipe.tasks import Task


class EnvironmentNotReady(Exception):
    """A stage needs an environment that was not built, or is gone."""


def build_images(bench: Workbench, config: RepositoryConfig) -> list[Row]:
    """Build what the kept candidates of a repository need, and write one row for each environment.

    A build that fails is a row with its reason and the end of its log; it costs its candidates, not the run.
    """
    kept = [row["candidate_id"] for row in bench.lake.rows("candidate_commits", config.name) if row["reason"] == "kept"]
    definition = bench.definition(config.environment)
    built = bench.builder.build(definition)
    row: Row = {
        "repository": config.name,
        "build_key": built.build_key,
        "sandbox": definition.sandbox,
        "status": built.status.value,
        "image_digest": built.image_digest,
        "base_image": f"{definition.image or definition.base} ({built.base_digest})",
        "definition": built.definition,
        "log_tail": built.log_tail,
        "build_seconds": built.seconds,
        "built_at": bench.clock(),
        "candidates": kept,
    }
    bench.lake.write("task_images", [row], config.name)
    return [row]


def environment_of(bench: Workbench, repository: str) -> Row:
    """The environment that a repository's candidates run in.

    Raises EnvironmentNotReady, with the reason of the failed build where there was one.
    """
    rows = bench.lake.rows("task_images", repository)
    if not rows:
        raise EnvironmentNotReady(f"no environment was built for {repository}: run `evalpipe validate` first")
    row = rows[0]
    if row["status"] != BuildStatus.BUILT:
        raise EnvironmentNotReady(
            f"the environment of {repository} was not built ({row['status']}):\n{row['log_tail']}"
        )
    if row["sandbox"] != bench.sandbox.name or not bench.builder.exists(row["image_digest"]):
        raise EnvironmentNotReady(
            f"the environment of {repository} ({row['image_digest']}) is not there for the {bench.sandbox.name} "
            f"sandbox: run `evalpipe validate`, which builds it again"
        )
    return row


def environment_of_task(bench: Workbench, task: Task) -> str:
    """What the sandbox opens for a frozen task. Raises EnvironmentNotReady when it is not there for this sandbox."""
    environment = task.environment
    if environment.sandbox != bench.sandbox.name or not bench.builder.exists(environment.image_digest):
        raise EnvironmentNotReady(
            f"task {task.task_id} was validated in {environment.image_digest} ({environment.sandbox} sandbox), "
            f"which is not on this machine for the {bench.sandbox.name} sandbox: bring the image here, or validate "
            f"and freeze again"
        )
    return bench.builder.locate(environment.image_digest)
