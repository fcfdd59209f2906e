"""Each kind of sandbox, in place of the places of the runner tests."""

import pytest

from evalpipe.sandbox import ProcessSandbox
from evalpipe_tests.conformance.sandboxes.places import Place


@pytest.fixture(params=[pytest.param("docker", marks=pytest.mark.docker), "process", "bare process"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Each kind of sandbox; a bare process is one on a kernel that grants no name spaces."""
    if request.param == "docker":
        return Place(request.getfixturevalue("docker_sandbox"), request.getfixturevalue("base_image"))
    if request.param == "bare process":
        monkeypatch.setattr(ProcessSandbox, "_works", lambda sandbox, **isolation: False)
    return Place(request.getfixturevalue("process_sandbox"), "")
