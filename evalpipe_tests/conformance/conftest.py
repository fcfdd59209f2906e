"""The places in which the suites of the runner tests run; tests of the sandboxes have others of their own."""

from __future__ import annotations

import pytest

from evalpipe.sandbox import ProcessSandbox
from evalpipe_tests.conformance.suites import Place
from evalpipe_tests.runners.environment import bare_pytest


@pytest.fixture(scope="module", params=[pytest.param("docker", marks=pytest.mark.docker), "process"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    if request.param == "docker":
        return Place(request.getfixturevalue("docker_sandbox"), request.getfixturevalue("built_image"))
    environment = bare_pytest(tmp_path_factory.mktemp("environment"))
    return Place(ProcessSandbox("test", tmp_path_factory.mktemp("boxes")), environment)
