"""A quarter's rerun as the daemon carries it: a sensor that is switched on takes it from one job to the next."""

from collections import Counter
from collections.abc import Callable

import pytest

from evalpipe.pipeline.partitions import RANGE_END, RANGE_START
from evalpipe.pipeline.schedules import RERUN_OF
from evalpipe.tasks import load_task_set
from evalpipe_tests.pipeline.daemon import running
from evalpipe_tests.pipeline.stations import Walk
from evalpipe_tests.pipeline.workspaces import TinyWorkspace, wait_until

Copied = Callable[[Walk], TinyWorkspace]

START = """
mutation($s: SensorSelector!) { startSensor(sensorSelector: $s) {
  __typename ... on Sensor { name } ... on PythonError { message } } }
"""
RUNS = "{ runsOrError { ... on Runs { results { jobName status } } } }"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_sensor_carries_a_rerun_from_its_calibration_to_its_attempts(copied: Copied, finished: Walk) -> None:
    """All attempts are made already, so no agent runs. One link of the chain: each takes half a minute of waiting."""
    tiny = copied(finished)
    tasks = list(load_task_set(tiny.workspace.task_sets_dir / "tiny").tasks)
    name = "small__attempts_after_calibration"
    selector = {"sensorName": name, "repositoryName": "__repository__", "repositoryLocationName": "evalpipe"}
    with running(tiny) as ui:

        def runs() -> Counter[tuple[str, str]]:
            found = ui.ask(RUNS, {})["runsOrError"]["results"]
            return Counter((run["jobName"], run["status"]) for run in found)

        assert ui.ask(START, {"s": selector})["startSensor"]["__typename"] == "Sensor"
        before = runs()
        # What the schedule asks for on its day.
        ui.launch("calibrate_tiny", {RANGE_START: tasks[0], RANGE_END: tasks[-1], RERUN_OF: "small"})
        both = Counter((job, "SUCCESS") for job in ("calibrate_tiny", "small__agent_runs"))
        wait_until(lambda: runs() - before == both, "each of the two jobs ran once", 200)
