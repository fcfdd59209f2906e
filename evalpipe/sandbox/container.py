"""One Docker container as a box: created when its command is known, read when it has stopped, removed at the
end.
"""

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import requests
from docker.errors import APIError, NotFound
from docker.types import LogConfig, Mount, Ulimit

from evalpipe.sandbox.archive import TarSpool, tar_members
from evalpipe.sandbox.attachment import Attachment, sends_and_reads
from evalpipe.sandbox.box import WATCH_S, FileEntry, Limits, Outcome, TreeLimits, Watch
from evalpipe.sandbox.container_files import ContainerFiles
from evalpipe.sandbox.container_stdin import FILLS_ITSELF, StdinArchive, passes_a_shell
from evalpipe.sandbox.engine import Engine, engine_faults
from evalpipe.sandbox.errors import (
    EngineFault,
    EngineUnavailable,
    Interrupted,
    SandboxError,
)
from evalpipe.sandbox.output import OutputReader
from evalpipe.sandbox.paths import as_bytes
from evalpipe.sandbox.removal import remove_container, remove_volumes

ROOT = "/work"
SHARE = "/run/evalpipe-share"
USER = 1000
HOSTNAME = "box"
# Sandbox.kill renames a container before it kills it: the name survives until whoever waits for it looks.
KILLED_PREFIX = "evalpipe-killed-"
LABEL = "evalpipe."
BOX_LABEL = f"{LABEL}box"
_WAIT_SLICE_S = 20.0
_END_S = 30.0
_NOT_FOUND_EXIT, _NOT_EXECUTABLE_EXIT, _KILLED_EXIT = 127, 126, 137


def host_config(
    engine: Engine, limits: Limits, labels: Mapping[str, str], *, network: bool, share: Path | None = None
) -> dict[str, Any]:
    """The engine's HostConfig for a box: no rights, no writable place but the volume and /tmp, no network and nothing
    of the host unless asked for.
    """
    shared = [] if share is None else [Mount(SHARE, str(share), type="bind", read_only=True)]
    config: dict[str, Any] = engine.api.create_host_config(
        network_mode=engine.outside_network if network else "none",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        read_only=True,
        # Test suites compile and run programs in /tmp, so it must not be noexec, which is the engine's
        # default.
        tmpfs={"/tmp": f"rw,exec,nosuid,nodev,size=1g,uid={USER},gid={USER},mode=0700"},
        mounts=[Mount(ROOT, None, type="volume", labels=dict(labels)), *shared],
        pids_limit=limits.pids,
        mem_limit=limits.memory_bytes,
        memswap_limit=limits.memory_bytes,
        nano_cpus=int(limits.cpus * 1e9),
        ulimits=[
            Ulimit(name="nofile", soft=4096, hard=4096),
            Ulimit(name="core", soft=0, hard=0),
            Ulimit(name="fsize", soft=4 * 1024**3, hard=4 * 1024**3),
        ],
        ipc_mode="private",
        init=engine.has_init,
        # The output is taken from the running container; a log file would only let it fill the engine's disk.
        log_config=LogConfig(type="none"),
    )
    return config


