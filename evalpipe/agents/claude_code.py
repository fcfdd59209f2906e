"""Claude Code (npm): Anthropic Messages; the prompt on stdin, events as JSON lines on stdout."""

from dataclasses import dataclass

from evalpipe.agents.adapter import (
    AGENT_FOLDER,
    PROMPT_FILE,
    AgentCommand,
    Assignment,
    Forwarder,
    ProgramOutput,
    ProgramSettings,
)
from evalpipe.agents.layers import Program, Registry
from evalpipe.gateway.forwarders import NODE_FORWARDER
from evalpipe.history import ScratchObjects

# npm runs no scripts of packages here; without this one the command is a stub.
_FINISH = "node install.cjs"
_RUN = 'exec "$@" < "$0"'


@dataclass(frozen=True, slots=True)
class ClaudeCode:
    """See `Adapter`. Raises SettingRefused for what the program cannot set."""

    settings: ProgramSettings
    version: str = "2.1.197"

    def __post_init__(self) -> None:
        self.settings.refuse("Claude Code", "temperature", "context_limit")

    @property
    def program(self) -> Program:
        return Program(Registry.NPM, "@anthropic-ai/claude-code", self.version, "claude", _FINISH)

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        assert assignment.model is not None
        tools = ("--tools", ",".join(self.settings.tools)) if self.settings.tools else ()
        command = (
            *(self.program.path, "-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config"),
            *("--model", self.settings.model, "--permission-mode", "bypassPermissions", *tools),
        )
        return AgentCommand(
            ("sh", "-c", _RUN, f"{root}/{PROMPT_FILE}", *command),
            env={
                "ANTHROPIC_BASE_URL": assignment.model.url,
                "ANTHROPIC_API_KEY": assignment.model.key,
                "CLAUDE_CONFIG_DIR": f"{root}/{AGENT_FOLDER}/claude",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                "IS_SANDBOX": "1",
            },
            forwarder=Forwarder(NODE_FORWARDER, self.program.interpreter),
            output=ProgramOutput("claude-code", self.version),
            leaves=(b".claude/",),
        )
