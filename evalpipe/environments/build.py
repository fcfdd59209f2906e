"""Builds environments: an image for the Docker sandbox, a virtual environment for the process sandbox."""

import fcntl
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import venv
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import docker
from docker.errors import APIError, BuildError, ImageNotFound
from docker.models.images import Image

from evalpipe.environments.definition import EnvironmentDefinition, pip_arguments
from evalpipe.sandbox.engine import engine_faults

LOG_LINES = 40
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DIGEST_PREFIX = "environment:"
_COMPLETE = ".evalpipe-complete"
FREE_BYTES_FLOOR = 2 * 1024**3
"""Below this no build starts: a build that fills the disk takes every other process of the host with it."""


class BuildStatus(StrEnum):
    """How a build ended."""

    BUILT = "built"
    FAILED = "failed"
    BASE_MISSING = "base_missing"
    DISK_FULL = "disk_full"


@dataclass(frozen=True, slots=True)
class BuiltEnvironment:
    """One build. `image_digest` is the image's id, for a virtual environment its key; None when it failed."""

    build_key: str
    status: BuildStatus
    image_digest: str | None
    base_digest: str
    definition: str
    log_tail: str
    seconds: float


class EnvironmentBuilder(Protocol):
    """Builds environments for one kind of sandbox."""

    def build(self, definition: EnvironmentDefinition) -> BuiltEnvironment:
        """Build, or find what was built before. A failed build is a status; a dead engine raises SandboxError."""

    def locate(self, image_digest: str) -> str:
        """What the sandbox opens for an environment: its digest, or where it lies on this machine."""

    def exists(self, image_digest: str) -> bool:
        """Whether an environment that was built before is still there. Raises SandboxError."""


class DockerEnvironmentBuilder:
    """Builds images on the engine of `client`. The network is there while an image is built, and never after."""

    def __init__(self, client: docker.DockerClient, instance: str) -> None:
        self._client = client
        self._instance = instance

    def locate(self, image_digest: str) -> str:
        return image_digest

    def exists(self, image_digest: str) -> bool:
        with engine_faults(f"look for the image {image_digest}"):
            try:
                self._client.images.get(image_digest)
            except ImageNotFound:
                return False
        return True

    def build(self, definition: EnvironmentDefinition) -> BuiltEnvironment:
        with engine_faults("build an image"):
            return self._build(definition)

    def _build(self, definition: EnvironmentDefinition) -> BuiltEnvironment:
        started = time.monotonic()
        reference = definition.image or definition.base
        try:
            base = self._find(reference)
        except APIError as error:
            return BuiltEnvironment(
                definition.build_key(reference),
                BuildStatus.BASE_MISSING,
                None,
                reference,
                "",
                f"image {reference} is neither on this machine nor can it be pulled ({error}): pull or import "
                f"it, or set environment.base_image or EVALPIPE_BASE_IMAGE to one that is there",
                time.monotonic() - started,
            )
        base_id = str(base.id)
        base_tag = base_id.removeprefix("sha256:")[:32]
        key = definition.build_key(base_id)
        if definition.image:
            return BuiltEnvironment(key, BuildStatus.BUILT, base_id, base_id, "", "", time.monotonic() - started)
        bundle = _host_bundle() if definition.packages or definition.setup else None
        # A tag of our own: the name that a team gave may point elsewhere tomorrow, and an id cannot be built on
        # by every builder.
        base.tag("evalpipe/base", base_tag)
        dockerfile = definition.dockerfile(f"evalpipe/base:{base_tag}", certificates=bundle is not None)
        status, image, log = self._run_build(key, dockerfile, bundle)
        return BuiltEnvironment(key, status, image, base_id, dockerfile, log, time.monotonic() - started)

    def _find(self, reference: str) -> Image:
        try:
            return self._client.images.get(reference)
        except ImageNotFound:
            return self._client.images.pull(reference)

    def _run_build(self, key: str, dockerfile: str, bundle: bytes | None) -> tuple[BuildStatus, str | None, str]:
        files = {"Dockerfile": dockerfile.encode()} | ({"ca-certificates.crt": bundle} if bundle else {})
        try:
            image, _ = self._client.images.build(
                fileobj=_context(files),
                custom_context=True,
                tag=f"evalpipe/environment:{key[:32]}",
                labels={
                    "evalpipe.managed": "1",
                    "evalpipe.instance": self._instance,
                    "evalpipe.build_key": key,
                },
                network_mode=self._build_network(),
                rm=True,
                forcerm=True,
            )
        except BuildError as error:
            parts = [str(part.get("stream") or part.get("error") or "") for part in error.build_log]
            # The classic builder paints what commands say on standard error.
            text = _COLOUR.sub("", "".join(parts))
            return _failure("\n".join(text.splitlines()[-LOG_LINES:]))
        except APIError as error:
            return _failure(str(error))
        return BuildStatus.BUILT, str(image.id), ""

    def _build_network(self) -> str:
        # An engine without a bridge (as in a locked-down CI) has only the host's network to build with.
        names = {network.name for network in self._client.networks.list()}
        return "bridge" if "bridge" in names else "host"


