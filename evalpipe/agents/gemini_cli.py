"""Gemini CLI (npm): Gemini's own interface; the prompt on stdin, events as JSON lines on stdout."""

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
from evalpipe.sandbox import REGULAR, FileEntry

_SETTINGS = f"{AGENT_FOLDER}/.gemini/settings.json"
_RUN = 'exec "$@" < "$0"'


@dataclass(frozen=True, slots=True)
class GeminiCli:
    """See `Adapter`. Raises SettingRefused for what the program cannot set."""

    settings: ProgramSettings
    version: str = "0.61.0"

    def __post_init__(self) -> None:
        self.settings.refuse("Gemini CLI", "context_limit")

    @property
    def program(self) -> Program:
        return Program(Registry.NPM, "@google/gemini-cli", self.version, "gemini")

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        assert assignment.model is not None
        command = (self.program.path, "-m", self.settings.model, "--yolo", "-o", "stream-json")
        return AgentCommand(
            ("sh", "-c", _RUN, f"{root}/{PROMPT_FILE}", *command),
            (FileEntry(_SETTINGS.encode(), REGULAR, json.dumps(self._settings()).encode()),),
            {
                "GOOGLE_GEMINI_BASE_URL": assignment.model.url,
                "GEMINI_API_KEY": assignment.model.key,
                "GEMINI_CLI_TRUST_WORKSPACE": "true",
                "GEMINI_CLI_HOME": f"{root}/{AGENT_FOLDER}",
            },
            Forwarder(NODE_FORWARDER, self.program.interpreter),
            ProgramOutput("gemini-cli", self.version),
            leaves=(b".gemini/",),
        )

    def _settings(self) -> dict[str, object]:
        found: dict[str, object] = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
        }
        if self.settings.temperature is not None:
            config = {"generateContentConfig": {"temperature": self.settings.temperature}}
            override = {"match": {"model": self.settings.model}, "modelConfig": config}
            found["modelConfigs"] = {"customOverrides": [override]}
        if self.settings.tools:
            found["tools"] = {"core": self.settings.tools}
        return found
