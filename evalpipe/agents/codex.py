"""Codex (npm): OpenAI Responses; the prompt on stdin, events as JSON lines into a file."""

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

_HOME = f"{AGENT_FOLDER}/codex"
_KEY = "EVALPIPE_MODEL_KEY"
# A provider of its own: the built-in one first loses seconds on WebSockets, and its address cannot be set by variable.
_CONFIG = """
model_provider = "evalpipe"
{context}
[model_providers.evalpipe]
name = "evalpipe"
base_url = "{url}/v1"
env_key = "{key}"
wire_api = "responses"
"""
# It sets its output not to block and ends in a panic when nobody reads for a moment, which a file never does. Its last
# event is printed from there, to be heard while it runs.
_EVENTS = f"{_HOME}/events.jsonl"
_RUN = """
events=$1
shift
: > "$events"
tail -n +1 -f "$events" | while read -r event; do
    case $event in '{"type":"turn.'*) printf '%s\\n' "$event" ;; esac
done &
exec "$@" - < "$0" > "$events"
"""


@dataclass(frozen=True, slots=True)
class Codex:
    """See `Adapter`. Raises SettingRefused for what the program cannot set."""

    settings: ProgramSettings
    version: str = "0.171.0"

    def __post_init__(self) -> None:
        self.settings.refuse("Codex", "temperature", "tools")

    @property
    def program(self) -> Program:
        return Program(Registry.NPM, "@openai/codex", self.version, "codex")

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        assert assignment.model is not None
        limit = self.settings.context_limit
        context = f"model_context_window = {limit}" if limit else ""
        config = _CONFIG.format(url=assignment.model.url, key=_KEY, context=context)
        command = (
            *(self.program.path, "exec", "--json", "--dangerously-bypass-approvals-and-sandbox"),
            *("--skip-git-repo-check", "-m", self.settings.model),
        )
        return AgentCommand(
            ("sh", "-c", _RUN, f"{root}/{PROMPT_FILE}", f"{root}/{_EVENTS}", *command),
            (FileEntry(f"{_HOME}/config.toml".encode(), REGULAR, config.encode()),),
            {"CODEX_HOME": f"{root}/{_HOME}", _KEY: assignment.model.key},
            Forwarder(NODE_FORWARDER, self.program.interpreter),
            ProgramOutput("codex", self.version, _EVENTS),
            leaves=(b".codex/",),
        )
