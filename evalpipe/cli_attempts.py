"""`evalpipe run` and `evalpipe attempts …`: making attempts, and looking at those that were made."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalpipe import console
from evalpipe.cli_workspace import FAILED, WRONG_USE, fail, open_bench, open_driver, open_sweep, say_sandbox

if TYPE_CHECKING:
    from evalpipe.config import SweepConfig
    from evalpipe.stages.bench import Workbench
    from evalpipe.stages.sweeps import SampleChoice


@click.command()
@click.argument("sweep")
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only this agent; may be repeated.")
@click.option("--mode", type=click.Choice(["original", "terse"]), help="Only this prompt mode.")
@click.option("--tasks", metavar="ID[,ID...]", help="Only these tasks.")
@click.option("--pilot", is_flag=True, help="One sample over five tasks, spread over categories and time.")
@click.pass_obj
def run(
    workspace: Path | None, sweep: str, agents: Sequence[str], mode: str | None, tasks: str | None, pilot: bool
) -> None:
    """Run the agents of SWEEP on its tasks: calibration first, then every attempt that is missing."""
    bench, config, chosen = open_sweep(workspace, sweep, agents)
    choice = _choice(bench, config, mode, tasks, pilot=pilot)
    say_sandbox(bench)
    driver = open_driver(bench)
    driver.calibrate(config)
    try:
        driver.attempt(config, chosen, choice)
    finally:
        for line in _used(bench, sweep, chosen):
            console.note(line)
    part = " that was asked for" if choice.tasks or choice.samples else ""
    click.echo(f"{sweep}: every attempt of {', '.join(chosen)}{part} is made")
    console.note(f"next: evalpipe grade {sweep}")


def _choice(
    bench: "Workbench", sweep: "SweepConfig", mode: str | None, tasks: str | None, *, pilot: bool
) -> "SampleChoice":
    from evalpipe.stages.sweeps import SampleChoice, load_sweep_task_set, pilot_choice, sample_names
    from evalpipe.tasks import PromptMode

    if mode is not None and mode not in sweep.modes:
        fail(f"sweep {sweep.name} has no prompt mode {mode}: its modes are {', '.join(sweep.modes)}", WRONG_USE)
    task_set = load_sweep_task_set(bench, sweep)
    if pilot:
        if tasks is not None:
            fail("--pilot chooses its tasks itself: leave --tasks out", WRONG_USE)
        return pilot_choice(sweep, task_set, PromptMode(mode) if mode else None)
    wanted = tuple(name.strip() for name in (tasks or "").split(",") if name.strip())
    unknown = [name for name in wanted if name not in task_set.tasks]
    if unknown:
        fail(f"{', '.join(unknown)}: no tasks of {sweep.task_set}, which has {', '.join(task_set.tasks)}", WRONG_USE)
    samples = tuple(name for name in sample_names(sweep) if name.startswith(f"{mode}-")) if mode else ()
    return SampleChoice(wanted, samples)


def _used(bench: "Workbench", sweep: str, agents: Sequence[str]) -> list[str]:
    """What all attempts of each agent came to: one line an agent."""
    from evalpipe.stages.attempt_tally import AttemptTally

    columns = ["outcome", "model_calls", "input_tokens", "output_tokens", "cost_usd"]
    lines = []
    for agent in agents:
        tally = AttemptTally()
        for row in bench.lake.read("agent_runs", sweep, agent).select(columns).to_pylist():
            tally.add(row, new=True)
        if text := tally.text():
            lines.append(f"{agent}: {text}")
    return lines


@click.group()
def attempts() -> None:
    """The attempts that were made, one by one."""


@attempts.command(name="list")
@click.argument("sweep")
@click.option("--agent", metavar="NAME", help="Only this agent.")
@click.pass_obj
def list_(workspace: Path | None, sweep: str, agent: str | None) -> None:
    """Name every attempt of SWEEP with its outcome, invalid ones and those of other configurations too."""
    from evalpipe.stages.attempt_story import list_attempts
    from evalpipe.stages.attempt_tally import dollars

    rows = list_attempts(open_bench(workspace), sweep, agent)
    if not rows:
        fail(f"there is no attempt of {f'{agent} in ' if agent else ''}{sweep}")
    for row in rows:
        cost = "" if row["cost_usd"] is None else f" {dollars(row['cost_usd'])}"
        click.echo(f"{row['attempt_id']} {row['outcome']}{cost}")


@attempts.command()
@click.argument("attempt_id", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines on the output stream.")
@click.pass_obj
def show(workspace: Path | None, attempt_id: str, as_json: bool) -> None:
    """Tell the story of the attempt ID: its calls, how it ended, its patch, the end of its transcript, its grade."""
    from evalpipe.stages.attempt_story import attempt_story, story_text

    story = attempt_story(open_bench(workspace), attempt_id)
    if as_json:
        calls = [json.loads(call.as_line()) for call in story.calls]
        document = {"attempt": dict(story.attempt), "calls": calls, "grade": story.grade and dict(story.grade)}
        click.echo(json.dumps(document, default=str))
    else:
        click.echo(story_text(story))


@attempts.command()
@click.argument("attempt_id", metavar="ID")
@click.pass_obj
def replay(workspace: Path | None, attempt_id: str) -> None:
    """Make the attempt ID again from its recorded calls, and grade it again. No provider is asked, nothing is kept.

    Without recorded bodies (`record_bodies` of the sweep) its patch is graded again. Ends with 1 when anything differs.
    """
    from evalpipe.stages.attempt_story import attempt_story
    from evalpipe.stages.replaying import replay_attempt

    bench = open_bench(workspace)
    story = attempt_story(bench, attempt_id)
    say_sandbox(bench)
    found = replay_attempt(bench, bench.workspace.load_sweep(story.attempt["sweep"]), story.attempt)
    if found.again is None:
        click.echo("no bodies were recorded: its patch is graded again")
    else:
        click.echo(f"made again: {found.again.outcome}, was {story.attempt['outcome']}")
        click.echo(f"patch: {'the same' if found.same_patch else 'another one'}")
    before = story.grade["verdict"] if story.grade else None
    if found.verdict is not None:
        click.echo(f"graded again: {found.verdict}, was {before or 'not graded'}")
    same_outcome = found.again is None or found.again.outcome == story.attempt["outcome"]
    if not (same_outcome and found.same_patch and (before is None or found.verdict in (None, before))):
        sys.exit(FAILED)
