"""`evalpipe issues …`: the texts of issues and pull requests. Like `cli`, it imports what it needs when it runs."""

from pathlib import Path

import click

from evalpipe import console


@click.group()
def issues() -> None:
    """The issues and pull requests that problem texts come from."""


@issues.command()
@click.argument("repository")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write; by default data/issues/REPOSITORY.jsonl.",
)
@click.pass_obj
def export(workspace: Path | None, repository: str, output: Path | None) -> None:
    """Write the issues and pull requests of REPOSITORY to a file, from the forge that its configuration names.

    Later calls read what was changed since. What was read is kept when the export is stopped.
    """
    from evalpipe.config import find_workspace
    from evalpipe.stages.bench import Workbench
    from evalpipe.stages.issues import export_issues, issues_path

    bench = Workbench(find_workspace(workspace))
    config = bench.workspace.load_repository(repository)
    path = issues_path(bench, config) if output is None else output.absolute()
    done = export_issues(bench, config, path, console.note)
    shown = bench.workspace.shown(path)
    click.echo(f"{shown}: {done.issues} issues, {done.pull_requests} pull requests; {done.changed} new or changed")
    if done.gone:
        console.note(f"{done.gone} were deleted or hidden while they were read, and are left out")
    if config.issues is None or bench.workspace.resolve(config.issues) != path:
        console.note(f"next: set `issues: {shown}` in data/repos/{repository}.yaml, then `evalpipe mine {repository}`")
