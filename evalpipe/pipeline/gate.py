"""Runs a gate: the assets of one agent over a few tasks, with the code of every sweep and rows of its own."""

from collections.abc import Sequence
from dataclasses import replace

import dagster as dg

from evalpipe.config import SweepConfig
from evalpipe.pipeline.driver import Driver, JobFailed
from evalpipe.pipeline.jobs import sweep_job_name, sweep_jobs
from evalpipe.pipeline.partitions import RANGE_END, RANGE_START, checked_keys
from evalpipe.pipeline.sweep_assets import agent_assets
from evalpipe.pipeline.task_set_assets import task_set_assets
from evalpipe.stages.sweeps import sample_names


def run_gate(driver: Driver, gate: SweepConfig, tasks: Sequence[str]) -> list[str]:
    """Calibrate the set, make the attempts of a gate's sweep at `tasks`, as often as its agent may, and grade them.

    Returns why attempts stayed invalid; they are left out of the result. Raises JobFailed when what is there could not
    be graded.
    """
    agent = driver.workspace.load_agent(gate.agents[0])
    driver.calibrate(gate)
    of_set = task_set_assets(driver.workspace.task_sets_dir / gate.task_set, {})
    # The calibration is over the tasks of the whole set; to the assets of these few it is something that was done.
    done = dg.AssetsDefinition(specs=[dg.AssetSpec(of_set.calibration.key)])
    few = replace(of_set, tasks=dg.StaticPartitionsDefinition(checked_keys(tasks)), calibration=done)
    own = Driver(driver.bench)
    own.instance = driver.instance
    own.definitions = dg.Definitions(
        assets=[few.frozen, few.calibration, *agent_assets(gate, agent, few)],
        jobs=[job for job in sweep_jobs(gate) if job.name != sweep_job_name(gate.name, "report")],
        resources={"bench": driver.bench},
        executor=dg.in_process_executor,
    )
    samples = sample_names(gate)
    tags = {RANGE_START: f"{samples[0]}|{tasks[0]}", RANGE_END: f"{samples[-1]}|{tasks[-1]}"}
    reasons: list[str] = []
    for _ in range(agent.retry_policy.max_attempts):
        try:
            own.run(sweep_job_name(gate.name, "agent_runs"), tags=tags)
        except JobFailed as failed:
            reasons = failed.reasons
        else:
            reasons = []
            break
    own.run(sweep_job_name(gate.name, "graded_results"), tags=tags)
    return reasons
