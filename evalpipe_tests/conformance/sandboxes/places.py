"""Where the self-checks of the sandboxes run."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from evalpipe.sandbox import DockerSandbox, FileEntry, Limits, Outcome, ProcessSandbox, Sandbox, TreeLimits

LIMITS = Limits(timeout_s=60)
KINDS = (pytest.param("docker", marks=pytest.mark.docker), "process", "bare process")
"""A bare process is one on a kernel that grants no name spaces."""
TREE = TreeLimits(total_bytes=10_000_000, file_bytes=1_000_000, entries=1_000)


@dataclass(frozen=True)
class Place:
    """A sandbox and an environment that it knows."""

    sandbox: Sandbox
    environment: str

    def run(
        self, *command: str, files: list[FileEntry] | None = None, limits: Limits = LIMITS, env: Mapping[str, str] = {}
    ) -> Outcome:
        with self.sandbox.open(self.environment, limits, {"purpose": "test"}) as box:
            box.put(files or [])
            return box.run(command, env=env, cwd=".")

    def leftovers(self) -> int:
        """Boxes of this instance that still exist in any form."""
        if isinstance(self.sandbox, DockerSandbox):
            wanted: dict[str, str | list[str] | bool] = {"label": f"evalpipe.instance={self.sandbox.instance}"}
            client = self.sandbox.client
            return len(client.containers.list(all=True, filters=wanted)) + len(client.volumes.list(filters=wanted))
        assert isinstance(self.sandbox, ProcessSandbox)
        return len(list(self.sandbox.boxes.iterdir()))


def place_of(kind: str, request: pytest.FixtureRequest) -> Iterator[Place]:
    """The place of a kind, for a fixture of a whole module."""
    if kind == "docker":
        # An image that evalpipe built, as nearly all are.
        yield request.getfixturevalue("built_place")
    elif kind == "docker, not built":
        yield Place(request.getfixturevalue("docker_sandbox"), request.getfixturevalue("base_image"))
    else:
        with pytest.MonkeyPatch.context() as patch:
            if kind == "bare process":
                patch.setattr(ProcessSandbox, "_works", lambda sandbox, **isolation: False)
            factory: pytest.TempPathFactory = request.getfixturevalue("tmp_path_factory")
            yield Place(ProcessSandbox("test", factory.mktemp("state")), "")


def python(*lines: str) -> tuple[str, ...]:
    return ("python3", "-c", "\n".join(lines))
