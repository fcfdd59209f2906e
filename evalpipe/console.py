"""How the command line talks: progress on the error stream, results on the output stream."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalpipe.config.doctor import Finding
    from evalpipe.stages.bench import Advance
    from evalpipe.stages.status import WorkspaceStatus

_PLAIN_LINES = 4
"""How many lines a stage prints where there is no terminal: a log wants signs of life, not a bar."""
_SECONDS_WORTH_TELLING = 10


@contextmanager
def progress(label: str, steps: int) -> "Iterator[Advance]":
    """Show a bar on a terminal, and a few plain lines elsewhere."""
    if steps and sys.stderr.isatty():
        from tqdm import tqdm

        with tqdm(total=steps, desc=label, unit="", leave=True, file=sys.stderr, dynamic_ncols=True) as bar:

            def move(steps: int = 1, note: str = "") -> None:
                if note:
                    bar.set_postfix_str(note, refresh=False)
                bar.update(steps)
                bar.refresh()

            yield move
    else:
        done, began = 0, time.monotonic()

        def count(moved: int = 1, text: str = "") -> None:
            nonlocal done
            done += moved
            if moved and (done == steps or done * _PLAIN_LINES // steps > (done - moved) * _PLAIN_LINES // steps):
                left = _time_left((time.monotonic() - began) / done * (steps - done))
                note(f"{label}: {done} of {steps}{f' ({text})' if text else ''}{left}")

        yield lambda steps=1, note="": count(steps, note)


def _time_left(seconds: float) -> str:
    """What is left at the pace so far; nothing below some seconds, which a reader waits for anyway."""
    if seconds < _SECONDS_WORTH_TELLING:
        return ""
    return f", {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"


def note(text: str) -> None:
    """Say something beside the result."""
    print(text, file=sys.stderr, flush=True)


def status_text(status: "WorkspaceStatus") -> str:
    """The workspace on one screen: first what moves and what does not, of agents only those that are not through."""
    lines = []
    for title, texts in (("Running", status.running), ("Stale", status.stale), ("Blocked", status.blocked)):
        lines += [title, *(f"  {text}" for text in texts)] if texts else []
    lines.append("Repositories")
    for repository in status.repositories:
        classes = ", ".join(f"{count} {name}" for name, count in repository.classes.items()) or "not classified yet"
        lines += [
            f"  {repository.name}: {repository.changes} changes, {repository.kept} candidates; "
            f"first pass {repository.first_passes}, second pass {repository.second_passes} "
            f"({repository.second_passes_due} due now)"
            + (f", stress pass {repository.stress_passes_due} due" if repository.stress_passes_due else ""),
            *([f"    {repository.images}"] if repository.images.images or repository.images.failed_builds else []),
            f"    {classes}",
        ]
    lines.append("Task sets")
    for task_set in status.task_sets:
        mark = ", provisional" if task_set.provisional else ""
        lines.append(
            f"  {task_set.name}: {task_set.tasks} tasks, revision {task_set.revision[:12]}{mark}; "
            f"{task_set.calibrated} calibrated"
        )
    lines.append("Sweeps")
    for sweep in status.sweeps:
        through = [agent for agent in sweep.agents if agent.attempted == agent.samples == agent.graded]
        told = f": {len(through)} of {len(sweep.agents)} agents attempted and graded" if sweep.agents else ": waits"
        lines.append(f"  {sweep.name} over {sweep.task_set}{told}")
        lines += [
            f"    {agent.name}: {agent.attempted} of {agent.samples} attempted, {agent.invalid} invalid, "
            f"{agent.graded} graded"
            for agent in sweep.agents
            if agent not in through
        ]
        if sweep.report:
            lines.append(f"    report: {sweep.report}")
    if status.problems:
        lines += ["Problems", *(f"  {problem}" for problem in status.problems)]
    steps = status.next_steps or ["nothing is due"]
    return "\n".join([*lines, "Next", *(f"  {step}" for step in steps)])


def findings_text(findings: "Sequence[Finding]") -> str:
    """What the doctor found, one line each, with the remedy where something is missing."""
    lines = []
    for finding in findings:
        mark = "ok     " if finding.ok else "MISSING" if finding.required else "note   "
        lines.append(f"{mark} {finding.name}: {finding.detail}")
        if not finding.ok and finding.remedy:
            lines.append(f"        {finding.remedy}")
    return "\n".join(lines)
