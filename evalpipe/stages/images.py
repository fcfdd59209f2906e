"""Stage `task_images`: the environments of a repository's candidates.

Candidates whose environments are decided by the same content share one: it is built once, from the tree of the oldest
of their base commits. What a template takes from an index of packages is what was released by the first day of the
month in which a change was merged, so that the changes of a month can share; when that has not been released by then,
the day itself is tried.
"""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from evalpipe.config import RepositoryConfig
from evalpipe.environments import SETTLED, BuildStatus, BuiltEnvironment, definition_text
from evalpipe.lake import Row
from evalpipe.stages.bench import Workbench
from evalpipe.stages.image_plans import ImagePlan, ImagePlanner, candidate_days
from evalpipe.tasks import Task

_ABANDON_AGAIN_S = 0.1
# A repository that has any of them has the first: they follow one another on the mainline.
_CHANGES_LOOKED_FOR = 20


class EnvironmentNotReady(Exception):
    """A stage needs an environment that was not built, or is gone."""


@dataclass
class _Wanted:
    """One environment that is to be there, with the candidates that share it and their changes, the oldest first."""

    plan: ImagePlan
    candidates: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)

    def newer(self) -> frozenset[str]:
        """Commits that came after the base, of which the image must have none: some of the changes themselves."""
        return frozenset(self.changes[:_CHANGES_LOOKED_FOR])


def build_images(
    bench: Workbench, config: RepositoryConfig, newest: int | None = None, *, retry_failed: bool = False
) -> list[Row]:
    """Build what the kept candidates of a repository need (the `newest` ones, or all), and write the rows.

    There is one row for each environment, and those of earlier builds stay as long as a kept candidate has no other.
    A build that fails is a row with its reason and the end of its log; it costs its candidates, not the run. It is not
    tried again while its key is the same, unless the network or the disk was the reason or `retry_failed` asks for it.
    Raises SandboxError when the engine is gone.
    """
    kept = [row for row in bench.lake.rows("candidate_commits", config.name) if row["reason"] == "kept"]
    chosen = kept if newest is None else kept[-newest:]
    earlier = bench.lake.rows("task_images", config.name)
    known = {
        row["build_key"]: row
        for row in earlier
        if _is_there(bench, row) or (not retry_failed and _is_settled(bench, row))
    }
    planner = ImagePlanner(bench, config)
    first = _Builds(bench, config, known)
    for candidate in chosen:
        month, own = candidate_days(candidate)
        plan = planner.plan(candidate, month)
        if plan.build_key not in known:
            # What was built of the day itself before is not tried with the month's again.
            of_the_day = planner.plan(candidate, own)
            plan = of_the_day if of_the_day.build_key in known else plan
        first.want(plan, candidate)
    rows = first.build()
    late = {
        candidate_id: row["build_key"]
        for row in rows
        if row["status"] == BuildStatus.UNRELEASED
        for candidate_id in row["candidates"]
    }
    second = _Builds(bench, config, known)
    for candidate in chosen:
        failed = late.get(candidate["candidate_id"])
        later = planner.plan(candidate, candidate_days(candidate)[1]) if failed else None
        if later is not None and later.build_key != failed:
            second.want(later, candidate)
    rows = _joined([*second.build(), *rows, *earlier], [row["candidate_id"] for row in kept])
    bench.lake.write("task_images", rows, config.name)
    return rows


@dataclass(frozen=True, slots=True)
class ImageCounts:
    """How many images serve how many candidates, and how many builds failed with how many more."""

    images: int
    candidates: int
    failed_builds: int
    candidates_without: int

    def __str__(self) -> str:
        text = f"images: {self.images} for {self.candidates} candidates"
        if self.failed_builds:
            text += f"; failed builds: {self.failed_builds}, which cost {self.candidates_without}"
        return text


def count_images(rows: Sequence[Row]) -> ImageCounts:
    """The counts of rows of `task_images`."""
    built = [row for row in rows if row["status"] == BuildStatus.BUILT]
    return ImageCounts(
        images=len({row["image_digest"] for row in built}),
        candidates=sum(len(row["candidates"]) for row in built),
        failed_builds=len(rows) - len(built),
        candidates_without=sum(len(row["candidates"]) for row in rows) - sum(len(row["candidates"]) for row in built),
    )


