"""The records that cross the border of a sandbox, and the two protocols that every sandbox fulfils.

A sandbox opens boxes. A box is used in one order: `put` files, `run` one command, read what it left. Callers
depend on these protocols only, so that a container engine can be exchanged for plain processes and back.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

REGULAR = 0o100644
EXECUTABLE = 0o100755
SYMLINK = 0o120000
DIRECTORY = 0o040000


@dataclass(frozen=True, slots=True)
class Limits:
    """What a box may use: seconds of wall clock, bytes of memory, CPUs, processes, bytes kept per output
    stream.

    `grace_s`: seconds that the command has between TERM and its kill when its time is up.
    """

    timeout_s: float
    memory_bytes: int = 2 * 1024**3
    cpus: float = 1.0
    pids: int = 512
    output_bytes: int = 1_000_000
    grace_s: float = 0.0

    def __post_init__(self) -> None:
        positive = (self.timeout_s, self.memory_bytes, self.cpus, self.pids)
        if min(positive) <= 0 or self.output_bytes < 0 or self.grace_s < 0:
            raise ValueError(f"every limit of a box must be positive: {self}")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file, link or directory; `path` is relative, separated by `/`, and any bytes that a file system
    takes.

    `mode` is one of `REGULAR`, `EXECUTABLE`, `SYMLINK` (`data` is the target) and `DIRECTORY` (`data` is
    empty): the modes that git knows, plus directories.
    """

    path: bytes
    mode: int
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended.

    `exit_code` is None when the deadline ended it; a signal N shows as 128 + N. `out_of_memory` is true only
    when the kernel's own record proves it and the command did not succeed. The streams hold the last bytes of
    each.
    """

    exit_code: int | None
    timed_out: bool
    out_of_memory: bool
    duration_s: float
    stdout: bytes
    stderr: bytes
    stdout_truncated: bool
    stderr_truncated: bool


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """The most that `Box.read_tree` hands out: bytes in all, bytes per file, entries (directories count)."""

    total_bytes: int
    file_bytes: int
    entries: int


@dataclass(frozen=True, slots=True)
class SandboxFacts:
    """What a manifest records of a sandbox: its kind and engine, how it isolates, and the machine below
    it.
    """

    name: str
    engine_version: str
    isolation: str
    cpus: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """Processors, and bytes of memory that are free for boxes."""

    cpus: float
    memory_bytes: int

    def boxes(self, limits: Limits) -> int:
        """How many boxes with these limits it carries at once; always at least one."""
        return max(1, min(int(self.cpus / limits.cpus), self.memory_bytes // limits.memory_bytes))


class Watch(Protocol):
    """Looks at a command that runs, every few seconds, and may end it before its limit."""

    def saw(self, output: bytes) -> None:
        """The next piece of the command's standard output, cut anywhere. Must return at once; from any thread."""

    def is_over(self, elapsed_s: float, silent_s: float) -> bool:
        """Whether to end it now: seconds since its start, and since it last wrote anything. Must return at once."""


WATCH_S = 2.0
"""How often a watch looks."""


class Box(Protocol):
    """One place to run one command in."""

    @property
    def root(self) -> str:
        """Absolute path, inside the box, of the tree that `put` fills: its only writable place besides
        /tmp.
        """

    @property
    def share(self) -> str:
        """Absolute path, inside the box, of the folder that it was opened with. Raises RuntimeError without one."""

    def put(self, files: Iterable[FileEntry]) -> None:
        """Lay files into the box; before `run`, any number of times, a later entry replaces an earlier one.

        Directories on the way are made, and replace a file or link of the same name. Raises ValueError for a
        path that is absolute, empty or leaves the box; DiskFull.
        """

    def run(self, command: Sequence[str], *, env: Mapping[str, str], cwd: str, watch: Watch | None = None) -> Outcome:
        """Run the command, exactly once; when this returns or raises, nothing of the box runs any more.

        `env` goes over HOME, PATH and what the environment itself sets, and there is nothing else. `cwd` is absolute or
        relative to `root`. What a `watch` ends has timed out, as at the limit. A command that cannot be found ends with
        exit code 127. Raises Interrupted after a kill, EngineFault when it cannot be learnt how the command ended,
        DiskFull, ImageMissing.
        """

    def read_file(self, path: str, max_bytes: int) -> bytes | None:
        """The regular file at `path`, relative to `root`, after `run`; None if there is none.

        Never follows a link, not even above the file. Raises OutputTooLarge, UnsafeOutput, EngineFault.
        """

    def read_tree(self, path: str, limits: TreeLimits) -> Iterator[FileEntry]:
        """All files and links below the directory `path`, after `run`, in no particular order.

        Paths are relative to `path`. Links are handed out as links, hard links as files with their content;
        sockets, devices and pipes are left out, and so are directories. Nothing at `path` yields nothing.
        Raises OutputTooLarge, UnsafeOutput (`path` is no directory, or behind a link), EngineFault.
        """


class Sandbox(Protocol):
    """A kind of isolation, bound to one evalpipe instance. Methods may be called from any thread."""

    @property
    def name(self) -> str:
        """`docker` or `process`."""

    def open(
        self,
        environment: str,
        limits: Limits,
        labels: Mapping[str, str],
        *,
        network: bool = False,
        hostname: str | None = None,
        share: Path | None = None,
    ) -> AbstractContextManager[Box]:
        """A fresh box; when the `with` block ends, in whatever way, the box is gone.

        `environment` is an image id for Docker; for processes the directory of a virtual environment, or ""
        for the host's own. `network` lets the box reach what the machine reaches. `hostname` is the name that the
        box has for itself; by default `box` in a container and the machine's for processes, which keep that also
        where the kernel grants no name spaces. `share` is a folder of this host that the box may read, and whose
        sockets it may use. Raises ImageMissing, EngineUnavailable.
        """

    def label(self, environment: str, name: str) -> str | None:
        """What whoever built an environment says of it by a label; None without one. Raises ImageMissing."""

    def kill(self, labels: Mapping[str, str]) -> int:
        """Kill and remove every box of this instance that carries all these labels; returns how many.

        A `run` that is under way in one of them raises Interrupted.
        """

    def reap(self, alive_owners: Collection[str]) -> int:
        """Remove what dead owners left behind in this instance; returns how many boxes.

        A box of this host stays as long as its owner's process lives. A box of another host stays when its
        owner is in `alive_owners` (see `owner_id`), so callers that share an engine must name them.
        """

    def capacity(self) -> Capacity:
        """What is free for boxes now: read it before any of one's own run. Raises EngineUnavailable."""

    def describe(self) -> SandboxFacts:
        """The facts of this sandbox for the manifest. Raises EngineUnavailable."""
