"""What an agent is to evalpipe: files to put beside the instance, and a command to run in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from evalpipe.history import ScratchObjects
from evalpipe.sandbox import FileEntry
from evalpipe.tasks import PromptMode, Task

AGENT_FOLDER = "agent"
"""Folder of the agent's own files, relative to the root of its box; the instance is in `repo`."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """One attempt to make. `sample` counts from 1 within its prompt mode."""

    task: Task
    mode: PromptMode
    sample: int
    prompt: str


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """How an agent is started: `files` are relative to the box's root, `command` runs in the instance."""

    command: tuple[str, ...]
    files: tuple[FileEntry, ...] = ()
    env: Mapping[str, str] | None = None


class Adapter(Protocol):
    """Turns an assignment into a command. One adapter for each kind of agent program."""

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        """Say what to put into a box at `root` and what to run there."""
