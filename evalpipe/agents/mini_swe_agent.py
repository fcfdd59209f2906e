"""mini-swe-agent (PyPI): OpenAI Chat Completions through litellm; its trajectory is a file, written after each step."""

import json
from dataclasses import dataclass

from evalpipe.agents.adapter import AGENT_FOLDER, AgentCommand, Assignment, Forwarder, ProgramOutput, ProgramSettings
from evalpipe.agents.layers import Program, Registry
from evalpipe.gateway.forwarders import PYTHON_FORWARDER
from evalpipe.history import ScratchObjects
from evalpipe.sandbox import REGULAR, FileEntry

_CONFIG, _HOME = f"{AGENT_FOLDER}/mini.yaml", f"{AGENT_FOLDER}/mini"
_TRAJECTORY = f"{AGENT_FOLDER}/trajectory.json"
_RUN = 'exec "$@" < /dev/null'


@dataclass(frozen=True, slots=True)
class MiniSweAgent:
    """See `Adapter`. Raises SettingRefused for what the program cannot set."""

    settings: ProgramSettings
    version: str = "2.4.6"

    def __post_init__(self) -> None:
        self.settings.refuse("mini-swe-agent", "context_limit", "tools")

    @property
    def program(self) -> Program:
        return Program(Registry.PYPI, "mini-swe-agent", self.version, "mini")

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        assert assignment.model is not None
        arguments: dict[str, object] = {"api_base": f"{assignment.model.url}/v1"}
        if self.settings.temperature is not None:
            # Else litellm leaves it out silently where it thinks that the model takes none.
            arguments |= {"temperature": self.settings.temperature, "drop_params": False}
        # In a file, and JSON is YAML: a prompt as an argument has a limit of 128 KiB.
        config = {
            "run": {"task": assignment.prompt},
            "agent": {"step_limit": 0, "cost_limit": 0},
            "model": {
                "model_name": f"openai/{self.settings.model}",
                "model_kwargs": arguments,
                "cost_tracking": "ignore_errors",
            },
        }
        # Lists of settings replace one another, so the program's own comes first.
        command = (
            *(self.program.path, "-y", "--exit-immediately", "-o", f"{root}/{_TRAJECTORY}"),
            *("-c", "mini.yaml", "-c", f"{root}/{_CONFIG}"),
        )
        return AgentCommand(
            ("sh", "-c", _RUN, "sh", *command),
            (FileEntry(_CONFIG.encode(), REGULAR, json.dumps(config).encode()),),
            {
                "OPENAI_API_KEY": assignment.model.key,
                "MSWEA_CONFIGURED": "true",
                "MSWEA_SILENT_STARTUP": "1",
                "MSWEA_GLOBAL_CONFIG_DIR": f"{root}/{_HOME}",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            },
            Forwarder(PYTHON_FORWARDER, self.program.interpreter),
            ProgramOutput("mini-swe-agent", self.version, _TRAJECTORY),
        )
