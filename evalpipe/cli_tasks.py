"""`evalpipe prompts …`, `evalpipe freeze` and `evalpipe tasks …`. Like `cli`, it imports what it needs when it runs."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalpipe import console
from evalpipe.cli_workspace import FAILED, WRONG_USE, chosen_repositories, fail, open_bench, open_driver

if TYPE_CHECKING:
    from evalpipe.stages.task_set_checks import SetComparison, SetReport
    from evalpipe.tasks import LoadedTaskSet

_SHOWN_CHARACTERS = 200


@click.command()
@click.argument("name")
@click.argument("repositories", nargs=-1, metavar="[REPOSITORY]...")
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Only a sample of N tasks, drawn by --seed.")
@click.option("--seed", type=int, metavar="S", help="The number that decides which tasks the sample has.")
@click.option("--provisional", is_flag=True, help="Admit tasks of which both passes ran on one day.")
@click.pass_obj
def freeze(
    workspace: Path | None,
    name: str,
    repositories: Sequence[str],
    sample: int | None,
    seed: int | None,
    provisional: bool,
) -> None:
    """Freeze the valid candidates as the task set NAME: all of them, or a sample by category and quarter."""
    from evalpipe.config.values import SLUG_RULE, is_slug
    from evalpipe.tasks import Sampling, load_task_set

    if not is_slug(name):
        fail(f"{name!r} cannot name a task set, because no sweep could: use {SLUG_RULE}", WRONG_USE)
    if (sample is None) != (seed is None):
        fail("--sample and --seed go together: the same candidates and the same seed give the same sample", WRONG_USE)
    bench = open_bench(workspace)
    chosen = chosen_repositories(bench, repositories)
    sampling = None if sample is None or seed is None else Sampling(sample, seed)
    left_out = open_driver(bench).freeze(
        name, [config.name for config in chosen], provisional=provisional, sampling=sampling
    )
    loaded = load_task_set(bench.workspace.task_sets_dir / name)
    record = loaded.record
    mark = ", provisional: both validation passes of some tasks ran on one day" if record.provisional else ""
    click.echo(f"task set {name}: {len(record.tasks)} tasks, revision {record.revision}{mark}")
    click.echo(f"rule: {record.selection_rule}")
    counts = ", ".join(f"{count} {reason}" for reason, count in left_out["counts"].items())
    click.echo(f"left out: {counts or 'no candidate'}")
    for one in left_out["candidates"]:
        click.echo(f"  {one['candidate']}: {one['reason']}: {one['detail']}")
    for line in _prompt_lines(loaded):
        click.echo(line)


def _prompt_lines(loaded: "LoadedTaskSet") -> list[str]:
    """What a reader of a set's prompts should know: what originals give away, and what no text tells."""
    problems = {task_id: task.problem for task_id, task in loaded.tasks.items()}
    telling = [
        task_id for task_id, found in problems.items() if any(one.mode == "original" for one in found.lint or ())
    ]
    lines = []
    if telling:
        lines.append(f"original texts that name something of their change: {len(telling)} of {len(problems)} (`lint`)")
    undecided = {task_id: found.undecided_criteria for task_id, found in problems.items() if found.undecided_criteria}
    if undecided:
        count = sum(map(len, undecided.values()))
        lines.append(f"undecided: {count} values that tests of {len(undecided)} tasks ask for and no text tells")
        lines += [f"  {task_id}: {_shown(list(values))}" for task_id, values in undecided.items()]
        lines.append("`evalpipe prompts draft` with the name of the next set lists them, to be accepted or dropped")
    return lines


@click.group()
def prompts() -> None:
    """The texts that agents get: terse ones, and acceptance criteria."""


