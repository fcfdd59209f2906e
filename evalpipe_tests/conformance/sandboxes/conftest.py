"""Each kind of sandbox, in place of the places of the runner tests."""

from collections.abc import Iterator

import pytest

from evalpipe.sandbox import DockerSandbox
from evalpipe_tests.conformance.sandboxes.places import KINDS, Place, place_of


@pytest.fixture(scope="module", params=KINDS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Each kind of sandbox."""
    yield from place_of(request.param, request)


@pytest.fixture(scope="module")
def built_place(docker_sandbox: DockerSandbox, built_image: str) -> Place:
    """An image that evalpipe built."""
    return Place(docker_sandbox, built_image)
