"""One attempt: the instance goes in, the agent runs, one patch comes out."""

import random
import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from evalpipe.agents.adapter import AGENT_FOLDER, PROMPT_FILE, Adapter, AgentCommand, Assignment, ModelAccess
from evalpipe.agents.instance import Instance
from evalpipe.agents.outcome import AttemptOutcome, classify
from evalpipe.agents.transcripts import refused_tools, transcript
from evalpipe.agents.watch import AttemptWatch
from evalpipe.gateway import Evidence, OpenAttempt
from evalpipe.gateway.forwarders import forwarder
from evalpipe.history import Repository, ScratchObjects, TreeNotWritten
from evalpipe.runners.preparation import LAYS_FILES, preparation_script
from evalpipe.sandbox import (
    Box,
    DiskFull,
    FileEntry,
    ImageMissing,
    Interrupted,
    Limits,
    Outcome,
    OutputTooLarge,
    Sandbox,
    SandboxError,
    TreeLimits,
    UnsafeOutput,
)
from evalpipe.tasks import PATCH_BYTES, CapturedPatch, TreeFile, capture_patch

INSTANCE_FOLDER = "repo"
# The list lies at the top: for a file below it, each folder on the way would be looked at first.
_SCRIPT, _LAID = f"{AGENT_FOLDER}/run.sh", ".evalpipe-laid"
_LISTING_BYTES = 64 * 1024**2
WORK_LIMITS = TreeLimits(total_bytes=2 * 1024**3, file_bytes=64 * 1024**2, entries=200_000)
"""What an agent may leave behind: above this its working tree is no answer, and is not read."""

RECORD_BYTES = 64 * 1024**2
"""Of a record that a program keeps of itself: above this there is none."""


class AttemptFlag(StrEnum):
    """What is remarkable about an attempt beside its outcome."""

    WORK_NOT_READABLE = "work_not_readable"
    PATCH_TOO_LARGE = "patch_too_large"
    TRANSCRIPT_CUT = "transcript_cut"
    """Only the end of what the agent wrote is kept."""
    TOOLS_REFUSED = "tools_refused"
    """The program did not allow its agent some of its tools."""
    STOPPED_AT_ITS_END = "stopped_at_its_end"
    """The program had told its last event, did not end, and was stopped."""


