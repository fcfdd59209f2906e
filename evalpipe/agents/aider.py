"""aider (PyPI): OpenAI Chat Completions through litellm; it edits by what the model writes, and prints text."""

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
from evalpipe.gateway.forwarders import PYTHON_FORWARDER
from evalpipe.history import ScratchObjects
from evalpipe.sandbox import REGULAR, FileEntry

_FOLDER = f"{AGENT_FOLDER}/aider"
_VARIABLES, _MODEL_SETTINGS = f"{_FOLDER}/variables", f"{_FOLDER}/model.json"
_RUN = 'exec "$@" < /dev/null'


@dataclass(frozen=True, slots=True)
class Aider:
    """See `Adapter`. Raises SettingRefused for what the program cannot set."""

    settings: ProgramSettings
    version: str = "0.86.2"

    def __post_init__(self) -> None:
        self.settings.refuse("aider", "context_limit", "tools")

    @property
    def program(self) -> Program:
        return Program(Registry.PYPI, "aider-chat", self.version, "aider")

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        assert assignment.model is not None
        variables = {
            "OPENAI_API_BASE": f"{assignment.model.url}/v1",
            "OPENAI_API_KEY": assignment.model.key,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        # A `.env` of the repository would go over the environment; this file is read after it.
        dotenv = "".join(f"{name}={value}\n" for name, value in variables.items())
        files = [FileEntry(_VARIABLES.encode(), REGULAR, dotenv.encode())]
        model = f"openai/{self.settings.model}"
        command = [
            *(self.program.path, "--model", model, "--weak-model", model),
            *("--message-file", f"{root}/{PROMPT_FILE}", "--yes-always"),
            *("--no-auto-commits", "--no-gitignore", "--no-stream", "--no-pretty", "--no-check-update"),
            *("--analytics-disable", "--no-show-model-warnings", "--no-show-release-notes", "--no-detect-urls"),
            *("--env-file", f"{root}/{_VARIABLES}", "--chat-history-file", f"{root}/{_FOLDER}/chat.md"),
            *("--input-history-file", f"{root}/{_FOLDER}/input"),
        ]
        if self.settings.temperature is not None:
            settings = [{"name": model, "use_temperature": self.settings.temperature}]
            files.append(FileEntry(_MODEL_SETTINGS.encode(), REGULAR, json.dumps(settings).encode()))
            command += ["--model-settings-file", f"{root}/{_MODEL_SETTINGS}"]
        return AgentCommand(
            ("sh", "-c", _RUN, "sh", *command),
            tuple(files),
            variables,
            Forwarder(PYTHON_FORWARDER, self.program.interpreter),
            ProgramOutput("aider", self.version),
            leaves=(b".aider",),
        )
