"""Assets of each sweep: for every agent its attempts and their grades. One factory, fed by the YAML files."""

import datetime as dt
from collections import Counter
from collections.abc import Sequence

import dagster as dg
from pydantic import Field

from evalpipe.agents import OUTCOME_RULES, AttemptOutcome
from evalpipe.config import AgentConfig, SweepConfig, digest
from evalpipe.grading import limits_of
from evalpipe.lake import Row
from evalpipe.pipeline.batch import BatchResults, PartitionDone, PartitionFailed, end_batch, run_batch
from evalpipe.pipeline.columns import columns_of
from evalpipe.pipeline.history_assets import Bench
from evalpipe.pipeline.jobs import dagster_name
from evalpipe.pipeline.metadata import attempt_metadata, verdict_metadata
from evalpipe.pipeline.partitions import keys_of_run, partitions_of_a_run, sample_partitions
from evalpipe.pipeline.pools import BOXES, agent_pool
from evalpipe.pipeline.task_set_assets import TaskSetAssets
from evalpipe.sandbox import DiskFull
from evalpipe.stages.agent_programs import adapter_for, installed_program
from evalpipe.stages.attempt_tally import AttemptTally
from evalpipe.stages.attempts import run_sample
from evalpipe.stages.bench import Workbench
from evalpipe.stages.calibrating import calibration_rows, is_calibrated
from evalpipe.stages.gradings import grade_sample
from evalpipe.stages.model_access import open_model_access
from evalpipe.stages.probing import ProbeFailed, probe_images, probe_records
from evalpipe.stages.sweeps import AgentSweep, SampleChoice, SampleKey, open_agent_sweep, record_manifests

REGRADED_FROM = "evalpipe/regraded_from"
"""On a run that grades again what was graded before this time (ISO 8601, UTC)."""


class AttemptOptions(dg.Config):
    """Run configuration of agent_runs: of the run's partitions only those of `tasks` and `samples`; empty is all."""

    tasks: list[str] = Field(default=[])
    samples: list[str] = Field(default=[])

    @property
    def choice(self) -> SampleChoice:
        return SampleChoice(tuple(self.tasks), tuple(self.samples))


def group_of(sweep: str, agent: str | None = None) -> str:
    """Dagster's group of an agent in a sweep, or of the sweep's reports.

    The graph of the UI shows the last part of an asset's key alone, which every agent has: the group tells them apart.
    Groups are listed by name, and these names put them in the order of the pipeline.
    """
    group = f"sweep_{dagster_name(sweep)}"
    return f"{group}_report" if agent is None else f"{group}__{dagster_name(agent)}"


def agent_assets(sweep: SweepConfig, agent: AgentConfig, of_set: TaskSetAssets) -> list[dg.AssetsDefinition]:
    """The two assets of one agent in one sweep: agent_runs and graded_results, partitioned by task and sample."""
    partitions = sample_partitions(sweep, of_set.tasks)
    attempts_of_a_run = partitions_of_a_run(sweep.limits.timeout_s)
    grades_of_a_run = partitions_of_a_run(max(limits_of(task).timeout_s for task in of_set.task_set.tasks.values()))
    # Two different sizes: stages with equal partitions and equal policies share a run, and then one failed attempt
    # would stop the grading of its whole batch.
    grades_of_a_run += grades_of_a_run == attempts_of_a_run
    attempts = _agent_runs(sweep, agent, of_set, partitions, attempts_of_a_run)
    return [attempts, _graded_results(sweep, agent, attempts, partitions, grades_of_a_run)]


def _agent_runs(
    sweep: SweepConfig,
    agent: AgentConfig,
    of_set: TaskSetAssets,
    partitions: dg.MultiPartitionsDefinition,
    partitions_of_run: int,
) -> dg.AssetsDefinition:
    @dg.asset(
        key=[sweep.name, agent.name, "agent_runs"],
        group_name=group_of(sweep.name, agent.name),
        kinds={"docker", "parquet"},
        owners=sweep.owners,
        partitions_def=partitions,
        deps=[of_set.frozen, of_set.calibration],
        backfill_policy=dg.BackfillPolicy.multi_run(partitions_of_run),
        code_version=digest(agent),
        output_required=False,
        pool=agent_pool(agent.name),
        metadata=columns_of("agent_runs"),
        description=f"Attempts of {_in_words(agent)}. What is finished is never repeated.",
    )
    def agent_runs(context: dg.AssetExecutionContext, config: AttemptOptions, bench: Bench) -> BatchResults:
        part = open_agent_sweep(bench, sweep, agent, context.run.run_id)
        adapter = adapter_for(bench, agent, part.task_set)
        _require_sandbox(bench, part)
        tally = AttemptTally()
        with open_model_access(bench, sweep, agent) as access:
            program = installed_program(bench, agent, part.task_set.tasks.values())
            probes = probe_records(_require_probe(bench, part, {"run": context.run.run_id}))
            record_manifests(bench, part, probes, program)

            def work(key: str, labels: dict[str, str]) -> PartitionDone:
                sample = _sample_key(key)
                _require_calibration(bench, part, sample.task_id)
                with tally.running():
                    row, new = run_sample(bench, part, adapter, sample, context.run.run_id, labels, access)
                tally.add(row, new=new)
                return _attempted(bench, row)

            keys = [key for key in keys_of_run(context) if config.choice.has(_sample_key(key))]
            workers = bench.boxes_at_once([part.limits()])
            failed = run_batch(context, bench, keys, work, workers=workers, note=tally.text)
        yield from end_batch(context, failed, len(keys))

    return agent_runs


