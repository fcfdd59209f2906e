"""Builds environments as images on a Docker engine. The network is there while an image is built, and never after."""

import io
import tarfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from docker.errors import APIError, BuildError, ImageNotFound
from docker.models.images import Image

from evalpipe.environments.build import (
    SETTINGS_FOLDER,
    BaseMissing,
    BuildSettings,
    BuildStatus,
    BuiltEnvironment,
    PlannedBuild,
    log_end,
)
from evalpipe.environments.build_container import (
    BuildContainer,
    BuildTimeout,
    StepFailed,
    build_network,
    read_from_image,
    remove_leftover_builds,
)
from evalpipe.environments.kept_files import kept_paths, moving_script
from evalpipe.environments.recipe import BUILD_FOLDER, PACKAGES_FILE, TREE_FOLDER
from evalpipe.environments.sources import DockerfileSource, EnvironmentSource, ImageSource, RecipeSource, build_key
from evalpipe.runners.suite import INSTALLED_FOLDER
from evalpipe.sandbox import REGULAR, DiskFull, FileEntry
from evalpipe.sandbox.engine import Engine, engine_faults

IMAGE_NAME = "evalpipe/environment"
BUILD_TIMEOUT_S = 1800.0
BUILD_LABEL = "evalpipe.build_key"
_ANSWER_S = 900
_PACKAGES_BYTES = 4 * 1024 * 1024
_NO_SETTINGS = BuildSettings()


