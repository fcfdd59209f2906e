"""The one form of a transcript: ATIF 1.7, the Agent Trajectory Interchange Format, as far as evalpipe writes it.

https://harborframework.com/docs/trajectory-format. Every text and the whole are bounded: a transcript is for reading,
and the program's own bytes are kept beside it.
"""

import json
import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = "ATIF-v1.7"
TEXT_CHARS = 50_000
"""The most of one text; what is longer keeps its two ends."""
STEPS, CALLS_OF_STEP = 5_000, 500
ALL_CHARS = 20_000_000
_OVERHEAD = 500
_NAMES, _DEPTH = 50, 20

Count = Annotated[int, Field(strict=True, ge=0)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Agent(_Part):
    """The program, by its own word where it says so."""

    name: str
    version: str
    model_name: str | None = None
    extra: dict[str, Any] | None = None


class ToolCall(_Part):
    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]


class ObservationResult(_Part):
    """What came of a call. `extra` has `is_error` when it failed, `refused` when the program did not allow it."""

    source_call_id: str
    content: str
    extra: dict[str, Any] | None = None


class Observation(_Part):
    results: list[ObservationResult]


class Metrics(_Part):
    """Tokens and cost of one step as the program reports them; the prompt includes what came from a cache."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    cached_tokens: Count | None = None
    cost_usd: float | None = None


class Step(_Part):
    step_id: Annotated[int, Field(ge=1)]
    source: Literal["system", "user", "agent"]
    message: str
    model_name: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[ToolCall] | None = None
    observation: Observation | None = None
    metrics: Metrics | None = None


class FinalMetrics(_Part):
    """Sums as the program reports them. `extra` has its own words, in its own definition."""

    total_prompt_tokens: Count | None = None
    total_completion_tokens: Count | None = None
    total_cached_tokens: Count | None = None
    total_cost_usd: float | None = None
    total_steps: Count
    extra: dict[str, Any] | None = None


class Trajectory(_Part):
    schema_version: Literal["ATIF-v1.7"]
    session_id: str | None = None
    agent: Agent
    steps: Annotated[list[Step], Field(min_length=1)]
    notes: str | None = None
    final_metrics: FinalMetrics
    extra: dict[str, Any] | None = None


class Writer:
    """Puts a trajectory together from what a reader finds, in order; takes any value and keeps what fits the form."""

    def __init__(self, program: str, version: str) -> None:
        self.version, self._program = version, program
        self.model: str | None = None
        self.session: str | None = None
        self.said: dict[str, Any] = {}
        """What the program says of itself: its tools, its permission mode and the like."""
        self.totals: dict[str, Any] = {}
        """Fields of FinalMetrics, as far as the program reports them."""
        self.reported: dict[str, Any] = {}
        """The same in the program's own words."""
        self.ending: str | None = None
        """How the program says that it ended."""
        self._steps: list[dict[str, Any]] = []
        self._calls: dict[str, dict[str, Any]] = {}
        self._refused: list[str] = []
        self._left, self._dropped = ALL_CHARS, 0

    def step(self, source: str, message: object = "", *, reasoning: object = None, model: str | None = None) -> None:
        """Begin a step; later words, calls and results belong to it."""
        if len(self._steps) >= STEPS or self._left <= 0:
            self._dropped += 1
            return
        self._steps.append({"source": source, "message": self._text(message)})
        if model:
            self._steps[-1]["model_name"] = self._text(model)
        self.add_reasoning(reasoning)

    def whole_text(self, raw: bytes) -> None:
        """All that a program printed as one step, where it has no other form."""
        if raw.strip():
            half = 2 * TEXT_CHARS  # More than is kept of a text in any encoding.
            self.step("agent", (raw if len(raw) <= 2 * half else raw[:half] + raw[-half:]).decode("utf-8", "replace"))

    def add_text(self, message: object, *, between: str = "\n\n") -> None:
        """Go on with the words of the step that is open."""
        self._go_on("message", message, between)

    def add_reasoning(self, message: object) -> None:
        """Go on with the reasoning of the step that is open."""
        self._go_on("reasoning_content", message, "\n\n")

    def call(self, call_id: object, name: object, arguments: object) -> None:
        """The open step asks for a tool."""
        if not self._is_open():
            return
        step = self._steps[-1]
        calls = step.setdefault("tool_calls", [])
        if len(calls) >= CALLS_OF_STEP:
            return
        # Some servers give every call the same id; within a step the form needs them apart.
        wanted = self._text(call_id) or f"call-{len(self._steps)}-{len(calls) + 1}"
        is_taken = any(call["tool_call_id"] == wanted for call in calls)
        shown = f"{wanted}-{len(calls) + 1}" if is_taken else wanted
        function = self._text(name) or "unknown"
        calls.append({"tool_call_id": shown, "function_name": function, "arguments": self._object(arguments)})
        self._calls[wanted] = {"step": step, "id": shown, "name": function}

    def result(self, call_id: object, content: object, *, is_error: bool = False, refused: bool = False) -> None:
        """What came of a call; one that nobody asked for is left out."""
        found = self._calls.get(self._text(call_id))
        if found is None:
            return
        if refused:
            self.refuse(found["name"])
        if self._left > 0:
            extra = {name: True for name, holds in (("is_error", is_error), ("refused", refused)) if holds}
            result = {"source_call_id": found["id"], "content": self._text(content), "extra": extra or None}
            found["step"].setdefault("observation", {"results": []})["results"].append(result)

    def name_of(self, call_id: object) -> str | None:
        """The tool that a call asked for."""
        found = self._calls.get(self._text(call_id))
        return None if found is None else found["name"]

    def refuse(self, tool: object) -> None:
        """The program did not allow its agent this tool."""
        name = self._text(tool)
        if name and name not in self._refused and len(self._refused) < _NAMES:
            self._refused.append(name)

    def metrics(self, **fields: float | None) -> None:
        """The Metrics of the open step, which are added to the totals."""
        known = {name: value for name, value in fields.items() if value is not None}
        for name, value in known.items():
            self.totals[f"total_{name}"] = (self.totals.get(f"total_{name}") or 0) + value
        if known and self._is_open():
            self._steps[-1]["metrics"] = known

    def finish(self, prompt: str) -> dict[str, Any] | None:
        """The trajectory, validated, as a document of JSON; None when there is no step.

        `prompt` comes first where no step is the user's.
        """
        if not self._steps:
            return None
        steps = self._steps
        if prompt and all(step["source"] != "user" for step in steps):
            steps = [{"source": "user", "message": self._text(prompt)}, *steps]
        extra: dict[str, Any] = {"refused_tools": self._refused} if self._refused else {}
        extra |= {"ending": self._text(self.ending)} if self.ending else {}
        notes = f"{self._dropped} steps are left out, and texts are cut" if self._dropped or self._left <= 0 else None
        document = {
            "schema_version": SCHEMA_VERSION,
            "session_id": self._text(self.session) if self.session else None,
            "agent": {
                "name": self._program,
                "version": self._text(self.version) or "unknown",
                "model_name": self._text(self.model) if self.model else None,
                "extra": self._object(self.said) if self.said else None,
            },
            "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
            "notes": notes,
            "final_metrics": {
                **self.totals,
                "total_steps": len(steps) + self._dropped,
                "extra": {"as_reported": self._object(self.reported)} if self.reported else None,
            },
            "extra": extra or None,
        }
        return Trajectory.model_validate(document).model_dump(mode="json", exclude_none=True)

    def _is_open(self) -> bool:
        return bool(self._steps) and not self._dropped and self._left > 0 and self._steps[-1]["source"] == "agent"

    def _go_on(self, field: str, message: object, between: str) -> None:
        before = self._steps[-1].get(field, "") if self._is_open() else ""
        if message and self._is_open() and len(before) < TEXT_CHARS:
            self._steps[-1][field] = f"{before}{between}{self._text(message)}" if before else self._text(message)

    def _text(self, value: object) -> str:
        if value is None:
            return ""
        text = value if isinstance(value, str) else _as_json(value)
        most = max(0, min(TEXT_CHARS, self._left))
        if len(text) > most:
            half = most // 2
            text = f"{text[:half]}\n[{len(text) - 2 * half} characters left out]\n{text[len(text) - half :]}"
        self._left -= len(text) + _OVERHEAD
        return _without_half_pairs(text)

    def _object(self, value: object) -> dict[str, Any]:
        """`value` where it is an object of a size to keep, else an object of its text."""
        if isinstance(value, dict) and _depth(value) <= _DEPTH:
            text = _as_json(value)
            if len(text) <= min(TEXT_CHARS, self._left):
                self._left -= len(text) + _OVERHEAD
                found: dict[str, Any] = json.loads(_without_half_pairs(text))
                return found
        return {"text": self._text(value)}


def _as_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "[nested too deeply]"


def _without_half_pairs(text: str) -> str:
    """`text` as UTF-8 can write it: JSON may hold one half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode()


def _depth(value: object) -> int:
    """How deep `value` is nested, counted no further than what is kept."""
    level, depth = [value], 0
    while level and depth <= _DEPTH:
        depth += 1
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return depth


def tokens(value: object) -> int | None:
    """A count of tokens, when it is one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


def dollars(value: object) -> float | None:
    """An amount of money, when it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        return None
    return float(value) if math.isfinite(value) else None


def total(*values: object) -> int | None:
    """The sum of counts of tokens, as far as they are some; None when none is."""
    counts = [count for value in values if (count := tokens(value)) is not None]
    return sum(counts) if counts else None
