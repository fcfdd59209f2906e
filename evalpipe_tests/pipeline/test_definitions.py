"""What Dagster loads from a workspace: the golden lists, and that nothing bad in one file hides the others."""

import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import pytest
from ruamel.yaml import YAML

from evalpipe.config import Workspace
from evalpipe.lake import SCHEMAS, write_atomically
from evalpipe.pipeline.assembly import build_definitions
from evalpipe.pipeline.partitions import partitions_of_a_run
from evalpipe.tasks import TaskWithPatches, freeze, load_task_set
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace

TOP = Path(__file__).parents[2]
AGENTS = ("broad", "empty", "reference", "steady")
Copied = Callable[[Walk], TinyWorkspace]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def repository_workspace(frozen: Walk, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """This repository's own workspace, with a frozen set `demo` that has the tasks of the tiny one."""
    root = tmp_path_factory.mktemp("repository") / "workspace"
    root.mkdir()
    for name in ("workspace.yaml", "dagster.yaml"):
        shutil.copy(TOP / name, root)
    for name in ("repos", "agents", "sweeps", "demo"):
        shutil.copytree(TOP / "data" / name, root / "data" / name)
    tiny = load_task_set(frozen.tiny.workspace.task_sets_dir / "tiny")
    tasks = [TaskWithPatches(task, tiny.gold_patch(name), tiny.test_patch(name)) for name, task in tiny.tasks.items()]
    freeze(root / "data/task_sets/demo", tasks, None, provisional=True, write=write_atomically)
    return Workspace(root)


def _names(definitions: dg.Definitions) -> set[str]:
    return {key.to_user_string() for key in definitions.resolve_asset_graph().get_all_asset_keys()}


HISTORY = {"candidate_commits", "task_images", "validation_runs", "validated_tasks"}


def test_the_assets_of_this_repository(repository_workspace: Workspace) -> None:
    graph = build_definitions(repository_workspace).resolve_asset_graph()
    stages = [f"demo/{agent}/{stage}" for agent in AGENTS for stage in ("agent_runs", "graded_results")]
    reports = [f"demo/{name}" for name in ("category_report", "agent_comparison", "evaluation_report")]
    groups = {
        **dict.fromkeys(HISTORY, "candidates"),
        **dict.fromkeys(("task_sets/demo", "task_sets/demo/calibration"), "frozen_sets"),
        **{name: f"sweep_demo__{name.split('/')[1]}" for name in stages},
        **dict.fromkeys(reports, "sweep_demo_report"),
    }
    # The UI lists groups by name: in the order of the pipeline.
    assert sorted(set(groups.values()))[:2] == ["candidates", "frozen_sets"]
    assert max(groups.values()) == "sweep_demo_report"
    nodes = {node.key.to_user_string(): node for node in graph.asset_nodes}
    assert {name: node.group_name for name, node in nodes.items()} == groups
    kinds = {name: set(node.kinds) for name, node in nodes.items()}
    assert kinds["candidate_commits"] == {"git", "parquet"}
    assert kinds["demo/steady/agent_runs"] == kinds["validation_runs"] == {"docker", "parquet"}
    assert kinds["task_sets/demo"] == {"json"}
    assert kinds["demo/evaluation_report"] == {"html"}
    for name, node in nodes.items():
        assert node.description, name
        assert node.kinds, name
        # The tasks of this set are of a repository that this workspace does not have.
        assert list(node.owners) == ([] if name.startswith("task_sets/") else ["team:demo"]), name
        if "parquet" in node.kinds:
            columns = node.metadata["dagster/column_schema"]
            assert isinstance(columns, dg.TableSchema), name
            assert [column.name for column in columns.columns] == SCHEMAS[name.rpartition("/")[2]].names
            assert [column.name for column in columns.columns if not column.description] == []


def test_the_lineage_goes_from_the_history_to_the_report(repository_workspace: Workspace) -> None:
    graph = build_definitions(repository_workspace).resolve_asset_graph()
    parents = {
        node.key.to_user_string(): {key.to_user_string() for key in node.parent_keys} for node in graph.asset_nodes
    }
    assert parents["task_images"] == {"candidate_commits"}
    assert parents["validation_runs"] == {"task_images"}
    assert parents["validated_tasks"] == {"validation_runs"}
    assert parents["task_sets/demo"] == {"validated_tasks"}
    assert parents["task_sets/demo/calibration"] == {"task_sets/demo"}
    assert parents["demo/broad/agent_runs"] == {"task_sets/demo", "task_sets/demo/calibration"}
    assert parents["demo/broad/graded_results"] == {"demo/broad/agent_runs"}
    assert parents["demo/category_report"] == {f"demo/{agent}/graded_results" for agent in AGENTS}
    assert parents["demo/evaluation_report"] == {"demo/category_report", "demo/agent_comparison"}


def test_the_partitions_are_the_frozen_tasks_by_sample(repository_workspace: Workspace) -> None:
    graph = build_definitions(repository_workspace).resolve_asset_graph()
    tasks = list(load_task_set(repository_workspace.task_sets_dir / "demo").tasks)
    partitions = {node.key.to_user_string(): node.partitions_def for node in graph.asset_nodes}
    assert _keys(partitions["candidate_commits"]) == ["demo"]
    assert _keys(partitions["task_sets/demo/calibration"]) == tasks
    samples = [f"original-{number}" for number in range(1, 5)]
    expected = {f"{sample}|{task}" for sample in samples for task in tasks}
    for agent in AGENTS:
        assert set(_keys(partitions[f"demo/{agent}/agent_runs"])) == expected
        assert set(_keys(partitions[f"demo/{agent}/graded_results"])) == expected
    assert partitions["demo/evaluation_report"] is None
    with dg.DagsterInstance.ephemeral() as instance:
        assert _keys(partitions["validation_runs"], instance) == []
        instance.add_dynamic_partitions("candidates", ["a", "b"])
        passes = {f"{key}|{one}" for key in "ab" for one in ("first", "second", "stress")}
        assert set(_keys(partitions["validation_runs"], instance)) == passes


def _keys(partitions: dg.PartitionsDefinition[str] | None, instance: dg.DagsterInstance | None = None) -> list[str]:
    assert partitions is not None
    return list(partitions.get_partition_keys(dynamic_partitions_store=instance))


def test_the_two_stages_of_an_agent_never_share_a_run(repository_workspace: Workspace) -> None:
    graph = build_definitions(repository_workspace).resolve_asset_graph()
    policies = {node.key.to_user_string(): node.backfill_policy for node in graph.asset_nodes}
    attempts, grades = policies["demo/steady/agent_runs"], policies["demo/steady/graded_results"]
    assert attempts is not None
    assert grades is not None
    assert attempts.max_partitions_per_run is not None
    assert attempts.max_partitions_per_run != grades.max_partitions_per_run


def test_a_run_is_not_longer_than_dagster_lets_one_be_and_not_shorter_than_its_start_is_worth() -> None:
    longest_s = YAML(typ="safe").load(TOP / "dagster.yaml")["run_monitoring"]["max_runtime_seconds"]
    assert [partitions_of_a_run(seconds) for seconds in (1, 120, 900, 20_000)] == [200, 150, 20, 1]
    assert 900 * partitions_of_a_run(900) < longest_s


def test_the_jobs_schedules_and_checks_of_this_repository(repository_workspace: Workspace) -> None:
    repository = build_definitions(repository_workspace).get_repository_def()
    jobs = set(repository.job_names) - {"__ASSET_JOB"}
    assert jobs == {
        *("mine", "build_images", "validate", "judge", "freeze", "calibrate_demo"),
        *("demo__agent_runs", "demo__graded_results", "demo__report"),
    }
    assert {schedule.name for schedule in repository.schedule_defs} == {"weekly_mining", "demo__quarterly"}
    assert {sensor.name for sensor in repository.sensor_defs} == {
        *("mainline_moved", "images_after_mining", "passes_that_are_due", "judge_after_validation"),
        *("demo__attempts_after_calibration", "demo__grade_after_attempts"),
        *("demo__again_after_failed_attempts", "demo__report_after_grades"),
    }
    checks = {key.to_user_string() for key in repository.asset_graph.asset_check_keys}
    of_set = ("files_as_frozen", "instances_give_nothing_away", "validation_is_recent", "enough_tasks_for_demo")
    of_results = ("sandboxes_probed", "few_invalid_attempts", "tasks_tell_agents_apart")
    assert checks == {
        "task_sets/demo/calibration:reference_resolved_and_empty_not",
        *(f"task_sets/demo:{name}" for name in of_set),
        *(f"demo/category_report:{name}" for name in of_results),
        "demo/agent_comparison:manifests_agree",
    }


def test_the_page_on_operation_names_each_schedule_sensor_and_check(repository_workspace: Workspace) -> None:
    repository = build_definitions(repository_workspace).get_repository_def()
    names = {schedule.name for schedule in repository.schedule_defs}
    names |= {sensor.name for sensor in repository.sensor_defs}
    names |= {key.name for key in repository.asset_graph.asset_check_keys}
    page = (TOP / "docs/operations.md").read_text()
    for name in names:
        assert f"| `{name.replace('demo', 'SWEEP')}` |" in page, name


def test_an_agents_code_version_follows_its_file(copied: Copied, frozen: Walk) -> None:
    tiny = copied(frozen)
    key = dg.AssetKey(["small", "half", "agent_runs"])
    before = build_definitions(tiny.workspace).resolve_asset_graph().get(key).code_version
    assert before == build_definitions(tiny.workspace).resolve_asset_graph().get(key).code_version
    file = tiny.root / "data/agents/half.yaml"
    file.write_text(file.read_text().replace('scaffold_version: "1"', 'scaffold_version: "2"'))
    assert before != build_definitions(tiny.workspace).resolve_asset_graph().get(key).code_version


def test_dagster_validates_the_definitions_of_this_repository(repository_workspace: Workspace) -> None:
    root = repository_workspace.root
    (root / "data/state").mkdir(exist_ok=True)
    environment = {**os.environ, "DAGSTER_HOME": str(root), "EVALPIPE_STATE_DIR": str(root / "data/state")}
    environment.pop("EVALPIPE_WORKSPACE", None)
    command = [sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_process_of_a_run_imports_nothing_that_draws_or_computes(frozen: Walk) -> None:
    """Half of its start went into these, and most runs have no use for them."""
    code = "import sys, evalpipe.definitions; print({'scipy', 'matplotlib', 'pandas', 'jinja2'} & sys.modules.keys())"
    environment = {**os.environ, "EVALPIPE_WORKSPACE": str(frozen.tiny.root)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


BREAKAGES = {
    "data/agents/half.yaml": ("adapter: [", "data/agents/half.yaml"),
    "data/sweeps/other.yaml": ("task_set: tiny\nagents: [emptyy]\nsamples: 1\ndecision: d\n", "did you mean 'empty'"),
    "data/sweeps/wrong.yaml": ("task_set: tiny\nsample: 1\n", "data/sweeps/wrong.yaml"),
    "data/repos/second.yaml": ("source: x\nrunner:\n  name: none-such\n", "data/repos/second.yaml:3"),
    "data/task_sets/old/task_set.json": ("{}", "task_sets/old/task_set.json"),
    "data/sweeps/sm-all.yaml": ("task_set: tiny\nagents: [empty]\nsamples: 1\ndecision: d\n", "sm_all"),
}


@pytest.mark.parametrize("file", BREAKAGES)
def test_a_bad_file_hides_no_other(file: str, copied: Copied, frozen: Walk, caplog: pytest.LogCaptureFixture) -> None:
    tiny = copied(frozen)
    tiny.write("data/sweeps/control.yaml", "task_set: tiny\nagents: [empty]\nsamples: 1\ndecision: d\n")
    if file == "data/sweeps/sm-all.yaml":
        tiny.write("data/sweeps/sm_all.yaml", BREAKAGES[file][0])
    tiny.write(file, BREAKAGES[file][0])
    with caplog.at_level(logging.WARNING, "evalpipe"):
        definitions = build_definitions(tiny.workspace)
        names = _names(definitions)
    definitions.resolve_all_job_defs()
    assert {*HISTORY, "task_sets/tiny", "control/empty/agent_runs", "control/evaluation_report"} <= names
    assert any("left out" in text and BREAKAGES[file][1] in text for text in caplog.messages)
    stem = Path(file).stem
    if "sweeps" in file:
        assert not any(name.startswith(f"{stem}/") for name in names)


def test_agents_whose_names_dagster_cannot_tell_apart_leave_their_sweep_out(
    copied: Copied, frozen: Walk, caplog: pytest.LogCaptureFixture
) -> None:
    tiny = copied(frozen)
    for name in ("a-b", "a_b"):
        tiny.write(f"data/agents/{name}.yaml", "adapter: empty\n")
    tiny.write("data/sweeps/both.yaml", "task_set: tiny\nagents: [a-b, a_b]\nsamples: 1\ndecision: d\n")
    tiny.write("data/sweeps/q4-one.yaml", "task_set: tiny\nagents: [a_b]\nsamples: 1\ndecision: d\n")
    names = _names(build_definitions(tiny.workspace))
    assert "q4-one/a_b/agent_runs" in names
    assert not any(name.startswith("both/") for name in names)
    assert any("rename one" in text for text in caplog.messages)


def test_an_archived_sweep_is_not_loaded_and_its_rows_stay(copied: Copied, finished: Walk) -> None:
    tiny = copied(finished)
    rows = sorted((tiny.lake / "graded_results").rglob("*.parquet"))
    file = tiny.root / "data/sweeps/small.yaml"
    file.write_text(file.read_text() + "archived: true\n")
    assert not any(name.startswith("small/") for name in _names(build_definitions(tiny.workspace)))
    assert sorted((tiny.lake / "graded_results").rglob("*.parquet")) == rows
    refused = tiny.call("report", "small")
    assert refused.code == 2
    assert "archived" in refused.err


def test_a_sweep_appears_when_its_set_is_frozen(copied: Copied, mined: Walk, frozen: Walk) -> None:
    assert not any(name.startswith("small/") for name in _names(build_definitions(copied(mined).workspace)))
    assert "small/half/agent_runs" in _names(build_definitions(frozen.tiny.workspace))


def test_a_workspace_without_repositories_shows_its_frozen_sets(copied: Copied, frozen: Walk) -> None:
    tiny = copied(frozen)
    (tiny.root / "data/repos/shop.yaml").unlink()
    names = _names(build_definitions(tiny.workspace))
    assert HISTORY.isdisjoint(names)
    assert "small/half/agent_runs" in names


def test_loading_starts_no_process_and_asks_nobody(frozen: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError(f"loading did {arguments}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    build_definitions(frozen.tiny.workspace).resolve_all_job_defs()


def test_a_sweep_that_is_left_out_says_so_when_it_is_to_run(copied: Copied, begun: Walk) -> None:
    tiny = copied(begun)
    for name in ("small-x", "small_x"):
        tiny.write(f"data/sweeps/{name}.yaml", (tiny.root / "data/sweeps/small.yaml").read_text())
    done = tiny.call("run", "small-x", "--agent", "empty")
    assert (done.code, done.out) == (1, "")
    assert "left out" in done.err
    assert "Traceback" not in done.err
