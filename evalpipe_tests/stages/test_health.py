"""Every check of a set and of results: that it holds where all is well, and fails where it must."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from evalpipe.agents import HistoryKind
from evalpipe.config import SweepConfig
from evalpipe.history import InstanceFault, InstanceFinding
from evalpipe.reports.samples import collect_samples
from evalpipe.stages.health import (
    MOST_DAYS,
    Health,
    enough_tasks,
    few_invalid_attempts,
    files_as_frozen,
    instances_proven,
    manifests_agree,
    sandboxes_probed,
    tasks_tell_agents_apart,
    validation_is_recent,
)
from evalpipe.stages.sweeps import load_sweep_task_set
from evalpipe_tests.reports.sweeps import SweepBuilder, graded_row, graded_table, manifest, task
from evalpipe_tests.stages.workspaces import DAY_ONE, TestBench

slow = pytest.mark.slow


@slow
def test_a_changed_file_of_a_set_fails(frozen: TestBench) -> None:
    assert files_as_frozen(frozen, "q").passed
    patch = sorted((frozen.workspace.task_sets_dir / "q" / "patches").iterdir())[0]
    patch.write_bytes(b"changed")
    found = files_as_frozen(frozen, "q")
    assert (found.passed, found.severe, found.numbers) == (False, True, {"problems": 1})
    assert str(patch) in found.text


@slow
def test_an_instance_that_holds_the_answer_fails(frozen: TestBench, monkeypatch: pytest.MonkeyPatch) -> None:
    task_set = load_sweep_task_set(frozen, frozen.sweep)
    kinds = list(HistoryKind)
    assert instances_proven(frozen, task_set, kinds).passed
    finding = InstanceFinding(InstanceFault.object_of_the_change, "blob 1234 is the answer")
    monkeypatch.setattr("evalpipe.agents.instance.prove_repository", lambda *_: [finding])
    frozen.instances = type(frozen.instances)()
    found = instances_proven(frozen, task_set, [HistoryKind.NONE])
    assert (found.passed, found.severe, found.numbers["unproven"]) == (False, True, len(task_set.tasks))
    for task_id in task_set.tasks:
        assert f"{task_id}: the repository for an agent" in found.text
    assert "blob 1234 is the answer" in found.text


@slow
def test_instances_without_a_mirror_are_not_called_proven(frozen: TestBench) -> None:
    task_set = load_sweep_task_set(frozen, frozen.sweep)
    frozen.mirror_path("clock").rename(frozen.workspace.root / "elsewhere")
    found = instances_proven(frozen, task_set, [HistoryKind.ANCESTORS])
    assert (found.passed, found.severe) == (False, False)
    assert "evalpipe mine clock" in found.text


@slow
def test_an_old_validation_fails(frozen: TestBench) -> None:
    task_set = load_sweep_task_set(frozen, frozen.sweep)
    # The second pass was a day after the first.
    frozen.time.now = DAY_ONE + dt.timedelta(days=MOST_DAYS + 1)
    assert validation_is_recent(frozen, task_set).passed
    frozen.days_later(1)
    found = validation_is_recent(frozen, task_set)
    assert (found.passed, found.severe) == (False, False)
    assert found.numbers == {"oldest_days": MOST_DAYS + 1, "old_tasks": len(task_set.tasks)}
    assert "freeze a new set" in found.text


class _Set:
    def __init__(self, tasks: int) -> None:
        self.tasks = range(tasks)


@pytest.mark.parametrize(
    ("tasks", "samples", "wanted", "passed", "said"),
    [
        (200, 4, 0.2, True, "can show 0."),
        (200, 4, None, True, "can show 0."),
        (45, 4, 0.05, False, "turns on 0.05: that takes"),
        (5, 4, 0.3, False, "can show no difference"),
        (5, 4, None, False, "cannot show any difference"),
    ],
)
def test_too_few_tasks_for_the_declared_decision_fail(
    tasks: int, samples: int, wanted: float | None, passed: bool, said: str
) -> None:
    fields = {"name": "s", "task_set": "t", "agents": ("a", "b"), "samples": samples, "decision": "d"}
    sweep = SweepConfig.model_validate({**fields, "comparisons": [("a", "b")], "smallest_difference": wanted})
    found = enough_tasks(sweep, _Set(tasks))  # type: ignore[arg-type]
    assert (found.passed, found.severe) == (passed, False)
    assert said in found.text
    assert ("tasks_needed" in found.numbers) == (not passed and wanted is not None)


def manifests(**changes: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """Of two agents; `changes` are of the second one's environment."""
    first, second = manifest("one", images={"sha256:1": 5}), manifest("two", images={"sha256:1": 5}, **changes)
    return {("one", "original"): first, ("two", "original"): second}


