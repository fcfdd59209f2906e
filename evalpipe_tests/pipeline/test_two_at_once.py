"""Two commands at once in one workspace: neither breaks the other, and together they do not overload the machine."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace, finish, killed_at_the_end, make_workspace, wait_until

pytestmark = pytest.mark.slow
Copied = Callable[[Walk], TinyWorkspace]

_OPEN = """
import sys
from pathlib import Path
from evalpipe.config import Workspace
from evalpipe.pipeline.driver import open_instance

print("ready", flush=True)
sys.stdin.readline()
with open_instance(Workspace(Path.cwd())):
    pass
"""


def test_the_first_commands_of_a_workspace_may_start_together(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Dagster's database is made by whoever comes first: without a lock most of them would find it half made."""
    tiny = make_workspace(tmp_path_factory.mktemp("fresh") / "workspace")
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _OPEN],
            cwd=tiny.root,
            env=tiny.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for _ in range(3)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    ended = [finish(process) for process in started]
    assert [one.code for one in ended] == [0, 0, 0], ended


def test_two_runs_at_once_share_one_machine(copied: Copied, begun: Walk) -> None:
    """A box fills the machine: while one of either run is held, the other run's waits, and then both go on."""
    tiny = copied(begun)
    tiny.change("data/sweeps/small.yaml", "cpus: 1", f"cpus: {os.cpu_count()}")
    before, room = tiny.gate.begun(), tiny.root / "data/state/room"
    tiny.gate.hold_from(before)

    def one_is_held_and_another_waits() -> bool:
        places = [len(list((room / state).glob("*"))) for state in ("running", "waiting")]
        return tiny.gate.begun() == before + 1 and places == [1, 1]

    try:
        with (
            killed_at_the_end(tiny.start("run", "small", "--agent", "reference")) as first,
            killed_at_the_end(tiny.start("run", "small", "--agent", "half")) as second,
        ):
            wait_until(one_is_held_and_another_waits, "a box is held, and another run's waits")
            tiny.gate.open()
            assert [finish(process).code for process in (first, second)] == [0, 0]
    finally:
        tiny.gate.open()
