"""The process sandbox: for machines without a container engine. It keeps order; it is no wall against malice.

A box is a directory below the state directory and a process tree. Where the kernel allows, the tree has no
network and its own process IDs; found out once by trying. Files of the host stay as visible as they are to
the user.
"""

import json
import logging
import os
import platform
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from evalpipe.sandbox.box import Box, Capacity, Limits, SandboxFacts
from evalpipe.sandbox.errors import EngineFault, EngineUnavailable, ImageMissing, host_faults
from evalpipe.sandbox.owners import is_leftover, owner_id, process_start
from evalpipe.sandbox.process_box import LAUNCHER_FILE, ProcessBox
from evalpipe.sandbox.room import capacity_of_host

_log = logging.getLogger(__name__)

_RECORD_FILE = "box.json"
_PROBE_LIMITS = Limits(timeout_s=20)
_KILL_WAIT_S = 10.0


class ProcessSandbox:
    """See `Sandbox`. Raises EngineUnavailable on anything but Linux, and when it cannot run a command at
    all.
    """

    name = "process"

    def __init__(self, instance: str, state_dir: Path) -> None:
        if platform.system() != "Linux":
            raise EngineUnavailable(f"the process sandbox needs Linux, not {platform.system()}; use Docker")
        self.instance = instance
        self.boxes = state_dir.absolute() / "boxes"
        with host_faults(f"make the directory {self.boxes}"):
            self.boxes.mkdir(parents=True, exist_ok=True)
        self._open: dict[str, ProcessBox] = {}
        self._lock = threading.Lock()
        # A kernel that grants a name space for processes grants one for names too.
        self._own_process_ids = self._works(own_process_ids=True, hostname="box")
        self._cut_network = self._works(cut_network=True, own_process_ids=self._own_process_ids)

    @property
    def cuts_network(self) -> bool:
        """Whether the kernel lets this sandbox take the network away."""
        return self._cut_network

    @property
    def hides_processes(self) -> bool:
        """Whether a command sees no process of the host, and so nobody else's environment."""
        return self._own_process_ids

    @contextmanager
    def open(
        self,
        environment: str,
        limits: Limits,
        labels: Mapping[str, str],
        *,
        network: bool = False,
        hostname: str | None = None,
        share: Path | None = None,
    ) -> Iterator[Box]:
        """See `Sandbox.open`."""
        path = os.environ.get("PATH", os.defpath)
        if environment:
            binaries = Path(environment).absolute() / "bin"
            if not binaries.is_dir():
                raise ImageMissing(f"there is no virtual environment at {environment}; build it again")
            path = f"{binaries}{os.pathsep}{path}"
        directory = self._make_directory(labels)
        try:
            box = ProcessBox(
                directory,
                limits,
                labels,
                path=path,
                cut_network=self._cut_network and not network,
                own_process_ids=self._own_process_ids,
                hostname=hostname if self._own_process_ids else None,
                share=share,
            )
            with self._lock:
                self._open[box.name] = box
            yield box
        finally:
            with self._lock:
                self._open.pop(directory.name, None)
            _remove_directory(directory)

    def kill(self, labels: Mapping[str, str]) -> int:
        """See `Sandbox.kill`."""
        wanted = dict(labels).items()
        killed = set()
        with self._lock:
            for name, box in self._open.items():
                if wanted <= box.labels.items():
                    box.interrupt()
                    killed.add(name)
        for directory, record in self._records():
            if directory.name not in killed and wanted <= record["labels"].items():
                # Its owner removes it as soon as it sees the end of the command.
                _end_launcher(directory)
                killed.add(directory.name)
        return len(killed)

    def reap(self, alive_owners: Collection[str]) -> int:
        """See `Sandbox.reap`."""
        alive = frozenset(alive_owners)
        removed = 0
        for directory, record in self._records():
            if is_leftover(record["owner"], alive):
                _end_launcher(directory)
                _kill_by_environment(directory)
                _remove_directory(directory)
                removed += 1
        return removed

    def capacity(self) -> Capacity:
        """See `Sandbox.capacity`."""
        facts = self.describe()
        return capacity_of_host(facts.cpus, facts.memory_bytes)

    def label(self, environment: str, name: str) -> str | None:
        """See `Sandbox.label`: nobody builds these environments."""
        return None

    def describe(self) -> SandboxFacts:
        """See `Sandbox.describe`."""
        network = "without network" if self._cut_network else "WITH the host's network"
        processes = "with its own process IDs" if self._own_process_ids else "with the host's process IDs"
        return SandboxFacts(
            name=self.name,
            engine_version=f"Linux {platform.release()}",
            isolation=(
                f"a process tree of user {os.geteuid()} {network}, {processes}, without capabilities or new "
                "privileges; it sees the host's files; the memory limit is per process, CPUs are not limited"
            ),
            cpus=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        )

    def _works(self, *, cut_network: bool = False, own_process_ids: bool = False, hostname: str | None = None) -> bool:
        """Try the isolation on an empty box. Raises EngineUnavailable when not even none of it works."""
        with host_faults("try the sandbox"), tempfile.TemporaryDirectory(dir=self.boxes) as directory:
            box = ProcessBox(
                Path(directory),
                _PROBE_LIMITS,
                {},
                path=os.defpath,
                cut_network=cut_network,
                own_process_ids=own_process_ids,
                hostname=hostname,
            )
            try:
                outcome = box.run(["true"], env={}, cwd=".")
            except EngineFault as error:
                if not cut_network and not own_process_ids:
                    raise EngineUnavailable(f"the process sandbox cannot run a command: {error}") from error
                return False
        return outcome.exit_code == 0

    def _make_directory(self, labels: Mapping[str, str]) -> Path:
        directory = self.boxes / f"evalpipe-{uuid.uuid4().hex}"
        record = {"instance": self.instance, "owner": owner_id(), "labels": dict(labels)}
        with host_faults(f"make the box {directory.name}"):
            # Complete before it has its name: a clean-up at the same time must not see half a record.
            draft = Path(tempfile.mkdtemp(dir=self.boxes))
            (draft / _RECORD_FILE).write_text(json.dumps(record), encoding="utf-8")
            draft.rename(directory)
        return directory

    def _records(self) -> Iterator[tuple[Path, dict[str, Any]]]:
        for directory in self.boxes.glob("evalpipe-*"):
            try:
                record = json.loads((directory / _RECORD_FILE).read_text(encoding="utf-8"))
            except FileNotFoundError:
                continue
            if record["instance"] == self.instance:
                yield directory, record


def _end_launcher(directory: Path) -> None:
    """Let the launcher of a box end it, and wait until it has."""
    try:
        number, _, start = (directory / LAUNCHER_FILE).read_text(encoding="ascii").partition(":")
    except FileNotFoundError:
        return
    if not number.isdigit() or process_start(pid := int(number)) != start:
        return
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + _KILL_WAIT_S
    while process_start(pid) == start:
        if time.monotonic() > end:
            raise EngineFault(f"the launcher {pid} of {directory.name} does not end; kill it")
        time.sleep(0.01)


def _kill_by_environment(directory: Path) -> None:
    """Kill what outlived its launcher: every process whose HOME or TMPDIR is in the box."""
    mark = os.fsencode(directory) + b"/"
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if mark in (entry / "environ").read_bytes():
                    os.kill(int(entry.name), signal.SIGKILL)


def _remove_directory(directory: Path) -> None:
    """Remove a box's directory, which may be deeper than Python can walk and may forbid itself to its
    owner.
    """
    for command in (["rm", "-rf"], ["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
        subprocess.run([*command, "--", directory], check=False, capture_output=True)
        if not directory.exists():
            return
    _log.warning("cannot remove %s; the next clean-up tries again", directory)
