"""The real programs, in containers without network, against a scripted model: each fault ends in its own outcome.

A case takes seconds of a program that starts, so that `make test` asks two of each program, and `make test-agents` all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from evalpipe.agents import (
    AgentCommand,
    AttemptOutcome,
    AttemptResult,
    HistoryKind,
    make_instance,
    run_attempt,
)
from evalpipe.agents.adapter import Assignment, ProgramSettings
from evalpipe.agents.attempt import AttemptFlag
from evalpipe.agents.layers import agent_layer
from evalpipe.agents.watch import AttemptWatch
from evalpipe.gateway import Caps, Gateway, Provider
from evalpipe.history import Repository, ScratchObjects
from evalpipe.sandbox import DockerSandbox, Limits
from evalpipe.tasks import PromptMode
from evalpipe_tests.conformance.agent_programs import MEND, PROGRAMS, Changed, RealProgram, lingering
from evalpipe_tests.conformance.environments import EnvironmentImages
from evalpipe_tests.history.builder import Builder
from evalpipe_tests.model_replies import Fail
from evalpipe_tests.model_server import Drop, ModelServer, Script, Silence, Step
from evalpipe_tests.tasks.records import task_record

pytestmark = [pytest.mark.docker, pytest.mark.slow]

of_all_cases = pytest.mark.skipif(os.environ.get("EVALPIPE_TEST_AGENTS") != "all", reason="run by `make test-agents`")
REAL_KEY = "sk-real-canary-0815-4711"
_LIMITS = Limits(120, memory_bytes=2 * 1024**3, cpus=2, pids=512, output_bytes=8_000_000)
_PROMPT = "Mend the clock in clock.py … today, and leave @noon as it is.\n"


@dataclass
class StopsAfterCalls(AttemptWatch):
    """Ends an attempt some seconds after a call: programs start fast or slowly, as the machine is busy."""

    server: ModelServer | None = None
    calls: int = 1
    seconds: float = 12
    _seen_at: float | None = None

    def is_over(self, elapsed_s: float, silent_s: float) -> bool:
        assert self.server is not None
        if self._seen_at is None and len(self.server.seen) >= self.calls:
            self._seen_at = elapsed_s
        return self._seen_at is not None and elapsed_s - self._seen_at >= self.seconds


@dataclass
class Bench:
    """Runs one program on one task with a scripted model."""

    name: str
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
        stop_after_calls: int | None = None,
        change: Callable[[AgentCommand], AgentCommand] | None = None,
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
        adapter = Changed(program, change) if change else program
        with ModelServer(script) as self.server:
            provider = Provider("p", self.server.url, frozenset({self.program.form}), "EVALPIPE_TEST_KEY")
            with (
                Gateway([provider], records_bodies=True, silence_s=silence_s) as gateway,
                gateway.open_attempt("a", "p", caps=caps or Caps(calls=30), folder=self.folder / "calls") as model,
            ):
                place = self.sandbox, self.image, adapter, repository, assignment, instance
                watch = AttemptWatch(120, 120, model, program=self.name)
                if stop_after_calls:
                    watch = StopsAfterCalls(120, 120, model, server=self.server, calls=stop_after_calls)
                return run_attempt(*place, _LIMITS, {"task": "t"}, model, watch)


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
    return Bench(request.param, program, docker_sandbox, image, tmp_path)


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
        assert any(MEND in json.dumps(call["arguments"]) for call in asked)
        assert told["final_metrics"]["total_prompt_tokens"] == 200
    adapter = bench.program.make(ProgramSettings(bench.program.model))
    assert told["agent"]["version"] == adapter.program.version


@of_all_cases
def test_wrong_permissions_are_a_fault_of_the_configuration(bench: Bench) -> None:
    if bench.program.forbid is None:
        pytest.skip("the program has no permissions")
    result = bench.attempt([bench.program.mend, *bench.program.ending], change=bench.program.forbid)
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
    # Gemini CLI and opencode wait for it, as long as it lives, before they ask their model again.
    result = bench.attempt(bench.program.script(f"{MEND}; sleep 30 & echo started"))
    assert result.outcome is AttemptOutcome.FINISHED, (result.detail, result.transcript[-3000:])
    assert b"+    return 12" in (result.patch or b"")


@of_all_cases
def test_an_attempt_that_hangs_after_the_last_event_of_its_program_has_finished(bench: Bench) -> None:
    if bench.name in ("aider", "mini-swe-agent"):
        pytest.skip("the program prints no events")
    result = bench.attempt([bench.program.mend, *bench.program.ending], change=lingering)
    assert result.outcome is AttemptOutcome.FINISHED, (result.detail, result.transcript[-3000:])
    assert result.flags == (AttemptFlag.STOPPED_AT_ITS_END,)
    assert b"+    return 12" in (result.patch or b"")


@of_all_cases
def test_the_patch_of_an_agent_that_hangs_after_its_edit_is_kept(bench: Bench) -> None:
    # Programs end a command that takes long, and go on: here every process but this one stands still.
    result = bench.attempt(bench.program.script(f"{MEND}; kill -STOP -1"), stop_after_calls=1)
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
    # Programs try again for minutes: what matters is what their end is called, and a deadline is an end too.
    result = bench.attempt([bench.program.mend, step], silence_s=2, stop_after_calls=2)
    assert result.outcome is outcome, (result.detail, result.transcript[-3000:])
    assert b"+    return 12" in (result.patch or b"")


@of_all_cases
def test_long_lines_and_bytes_that_are_not_utf8_pass(bench: Bench) -> None:
    noise = f"{MEND}; head -c 300000 /dev/zero | tr '\\0' x; printf '\\377\\376\\n'"
    result = bench.attempt(bench.program.script(noise))
    assert result.outcome is AttemptOutcome.FINISHED, (result.detail, result.transcript[-3000:])
