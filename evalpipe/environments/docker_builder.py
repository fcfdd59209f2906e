"""Builds environments as images on a Docker engine. The network is there while an image is built, and never after."""

import datetime as dt
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager

from docker.errors import APIError, ImageNotFound
from docker.models.images import Image

from evalpipe.environments.build import (
    BaseMissing,
    BuildSettings,
    BuildStatus,
    BuiltEnvironment,
    PlannedBuild,
    SpareEnvironment,
)
from evalpipe.environments.build_container import (
    BuildContainer,
    StepFailed,
    builds_at_once,
    read_from_image,
    remove_leftover_builds,
)
from evalpipe.environments.checks import newer_commits
from evalpipe.environments.disk_room import IMAGE_NAME, DiskRoom, FreeBytes, NeededImages
from evalpipe.environments.dockerfile_build import build_dockerfile
from evalpipe.environments.recipe import PACKAGES_FILE
from evalpipe.environments.recipe_build import PACKAGES_BYTES, BuildResult, listed_packages, run_recipe
from evalpipe.environments.sources import DockerfileSource, EnvironmentSource, ImageSource, RecipeSource, build_key
from evalpipe.runners.preparation import HAS_FILES_TO_LAY, LAYS_FILES
from evalpipe.sandbox import DiskFull
from evalpipe.sandbox.container_stdin import FILLS_ITSELF, HAS_GNU_TAR
from evalpipe.sandbox.engine import Engine, engine_faults

BUILD_TIMEOUT_S = 1800.0
BUILD_LABEL = "evalpipe.build_key"
_ANSWER_S = 900
_NO_SETTINGS = BuildSettings()