def images_of(bench: Workbench, repository: str) -> dict[str, Row]:
    """The row of the environment of each candidate of a repository, whether it was built or failed."""
    rows = bench.lake.rows("task_images", repository)
    return {candidate_id: row for row in rows for candidate_id in row["candidates"]}


def environment_of(bench: Workbench, repository: str, candidate_id: str) -> Row:
    """The environment that a candidate runs in.

    Raises EnvironmentNotReady, with the reason of the failed build where there was one.
    """
    row = images_of(bench, repository).get(candidate_id)
    if row is None:
        raise EnvironmentNotReady(f"no environment was built for {candidate_id}: run `evalpipe validate` first")
    if row["status"] != BuildStatus.BUILT:
        raise EnvironmentNotReady(
            f"the environment of {candidate_id} was not built ({row['status']}):\n{row['log_tail']}"
        )
    if not _is_there(bench, row):
        raise EnvironmentNotReady(
            f"the environment of {candidate_id} ({row['image_digest']}) is not there for the {bench.sandbox.name} "
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


def _is_there(bench: Workbench, row: Row) -> bool:
    return (
        row["status"] == BuildStatus.BUILT
        and row["sandbox"] == bench.sandbox.name
        and bench.builder.exists(row["image_digest"])
    )


def _is_settled(bench: Workbench, row: Row) -> bool:
    return row["status"] in SETTLED and row["sandbox"] == bench.sandbox.name


class _Builds:
    """Environments that are to be there, each built once, side by side with the others."""

    def __init__(self, bench: Workbench, config: RepositoryConfig, known: Mapping[str, Row]) -> None:
        self._bench, self._config, self._known = bench, config, known
        self._wanted: dict[str, _Wanted] = {}

    def want(self, plan: ImagePlan, candidate: Row) -> None:
        """Add a candidate; from the oldest to the newest, so that the first plan of a key has the oldest tree."""
        wanted = self._wanted.setdefault(plan.build_key, _Wanted(plan))
        wanted.candidates.append(candidate["candidate_id"])
        wanted.changes.append(candidate["commit"])

    def build(self) -> list[Row]:
        """Build what is not there; one row for each environment."""
        missing = [one for key, one in self._wanted.items() if key not in self._known]
        rows: list[Row] = [
            {**self._known[key], "candidates": one.candidates}
            for key, one in self._wanted.items()
            if key in self._known
        ]
        with (
            self._bench.progress("task_images", len(missing)) as advance,
            ThreadPoolExecutor(self._bench.builder.at_once) as pool,
        ):
            building = [pool.submit(self._build, one) for one in missing]
            try:
                for one in building:
                    rows.append(one.result())
                    advance()
            except BaseException:
                self._abandon(building)
                raise
        return rows

    def _abandon(self, building: Sequence[Future[Row]]) -> None:
        """Let no build begin, and end those that run until none does: one may begin just now."""
        for one in building:
            one.cancel()
        while not all(one.done() for one in building):
            self._bench.builder.abandon()
            time.sleep(_ABANDON_AGAIN_S)

    def _build(self, wanted: _Wanted) -> Row:
        plan = wanted.plan
        if plan.planned is None:
            built = BuiltEnvironment(plan.fault or BuildStatus.FAILED, None, plan.reason, 0.0)
        else:
            built = self._bench.builder.build(dataclasses.replace(plan.planned, newer=wanted.newer()))
        return {
            "repository": self._config.name,
            "build_key": plan.build_key,
            "sandbox": self._bench.sandbox.name,
            "status": built.status.value,
            "image_digest": built.image_digest,
            "base_image": plan.base_image,
            "definition": "" if plan.planned is None else definition_text(plan.planned.source),
            "log_tail": built.log_tail,
            "build_seconds": built.seconds,
            "built_at": self._bench.clock(),
            "candidates": wanted.candidates,
            "base_commit": plan.base_commit,
            "day": plan.day.isoformat(),
            "packages": list(built.packages),
        }


def _joined(rows: Sequence[Row], kept: Sequence[str]) -> list[Row]:
    """The rows with each kept candidate in the first that has it; a row without any is left out."""
    left = set(kept)
    joined: dict[tuple[str, str | None], dict[str, Any]] = {}
    for row in rows:
        mine = [candidate_id for candidate_id in row["candidates"] if candidate_id in left]
        left -= set(mine)
        if mine:
            place = joined.setdefault((row["build_key"], row["image_digest"]), {**row, "candidates": []})
            place["candidates"] = [*place["candidates"], *mine]
    return list(joined.values())
