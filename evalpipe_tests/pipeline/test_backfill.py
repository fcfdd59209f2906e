"""A backfill of one agent through the real daemon, and what the UI then says of its partitions."""

from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

from evalpipe.tasks import load_task_set
from evalpipe_tests.pipeline.daemon import TERMINATE, running
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace, processes_in, wait_until

Copied = Callable[[Walk], TinyWorkspace]
ATTEMPTS, GRADES = ["small", "half", "agent_runs"], ["small", "half", "graded_results"]


@pytest.mark.slow
@pytest.mark.timeout(590)
def test_a_backfill_of_one_agent(copied: Copied, begun: Walk) -> None:
    """A run that is cancelled in the middle, what is missing then, and the grades.

    One test, because the daemon takes its time: it looks for backfills every 30 s.
    """
    tiny = copied(begun)
    tasks = list(load_task_set(tiny.workspace.task_sets_dir / "tiny").tasks)
    first, every = [f"original-1|{task}" for task in tasks], [f"original-{n}|{task}" for n in (1, 2) for task in tasks]
    before = tiny.gate.begun()
    with running(tiny) as ui:
        assert ui.partitions(ATTEMPTS) == (4, 0, 0)
        try:
            tiny.gate.hold_from(before)
            cancelled = ui.backfill(ATTEMPTS, first)
            # Of the two, one changes nothing and ends; the other waits.
            wait_until(lambda: ui.partitions(ATTEMPTS)[1] == 1 and tiny.gate.begun() > before, "one waits", 120)
            live = [run["id"] for run in ui.status(cancelled)["runs"] if run["status"] == "STARTED"]
            ui.ask(TERMINATE, {"r": live})
            wait_until(lambda: not processes_in(tiny.root), "the boxes of a cancelled run are killed", 15)
        finally:
            tiny.gate.open()
        assert ui.partitions(ATTEMPTS)[:2] == (4, 1)
        ui.backfill(ATTEMPTS, every)
        wait_until(lambda: ui.partitions(ATTEMPTS) == (4, 4, 0), "every attempt is made", 150)
        assert ui.partitions(GRADES) == (4, 0, 0)
        assert ui.wait(ui.backfill(GRADES, every), 200)["status"] == "COMPLETED_SUCCESS"
        assert ui.partitions(GRADES) == (4, 4, 0)
        for stage in ("agent_runs", "graded_results"):
            assert ui.partitions(["small", "reference", stage]) == (4, 0, 0)
    assert sorted(path.name for path in (tiny.lake / "agent_runs/small").iterdir()) == ["empty", "half"]
    verdicts = [
        row for path in (tiny.lake / "graded_results").rglob("*.parquet") for row in pq.read_table(path).to_pylist()
    ]
    assert {row["agent"] for row in verdicts} == {"half"}
    assert sorted(row["resolved"] for row in verdicts) == [False, False, True, True]
