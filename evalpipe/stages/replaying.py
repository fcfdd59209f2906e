"""Makes an attempt again from what the gateway recorded, and grades it again: no provider is asked, nothing is kept."""

import re
from dataclasses import dataclass
from pathlib import Path

from evalpipe.agents import AttemptResult
from evalpipe.config import SweepConfig
from evalpipe.gateway import Gateway
from evalpipe.lake import Row
from evalpipe.stages.agent_programs import adapter_for
from evalpipe.stages.attempt_story import place_of
from evalpipe.stages.attempts import make_attempt, prepare_attempt
from evalpipe.stages.bench import Workbench
from evalpipe.stages.grading_rows import grade_patch
from evalpipe.stages.model_access import gateway_provider, recorded_calls
from evalpipe.stages.sweeps import AgentSweep, SampleKey, open_agent_sweep

_LABELS = {"purpose": "replay"}
# A key that an agent writes into a file is that of its own attempt, or was taken out of the kept patch; git names files
# by their content.
_OF_ONE_ATTEMPT = re.compile(rb"^index [0-9a-f]{40,64}\.\.[0-9a-f]{40,64}|\bsk-evalpipe-[0-9a-f]+", re.MULTILINE)


class NotReplayable(Exception):
    """An attempt cannot be looked at again as things are now; the text says why."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of it. `again` is None when no bodies were recorded and the kept patch was graded alone."""

    again: AttemptResult | None
    same_patch: bool
    verdict: str | None
    """None when there is no patch to grade."""


def replay_attempt(bench: Workbench, sweep: SweepConfig, row: Row) -> Replay:
    """Run the agent of an attempt on its recorded replies, and grade what comes of it in a fresh box.

    Raises NotReplayable when the agent, the task set or their settings are no longer those of the attempt, and what
    `run_sample` and `grade_sample` raise.
    """
    part = open_agent_sweep(bench, sweep, bench.workspace.load_agent(row["agent"]), "replay")
    key = SampleKey.parse(row["task_id"], row["sample"])
    if key.task_id not in part.task_set.tasks or part.configuration(key.mode) != row["configuration"]:
        raise NotReplayable(
            f"{row['attempt_id']} was made under another configuration than {sweep.name} has now: bring the agent's "
            f"file, the sweep and its task set back to what the manifest says"
        )
    kept = bench.lake.blobs.get(row["patch_sha256"]) if row["patch_sha256"] else b""
    folder = recorded_calls(bench, place_of(row), row["attempt"])
    again = _made_again(bench, part, key, folder) if any(folder.glob("*.reply.gz")) else None
    patch = kept if again is None else again.patch or b""
    verdict = None
    if patch:
        verdict = grade_patch(bench, part.task_set.tasks[key.task_id], patch, _LABELS)["verdict"]
    return Replay(again, is_same_work(patch, kept), verdict)


def is_same_work(patch: bytes, other: bytes) -> bool:
    """Whether two patches differ in nothing but the keys of their attempts."""
    return _OF_ONE_ATTEMPT.sub(b"", patch) == _OF_ONE_ATTEMPT.sub(b"", other)


def _made_again(bench: Workbench, part: AgentSweep, key: SampleKey, folder: Path) -> AttemptResult:
    provider = part.agent.provider
    assert provider is not None  # its bodies were recorded
    prepared = prepare_attempt(bench, part, key)
    with (
        bench.room.taken(part.limits()),
        Gateway([gateway_provider(bench.workspace.load_provider(provider))]) as gateway,
        gateway.open_attempt("replay", provider, replay=folder) as model,
    ):
        adapter = adapter_for(bench, part.agent, part.task_set)
        return make_attempt(bench, part, adapter, prepared, {**_LABELS, "task": key.task_id}, model)
