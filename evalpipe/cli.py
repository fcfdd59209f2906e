"""`evalpipe …`: a thin layer over the same Dagster jobs that the UI runs.

Dagster takes over a second to import, so commands import what they need when they run: help answers at once.
"""

import errno
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from evalpipe import console
from evalpipe.cli_attempts import attempts, run
from evalpipe.cli_issues import issues
from evalpipe.cli_operations import gate, lake, sweep
from evalpipe.cli_results import compare, plan, report
from evalpipe.cli_tasks import freeze, prompts, tasks
from evalpipe.cli_workspace import (
    FAILED,
    INTERRUPTED,
    WRONG_USE,
    chosen_repositories,
    fail,
    open_bench,
    open_driver,
    open_sweep,
    say_sandbox,
)

if TYPE_CHECKING:
    from evalpipe.config import RepositoryConfig
    from evalpipe.stages.bench import Workbench

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines on the output stream.")
_agents = click.option("--agent", "agents", multiple=True, metavar="NAME", help="Only this agent; may be repeated.")
_repositories = click.argument("repositories", nargs=-1, metavar="[REPOSITORY]...")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--workspace",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The workspace; by default the one around the current folder, or EVALPIPE_WORKSPACE.",
)
@click.version_option(package_name="evalpipe")
@click.pass_context
def cli(context: click.Context, workspace: Path | None) -> None:
    """A private benchmark for coding agents, made from your team's own git history.

    The way: init, doctor, mine, validate (again on another day), freeze, run, grade, report.
    """
    context.obj = workspace


