"""Where the self-checks of the sandboxes run."""

from collections.abc import Mapping
from dataclasses import dataclass

from evalpipe.sandbox import DockerSandbox, FileEntry, Limits, Outcome, ProcessSandbox, Sandbox, TreeLimits

LIMITS = Limits(timeout_s=60)
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


def python(*lines: str) -> tuple[str, ...]:
    return ("python3", "-c", "\n".join(lines))
