"""The task record and the task set: what is frozen, as JSON that people read and git keeps."""

import hashlib
import json
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Slug = str
SLUG_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,119}$"


class PromptMode(StrEnum):
    """Which text an agent gets: the issue as written, or a terse restatement."""

    ORIGINAL = "original"
    TERSE = "terse"


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Problem(_Record):
    """The problem texts. `source` says where `original` came from (issue, pull_request or commit_message)."""

    source: str
    original: str
    terse: str | None = None


class PathGlobs(_Record):
    """The team's own rules for paths, on top of the defaults; see data/repos/*.yaml."""

    tests: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()


class RunnerSpec(_Record):
    """How the suite is run; see the runner in data/repos/*.yaml."""

    name: str
    python: str
    arguments: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()


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
    """One change of the history as a task. Paths are percent-encoded: git does not promise that they are text."""

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

    def digest(self) -> str:
        """SHA-256 (hex) of the record; the patches are in it by their own digests."""
        return hashlib.sha256(canonical_json(self)).hexdigest()


class TaskSetEntry(_Record):
    """One task of a set, bound to the content of its record."""

    task_id: Slug = Field(pattern=SLUG_PATTERN)
    sha256: str


class TaskSet(_Record):
    """A frozen set. `revision` is the hash of everything in it, so the same content has the same revision."""

    schema_version: Literal[1] = 1
    name: str
    revision: str
    selection_rule: str
    provisional: bool
    tasks: tuple[TaskSetEntry, ...]


def revision_of(name: str, selection_rule: str, entries: tuple[TaskSetEntry, ...]) -> str:
    """Revision of a set: SHA-256 (hex) over its name, its rule and the digests of its tasks, in order."""
    content = [name, selection_rule, [[entry.task_id, entry.sha256] for entry in entries]]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def canonical_json(record: BaseModel) -> bytes:
    """The one JSON form of a record: sorted keys, two spaces, ASCII, a newline at the end."""
    document: dict[str, Any] = record.model_dump(mode="json")
    return json.dumps(document, indent=2, sort_keys=True).encode("ascii") + b"\n"