@cli.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Write a commented workspace for your own repository into FOLDER."""
    from evalpipe.config.init import write_workspace

    for path in write_workspace(folder):
        click.echo(path)
    console.note(f"next: edit {folder}/data/repos/example.yaml, then `cd {folder}` and `evalpipe doctor`")


@cli.command()
@_as_json
@click.pass_obj
def doctor(workspace: Path | None, as_json: bool) -> None:
    """Say what is missing on this machine and in this workspace, and how to get it."""
    from dataclasses import asdict

    from evalpipe.config import ConfigError, find_workspace
    from evalpipe.config.doctor import examine_machine, is_fit
    from evalpipe.stages.lake_check import look_at_store
    from evalpipe.stages.price_check import look_at_prices

    try:
        found = find_workspace(workspace)
    except ConfigError as error:
        if workspace is not None:
            raise
        console.note(f"{error}\nlooking at the machine alone")
        found = None
    findings = examine_machine(found)
    if found is not None:
        findings += [*look_at_prices(found), *look_at_store(found)]
    click.echo(json.dumps([asdict(one) for one in findings]) if as_json else console.findings_text(findings))
    if not is_fit(findings):
        sys.exit(FAILED)


@cli.command()
@_repositories
@click.option("--dry-run", is_flag=True, help="Only look, and write nothing but the mirror.")
@_as_json
@click.pass_obj
def mine(workspace: Path | None, repositories: Sequence[str], dry_run: bool, as_json: bool) -> None:
    """Look at every merged change and say which are candidates, and why the others are not."""
    from evalpipe.reports import funnel_text
    from evalpipe.stages.mining import mining_funnel, stored_mining_funnel, stored_mining_warnings, summarize

    bench = open_bench(workspace)
    chosen = chosen_repositories(bench, repositories)
    if dry_run:
        looked = {config.name: summarize(bench, config) for config in chosen}
        funnels = {name: [row for row in mining_funnel(found) if row[1]] for name, found in looked.items()}
        warnings = [warning for found in looked.values() for warning in found.warnings]
    else:
        open_driver(bench).mine(chosen)
        funnels = {config.name: stored_mining_funnel(bench, [config.name]) for config in chosen}
        warnings = [warning for config in chosen for warning in stored_mining_warnings(bench, config)]
    for warning in warnings:
        console.note(f"warning: {warning}")
    if as_json:
        total: dict[str, int] = {}
        for funnel in funnels.values():
            for reason, count in funnel:
                total[reason] = total.get(reason, 0) + count
        by_name = {name: dict(funnel) for name, funnel in funnels.items()}
        click.echo(json.dumps({"funnel": total, "repositories": by_name, "dry_run": dry_run}))
    else:
        for name, funnel in funnels.items():
            click.echo(f"{name}\n{funnel_text(funnel, [])}")
    without = [name for name, funnel in funnels.items() if not {"kept", "added"} & dict(funnel).keys()]
    if without:
        fail(
            f"no candidates in {', '.join(without)}: a candidate changes source and tests. The funnel says why each "
            f"change fell; `paths` in data/repos/{without[0]}.yaml tells tests and source apart"
        )


@cli.command()
@_repositories
@click.option("--newest", type=click.IntRange(min=1), help="Only so many of the newest candidates of each repository.")
@click.option("--same-day", is_flag=True, help="Run the second pass today too; its tasks are then provisional.")
@click.option("--retry-builds", is_flag=True, help="Try again to build images that could not be built before.")
@_as_json
@click.pass_obj
def validate(
    workspace: Path | None,
    repositories: Sequence[str],
    newest: int | None,
    same_day: bool,
    retry_builds: bool,
    as_json: bool,
) -> None:
    """Run the tests of candidates before and after their change: each pass that is due."""
    from evalpipe.reports import funnel_text
    from evalpipe.stages.images import count_images
    from evalpipe.stages.mining import stored_mining_funnel, stored_validation_funnel
    from evalpipe.stages.suite_scope import check_scope

    bench = open_bench(workspace)
    chosen = chosen_repositories(bench, repositories)
    for config in chosen:
        if not bench.lake.has("candidate_commits", config.name):
            fail(f"{config.name} was not mined yet: run `evalpipe mine {config.name}` first")
    say_sandbox(bench)
    _keep_docker_results(bench, chosen)
    waiting = open_driver(bench).validate(chosen, newest=newest, same_day=same_day, retry_failed=retry_builds)
    names = [config.name for config in chosen]
    images = {name: count_images(bench.lake.rows("task_images", name)) for name in names}
    funnel = stored_validation_funnel(bench, names)
    scopes = {config.name: check_scope(bench, config) for config in chosen if config.validation.suite == "affected"}
    if as_json:
        counts = {name: asdict(found) for name, found in images.items()}
        answer = {"classes": dict(funnel), "second_passes_waiting": len(waiting), "images": counts}
        click.echo(json.dumps(answer | {"scope": {name: asdict(scope) for name, scope in scopes.items()}}))
    else:
        for name, found in images.items():
            click.echo(f"{name}: {found}")
        click.echo(funnel_text(stored_mining_funnel(bench, names), funnel))
    for name, scope in scopes.items():
        missed = "".join(f"\n  {task_id}: {', '.join(tests)}" for task_id, tests in scope.missed.items())
        console.note(
            f"{name}: of {scope.looked_at} candidates that ran the whole suite, the `affected` scope would have missed "
            f"fail-to-pass tests of {len(scope.missed)}{missed}"
        )
    if any(found.failed_builds for found in images.values()):
        console.note(
            "what could not be built is tried again when a manifest or the configuration of its environment changes, "
            "or with --retry-builds"
        )
    if waiting:
        console.note(f"{len(waiting)} second passes are due from tomorrow (UTC): run the same again then")


@cli.command()
@click.argument("sweep")
@_agents
@click.option("--regrade", is_flag=True, help="Also grade again what was graded before, and say which verdicts change.")
@click.pass_obj
def grade(workspace: Path | None, sweep: str, agents: Sequence[str], regrade: bool) -> None:
    """Grade the attempts of SWEEP. Runs no agent; what was graded before is not graded again without --regrade."""
    from evalpipe.stages.gradings import stored_verdicts

    bench, config, chosen = open_sweep(workspace, sweep, agents)
    say_sandbox(bench)
    before = stored_verdicts(bench, sweep, chosen) if regrade else {}
    open_driver(bench).grade(config, chosen, regrade=regrade)
    after = stored_verdicts(bench, sweep, chosen) if regrade else {}
    changed = [key for key in before if after.get(key) != before[key]]
    for key in changed:
        agent, _, task_id, sample = key
        click.echo(f"{agent} {task_id} {sample}: {before[key]} -> {after.get(key)}")
    if regrade:
        click.echo(f"{sweep}: {len(changed)} of {len(before)} verdicts changed")
    click.echo(f"{sweep}: every attempt of {', '.join(chosen)} is graded")
    console.note(f"next: evalpipe report {sweep}")


@cli.command()
@_as_json
@click.pass_obj
def status(workspace: Path | None, as_json: bool) -> None:
    """Say in one screen what is running, stale and blocked, how far everything is, and what the next step is."""
    from evalpipe.pipeline.running import running_work
    from evalpipe.stages.status import workspace_status

    bench = open_bench(workspace)
    found = workspace_status(bench)
    found.running = running_work(bench.workspace)
    click.echo(json.dumps(found.to_json()) if as_json else console.status_text(found))


@cli.command()
@click.pass_obj
def demo(workspace: Path | None) -> None:
    """Run the whole pipeline on the demo repository, as far as it is not done yet."""
    from evalpipe.demo.build import build_demo_repository
    from evalpipe.reports import funnel_text, scoreboard_text
    from evalpipe.stages.demo import forget_unusable_task_set
    from evalpipe.stages.reporting import gather_results

    started = time.monotonic()
    bench = open_bench(workspace)
    build_demo_repository(bench.workspace.data / "demo", bench.workspace.lake_dir / "demo" / "repository")
    say_sandbox(bench)
    driver = open_driver(bench)
    repository = bench.workspace.load_repository("demo")
    driver.mine([repository])
    driver.validate([repository], newest=None, same_day=True)
    forget_unusable_task_set(bench, "demo")
    driver.freeze("demo", ["demo"], provisional=True)
    _, sweep, agents = open_sweep(workspace, "demo", ())
    driver.calibrate(sweep)
    driver.attempt(sweep, agents)
    driver.grade(sweep, agents)
    driver.report(sweep)
    results = gather_results(bench, sweep, bench.workspace.load_agents().items)
    click.echo(f"{funnel_text(results.mining, results.validation)}\n\n{scoreboard_text(results)}\n")
    click.echo(f"report: {bench.report_path(sweep.name)}  ({time.monotonic() - started:.0f} s)")


@cli.command()
@click.option("--port", default=3000, show_default=True, help="Port on this machine.")
@click.pass_obj
def ui(workspace: Path | None, port: int) -> None:
    """Open the pipeline in the Dagster UI, with its state below data/."""
    from evalpipe.config import find_workspace
    from evalpipe.pipeline.driver import initialise_instance

    found = find_workspace(workspace)
    initialise_instance(found)
    program = str(Path(sys.executable).with_name("dagster"))
    arguments = [program, "dev", "-w", str(found.root / "workspace.yaml"), "-h", "127.0.0.1", "-p", str(port)]
    os.chdir(found.root)
    # Dagster ends by SIGTERM as by SIGINT, which the shell of a script lets what it starts with `&` ignore.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(program, arguments)


cli.add_command(attempts)
cli.add_command(compare)
cli.add_command(freeze)
cli.add_command(gate)
cli.add_command(issues)
cli.add_command(lake)
cli.add_command(plan)
cli.add_command(prompts)
cli.add_command(report)
cli.add_command(sweep)
cli.add_command(run)
cli.add_command(tasks)


def main() -> None:
    """Run the command line. Exit codes: 0 done as asked, 1 not all of it, 2 wrong use or configuration, 130 stopped."""
    signal.signal(signal.SIGTERM, _stop)
    with _errors_as_exit_codes():
        cli.main(standalone_mode=False)


@contextmanager
def _errors_as_exit_codes() -> Iterator[None]:
    from evalpipe.config.problems import ConfigError

    try:
        yield
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        fail("stopped; everything that was finished is kept: run the same again to go on", INTERRUPTED)
    except ConfigError as error:
        fail(str(error), WRONG_USE)
    except Exception as error:
        # An error of evalpipe's own modules speaks to the user; any other is a fault, and shows its trace.
        if type(error).__module__.startswith("evalpipe."):
            fail(str(error))
        if _is_full_disk(error):
            reason = str(error).splitlines()[0]
            fail(f"the disk is full: free some space, then run the same again; what was finished is kept ({reason})")
        raise


def _is_full_disk(error: BaseException | None) -> bool:
    """Whether a write found no room, in our own files or in Dagster's database, whose errors have no number."""
    while error is not None:
        text = str(error)
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            return True
        if "disk is full" in text or "disk I/O error" in text:
            return True
        error = error.__cause__ or error.__context__
    return False


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _keep_docker_results(bench: "Workbench", chosen: "Sequence[RepositoryConfig]") -> None:
    """Refuse to validate again without Docker what was validated in it, unless that was asked for by name."""
    if bench.sandbox.name == "docker" or os.environ.get("EVALPIPE_SANDBOX") == "process":
        return
    for config in chosen:
        if any(row["sandbox"] == "docker" for row in bench.lake.rows("task_images", config.name)):
            fail(
                f"{config.name} was validated in Docker, and no engine answers now: start it, and run the same again; "
                f"EVALPIPE_SANDBOX=process would validate everything anew without one"
            )