class DockerEnvironmentBuilder:
    """See `EnvironmentBuilder`. Images are tagged with the name of `instance`, so that each is found and trimmed alone.

    Connects to the engine that DOCKER_HOST names. Raises EngineUnavailable.
    """

    def __init__(
        self, instance: str, settings: BuildSettings = _NO_SETTINGS, *, timeout_s: float = BUILD_TIMEOUT_S
    ) -> None:
        # A connection of its own: to commit a large image takes longer than anything that a box asks for.
        self._engine = Engine()
        self._engine.api.timeout = _ANSWER_S
        self._instance, self._settings, self._timeout_s = instance, settings, timeout_s
        self._running: set[BuildContainer] = set()
        self._lock = threading.Lock()
        remove_leftover_builds(self._engine, instance)

    def locate(self, image_digest: str) -> str:
        return image_digest

    def exists(self, image_digest: str) -> bool:
        with engine_faults(f"look for the image {image_digest}"):
            return self._image(image_digest) is not None

    def plan(self, source: EnvironmentSource) -> PlannedBuild:
        digest = "" if source.reference is None else self._base(source.reference)
        return PlannedBuild(source, build_key(source, "docker", digest), digest)

    def abandon(self) -> None:
        with self._lock:
            for container in self._running:
                container.abandon()

    def build(self, planned: PlannedBuild) -> BuiltEnvironment:
        started = time.monotonic()
        if isinstance(planned.source, ImageSource):
            return BuiltEnvironment(BuildStatus.BUILT, planned.base_digest, "", time.monotonic() - started)
        known = self._built_before(planned.build_key)
        if known is not None:
            packages = self._packages_in(known)
            return BuiltEnvironment(BuildStatus.BUILT, known, "", time.monotonic() - started, packages)
        try:
            if isinstance(planned.source, DockerfileSource):
                status, image, log = self._build_dockerfile(planned.source, planned.build_key)
                packages = ()
            else:
                status, image, log, packages = self._build_recipe(planned.source, planned)
        except DiskFull as error:
            status, image, log, packages = BuildStatus.DISK_FULL, None, self._settings.masked(str(error)), ()
        return BuiltEnvironment(status, image, log, time.monotonic() - started, packages)

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
        """The image of this key, whoever of this engine built it; it is tagged as this instance's too."""
        with engine_faults("look for an image that was built before"):
            images = self._engine.client.images.list(filters={"label": f"{BUILD_LABEL}={key}"})
            if not images:
                return None
            images[0].tag(IMAGE_NAME, self._tag(key))
        return str(images[0].id)

    def _packages_in(self, image: str) -> tuple[str, ...]:
        return _packages(read_from_image(self._engine, self._instance, image, PACKAGES_FILE, _PACKAGES_BYTES))

    def _build_recipe(
        self, source: RecipeSource, planned: PlannedBuild
    ) -> tuple[BuildStatus, str | None, str, tuple[str, ...]]:
        recipe, last = source.recipe, ""
        with self._container(planned.base_digest, recipe.env) as container:
            try:
                container.lay(TREE_FOLDER, source.tree.files() if recipe.decided_by else ())
                container.run(f"mkdir -p {BUILD_FOLDER}")
                container.lay_absolute(recipe.files)
                for number, step in enumerate(recipe.steps, start=1):
                    last = f"step {number} of {len(recipe.steps)} failed: {step.strip().splitlines()[0]}"
                    container.run(step, folder=TREE_FOLDER)
                last = "what the steps left could not be kept"
                self._keep(container, source)
                packages = _packages(container.read(PACKAGES_FILE, _PACKAGES_BYTES))
                image = container.commit(IMAGE_NAME, self._tag(planned.build_key), self._changes(planned.build_key))
            except StepFailed as error:
                if container.ran_out_of_memory():
                    last = f"out of memory; {last}"
                log = log_end(container.output.content(), self._settings, last=f"{last} ({error})")
                return _failure(log), None, log, ()
            except BuildTimeout as error:
                log = log_end(container.output.content(), self._settings, last=str(error))
                return BuildStatus.TIMEOUT, None, log, ()
        return BuildStatus.BUILT, image, "", packages

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

    def _keep(self, container: BuildContainer, source: RecipeSource) -> None:
        """Move what the steps wrote for the tests out of the tree, and remove the tree and what else is of no use."""
        if source.recipe.keeps:
            listing = bytearray()
            container.run("find . ! -type d -print0", folder=TREE_FOLDER, capture=listing.extend)
            found = [path.removeprefix(b"./") for path in bytes(listing).split(b"\0")[:-1]]
            kept = kept_paths(found, source.tree.paths, source.recipe.keeps)
            script = FileEntry(b"keep.sh", REGULAR, moving_script(kept, INSTALLED_FOLDER))
            container.lay(SETTINGS_FOLDER, [script])
            container.run(f". {SETTINGS_FOLDER}/keep.sh", folder=TREE_FOLDER)
        container.run(f"rm -rf {TREE_FOLDER}\nchmod 0777 /work\nfind /tmp -xdev -mindepth 1 -delete")

    def _changes(self, key: str) -> list[str]:
        labels = {"evalpipe.managed": "1", "evalpipe.instance": self._instance, BUILD_LABEL: key}
        return [
            "USER 1000:1000",
            "WORKDIR /work",
            'CMD ["/bin/sh"]',
            *(f"LABEL {name}={value}" for name, value in labels.items()),
        ]

    def _build_dockerfile(self, source: DockerfileSource, key: str) -> tuple[BuildStatus, str | None, str]:
        proxies = {name: value for name, value in self._settings.env.items() if name.lower().endswith("_proxy")}
        try:
            with engine_faults("build an image"):
                network = build_network(self._engine)
            image, _ = self._engine.client.images.build(
                fileobj=_context(source.context),
                custom_context=True,
                dockerfile=source.dockerfile,
                tag=f"{IMAGE_NAME}:{self._tag(key)}",
                labels={"evalpipe.managed": "1", "evalpipe.instance": self._instance, BUILD_LABEL: key},
                # Docker knows these arguments by name and leaves them out of an image's history.
                buildargs=proxies,
                network_mode=network,
                rm=True,
                forcerm=True,
            )
        except BuildError as error:
            parts = [str(part.get("stream") or part.get("error") or "") for part in error.build_log]
            log = log_end("".join(parts).encode(), self._settings, last=str(error.msg))
            return _failure(log), None, log
        except APIError as error:
            log = log_end(str(error.explanation).encode(), self._settings)
            return _failure(log), None, log
        return BuildStatus.BUILT, str(image.id), ""


def _failure(log: str) -> BuildStatus:
    return BuildStatus.DISK_FULL if "no space left on device" in log.lower() else BuildStatus.FAILED


def _packages(data: bytes | None) -> tuple[str, ...]:
    lines = (data or b"").decode(errors="replace").splitlines()
    return tuple(sorted({line.strip() for line in lines if line.strip()}))


def _context(files: Mapping[str, bytes]) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            entry.mode = 0o755 if data.startswith(b"#!") else 0o644
            archive.addfile(entry, io.BytesIO(data))
    buffer.seek(0)
    return buffer
