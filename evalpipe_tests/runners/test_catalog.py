"""The catalog has the runners that a configuration may name, and what is frozen of one makes the same runner again."""

from __future__ import annotations

from typing import get_args

import pytest

from evalpipe.config import RunnerConfig
from evalpipe.config.runner import RunnerName
from evalpipe.runners.catalog import RunnerSettings, command_by_hand, make_runner
from evalpipe.tasks import RunnerSpec

GENERIC = {
    "command": "make test",
    "report_format": "junit",
    "reports": ["build/*.xml"],
    "canary": {"file": "tests/canary.sh", "text": "exit 1", "test_id": "canary"},
}


@pytest.mark.parametrize("name", get_args(RunnerName))
def test_a_runner_is_made_of_its_configuration_and_again_of_what_is_frozen(name: str) -> None:
    fields = GENERIC if name == "generic" else {"arguments": ["--one", "two words"]}
    config = RunnerConfig.model_validate({"name": name, **fields})
    runner = make_runner(RunnerSettings(**config.model_dump(exclude={"prepare"})))
    assert runner.name == name
    frozen = RunnerSpec.model_validate_json(RunnerSpec(**config.model_dump()).model_dump_json())
    assert RunnerConfig(**frozen.model_dump()) == config


def test_a_generic_runner_that_lacks_something_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a command, a report format and a canary"):
        make_runner(RunnerSettings(name="generic", command="make test"))


@pytest.mark.parametrize("name", get_args(RunnerName))
def test_every_suite_has_a_command_that_a_person_can_type(name: str) -> None:
    fields = GENERIC if name == "generic" else {"arguments": ["--one", "two words"]}
    config = RunnerConfig.model_validate({"name": name, **fields})
    command = command_by_hand(RunnerSettings(**config.model_dump(exclude={"prepare"})), ("npm run build",))
    assert command.startswith("npm run build && ")
    assert command.endswith("make test" if name == "generic" else " --one 'two words'")


def test_the_commands_of_the_common_runners() -> None:
    found = {name: command_by_hand(RunnerSettings(name=name)) for name in ("pytest", "unittest", "go", "cargo", "jest")}
    assert found == {
        "pytest": "python3 -m pytest",
        "unittest": "python3 -m unittest discover",
        "go": "go test ./...",
        "cargo": "cargo test",
        "jest": "npx jest",
    }
