"""The one Docker client of a sandbox: every call to the engine and every fault of it passes through here.

The engine's faults come as a dozen types from three libraries; here they become the sandbox's own errors,
with the name of the thing and what to do about it.
"""

import base64
import functools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import docker
import requests
import urllib3
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from evalpipe.sandbox.archive import Readable
from evalpipe.sandbox.errors import DiskFull, EngineFault, EngineUnavailable, ImageMissing, Interrupted
from evalpipe.sandbox.paths import as_text

# Long enough for an engine under load to answer; a run's own length does not matter, it is waited for in
# slices.
_ANSWER_S = 120
_ALIVE_S = 10
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Go's os.FileMode, which the engine reports: https://pkg.go.dev/io/fs#FileMode
_GO_DIRECTORY, _GO_SYMLINK, _GO_SPECIAL = (
    1 << 31,
    1 << 27,
    (1 << 26) | (1 << 25) | (1 << 24) | (1 << 21) | (1 << 19),
)


@dataclass(frozen=True, slots=True)
class PathStat:
    """What lies at a path of a container: size in bytes and kind."""

    size: int
    is_directory: bool
    is_symlink: bool
    is_special: bool


class NothingThere(EngineFault):
    """There is nothing at a path of a container, or no such container."""


@contextmanager
def engine_faults(doing: str) -> Iterator[None]:
    """Turn the client's exceptions into the sandbox's; `doing` completes the sentence "cannot …"."""
    try:
        yield
    except ImageNotFound as error:
        raise ImageMissing(f"cannot {doing}: {error.explanation or error}; build it again") from error
    except NotFound as error:
        raise Interrupted(f"cannot {doing}: the container was removed from outside ({error.explanation})") from error
    except APIError as error:
        text = str(error.explanation or error)
        if "no space left on device" in text.lower():
            raise DiskFull(f"cannot {doing}: the engine's disk is full; free some space ({text})") from error
        raise EngineFault(f"cannot {doing}: the engine refused: {text}") from error
    except (requests.RequestException, urllib3.exceptions.HTTPError, DockerException, OSError) as error:
        host = os.environ.get("DOCKER_HOST", "the default socket")
        advice = "start it, or point DOCKER_HOST at one"
        raise EngineUnavailable(f"cannot {doing}: no Docker engine answers at {host}; {advice} ({error})") from error


class Engine:
    """A connection to the engine that DOCKER_HOST names. Raises EngineUnavailable when it does not answer."""

    def __init__(self) -> None:
        with engine_faults("connect to the engine"):
            # Every box holds up to three connections at once.
            self.client = docker.from_env(timeout=_ALIVE_S, max_pool_size=64)
            self.facts: dict[str, Any] = self.client.info()
        self.api = self.client.api
        self.api.timeout = _ANSWER_S
        # Debian's package only suggests the init program; the engine reports it as N/A when it is missing.
        self.has_init = self.facts.get("InitCommit", {}).get("ID") != "N/A"
        self.image_config = functools.lru_cache(maxsize=256)(self._image_config)

    @functools.cached_property
    def outside_network(self) -> str:
        """The network mode of a box that may reach out: the engine's own bridge, or the host's where it has none."""
        with engine_faults("list the networks"):
            names = {network["Name"] for network in self.api.networks()}
        return "bridge" if "bridge" in names else "host"

    def require_alive(self) -> None:
        """Raise EngineUnavailable unless the engine answers soon."""
        with engine_faults("reach the engine"):
            self.api.get(f"{self.api.base_url}/_ping", timeout=_ALIVE_S).raise_for_status()

    def _image_config(self, image: str) -> dict[str, Any]:
        with engine_faults(f"use the image {image}"):
            return dict(self.client.images.get(image).attrs.get("Config") or {})

    def image_environment(self, image: str) -> tuple[str, ...]:
        """What an image sets, as `NAME=value`. Raises ImageMissing."""
        return tuple(self.image_config(image).get("Env") or ())

    def image_label(self, image: str, label: str) -> str | None:
        """What an image says by a label; None when it has none of the name. Raises ImageMissing."""
        found: str | None = (self.image_config(image).get("Labels") or {}).get(label)
        return found

    def path_of_image(self, image: str) -> str:
        """The PATH of an image, or the usual one where it has none. Raises ImageMissing."""
        found = (entry for entry in self.image_environment(image) if entry.startswith("PATH="))
        return next(found, _PATH).removeprefix("PATH=")

    def environment_of_box(self, image: str, env: dict[str, str]) -> list[str]:
        """The engine's `Env` list: what the image says, HOME and PATH, and `env` over all of it.

        An entry without `=` takes away what the engine would set by itself. Raises ImageMissing.
        """
        of_image = dict(entry.partition("=")[::2] for entry in self.image_environment(image))
        given = {**of_image, "PATH": self.path_of_image(image), "HOME": "/tmp", **env}
        return [f"{key}={value}" for key, value in given.items()] + sorted({"HOSTNAME"} - given.keys())

    def stat(self, container: str, path: bytes) -> PathStat | None:
        """What lies at an absolute path of a container, itself not followed if it is a link; None for
        nothing.
        """
        with engine_faults(f"look at {path!r}"):
            response = self.api.head(self._url(container, "archive"), params={"path": path}, timeout=_ANSWER_S)
            if response.status_code == requests.codes.not_found:
                return None
            response.raise_for_status()
        stat = json.loads(base64.b64decode(response.headers["X-Docker-Container-Path-Stat"]))
        mode = stat["mode"]
        return PathStat(stat["size"], bool(mode & _GO_DIRECTORY), bool(mode & _GO_SYMLINK), bool(mode & _GO_SPECIAL))

    @contextmanager
    def archive(self, container: str, path: bytes) -> Iterator[Readable]:
        """The tar stream of what lies at an absolute path of a container. Raises NothingThere."""
        with engine_faults(f"read {path!r}"):
            response = self.api.get(
                self._url(container, "archive"),
                params={"path": path},
                # The transfer is local; packing would only cost time, and unpacking needs care.
                headers={"Accept-Encoding": "identity"},
                stream=True,
                timeout=_ANSWER_S,
            )
            try:
                if response.status_code == requests.codes.not_found:
                    raise NothingThere(f"there is nothing at {as_text(path)!r} of {container[:12]}")
                if response.status_code != requests.codes.ok:
                    raise EngineFault(f"cannot read {as_text(path)!r}: the engine says {response.text[:500]}")
                yield response.raw
            finally:
                response.close()

    def _url(self, container: str, what: str) -> str:
        return f"{self.api.base_url}/v{self.api.api_version}/containers/{container}/{what}"


def docker_available() -> str | None:
    """The version of the Docker engine that DOCKER_HOST names, or None when none answers."""
    try:
        engine = Engine()
    except EngineUnavailable:
        return None
    engine.client.close()
    return str(engine.facts["ServerVersion"])