class DockerEnvironmentBuilder:
    """See `EnvironmentBuilder`. Images are tagged with the name of `instance`, so that each is found and trimmed alone.

    `needed` and `free_bytes` are those of `DiskRoom`.
    Connects to the engine that DOCKER_HOST names. Raises EngineUnavailable.
    """

    def __init__(
        self,
        instance: str,
        settings: BuildSettings = _NO_SETTINGS,
        *,
        needed: NeededImages = frozenset,
        timeout_s: float = BUILD_TIMEOUT_S,
        free_bytes: FreeBytes | None = None,
    ) -> None:
        # A connection of its own: to commit a large image takes longer than anything that a box asks for.
        self._engine = Engine()
        self._engine.api.timeout = _ANSWER_S
        self._instance, self._settings, self._timeout_s = instance, settings, timeout_s
        self._disk = DiskRoom(self._engine, instance, needed, free_bytes)
        self._running: set[BuildContainer] = set()
        self._lock = threading.Lock()
        remove_leftover_builds(self._engine, instance)

    @property
    def at_once(self) -> int:
        return builds_at_once(self._engine)

    def locate(self, image_digest: str) -> str:
        return image_digest

    def exists(self, image_digest: str) -> bool:
        with engine_faults(f"look for the image {image_digest}"):
            return self._image(image_digest) is not None

    def spare(self, needed: Collection[str], before: dt.datetime) -> Iterable[SpareEnvironment]:
        return self._disk.spare(needed, before)

    def plan(self, source: EnvironmentSource) -> PlannedBuild:
        digest = "" if source.reference is None else self._base(source.reference)
        return PlannedBuild(source, build_key(source, "docker", digest), digest)

    def abandon(self) -> None:
        with self._lock:
            for container in self._running:
                container.abandon()

    def build(self, planned: PlannedBuild) -> BuiltEnvironment:
        started = time.monotonic()
        known = self._built_before(planned.build_key)
        if known is not None:
            self._disk.hold(known)
            packages = read_from_image(self._engine, self._instance, known, PACKAGES_FILE, PACKAGES_BYTES)
            return BuiltEnvironment(BuildStatus.BUILT, known, "", time.monotonic() - started, listed_packages(packages))
        try:
            missing = self._disk.make(planned.base_digest)
            if missing is not None:
                made = BuildResult(BuildStatus.DISK_FULL, log=missing)
            elif isinstance(planned.source, ImageSource):
                made = self._checked(BuildResult(BuildStatus.BUILT, planned.base_digest), planned)
            elif isinstance(planned.source, DockerfileSource):
                made = self._build_dockerfile(planned.source, planned)
            else:
                made = self._build_recipe(planned.source, planned)
        except DiskFull as error:
            made = BuildResult(BuildStatus.DISK_FULL, log=self._settings.masked(str(error)))
        if made.image is not None:
            self._disk.hold(made.image)
        return BuiltEnvironment(made.status, made.image, made.log, time.monotonic() - started, made.packages)

    def _base(self, reference: str) -> str:
        with engine_faults(f"look for the image {reference}"):
            try:
                found = self._image(reference) or self._engine.client.images.pull(reference)
            except APIError as error:
                raise BaseMissing(
                    f"image {reference} is neither on this machine nor can it be pulled ({error.explanation}): pull or "
                    f"import it, or set environment.base_image or EVALPIPE_BASE_IMAGE to one that is there"
                ) from error
        return str(found.id)

    def _image(self, reference: str) -> Image | None:
        try:
            return self._engine.client.images.get(reference)
        except ImageNotFound:
            return None

    def _tag(self, key: str) -> str:
        return f"{key[:32]}-{self._instance}"

    def _built_before(self, key: str) -> str | None:
        """The image of this key, whoever of this engine built it; it is tagged as this instance's too.

        It is known by a name that a build gave it: whatever anybody makes from it has its labels.
        """
        with engine_faults("look for an image that was built before"):
            named = self._engine.client.images.list(filters={"reference": f"{IMAGE_NAME}:{key[:32]}-*"})
            found = next((image for image in named if image.labels.get(BUILD_LABEL) == key), None)
            if found is None:
                return None
            found.tag(IMAGE_NAME, self._tag(key))
        return str(found.id)

    def _build_dockerfile(self, source: DockerfileSource, planned: PlannedBuild) -> BuildResult:
        name = f"{IMAGE_NAME}:{self._tag(planned.build_key)}"
        built = build_dockerfile(self._engine, source, name, self._labels(planned.build_key), self._settings)
        made = self._checked(built, planned)
        if built.image is not None and made.image is None:
            # Else the next build would find it, and take it unchecked.
            with engine_faults(f"remove the image {name}"):
                self._engine.client.images.remove(name)
        return made

    def _build_recipe(self, source: RecipeSource, planned: PlannedBuild) -> BuildResult:
        labels = [f"LABEL {name}={value}" for name, value in self._labels(planned.build_key).items()]
        with self._container(planned.base_digest, source.recipe.env) as container:
            made = run_recipe(container, source, planned.newer, self._settings)
            if made.status is not BuildStatus.BUILT:
                return made
            if _succeeds(container, HAS_GNU_TAR):
                labels.append(f"LABEL {FILLS_ITSELF}=1")
            labels.append(f"LABEL {LAYS_FILES}={'yes' if _succeeds(container, HAS_FILES_TO_LAY) else 'no'}")
            changes = ["USER 1000:1000", "WORKDIR /work", 'CMD ["/bin/sh"]', *labels]
            return made._replace(image=container.commit(IMAGE_NAME, self._tag(planned.build_key), changes))

    def _checked(self, made: BuildResult, planned: PlannedBuild) -> BuildResult:
        """A team's own image, when nothing in it gives the answers away."""
        if made.image is None:
            return made
        with self._container(made.image, {}) as container:
            try:
                leak = newer_commits(container, planned.newer)
            except StepFailed as error:
                log = f"the image has no `find` to look into it with ({error}); install findutils in it"
                return BuildResult(BuildStatus.FAILED, log=log)
        return made if not leak else BuildResult(BuildStatus.LEAKS_PROJECT, log=leak)

    def _labels(self, key: str) -> dict[str, str]:
        return {"evalpipe.managed": "1", "evalpipe.instance": self._instance, BUILD_LABEL: key}

    @contextmanager
    def _container(self, base: str, env: Mapping[str, str]) -> Iterator[BuildContainer]:
        container = BuildContainer(self._engine, self._instance, base, env, self._settings, timeout_s=self._timeout_s)
        with self._lock:
            self._running.add(container)
        try:
            with container:
                yield container
        finally:
            with self._lock:
                self._running.discard(container)


def _succeeds(container: BuildContainer, script: str) -> bool:
    try:
        container.run(script)
    except StepFailed:
        return False
    return True
