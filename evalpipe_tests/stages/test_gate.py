"""The gate: which tasks, by which results, and when a drop is one."""

from __future__ import annotations

from typing import Any

import pytest

from evalpipe.agents import PatchReplay
from evalpipe.stages import gate
from evalpipe.stages.gate import (
    GateImpossible,
    GateTasks,
    GateVerdict,
    gate_document,
    gate_result,
    gate_sweep,
    gate_tasks,
    gate_text,
)
from evalpipe.stages.gradings import grade_sample
from evalpipe.stages.sweeps import sample_keys
from evalpipe.stats.counts import TaskCount
from evalpipe.tasks import PromptMode
from evalpipe_tests.stages.sweeping import judge_without_a_box, part_of, run
from evalpipe_tests.stages.workspaces import TestBench

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def graded_without_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalpipe.stages.grading_rows.grade_patch", judge_without_a_box)


def graded(bench: TestBench, agent: str = "reference") -> TestBench:
    """The reference solves both tasks on both samples, the empty agent none."""
    part = part_of(bench, agent)
    patches = PatchReplay(lambda one: part.task_set.gold_patch(one.task.task_id) if agent == "reference" else b"")
    for key in sample_keys(bench.sweep, part.task_set):
        run(bench, part, patches, key)
        grade_sample(bench, part, key, {})
    return bench


@pytest.fixture
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "least_discordant_tasks", lambda _: 1)


@pytest.mark.usefixtures("few_are_enough")
def test_the_tasks_are_those_solved_on_every_sample_and_the_same_each_time(frozen: TestBench) -> None:
    graded(frozen)
    chosen = gate_tasks(frozen, frozen.sweep, "reference", 20)
    assert list(chosen.before.values()) == [TaskCount(2, 2)] * 2
    assert chosen.always_solved == 2
    (one,) = gate_tasks(frozen, frozen.sweep, "reference", 1).before
    assert [list(gate_tasks(frozen, frozen.sweep, "reference", 1).before) for _ in range(3)] == [[one]] * 3
    # Results under another state of the agent's file are newer.
    frozen.rewrite("data/agents/reference.yaml", "adapter: reference\n", "adapter: reference\nscaffold_version: '2'\n")
    frozen.days_later(1)
    graded(frozen)
    newer = gate_tasks(frozen, frozen.sweep, "reference", 20)
    assert (chosen.manifest["agent"]["scaffold_version"], newer.manifest["agent"]["scaffold_version"]) == ("1", "2")


def test_without_results_and_with_too_few_tasks_it_says_what_is_missing(frozen: TestBench) -> None:
    with pytest.raises(GateImpossible, match="`evalpipe run spring --agent reference`"):
        gate_tasks(frozen, frozen.sweep, "reference", 20)
    graded(frozen)
    with pytest.raises(GateImpossible, match=r"solved 2 tasks of spring on every sample.*fewer than 6"):
        gate_tasks(frozen, frozen.sweep, "reference", 20)


@pytest.mark.usefixtures("few_are_enough")
def test_an_agent_that_solved_nothing_has_no_gate(frozen: TestBench) -> None:
    graded(frozen, "empty")
    with pytest.raises(GateImpossible, match="solved 0 tasks"):
        gate_tasks(frozen, frozen.sweep, "empty", 20)


def test_a_gate_has_rows_of_its_own(frozen: TestBench) -> None:
    own, labelled = (gate_sweep(frozen.sweep, "reference", 2, label) for label in (None, "pr-12"))
    assert (own.name, labelled.name) == ("spring.gate", "spring.gate-pr-12")
    assert (own.agents, own.samples, own.modes, own.comparisons) == (("reference",), 2, ("original",), ())
    assert own.task_set == frozen.sweep.task_set


class _Part:
    def __init__(self, manifest: dict[str, Any]) -> None:
        self.manifests = {PromptMode.ORIGINAL: manifest}


def outcome(
    bench: TestBench, monkeypatch: pytest.MonkeyPatch, after: dict[str, TaskCount], samples: int = 3
) -> tuple[Any, str]:
    """The result of a gate over ten tasks that passed each of `samples` before, and its text."""
    manifest = {"task_set": {}, "agent": {"model_version": "1"}}
    now: dict[str, Any] = {"task_set": {}, "agent": {"model_version": "2"}}
    monkeypatch.setattr(gate, "find_agent_sweep", lambda *_: _Part(now))
    monkeypatch.setattr(gate, "_counts", lambda *_: after)
    chosen = GateTasks({f"t{n}": TaskCount(samples, samples) for n in range(10)}, 12, manifest)
    own = gate_sweep(bench.sweep, "reference", 2, None)
    result = gate_result(bench, own, bench.agent("reference"), chosen)
    assert gate_document(own, chosen, result)["verdict"] == result.verdict.value
    return result, gate_text(own, chosen, result)


def counts(*passes: int) -> dict[str, TaskCount]:
    return {f"t{n}": TaskCount(one, 2) for n, one in enumerate(passes)}


def test_a_drop_beyond_chance_is_one(frozen: TestBench, monkeypatch: pytest.MonkeyPatch) -> None:
    result, text = outcome(frozen, monkeypatch, counts(0, 0, 0, 0, 0, 0, 1, 2, 2, 2))
    assert result.verdict is GateVerdict.DROPPED
    assert result.paired.difference == pytest.approx(-0.65)
    assert result.paired.p_value == pytest.approx(2 / 2**7)
    assert result.fall_back_p < 0.001
    assert "spring.gate, reference: dropped" in text
    assert "t0 0/2" in text
    assert 'changed: agent.model_version: "1" (before), "2" (now)' in text


@pytest.mark.parametrize(
    "passes",
    [(2,) * 10, (0, 0, 0, 0, 0, 2, 2, 2, 2, 2)],
    ids=["nothing lost", "five tasks lost, of which the test needs six"],
)
def test_what_chance_explains_is_no_drop(
    passes: tuple[int, ...], frozen: TestBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, text = outcome(frozen, monkeypatch, counts(*passes))
    assert result.verdict is GateVerdict.HELD
    assert "spring.gate, reference: held" in text


def test_the_luck_of_chosen_tasks_is_no_drop(frozen: TestBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the samples of six tasks: too much after three samples each that passed, and little after one."""
    assert outcome(frozen, monkeypatch, counts(1, 1, 1, 1, 1, 1, 2, 2, 2, 2))[0].verdict is GateVerdict.DROPPED
    result, _ = outcome(frozen, monkeypatch, counts(1, 1, 1, 1, 1, 1, 2, 2, 2, 2), samples=1)
    assert result.verdict is GateVerdict.HELD
    assert result.paired.p_value <= 0.05 < result.fall_back_p


def test_tasks_without_an_attempt_that_counts_are_named(frozen: TestBench, monkeypatch: pytest.MonkeyPatch) -> None:
    result, text = outcome(frozen, monkeypatch, counts(2, 2, 2))
    assert result.lost == tuple(f"t{n}" for n in range(3, 10))
    assert "without an attempt that counts: t3, t4" in text
    with pytest.raises(GateImpossible, match="no attempt of reference counts"):
        outcome(frozen, monkeypatch, {})
