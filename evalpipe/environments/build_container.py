"""A container in which an image is built: files laid in, steps run with exec, committed, removed.

The settings of the machine (certificates, mirrors, proxy) are the environment of each exec and files on a volume of
the container's own. A commit takes up neither, so they are in no layer, no history and no configuration of the image.
"""

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from docker.types import LogConfig, Mount

from evalpipe.environments.build import SETTINGS_FOLDER, BuildSettings
from evalpipe.environments.recipe import CACHE_VARIABLE
from evalpipe.sandbox import EXECUTABLE, REGULAR, FileEntry
from evalpipe.sandbox.archive import TarSpool
from evalpipe.sandbox.container import LABEL
from evalpipe.sandbox.container_files import ContainerFiles
from evalpipe.sandbox.engine import Engine, engine_faults
from evalpipe.sandbox.errors import Interrupted, SandboxError
from evalpipe.sandbox.owners import is_leftover, owner_id
from evalpipe.sandbox.removal import remove_container
from evalpipe.sandbox.streams import Tail

CACHE_FOLDER = "/var/cache/evalpipe"
"""Where the cache volume is mounted while an image is built."""

HOME = f"{SETTINGS_FOLDER}/home"
LOG_BYTES = 256 * 1024
_PIDS = 8192
_LEAST_MEMORY = 3 * 1024**3
_MEMORY_SHARE = 0.9
_CACHES = {
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "npm_config_cache": "npm",
    "npm_config_store_dir": "pnpm",
    "YARN_CACHE_FOLDER": "yarn",
}


class StepFailed(Exception):
    """A step ended with another exit code than 0."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


class BuildTimeout(Exception):
    """The deadline of a build ended it."""


class BuildContainer:
    """One container from the image `base`, with the network, in which root runs; a context manager.

    `env` is that of the image to be. The container ends by itself after `timeout_s`, whatever becomes of this process.
    """

    def __init__(
        self,
        engine: Engine,
        instance: str,
        base: str,
        env: Mapping[str, str],
        settings: BuildSettings,
        *,
        timeout_s: float,
    ) -> None:
        self._engine, self._instance, self._base, self._settings = engine, instance, base, settings
        self._env = dict(env)
        self.name = _new_name(instance)
        self._deadline = time.monotonic() + timeout_s
        self._timer = threading.Timer(timeout_s, self._end)
        self._timer.daemon = True
        self._timeout_s = timeout_s
        self._abandoned = threading.Event()
        self._id = ""
        self.output = Tail(LOG_BYTES)

    def __enter__(self) -> "BuildContainer":
        try:
            self._create()
        except BaseException:
            remove_container(self._engine, self.name)
            raise
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        remove_container(self._engine, self.name)

    def abandon(self) -> None:
        """End what runs, and let nothing run again."""
        self._abandoned.set()
        self._end()

    def lay(self, folder: str, files: Iterable[FileEntry]) -> None:
        """Lay files into a folder, which is made if it is not there; they belong to root."""
        self.run(f"mkdir -p '{folder}'")
        with engine_faults(f"lay files into {self.name}"), TarSpool(0, 0) as spool:
            spool.add(files)
            self._engine.api.put_archive(self._id, folder, spool.finish())

    def lay_absolute(self, files: Mapping[str, bytes]) -> None:
        """Lay files by their absolute paths; one that begins with `#!` can be executed."""
        for path, data in files.items():
            place = PurePosixPath(path)
            mode = EXECUTABLE if data.startswith(b"#!") else REGULAR
            self.lay(str(place.parent), [FileEntry(os.fsencode(place.name), mode, data)])

    def run(self, script: str, *, folder: str = "/", capture: Callable[[bytes], object] | None = None) -> None:
        """Run a script of `/bin/sh -e` as root; its output goes to the log, or chunk by chunk to `capture`.

        Raises StepFailed, BuildTimeout, and SandboxError for faults of the engine.
        """
        self._raise_if_ended()
        take = capture or self.output.feed
        with engine_faults(f"run a step in {self.name}"):
            # Both streams as one: the engine would carry them apart, and their order would be anybody's guess.
            command = ["/bin/sh", "-ec", script if capture else f"exec 2>&1\n{script}"]
            started = self._engine.api.exec_create(
                self._id, command, user="0:0", workdir=folder, environment=self._step_environment()
            )
            for chunk in self._engine.api.exec_start(started["Id"], stream=True):
                take(chunk)
            exit_code = self._engine.api.exec_inspect(started["Id"])["ExitCode"]
        self._raise_if_ended()
        if exit_code != 0:
            raise StepFailed(int(exit_code if exit_code is not None else -1))

    def read(self, path: str, max_bytes: int) -> bytes | None:
        """The regular file at an absolute path; None for nothing."""
        place = PurePosixPath(path)
        return ContainerFiles(self._engine, self._id, str(place.parent)).read_file(place.name, max_bytes)

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel ended a process of the build for its memory."""
        with engine_faults(f"look at {self.name}"):
            return bool(self._engine.api.inspect_container(self._id)["State"]["OOMKilled"])

    def commit(self, repository: str, tag: str, changes: list[str]) -> str:
        """Stop the container and make it an image; returns the image's id."""
        self._timer.cancel()
        self._raise_if_ended()
        self._end()
        with engine_faults(f"commit {self.name}"):
            made = self._engine.api.commit(self._id, repository, tag, changes=changes)
        return str(made["Id"])

    def _create(self) -> None:
        labels = {f"{LABEL}managed": "1", f"{LABEL}instance": self._instance, f"{LABEL}owner": owner_id()}
        cache = cache_volume(self._engine, self._instance)
        config = self._engine.api.create_host_config(
            network_mode=build_network(self._engine),
            mounts=[
                Mount(CACHE_FOLDER, cache, type="volume"),
                Mount(SETTINGS_FOLDER, None, type="volume", labels=labels),
            ],
            pids_limit=_PIDS,
            mem_limit=int(self._engine.facts["MemTotal"] * _MEMORY_SHARE / builds_at_once(self._engine)),
            init=self._engine.has_init,
            log_config=LogConfig(type="none"),
        )
        with engine_faults(f"create a container from {self._base}"):
            created = self._engine.api.create_container(
                self._base,
                # An empty one takes the base's away; what stands here would stay in the image, unlike the command.
                entrypoint=[""],
                command=["/bin/sh", "-c", f"exec sleep {int(self._timeout_s) + 60}"],
                # By its name a leftover is found: labels would go into the image with the commit.
                name=self.name,
                user="0:0",
                working_dir="/",
                hostname="build",
                environment=self._image_environment(),
                host_config=config,
            )
            self._id = str(created["Id"])
            with TarSpool(0, 0) as spool:
                spool.add(FileEntry(path.encode(), REGULAR, data) for path, data in self._settings_files())
                self._engine.api.put_archive(self._id, SETTINGS_FOLDER, spool.finish())
            self._engine.api.start(self._id)

    def _settings_files(self) -> Iterable[tuple[str, bytes]]:
        yield "home/.evalpipe", b""
        yield from self._settings.files.items()

    def _image_environment(self) -> dict[str, str]:
        env = dict(self._env)
        if "PATH" in env:
            env["PATH"] = env["PATH"].replace("$PATH", self._engine.path_of_image(self._base))
        return env

    def _step_environment(self) -> dict[str, str]:
        caches = {variable: f"{CACHE_FOLDER}/{folder}" for variable, folder in _CACHES.items()}
        # The cache is on another file system than the image.
        own = {"HOME": HOME, CACHE_VARIABLE: CACHE_FOLDER, "UV_LINK_MODE": "copy", "DEBIAN_FRONTEND": "noninteractive"}
        return {**caches, **own, **self._settings.env}

    def _raise_if_ended(self) -> None:
        if self._abandoned.is_set():
            raise Interrupted(f"{self.name} was ended")
        if time.monotonic() >= self._deadline:
            raise BuildTimeout(f"stopped after {self._timeout_s:.0f} s")

    def _end(self) -> None:
        # Removal is the context manager's; here it is enough that nothing runs any more, and an engine that cannot
        # end it is noticed by whoever waits for the step.
        with suppress(SandboxError), engine_faults(f"end {self.name}"):
            self._engine.api.kill(self.name)


