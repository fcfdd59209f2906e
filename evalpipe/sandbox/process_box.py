"""One process tree as a box: files in a directory of its own, the command under the care of `launcher`."""

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from evalpipe.sandbox import launcher
from evalpipe.sandbox.box import WATCH_S, FileEntry, Limits, Outcome, TreeLimits, Watch
from evalpipe.sandbox.errors import EngineFault, Interrupted, host_faults
from evalpipe.sandbox.host_files import HostFiles
from evalpipe.sandbox.owners import process_start
from evalpipe.sandbox.paths import as_bytes
from evalpipe.sandbox.streams import Tail

LAUNCHER_FILE = "launcher"
_FILE_BYTES = 4 * 1024**3
_CHUNK = 65536
_END_S = 30.0


class ProcessBox:
    """See `Box`. Made by `ProcessSandbox.open` only, which also makes and removes its directory."""

    def __init__(
        self,
        directory: Path,
        limits: Limits,
        labels: Mapping[str, str],
        *,
        path: str,
        cut_network: bool,
        own_process_ids: bool,
        hostname: str | None,
        share: Path | None = None,
    ) -> None:
        self.labels, self.name = dict(labels), directory.name
        self._directory, self._limits, self._path = directory, limits, path
        self._cut_network, self._own_process_ids, self._hostname = cut_network, own_process_ids, hostname
        self.root = str(directory / "work")
        self._temporary, self._share = directory / "tmp", share
        with host_faults(f"make the box {self.name}"):
            Path(self.root).mkdir()
            self._temporary.mkdir()
        self._files = HostFiles(os.fsencode(self.root))
        self._state = "filling"
        self._lock = threading.Lock()
        self._interrupted = False
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def share(self) -> str:
        """See `Box.share`."""
        if self._share is None:
            raise RuntimeError(f"{self.name} shares no folder")
        return str(self._share)

    def put(self, files: Iterable[FileEntry]) -> None:
        """See `Box.put`."""
        self._require("filling")
        self._files.put(files)

    def run(self, command: Sequence[str], *, env: Mapping[str, str], cwd: str, watch: Watch | None = None) -> Outcome:
        """See `Box.run`."""
        self._require("filling")
        directory = self._working_directory(cwd)
        self._state = "running"
        temporary = str(self._temporary)
        defaults = {"PATH": self._path, "HOME": temporary, "TMPDIR": temporary, "LANG": "C.UTF-8"}
        status_read, status_write = os.pipe()
        try:
            started = time.monotonic()
            try:
                process = self._start(command, defaults | dict(env), directory, status_write)
            finally:
                os.close(status_write)
            run = Supervision(process, status_read, self._limits)
            try:
                answer = run.until_end(started, watch)
            finally:
                # Also when a signal handler of the caller raised: nothing may run on.
                run.finish()
            outcome = self._outcome(run, answer, time.monotonic() - started)
        finally:
            os.close(status_read)
        self._state = "ended"
        return outcome

    def read_file(self, path: str, max_bytes: int) -> bytes | None:
        """See `Box.read_file`."""
        self._require("ended")
        return self._files.read_file(path, max_bytes)

    def read_tree(self, path: str, limits: TreeLimits) -> Iterator[FileEntry]:
        """See `Box.read_tree`."""
        self._require("ended")
        yield from self._files.read_tree(path, limits)

    def interrupt(self) -> None:
        """Let `run`, now or later, end with Interrupted."""
        with self._lock:
            self._interrupted = True
            if self._process is not None:
                self._process.terminate()

    def _require(self, state: str) -> None:
        if self._state != state:
            raise RuntimeError(f"{self.name} is {self._state}, and this is only possible while it is {state}")

    def _working_directory(self, cwd: str) -> str:
        directory = Path(self.root, cwd)
        if directory.is_relative_to(self.root):
            inner = as_bytes(str(directory.relative_to(self.root)))
            if inner != b"." and not self._files.is_directory(inner):
                raise ValueError(f"the working directory {cwd!r} is none of the directories put into {self.name}")
        return str(directory)

    def _start(self, command: Sequence[str], env: dict[str, str], cwd: str, status_fd: int) -> subprocess.Popen[bytes]:
        order = launcher.Order(
            parent=os.getpid(),
            status_fd=status_fd,
            cut_network=self._cut_network,
            own_process_ids=self._own_process_ids,
            hostname=self._hostname,
            memory_bytes=self._limits.memory_bytes,
            file_bytes=_FILE_BYTES,
            pids=self._limits.pids,
        )
        arguments = [sys.executable, "-I", "-S", launcher.__file__, json.dumps(asdict(order)), *command]
        with self._lock, host_faults(f"start the command of {self.name}"):
            if self._interrupted:
                raise Interrupted(f"{self.name} was killed")
            process = self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=env,
                cwd=cwd,
                pass_fds=[status_fd],
                start_new_session=True,
            )
            # For a kill by another process of the same instance, and for the clean-up after this one's death.
            text = f"{process.pid}:{process_start(process.pid)}"
            (self._directory / LAUNCHER_FILE).write_text(text, encoding="ascii")
        return process

    def _outcome(self, run: "Supervision", answer: str, duration: float) -> Outcome:
        if answer.startswith("fault: "):
            raise EngineFault(f"{self.name} could not run its command: {answer.removeprefix('fault: ')}")
        if self._interrupted or (answer == "stopped" and not run.timed_out):
            raise Interrupted(f"{self.name} was killed while it ran")
        if answer.startswith("exit: ") and not run.asked_to_end:
            exit_code = int(answer.removeprefix("exit: "))
        elif run.asked_to_end or run.timed_out:
            exit_code = None
        else:
            raise EngineFault(f"the launcher of {self.name} vanished; was it killed for want of memory?")
        return Outcome(
            exit_code=exit_code,
            timed_out=exit_code is None,
            # A limit per process makes an allocation fail; what follows is up to the program, and proves
            # nothing.
            out_of_memory=False,
            duration_s=duration,
            stdout=run.stdout.content(),
            stderr=run.stderr.content(),
            stdout_truncated=run.stdout.truncated,
            stderr_truncated=run.stderr.truncated,
        )


