"""Each kind of sandbox, in place of the places of the runner tests."""

import pytest

from evalpipe.environments import Recipe
from evalpipe.sandbox import DockerSandbox, ProcessSandbox
from evalpipe_tests.conformance.environments import EnvironmentImages, TestEnvironment
from evalpipe_tests.conformance.sandboxes.places import Place

_DOCKER = [pytest.param(name, marks=pytest.mark.docker) for name in ("docker", "docker, built")]


@pytest.fixture(params=[*_DOCKER, "process", "bare process"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Each kind of sandbox; a bare process is one on a kernel that grants no name spaces.

    Into an image that evalpipe built, files come in another way than into any other.
    """
    if request.param == "docker, built":
        built: Place = request.getfixturevalue("built_place")
        return built
    if request.param == "docker":
        return Place(request.getfixturevalue("docker_sandbox"), request.getfixturevalue("base_image"))
    if request.param == "bare process":
        monkeypatch.setattr(ProcessSandbox, "_works", lambda sandbox, **isolation: False)
    return Place(request.getfixturevalue("process_sandbox"), "")


@pytest.fixture
def built_place(docker_sandbox: DockerSandbox, environment_images: EnvironmentImages) -> Place:
    """An image that evalpipe built."""
    return Place(docker_sandbox, environment_images.image(TestEnvironment(recipe=Recipe("plain", 2, ("true",)))))
