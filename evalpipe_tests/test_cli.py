"""The command line's own manners: help at once, exit codes, errors on the error stream, names with near misses."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from evalpipe.cli import cli
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace, repository_yaml

Copied = Callable[[Walk], TinyWorkspace]
COMMANDS = (
    *("init", "doctor", "issues", "mine", "validate", "prompts", "freeze", "tasks", "plan", "run", "grade", "report"),
    *("attempts", "compare", "status", "gate", "sweep", "lake", "demo", "ui"),
)
HEAVY = ("dagster", "pandas", "pyarrow", "scipy", "matplotlib", "numpy", "docker", "git", "pydantic")


def test_the_commands() -> None:
    assert set(cli.commands) == set(COMMANDS)


def test_help_of_every_command_imports_nothing_that_takes_time() -> None:
    """One process for all: that no heavy module is imported holds the half second, whatever else the machine does."""
    code = f"""
import sys
from click.testing import CliRunner
from evalpipe.cli import cli
for command in {[[], *([name] for name in COMMANDS)]!r}:
    done = CliRunner().invoke(cli, [*command, "--help"])
    assert done.exit_code == 0, (command, done.output)
    assert done.output.startswith("Usage:"), command
print(sorted(set(sys.modules) & set({HEAVY!r})))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_every_command_and_option_says_what_it_does() -> None:
    for name, command in cli.commands.items():
        assert command.help, name
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.name}"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--version"], 0),
        (["nonsense"], 2),
        (["mine", "--nonsense"], 2),
        (["freeze"], 2),
        (["validate", "--newest", "0"], 2),
    ],
)
def test_wrong_use_is_exit_code_2(arguments: list[str], code: int, tmp_path: Path) -> None:
    done = TinyWorkspace.at(tmp_path).call(*arguments)
    assert done.code == code
    if code:
        assert done.out == ""
        assert "Usage" in done.err


@pytest.mark.parametrize("arguments", [["status"], ["mine"], ["run", "x"], ["demo"], ["report", "x", "--json"]])
def test_outside_a_workspace_it_says_how_to_get_one(arguments: list[str], tmp_path: Path) -> None:
    done = TinyWorkspace.at(tmp_path).call(*arguments)
    assert (done.code, done.out) == (2, "")
    assert "evalpipe init" in done.err


def test_doctor_outside_a_workspace_looks_at_the_machine(tmp_path: Path) -> None:
    done = TinyWorkspace.at(tmp_path).call("doctor", "--json")
    names = {finding["name"]: finding["ok"] for finding in done.json()}
    assert names["python"] is True
    assert names["workspace"] is False
    assert "looking at the machine alone" in done.err


