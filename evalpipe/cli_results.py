"""Commands about results: what a sweep would show, its report, and how several sweeps compare."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalpipe.cli_workspace import WRONG_USE, fail, open_bench, open_driver, open_sweep

if TYPE_CHECKING:
    from evalpipe.reports.plan import SweepSize
    from evalpipe.stages.bench import Workbench

# Bounded, because infinity is no amount.
_AMOUNT = click.FloatRange(min=0, max=1e12)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines on the output stream.")


def _number(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("is not a number.", context, parameter)
    return value


@click.command()
@click.argument("sweep", required=False)
@click.option("--tasks", type=click.IntRange(min=1), help="Tasks; else those of SWEEP.")
@click.option("--samples", type=click.IntRange(min=1), help="Samples of each agent at each task; else those of SWEEP.")
@click.option("--agents", type=click.IntRange(min=1), help="Agents without the controls; else those of SWEEP, or two.")
@click.option("--minutes", type=_AMOUNT, callback=_number, help="Minutes of containers that one attempt takes.")
@click.option("--price", type=_AMOUNT, callback=_number, help="Price of one attempt, in any currency.")
@click.option("--pilot", metavar="SWEEP", help="A sweep with results, which says how tasks and costs spread.")
@_as_json
@click.pass_obj
def plan(
    workspace: Path | None,
    sweep: str | None,
    tasks: int | None,
    samples: int | None,
    agents: int | None,
    minutes: float | None,
    price: float | None,
    pilot: str | None,
    as_json: bool,
) -> None:
    """Say what difference a sweep can see, and what it takes, before it is run.

    Give --tasks and --samples, or the name of a configured SWEEP; options go before what it says.
    """
    from evalpipe.reports.plan import AttemptCost, plan_summary, plan_text, read_pilot

    known = None
    if pilot is not None:
        from evalpipe.pipeline.driver import known_sweep
        from evalpipe.stages.reporting import gather_results

        bench = open_bench(workspace)
        config = known_sweep(bench.workspace, pilot, even_archived=True)
        known = read_pilot(gather_results(bench, config, bench.workspace.load_agents().items))
    seconds = known.cost.seconds if known and minutes is None else minutes * 60 if minutes is not None else None
    measured = known.cost.price if known and price is None else price
    cost = AttemptCost(seconds, measured, known.cost.currency if known and price is None else "")
    found = plan_summary(_size(workspace, sweep, tasks, samples, agents), cost, known)
    click.echo(json.dumps(found, allow_nan=False) if as_json else plan_text(found))


def _size(
    workspace: Path | None, sweep: str | None, tasks: int | None, samples: int | None, agents: int | None
) -> "SweepSize":
    from evalpipe.reports.plan import SweepSize

    if sweep is None:
        if tasks is None or samples is None:
            fail("give --tasks and --samples, or the name of a configured sweep", WRONG_USE)
        number = agents or 2
        return SweepSize(tasks, samples, number, 1, math.comb(number, 2))
    return _configured_size(open_bench(workspace), sweep, tasks, samples, agents)


def _configured_size(
    bench: "Workbench", name: str, tasks: int | None, samples: int | None, agents: int | None
) -> "SweepSize":
    from evalpipe.pipeline.driver import known_sweep
    from evalpipe.reports.plan import SweepSize
    from evalpipe.stages.gradings import CONTROLS
    from evalpipe.stages.sweeps import load_sweep_task_set

    sweep = known_sweep(bench.workspace, name)
    loaded = bench.workspace.load_agents().items
    contenders = [agent for agent in sweep.agents if loaded[agent].adapter not in CONTROLS]
    # Of other agents than it has, the sweep fixes no pairs: all of them then.
    pairs = len(sweep.comparisons) if agents in (None, len(contenders)) else math.comb(agents or 0, 2)
    return SweepSize(
        tasks=tasks or len(load_sweep_task_set(bench, sweep).tasks),
        samples=samples or sweep.samples,
        agents=agents or len(contenders),
        modes=len(sweep.modes),
        comparisons=pairs * len(sweep.modes),
        smallest_difference=sweep.smallest_difference,
    )


@click.command()
@click.argument("sweep")
@_as_json
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "md"]),
    default="text",
    show_default=True,
    help="What is printed; `md` is for a pull request.",
)
@click.option("--redacted", is_flag=True, help="Without code, issue text and names of tasks: may leave the company.")
@click.pass_obj
def report(workspace: Path | None, sweep: str, as_json: bool, form: str, redacted: bool) -> None:
    """Write the report of SWEEP, its tables as Parquet and CSV, and print its scoreboard."""
    from evalpipe.reports import funnel_text, scoreboard_text, summary
    from evalpipe.reports.forms import redacted as redact
    from evalpipe.reports.forms import report_markdown
    from evalpipe.stages.reporting import gather_results, write_report

    if as_json and form == "md":
        fail("--json and --format md exclude each other: give one of them", WRONG_USE)
    bench, config, _ = open_sweep(workspace, sweep, ())
    open_driver(bench).report(config)
    results = gather_results(bench, config, bench.workspace.load_agents().items)
    path = bench.report_path(sweep)
    if redacted:
        results = redact(results)
        path = write_report(bench, path.parent / "redacted", results)
    if as_json:
        # What may leave the company names no folder of it.
        click.echo(json.dumps({**summary(results), "report": path.name if redacted else str(path)}, allow_nan=False))
    elif form == "md":
        click.echo(report_markdown(results), nl=False)
    else:
        click.echo(f"{funnel_text(results.mining, results.validation)}\n\n{scoreboard_text(results)}\n\nreport: {path}")


@click.command()
@click.argument("sweeps", nargs=-1, required=True, metavar="SWEEP SWEEP...")
@click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only this agent; may be repeated.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "md", "json"]),
    default="text",
    show_default=True,
    help="How it is written.",
)
@click.pass_obj
def compare(workspace: Path | None, sweeps: tuple[str, ...], agents: tuple[str, ...], form: str) -> None:
    """Put agents of two or more sweeps side by side, on the tasks that the sweeps share.

    With --agent, the same agent over time.
    """
    from evalpipe.pipeline.driver import known_sweep
    from evalpipe.reports.across import NotComparable, compare_sweeps
    from evalpipe.reports.across_tables import across_markdown, across_summary, across_text
    from evalpipe.stages.reporting import gather_results

    if len(set(sweeps)) < 2:
        fail("name at least two different sweeps to compare", WRONG_USE)
    bench = open_bench(workspace)
    loaded = bench.workspace.load_agents().items
    configs = [known_sweep(bench.workspace, name, even_archived=True) for name in sweeps]
    known = sorted({agent for config in configs for agent in config.agents})
    unknown = [agent for agent in agents if agent not in known]
    if unknown:
        fail(f"{', '.join(unknown)}: in none of these sweeps, which have {', '.join(known)}", WRONG_USE)
    results = [gather_results(bench, config, loaded) for config in configs]
    try:
        found = compare_sweeps(results, agents)
    except NotComparable as error:
        fail(str(error))
    if form == "json":
        click.echo(json.dumps(across_summary(found), allow_nan=False))
    else:
        click.echo(across_markdown(found) if form == "md" else across_text(found))
