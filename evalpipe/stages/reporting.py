"""Stage of the reports: gathers what a sweep left in the lake into one record for `reports`."""

import datetime as dt
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from evalpipe.agents import AttemptOutcome
from evalpipe.config import AgentConfig, SweepConfig
from evalpipe.lake import SCHEMAS, BlobError
from evalpipe.reports import AgentInfo, AgentRole, SweepResults, TaskInfo, html_report
from evalpipe.reports.forms import report_markdown, table_files
from evalpipe.reports.records import LeftOutCandidate, Prices
from evalpipe.reports.task_pages import transcript_file
from evalpipe.reports.usage import changed_lines
from evalpipe.stages.bench import Workbench
from evalpipe.stages.calibrating import calibration_rows
from evalpipe.stages.mining import stored_mining_funnel, stored_validation_funnel
from evalpipe.stages.sweeps import (
    AgentSweep,
    agents_as_run,
    find_agent_sweep,
    load_sweep_task_set,
    sample_keys,
)
from evalpipe.tasks import LoadedTaskSet, Task
from evalpipe.validation import ValidationClass


def gather_results(bench: Workbench, sweep: SweepConfig, agents: dict[str, AgentConfig]) -> SweepResults:
    """Read the graded rows of a sweep's present configurations, with all that a report says about them.

    An archived sweep is read as it was run the last time. Runs nothing. Raises TaskSetError, ManifestError, LakeError.
    """
    task_set = load_sweep_task_set(bench, sweep)
    repositories = sorted({task.repository for task in task_set.tasks.values()})
    agents = agents_as_run(bench, sweep, task_set, agents)
    parts = [find_agent_sweep(bench, sweep, agents[name], task_set) for name in sweep.agents]
    calibration = [row for task_id in task_set.tasks for row in calibration_rows(bench, task_set, task_id)]
    rows = _graded(bench, parts, task_set)
    # What the budget stopped was never begun: it is missing, and no fault of anything.
    stopped = pc.equal(rows["outcome"], pa.scalar(AttemptOutcome.BUDGET_STOP.value))
    graded = rows.filter(pc.invert(stopped))
    bench.lake.blobs.fetch([*_digests(graded, "patch_sha256"), *_digests(graded, "transcript_sha256")])
    patch_lines, lost = _patch_lines(bench, graded)
    public = {config.name for config in bench.workspace.load_repositories().items.values() if config.public}
    return SweepResults(
        sweep=sweep.name,
        decision=sweep.decision,
        task_set=task_set.record.name,
        revision=task_set.record.revision,
        selection_rule=task_set.record.selection_rule,
        provisional=task_set.record.provisional,
        tasks=tuple(_task_info(task_set, task, public) for task in task_set.tasks.values()),
        agents=tuple(_agent_info(agents[name], sweep.cutoffs.get(name)) for name in sweep.agents),
        samples_per_task=sweep.samples,
        modes=tuple(sweep.modes),
        weights={str(category): weight for category, weight in sweep.weights.items()} if sweep.weights else None,
        comparisons=sweep.comparisons,
        graded=graded,
        budget_stops=Counter(map(str, rows.filter(stopped)["agent"].to_pylist())),
        manifests={(part.agent.name, mode.value): part.manifests[mode] for part in parts for mode in part.manifests},
        mining=tuple(stored_mining_funnel(bench, repositories)),
        validation=tuple(stored_validation_funnel(bench, repositories)),
        calibration=pa.Table.from_pylist(calibration, schema=SCHEMAS["calibration"]),
        smallest_difference=sweep.smallest_difference,
        prices=Prices(sweep.currency or "USD", sweep.usd_rate or 1.0, sweep.region or ""),
        left_out=_left_out(bench, repositories, task_set),
        patch_lines=patch_lines,
        lost_patches=lost,
        transcripts=frozenset(
            digest for digest in _digests(graded, "transcript_sha256") if bench.lake.blobs.path(digest).exists()
        ),
        read_blob=bench.lake.blobs.get,
    )


def write_report(bench: Workbench, folder: Path, results: SweepResults) -> Path:
    """Write the report, its tables as Markdown, Parquet and CSV, and the transcripts that it links into `folder`.

    Returns the path of the report.
    """
    place = folder.relative_to(bench.lake.root).parts
    path = bench.lake.write_document(html_report(results).encode(), *place, "report.html")
    bench.lake.write_document(report_markdown(results).encode(), *place, "report.md")
    tables = table_files(results)
    for name, content in tables.items():
        bench.lake.write_document(content, *place, "tables", name)
    # A table that has no rows any more would tell of earlier results.
    for file in bench.lake.folder.files(folder / "tables"):
        if file.name not in tables:
            bench.lake.folder.remove(file)
    _lay_out_transcripts(bench, folder / Path(transcript_file("")).parent, results.transcripts)
    return path


