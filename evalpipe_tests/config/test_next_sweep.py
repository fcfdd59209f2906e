"""The file of the next sweep: that of the last one, word for word, over another task set."""

from pathlib import Path

import pytest

from evalpipe.config import ConfigError, Workspace
from evalpipe.config.next_sweep import write_next_sweep
from evalpipe_tests.config.builders import make_workspace

OLD = (
    "# What Q4 was about: é.\r\n"
    "archived: true   # since January\r\n"
    "agents: [empty,   reference]  # controls\r\n"
    "\r\n"
    "task_set: '2026q4' # frozen\r\n"
    "samples: 2\r\n"
    "decision: >-\r\n"
    "  whether task_set: 2026q4\r\n"
    "  goes on\r\n"
    "limits: {memory: 2g}   # as on the machine\r\n"
)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = make_workspace(tmp_path)
    (made.sweeps_dir / "2026q4.yaml").write_bytes(OLD.encode())
    return made


def test_every_byte_stays_but_the_task_set_and_the_mark_of_the_archive(workspace: Workspace) -> None:
    path = write_next_sweep(workspace, "2027q1", "2026q4")
    assert path == workspace.sweeps_dir / "2027q1.yaml"
    expected = OLD.replace("'2026q4' #", "2027q1 #").replace("true  ", "false  ")
    assert path.read_bytes() == expected.encode()
    made, old = workspace.load_sweep("2027q1"), workspace.load_sweep("2026q4")
    assert (made.task_set, made.archived) == ("2027q1", False)
    assert made.model_copy(update={"name": old.name, "task_set": old.task_set, "archived": True}) == old
    assert (workspace.sweeps_dir / "2026q4.yaml").read_bytes() == OLD.encode()


@pytest.mark.parametrize("name", ["2027", "1e3", "0x1f", "null", "on", "2027_1"])
def test_a_name_that_yaml_takes_for_something_else_is_quoted(workspace: Workspace, name: str) -> None:
    write_next_sweep(workspace, name, "2026q4")
    assert workspace.load_sweep(name).task_set == name


def test_a_sweep_that_is_there_is_not_overwritten(workspace: Workspace) -> None:
    with pytest.raises(ConfigError, match=r"data/sweeps/2026q4\.yaml: is there already"):
        write_next_sweep(workspace, "2026q4", "2026q4")
    assert (workspace.sweeps_dir / "2026q4.yaml").read_bytes() == OLD.encode()


@pytest.mark.parametrize(
    ("name", "earlier", "said"),
    [("Q 1", "2026q4", "cannot name a sweep"), ("../x", "2026q4", "cannot name"), ("next", "2026q5", "did you mean")],
)
def test_wrong_names_are_refused_and_write_nothing(workspace: Workspace, name: str, earlier: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        write_next_sweep(workspace, name, earlier)
    assert [path.name for path in workspace.sweeps_dir.iterdir()] == ["2026q4.yaml"]


def test_a_sweep_with_errors_is_not_copied(workspace: Workspace) -> None:
    (workspace.sweeps_dir / "bad.yaml").write_text("task_set: x\n")
    with pytest.raises(ConfigError, match=r"bad\.yaml"):
        write_next_sweep(workspace, "next", "bad")
