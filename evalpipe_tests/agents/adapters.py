"""Small agents of the tests: a shell or Python script that runs in the instance, as a real agent would."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from evalpipe.agents import AgentCommand, Assignment
from evalpipe.agents.adapter import ProgramOutput
from evalpipe.history import ScratchObjects
from evalpipe.sandbox import FileEntry


@dataclass(frozen=True)
class ShellAgent:
    """Runs a shell script in the instance; `$0` is the root of the box."""

    script: str
    output: ProgramOutput | None = None
    leaves: tuple[bytes, ...] = ()

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        return AgentCommand(("sh", "-c", self.script, root), output=self.output, leaves=self.leaves)


@dataclass(frozen=True)
class PythonAgent:
    """Runs a Python script in the instance, with whatever Python the box has."""

    script: str

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        file = FileEntry(b"agent/agent.py", 0o100644, self.script.encode())
        python = sys.executable if root != "/work" else "python3"
        return AgentCommand((python, f"{root}/agent/agent.py"), (file,), {"AGENT": "yes"})
