"""The export: everything that a forge knows of a project's issues and pull requests, as one file of JSON lines."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evalpipe.forges.patience import Say
from evalpipe.forges.progress import Progress, Write
from evalpipe.forges.records import Forge, Kind
from evalpipe.forges.walk import walk

_SAY_EVERY: Final = 500


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export came to. `changed` lines are new or other than before; `gone` items were in a list and could
    not be read any more. `path` is the project's path on the forge now."""

    output: Path
    path: str
    issues: int
    pull_requests: int
    changed: int
    gone: int


def export(forge: Forge, output: Path, write: Write, say: Say) -> Exported:
    """Bring the file `output` up to date, or make it.

    Can be stopped at any moment; the next call goes on. Raises ForgeError, with everything kept that was read.
    """
    project = forge.project()
    progress = Progress(output, forge.identity, write)
    if progress.restart_reason:
        say(f"everything is read anew: {progress.restart_reason}")
    done = changed = gone = 0
    for stream in project.streams:
        for step in walk(forge, stream, progress.cursor(stream)):
            changed += progress.record(stream, step)
            gone += len(step.completed.gone)
            before, done = done, done + len(step.completed.rows)
            if done // _SAY_EVERY > before // _SAY_EVERY:
                say(f"{project.path}: {done} read")
    progress.finish()
    kinds = Counter(row["kind"] for row in progress.rows)
    return Exported(output, project.path, kinds[Kind.issue], kinds[Kind.pull_request], changed, gone)
