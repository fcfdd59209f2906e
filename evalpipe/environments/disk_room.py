"""Keeps a part of the engine's disk free: a build that fills it takes every other process of the host with it.

Below the floor what is evalpipe's own goes, and of that only what nothing needs: images that no row and no frozen set
names, least recently used first, and then the cache of package downloads. Whatever is another's stays.
"""

import datetime as dt
import logging
import re
import shutil
import threading
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path

from docker.models.images import Image

from evalpipe.environments.build import BuildSettings, SpareEnvironment
from evalpipe.environments.build_container import BuildContainer, cache_volume_name
from evalpipe.sandbox.engine import Engine, engine_faults
from evalpipe.sandbox.errors import EngineFault, EngineUnavailable, SandboxError

_log = logging.getLogger(__name__)

IMAGE_NAME = "evalpipe/environment"
FREE_BYTES_FLOOR = 5 * 1024**3
"""The image of a project with many dependencies has 1 to 3 GB, and two are built at once."""

YOUNGEST = dt.timedelta(hours=1)
"""A younger image may be of another process that has not written its rows yet."""

_DF_SECONDS = 60
_LOCAL = "http+docker://localhost"

FreeBytes = Callable[[str], int]
NeededImages = Callable[[], Collection[str] | None]


class DiskRoom:
    """Looks at the engine's disk before a build, and makes room on it.

    `needed` gives the ids of images that are needed, or None when that cannot be learnt, and then no image goes.
    `free_bytes` (by default the free space of the engine's data folder) gets the id of an image to ask with.
    """

    def __init__(
        self, engine: Engine, instance: str, needed: NeededImages, free_bytes: FreeBytes | None = None
    ) -> None:
        self._engine, self._instance, self._needed = engine, instance, needed
        self._free_bytes = free_bytes or self._free_of_engine
        self._lock = threading.Lock()
        self._held: set[str] = set()

    def hold(self, image: str) -> None:
        """Keep an image as long as this process runs: its row is not written yet."""
        self._held.add(image)

    def make(self, base: str) -> str | None:
        """Make room when there is too little; None when there is enough, else what is missing and what to do.

        `base` is the image that is built on, empty when that is not known. Raises SandboxError.
        """
        with self._lock:
            if self._is_enough(base):
                return None
            for image in self._spare_images(self._needed(), dt.datetime.now(dt.UTC) - YOUNGEST):
                self._remove_image(image)
                if self._is_enough(base):
                    return None
            self._remove_cache()
            free = self._free_bytes(base)
        if free >= FREE_BYTES_FLOOR:
            return None
        return (
            f"the engine has {free / 1024**3:.1f} GiB free at {self._engine.facts.get('DockerRootDir')}, and no build "
            f"starts below {FREE_BYTES_FLOOR >> 30} GiB: free some space there; of evalpipe's own images those that "
            f"nothing needs are gone already"
        )

    def _is_enough(self, base: str) -> bool:
        return self._free_bytes(base) >= FREE_BYTES_FLOOR

    def spare(self, needed: Collection[str], before: dt.datetime) -> Iterator[SpareEnvironment]:
        """See `EnvironmentBuilder.spare`."""
        for image in self._spare_images(needed, before):
            name = ", ".join(self._own_tags(image)) or str(image.id)
            size = int(image.attrs["Size"])
            yield SpareEnvironment(name, size, _last_used(image), partial(self._remove_image, image))

    def _spare_images(self, needed: Collection[str] | None, latest: dt.datetime) -> list[Image]:
        """The images of this instance that nothing needs and nobody used since, the least recently used first."""
        if needed is None:
            return []
        with engine_faults("list the images that were built"):
            labelled = self._engine.client.images.list(filters={"label": f"evalpipe.instance={self._instance}"})
            named = self._engine.client.images.list(name=IMAGE_NAME)
        own = {str(image.id): image for image in (*labelled, *named) if self._is_own(image)}
        spare = own.keys() - {*needed, *self._held}
        return sorted((own[one] for one in spare if _last_used(own[one]) < latest), key=_last_used)

    def _is_own(self, image: Image) -> bool:
        """Whether this instance tagged the image, or built it and nobody has a name for it any more."""
        nameless = not image.tags and image.labels.get("evalpipe.instance") == self._instance
        return nameless or bool(self._own_tags(image))

    def _own_tags(self, image: Image) -> list[str]:
        return [tag for tag in image.tags if tag.startswith(f"{IMAGE_NAME}:") and tag.endswith(f"-{self._instance}")]

    def _remove_image(self, image: Image) -> None:
        # By its tags, so that an image which another workspace uses too loses no more than a name.
        for name in self._own_tags(image) or [str(image.id)]:
            self._remove(f"the image {name}", partial(self._engine.client.images.remove, name))

    def _remove_cache(self) -> None:
        name = cache_volume_name(self._instance)
        self._remove(f"the volume {name}", partial(self._engine.api.remove_volume, name))

    @staticmethod
    def _remove(what: str, remove: Callable[[], object]) -> None:
        try:
            with engine_faults(f"remove {what}"):
                remove()
        except EngineUnavailable:
            raise
        except SandboxError as fault:
            # In use by a container, or gone already.
            _log.info("%s", fault)

    def _free_of_engine(self, base: str) -> int:
        root = Path(str(self._engine.facts.get("DockerRootDir")))
        # Only an engine behind a socket of this machine has its folders here.
        if self._engine.api.base_url == _LOCAL and root.is_dir():
            return shutil.disk_usage(root).free
        with engine_faults("list the images"):
            image = base or next(iter(self._engine.api.images(quiet=True)), None)
        if image is None:
            return FREE_BYTES_FLOOR
        output = bytearray()
        with BuildContainer(
            self._engine, self._instance, image, {}, BuildSettings(), timeout_s=_DF_SECONDS
        ) as container:
            container.run("df -Pk /", capture=output.extend)
        # https://pubs.opengroup.org/onlinepubs/9799919799/utilities/df.html
        found = re.search(rb"\n\S+ +\d+ +\d+ +(\d+) ", bytes(output))
        if found is None:
            raise EngineFault(f"df in {image} does not say how much is free: {bytes(output)!r}")
        return int(found[1]) * 1024


def _last_used(image: Image) -> dt.datetime:
    """When the image was tagged the last time, which is done whenever a build finds it."""
    stamp = str((image.attrs.get("Metadata") or {}).get("LastTagTime") or image.attrs["Created"])
    # An image that lost its tags may have the engine's zero time.
    stamp = str(image.attrs["Created"]) if stamp.startswith("0001") else stamp
    # In UTC, with nanoseconds but without zeros at the end of them.
    seconds, _, fraction = stamp.removesuffix("Z").partition(".")
    return dt.datetime.fromisoformat(f"{seconds}.{fraction[:6]:0<6}+00:00")