WORK_REFUSED = frozenset({AttemptFlag.WORK_NOT_READABLE, AttemptFlag.PATCH_TOO_LARGE})
"""What the agent left is no patch: a failure of the agent."""


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended. `patch` is None when none could be taken; `transcript` is the agent's raw output.

    `trajectory` is the same in the form of `transcripts.transcript`; None where there is nothing to tell.
    """

    outcome: AttemptOutcome
    detail: str
    patch: bytes | None
    files_changed: int
    exit_code: int | None
    seconds: float
    transcript: bytes
    trajectory: dict[str, Any] | None = None
    flags: tuple[AttemptFlag, ...] = ()
    evidence: Evidence | None = None


def run_attempt(
    sandbox: Sandbox,
    environment: str,
    adapter: Adapter,
    repository: Repository,
    assignment: Assignment,
    instance: Instance,
    limits: Limits,
    labels: dict[str, str],
    model: OpenAttempt | None = None,
    watch: AttemptWatch | None = None,
) -> AttemptResult:
    """Make one attempt on `instance` in a fresh box without network; faults of the engine become outcomes.

    `model` is where an agent with a model may call; it is closed before the agent's work is judged. `watch` may end the
    attempt before its limit. `transcript` keeps what the program wrote: its output, its errors, its own record.

    Raises ScriptError (and whatever else says that the agent is configured wrongly) before anything runs.
    """
    started = time.monotonic()
    with ScratchObjects(repository) as scratch:
        try:
            share = model.socket.parent if model else None
            with sandbox.open(environment, limits, labels, share=share) as box:
                start, ended = _run_agent(box, adapter, scratch, assignment, instance, model, watch)
                evidence = model.close() if model else None
                lays_files = sandbox.label(environment, LAYS_FILES) != "no"
                tree, leaves = instance.tree(scratch), start.leaves
                captured, trouble, flags = _capture(box, scratch, tree, leaves, lays_files=lays_files)
                record, is_whole = _record(box, start)
        except SandboxError as error:
            outcome = _infrastructure(error)
            evidence = model.close() if model else None
            spent = time.monotonic() - started
            return AttemptResult(outcome, str(error), None, 0, None, spent, b"", evidence=evidence)
    words = ended.stdout if record is None else record
    told = start.output
    trajectory = transcript(told.adapter, words, version=told.version, prompt=assignment.prompt) if told else None
    refused = refused_tools(trajectory)
    last_word = watch.last_word if watch is not None and ended.timed_out else None
    outcome, detail = classify(ended, evidence, captured.patch if captured else None, refused, last_word)
    if outcome is AttemptOutcome.TIMEOUT and watch is not None and watch.reason:
        detail = watch.reason
    if ended.stdout_truncated or ended.stderr_truncated or not is_whole:
        flags = (*flags, AttemptFlag.TRANSCRIPT_CUT)
    if refused:
        flags = (*flags, AttemptFlag.TOOLS_REFUSED)
    if last_word:
        flags = (*flags, AttemptFlag.STOPPED_AT_ITS_END)
    return AttemptResult(
        outcome,
        trouble or detail,
        captured.patch if captured else None,
        captured.files_changed if captured else 0,
        ended.exit_code,
        ended.duration_s,
        ended.stdout + ended.stderr + (record or b""),
        trajectory,
        flags=flags,
        evidence=evidence,
    )


def _run_agent(
    box: Box,
    adapter: Adapter,
    scratch: ScratchObjects,
    assignment: Assignment,
    instance: Instance,
    model: OpenAttempt | None,
    watch: AttemptWatch | None,
) -> tuple[AgentCommand, Outcome]:
    # Boxes without a network of their own share the host's ports, so that one port for all would be taken.
    access = ModelAccess(random.randint(20_000, 30_000), model.key) if model else None
    start = adapter.prepare(replace(assignment, model=access), scratch, box.root)
    prefix = INSTANCE_FOLDER.encode() + b"/"
    box.put(FileEntry(prefix + entry.path, entry.mode, entry.data) for entry in instance.entries(scratch))
    prompt = FileEntry(PROMPT_FILE.encode(), 0o100644, assignment.prompt.encode())
    script = preparation_script((), f"{box.root}/{_LAID}")
    box.put([prompt, FileEntry(_SCRIPT.encode(), 0o100644, script), *start.files])
    command = start.command if model is None else _forwarded(box, start, model, access)
    return start, box.run(
        ("/bin/sh", f"{box.root}/{_SCRIPT}", *command),
        env=start.env or {},
        cwd=f"{box.root}/{INSTANCE_FOLDER}",
        watch=watch,
    )


def _forwarded(box: Box, start: AgentCommand, model: OpenAttempt, access: ModelAccess | None) -> tuple[str, ...]:
    """The command below a forwarder, which is put into the box."""
    assert start.forwarder is not None, "an agent with a model names its forwarder"
    assert access is not None
    path = f"{AGENT_FOLDER}/{start.forwarder.script}"
    box.put([FileEntry(path.encode(), 0o100644, forwarder(start.forwarder.script))])
    socket = f"{box.share}/{model.socket.name}"
    return (start.forwarder.interpreter, f"{box.root}/{path}", socket, str(access.port), *start.command)


def _record(box: Box, start: AgentCommand) -> tuple[bytes | None, bool]:
    """The program's own record, and whether it could be read where there is one."""
    if start.output is None or start.output.file is None:
        return None, True
    try:
        return box.read_file(start.output.file, RECORD_BYTES), True
    except (OutputTooLarge, UnsafeOutput):
        return None, False


def _capture(
    box: Box, scratch: ScratchObjects, tree: str, leaves: tuple[bytes, ...], *, lays_files: bool
) -> tuple[CapturedPatch | None, str, tuple[AttemptFlag, ...]]:
    """The patch, or what keeps the working tree from being one: as text, and as flags of the attempt."""
    try:
        laid = _laid_by_the_image(box, scratch, tree) if lays_files else set()
        known = scratch.read_tree(tree).keys() if leaves else ()
        entries = box.read_tree(INSTANCE_FOLDER, WORK_LIMITS)
        files = (
            TreeFile(entry.path, entry.mode, entry.data)
            for entry in entries
            if entry.mode != 0o040000
            and entry.path not in laid
            and not (entry.path.startswith(leaves) and entry.path not in known)
        )
        captured = capture_patch(scratch, tree, files)
    except (OutputTooLarge, UnsafeOutput, TreeNotWritten) as error:
        return None, f"the working tree cannot be taken as a patch: {error}", (AttemptFlag.WORK_NOT_READABLE,)
    if len(captured.patch) > PATCH_BYTES:
        # It would be refused when it is graded, so there is nothing to keep it for.
        size = len(captured.patch)
        return None, f"the patch has {size} bytes, the limit is {PATCH_BYTES}", (AttemptFlag.PATCH_TOO_LARGE,)
    return captured, "", ()


def _laid_by_the_image(box: Box, scratch: ScratchObjects, tree: str) -> set[bytes]:
    """What lay in the working tree before the agent began and is not of the task's tree: it is nobody's work.

    The agent can change the list, and would hide work of its own only.
    """
    listing = box.read_file(_LAID, _LISTING_BYTES)
    return (
        {path.removeprefix(b"./") for path in listing.split(b"\0")} - scratch.read_tree(tree).keys()
        if listing
        else set()
    )


def _infrastructure(error: SandboxError) -> AttemptOutcome:
    if isinstance(error, ImageMissing):
        return AttemptOutcome.IMAGE_MISSING
    if isinstance(error, DiskFull):
        return AttemptOutcome.DISK_FULL
    if isinstance(error, Interrupted):
        return AttemptOutcome.INTERRUPTED
    return AttemptOutcome.ENGINE_ERROR
