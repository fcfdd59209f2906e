"""What environment a candidate needs: its template's recipe for the tree that it starts from, and the key of that."""

import dataclasses
import datetime as dt
import hashlib
from dataclasses import dataclass
from pathlib import Path

from evalpipe.config import RepositoryConfig, resolve_base_image
from evalpipe.environments import (
    TEMPLATES,
    BaseMissing,
    BuildStatus,
    ChangeTree,
    CommitTree,
    DockerfileSource,
    EnvironmentSource,
    ImageSource,
    NoRecipe,
    PlannedBuild,
    Project,
    RecipeSource,
)
from evalpipe.history.releases import release_before
from evalpipe.lake import Row
from evalpipe.stages.bench import Workbench

CONTEXT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """The environment that a candidate needs, or `fault`, the reason why there can be none.

    `day` is the latest on which dependencies may have been released, `base_commit` that of the tree.
    """

    build_key: str
    base_image: str
    base_commit: str
    day: dt.date
    planned: PlannedBuild | None = None
    fault: BuildStatus | None = None
    reason: str = ""


class ImagePlanner:
    """Plans the environments of one repository."""

    def __init__(self, bench: Workbench, config: RepositoryConfig) -> None:
        self._bench, self._config = bench, config
        self._missing: dict[str, str] = {}
        self._read: tuple[str, CommitTree, ChangeTree] | None = None

    def plan(self, candidate: Row, day: dt.date) -> ImagePlan:
        """The plan for a candidate with dependencies as of `day`. Raises SandboxError."""
        commit = str(candidate["parent"])
        try:
            source = self._source(candidate, day)
        except NoRecipe as error:
            return self._faulty(BuildStatus.NO_RECIPE, str(error), "", commit, day)
        reference = source.reference or "the Dockerfile's own"
        if reference in self._missing:
            return self._faulty(BuildStatus.BASE_MISSING, self._missing[reference], reference, commit, day)
        try:
            planned = self._bench.builder.plan(source)
        except BaseMissing as error:
            self._missing[reference] = str(error)
            return self._faulty(BuildStatus.BASE_MISSING, str(error), reference, commit, day)
        if isinstance(source, RecipeSource):
            # Not read yet: most plans are never built, and memory would hold the trees of all.
            unread = dataclasses.replace(source, tree=CommitTree(self._bench.mirror(self._config.name), commit))
            planned = dataclasses.replace(planned, source=unread)
        shown = f"{reference} ({planned.base_digest})" if planned.base_digest else reference
        return ImagePlan(planned.build_key, shown, commit, day, planned)

    def _faulty(self, fault: BuildStatus, reason: str, base: str, commit: str, day: dt.date) -> ImagePlan:
        key = hashlib.sha256(f"{fault}\0{reason}".encode()).hexdigest()
        return ImagePlan(key, base, commit, day, None, fault, reason)

    def _source(self, candidate: Row, day: dt.date) -> EnvironmentSource:
        environment = self._config.environment
        if environment.image is not None:
            return ImageSource(environment.image)
        if environment.dockerfile is not None:
            path = self._bench.workspace.resolve(environment.dockerfile)
            return DockerfileSource(path.name, _context(path))
        tree, change = self._trees(candidate)
        version = release_before(self._bench.mirror(self._config.name), tree.commit)
        project = Project(tree, day, version, environment.packages, environment.setup, change, self._config.runner.name)
        recipe = TEMPLATES[environment.template].recipe(project)
        return RecipeSource(resolve_base_image(environment), recipe, tree, environment.packages, environment.setup)

    def _trees(self, candidate: Row) -> tuple[CommitTree, ChangeTree]:
        """Those of a candidate's base and change; of the last one they are remembered, for its other day."""
        commit = str(candidate["commit"])
        if self._read is None or self._read[0] != commit:
            mirror = self._bench.mirror(self._config.name)
            base = CommitTree(mirror, str(candidate["parent"]))
            self._read = (commit, base, ChangeTree(mirror, commit, base))
        return self._read[1:]


def candidate_days(candidate: Row) -> tuple[dt.date, dt.date]:
    """The days on which a candidate's dependencies are looked for: the first of the month of its merge, and its own.

    Days are those of UTC.
    """
    merged: dt.datetime = candidate["merge_date"]
    own = merged.astimezone(dt.UTC).date()
    return own.replace(day=1), own


def _context(dockerfile: Path) -> dict[str, bytes]:
    """Every file of the folder of a Dockerfile, by its path in it. Raises NoRecipe."""
    if not dockerfile.is_file():
        raise NoRecipe(f"there is no Dockerfile {dockerfile}: set environment.dockerfile to a path from the workspace")
    files, size = {}, 0
    for path in sorted(dockerfile.parent.rglob("*")):
        if not path.is_file():
            continue
        size += path.stat().st_size
        if size > CONTEXT_BYTES:
            raise NoRecipe(
                f"{dockerfile.parent}, the build context of the Dockerfile, has more than {CONTEXT_BYTES >> 20} MiB: "
                f"give the Dockerfile a folder of its own, with only the files that it copies"
            )
        files[path.relative_to(dockerfile.parent).as_posix()] = path.read_bytes()
    return files
