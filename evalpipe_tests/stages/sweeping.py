"""What tests of attempts and of grades share: agents, the parts of a sweep, and sandboxes that fail."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalpipe.agents import Adapter
from evalpipe.grading import Grading, Judgement, Verdict
from evalpipe.sandbox import Box, Limits, SandboxError
from evalpipe.stages.attempts import run_sample
from evalpipe.stages.grading_rows import grading_row
from evalpipe.stages.sweeps import (
    AgentSweep,
    SampleKey,
    load_sweep_task_set,
    open_agent_sweep,
    record_manifests,
)
from evalpipe.tasks import PromptMode, Task
from evalpipe_tests.agents.adapters import ShellAgent
from evalpipe_tests.stages.workspaces import CountingSandbox, TestBench

MEND = ShellAgent("sed -i 's/return 11/return 12/' clock.py")
BREAK = ShellAgent("sed -i 's/return 11/return 12/; s/def hours/def other/' clock.py; echo x > conftest.py")


def part_of(bench: TestBench, agent: str = "reference") -> AgentSweep:
    """An agent's part of the sweep, ready to run."""
    part = open_agent_sweep(bench, bench.sweep, bench.agent(agent), "run-1")
    record_manifests(bench, part, {})
    return part


def first_key(bench: TestBench, number: int = 1) -> SampleKey:
    task_id = next(iter(load_sweep_task_set(bench, bench.sweep).tasks))
    return SampleKey(task_id, PromptMode.ORIGINAL, number)


def run(bench: TestBench, part: AgentSweep, adapter: Adapter, key: SampleKey) -> tuple[dict[str, Any], bool]:
    return run_sample(bench, part, adapter, key, "run-1", {"run": "run-1"})


def judge_without_a_box(bench: TestBench, task: Task, patch: bytes, labels: Mapping[str, str]) -> dict[str, Any]:
    """Stands for `grade_patch` where a test is not about grading: the reference change is resolved, nothing else is."""
    resolved = hashlib.sha256(patch).hexdigest() == task.gold_patch_sha256
    verdict = Verdict.RESOLVED if resolved else Verdict.FAIL_TO_PASS_FAILED
    return grading_row(task, Grading(Judgement(verdict, ""), (), 0.1), bench.clock())


def rows_of(bench: TestBench, part: AgentSweep, key: SampleKey) -> list[dict[str, Any]]:
    return bench.lake.rows("agent_runs", *part.place(key))


class FaultySandbox(CountingSandbox):
    """Raises what it is told to, once for each, before it opens a box."""

    faults: list[SandboxError]

    @contextmanager
    def open(
        self,
        environment: str,
        limits: Limits,
        labels: Mapping[str, str],
        *,
        network: bool = False,
        hostname: str | None = None,
        share: Path | None = None,
    ) -> Iterator[Box]:
        if self.faults:
            raise self.faults.pop(0)
        with super().open(environment, limits, labels, network=network, hostname=hostname, share=share) as box:
            yield box


def with_faults(bench: TestBench, *faults: SandboxError) -> None:
    sandbox = FaultySandbox(bench.instance, bench.workspace.state_dir)
    sandbox.faults = list(faults)
    bench.sandbox = sandbox
