"""Transcripts of the real programs (shortened, with a scripted model), and of what no program should write."""

from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalpipe.agents.transcripts import READERS, refused_tools, transcript
from evalpipe.agents.transcripts.atif import STEPS, TEXT_CHARS, Trajectory

GOLDEN = Path(__file__).parent / "golden"
FILES = {path.stem: path for path in GOLDEN.iterdir()}
WITH_STEPS = sorted(FILES.keys() - {"aider"})


def _golden(program: str) -> bytes:
    return FILES[program].read_bytes()


def _read(program: str, raw: bytes) -> dict[str, Any]:
    found = transcript(program, raw, version="pinned", prompt="Mend the clock … today.\n")
    assert found is not None
    return found


def _told(document: dict[str, Any]) -> list[tuple[object, ...]]:
    """Who said what, which command it asked for, and what came of it."""
    told: list[tuple[object, ...]] = []
    for step in document["steps"]:
        row = [step["source"], step["message"]]
        for call in step.get("tool_calls", []):
            row.append(call["function_name"])
            row += [value for value in call["arguments"].values() if "clock.py" in str(value)]
        for result in step.get("observation", {}).get("results", []):
            row += [result["content"], *result.get("extra", {})]
        told.append(tuple(row))
    return told


FIRST, SECOND = "cat clock.py; echo oops >&2; exit 3", "sed -i s/11/12/ clock.py && git diff --stat"
SEEN, CHANGED = "def noon():\n    return 11\noops", " clock.py | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)"
PROMPT = ("user", "Mend the clock … today.\n")


def test_claude_code() -> None:
    document = _read("claude-code", _golden("claude-code"))
    assert _told(document) == [
        PROMPT,
        ("agent", "I look.", "Bash", FIRST, f"Exit code 3\n{SEEN}", "is_error"),
        ("agent", "I look.", "Bash", SECOND, CHANGED),
        ("agent", "done"),
    ]
    agent = document["agent"]
    assert (agent["version"], agent["model_name"]) == ("2.1.197", "claude-sonnet-4-5")
    assert agent["extra"]["tools"] == ["Bash", "Edit", "Read", "Write"]
    assert agent["extra"]["permission_mode"] == "bypassPermissions"
    metrics = document["final_metrics"]
    # Three calls, of each of which the server said: 60 sent, 30 read from a cache, 10 written to it, 7 generated.
    assert (metrics["total_prompt_tokens"], metrics["total_cached_tokens"]) == (300, 90)
    assert (metrics["total_completion_tokens"], metrics["total_cost_usd"]) == (21, 0.0009945)
    assert metrics["extra"]["as_reported"]["usage"]["input_tokens"] == 180
    assert document["extra"] == {"ending": "completed"}


def test_codex() -> None:
    document = _read("codex", _golden("codex"))
    told = _told(document)
    assert told[0] == PROMPT
    assert told[1][0] == "system"
    assert told[2:] == [
        ("agent", "I look.", "command_execution", f"/bin/sh -lc '{FIRST}'", SEEN + "\n", "is_error"),
        ("agent", "I look.", "command_execution", f"/bin/sh -lc '{SECOND}'", CHANGED + "\n"),
        ("agent", "done"),
    ]
    assert (document["agent"]["version"], document["session_id"]) == ("pinned", "5e55")
    metrics = document["final_metrics"]
    assert (metrics["total_prompt_tokens"], metrics["total_cached_tokens"]) == (300, 90)
    assert metrics["total_completion_tokens"] == 21
    assert "total_cost_usd" not in metrics


def test_mini_swe_agent() -> None:
    document = _read("mini-swe-agent", _golden("mini-swe-agent"))
    assert _told(document) == [
        ("system", "You are a helpful assistant that can interact with a computer."),
        ("user", "Please solve this issue: Mend the clock … today.\n"),
        ("agent", "I look.", "bash", FIRST, SEEN + "\n", "is_error"),
        ("agent", "I look.", "bash", SECOND, CHANGED + "\n"),
        ("agent", "I look.", "bash", "action was not executed", "is_error"),
    ]
    assert document["steps"][2]["metrics"]["cached_tokens"] == 30
    assert (document["agent"]["version"], document["agent"]["model_name"]) == ("2.4.6", "openai/gpt-5")
    assert document["final_metrics"]["total_prompt_tokens"] == 300
    assert document["final_metrics"]["total_cost_usd"] == pytest.approx(0.00048375)
    assert document["extra"] == {"ending": "Submitted"}


