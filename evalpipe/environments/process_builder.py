"""Makes virtual environments for the process sandbox, with the Python that runs evalpipe.

They hold a team's packages and what its setup commands make; whatever needs an image needs Docker.
"""

import datetime as dt
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from evalpipe.environments.build import (
    BuildSettings,
    BuildStatus,
    BuiltEnvironment,
    PlannedBuild,
    SpareEnvironment,
    log_end,
)
from evalpipe.environments.log_faults import failed_status, why_pip_saw_nothing
from evalpipe.environments.sources import EnvironmentSource, RecipeSource, build_key
from evalpipe.environments.templates import packages

_DIGEST_PREFIX = "environment:"
_COMPLETE = ".evalpipe-complete"
FREE_BYTES_FLOOR = 2 * 1024**3
"""Below this no build starts: a build that fills the disk takes every other process of the host with it."""


class ProcessEnvironmentBuilder:
    """See `EnvironmentBuilder`. Environments lie below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: set[subprocess.Popen[bytes]] = set()
        self._abandonments = 0

    @property
    def at_once(self) -> int:
        return os.cpu_count() or 1

    def locate(self, image_digest: str) -> str:
        # Records name the key and not the folder: a frozen set is the same on every machine.
        return str((self._folder / image_digest.removeprefix(_DIGEST_PREFIX)).absolute())

    def exists(self, image_digest: str) -> bool:
        return (Path(self.locate(image_digest)) / _COMPLETE).exists()

    def spare(self, needed: Collection[str], before: dt.datetime) -> Iterable[SpareEnvironment]:
        for marker in sorted(self._folder.glob(f"*/{_COMPLETE}")):
            place = marker.parent
            # A build that finds it sets the time anew, as the engine does with the tag of an image.
            last_used = dt.datetime.fromtimestamp(marker.stat().st_mtime, dt.UTC)
            if f"{_DIGEST_PREFIX}{place.name}" not in needed and last_used < before:
                size = sum(path.lstat().st_size for path in place.rglob("*"))
                yield SpareEnvironment(str(place), size, last_used, partial(shutil.rmtree, place))

    def plan(self, source: EnvironmentSource) -> PlannedBuild:
        base = f"host python {sys.version.split()[0]}"
        return PlannedBuild(source, build_key(source, "process", base), base)

    def abandon(self) -> None:
        self._abandonments += 1
        for command in tuple(self._running):
            _kill_group(command)

    def build(self, planned: PlannedBuild) -> BuiltEnvironment:
        digest = f"{_DIGEST_PREFIX}{planned.build_key[:32]}"
        place = Path(self.locate(digest))
        self._folder.mkdir(parents=True, exist_ok=True)
        # Two repositories may need the same environment at the same time.
        with place.with_suffix(".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            started = time.monotonic()
            status, log = self._build(planned.source, place)
            found = digest if status is BuildStatus.BUILT else None
            return BuiltEnvironment(status, found, log, time.monotonic() - started)

    def _build(self, source: EnvironmentSource, place: Path) -> tuple[BuildStatus, str]:
        if (place / _COMPLETE).exists():
            (place / _COMPLETE).touch()
            return BuildStatus.BUILT, ""
        if not isinstance(source, RecipeSource) or source.recipe.template != packages.NAME:
            kind = f"template {source.recipe.template}" if isinstance(source, RecipeSource) else "an image of its own"
            return (
                BuildStatus.FAILED,
                f"{kind} needs Docker, and this is the process sandbox: install Docker Engine and start it, "
                f"or set `template: {packages.NAME}` and list in environment.packages what the tests need",
            )
        # Scripts of a virtual environment hold its path, so it is made in place and marked when complete.
        shutil.rmtree(place, ignore_errors=True)
        status, log = self._fill(place, source)
        if status is BuildStatus.BUILT:
            (place / _COMPLETE).touch()
        else:
            shutil.rmtree(place, ignore_errors=True)
        return status, log

    def _fill(self, folder: Path, source: RecipeSource) -> tuple[BuildStatus, str]:
        if shutil.disk_usage(folder.parent).free < FREE_BYTES_FLOOR:
            return BuildStatus.DISK_FULL, f"less than {FREE_BYTES_FLOOR >> 30} GiB are free for {folder.parent}"
        try:
            venv.create(folder, with_pip=True, symlinks=True)
        except subprocess.CalledProcessError as error:
            log = (error.output or b"").decode(errors="replace")
            return BuildStatus.FAILED, f"this Python cannot make an environment; on Debian install python3-venv\n{log}"
        env = dict(os.environ, PATH=f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
        commands = [["/bin/sh", "-ec", command] for command in source.setup]
        if source.packages:
            install = packages.pip_arguments(source.packages)
            commands.insert(0, [str(folder / "bin" / "python"), "-m", "pip", *install])
        for command in commands:
            exit_code, output = self._run(command, folder, env)
            if exit_code != 0:
                if question := why_pip_saw_nothing(output.decode(errors="replace")):
                    output += self._run(["/bin/sh", "-c", question], folder, env)[1]
                log = log_end(output, BuildSettings())
                return failed_status(log), log
        return BuildStatus.BUILT, ""

    def _run(self, command: list[str], folder: Path, env: dict[str, str]) -> tuple[int, bytes]:
        before = self._abandonments
        with subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as running:
            self._running.add(running)
            try:
                if self._abandonments != before:
                    _kill_group(running)
                output, _ = running.communicate()
            finally:
                _kill_group(running)
                self._running.discard(running)
        return running.returncode, output


def _kill_group(command: subprocess.Popen[bytes]) -> None:
    """Kill a command and what it has started, which would hold its output open."""
    with suppress(ProcessLookupError):
        os.killpg(command.pid, signal.SIGKILL)