@prompts.command()
@click.argument("name")
@click.argument("repositories", nargs=-1, metavar="[REPOSITORY]...")
@click.option("--provider", metavar="NAME", help="Let a model of this provider write the terse texts; needs --model.")
@click.option("--model", metavar="MODEL", help="The model, as its provider names it.")
@click.pass_obj
def draft(
    workspace: Path | None, name: str, repositories: Sequence[str], provider: str | None, model: str | None
) -> None:
    """Propose terse texts and acceptance criteria for the task set NAME, before it is frozen.

    They are files below data/task_sets/NAME/, to be edited and reviewed: terse/TASK.md from the title of each issue, or
    by a model that sees the issue alone, criteria/TASK.yaml with what its tests ask for and nothing tells. What is
    there already is kept, and a text that names the answer is not written.
    """
    from evalpipe.config.values import SLUG_RULE, is_slug
    from evalpipe.stages.attempt_tally import dollars
    from evalpipe.stages.drafting import draft_prompts, model_writer

    if not is_slug(name):
        fail(f"{name!r} cannot name a task set, because no sweep could: use {SLUG_RULE}", WRONG_USE)
    if (provider is None) != (model is None):
        fail("--provider and --model go together", WRONG_USE)
    bench = open_bench(workspace)
    chosen = chosen_repositories(bench, repositories)
    if provider is None or model is None:
        drafts = draft_prompts(bench, name, chosen)
    else:
        with model_writer(bench, provider, model) as (write, attempt):
            drafts = draft_prompts(bench, name, chosen, write)
            used = attempt.progress()
        cost = "cost not known" if used.cost_usd is None else dollars(float(used.cost_usd))
        console.note(f"{model}: {used.calls} calls, {used.usage.total:,} tokens, {cost}")
    for one in drafts:
        click.echo(f"{one.task_id}: terse text {one.terse.value}{f' ({one.detail})' if one.detail else ''}")
        if one.undecided:
            click.echo(f"  undecided: {_shown(list(one.undecided))}")
        if one.original_names:
            click.echo(f"  its original text names {', '.join(one.original_names)}")
    undecided = sum(len(one.undecided) for one in drafts)
    click.echo(f"{len(drafts)} tasks, {undecided} undecided criteria: {bench.workspace.task_sets_dir / name}")
    console.note(f"next: edit the files there, commit them, then `evalpipe freeze {name}`")


@click.group()
def tasks() -> None:
    """The tasks of a team: sets that were frozen, and tasks that its history does not hold."""


@tasks.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
def add(workspace: Path | None, file: Path) -> None:
    """Bring in a task that the history does not hold: FILE, with its patches beside it; docs/task-sets.md shows one.

    It is kept below data/tasks/, for the team to commit, and is from now on a candidate like those of the history.
    """
    from evalpipe.stages.adding import add_task

    bench = open_bench(workspace)
    task, candidate_id = add_task(bench, file.absolute())
    repository = task.config.repository
    open_driver(bench).mine([bench.workspace.load_repository(repository)])
    click.echo(f"candidate {candidate_id}, kept in data/tasks/{repository}/{task.config.id}/")
    console.note(f"next: evalpipe validate {repository}, and again on another day")


@tasks.command()
@click.argument("name")
@click.option("--against", metavar="OTHER", help="Also say which tasks were added, dropped or changed since OTHER.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines on the output stream.")
@click.pass_obj
def check(workspace: Path | None, name: str, against: str | None, as_json: bool) -> None:
    """Check the frozen task set NAME: its files, its hashes, and its patches against git.

    Ends with 1 when anything is wrong; what cannot be checked on this machine is a note.
    """
    from evalpipe.stages.task_set_checks import check_task_set, compare_task_sets

    bench = open_bench(workspace)
    report = check_task_set(bench, name)
    comparison = compare_task_sets(bench, name, against) if against else None
    if as_json:
        click.echo(json.dumps(_check_document(report, comparison)))
    else:
        for problem in report.problems:
            click.echo(f"{problem.kind.value}: {problem.text}")
        if comparison is not None:
            click.echo(_comparison_text(comparison))
        found = "in order" if not report.problems else f"{len(report.problems)} problems"
        click.echo(f"task set {name}: {report.tasks} tasks, revision {report.revision or 'unknown'}: {found}")
        for text in report.notes:
            console.note(f"note: {text}")
    if report.problems:
        sys.exit(FAILED)


def _check_document(report: "SetReport", comparison: "SetComparison | None") -> dict[str, Any]:
    from dataclasses import asdict

    problems = [{"kind": one.kind.value, "task_id": one.task_id, "text": one.text} for one in report.problems]
    document = {**asdict(report), "problems": problems}
    return document | ({"comparison": asdict(comparison)} if comparison is not None else {})


def _comparison_text(comparison: "SetComparison") -> str:
    lines = [f"against {comparison.against}:"]
    lines += [f"  added {task_id}" for task_id in comparison.added]
    lines += [f"  dropped {task_id}" for task_id in comparison.dropped]
    for task_id, changes in comparison.changed.items():
        lines.append(f"  changed {task_id}")
        lines += [f"    {one.path}: {_shown(one.before)} -> {_shown(one.after)}" for one in changes]
    return "\n".join(lines) if len(lines) > 1 else f"against {comparison.against}: the same tasks"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}… ({len(text)} characters)"