def test_mini_swe_agent_that_was_stopped_in_its_first_step_has_what_it_printed() -> None:
    printed = _golden("mini-swe-agent").partition(b"\n{\n")[0]
    assert _told(_read("mini-swe-agent", printed)) == [PROMPT, ("agent", printed.decode())]


def test_gemini_cli() -> None:
    document = _read("gemini-cli", _golden("gemini-cli"))
    # The program says of a command that it ran, not how it ended.
    assert _told(document) == [
        PROMPT,
        ("agent", "I look.", "run_shell_command", FIRST, SEEN),
        ("agent", "I look.", "run_shell_command", SECOND, CHANGED.strip()),
        ("agent", "done"),
    ]
    assert (document["agent"]["model_name"], document["session_id"]) == ("gemini-2.5-pro", "5e55")
    metrics = document["final_metrics"]
    assert (metrics["total_prompt_tokens"], metrics["total_cached_tokens"]) == (300, 90)
    assert metrics["total_completion_tokens"] == 15  # without the thoughts, which the server counted apart


def test_opencode() -> None:
    document = _read("opencode", _golden("opencode"))
    assert _told(document) == [
        PROMPT,
        ("agent", "I look.", "bash", FIRST, SEEN + "\n", "is_error"),
        ("agent", "I look.", "bash", SECOND, CHANGED + "\n"),
        ("agent", "done"),
    ]
    assert document["steps"][1]["metrics"] == {"prompt_tokens": 100, "completion_tokens": 7, "cached_tokens": 30}
    metrics = document["final_metrics"]
    assert (metrics["total_prompt_tokens"], metrics["total_completion_tokens"]) == (300, 21)
    assert "total_cost_usd" not in metrics
    cache = {"write": 0, "read": 90}
    tokens = {"total": 321, "input": 210, "output": 15, "reasoning": 6, "cache": cache}
    assert metrics["extra"]["as_reported"] == {"tokens": tokens, "cost": 0}


def test_aider() -> None:
    document = _read("aider", _golden("aider"))
    assert _told(document) == [PROMPT, ("agent", _golden("aider").decode())]
    assert (document["agent"]["version"], document["agent"]["model_name"]) == ("0.86.2", "openai/gpt-5")
    assert len(document["final_metrics"]["extra"]["as_reported"]["tokens"]) == 2


def test_output_without_a_form_is_one_text() -> None:
    document = _read("command", b"first\n\xff last\n")
    assert _told(document) == [PROMPT, ("agent", "first\n\ufffd last\n")]
    assert document["agent"] == {"name": "command", "version": "pinned"}
    assert transcript("command", b" \n") is None


def test_an_error_of_the_provider_is_told_by_the_system() -> None:
    result = {"type": "result", "subtype": "success", "is_error": True, "result": "API Error: 429", "num_turns": 1}
    assert _told(_read("claude-code", json.dumps(result).encode()))[1:] == [("system", "API Error: 429")]
    failed = {"type": "turn.failed", "error": {"message": "exceeded retry limit, last status: 429"}}
    assert _told(_read("codex", json.dumps(failed).encode()))[1:] == [("system", failed["error"]["message"])]  # type: ignore[index]


def test_refused_tools_are_named_unless_they_ask_a_person() -> None:
    denials = [{"tool_name": name} for name in ("AskUserQuestion", "Bash", "Bash", "Edit")]
    result = {"type": "result", "is_error": False, "permission_denials": denials}
    document = transcript("claude-code", _golden("claude-code") + json.dumps(result).encode())
    assert refused_tools(document) == ("Bash", "Edit")
    assert refused_tools(transcript("claude-code", _golden("claude-code"))) == ()
    assert refused_tools(None) == ()