class DockerBox:
    """See `Box`. Made by `DockerSandbox.open` only, which also closes it."""

    root = ROOT

    def __init__(
        self,
        engine: Engine,
        image: str,
        limits: Limits,
        labels: Mapping[str, str],
        name: str,
        trusted: set[str],
        *,
        network: bool,
        hostname: str | None,
        share: Path | None = None,
    ) -> None:
        self._engine, self._image, self._limits = engine, image, limits
        self._network, self._hostname, self._share = network, hostname or HOSTNAME, share
        self.labels, self.name = dict(labels), name
        self._images_with_own_root = trusted
        self._spool = TarSpool(USER, USER)
        self._container: str | None = None
        self._creating = False
        self._state = "filling"
        self._interrupted = threading.Event()

    @property
    def share(self) -> str:
        """See `Box.share`."""
        if self._share is None:
            raise RuntimeError(f"{self.name} shares no folder")
        return SHARE

    def put(self, files: Iterable[FileEntry]) -> None:
        """See `Box.put`."""
        self._require("filling")
        self._spool.add(files)

    def run(self, command: Sequence[str], *, env: Mapping[str, str], cwd: str, watch: Watch | None = None) -> Outcome:
        """See `Box.run`."""
        self._require("filling")
        self._state = "running"
        directory = self._working_directory(cwd)
        environment = self._engine.environment_of_box(self._image, dict(env))
        archive = StdinArchive() if self._fills_itself(environment) else None
        try:
            self._container = container = self._create(command, environment, directory, archive)
            if archive is None:
                self._put_archive(container)
            outcome = self._start_and_wait(container, watch, archive)
        except SandboxError as error:
            if self._interrupted.is_set() and not isinstance(error, Interrupted):
                raise Interrupted(f"{self.name} was killed while it ran") from error
            raise
        self._state = "ended"
        return outcome

    def read_file(self, path: str, max_bytes: int) -> bytes | None:
        """See `Box.read_file`."""
        self._require("ended")
        return self._files().read_file(path, max_bytes)

    def read_tree(self, path: str, limits: TreeLimits) -> Iterator[FileEntry]:
        """See `Box.read_tree`."""
        self._require("ended")
        yield from self._files().read_tree(path, limits)

    def interrupt(self) -> None:
        """Let `run`, now or later, end with Interrupted; whoever calls this also removes the container."""
        self._interrupted.set()

    def close(self) -> None:
        """Remove the container with its volume. A failure is logged: the results are read, and `reap` tries
        again.
        """
        answered, self._state = self._state == "ended", "closed"
        self._spool.close()
        # By name, because the engine may have created it although the answer to that never came.
        wanted = self._container or (self.name if self._creating else None)
        if wanted is not None and not remove_container(self._engine, wanted, ask_first=not answered):
            # Somebody else removed it, perhaps without its volume.
            remove_volumes(self._engine, [f"{BOX_LABEL}={self.name}"], lambda labels: True)

    def _require(self, state: str) -> None:
        if self._state != state:
            raise RuntimeError(f"{self.name} is {self._state}, and this is only possible while it is {state}")

    def _fills_itself(self, environment: list[str]) -> bool:
        has_means = self._engine.image_label(self._image, FILLS_ITSELF) is not None and sends_and_reads(self._engine)
        return has_means and passes_a_shell(environment) and not self._spool.replaces

    def _files(self) -> ContainerFiles:
        if self._container is None:
            raise RuntimeError(f"{self.name} has no container")
        return ContainerFiles(self._engine, self._container, ROOT)

    def _put_archive(self, container: str) -> None:
        """Let the engine lay the files: into any image, whatever it holds and whomever its root belongs to."""
        with engine_faults(f"lay the files into {self.name}"), self._spool as spool:
            # The engine leaves an entry named "." alone, and the root must belong to the user: name it from outside.
            spool.add_root(f"..{ROOT}")
            self._engine.api.put_archive(container, ROOT, spool.finish())
        self._require_own_root(container)

    def _create(
        self, command: Sequence[str], environment: list[str], directory: str, archive: StdinArchive | None
    ) -> str:
        self._raise_if_interrupted()
        self._creating = True
        with engine_faults(f"create a container from {self._image}"):
            created = self._engine.api.create_container(
                self._image,
                # As the entry point, because that replaces both the image's entry point and its command.
                entrypoint=list(command) if archive is None else archive.wrapped(command, ROOT, directory),
                name=self.name,
                user=f"{USER}:{USER}",
                working_dir=directory if archive is None else ROOT,
                stdin_open=archive is not None,
                hostname=self._hostname,
                environment=environment,
                labels=self.labels,
                host_config=host_config(
                    self._engine, self._limits, self.labels, network=self._network, share=self._share
                ),
            )
        return str(created["Id"])

    def _working_directory(self, cwd: str) -> str:
        directory = PurePosixPath(ROOT) / cwd
        if directory.is_relative_to(ROOT) and directory != PurePosixPath(ROOT):
            inner = as_bytes(str(directory.relative_to(ROOT)))
            if not self._spool.has_directory(inner):
                # The engine would make it, as root, and the program would wonder where everything is.
                raise ValueError(f"the working directory {cwd!r} is none of the directories put into {self.name}")
        return str(directory)

    def _require_own_root(self, container: str) -> None:
        """Engines differ in what they let an archive say about the root itself: look once for each image."""
        if self._image in self._images_with_own_root:
            return
        with self._engine.archive(container, as_bytes(ROOT)) as source:
            member, _ = next(tar_members(source))
        if member.uid != USER:
            raise EngineFault(
                f"{ROOT} in a box from {self._image} belongs to the user {member.uid}; "
                f"make the directory {ROOT} in the image and give it to {USER}:{USER}"
            )
        self._images_with_own_root.add(self._image)

    def _start_and_wait(self, container: str, watch: Watch | None, archive: StdinArchive | None) -> Outcome:
        attachment = Attachment(self._engine, container, sends=archive is not None)
        output = OutputReader(attachment, self._limits.output_bytes, watch)
        try:
            self._raise_if_interrupted()
            started = time.monotonic()
            try:
                self._engine.api.start(container)
            except APIError as error:
                return self._outcome_of_failed_start(error)
            except requests.RequestException:
                with engine_faults(f"start {self.name}"):
                    raise
            output.start()
            if archive is not None:
                archive.send(attachment, self._spool.finish())
            timed_out, told = self._wait(container, started, watch, output)
            duration = time.monotonic() - started
            state = self._final_state(container, told)
            output.join()
        finally:
            attachment.close()
        exit_code = int(state["ExitCode"])
        outcome = Outcome(
            exit_code=None if timed_out else exit_code,
            timed_out=timed_out,
            out_of_memory=bool(state["OOMKilled"]) and exit_code != 0 and not timed_out,
            duration_s=duration,
            stdout=output.stdout.content(),
            stderr=output.stderr.content(),
            stdout_truncated=output.stdout.truncated,
            stderr_truncated=output.stderr.truncated,
        )
        if archive is not None:
            archive.require_laid(outcome)
        return outcome

    def _outcome_of_failed_start(self, error: APIError) -> Outcome:
        """Without an init program the engine itself looks for the command: what it does not find is no engine
        fault.
        """
        text = str(error.explanation)
        if "executable file not found" in text or "no such file or directory" in text:
            exit_code = _NOT_FOUND_EXIT
        elif "exec:" in text and "permission denied" in text:
            exit_code = _NOT_EXECUTABLE_EXIT
        else:
            with engine_faults(f"start {self.name}"):
                raise error
        return Outcome(exit_code, False, False, 0.0, b"", text.encode(), False, False)

    def _wait(
        self, container: str, started: float, watch: Watch | None, output: OutputReader
    ) -> tuple[bool, int | None]:
        """Wait for the end, or make it: whether the deadline or the watch made it, and the exit code where it is told.

        The engine is asked in slices, so that a silent engine is noticed and no HTTP time-out bounds a run.
        """
        deadline, slice_s = started + self._limits.timeout_s, WATCH_S if watch else _WAIT_SLICE_S
        while (remaining := deadline - (now := time.monotonic())) > 0:
            if watch is not None and watch.is_over(now - started, now - max(started, output.last_s)):
                break
            try:
                # The client's types say int; requests takes a float.
                told = self._engine.api.wait(container, timeout=min(remaining, slice_s))  # type: ignore[arg-type]
            except NotFound:
                raise Interrupted(f"{self.name} was removed while it ran") from None
            except (requests.RequestException, APIError):
                # A read time-out, which comes as either of two types, or a fault: the engine itself tells
                # which.
                self._engine.require_alive()
                if not self._is_running(container):
                    return False, None
                time.sleep(min(0.05, max(0.0, deadline - time.monotonic())))
            else:
                return False, None if told.get("Error") else told["StatusCode"]
        return self._kill(container), None

    def _kill(self, container: str) -> bool:
        try:
            with engine_faults(f"kill {self.name} at its deadline"):
                if self._limits.grace_s:
                    self._engine.api.kill(container, signal="SIGTERM")
                    end = time.monotonic() + self._limits.grace_s
                    while self._is_running(container) and time.monotonic() < end:
                        time.sleep(0.1)
                if not self._limits.grace_s or self._is_running(container):
                    self._engine.api.kill(container)
        except EngineFault:
            # It may have ended by itself just now, which is no time-out.
            if self._is_running(container):
                raise
            return False
        end = time.monotonic() + _END_S
        while self._is_running(container):
            if time.monotonic() > end:
                raise EngineUnavailable(f"{self.name} still runs {_END_S:.0f} s after its kill; restart the engine")
            time.sleep(0.02)
        return True

    def _inspect(self, container: str) -> dict[str, Any]:
        with engine_faults(f"learn the state of {self.name}"):
            return dict(self._engine.api.inspect_container(container))

    def _is_running(self, container: str) -> bool:
        return bool(self._inspect(container)["State"]["Running"])

    def _final_state(self, container: str, told: int | None) -> dict[str, Any]:
        """The state of a container that has ended, with the exit code `told` where it is known. Raises Interrupted when
        it was killed, EngineFault when unknown.
        """
        attempts = 0
        while True:
            self._raise_if_interrupted()
            if told == 0:
                return {"ExitCode": 0, "OOMKilled": False}  # What was killed, or ran out of memory, does not end so.
            found = self._inspect(container)
            state: dict[str, Any] = found["State"]
            removing = state["Status"] in ("removing", "dead")
            if removing or found["Name"].lstrip("/").startswith(KILLED_PREFIX):
                raise Interrupted(f"{self.name} was killed while it ran")
            if state["Status"] != "exited":
                raise EngineFault(f"{self.name} should have ended and is {state['Status']!r}; look at the engine's log")
            # The engine hears of memory kills and of exits on two ways; the first may come last.
            unsure = state["ExitCode"] == _KILLED_EXIT and not state["OOMKilled"]
            if not unsure or attempts == 3:
                return state
            attempts += 1
            time.sleep(0.1)

    def _raise_if_interrupted(self) -> None:
        if self._interrupted.is_set():
            raise Interrupted(f"{self.name} was killed")