def _graded_results(
    sweep: SweepConfig,
    agent: AgentConfig,
    attempts: dg.AssetsDefinition,
    partitions: dg.MultiPartitionsDefinition,
    partitions_of_run: int,
) -> dg.AssetsDefinition:
    @dg.asset(
        key=[sweep.name, agent.name, "graded_results"],
        group_name=group_of(sweep.name, agent.name),
        kinds={"docker", "parquet"},
        owners=sweep.owners,
        partitions_def=partitions,
        deps=[attempts],
        backfill_policy=dg.BackfillPolicy.multi_run(partitions_of_run),
        output_required=False,
        pool=BOXES,
        metadata=columns_of("graded_results"),
        description=f"Verdicts on the attempts of {_in_words(agent)}, with the evidence of each test. Runs no agent.",
    )
    def graded_results(context: dg.AssetExecutionContext, bench: Bench) -> BatchResults:
        part = open_agent_sweep(bench, sweep, agent, context.run.run_id)
        regraded_from = context.run.tags.get(REGRADED_FROM)
        not_before = dt.datetime.fromisoformat(regraded_from) if regraded_from else None
        verdicts: Counter[str] = Counter()

        def work(key: str, labels: dict[str, str]) -> PartitionDone:
            row, _ = grade_sample(bench, part, _sample_key(key), labels, not_before=not_before)
            verdicts[row["verdict"]] += 1
            metadata = verdict_metadata(bench.report_path(sweep.name), row)
            return PartitionDone(f"{row['attempt_id']}:{row['verdict']}", metadata)

        keys = keys_of_run(context)
        workers = bench.boxes_at_once(map(limits_of, part.task_set.tasks.values()))
        failed = run_batch(context, bench, keys, work, workers=workers)
        context.log.info(f"verdicts: {dict(verdicts)}")
        yield from end_batch(context, failed, len(keys))

    return graded_results


def _attempted(bench: Workbench, row: Row) -> PartitionDone:
    """What a partition says of the attempt that stands for it. Raises PartitionFailed where none counts."""
    outcome = AttemptOutcome(row["outcome"])
    if outcome is AttemptOutcome.DISK_FULL:
        raise DiskFull(row["outcome_detail"])
    if not OUTCOME_RULES[outcome].counts:
        raise PartitionFailed(f"{outcome.value}: {row['outcome_detail']}")
    return PartitionDone(f"{row['attempt_id']}:{row['patch_sha256']}", attempt_metadata(bench.lake, row))


def graded_keys(sweep: SweepConfig) -> Sequence[dg.AssetKey]:
    """Keys of the graded results of every agent of a sweep."""
    return [dg.AssetKey([sweep.name, agent, "graded_results"]) for agent in sweep.agents]


def _in_words(agent: AgentConfig) -> str:
    """An agent as a reader of the UI would ask for it."""
    said = f"{agent.name} ({agent.description})" if agent.description else f"{agent.name} ({agent.adapter})"
    if agent.model == "none":
        return said
    return f"{said}: {agent.scaffold} {agent.scaffold_version} with {agent.model} {agent.model_version}"


def _sample_key(key: str) -> SampleKey:
    sample, _, task_id = key.partition("|")
    return SampleKey.parse(task_id, sample)


def _require_sandbox(bench: Workbench, part: AgentSweep) -> None:
    # Before a manifest is written: one of another sandbox would be the newest, and hide the results that are there.
    validated_in = {task.environment.sandbox for task in part.task_set.tasks.values()}
    if validated_in != {bench.sandbox.name}:
        names = ", ".join(sorted(validated_in))
        raise dg.Failure(
            f"the tasks of {part.task_set.record.name} were validated in the sandbox {names}, and here it is "
            f"{bench.sandbox.name}: set EVALPIPE_SANDBOX={names} (docker needs an engine that answers), or validate "
            f"and freeze again",
            allow_retries=False,
        )


def _require_probe(bench: Workbench, part: AgentSweep, labels: dict[str, str]) -> list[Row]:
    try:
        return probe_images(bench, part, labels)
    except ProbeFailed as error:
        raise dg.Failure(str(error), allow_retries=False) from error


def _require_calibration(bench: Workbench, part: AgentSweep, task_id: str) -> None:
    # In code as well as by the blocking check: a check blocks only within its own run.
    rows = calibration_rows(bench, part.task_set, task_id)
    if not rows:
        raise PartitionFailed(
            f"{task_id} is not calibrated: `evalpipe run {part.sweep.name}` does that first, or materialize calibration"
        )
    if not is_calibrated(rows):
        raise PartitionFailed(f"{task_id} failed its calibration: its reference or the empty patch was misjudged")