def test_a_declined_command_of_codex_is_refused() -> None:
    raw = _golden("codex").replace(b'"status":"failed"', b'"status":"declined"')
    document = _read("codex", raw)
    assert refused_tools(document) == ("command_execution",)
    assert document["steps"][2]["observation"]["results"][0]["extra"] == {"is_error": True, "refused": True}


def test_every_reader_has_its_golden_output() -> None:
    assert READERS.keys() == FILES.keys()


def test_claude_code_without_a_tool_that_changes_files_is_refused() -> None:
    init = {"type": "system", "subtype": "init", "tools": ["Read"]}
    message = {"type": "assistant", "message": {"content": [{"type": "text", "text": "I cannot."}]}}
    raw = "\n".join(map(json.dumps, (init, message))).encode()
    assert refused_tools(_read("claude-code", raw)) == ("Bash", "Edit", "Write")


@pytest.mark.parametrize(
    ("tool", "kind", "refused"),
    [
        ("run_shell_command", "policy_violation", True),
        ("run_shell_command", "tool_not_registered", True),
        ("edit_the_file", "tool_not_registered", False),
        ("run_shell_command", "shell_execute_error", False),
    ],
)
def test_gemini_cli_refuses_what_it_has_and_not_what_a_model_invents(tool: str, kind: str, refused: bool) -> None:
    asked = {"type": "tool_use", "tool_name": tool, "tool_id": "1", "parameters": {}}
    answered = {"type": "tool_result", "tool_id": "1", "status": "error", "error": {"type": kind, "message": "no"}}
    document = _read("gemini-cli", "\n".join(map(json.dumps, (asked, answered))).encode())
    assert refused_tools(document) == ((tool,) if refused else ())
    assert document["steps"][1]["observation"]["results"][0]["content"] == "no"


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ("The user rejected permission to use this specific tool call.", True),
        ("The user has specified a rule which prevents you from using this specific tool call. Here are", True),
        ("File not found: x", False),
    ],
)
def test_opencode_refuses_by_its_rules(error: str, refused: bool) -> None:
    piece = {"tool": "bash", "callID": "1", "state": {"status": "error", "input": {}, "error": error}}
    events = [{"type": "step_start"}, {"type": "tool_use", "part": piece}]
    document = _read("opencode", "\n".join(map(json.dumps, events)).encode())
    assert refused_tools(document) == (("bash",) if refused else ())


def test_codex_whose_own_sandbox_lets_no_command_run_is_refused() -> None:
    blocked = {"exit_code": 1, "status": "failed", "aggregated_output": "bwrap: No permissions to create a namespace"}
    item = {"id": "item_1", "type": "command_execution", "command": "cat clock.py", **blocked}
    event = json.dumps({"type": "item.completed", "item": item}).encode()
    assert refused_tools(_read("codex", event)) == ("command_execution",)
    assert refused_tools(_read("codex", _golden("codex") + event)) == ()


def test_reasoning_of_codex_belongs_to_the_words_after_it() -> None:
    items = [("reasoning", "because"), ("agent_message", "so"), ("agent_message", "then")]
    events = [{"type": "item.completed", "item": {"id": kind, "type": kind, "text": text}} for kind, text in items]
    steps = _read("codex", b"\n".join(json.dumps(event).encode() for event in events))["steps"][1:]
    assert [(step.get("reasoning_content"), step["message"]) for step in steps] == [("because", "so"), (None, "then")]