def check_manifests(found: dict[tuple[str, str], dict[str, Any]]) -> Health:
    results = SweepBuilder({"one": [4], "two": [4]}, changes={"manifests": found}).build()
    return manifests_agree(results)


def test_agents_under_other_conditions_fail() -> None:
    assert check_manifests(manifests()).passed
    found = check_manifests(manifests(memory_limit=1))
    assert (found.passed, found.severe, found.numbers) == (False, True, {"differences": 1})
    assert "environment.memory_limit" in found.text
    other_set = manifests()
    other_set["two", "original"]["task_set"]["revision"] = "another"
    assert check_manifests(other_set).severe


def test_another_engine_or_limit_of_the_agent_is_a_warning() -> None:
    limits = manifests()
    limits["two", "original"]["agent"]["max_turns"] = 80
    for changed in (manifests(engine_version="28"), limits):
        found = check_manifests(changed)
        assert (found.passed, found.severe) == (False, False)


def test_other_agents_and_their_programs_are_no_difference() -> None:
    found = manifests()
    found["two", "original"] |= {"program": {"sha256": "0"}, "agent_images": {}, "run_id": "x", "probe": {}}
    found["two", "original"]["agent"]["model"] = "another"
    assert check_manifests(found).passed


def test_agents_of_which_nothing_runs_are_not_watched_and_the_others_alike() -> None:
    """The reference beside real agents; of these one may not have had another limit than the other."""
    conditions: list[dict[str, Any]] = [{}, {"silence_s": 600}, {"silence_s": 600}]
    names = ("one", "two", "three")

    def check() -> Health:
        found = {
            (name, "original"): manifest(name, images={"sha256:1": 5}, **changes)
            for name, changes in zip(names, conditions, strict=True)
        }
        return manifests_agree(SweepBuilder({name: [4] for name in names}, changes={"manifests": found}).build())

    assert check().passed
    conditions[2]["silence_s"] = 60
    found = check()
    assert (found.passed, found.severe) == (False, True)
    assert found.text == "original: environment.silence_s: 600 (two), 60 (three)"


def test_a_sandbox_that_was_not_probed_fails() -> None:
    probed = manifests()
    for one in probed.values():
        one["probe"] = {"sha256:1": {}}
    results = SweepBuilder({"one": [4], "two": [4]}, changes={"manifests": probed}).build()
    assert sandboxes_probed(results).passed
    del probed["two", "original"]["probe"]
    found = sandboxes_probed(results)
    assert (found.passed, found.severe, found.numbers) == (False, True, {"unproven": 1})
    assert found.text == "no probe of two (original): sha256:1"


def test_too_many_invalid_attempts_fail() -> None:
    def check(invalid: int) -> Health:
        passes = {"one": [20], "two": [20]}
        lost = {"counts": False, "outcome": "provider_error", "attempt": 2}
        builder = SweepBuilder(passes, samples=20)
        results = builder.build()
        rows = [row for row in results.graded.to_pylist() if row["agent"] != "two"]
        rows += [
            graded_row("two", task(0).task_id, f"original-{n}", resolved=n > invalid, **(lost if n <= invalid else {}))
            for n in range(1, 21)
        ]
        results = SweepBuilder(passes, samples=20, changes={"graded": graded_table(rows)}).build()
        return few_invalid_attempts(results, collect_samples(results))

    assert check(1).passed
    found = check(2)
    assert (found.passed, found.severe, found.numbers) == (False, False, {"most_invalid": 0.1})
    assert "two (original): 10% of its attempts are invalid" in found.text


def test_a_saturated_set_fails() -> None:
    def check(passes: list[int]) -> Health:
        results = SweepBuilder({"one": passes, "two": passes}, samples=8).build()
        return tasks_tell_agents_apart(results, collect_samples(results))

    assert check([8, 0, 3, 4]).passed
    found = check([8, 8, 0, 4])
    assert (found.passed, found.severe) == (False, False)
    assert found.numbers == {"saturated": 2, "dead": 1, "informative": 1, "undecided": 0}
    assert "rank nobody" in found.text
