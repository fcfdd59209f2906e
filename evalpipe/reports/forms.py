"""The tables of a report in other forms: Markdown for a pull request, Parquet and CSV for a spreadsheet; and redacted.

A redacted report can leave the company: no code, no issue text, no transcript, no test names, ids replaced by numbers.
"""

import hashlib
import io
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from evalpipe.reports import wording
from evalpipe.reports.analysis import Analysis, analyse
from evalpipe.reports.cutoffs import cutoff_table
from evalpipe.reports.detail_tables import excluded_table, left_out_table, outcome_table, pair_table
from evalpipe.reports.gaps import gap_table
from evalpipe.reports.markdown import escaped, markdown_table, scoreboard_markdown
from evalpipe.reports.records import SweepResults
from evalpipe.reports.scoreboard import category_table, comparison_table, scoreboard_table
from evalpipe.reports.text_table import TextTable
from evalpipe.reports.usage import not_measured_note, price_note, usage_table

# What of a manifest may leave the company: nothing else does, so that a field that is new stays inside.
_SHOWN_OF_AGENT = (
    *("name", "adapter", "model", "model_version", "scaffold", "scaffold_version", "max_turns", "context_limit"),
    *("temperature", "max_tokens", "max_cost_usd", "retry_policy"),
)
_SHOWN_OF_ENVIRONMENT = (
    *("sandbox", "engine_version", "task_timeout_s", "network", "cpu_limit", "memory_limit", "pids_limit", "history"),
    *("silence_s", "count_rate_limit_waits"),
)
# What a spreadsheet would run as a formula.
_FORMULA = re.compile(r"^[=+\-@\t\r]")


def report_tables(results: SweepResults) -> dict[str, TextTable]:
    """Return every table of the report that has rows, by a name that can be a file's."""
    analysis = analyse(results)
    found = {
        "scoreboard": scoreboard_table(analysis),
        "comparisons": comparison_table(analysis),
        "solved_by": pair_table(analysis),
        "categories": category_table(analysis) if analysis.valid else TextTable((), ()),
        "prompt_gap": gap_table(analysis.gaps, analysis.gap_differences),
        "cutoffs": cutoff_table(analysis.cutoffs),
        "usage": usage_table(analysis.usage, results.prices),
        "outcomes": outcome_table(analysis),
        "excluded": excluded_table(analysis),
        "left_out": left_out_table(results, len(results.left_out)),
        "tasks": _task_table(analysis),
    }
    return {name: table for name, table in found.items() if table.rows}


def report_markdown(results: SweepResults) -> str:
    """Return the report for a pull request: decision, answer, and every table but those of single tasks."""
    tables = report_tables(results)
    parts = [f"# {escaped(wording.plain(results.decision, 500))}", scoreboard_markdown(results)]
    for name in ("solved_by", "categories", "prompt_gap", "cutoffs", "usage", "excluded"):
        if name in tables:
            parts += [f"## {name.replace('_', ' ').capitalize()}", markdown_table(tables[name])]
    note = f"{price_note(results.prices)} {not_measured_note(analyse(results).usage)}".rstrip()
    return "\n\n".join([*parts, escaped(note)]) + "\n"


def table_files(results: SweepResults) -> dict[str, bytes]:
    """Return every table as `<name>.parquet` and `<name>.csv`, by file name; all cells are text as in the report."""
    files = {}
    for name, table in report_tables(results).items():
        arrow, plain = _arrow(table, formulas=True), _arrow(table, formulas=False)
        parquet, csv = io.BytesIO(), io.BytesIO()
        pq.write_table(arrow, parquet)
        pacsv.write_csv(plain, csv)
        files[f"{name}.parquet"], files[f"{name}.csv"] = parquet.getvalue(), csv.getvalue()
    return files