def _lay_out_transcripts(bench: Workbench, folder: Path, digests: frozenset[str]) -> None:
    """Make `folder` hold these transcripts and no others."""
    # As .txt, because a browser takes a file without a name for what its agent wrote it to look like.
    wanted = {Path(transcript_file(digest)).name: bench.lake.blobs.path(digest) for digest in digests}
    there = {path.name: path for path in bench.lake.folder.files(folder)}
    for name in there.keys() - wanted.keys():
        bench.lake.folder.remove(there[name])
    if wanted:
        folder.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        if (folder / name).exists():
            continue
        try:
            # A second name for the same bytes, which then take no room twice, and which nobody is to edit.
            (folder / name).hardlink_to(wanted[name])
            (folder / name).chmod(0o444)
        except OSError:
            shutil.copyfile(wanted[name], folder / name)
    bench.lake.folder.add(folder)


def _graded(bench: Workbench, parts: list[AgentSweep], task_set: LoadedTaskSet) -> pa.Table:
    """Rows of the present configurations and of the samples that the sweep asks for, and no others."""
    tables = [SCHEMAS["graded_results"].empty_table()]
    for part in parts:
        asked = {(key.task_id, key.sample) for key in sample_keys(part.sweep, task_set)}
        for mode in part.manifests:
            table = bench.lake.read("graded_results", part.sweep.name, part.agent.name, part.configuration(mode))
            samples = zip(table["task_id"].to_pylist(), table["sample"].to_pylist(), strict=True)
            tables.append(table.filter(pa.array([sample in asked for sample in samples], pa.bool_())))
    return pa.concat_tables(tables)


def _patch_lines(bench: Workbench, graded: pa.Table) -> tuple[dict[str, int], frozenset[str]]:
    """The lines that each patch changes, and the patches that the lake cannot give back."""
    lines, lost = {}, set()
    for digest in _digests(graded, "patch_sha256"):
        try:
            lines[digest] = changed_lines(bench.lake.blobs.get(digest))
        except BlobError:
            lost.add(digest)
    return lines, frozenset(lost)


def _digests(graded: pa.Table, column: str) -> list[str]:
    return [str(digest) for digest in graded[column].drop_null().unique().to_pylist()]


def _left_out(bench: Workbench, repositories: list[str], task_set: LoadedTaskSet) -> tuple[LeftOutCandidate, ...]:
    """The validated candidates that are no task of the set."""
    return tuple(
        LeftOutCandidate(
            candidate_id=row["candidate_id"],
            repository=name,
            reason=row["validation_class"],
            detail=row["evidence"] if row["validation_class"] != ValidationClass.VALID else "not in this set",
        )
        for name in repositories
        for row in bench.lake.rows("validated_tasks", name)
        if row["candidate_id"] not in task_set.tasks
    )


def _task_info(task_set: LoadedTaskSet, task: Task, public: set[str]) -> TaskInfo:
    return TaskInfo(
        task_id=task.task_id,
        title=task.title,
        category=task.category,
        repository=task.repository,
        merge_date=dt.datetime.fromisoformat(task.merge_date).date(),
        provisional=task.provisional,
        validated_on=tuple(dt.date.fromisoformat(day) for day in task.validated_on),
        digest=task_set.digests[task.task_id],
        prompts={mode.value: text for mode, text in task.problem.texts().items()},
        fail_to_pass=task.fail_to_pass,
        pass_to_pass=len(task.pass_to_pass),
        reference_lines=changed_lines(task_set.gold_patch(task.task_id)),
        public=task.repository in public,
    )


def _agent_info(agent: AgentConfig, cutoff: dt.date | None) -> AgentInfo:
    roles = {"reference": AgentRole.REFERENCE, "empty": AgentRole.EMPTY}
    return AgentInfo(
        name=agent.name,
        role=roles.get(agent.adapter, AgentRole.CONTENDER),
        scripted=agent.adapter == "scripted",
        model=agent.model,
        scaffold=agent.scaffold,
        training_cutoff=cutoff,
    )
