"""The Docker sandbox: one container a box, found again by its labels when its owner is gone."""

import logging
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker

from evalpipe.sandbox.box import Box, Capacity, Limits, SandboxFacts
from evalpipe.sandbox.container import (
    BOX_LABEL,
    KILLED_PREFIX,
    LABEL,
    USER,
    DockerBox,
)
from evalpipe.sandbox.engine import Engine, engine_faults
from evalpipe.sandbox.errors import SandboxError
from evalpipe.sandbox.owners import is_leftover, owner_id
from evalpipe.sandbox.removal import remove_container, remove_volumes
from evalpipe.sandbox.room import capacity_of_engine

_log = logging.getLogger(__name__)


class DockerSandbox:
    """See `Sandbox`. Connects to the engine that DOCKER_HOST names. Raises EngineUnavailable."""

    name = "docker"

    def __init__(self, instance: str) -> None:
        self._engine = Engine()
        self.instance = instance
        self._images_with_own_root: set[str] = set()
        self._open: dict[str, DockerBox] = {}
        self._lock = threading.Lock()

    @property
    def client(self) -> docker.DockerClient:
        """The client of the same engine, for building images."""
        return self._engine.client

    @contextmanager
    def open(
        self,
        environment: str,
        limits: Limits,
        labels: Mapping[str, str],
        *,
        network: bool = False,
        hostname: str | None = None,
        share: Path | None = None,
    ) -> Iterator[Box]:
        """See `Sandbox.open`."""
        self._engine.image_environment(environment)
        name = f"evalpipe-{uuid.uuid4().hex}"
        mine = {"managed": "1", "instance": self.instance, "owner": owner_id(), "box": name}
        all_labels = {LABEL + key: value for key, value in (dict(labels) | mine).items()}
        box = DockerBox(
            self._engine,
            environment,
            limits,
            all_labels,
            name,
            self._images_with_own_root,
            network=network,
            hostname=hostname,
            share=share,
        )
        with self._lock:
            self._open[name] = box
        try:
            yield box
        finally:
            box.close()
            with self._lock:
                del self._open[name]

    def kill(self, labels: Mapping[str, str]) -> int:
        """See `Sandbox.kill`."""
        wanted = {LABEL + key: value for key, value in labels.items()}
        killed = set()
        with self._lock:
            for name, box in self._open.items():
                if wanted.items() <= box.labels.items():
                    # Marked before the containers are listed: one that is not created yet will not start.
                    box.interrupt()
                    killed.add(name)
        for container in self._containers(wanted):
            name = container["Labels"][BOX_LABEL]
            killed.add(name)
            self._kill_container(container["Id"], name)
        return len(killed)

    def reap(self, alive_owners: Collection[str]) -> int:
        """See `Sandbox.reap`."""
        alive = frozenset(alive_owners)
        removed = 0
        for container in self._containers({}):
            if is_leftover(container["Labels"][f"{LABEL}owner"], alive):
                removed += remove_container(self._engine, container["Id"])
        remove_volumes(self._engine, self._filters({}), lambda labels: is_leftover(labels[f"{LABEL}owner"], alive))
        return removed

    def capacity(self) -> Capacity:
        """See `Sandbox.capacity`."""
        with engine_faults("ask the engine for its facts"):
            return capacity_of_engine(self.client.info())

    def label(self, environment: str, name: str) -> str | None:
        """See `Sandbox.label`."""
        return self._engine.image_label(environment, name)

    def describe(self) -> SandboxFacts:
        """See `Sandbox.describe`."""
        with engine_faults("ask the engine for its facts"):
            facts: dict[str, Any] = self.client.info()
        security = ", ".join(sorted(facts.get("SecurityOptions") or [])) or "none"
        return SandboxFacts(
            name=self.name,
            engine_version=f"Docker {facts['ServerVersion']}",
            isolation=(
                f"a container without network, as user {USER}, without capabilities or new privileges, "
                f"on a read-only root file system; runtime {facts.get('DefaultRuntime')}, "
                f"security options: {security}"
            ),
            cpus=int(facts["NCPU"]),
            memory_bytes=int(facts["MemTotal"]),
        )

    def _filters(self, labels: Mapping[str, str]) -> list[str]:
        mine = {f"{LABEL}managed": "1", f"{LABEL}instance": self.instance}
        return [f"{key}={value}" for key, value in (dict(labels) | mine).items()]

    def _containers(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        # Whatever a person starts from an image that was built here has the image's labels, but is no box.
        filters = {"label": [*self._filters(labels), BOX_LABEL]}
        with engine_faults("list the containers"):
            return list(self._engine.api.containers(all=True, filters=filters))

    def _kill_container(self, container: str, name: str) -> None:
        try:
            with engine_faults(f"kill {name}"):
                self._engine.api.rename(container, name.replace("evalpipe-", KILLED_PREFIX, 1))
        except SandboxError as error:
            _log.debug("%s; it is removed all the same", error)
        remove_container(self._engine, container)
