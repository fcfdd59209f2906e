"""Room on the engine's disk: what is trimmed, in which order, and what never is. Real images, injected free space."""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Iterator

import pytest

from evalpipe.environments import BuildStatus, DockerEnvironmentBuilder, Recipe, RecipeSource, disk_room
from evalpipe.environments.build_container import cache_volume
from evalpipe.environments.disk_room import FREE_BYTES_FLOOR, IMAGE_NAME, DiskRoom
from evalpipe.sandbox import DockerSandbox
from evalpipe.sandbox.engine import Engine
from evalpipe_tests.environments.trees import NO_TREE

pytestmark = [pytest.mark.docker, pytest.mark.slow]

INSTANCE, OTHER = f"test-disk-{uuid.uuid4().hex[:8]}", f"test-disk-{uuid.uuid4().hex[:8]}"


class Images:
    """Images that cost nothing: the base with another label each, tagged as a builder tags them."""

    def __init__(self, sandbox: DockerSandbox, base: str) -> None:
        self.client = sandbox.client
        self._container = self.client.containers.create(base, ["true"])
        self.ids: list[str] = []

    def make(self, key: str, *instances: str) -> str:
        labels = [f"LABEL evalpipe.instance={instances[0]}", f"LABEL evalpipe.build_key={key}"]
        image = self._container.commit(changes=labels)
        for instance in instances:
            image.tag(IMAGE_NAME, f"{key}-{instance}")
        self.ids.append(str(image.id))
        return str(image.id)

    def left(self) -> set[str]:
        return {str(image.id) for image in self.client.images.list(all=True)} & set(self.ids)

    def remove_all(self) -> None:
        self._container.remove()
        for one in self.left():
            self.client.images.remove(one, force=True)


@pytest.fixture(scope="module", autouse=True)
def no_cache_stays(docker_sandbox: DockerSandbox) -> Iterator[None]:
    yield
    for volume in docker_sandbox.client.volumes.list(filters={"label": f"evalpipe.cache_of={INSTANCE}"}):
        volume.remove()


@pytest.fixture
def images(docker_sandbox: DockerSandbox, base_image: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Images]:
    monkeypatch.setattr(disk_room, "YOUNGEST", dt.timedelta(seconds=0.8))
    made = Images(docker_sandbox, base_image)
    yield made
    made.remove_all()


def test_least_recently_used_goes_first_and_no_more_than_is_needed(images: Images) -> None:
    first, second, third = (images.make(f"{number}", INSTANCE) for number in range(3))
    # A build that finds the first uses it again.
    images.client.images.get(first).tag(IMAGE_NAME, f"0-{INSTANCE}")
    time.sleep(1)
    engine = Engine()
    cache_volume(engine, INSTANCE)

    def free(base: str) -> int:
        return FREE_BYTES_FLOOR - 1 if second in images.left() else FREE_BYTES_FLOOR

    assert DiskRoom(engine, INSTANCE, frozenset, free).make("base") is None
    assert images.left() == {first, third}
    assert engine.client.volumes.get(f"evalpipe-cache-{INSTANCE}")


def test_what_is_needed_held_young_used_or_another_s_stays_and_the_cache_goes_last(images: Images) -> None:
    needed, held, running = (images.make(key, INSTANCE) for key in ("needed", "held", "running"))
    shared, others = images.make("shared", OTHER, INSTANCE), images.make("others", OTHER)
    spare = images.make("spare", INSTANCE)
    user = images.client.containers.create(running, ["true"])
    images.client.images.get(spare).tag("somebody/else", INSTANCE)
    time.sleep(1)
    young = images.make("young", INSTANCE)
    engine = Engine()
    cache_volume(engine, INSTANCE)
    room = DiskRoom(engine, INSTANCE, lambda: {needed}, lambda base: FREE_BYTES_FLOOR - 1)
    room.hold(held)
    images.client.images.get(young).tag(IMAGE_NAME, f"young-{INSTANCE}")
    missing = room.make("base")
    user.remove()
    assert missing is not None
    assert "5.0 GiB free" in missing
    assert images.left() == {needed, held, running, shared, others, spare, young}
    names = {tag for one in images.left() for tag in images.client.images.get(one).tags}
    # Only the names that were this instance's own are gone.
    assert names >= {f"{IMAGE_NAME}:{key}-{INSTANCE}" for key in ("needed", "held", "young")}
    assert names >= {f"{IMAGE_NAME}:shared-{OTHER}", f"{IMAGE_NAME}:others-{OTHER}", f"somebody/else:{INSTANCE}"}
    assert not names & {f"{IMAGE_NAME}:shared-{INSTANCE}", f"{IMAGE_NAME}:spare-{INSTANCE}"}
    assert f"evalpipe-cache-{INSTANCE}" not in {volume.name for volume in engine.client.volumes.list()}


def test_no_image_goes_when_it_is_not_known_what_is_needed(images: Images) -> None:
    image = images.make("unknown", INSTANCE)
    time.sleep(1)
    assert DiskRoom(Engine(), INSTANCE, lambda: None, lambda base: 0).make("base") is not None
    assert images.left() == {image}


def test_what_housekeeping_may_remove_is_named_and_is_no_other_s(images: Images) -> None:
    needed, spare = images.make("needed", INSTANCE), images.make("spare", INSTANCE)
    images.make("others", OTHER)
    builder = DockerEnvironmentBuilder(INSTANCE)
    now = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=1)
    assert list(builder.spare({needed}, now - dt.timedelta(hours=1))) == []  # used since
    (found,) = builder.spare({needed}, now)
    assert found.name == f"{IMAGE_NAME}:spare-{INSTANCE}"
    assert found.size > 0
    before = images.left()
    found.remove()
    assert images.left() == before - {spare}


def test_build_without_room_is_a_status_and_starts_nothing(base_image: str) -> None:
    builder = DockerEnvironmentBuilder(INSTANCE, free_bytes=lambda base: 0)
    recipe = Recipe("test", 1, ("true",), env={"SESSION": INSTANCE})
    found = builder.build(builder.plan(RecipeSource(base_image, recipe, NO_TREE)))
    assert (found.status, found.image_digest) == (BuildStatus.DISK_FULL, None)
    assert "no build starts below 5 GiB" in found.log_tail


def test_free_space_is_that_of_the_engine_s_disk_wherever_it_is(
    base_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    room = DiskRoom(engine, INSTANCE, frozenset)
    here = room._free_of_engine(base_image)
    monkeypatch.setitem(engine.facts, "DockerRootDir", "/nowhere")
    for base in (base_image, ""):
        assert abs(room._free_of_engine(base) - here) < 2 * 1024**3
