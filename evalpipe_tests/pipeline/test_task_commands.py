"""`evalpipe freeze` with a sample, `evalpipe tasks add` and `evalpipe tasks check`, as their user sees them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest

from evalpipe.pipeline.driver import set_dagster_home
from evalpipe.pipeline.partitions import CANDIDATES
from evalpipe.pipeline.task_set_assets import task_set_key
from evalpipe.stages.bench import Workbench
from evalpipe.tasks import load_task_set
from evalpipe_tests.history.builder import File
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace
from evalpipe_tests.stages.added import TaskFolder

Copied = Callable[[Walk], TinyWorkspace]

TESTS: dict[bytes, File] = {
    b"tests/test_refund.py": b"from shop import price\n\n\ndef test_refund():\n    assert price.tax(-10) == 0\n"
}
PRODUCT: dict[bytes, File] = {
    b"shop/price.py": b"def price(amount):\n    return round(amount, 2)\n\n\ndef tax(amount):\n"
    b"    return max(0, amount * 0.2)\n\n\ndef discount(amount, percent):\n    return amount - amount * percent / 100\n"
}


def _written(tiny: TinyWorkspace, tmp_path: Path, **fields: str) -> Path:
    folder = TaskFolder(tiny.root / "source.git", tmp_path / "elsewhere" / "refund")
    folder.fields = {"repository": "shop", "id": "refund", "title": "No tax on refunds", **fields}
    return folder.write(TESTS, PRODUCT)


def _partitions(tiny: TinyWorkspace, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    for name in ("DAGSTER_HOME", "EVALPIPE_STATE_DIR", "EVALPIPE_WORKSPACE", "MPLCONFIGDIR"):
        monkeypatch.setenv(name, "")
    set_dagster_home(tiny.workspace)
    with dg.DagsterInstance.get() as instance:
        return list(instance.get_dynamic_partitions(str(CANDIDATES.name)))


@pytest.mark.slow
def test_freeze_tells_rule_and_what_was_left_out(copied: Copied, frozen: Walk) -> None:
    tiny = copied(frozen)
    assert "left out: 1 no_signal" in frozen.answers["freeze"].out
    assert "rule: all" in frozen.answers["freeze"].out
    done = tiny.succeed("freeze", "one", "--provisional", "--sample", "1", "--seed", "7")
    assert "task set one: 1 tasks" in done.out
    assert "rule: sample of 1, seed 7: stratified by category and quarter" in done.out
    assert "left out: 1 no_signal, 1 not_sampled" in done.out
    record = load_task_set(tiny.workspace.task_sets_dir / "one").record
    assert record.sample is not None
    assert sum(one.candidates for one in record.sample.strata) == 2
    _says_the_same_in_dagster(tiny)
    again = tiny.succeed("freeze", "one", "--provisional", "--sample", "1", "--seed", "7")
    assert again.out == done.out
    too_many = tiny.call("freeze", "more", "--provisional", "--sample", "3", "--seed", "7")
    assert too_many.code == 1
    assert "only 2 tasks could be frozen" in too_many.err


def _says_the_same_in_dagster(tiny: TinyWorkspace) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DAGSTER_HOME", "EVALPIPE_STATE_DIR", "EVALPIPE_WORKSPACE", "MPLCONFIGDIR"):
            patch.setenv(name, "")
        set_dagster_home(tiny.workspace)
        with dg.DagsterInstance.get() as instance:
            event = instance.get_latest_materialization_event(task_set_key("one"))
    assert event is not None
    assert event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert metadata["left_out"].value == {"counts": {"no_signal": 1, "not_sampled": 1}, "candidates": []}
    assert str(metadata["selection_rule"].value).startswith("sample of 1, seed 7")


@pytest.mark.parametrize("options", [("--sample", "1"), ("--seed", "1"), ("--sample", "0", "--seed", "1")])
@pytest.mark.slow
def test_half_of_a_sample_is_wrong_use(frozen: Walk, options: tuple[str, ...]) -> None:
    done = frozen.tiny.call("freeze", "none", *options)
    assert done.code == 2
    assert "--sample" in done.err


@pytest.mark.slow
def test_check_of_a_set_in_order_ends_with_0(frozen: Walk) -> None:
    done = frozen.tiny.succeed("tasks", "check", "tiny")
    assert done.out.startswith("task set tiny: 2 tasks, revision ")
    assert done.out.endswith(": in order\n")
    document = frozen.tiny.succeed("tasks", "check", "tiny", "--json").json()
    assert (document["name"], document["tasks"], document["problems"], document["notes"]) == ("tiny", 2, [], [])


@pytest.mark.slow
def test_check_lists_every_problem_and_ends_with_1(copied: Copied, frozen: Walk) -> None:
    tiny = copied(frozen)
    folder = tiny.workspace.task_sets_dir / "tiny"
    first, second = load_task_set(folder).tasks
    (folder / "patches" / f"{first}.gold.patch").write_bytes(b"other")
    (folder / "tasks" / f"{second}.json").unlink()
    done = tiny.call("tasks", "check", "tiny")
    assert done.code == 1
    assert [line.partition(":")[0] for line in done.out.splitlines()] == [
        "changed_file",
        "missing_file",
        "task set tiny",
    ]
    assert done.out.endswith("2 problems\n")
    answer = tiny.call("tasks", "check", "tiny", "--json")
    assert answer.code == 1
    assert [one["task_id"] for one in answer.json()["problems"]] == [first, second]
    unknown = tiny.call("tasks", "check", "tinny")
    assert unknown.code == 1
    assert "there are: tiny" in unknown.err


@pytest.mark.slow
def test_comparison_of_two_sets(copied: Copied, frozen: Walk) -> None:
    tiny = copied(frozen)
    tiny.succeed("freeze", "one", "--provisional", "--sample", "1", "--seed", "7")
    both, one = (list(load_task_set(tiny.workspace.task_sets_dir / name).tasks) for name in ("tiny", "one"))
    (dropped,) = set(both) - set(one)
    done = tiny.succeed("tasks", "check", "one", "--against", "tiny")
    assert f"against tiny:\n  dropped {dropped}\n" in done.out
    comparison = tiny.succeed("tasks", "check", "one", "--against", "tiny", "--json").json()["comparison"]
    assert comparison == {"against": "tiny", "added": [], "dropped": [dropped], "changed": {}}
    assert "the same tasks" in tiny.succeed("tasks", "check", "one", "--against", "one").out


@pytest.mark.slow
def test_an_added_task_goes_all_the_way_to_a_verdict(
    copied: Copied, frozen: Walk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = copied(frozen)
    done = tiny.succeed("tasks", "add", str(_written(tiny, tmp_path)))
    candidate = done.out.removeprefix("candidate ").partition(",")[0]
    assert candidate.startswith("shop-refund-")
    assert "data/tasks/shop/refund/" in done.out
    assert candidate in _partitions(tiny, monkeypatch)
    assert tiny.succeed("mine", "--json").json()["funnel"]["added"] == 1
    assert tiny.succeed("validate", "--same-day", "--json").json()["classes"]["valid"] == 3
    assert "task set own: 3 tasks" in tiny.succeed("freeze", "own", "--provisional").out
    assert tiny.succeed("tasks", "check", "own").out.endswith("in order\n")
    tiny.write("data/sweeps/own.yaml", "task_set: own\nagents: [reference]\nsamples: 1\ndecision: None.\n")
    tiny.succeed("run", "own")
    tiny.succeed("grade", "own")
    place = ("graded_results", "own", "reference")
    graded = Workbench(tiny.workspace).lake.read(*place).select(["task_id", "verdict"]).to_pylist()
    assert {row["task_id"]: row["verdict"] for row in graded}[candidate] == "resolved"


def test_a_wrong_task_file_is_told_and_nothing_is_kept(copied: Copied, mined: Walk, tmp_path: Path) -> None:
    tiny = copied(mined)
    done = tiny.call("tasks", "add", str(_written(tiny, tmp_path, date="soon", category="big")))
    assert done.code == 2
    assert "category: 'big' is not a known category" in done.err
    assert "date: 'soon' is not a day" in done.err
    done = tiny.call("tasks", "add", str(_written(tiny, tmp_path, base="d" * 40)))
    assert done.code == 1
    assert "is not in the mirror of shop" in done.err
    assert not (tiny.root / "data/tasks").exists()
    assert json.loads(tiny.succeed("mine", "--json").out)["funnel"].get("added") is None


@pytest.mark.slow
def test_prompts_are_drafted_before_a_freeze_and_told_at_it(copied: Copied, frozen: Walk) -> None:
    tiny = copied(frozen)
    drafted = tiny.succeed("prompts", "draft", "next")
    assert "2 tasks, " in drafted.out
    folder = tiny.workspace.task_sets_dir / "next"
    told = tiny.succeed("freeze", "next", "--provisional")
    tasks = load_task_set(folder).tasks
    assert {path.stem for path in folder.glob("terse/*.md")} == {
        task_id for task_id, task in tasks.items() if task.problem.terse
    }
    undecided = {task_id for task_id, task in tasks.items() if task.problem.undecided_criteria}
    assert undecided == {path.stem for path in folder.glob("criteria/*.yaml")}
    assert all(f"  {task_id}: " in told.out for task_id in undecided)
    refused = tiny.call("prompts", "draft", "next")
    assert refused.code == 1
    assert "is frozen, and its prompts with it" in refused.err