class ProcessEnvironmentBuilder:
    """Makes virtual environments below `folder` with the Python that runs evalpipe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def locate(self, image_digest: str) -> str:
        # Records name the key and not the folder: a frozen set is the same on every machine.
        return str((self._folder / image_digest.removeprefix(_DIGEST_PREFIX)).absolute())

    def exists(self, image_digest: str) -> bool:
        return (Path(self.locate(image_digest)) / _COMPLETE).exists()

    def build(self, definition: EnvironmentDefinition) -> BuiltEnvironment:
        base = f"host python {sys.version.split()[0]}"
        key = definition.build_key(base)
        digest = f"{_DIGEST_PREFIX}{key[:32]}"
        place = Path(self.locate(digest))
        self._folder.mkdir(parents=True, exist_ok=True)
        # Two repositories may need the same environment at the same time.
        with place.with_suffix(".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            started = time.monotonic()
            status, log = self._build(definition, place)
            found = digest if status is BuildStatus.BUILT else None
            return BuiltEnvironment(key, status, found, base, "", log, time.monotonic() - started)

    def _build(self, definition: EnvironmentDefinition, place: Path) -> tuple[BuildStatus, str]:
        if (place / _COMPLETE).exists():
            return BuildStatus.BUILT, ""
        # Scripts of a virtual environment hold its path, so it is made in place and marked when complete.
        shutil.rmtree(place, ignore_errors=True)
        if definition.image:
            status, log = BuildStatus.FAILED, "an image of its own needs Docker: the process sandbox has none"
        else:
            status, log = self._fill(place, definition)
        if status is BuildStatus.BUILT:
            (place / _COMPLETE).touch()
        else:
            shutil.rmtree(place, ignore_errors=True)
        return status, log

    def _fill(self, folder: Path, definition: EnvironmentDefinition) -> tuple[BuildStatus, str]:
        if shutil.disk_usage(folder.parent).free < FREE_BYTES_FLOOR:
            return (
                BuildStatus.DISK_FULL,
                f"less than {FREE_BYTES_FLOOR >> 30} GiB are free for {folder.parent}",
            )
        try:
            venv.create(folder, with_pip=True, symlinks=True)
        except subprocess.CalledProcessError as error:
            log = (error.output or b"").decode(errors="replace")
            return BuildStatus.FAILED, f"this Python cannot make an environment; on Debian install python3-venv\n{log}"
        env = dict(os.environ, PATH=f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
        commands = [["/bin/sh", "-ec", command] for command in definition.setup]
        if definition.packages:
            commands.insert(0, [str(folder / "bin" / "python"), "-m", "pip", *pip_arguments(definition.packages)])
        for command in commands:
            done = subprocess.run(
                command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
            if done.returncode != 0:
                text = (done.stdout + done.stderr).decode(errors="replace").splitlines()
                return BuildStatus.FAILED, "\n".join(text[-LOG_LINES:])
        return BuildStatus.BUILT, ""


def _failure(log: str) -> tuple[BuildStatus, None, str]:
    full = "no space left on device" in log.lower()
    return (BuildStatus.DISK_FULL if full else BuildStatus.FAILED), None, log


def _host_bundle() -> bytes | None:
    """The CA bundle that this host was told to trust, for hosts behind a proxy with an authority of its own."""
    for variable in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT"):
        path = os.environ.get(variable)
        if path and Path(path).is_file():
            return Path(path).read_bytes()
    return None


def _context(files: dict[str, bytes]) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    buffer.seek(0)
    return buffer
