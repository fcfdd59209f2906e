"""The real programs, in containers without network, against a scripted model: each fault ends in its own outcome.

A case takes seconds of a program that starts, so that `make test` asks two of each program, and `make test-agents` all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from evalpipe.agents import (
    Adapter,
    AgentCommand,
    AttemptOutcome,
    AttemptResult,
    HistoryKind,
    make_instance,
    run_attempt,
)
from evalpipe.agents.adapter import Assignment, ProgramSettings
from evalpipe.agents.aider import Aider
from evalpipe.agents.attempt import AttemptFlag
from evalpipe.agents.claude_code import ClaudeCode
from evalpipe.agents.codex import Codex
from evalpipe.agents.gemini_cli import GeminiCli
from evalpipe.agents.layers import Program, agent_layer
from evalpipe.agents.mini_swe_agent import MiniSweAgent
from evalpipe.agents.opencode import Opencode
from evalpipe.gateway import Caps, Gateway, Provider, WireForm
from evalpipe.history import Repository, ScratchObjects
from evalpipe.sandbox import DockerSandbox, Limits
from evalpipe.tasks import PromptMode
from evalpipe_tests.conformance.environments import EnvironmentImages
from evalpipe_tests.history.builder import Builder
from evalpipe_tests.model_replies import Fail, Say, Use
from evalpipe_tests.model_server import Drop, ModelServer, Script, Silence, Step
from evalpipe_tests.tasks.records import task_record

pytestmark = [pytest.mark.docker, pytest.mark.slow]

of_all_cases = pytest.mark.skipif(os.environ.get("EVALPIPE_TEST_AGENTS") != "all", reason="run by `make test-agents`")
REAL_KEY = "sk-real-canary-0815-4711"
_LIMITS = Limits(120, memory_bytes=2 * 1024**3, cpus=2, pids=512, output_bytes=8_000_000)
_MEND = "sed -i s/11/12/ clock.py"
_PROMPT = "Mend the clock in clock.py … today, and leave @noon as it is.\n"


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
        return self.edit or self.shell(_MEND)

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


@dataclass(frozen=True)
class Forbidden:
    """An adapter whose program is started with the wrong permissions."""

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


@dataclass
class Bench:
    """Runs one program on one task with a scripted model."""

    program: RealProgram
    sandbox: DockerSandbox
    image: str
    folder: Path
    server: ModelServer | None = None

    def attempt(
        self,
        script: Script,
        *,
        caps: Caps | None = None,
        silence_s: float = 60,
        timeout_s: float = 120,
        forbidden: bool = False,
        settings: ProgramSettings | None = None,
        beside: Mapping[bytes, bytes] | None = None,
    ) -> AttemptResult:
        builder = Builder(self.folder / "source.git")
        parent = builder.commit({b"clock.py": b"def noon():\n    return 11\n", **(beside or {})})
        commit = builder.commit({b"clock.py": b"def noon():\n    return 12\n"})
        repository = Repository(builder.path)
        with ScratchObjects(repository) as scratch:
            instance = make_instance(scratch, parent, commit, (), HistoryKind.ANCESTORS)
        task = task_record(parent=parent, commit=commit)
        assignment = Assignment(task, PromptMode.ORIGINAL, 1, _PROMPT)
        program = self.program.make(settings or ProgramSettings(self.program.model))
        adapter = Forbidden(program, self._forbidding()) if forbidden else program
        with ModelServer(script) as self.server:
            provider = Provider("p", self.server.url, frozenset({self.program.form}), "EVALPIPE_TEST_KEY")
            with (
                Gateway([provider], records_bodies=True, silence_s=silence_s) as gateway,
                gateway.open_attempt("a", "p", caps=caps or Caps(calls=30), folder=self.folder / "calls") as model,
            ):
                place = self.sandbox, self.image, adapter, repository, assignment, instance
                return run_attempt(*place, replace(_LIMITS, timeout_s=timeout_s), {"task": "t"}, model)

    def _forbidding(self) -> Callable[[AgentCommand], AgentCommand]:
        if self.program.forbid is None:
            pytest.skip("the program has no permissions")
        return self.program.forbid


# By default those of which a run of the whole suite asks; the others have images of their own to build.
_OTHERS = ("gemini-cli", "opencode", "aider")


@pytest.fixture(params=[pytest.param(name, marks=of_all_cases if name in _OTHERS else ()) for name in PROGRAMS])
def bench(
    request: pytest.FixtureRequest,
    docker_sandbox: DockerSandbox,
    environment_images: EnvironmentImages,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Bench:
    monkeypatch.setenv("EVALPIPE_TEST_KEY", REAL_KEY)
    program = PROGRAMS[request.param]
    adapter = program.make(ProgramSettings(program.model))
    image = environment_images.built(agent_layer(environment_images.toolchain(program.toolchain), adapter.program))
    return Bench(program, docker_sandbox, image, tmp_path)


def test_it_solves_a_task_and_its_calls_are_counted(bench: Bench) -> None:
    result = bench.attempt([bench.program.mend, *bench.program.ending])
    assert result.outcome is AttemptOutcome.FINISHED, (result.detail, result.transcript[-3000:])
    assert result.patch is not None
    assert b"+    return 12" in result.patch
    assert result.files_changed == 1
    assert result.evidence is not None
    assert result.evidence.succeeded == 2
    assert result.evidence.usage.input == 200
    assert REAL_KEY.encode() not in result.transcript
    _is_told(bench, result)
    assert bench.server is not None
    sent = bench.server.seen[0].body.decode()
    assert any(json.dumps(_PROMPT.strip(), ensure_ascii=ascii)[1:-1] in sent for ascii in (True, False))


def _is_told(bench: Bench, result: AttemptResult) -> None:
    """The trajectory says what the model said and asked for, and what the program says of itself and of its tokens."""
    told = result.trajectory
    assert told is not None
    assert any("I look." in step["message"] for step in told["steps"] if step["source"] == "agent")
    if bench.program.tool:
        asked = [call for step in told["steps"] for call in step.get("tool_calls", [])]
        assert any(_MEND in json.dumps(call["arguments"]) for call in asked)
        assert told["final_metrics"]["total_prompt_tokens"] == 200
    adapter = bench.program.make(ProgramSettings(bench.program.model))
    assert told["agent"]["version"] == adapter.program.version


@of_all_cases
def test_wrong_permissions_are_a_fault_of_the_configuration(bench: Bench) -> None:
    result = bench.attempt([bench.program.mend, *bench.program.ending], forbidden=True)
    assert result.outcome is AttemptOutcome.PERMISSION_DENIED, (result.detail, result.transcript[-3000:])
    assert AttemptFlag.TOOLS_REFUSED in result.flags


@of_all_cases
def test_settings_of_the_repository_that_take_the_tools_away_are_no_failure_of_the_agent(bench: Bench) -> None:
    if not bench.program.taking_tools:
        pytest.skip("the program has no such settings")
    result = bench.attempt([bench.program.mend, *bench.program.ending], beside=bench.program.taking_tools)
    # Where evalpipe's own settings stand above them, they take nothing away.
    assert result.outcome in (AttemptOutcome.PERMISSION_DENIED, AttemptOutcome.FINISHED), result.transcript[-3000:]
    assert bool(result.patch) is (result.outcome is AttemptOutcome.FINISHED)


@of_all_cases
def test_it_does_nothing(bench: Bench) -> None:
    assert bench.attempt(bench.program.ending).outcome is AttemptOutcome.EMPTY_PATCH


@of_all_cases
def test_it_loops_until_its_turns_are_used_and_its_patch_is_kept(bench: Bench) -> None:
    result = bench.attempt([bench.program.mend], caps=Caps(calls=3))
    assert result.outcome is AttemptOutcome.TURN_LIMIT, result.transcript[-3000:]
    assert result.evidence is not None
    assert result.evidence.succeeded == 3
    assert b"+    return 12" in (result.patch or b"")


@of_all_cases
def test_an_attempt_with_a_background_child_that_holds_the_output_ends(bench: Bench) -> None:
    # Gemini CLI and opencode wait for it, as long as it lives.
    result = bench.attempt(bench.program.script(f"{_MEND}; sleep 30 & echo started"))
    assert result.outcome is AttemptOutcome.FINISHED, result.transcript[-3000:]
    assert b"+    return 12" in (result.patch or b"")


@of_all_cases
def test_the_patch_of_an_agent_that_hangs_after_its_edit_is_kept(bench: Bench) -> None:
    # Programs end a command that takes long, and go on: here every process but this one stands still.
    result = bench.attempt(bench.program.script(f"{_MEND}; kill -STOP -1"), timeout_s=40)
    assert result.outcome is AttemptOutcome.TIMEOUT, (result.detail, result.transcript[-3000:])
    assert b"+    return 12" in (result.patch or b"")
    assert result.trajectory is not None


@of_all_cases
def test_settings_reach_the_model(bench: Bench) -> None:
    if not bench.program.settings:
        pytest.skip("no setting of the program shows in its requests")
    # Not every model takes a temperature, and programs know which.
    model = bench.program.model.replace("gpt-5", "gpt-4.1")
    bench.attempt(bench.program.ending, settings=ProgramSettings(model, **bench.program.settings))
    assert bench.server is not None
    found = bench.program.sent(bench.server.seen[0].document)
    assert found
    wanted = bench.program.settings
    assert all(set(wanted[name]) == found[name] if name == "tools" else wanted[name] == found[name] for name in found)


@of_all_cases
def test_two_rate_limits_and_then_an_answer_is_a_finished_attempt(bench: Bench) -> None:
    limited = Fail(429, "rate_limit_error", retry_after="0")
    result = bench.attempt([limited, limited, bench.program.mend, *bench.program.ending])
    assert result.outcome is AttemptOutcome.FINISHED, (result.detail, result.transcript[-3000:])


@pytest.mark.parametrize(
    ("step", "outcome"),
    [
        pytest.param(Fail(429, "rate_limit_error", retry_after="1"), AttemptOutcome.PROVIDER_RATE_LIMIT, id="429"),
        pytest.param(Fail(401, "authentication_error"), AttemptOutcome.AUTH_ERROR, id="401", marks=of_all_cases),
        pytest.param(
            Fail(429, "insufficient_quota", "You exceeded your current quota"),
            AttemptOutcome.PROVIDER_USAGE_LIMIT,
            id="usage",
            marks=of_all_cases,
        ),
        pytest.param(Fail(500, "api_error"), AttemptOutcome.PROVIDER_ERROR, id="500", marks=of_all_cases),
        pytest.param(Drop(), AttemptOutcome.PROVIDER_ERROR, id="drop", marks=of_all_cases),
        pytest.param(Silence(mid_stream=True), AttemptOutcome.PROVIDER_ERROR, id="silence", marks=of_all_cases),
    ],
)
def test_a_fault_of_the_provider_for_ever_is_no_failure_of_the_agent(
    bench: Bench, step: Step, outcome: AttemptOutcome
) -> None:
    # Programs try again for minutes: what matters is what their end is called, and their own deadline is an end too.
    result = bench.attempt([bench.program.mend, step], silence_s=2, timeout_s=25)
    assert result.outcome is outcome, (result.detail, result.transcript[-3000:])
    assert b"+    return 12" in (result.patch or b"")


@of_all_cases
def test_long_lines_and_bytes_that_are_not_utf8_pass(bench: Bench) -> None:
    noise = f"{_MEND}; head -c 300000 /dev/zero | tr '\\0' x; printf '\\377\\376\\n'"
    result = bench.attempt(bench.program.script(noise))
    assert result.outcome is AttemptOutcome.FINISHED, (result.detail, result.transcript[-3000:])
