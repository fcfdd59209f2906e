"""Runs one command in isolation, and nothing else: see `box` for the protocols, `choose` for the kinds.

This folder knows nothing of tasks, agents or tests; it uses no other folder of the package.
"""

from evalpipe.sandbox.box import (
    DIRECTORY,
    EXECUTABLE,
    REGULAR,
    SYMLINK,
    Box,
    Capacity,
    FileEntry,
    Limits,
    Outcome,
    Sandbox,
    SandboxFacts,
    TreeLimits,
    Watch,
)
from evalpipe.sandbox.choose import choose_sandbox
from evalpipe.sandbox.docker import DockerSandbox
from evalpipe.sandbox.engine import docker_available
from evalpipe.sandbox.errors import (
    DiskFull,
    EngineFault,
    EngineUnavailable,
    ImageMissing,
    Interrupted,
    OutputTooLarge,
    SandboxError,
    UnsafeOutput,
)
from evalpipe.sandbox.owners import owner_id
from evalpipe.sandbox.process import ProcessSandbox
from evalpipe.sandbox.room import Room

__all__ = [
    "DIRECTORY",
    "EXECUTABLE",
    "REGULAR",
    "SYMLINK",
    "Box",
    "Capacity",
    "DiskFull",
    "DockerSandbox",
    "EngineFault",
    "EngineUnavailable",
    "FileEntry",
    "ImageMissing",
    "Interrupted",
    "Limits",
    "Outcome",
    "OutputTooLarge",
    "ProcessSandbox",
    "Room",
    "Sandbox",
    "SandboxError",
    "SandboxFacts",
    "TreeLimits",
    "UnsafeOutput",
    "Watch",
    "choose_sandbox",
    "docker_available",
    "owner_id",
]
