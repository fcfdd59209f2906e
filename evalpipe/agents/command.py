"""Any program that reads a prompt from stdin and edits the working tree; the image of the task has to bring it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from evalpipe.agents.adapter import (
    PROMPT_FILE,
    AgentCommand,
    Assignment,
    Forwarder,
    ProgramOutput,
    ProgramSettings,
    SettingRefused,
)
from evalpipe.gateway.forwarders import NODE_FORWARDER, PYTHON_FORWARDER
from evalpipe.history import ScratchObjects

_RUN = 'exec "$@" < "$0"'
_OF_MODEL = ("url", "key")
_OF_SETTINGS = ("temperature", "context_limit", "tools")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


class ForwarderKind(StrEnum):
    """What runs the forwarder in the image: `python3` or `node`, which must be on its PATH."""

    PYTHON = "python"
    NODE = "node"


_FORWARDERS = {
    ForwarderKind.PYTHON: Forwarder(PYTHON_FORWARDER, "python3"),
    ForwarderKind.NODE: Forwarder(NODE_FORWARDER, "node"),
}


@dataclass(frozen=True, slots=True)
class Command:
    """See `Adapter`. Runs `argv` in the instance with the variables `env` and the prompt on stdin.

    In `argv` and in the values of `env`, `{model}`, `{temperature}`, `{context_limit}` and `{tools}` (joined by commas)
    stand for the settings, `{url}` and `{key}` for the address of the model and the attempt's key; the address has no
    path, so that `OPENAI_BASE_URL` is `{url}/v1`. `forwarder` is None for a command that calls no model.

    Raises SettingRefused for a setting that stands nowhere, a placeholder without its setting, and for `{url}` or a
    forwarder without the other.
    """

    settings: ProgramSettings
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    forwarder: ForwarderKind | None = None

    def __post_init__(self) -> None:
        if not self.argv:
            raise SettingRefused("the command of the agent is empty: name a program, and its arguments")
        for name in _OF_SETTINGS:
            is_set = getattr(self.settings, name) not in (None, ())
            if is_set and not self._uses(name):
                raise SettingRefused(
                    f"the command does not use {name}: put {{{name}}} into its arguments or variables, or leave {name} "
                    "out of the agent's file"
                )
            if self._uses(name) and not is_set:
                raise SettingRefused(f"{{{name}}} stands in the command of the agent, and its file sets no {name}")
        if self.forwarder is None and any(map(self._uses, _OF_MODEL)):
            raise SettingRefused("the command uses a model ({url}, {key}): say by `forwarder` what its image has")
        if self.forwarder is not None and not self._uses("url"):
            raise SettingRefused("the command has a forwarder, and {url} stands nowhere: it could not find its model")

    @property
    def program(self) -> None:
        """Nothing is installed over the task's image."""
        return None

    def prepare(self, assignment: Assignment, scratch: ScratchObjects, root: str) -> AgentCommand:
        forwarder = None
        known = {"model": self.settings.model, "tools": ",".join(self.settings.tools)}
        known |= {name: str(getattr(self.settings, name)) for name in ("temperature", "context_limit")}
        if self.forwarder is not None:
            assert assignment.model is not None
            forwarder = _FORWARDERS[self.forwarder]
            known |= {"url": assignment.model.url, "key": assignment.model.key}
        argv = (_filled(part, known) for part in self.argv)
        env = {name: _filled(value, known) for name, value in self.env.items()}
        command = ("sh", "-c", _RUN, f"{root}/{PROMPT_FILE}", *argv)
        return AgentCommand(command, env=env, forwarder=forwarder, output=ProgramOutput("command", "unknown"))

    def _uses(self, name: str) -> bool:
        return any(f"{{{name}}}" in text for text in (*self.argv, *self.env.values()))


def _filled(text: str, known: Mapping[str, str]) -> str:
    """`text` with its placeholders replaced, in one pass: a value may hold what looks like another of them."""
    return _PLACEHOLDER.sub(lambda found: known.get(found[1], found[0]), text)
