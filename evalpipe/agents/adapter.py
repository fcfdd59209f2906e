"""What an agent is to evalpipe: files to put beside the instance, and a command to run in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from evalpipe.history import ScratchObjects
from evalpipe.sandbox import FileEntry
from evalpipe.tasks import PromptMode, Task

AGENT_FOLDER = "agent"
"""Folder of the agent's own files, relative to the root of its box; the instance is in `repo`."""


PROMPT_FILE = f"{AGENT_FOLDER}/prompt.md"
"""The prompt, relative to the root of a box."""


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """How an agent reaches its model from inside its box: a port of loopback, and a key that only this attempt has."""

    port: int
    key: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@dataclass(frozen=True, slots=True)
class Assignment:
    """One attempt to make. `sample` counts from 1 within its prompt mode; `model` is None for agents without one."""

    task: Task
    mode: PromptMode
    sample: int
    prompt: str
    model: ModelAccess | None = None


@dataclass(frozen=True, slots=True)
class Forwarder:
    """What carries an agent's calls out of its box: a script of the gateway, and what runs it in the agent's image."""

    script: str
    interpreter: str


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """How a program's words are read, see `transcripts.transcript`: its adapter's name and its pinned version.

    `file` is where it keeps a record of its own, relative to the box's root; else its record is what it prints.
    """

    adapter: str
    version: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """How an agent is started: `files` are relative to the box's root, `command` runs in the instance.

    An agent with a model names its `forwarder`, one whose words are worth a transcript its `output`. `leaves` are
    beginnings of names at the top of the working tree: what is new there is the program's own, and nobody's work.
    """

    command: tuple[str, ...]
    files: tuple[FileEntry, ...] = ()
    env: Mapping[str, str] | None = None
    forwarder: Forwarder | None = None
    output: ProgramOutput | None = None
    leaves: tuple[bytes, ...] = ()


class SettingRefused(Exception):
    """An agent is configured with what its program cannot do; the text names the setting."""


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    """What the configuration of an agent asks of its program; None and () leave the program's own.

    Turns are held by the gateway for every program, so that no adapter maps them.
    """

    model: str
    temperature: float | None = None
    context_limit: int | None = None
    tools: tuple[str, ...] = ()

    def refuse(self, program: str, *names: str) -> None:
        """Raise SettingRefused when one of the settings `names` is asked for."""
        for name in names:
            if getattr(self, name) not in (None, ()):
                raise SettingRefused(f"{program} has no setting for {name}: leave {name} out of the agent's file")


class Adapter(Protocol):
    """Turns an assignment into a command. One adapter for each kind of agent program."""

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        """Say what to put into a box at `root` and what to run there."""
