"""The real programs of the conformance suite: the form that each speaks, and how its model asks it for something."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pytest

from evalpipe.agents import Adapter, AgentCommand
from evalpipe.agents.adapter import Assignment, ProgramSettings
from evalpipe.agents.aider import Aider
from evalpipe.agents.claude_code import ClaudeCode
from evalpipe.agents.codex import Codex
from evalpipe.agents.gemini_cli import GeminiCli
from evalpipe.agents.layers import Program
from evalpipe.agents.mini_swe_agent import MiniSweAgent
from evalpipe.agents.opencode import Opencode
from evalpipe.gateway import WireForm
from evalpipe.history import ScratchObjects
from evalpipe_tests.model_replies import Say, Use
from evalpipe_tests.model_server import Step

MEND = "sed -i s/11/12/ clock.py"


class ProgramAdapter(Adapter, Protocol):
    @property
    def program(self) -> Program: ...


@dataclass(frozen=True)
class RealProgram:
    """A program with the form it speaks, and how its model asks for a shell command."""

    make: Callable[[ProgramSettings], ProgramAdapter]
    toolchain: str
    form: WireForm
    model: str
    tool: str
    arguments: Callable[[str], dict[str, Any]]
    end: str | None = None
    """A command by which the program ends, when it is not by a text."""
    forbid: Callable[[AgentCommand], AgentCommand] | None = None
    """The same start with the permissions wrong, where the program has any."""
    taking_tools: Mapping[bytes, bytes] = field(default_factory=dict)
    """Files of a repository by which a program takes the tools from its agent."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings that reach the model, each found again in a request by `sent`."""
    sent: Callable[[dict[str, Any]], Mapping[str, Any]] = lambda request: {}
    edit: Step | None = None
    """An answer that mends the clock, and leads to another call, where a program has no shell."""

    @property
    def mend(self) -> Step:
        return self.edit or self.shell(MEND)

    def shell(self, command: str) -> Use:
        if not self.tool:
            pytest.skip("the program gives its agent no shell")
        return Use(self.tool, self.arguments(command), "I look.")

    def script(self, *commands: str) -> list[Step]:
        """Run the commands one after another, and end."""
        return [*map(self.shell, commands), *self.ending]

    @property
    def ending(self) -> list[Step]:
        return [Say("done") if self.end is None else self.shell(self.end)]


def _with_arguments(change: Mapping[str, tuple[str, ...]]) -> Callable[[AgentCommand], AgentCommand]:
    """A start whose arguments are replaced as `change` says."""

    def changed(start: AgentCommand) -> AgentCommand:
        command = (part for argument in start.command for part in change.get(argument, (argument,)))
        return replace(start, command=tuple(command))

    return changed


def _denying_opencode(start: AgentCommand) -> AgentCommand:
    assert start.env is not None
    config = json.loads(start.env["OPENCODE_CONFIG_CONTENT"]) | {"permission": "ask"}
    return replace(start, env={**start.env, "OPENCODE_CONFIG_CONTENT": json.dumps(config)})


def lingering(start: AgentCommand) -> AgentCommand:
    """A start after whose end something stays, so that the attempt does not end with its program."""
    *before, script = start.command[:3]
    return replace(start, command=(*before, f"{script.replace('exec ', '')}\nsleep 600", *start.command[3:]))


@dataclass(frozen=True)
class Changed:
    """An adapter whose program is started in another way."""

    inner: ProgramAdapter
    change: Callable[[AgentCommand], AgentCommand]

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        return self.change(self.inner.prepare(assignment, scratch, root))


# The edit is no Python, so that aider has it mended, and asks again.
_EDIT = """I look.

clock.py
```python
<<<<<<< SEARCH
    return 11
=======
    return 12 +
>>>>>>> REPLACE
```
"""


PROGRAMS: Mapping[str, RealProgram] = {
    "claude-code": RealProgram(
        ClaudeCode,
        "node",
        WireForm.ANTHROPIC_MESSAGES,
        "claude-sonnet-4-5",
        "Bash",
        lambda command: {"command": command, "description": "x"},
        forbid=_with_arguments({"bypassPermissions": ("default",)}),
        taking_tools={b".claude/settings.json": b'{"permissions": {"deny": ["Bash", "Edit", "Write"]}}'},
        settings={"tools": ("Bash", "Read")},
        sent=lambda request: {"tools": {tool["name"] for tool in request["tools"]}},
    ),
    "codex": RealProgram(
        Codex,
        "node",
        WireForm.OPENAI_RESPONSES,
        "gpt-5",
        "exec_command",
        lambda command: {"cmd": command},
        forbid=_with_arguments({"--dangerously-bypass-approvals-and-sandbox": ("-s", "read-only")}),
    ),
    "mini-swe-agent": RealProgram(
        MiniSweAgent,
        "",
        WireForm.OPENAI_CHAT,
        "gpt-5",
        "bash",
        lambda command: {"command": command},
        end="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
        settings={"temperature": 0.5},
        sent=lambda request: {"temperature": request["temperature"]},
    ),
    "gemini-cli": RealProgram(
        GeminiCli,
        "node",
        WireForm.GEMINI,
        "gemini-2.5-pro",
        "run_shell_command",
        lambda command: {"command": command, "description": "x"},
        forbid=_with_arguments({"--yolo": ()}),
        taking_tools={
            b".gemini/settings.json": b'{"tools": {"exclude": ["run_shell_command", "write_file", "replace"]}}'
        },
        settings={"temperature": 0.5, "tools": ("run_shell_command", "read_file")},
        sent=lambda request: {
            "temperature": request["generationConfig"]["temperature"],
            "tools": {tool["name"] for tool in request["tools"][0]["functionDeclarations"]},
        },
    ),
    "opencode": RealProgram(
        Opencode,
        "node",
        WireForm.OPENAI_CHAT,
        "gpt-5",
        "bash",
        lambda command: {"command": command, "description": "x"},
        forbid=_denying_opencode,
        taking_tools={b"opencode.json": b'{"permission": {"*": "deny"}}'},
        settings={"temperature": 0.5, "tools": ("bash", "read"), "context_limit": 50_000},
        sent=lambda request: {
            "temperature": request["temperature"],
            "tools": {tool["function"]["name"] for tool in request["tools"]},
        },
    ),
    "aider": RealProgram(
        Aider,
        "",
        WireForm.OPENAI_CHAT,
        "gpt-5",
        "",
        lambda command: {},
        settings={"temperature": 0.5},
        sent=lambda request: {"temperature": request["temperature"]},
        edit=Say(_EDIT),
    ),
}
