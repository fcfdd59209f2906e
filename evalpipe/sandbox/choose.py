"""Which sandbox to use on this machine."""

import os
from pathlib import Path
from typing import Literal

from evalpipe.sandbox.box import Sandbox
from evalpipe.sandbox.docker import DockerSandbox
from evalpipe.sandbox.errors import EngineUnavailable
from evalpipe.sandbox.process import ProcessSandbox


def choose_sandbox(kind: Literal["auto", "docker", "process"], *, instance: str, state_dir: Path) -> Sandbox:
    """The sandbox of this kind, for this instance; `auto` takes Docker when an engine answers, else processes.

    `state_dir` is where processes have their boxes. Raises EngineUnavailable, for `auto` too when DOCKER_HOST names an
    engine: who names one does not expect weaker isolation on the day it is down.
    """
    if kind == "process":
        return ProcessSandbox(instance, state_dir)
    try:
        return DockerSandbox(instance)
    except EngineUnavailable as error:
        if kind == "docker":
            raise
        if os.environ.get("DOCKER_HOST"):
            raise EngineUnavailable(f"{error}; EVALPIPE_SANDBOX=process does without one, less isolated") from error
        return ProcessSandbox(instance, state_dir)
