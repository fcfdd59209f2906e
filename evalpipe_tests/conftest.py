"""Fixtures that several folders share: the Docker engine, the base image, tiny workspaces, and an honest count of
what was skipped.
"""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from evalpipe.environments import Recipe
from evalpipe.sandbox import DockerSandbox, EngineUnavailable, ProcessSandbox
from evalpipe_tests.conformance.environments import EnvironmentImages, TestEnvironment
from evalpipe_tests.needed import unavailable
from evalpipe_tests.pipeline.demos import demo
from evalpipe_tests.pipeline.stations import begun, copied, finished, frozen, mined

# Fixtures of the pipeline and of the command line, here so that a session makes each workspace once for both.
__all__ = ["begun", "copied", "demo", "finished", "frozen", "mined"]

# How long an example takes depends on who else uses the machine: the other processes of this session do.
settings.register_profile("evalpipe", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("evalpipe")

# What takes minutes begins first, so that no process works alone at the end while the others have nothing left.
_LONGEST_FIRST = ("ui", "deploy", "conformance", "pipeline", "redteam")

_BASE_IMAGE = "evalpipe-base:bookworm"
_NO_ENGINE = "no Docker engine answers"
_NO_IMAGE = "there is no image"


def pytest_configure() -> None:
    """Hear SIGINT, and let the programs that tests start hear it: where a script started this with &, it is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Bring the folders of long tests to the front; within them everything keeps its order."""
    top = Path(__file__).parent

    def place(item: pytest.Item) -> int:
        folder = item.path.relative_to(top).parts[0]
        return _LONGEST_FIRST.index(folder) if folder in _LONGEST_FIRST else len(_LONGEST_FIRST)

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Keep what is imported out of later collections of garbage, each of which would take a second for it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def docker_sandbox() -> Iterator[DockerSandbox]:
    """A Docker sandbox of this test session's own instance; what a test leaves behind is removed at the
    end.
    """
    try:
        sandbox = DockerSandbox(f"test-{os.getpid()}")
    except EngineUnavailable:
        unavailable(_NO_ENGINE)
    yield sandbox
    sandbox.kill({})
    sandbox.client.close()


@pytest.fixture(scope="session")
def base_image(docker_sandbox: DockerSandbox) -> str:
    """The id of a small image with Python, git and pytest: EVALPIPE_BASE_IMAGE, or the one of
    `.ci/engine`.
    """
    wanted = os.environ.get("EVALPIPE_BASE_IMAGE", _BASE_IMAGE)
    for image in docker_sandbox.client.images.list():
        if wanted in (image.id, *image.tags):
            return str(image.id)
    unavailable(f"{_NO_IMAGE} {_BASE_IMAGE}")


@pytest.fixture(scope="session")
def environment_images(docker_sandbox: DockerSandbox, base_image: str) -> EnvironmentImages:
    """Finds or builds the images of environments."""
    return EnvironmentImages(docker_sandbox, base_image)


@pytest.fixture(scope="session")
def built_image(environment_images: EnvironmentImages) -> str:
    """The id of an image like the base, and built by evalpipe as those of nearly all tasks are: boxes of it cost the
    engine fewer requests.
    """
    return environment_images.image(TestEnvironment(recipe=Recipe("plain", 2, ("true",))))


@pytest.fixture
def process_sandbox(tmp_path: Path) -> ProcessSandbox:
    """A process sandbox with a state directory of its own."""
    return ProcessSandbox("test", tmp_path / "state")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Say, below pytest's own last line, how much was not tested for want of Docker."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None:
        return
    skipped = [report for report in terminal.stats.get("skipped", []) if _is_about_docker(report)]
    if skipped:
        terminal.write_line(f"{len(skipped)} Docker tests skipped: {_NO_ENGINE}, or its base image is missing")


def _is_about_docker(report: object) -> bool:
    reason = str(getattr(report, "longrepr", ""))
    return _NO_ENGINE in reason or _NO_IMAGE in reason
