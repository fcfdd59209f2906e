"""The services of deploy/compose/compose.yaml, started by the engine's own calls where there is no compose.

There may be no network either: all services then share the loopback of the first, under the names that compose gives
them.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import docker
from docker.models.containers import Container
from docker.types import Mount
from ruamel.yaml import YAML

COMPOSE = Path(__file__).parents[2] / "deploy" / "compose"
LABEL = "evalpipe-test.deployment"
_SECOND = 10**9


def read_services(variables: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The services as compose reads them, with `variables` for its environment. Raises KeyError for a missing one."""

    def value(match: re.Match[str]) -> str:
        name, default = match["name"], match["default"]
        return variables[name] if default is None else variables.get(name) or default

    text = (COMPOSE / "compose.yaml").read_text(encoding="utf-8")
    text = re.sub(r"\$\{(?P<name>\w+)(?::-(?P<default>[^}]*)|:\?[^}]*)?\}", value, text)
    services: dict[str, dict[str, Any]] = YAML(typ="safe").load(text)["services"]
    return services


class Deployment:
    """The running services, by name, on one engine."""

    def __init__(self, client: docker.DockerClient, name: str, variables: Mapping[str, str]) -> None:
        self._client = client
        self._name = name
        self._services = read_services(variables)
        self._first: Container | None = None
        self.containers: dict[str, Container] = {}

    def start(self, name: str) -> None:
        """Start a service when those that it depends on have come as far as it asks."""
        service = self._services[name]
        for other, wish in service.get("depends_on", {}).items():
            if wish["condition"] == "service_healthy":
                self.wait_until_healthy(other)
            else:
                assert self.containers[other].wait(timeout=300)["StatusCode"] == 0, self.log(other)
        self.containers[name] = self.run(
            service["image"],
            service.get("command"),
            environment={key: str(given or "") for key, given in self._environment(service).items()},
            mounts=[self._mount(volume) for volume in service["volumes"]],
            healthcheck=_healthcheck(service.get("healthcheck")),
            pid_mode=service.get("pid"),
            uts_mode=service.get("uts"),
            working_dir=service.get("working_dir"),
        )

    def run(self, image: str, command: Any, **options: Any) -> Container:
        """Start a container among the services."""
        names = dict.fromkeys(self._services, "127.0.0.1")
        place = {"network_mode": self._network} if self._first else {"network_mode": "none", "extra_hosts": names}
        container = self._client.containers.run(
            image, command, detach=True, labels={LABEL: self._name}, **place, **options
        )
        self._first = self._first or container
        return container

    def wait_until_healthy(self, name: str, timeout_s: float = 300) -> None:
        """Wait for the service's own health check."""
        container, end = self.containers[name], time.monotonic() + timeout_s
        while (health := _health(container)) != "healthy":
            assert container.status == "running", f"{name} ended:\n{self.log(name)}"
            assert time.monotonic() < end, f"{name} is {health} after {timeout_s} s:\n{self.log(name)}"
            time.sleep(0.5)

    def execute(self, name: str, *command: str) -> str:
        """What a command says that is run in a service, as by `docker compose exec`; it has to succeed."""
        answer = self.containers[name].exec_run(list(command), demux=True)
        streams: tuple[bytes | None, bytes | None] = cast(Any, answer.output)
        out, err = ((stream or b"").decode() for stream in streams)
        assert answer.exit_code == 0, f"{command}: exit code {answer.exit_code}\n{out}\n{err}"
        return out

    def log(self, name: str) -> str:
        """The last lines that a service wrote."""
        return self.containers[name].logs(tail=40).decode(errors="replace")

    @property
    def _network(self) -> str:
        assert self._first is not None
        return f"container:{self._first.id}"

    def _environment(self, service: Mapping[str, Any]) -> dict[str, Any]:
        environment = dict(service["environment"])
        if "DAGSTER_CONTAINER_CONTEXT" in environment:
            context = json.loads(environment["DAGSTER_CONTAINER_CONTEXT"])
            del context["docker"]["networks"]
            context["docker"]["container_kwargs"] |= {"network_mode": self._network, "labels": {LABEL: self._name}}
            environment["DAGSTER_CONTAINER_CONTEXT"] = json.dumps(context)
        return environment

    def _mount(self, volume: str | Mapping[str, Any]) -> Mount:
        if not isinstance(volume, str):
            return Mount(volume["target"], volume["source"], type=volume["type"])
        source, target, *mode = volume.split(":")
        if source.startswith("."):
            source = str(COMPOSE / source)
        if source.startswith("/"):
            return Mount(target, source, type="bind", read_only=mode == ["ro"])
        return Mount(target, None, type="volume")  # nameless: it goes with its container


def _healthcheck(check: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if check is None:
        return None
    seconds = {
        key: int(check[key].removesuffix("s")) for key in ("interval", "timeout", "start_period") if key in check
    }
    times = {key: value * _SECOND for key, value in seconds.items()}
    return {"test": check["test"], "retries": check["retries"], **times}


def _health(container: Container) -> str:
    container.reload()
    return str(container.attrs["State"]["Health"]["Status"])


@contextmanager
def deployed(client: docker.DockerClient, name: str, variables: Mapping[str, str]) -> Iterator[Deployment]:
    """Start every service in the order of its needs; nothing of them, nor of their runs, is left at the end."""
    deployment = Deployment(client, name, variables)
    try:
        for service in ("postgres", "migrate", "code", "webserver", "daemon"):
            deployment.start(service)
        deployment.wait_until_healthy("webserver")
        yield deployment
    finally:
        for container in client.containers.list(all=True, filters={"label": f"{LABEL}={name}"}, ignore_removed=True):
            container.remove(force=True, v=True)
