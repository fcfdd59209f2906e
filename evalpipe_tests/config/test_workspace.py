from pathlib import Path
from typing import get_args

import pytest

from evalpipe.config import AgentConfig, ConfigError, EnvironmentConfig, find_workspace
from evalpipe.config.agent import AdapterName
from evalpipe.config.runner import RunnerName
from evalpipe_tests.config.builders import REPOSITORY, SCRIPTED, SWEEP, make_workspace

RUNNERS = ", ".join(get_args(RunnerName))
ADAPTERS = ", ".join(get_args(AdapterName))
AGENT_FIELDS = ", ".join(name for name in AgentConfig.model_fields if name != "name")


def _texts(problems: list[object]) -> list[str]:
    return [str(problem) for problem in problems]


def test_folders_lie_below_the_root(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    assert workspace.data == workspace.root / "data"
    assert workspace.lake_dir == workspace.root / "data" / "lake"
    assert workspace.state_dir == workspace.root / "data" / "state"
    assert workspace.task_sets_dir == workspace.root / "data" / "task_sets"


def test_a_workspace_is_found_from_below(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EVALPIPE_WORKSPACE", raising=False)
    workspace = make_workspace(tmp_path)
    monkeypatch.chdir(workspace.agents_dir)
    assert find_workspace() == workspace


def test_the_variable_goes_before_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, named = make_workspace(tmp_path / "here"), make_workspace(tmp_path / "named")
    monkeypatch.chdir(here.root)
    monkeypatch.setenv("EVALPIPE_WORKSPACE", str(named.root))
    assert find_workspace() == named
    assert find_workspace(here.root) == here


def test_without_a_workspace_the_error_says_how_to_make_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="evalpipe init DIR"):
        find_workspace(tmp_path)
    monkeypatch.setenv("EVALPIPE_WORKSPACE", str(tmp_path / "gone"))
    with pytest.raises(ConfigError, match=r"gone: EVALPIPE_WORKSPACE names .*evalpipe init DIR"):
        find_workspace()


def test_paths_begin_at_the_root(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "ws")
    (workspace.repos_dir / "shop.yaml").write_text(REPOSITORY)
    (workspace.repos_dir / "far.yaml").write_text(REPOSITORY.replace("../shop", "https://example.com/x.git"))
    assert workspace.repository_location(workspace.load_repository("shop")) == str(tmp_path.resolve() / "shop")
    assert workspace.repository_location(workspace.load_repository("far")) == "https://example.com/x.git"
    assert workspace.resolve("/srv/x") == Path("/srv/x")


def test_one_bad_file_does_not_hide_the_good_ones(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    for name in ("good", "fine"):
        (workspace.agents_dir / f"{name}.yaml").write_text("adapter: empty\n")
    (workspace.agents_dir / "broken.yaml").write_text("adapter: [\n")
    (workspace.agents_dir / "Bad Name.yaml").write_text("adapter: empty\n")
    (workspace.agents_dir / "other.yml").write_text("adapter: empty\n")
    (workspace.agents_dir / "folder.yaml").mkdir()
    (workspace.agents_dir / ".#good.yaml").write_text("an editor's lock")
    loaded = workspace.load_agents()
    assert list(loaded.items) == ["fine", "good"]
    assert [problem.file for problem in loaded.problems] == [
        "data/agents/Bad Name.yaml",
        "data/agents/broken.yaml",
        "data/agents/folder.yaml",
        "data/agents/other.yml",
    ]
    assert loaded.problems[3].message == "rename the file to other.yaml"


def test_a_missing_folder_holds_nothing(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    workspace.sweeps_dir.rmdir()
    assert workspace.load_sweeps().items == {}
    assert workspace.load_sweeps().problems == []


def test_a_name_that_is_not_there_gets_the_near_one(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    (workspace.agents_dir / "steady.yaml").write_text("adapter: empty\n")
    with pytest.raises(ConfigError, match=r"^data/agents: there is no stedy\.yaml; did you mean 'steady'\?$"):
        workspace.load_agent("stedy")
    with pytest.raises(ConfigError, match=r"^data/sweeps: there is no \.\./x\.yaml; there are: none$"):
        workspace.load_sweep("../x")


def test_the_problems_of_a_repository_say_what_would_be_right(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    (workspace.repos_dir / "shop.yaml").write_text(
        "sorce: ../x\nmainline: 2.10\nname: shop\nrunner:\n  name: jset\n  python:\npaths:\n  tests: tests/**\n"
        "validation:\n  memory: 2x\n  cpus: 0\n  pids: yes\nenvironment: 3\nmax_files: true\n"
        "require_issue: maybe\nissues: 3\n"
    )
    where = "data/repos/shop.yaml"
    assert _texts([*workspace.load_repositories().problems]) == [
        f"{where}:1: sorce: unknown field; did you mean 'source'?",
        f"{where}:1: source: is missing: a path from the workspace's top, or a URL",
        f'{where}:2: mainline: must be text; write it in quotes: "2.10"',
        f"{where}:3: name: the name is the name of the file; remove this line",
        f"{where}:5: runner.name: 'jset' is not a known runner; use one of: {RUNNERS}; did you mean 'jest'?",
        f"{where}:6: runner.python: is empty; give it a value, or remove the line",
        f"{where}:8: paths.tests: must be a list; write each value on a line of its own after `- `",
        f"{where}:10: validation.memory: '2x' is not a memory size; write it as 512m or 2g",
        f"{where}:11: validation.cpus: must be greater than 0, not 0",
        f"{where}:12: validation.pids: must be a whole number, not yes",
        f"{where}:13: environment: must hold fields of its own: {', '.join(EnvironmentConfig.model_fields)}",
        f"{where}:14: max_files: must be a whole number, not true",
        f"{where}:15: require_issue: must be true or false, not maybe",
        f"{where}:16: issues: must be a path, not 3",
    ]


def test_the_problems_of_an_agent_say_what_would_be_right(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    (workspace.agents_dir / "a.yaml").write_text("adapter: refrence\nmodel_version: 1.10\n")
    (workspace.agents_dir / "b.yaml").write_text(SCRIPTED.replace("script: patches\n", ""))
    (workspace.agents_dir / "c.yaml").write_text("adapter: empty\nscript: x\ncolour: red\n")
    (workspace.agents_dir / "d.yaml").write_text("adapter: empty\nscript: x\n")
    assert _texts([*workspace.load_agents().problems]) == [
        f"data/agents/a.yaml:1: adapter: 'refrence' is not a known adapter; use one of: {ADAPTERS}; "
        "did you mean 'reference'?",
        "data/agents/a.yaml:1: model: is missing: the model's name, as its provider writes it",
        "data/agents/a.yaml:1: scaffold: is missing: the program around the model",
        "data/agents/a.yaml:1: scaffold_version: is missing: the pinned version of the scaffold",
        'data/agents/a.yaml:2: model_version: must be text; write it in quotes: "1.10"',
        "data/agents/b.yaml:1: script: is missing: `adapter: scripted` needs the path of the patches to replay",
        f"data/agents/c.yaml:3: colour: unknown field; the fields here are: {AGENT_FIELDS}",
        "data/agents/d.yaml:2: script: belongs to `adapter: scripted`; `adapter: empty` has none",
    ]


def test_the_problems_of_a_sweep_say_what_would_be_right(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    (workspace.sweeps_dir / "q.yaml").write_text(
        "task_set: t\nagents: [a, b, a]\nsamples: 0\nmodes: [orignal]\nweights: {bugfix: 1, other: .nan}\n"
        "decision: 1\ncomparisons: [[a, b, c], [a]]\ncurrency: eur\n"
    )
    (workspace.sweeps_dir / "r.yaml").write_text(
        "task_set: t\nagents: [steady, steady]\nsamples: 1\nweights: {other: 0.9}\ndecision: x\n"
        "comparisons: [[steady, stedy]]\ncurrency: EUR\n"
    )
    assert _texts([*workspace.load_sweeps().problems]) == [
        "data/sweeps/q.yaml:3: samples: must be greater than or equal to 1, not 0",
        "data/sweeps/q.yaml:4: modes[0]: 'orignal' is not a known prompt mode; use one of: original, terse; "
        "did you mean 'original'?",
        "data/sweeps/q.yaml:5: weights.bugfix: 'bugfix' is not a known category; use one of: single_file_repair, "
        "multi_file_feature, dependency_chore, other",
        "data/sweeps/q.yaml:5: weights.other: must be a finite number, not .nan",
        'data/sweeps/q.yaml:6: decision: must be text; write it in quotes: "1"',
        "data/sweeps/q.yaml:7: comparisons[0]: must have 2 values, not 3",
        "data/sweeps/q.yaml:7: comparisons[1][1]: is missing; a pair has 2 values",
        "data/sweeps/q.yaml:8: currency: 'eur' is not a currency; use three capital letters, as EUR",
        "data/sweeps/r.yaml:1: region: is missing: region and currency go together where costs are priced",
        "data/sweeps/r.yaml:1: usd_rate: is missing: costs are measured in US dollars; say what one costs in EUR",
        "data/sweeps/r.yaml:2: agents: 'steady' is named twice; keep one",
        "data/sweeps/r.yaml:4: weights: the weights add up to 0.9; they must add up to 1",
        "data/sweeps/r.yaml:6: comparisons: 'stedy' is not an agent of this sweep; did you mean 'steady'?",
    ]


def test_the_error_of_one_file_has_a_problem_a_line(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    (workspace.repos_dir / "shop.yaml").write_text("runner:\n  name: jset\n")
    with pytest.raises(ConfigError) as caught:
        workspace.load_repository("shop")
    assert str(caught.value).splitlines() == [
        "data/repos/shop.yaml:1: source: is missing: a path from the workspace's top, or a URL",
        "data/repos/shop.yaml:2: runner.name: 'jset' is not a known runner; "
        f"use one of: {RUNNERS}; did you mean 'jest'?",
    ]


def test_references_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    (workspace.agents_dir / "empty.yaml").write_text("adapter: empty\n")
    (workspace.agents_dir / "replay.yaml").write_text(SCRIPTED)
    (workspace.agents_dir / "broken.yaml").write_text("adapter: 3\n")
    (workspace.repos_dir / "shop.yaml").write_text(REPOSITORY + "issues: data/issues.jsonl\n")
    (workspace.sweeps_dir / "q.yaml").write_text(
        SWEEP.replace("[empty, reference]", "\n  - empty\n  - emptyy\n  - broken\n  - zzz")
    )
    assert _texts([*workspace.check_references()]) == [
        "data/sweeps/q.yaml:4: agents[1]: there is no agent 'emptyy' in data/agents; did you mean 'empty'?",
        "data/sweeps/q.yaml:5: agents[2]: 'broken' has errors of its own in data/agents/broken.yaml: "
        "see `evalpipe doctor`",
        "data/sweeps/q.yaml:6: agents[3]: there is no agent 'zzz' in data/agents; the agents are: empty, replay",
        f"data/repos/shop.yaml:4: issues: there is no {workspace.root}/data/issues.jsonl; "
        f"give a path from {workspace.root}",
        f"data/agents/replay.yaml:6: script: there is no {workspace.root}/patches; give a path from {workspace.root}",
    ]


def test_references_that_hold_are_no_problem(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    for name in ("empty", "reference"):
        (workspace.agents_dir / f"{name}.yaml").write_text(f"adapter: {name}\n")
    (workspace.agents_dir / "replay.yaml").write_text(SCRIPTED)
    (workspace.root / "patches").mkdir()
    (workspace.sweeps_dir / "q.yaml").write_text(SWEEP)
    assert workspace.check_references() == []
