"""Commands for those who keep the pipeline running: the next sweep, the gate of a team's CI, the lake's health."""

import datetime as dt
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalpipe import console
from evalpipe.cli_workspace import FAILED, WRONG_USE, fail, open_bench, open_driver, open_sweep

if TYPE_CHECKING:
    from evalpipe.stages.lake_verification import LakeReport
    from evalpipe.stages.trimming import Spares

_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines on the output stream.")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@click.group()
def sweep() -> None:
    """The sweeps of a team: the one of a new quarter is made from the last one."""


@sweep.command()
@click.argument("name")
@click.option("--from", "earlier", required=True, metavar="OLD", help="The sweep to copy.")
@click.pass_obj
def new(workspace: Path | None, name: str, earlier: str) -> None:
    """Write data/sweeps/NAME.yaml as a copy of OLD over the task set NAME; comments stay, no file is overwritten."""
    from evalpipe.config import find_workspace
    from evalpipe.config.next_sweep import write_next_sweep

    found = find_workspace(workspace)
    path = write_next_sweep(found, name, earlier)
    click.echo(found.shown(path))
    is_frozen = (found.task_sets_dir / name / "task_set.json").exists()
    step = f"evalpipe plan {name}" if is_frozen else f"evalpipe freeze {name}"
    console.note(f"next: check agents, cutoffs and comparisons in it, then `{step}`")
    console.note(f"`archived: true` in data/sweeps/{earlier}.yaml takes {earlier} out of the UI and keeps its results")


@click.command()
@click.argument("sweep")
@click.option("--agent", required=True, metavar="NAME", help="The agent whose file or surroundings have changed.")
@click.option("--tasks", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many tasks.")
@click.option("--samples", type=click.IntRange(min=1), default=2, show_default=True, help="Attempts at each task.")
@click.option("--label", help="Keeps attempts apart, as the number of a pipeline does; the same label goes on.")
@_as_json
@click.pass_obj
def gate(
    workspace: Path | None, sweep: str, agent: str, tasks: int, samples: int, label: str | None, as_json: bool
) -> None:
    """Run an agent again on tasks of SWEEP that it solved on every sample, and say whether it solves fewer now.

    Ends with 1 when the drop is more than chance by the paired test, or when nothing could be measured. Attempts lie
    beside those of the sweep, and are made once for each state of the agent's file and each label.
    """
    from evalpipe.config.values import SLUG_RULE, is_slug
    from evalpipe.pipeline.gate import run_gate
    from evalpipe.stages.gate import GateVerdict, gate_document, gate_result, gate_sweep, gate_tasks, gate_text

    if label is not None and not is_slug(label):
        fail(f"{label!r} cannot be a label; use {SLUG_RULE}", WRONG_USE)
    bench, config, _ = open_sweep(workspace, sweep, [agent])
    chosen = gate_tasks(bench, config, agent, tasks)
    own = gate_sweep(config, agent, samples, label)
    for reason in run_gate(open_driver(bench), own, list(chosen.before)):
        console.note(f"note: {reason}")
    result = gate_result(bench, own, bench.workspace.load_agent(agent), chosen)
    document, text = gate_document(own, chosen, result), gate_text(own, chosen, result)
    click.echo(json.dumps(document, allow_nan=False) if as_json else text)
    if result.verdict is GateVerdict.DROPPED:
        sys.exit(FAILED)


@click.group()
def lake() -> None:
    """The lake: whether it is whole, what in it nothing needs any more, and how it gets into an object store."""


@lake.command()
@_as_json
@click.pass_obj
def verify(workspace: Path | None, as_json: bool) -> None:
    """Read every table, blob and manifest and check them against their schemas and hashes. Changes nothing.

    Ends with 1 and names each bad file when anything is wrong.
    """
    from evalpipe.stages.lake_verification import verify_lake

    bench = open_bench(workspace)
    found = verify_lake(bench)
    if as_json:
        click.echo(json.dumps(_verification_document(found)))
    else:
        for fault in found.faults:
            click.echo(f"{fault.kind.value}: {fault.text}")
        outcome = "in order" if not found.faults else f"{len(found.faults)} bad files"
        click.echo(f"{found.tables} tables, {found.blobs} blobs, {found.manifests} manifests: {outcome}")
        if found.waiting:
            console.note(f"{len(found.waiting)} files wait to be put into the store: `evalpipe lake push` says which")
        if found.unfinished:
            console.note(f"{len(found.unfinished)} writes did not end; nothing reads them: `evalpipe lake trim`")
    if found.faults:
        sys.exit(FAILED)


def _verification_document(found: "LakeReport") -> dict[str, object]:
    return {
        "tables": found.tables,
        "blobs": found.blobs,
        "manifests": found.manifests,
        "faults": [{"kind": one.kind.value, "path": str(one.path), "text": one.text} for one in found.faults],
        "unfinished": [str(path) for path in found.unfinished],
        "waiting": [str(path) for path in found.waiting],
    }


@lake.command()
@click.pass_obj
def push(workspace: Path | None) -> None:
    """Put what lies in data/lake, and not in the object store yet, there: a lake that was on disk moves into a store.

    Ends with 1 and names each file of which the store has another version; both stay as they are.
    """
    from evalpipe.config import load_lake

    bench = open_bench(workspace)
    if load_lake(bench.workspace).url is None:
        fail("this lake is in the folder data/lake alone: name a store in data/lake.yaml, as `url: s3://bucket/folder`")
    pushed = bench.lake.push()
    for path in bench.lake.folder.waiting():
        click.echo(f"{path} differs from its object: delete the one that is not to stay, then run the same again")
    click.echo(f"{pushed} files are in {bench.lake.folder.place} now")
    if bench.lake.folder.waiting():
        sys.exit(FAILED)


@lake.command()
@click.option("--dry-run", is_flag=True, help="Only name what would go.")
@click.option(
    "--days",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="Keep what was used in so many days.",
)
@_as_json
@click.pass_obj
def trim(workspace: Path | None, dry_run: bool, days: int, as_json: bool) -> None:
    """Remove what nothing needs: blobs that no row names, killed writes, output of runs, images without a task.

    Each is named. Rows, manifests and the blobs that rows name stay: what was paid for is never removed.
    """
    from evalpipe.stages.trimming import find_spares

    found = find_spares(open_bench(workspace), dt.timedelta(days=days))
    for spare in found.items:
        if not dry_run:
            spare.remove()
        if not as_json:
            click.echo(f"{spare.kind.value} {spare.name} ({_size(spare.size)}, last used {spare.last_used:%Y-%m-%d})")
    for note in found.notes:
        console.note(f"note: {note}")
    if as_json:
        click.echo(json.dumps(_trim_document(found, dry_run=dry_run)))
    else:
        what = "would go" if dry_run else "gone"
        click.echo(f"{len(found.items)} {what}, {_size(sum(spare.size for spare in found.items))}")


def _trim_document(found: "Spares", *, dry_run: bool) -> dict[str, object]:
    items = [
        {
            "kind": one.kind.value,
            "name": one.name,
            "bytes": one.size,
            "last_used": one.last_used.isoformat(),
        }
        for one in found.items
    ]
    return {"dry_run": dry_run, "items": items, "notes": list(found.notes)}


def _size(number: float) -> str:
    for unit in _UNITS[:-1]:
        if number < 1024:
            return f"{number:.0f} {unit}"
        number /= 1024
    return f"{number:.1f} {_UNITS[-1]}"
