"""A backfill of one agent through the real daemon, what the UI then says of its partitions, and a quarter's rerun."""

from collections import Counter
from collections.abc import Callable, Sequence

import pyarrow.parquet as pq
import pytest

from evalpipe.pipeline.partitions import RANGE_END, RANGE_START
from evalpipe.pipeline.schedules import RERUN_OF
from evalpipe.tasks import load_task_set
from evalpipe_tests.pipeline.daemon import TERMINATE, Ui, running
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace, processes_in, wait_until

Copied = Callable[[Walk], TinyWorkspace]
ATTEMPTS, GRADES = ["small", "half", "agent_runs"], ["small", "half", "graded_results"]
START = """
mutation($s: SensorSelector!) { startSensor(sensorSelector: $s) {
  __typename ... on Sensor { name } ... on PythonError { message } } }
"""
RUNS = "{ runsOrError { ... on Runs { results { jobName status } } } }"


@pytest.mark.slow
@pytest.mark.timeout(590)
def test_a_backfill_of_one_agent_and_a_rerun_of_its_sweep(copied: Copied, begun: Walk) -> None:
    """A run that is cancelled in the middle, what is missing then, and the grades; then a rerun of the whole sweep.

    One test, because Dagster takes its time to start.
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
        _a_sensor_carries_a_rerun_from_its_calibration_to_its_attempts(ui, tasks)
        assert ui.partitions(["small", "reference", "agent_runs"]) == (4, 4, 0)


def _a_sensor_carries_a_rerun_from_its_calibration_to_its_attempts(ui: Ui, tasks: Sequence[str]) -> None:
    """One link of the chain: a sensor that is switched on takes it from one job to the next."""
    name = "small__attempts_after_calibration"
    selector = {"sensorName": name, "repositoryName": "__repository__", "repositoryLocationName": "evalpipe"}

    def runs() -> Counter[tuple[str, str]]:
        found = ui.ask(RUNS, {})["runsOrError"]["results"]
        return Counter((run["jobName"], run["status"]) for run in found)

    assert ui.ask(START, {"s": selector})["startSensor"]["__typename"] == "Sensor"
    before = runs()
    # What the schedule asks for on its day.
    ui.launch("calibrate_tiny", {RANGE_START: tasks[0], RANGE_END: tasks[-1], RERUN_OF: "small"})
    both = Counter((job, "SUCCESS") for job in ("calibrate_tiny", "small__agent_runs"))
    wait_until(lambda: runs() - before == both, "each of the two jobs ran once", 200)