def builds_at_once(engine: Engine) -> int:
    """How many builds an engine carries side by side: one for each processor, as long as each has 3 GiB of memory."""
    return int(max(1, min(engine.facts["NCPU"], engine.facts["MemTotal"] // _LEAST_MEMORY)))


def read_from_image(engine: Engine, instance: str, image: str, path: str, max_bytes: int) -> bytes | None:
    """The regular file at an absolute path of an image; None for nothing. No container is started for it."""
    name = _new_name(instance)
    place = PurePosixPath(path)
    try:
        with engine_faults(f"look into the image {image}"):
            engine.api.create_container(image, entrypoint=["/bin/true"], name=name)
        return ContainerFiles(engine, name, str(place.parent)).read_file(place.name, max_bytes)
    finally:
        remove_container(engine, name)


def build_network(engine: Engine) -> str:
    """The network of builds: an engine without a bridge, as in a locked-down CI, has only the host's."""
    with engine_faults("list the networks"):
        names = {str(network["Name"]) for network in engine.api.networks()}
    return "bridge" if "bridge" in names else "host"


def cache_volume_name(instance: str) -> str:
    return f"evalpipe-cache-{instance}"


def cache_volume(engine: Engine, instance: str) -> str:
    """The name of the volume in which package tools of an instance's builds keep what they fetched; made if missing."""
    name = cache_volume_name(instance)
    with engine_faults("make the cache volume of builds"):
        engine.api.create_volume(name, labels={f"{LABEL}cache_of": instance})
    return name


def remove_leftover_builds(engine: Engine, instance: str) -> int:
    """Remove the build containers that dead processes of this host left behind; returns how many."""
    prefix = _prefix(instance)
    removed = 0
    with engine_faults("list the build containers"):
        found: list[dict[str, Any]] = engine.api.containers(all=True, filters={"name": prefix})
    for container in found:
        name = str(container["Names"][0]).lstrip("/")
        owner, _, unique = name.removeprefix(prefix).partition("-")
        if name.startswith(prefix) and unique and is_leftover(bytes.fromhex(owner).decode(), frozenset()):
            removed += remove_container(engine, container["Id"])
    return removed


def _new_name(instance: str) -> str:
    return f"{_prefix(instance)}{owner_id().encode().hex()}-{uuid.uuid4().hex[:12]}"


def _prefix(instance: str) -> str:
    return f"evalpipe-build-{instance}-"
