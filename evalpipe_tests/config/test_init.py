import errno
import os
from pathlib import Path
from typing import Any

import pytest

import evalpipe
from evalpipe.config import AgentConfig, ConfigError, RepositoryConfig, SweepConfig, Workspace, find_workspace
from evalpipe.config.init import template_files, write_workspace
from evalpipe_tests.config.fields import field_names

# Fields of other templates and of another runner, which cannot stand beside the rest.
OF_OTHER_KINDS = {"image", "dockerfile", "command", "report_format", "reports", "canary", "file", "text", "test_id"}
CATEGORIES = ("single_file_repair", "multi_file_feature", "dependency_chore", "other")
ROOT = Path(evalpipe.__file__).parents[1]


def test_the_new_workspace_has_every_file(tmp_path: Path) -> None:
    written = write_workspace(tmp_path / "new" / "ws")
    assert sorted(str(path.relative_to(tmp_path.resolve() / "new" / "ws")) for path in written) == [
        ".gitattributes",
        ".gitignore",
        "README.md",
        "dagster.yaml",
        "data/agents/empty.yaml",
        "data/agents/example.yaml",
        "data/agents/reference.yaml",
        "data/providers/anthropic.yaml",
        "data/providers/google.yaml",
        "data/providers/openai.yaml",
        "data/repos/example.yaml",
        "data/sweeps/example.yaml",
        "workspace.yaml",
    ]
    assert all(path.is_file() for path in written)


def test_the_new_workspace_loads(tmp_path: Path) -> None:
    write_workspace(tmp_path)
    workspace = find_workspace(tmp_path)
    repositories, agents, sweeps = (
        workspace.load_repositories(),
        workspace.load_agents(),
        workspace.load_sweeps(),
    )
    assert [*repositories.problems, *agents.problems, *sweeps.problems, *workspace.check_references()] == []
    assert (list(repositories.items), list(sweeps.items)) == (["example"], ["example"])
    assert list(agents.items) == ["empty", "example", "reference"]
    assert (workspace.root / ".gitattributes").read_text().split("\n")[1] == "/data/task_sets/** -text"
    assert (workspace.root / ".gitignore").read_text().split("\n")[1:3] == ["/data/lake/", "/data/state/"]


@pytest.mark.parametrize(
    ("file", "model"),
    [
        ("data/repos/example.yaml", RepositoryConfig),
        ("data/sweeps/example.yaml", SweepConfig),
        ("data/agents/reference.yaml", AgentConfig),
    ],
)
def test_the_examples_still_load_with_every_comment_of_a_field_made_a_field(
    tmp_path: Path, file: str, model: type[RepositoryConfig | AgentConfig | SweepConfig]
) -> None:
    write_workspace(tmp_path)
    path = tmp_path / file
    known = {part for name in field_names(model) for part in name.split(".")}
    lines = []
    for line in path.read_text().splitlines():
        bare = line.replace("# ", "", 1)
        word = bare.strip().split(":")[0]
        lines.append(bare if word in {*known, *CATEGORIES} - OF_OTHER_KINDS else line)
    path.write_text("\n".join(lines) + "\n")
    workspace = Workspace(tmp_path)
    problems = workspace.load_repositories().problems + workspace.load_agents().problems
    assert [str(problem) for problem in problems + workspace.load_sweeps().problems] == []
    if model is not AgentConfig:
        assert {name for name in known - {"name"} if f"{name}:" not in path.read_text()} == set()


@pytest.mark.parametrize("name", ["workspace.yaml", "dagster.yaml"])
def test_the_project_and_a_new_workspace_have_the_same_dagster_files(name: str) -> None:
    assert (ROOT / name).read_text() == template_files()[name]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "dagster.yaml").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ConfigError) as caught:
        write_workspace(tmp_path)
    assert [Path(problem.file).name for problem in caught.value.problems] == ["README.md", "dagster.yaml"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "dagster.yaml"]
    assert (tmp_path / "README.md").read_text() == "mine"


def test_a_target_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ws").write_text("")
    with pytest.raises(ConfigError, match="is no folder; name another place"):
        write_workspace(tmp_path / "ws")
    with pytest.raises(ConfigError, match="nothing was changed"):
        write_workspace(tmp_path / "ws" / "below")


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = Path.open

    def open_until_full(path: Path, *arguments: Any, **options: Any) -> Any:
        if path.name == "workspace.yaml" and path.is_relative_to(tmp_path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real_open(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", open_until_full)
    (tmp_path / "kept").mkdir()
    with pytest.raises(ConfigError, match="No space left on device; nothing was changed"):
        write_workspace(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    with pytest.raises(ConfigError):
        write_workspace(tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_dagster_accepts_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dagster import DagsterInstance
    from dagster._core.workspace.config_schema import process_workspace_config
    from ruamel.yaml import YAML

    monkeypatch.setenv("EVALPIPE_STATE_DIR", str(tmp_path / "state"))
    home = tmp_path / "home"
    write_workspace(home)
    with DagsterInstance.from_config(str(home)) as instance:
        assert instance.root_directory == str(tmp_path / "state")
        assert instance.telemetry_enabled is False
        assert instance.nux_enabled is False
        assert instance.run_monitoring_enabled is True
        assert instance.get_settings("run_monitoring")["free_slots_after_run_end_seconds"] == 60
        assert instance.run_retries_max_retries == 2
        # Only for runs whose process died: what failed by itself would be paid for again.
        assert instance.get_settings("run_retries")["retry_on_asset_or_op_failure"] is False
        concurrency = instance.get_concurrency_config()
        assert concurrency.pool_config.default_pool_limit == 2
        assert concurrency.run_queue_config is not None
        assert concurrency.run_queue_config.max_concurrent_runs == 5
    # What Dagster left outside the state folder would be seen by git.
    assert not {path.name for path in home.iterdir()} & {"history", "schedules", "storage", "logs"}
    loaded = process_workspace_config(YAML(typ="safe").load((home / "workspace.yaml").read_text()))
    assert loaded.success
    assert loaded.value == {
        "load_from": [{"python_module": {"module_name": "evalpipe.definitions", "location_name": "evalpipe"}}]
    }