class Supervision:
    """Reads a launcher's three pipes until all have ended, and ends it at the deadline."""

    def __init__(self, process: subprocess.Popen[bytes], status_fd: int, limits: Limits) -> None:
        self.stdout, self.stderr = Tail(limits.output_bytes), Tail(limits.output_bytes)
        self.asked_to_end = self.timed_out = False
        self._process, self._status_fd, self._limits = process, status_fd, limits

    def until_end(self, started: float, watch: Watch | None) -> str:
        """Wait for the end; returns the launcher's answer. Raises EngineFault when the launcher cannot be
        ended.

        The status pipe stays open for as long as the launcher lives, whatever the command does with its
        streams.
        """
        answer = Tail(_CHUNK)
        deadline, last = started + self._limits.timeout_s, started
        pipes = {self._process.stdout: self.stdout, self._process.stderr: self.stderr, self._status_fd: answer}
        with selectors.DefaultSelector() as selector:
            for pipe, tail in pipes.items():
                if pipe is not None:
                    selector.register(pipe, selectors.EVENT_READ, tail)
            while selector.get_map():
                now = time.monotonic()
                looking = None if self.asked_to_end or self.timed_out else watch
                if now >= deadline or (looking is not None and looking.is_over(now - started, now - last)):
                    deadline = time.monotonic() + self._end()
                    continue
                for key, _ in selector.select(min(deadline - now, WATCH_S if looking else _END_S)):
                    chunk = os.read(key.fd, _CHUNK)
                    if chunk:
                        last = time.monotonic()
                        key.data.feed(chunk)
                        if watch is not None and key.fileobj is self._process.stdout:
                            watch.saw(chunk)
                    else:
                        selector.unregister(key.fileobj)
        return answer.content().decode("utf-8", "replace").partition("\n")[0]

    def finish(self) -> None:
        """Make sure that the launcher has ended, and close its pipes."""
        try:
            if self._process.poll() is None:
                self._process.terminate()
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        finally:
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()

    def _end(self) -> float:
        """Ask the command to end where it has a grace, else kill it; returns the seconds after which to do more."""
        if self.timed_out:
            raise EngineFault(f"processes of the box still run {_END_S:.0f} s after their kill")
        if self._limits.grace_s and not self.asked_to_end:
            self.asked_to_end = True
            self._process.send_signal(signal.SIGUSR1)
            return self._limits.grace_s
        self.timed_out = True
        self._process.terminate()
        return _END_S
