"""Which sandbox to use on this machine."""

from pathlib import Path
from typing import Literal

from evalpipe.sandbox.box import Sandbox
from evalpipe.sandbox.docker import DockerSandbox
from evalpipe.sandbox.errors import EngineUnavailable
from evalpipe.sandbox.process import ProcessSandbox


def choose_sandbox(kind: Literal["auto", "docker", "process"], *, instance: str, state_dir: Path) -> Sandbox:
    """The sandbox of this kind, for this instance; `auto` takes Docker when an engine answers, else
    processes.

    `state_dir` is where processes have their boxes. Raises EngineUnavailable.
    """
    if kind == "process":
        return ProcessSandbox(instance, state_dir)
    try:
        return DockerSandbox(instance)
    except EngineUnavailable:
        if kind == "docker":
            raise
        return ProcessSandbox(instance, state_dir)