def redacted(results: SweepResults) -> SweepResults:
    """Return the same results without code, issue text, test names and transcripts, and with ids replaced."""
    task_names = {task.task_id: f"task-{number:03}" for number, task in enumerate(results.tasks, 1)}
    repositories = sorted({task.repository for task in results.tasks})
    repository_names = {name: f"repository-{number}" for number, name in enumerate(repositories, 1)}
    tasks = tuple(
        replace(
            task,
            task_id=task_names[task.task_id],
            title=task_names[task.task_id],
            repository=repository_names[task.repository],
            digest="",
            prompts={},
            fail_to_pass=(),
        )
        for task in results.tasks
    )
    digests = results.graded["patch_sha256"].drop_null().unique().to_pylist()
    patch_names = {str(digest): f"patch-{number}" for number, digest in enumerate(digests, 1)}
    left_out = tuple(
        replace(
            one, candidate_id=f"candidate-{number:03}", repository=repository_names.get(one.repository, ""), detail=""
        )
        for number, one in enumerate(results.left_out, 1)
    )
    return replace(
        results,
        task_set="task set",
        revision="0" * 64,
        selection_rule="not shown",
        tasks=tasks,
        graded=_redacted_rows(results.graded, task_names, patch_names),
        calibration=_renamed(results.calibration, task_names),
        manifests={key: _redacted_manifest(manifest) for key, manifest in results.manifests.items()},
        left_out=left_out,
        patch_lines={
            patch_names[digest]: lines for digest, lines in results.patch_lines.items() if digest in patch_names
        },
        lost_patches=frozenset(patch_names[digest] for digest in results.lost_patches if digest in patch_names),
        transcripts=frozenset(),
        read_blob=None,
    )


def _redacted_manifest(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What the agent is, and how it was treated; of what all agents must share and nobody may see, a hash."""
    agent, environment = manifest.get("agent", {}), manifest.get("environment", {})
    hidden = {name: value for name, value in environment.items() if name not in _SHOWN_OF_ENVIRONMENT}
    shared = json.dumps([manifest.get("task_set"), hidden], sort_keys=True)
    return {
        "agent": {name: value for name, value in agent.items() if name in _SHOWN_OF_AGENT},
        "environment": {name: value for name, value in environment.items() if name in _SHOWN_OF_ENVIRONMENT},
        "samples_per_task": manifest.get("samples_per_task"),
        "not_shown": hashlib.sha256(shared.encode()).hexdigest()[:12],
    }


def _redacted_rows(graded: pa.Table, names: Mapping[str, str], patch_names: Mapping[str, str]) -> pa.Table:
    # A row of no task of the sweep cannot be named; it stays stray.
    renamed = _renamed(graded, names)
    edited = pc.list_value_length(graded["ignored_paths"]).to_pylist()
    reasons: list[Any] = graded["integrity_reasons"].to_pylist()
    hidden: dict[str, list[Any]] = {
        "detail": [""] * graded.num_rows,
        "attempt_id": [""] * graded.num_rows,
        "unmet_tests": [[]] * graded.num_rows,
        "style_output": [None] * graded.num_rows,
        "patch_sha256": [patch_names.get(str(digest)) for digest in graded["patch_sha256"].to_pylist()],
        "transcript_sha256": [None] * graded.num_rows,
        # How many attempts edited tests, and what kind of sign was seen, tells nothing of the code.
        "ignored_paths": [[b"path"] if number else [] for number in edited],
        "integrity_reasons": [[reason.split(":")[0] for reason in found] for found in reasons],
    }
    for name, values in hidden.items():
        place = renamed.schema.get_field_index(name)
        field = renamed.schema.field(place)
        renamed = renamed.set_column(place, field, pa.array(values, field.type))
    return renamed


def _renamed(table: pa.Table, names: Mapping[str, str]) -> pa.Table:
    place = table.schema.get_field_index("task_id")
    values = [names.get(str(task), "no task") for task in table["task_id"].to_pylist()]
    return table.set_column(place, table.schema.field(place), pa.array(values, pa.string()))


def _task_table(analysis: Analysis) -> TextTable:
    rows = tuple(
        (task.task_id, task.category, row.agent.name, row.mode, str(count.passes), str(count.samples))
        for task in analysis.results.tasks
        for row in analysis.agents
        if (analysis.valid or not row.agent.contends)
        and (count := analysis.samples.tallies[row.agent.name, row.mode].counts.get(task.task_id))
    )
    return TextTable(("task", "category", "agent", "mode", "resolved", "samples"), rows)


def _arrow(table: TextTable, *, formulas: bool) -> pa.Table:
    columns = [[row[number] for row in table.rows] for number in range(len(table.header))]
    if not formulas:
        columns = [[f"'{cell}" if _FORMULA.match(cell) else cell for cell in column] for column in columns]
    return pa.table([pa.array(column, pa.string()) for column in columns], names=list(table.header))