@pytest.mark.parametrize("program", WITH_STEPS)
def test_the_end_is_read_of_what_was_cut_off_before_it(program: str) -> None:
    raw = _golden(program)
    assert _told(_read(program, raw[len(raw) // 3 :]))[-1] == _told(_read(program, raw))[-1]


@pytest.mark.parametrize("program", WITH_STEPS)
def test_the_beginning_is_read_of_what_was_cut_off_after_it(program: str) -> None:
    raw = _golden(program)
    found, whole = _told(_read(program, raw[: len(raw) * 3 // 4])), _told(_read(program, raw))
    assert found[:2] == whole[:2]


@pytest.mark.parametrize("program", sorted(FILES))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_no_damage_raises(program: str, data: st.DataObject) -> None:
    raw = _golden(program)
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(raw))] * 2)))
    transcript(program, raw[:start] + data.draw(st.binary(max_size=30)) + raw[end:])


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


def _changed(value: Any, data: st.DataObject) -> Any:
    """`value` with one of its parts, however deep, replaced by anything."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 5)):
        name = data.draw(st.sampled_from(sorted(value)))
        return value | {name: _changed(value[name], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 5)):
        at = data.draw(st.integers(0, len(value) - 1))
        return [*value[:at], _changed(value[at], data), *value[at + 1 :]]
    return data.draw(_ANYTHING)


@pytest.mark.parametrize("program", WITH_STEPS)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_value_of_another_kind_than_expected_raises_nothing(program: str, data: st.DataObject) -> None:
    raw = _golden(program).decode()
    if program == "mini-swe-agent":
        start, end = raw.index("\n{\n") + 1, raw.rindex("}") + 1
        changed = json.dumps(_changed(json.loads(raw[start:end]), data), indent=2)
    else:
        lines = raw.splitlines()
        at = data.draw(st.integers(0, len(lines) - 1))
        lines[at] = json.dumps(_changed(json.loads(lines[at]), data))
        changed = "\n".join(lines)
    document = transcript(program, changed.encode())
    if document is not None:
        Trajectory.model_validate(json.loads(json.dumps(document, allow_nan=False)))
        json.dumps(document, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":'
        + b'{"a":' * 900
        + b"1"
        + b"}" * 900
        + b"}]}}",
        b'{"type":"assistant","message":{"content":[{"type":"text","text":"\\ud800 half"}]}}',
        b'{"type":"assistant","message":{"content":[{"type":"text","text":"\xff\xfe not UTF-8"}]}}',
        b'{"type":"result","total_cost_usd":NaN,"modelUsage":{"m":{"inputTokens":1e400,"outputTokens":-3}}}',
        b'{"type":"result","total_cost_usd":' + b"9" * 5000 + b"}",
        b"[" * 100_000,
    ],
    ids=["deep", "half_pair", "not_utf8", "not_a_number", "huge_number", "brackets"],
)
def test_hostile_lines_are_read_as_far_as_they_can_be(line: bytes) -> None:
    document = _read("claude-code", _golden("claude-code") + line)
    json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    assert document["steps"][1]["message"] == "I look."


def test_a_long_text_keeps_its_two_ends() -> None:
    event = {"type": "assistant", "message": {"content": [{"type": "text", "text": "start" + "x" * 200_000 + "end"}]}}
    message = _read("claude-code", json.dumps(event).encode())["steps"][1]["message"]
    assert len(message) < TEXT_CHARS + 100
    assert message.startswith("start")
    assert message.endswith("end")
    assert "characters left out" in message


@pytest.mark.parametrize(
    ("program", "event"),
    [
        ("codex", {"type": "item.completed", "item": {"type": "command_execution", "id": "ID"}}),
        ("claude-code", {"type": "assistant", "message": {"id": "m", "content": [{"type": "tool_use", "id": "ID"}]}}),
        ("claude-code", {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "ID"}]}}),
        ("gemini-cli", {"type": "message", "role": "assistant", "content": "ID", "delta": True}),
        ("opencode", {"type": "error", "error": {"name": "ID"}}),
    ],
)
def test_a_hundred_thousand_small_events_take_seconds(program: str, event: dict[str, Any]) -> None:
    line = json.dumps(event)
    raw = "\n".join(line.replace("ID", f"{number}.") for number in range(100_000)).encode()
    started = time.monotonic()
    _read(program, raw)
    assert time.monotonic() - started < 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "output_bytes", "most"),
    [
        pytest.param(200, 15_000_000, 30_000_000, id="many_lines"),
        pytest.param(40_000, 200_000_000, 100_000_000, id="long_lines"),
    ],
)
def test_a_huge_output_does_not_grow_the_memory(size: int, output_bytes: int, most: int) -> None:
    event = {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "x" * size}}
    line = json.dumps(event).encode() + b"\n"
    raw = line * (output_bytes // len(line))
    tracemalloc.start()
    document = _read("codex", raw)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < most
    assert len(document["steps"]) <= STEPS + 1
    assert "left out" in document["notes"]
