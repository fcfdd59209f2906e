"""The task record and the task set: what is frozen, as JSON that people read and git keeps.

A frozen file is known by the hash of its bytes, so these models may grow: a field that came after the first sets
were frozen is declared by `_added`, with the default that is true of them. `SCHEMA_VERSION` goes up when a reader
that knows only the fields could get a record wrong.
"""

import hashlib
import json
from enum import StrEnum
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    model_serializer,
)

SCHEMA_VERSION = 1
Slug = str
SLUG_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}$"


class PromptMode(StrEnum):
    """Which text an agent gets: the issue as written, or a terse restatement."""

    ORIGINAL = "original"
    TERSE = "terse"


_ADDED: dict[str, Any] = {"added_after_the_first_sets": True}


def _added(default: Any) -> Any:
    """A field that older sets do not have. A record with its default has the bytes that it had before the field."""
    return Field(default=default, json_schema_extra=_ADDED)


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_serializer(mode="wrap")
    def _as_frozen(self, serialize: SerializerFunctionWrapHandler, info: SerializationInfo) -> dict[str, Any]:
        document: dict[str, Any] = serialize(self)
        if info.context is _FROZEN:
            for name, field in type(self).model_fields.items():
                if field.json_schema_extra is _ADDED and getattr(self, name) == field.default:
                    del document[name]
        return document


_FROZEN: dict[str, Any] = {}
"""The context in which a record is written to a file."""


class PromptFinding(_Record):
    """Something of the reference change that a text names; `kind` is one of the leak linter's."""

    mode: PromptMode
    kind: str
    named: str


class Problem(_Record):
    """The problem texts. `source` is where `original` came from: issue, pull_request, commit_message or task_file.

    `criteria` are values that the tests ask for and that the author adds to the prompt; `undecided_criteria` are those
    that neither a text nor the code before the change tells, and of which the author said nothing. `lint` is what the
    texts name of the reference change; None in sets that were frozen before they were read for it.
    """

    source: str
    original: str
    terse: str | None = None
    criteria: tuple[str, ...] = _added(())
    undecided_criteria: tuple[str, ...] = _added(())
    lint: tuple[PromptFinding, ...] | None = _added(None)

    def texts(self) -> dict[PromptMode, str]:
        """The text of each mode that there is."""
        both = {PromptMode.ORIGINAL: self.original, PromptMode.TERSE: self.terse}
        return {mode: text for mode, text in both.items() if text is not None}


class PathGlobs(_Record):
    """The team's own rules for paths, on top of the defaults; see data/repos/*.yaml."""

    tests: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()


class CanarySpec(_Record):
    """The test that must fail of a runner that knows nothing of its tool; see data/repos/*.yaml."""

    file: str
    text: str
    test_id: str


class RunnerSpec(_Record):
    """How the suite is run; see the runner in data/repos/*.yaml."""

    name: str
    python: str
    arguments: tuple[str, ...] = ()
    prepare: tuple[str, ...] = _added(())
    command: str | None = _added(None)
    report_format: str | None = _added(None)
    reports: tuple[str, ...] = _added(())
    canary: CanarySpec | None = _added(None)


class EnvironmentSpec(_Record):
    """The image in which the task was validated, and the limits of a test run in it."""

    build_key: str
    image_digest: str
    sandbox: str
    memory_bytes: int
    cpus: float
    pids: int
    test_timeout_s: float


class Task(_Record):
    """One change as a task. Paths are percent-encoded: git does not promise that they are text.

    `hidden_tests`: files that the parent has and an agent does not get, because a fail-to-pass test is in them in some
    form; `hidden_tests_before`: the blobs of the history before it that have such a test too. `interface_named`: the
    tests of `fail_to_pass` do not even compile or import before the change, and the problem text has every name that
    they miss. `suite_files`: the test files that validation ran and grading runs; None for the whole suite. `style`:
    the command that says whether style and lint are in order, for a column beside the verdict.
    """

    schema_version: Literal[1] = 1
    task_id: Slug = Field(pattern=SLUG_PATTERN)
    repository: str
    number: int | None
    title: str
    commit: str
    parent: str
    author_date: str
    merge_date: str
    shape: str
    category: str
    category_rule: str
    coding_agent: bool
    problem: Problem
    fail_to_pass: tuple[str, ...] = Field(min_length=1)
    pass_to_pass: tuple[str, ...]
    quarantined: tuple[str, ...]
    test_files: tuple[str, ...]
    path_globs: PathGlobs
    runner: RunnerSpec
    environment: EnvironmentSpec
    provisional: bool
    validated_on: tuple[str, ...]
    gold_patch_sha256: str
    test_patch_sha256: str
    interface_named: bool = _added(False)
    hidden_tests: tuple[str, ...] = _added(())
    hidden_tests_before: tuple[str, ...] = _added(())
    suite_files: tuple[str, ...] | None = _added(None)
    style: str | None = _added(None)


class TaskSetEntry(_Record):
    """One task of a set, bound to the bytes of its file by their SHA-256 (hex).

    What is kept for a task (attempts, verdicts, calibration) is kept for this digest: a later evalpipe may write the
    same record otherwise. The patches are in it by their own digests.
    """

    task_id: Slug = Field(pattern=SLUG_PATTERN)
    sha256: str


class StratumShare(_Record):
    """How many candidates of a stratum there were, and how many of them the sample has."""

    category: str
    quarter: str
    candidates: int
    sampled: int


class SampleRecord(_Record):
    """How a set was sampled: its size, the seed, and what that gave in each stratum; see `sampling`."""

    size: int
    seed: int
    strata: tuple[StratumShare, ...]


class TaskSet(_Record):
    """A frozen set. `revision` is the hash of everything in it, so the same content has the same revision.

    `selection_rule` says which of the valid candidates are in it; `sample` says the same of a sample, for programs.
    """

    schema_version: Literal[1] = 1
    name: str
    revision: str
    selection_rule: str
    provisional: bool
    tasks: tuple[TaskSetEntry, ...]
    sample: SampleRecord | None = _added(None)


def revision_of(
    name: str, selection_rule: str, entries: tuple[TaskSetEntry, ...], sample: SampleRecord | None = None
) -> str:
    """Revision of a set: SHA-256 (hex) over its name, its rule and the digests of its tasks, in order."""
    content: list[Any] = [name, selection_rule, [[entry.task_id, entry.sha256] for entry in entries]]
    if sample is not None:
        content.append(sample.model_dump(mode="json"))
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def canonical_json(record: BaseModel) -> bytes:
    """The one JSON form of a record: sorted keys, two spaces, ASCII, a newline at the end."""
    document: dict[str, Any] = record.model_dump(mode="json", context=_FROZEN)
    return json.dumps(document, indent=2, sort_keys=True).encode("ascii") + b"\n"