def test_init_then_doctor_then_status_in_the_new_workspace(tmp_path: Path) -> None:
    here = TinyWorkspace.at(tmp_path)
    made = here.call("init", "mine")
    assert made.code == 0
    written = [Path(line) for line in made.out.splitlines()]
    assert all(path.is_file() for path in written)
    assert tmp_path / "mine/workspace.yaml" in written
    inside = TinyWorkspace.at(tmp_path / "mine")
    findings = inside.call("doctor", "--json")
    assert all(finding["ok"] or finding["remedy"] for finding in findings.json())
    text = inside.call("doctor")
    assert text.code == findings.code
    assert "MISSING source of example" in text.out
    assert inside.call("status").code == 0


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    here = TinyWorkspace.at(tmp_path)
    (tmp_path / "workspace.yaml").write_text("mine")
    done = here.call("init", ".")
    assert (done.code, done.out) == (2, "")
    assert (tmp_path / "workspace.yaml").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["workspace.yaml"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mine", "shopp"], "did you mean 'shop'"),
        (["validate", "shopp"], "did you mean 'shop'"),
        (["freeze", "new", "shopp"], "did you mean 'shop'"),
        (["freeze", "New.Set"], "'New.Set' cannot name a task set"),
        (["run", "smal"], "did you mean 'small'"),
        (["grade", "smal"], "did you mean 'small'"),
        (["report", "smal", "--json"], "did you mean 'small'"),
        (["run", "small", "--agent", "hal"], "hal: not in sweep small, which has reference, empty, half"),
        (["--workspace", "nowhere", "status"], "nowhere"),
    ],
)
@pytest.mark.slow
def test_an_unknown_name_is_named_with_what_would_be_right(arguments: list[str], said: str, frozen: Walk) -> None:
    done = frozen.tiny.call(*arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.slow
def test_an_unknown_sandbox_is_named_with_what_would_be_right(frozen: Walk) -> None:
    done = frozen.tiny.call("run", "small", variables={"EVALPIPE_SANDBOX": "podman"})
    assert (done.code, done.out) == (2, "")
    assert "EVALPIPE_SANDBOX" in done.err
    assert "auto, docker or process" in done.err


@pytest.mark.slow
def test_docker_that_was_asked_for_is_not_replaced_in_silence(frozen: Walk) -> None:
    nowhere = {"EVALPIPE_SANDBOX": "docker", "DOCKER_HOST": "unix:///nowhere/docker.sock"}
    done = frozen.tiny.call("run", "small", variables=nowhere)
    assert (done.code, done.out) == (1, "")
    assert "/nowhere/docker.sock" in done.err


def test_a_dry_run_shows_the_funnel_and_writes_no_table(copied: Copied, mined: Walk) -> None:
    tiny = copied(mined)
    table = tiny.lake / "candidate_commits" / "shop.parquet"
    table.unlink()
    done = tiny.succeed("mine", "--dry-run", "--json")
    assert done.json() == {**mined.answers["mine"].json(), "dry_run": True}
    assert not table.exists()
    assert "kept" in tiny.succeed("mine", "--dry-run").out


def test_mining_warns_of_a_category_that_means_no_change(copied: Copied, mined: Walk) -> None:
    tiny = copied(mined)
    config = tiny.root / "data/repos/shop.yaml"
    config.write_text(config.read_text() + '\ncategories:\n  "#987": other\n')
    for arguments in (["mine", "--dry-run"], ["mine", "--json"]):
        done = tiny.succeed(*arguments)
        assert "warning: data/repos/shop.yaml: '#987' under `categories` means no change" in done.err
        assert "#987" not in done.out


@pytest.mark.slow
def test_freezing_asks_for_a_second_day_or_for_the_mark(copied: Copied, frozen: Walk) -> None:
    tiny = copied(frozen)
    done = tiny.call("freeze", "another")
    assert (done.code, done.out) == (1, "")
    assert "--provisional" in done.err
    assert not (tiny.root / "data/task_sets/another").exists()
    assert "provisional" in tiny.succeed("freeze", "another", "--provisional").out


@pytest.mark.slow
def test_a_frozen_set_is_never_replaced(copied: Copied, frozen: Walk) -> None:
    tiny = copied(frozen)
    assert tiny.succeed("freeze", "tiny", "--provisional").out == frozen.answers["freeze"].out
    rows = tiny.root / "data/repos/shop.yaml"
    rows.write_text(rows.read_text().replace("timeout_s: 60", "timeout_s: 59"))
    done = tiny.call("freeze", "tiny", "--provisional")
    assert done.code == 1
    assert "choose a new name" in done.err


@pytest.mark.slow
def test_a_second_pass_waits_for_another_day(copied: Copied, frozen: Walk) -> None:
    """On one day the second pass is not due: nothing is run, and that is said."""
    tiny = copied(frozen)
    for path in (tiny.lake / "validation_runs").rglob("second.parquet"):
        path.unlink()
    done = tiny.succeed("validate", "--json")
    assert done.json()["second_passes_waiting"] == 3
    assert "3 second passes are due from tomorrow" in done.err


@pytest.mark.slow
def test_what_could_not_be_built_is_tried_again_on_request_only(copied: Copied, mined: Walk) -> None:
    tiny = copied(mined)
    tries = tiny.root / "tries"
    setup = f"echo tried >> '{tries}'; false"
    tiny.write("data/repos/shop.yaml", repository_yaml([setup]))
    first = tiny.call("validate")
    assert first.code == 1
    assert "not built (failed; `evalpipe validate shop --retry-builds` tries again)" in first.err
    assert tiny.call("validate").err == first.err.replace("task_images: 1 of 1\n", "")
    assert tries.read_text().count("tried") == 1
    assert "task_images: 1 of 1\n" in tiny.call("validate", "--retry-builds").err
    assert tries.read_text().count("tried") == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["validate"], "run `evalpipe mine shop` first"),
        (["freeze", "tiny", "--provisional"], "no candidate is valid yet"),
        (["run", "small"], "`evalpipe freeze tiny`"),
        (["grade", "small"], "`evalpipe freeze tiny`"),
        (["report", "small"], "`evalpipe freeze tiny`"),
    ],
)
def test_a_stage_before_its_time_names_the_one_that_comes_first(
    arguments: list[str], said: str, copied: Copied, mined: Walk
) -> None:
    tiny = copied(mined)
    (tiny.lake / "candidate_commits" / "shop.parquet").unlink()
    done = tiny.call(*arguments)
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert "Traceback" not in done.err


@pytest.mark.slow
def test_grading_before_running_names_the_command(copied: Copied, frozen: Walk) -> None:
    done = copied(frozen).call("grade", "small", "--agent", "half")
    assert (done.code, done.out) == (1, "")
    assert "4 of 4 partitions are not done" in done.err
    assert "`evalpipe run small` makes it" in done.err


@pytest.mark.slow
def test_one_agent_alone(begun: Walk) -> None:
    assert begun.next_steps["run"] == ["evalpipe run small"]
    agents = begun.status["run"]["sweeps"][0]["agents"]
    counts = {agent["name"]: agent["attempted"] for agent in agents}
    assert counts == {"reference": 0, "empty": 4, "half": 0}


@pytest.mark.slow
def test_every_machine_answer_is_one_json_document(finished: Walk) -> None:
    for arguments in (["status"], ["doctor"], ["mine", "--dry-run"], ["report", "small"]):
        done = finished.tiny.call(*arguments, "--json")
        json.loads(done.out)
        assert len(done.out.splitlines()) == 1


@pytest.mark.slow
def test_deleting_dagsters_state_loses_nothing(frozen: Walk) -> None:
    """The lake is the truth; Dagster's own memory can be deleted."""
    tiny = frozen.tiny  # no copy: only where it was built is an environment found again
    shutil.rmtree(tiny.root / "data/state")
    assert tiny.succeed("validate", "--same-day", "--json").json()["classes"] == {"valid": 2, "no_signal": 1}
