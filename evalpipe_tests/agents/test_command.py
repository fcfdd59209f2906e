"""The adapter `command`: the prompt on stdin, what its file names as variables, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalpipe.agents import AttemptOutcome, HistoryKind, make_instance, run_attempt
from evalpipe.agents.adapter import AgentCommand, ModelAccess, ProgramSettings, SettingRefused
from evalpipe.agents.command import Command, ForwarderKind
from evalpipe.gateway import Caps, Gateway, Provider, WireForm
from evalpipe.history import ScratchObjects
from evalpipe.sandbox import Limits
from evalpipe_tests.agents.conftest import Place
from evalpipe_tests.model_replies import Say
from evalpipe_tests.model_server import ModelServer

_NO_MODEL = ProgramSettings("none")
_CALL = """
import json, os, pathlib, sys, urllib.request
body = json.dumps({"model": os.environ["MODEL"], "messages": [{"role": "user", "content": sys.stdin.read()}]})
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
reply = json.load(urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers)))
pathlib.Path("answer").write_text(reply["choices"][0]["message"]["content"])
"""


def _prepared(command: Command, place: Place) -> AgentCommand:
    access = ModelAccess(4711, "sk-{model}") if command.forwarder else None
    with ScratchObjects(place.repository) as scratch:
        return command.prepare(replace(place.assignment, model=access), scratch, "/work")


def test_it_reads_the_prompt_and_edits_the_working_tree(place: Place) -> None:
    result = place.attempt(Command(_NO_MODEL, ("sh", "-c", 'cat > prompt; echo "$NOTE" >&2'), {"NOTE": "it's {this}"}))
    assert result.outcome is AttemptOutcome.FINISHED, result.transcript
    assert place.work(result.patch)[b"prompt"].data == "Mend the clock … today.\n".encode()
    assert b"it's {this}" in result.transcript


def test_a_program_that_is_not_there_is_a_crash_that_names_it(place: Place) -> None:
    result = place.attempt(Command(_NO_MODEL, ("no-such-agent",)))
    assert (result.outcome, result.exit_code) == (AttemptOutcome.AGENT_CRASHED, 127)
    assert b"no-such-agent" in result.transcript


@pytest.mark.docker
@pytest.mark.slow
def test_it_reaches_its_model_by_the_variables_that_its_file_names(
    docker_place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALPIPE_TEST_KEY", "sk-real")
    env = {"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": "{key}", "MODEL": "{model}"}
    command = Command(ProgramSettings("gpt-5"), ("python3", "-c", _CALL), env, ForwarderKind.PYTHON)
    place, parent, commit = docker_place, docker_place.parent, docker_place.commit
    with ScratchObjects(place.repository) as scratch:
        instance = make_instance(scratch, parent, commit, (), HistoryKind.ANCESTORS)
    limits = Limits(60, memory_bytes=512 * 1024**2, pids=128)
    with ModelServer([Say("mended")]) as server:
        provider = Provider("p", server.url, frozenset({WireForm.OPENAI_CHAT}), "EVALPIPE_TEST_KEY")
        with (
            Gateway([provider]) as gateway,
            gateway.open_attempt("a", "p", caps=Caps(calls=3), folder=tmp_path / "calls") as model,
        ):
            ways = place.sandbox, place.image, command, place.repository, place.assignment, instance
            result = run_attempt(*ways, limits, {"task": "t"}, model)
    assert result.outcome is AttemptOutcome.FINISHED, (result.detail, result.transcript)
    assert place.work(result.patch)[b"answer"].data == b"mended"
    assert server.seen[0].document["messages"][0]["content"] == "Mend the clock … today.\n"
    assert server.seen[0].document["model"] == "gpt-5"


def test_every_setting_can_be_handed_on(process_place: Place) -> None:
    settings = ProgramSettings("m-1", temperature=0.0, context_limit=9000, tools=("bash", "edit"))
    argv = ("agent", "--temperature={temperature}", "--context", "{context_limit}", "--tools", "{tools}", '{"url": 1}')
    prepared = _prepared(
        Command(settings, argv, {"BASE": "{url}/v1", "KEY": "{key}"}, ForwarderKind.NODE), process_place
    )
    wanted = ("agent", "--temperature=0.0", "--context", "9000", "--tools", "bash,edit", '{"url": 1}')
    assert prepared.command[4:] == wanted
    assert prepared.env == {"BASE": "http://127.0.0.1:4711/v1", "KEY": "sk-{model}"}
    assert prepared.forwarder is not None
    assert prepared.forwarder.interpreter == "node"


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"argv": ()}, "is empty"),
        ({"settings": ProgramSettings("m", temperature=0.0)}, "does not use temperature"),
        ({"settings": ProgramSettings("m", tools=("bash",))}, "does not use tools"),
        ({"argv": ("agent", "{context_limit}")}, "sets no context_limit"),
        ({"env": {"KEY": "{key}"}}, "forwarder"),
        ({"env": {"KEY": "{key}"}, "forwarder": ForwarderKind.NODE}, "could not find its model"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_runs(fields: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingRefused, match=named):
        replace(Command(_NO_MODEL, ("agent",)), **fields)


def test_a_temperature_of_zero_is_a_setting_too() -> None:
    with pytest.raises(SettingRefused, match="temperature"):
        ProgramSettings("m", temperature=0.0).refuse("Program", "temperature")
