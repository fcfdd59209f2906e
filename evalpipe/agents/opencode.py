"""opencode (npm): OpenAI Chat Completions; the prompt on stdin, events as JSON lines on stdout."""

import json
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

_PROVIDER = "evalpipe"
_OUTPUT_TOKENS = 32_000
# No tools, but what they are asked for besides.
_ALWAYS = ("external_directory", "doom_loop")
# npm runs no scripts of packages here; without this one the command is a stub.
_FINISH = "node postinstall.mjs"
_RUN = 'exec "$@" < "$0"'


@dataclass(frozen=True, slots=True)
class Opencode:
    """See `Adapter`. Every setting can be made."""

    settings: ProgramSettings
    version: str = "1.18.33"

    @property
    def program(self) -> Program:
        return Program(Registry.NPM, "opencode-ai", self.version, "opencode", _FINISH)

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        assert assignment.model is not None
        model = f"{_PROVIDER}/{self.settings.model}"
        # As an argument the prompt would reach the model in quotes.
        command = (self.program.path, "run", "--format", "json", "-m", model)
        return AgentCommand(
            ("sh", "-c", _RUN, f"{root}/{PROMPT_FILE}", *command),
            env={
                # Stands above what the repository's own file says.
                "OPENCODE_CONFIG_CONTENT": json.dumps(self._config(f"{assignment.model.url}/v1", assignment.model.key)),
                "OPENCODE_DISABLE_AUTOUPDATE": "true",
                "OPENCODE_DISABLE_MODELS_FETCH": "true",
                "OPENCODE_DISABLE_LSP_DOWNLOAD": "true",
                "XDG_DATA_HOME": f"{root}/{AGENT_FOLDER}/opencode",
            },
            forwarder=Forwarder(NODE_FORWARDER, self.program.interpreter),
            output=ProgramOutput("opencode", self.version),
            leaves=(b".opencode/",),
        )

    def _permission(self) -> str | dict[str, str]:
        """The last rule that fits decides; a tool that is denied is not offered."""
        if not self.settings.tools:
            return "allow"
        return {"*": "deny", **dict.fromkeys((*_ALWAYS, *self.settings.tools), "allow")}

    def _config(self, url: str, key: str) -> dict[str, object]:
        settings = self.settings
        model: dict[str, object] = {}
        agent: dict[str, object] = {}
        if settings.context_limit is not None:
            model["limit"] = {"context": settings.context_limit, "output": min(settings.context_limit, _OUTPUT_TOKENS)}
        if settings.temperature is not None:
            model["temperature"] = True  # Whether the model takes one at all.
            agent["temperature"] = settings.temperature
        return {
            "permission": self._permission(),
            "autoupdate": False,
            "share": "disabled",
            "small_model": f"{_PROVIDER}/{settings.model}",
            # It would be a call of its own, counted as one of the agent's.
            "agent": {"build": agent, "title": {"disable": True}},
            "provider": {
                _PROVIDER: {
                    "npm": "@ai-sdk/openai-compatible",
                    "options": {"baseURL": url, "apiKey": key},
                    "models": {settings.model: model},
                }
            },
        }
