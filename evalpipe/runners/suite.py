"""Runs a suite in a box. Validation and grading both run tests through this function, and no other way."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from types import MappingProxyType

from evalpipe.runners.plan import REPOSITORY_FOLDER, WHOLE_SUITE, Runner, SuiteRequest, TestPlan
from evalpipe.runners.preparation import PREPARATION_FAILED, preparation_script
from evalpipe.runners.report import RunStatus, SuiteReport
from evalpipe.runners.report_on_output import PrintedReport, ReportOnOutput
from evalpipe.sandbox import DIRECTORY, REGULAR, SYMLINK, Box, FileEntry, Outcome, OutputTooLarge, UnsafeOutput

REPORT_BYTES = 64 * 1024 * 1024
"""A report of 100,000 tests takes about 40 MB; anything above this is not one."""

_SCRIPT = "runner/run.sh"


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """What the suite reported, and how its process ended."""

    report: SuiteReport
    outcome: Outcome


def run_suite(
    box: Box,
    runner: Runner,
    tree: Iterable[FileEntry],
    request: SuiteRequest = WHOLE_SUITE,
    *,
    preparation: Sequence[str] = (),
    env: Mapping[str, str] = MappingProxyType({}),
    while_running: AbstractContextManager[None] | None = None,
) -> SuiteRun:
    """Lay `tree` into `box`, run the suite there once and read the report that it leaves.

    `tree` holds paths relative to the top of the repository. `preparation` are shell commands that are run in it
    before the tests, `env` goes over the runner's own environment. `while_running` is entered for the run alone, and
    neither while the tree is laid nor while the report is read. Raises SandboxError for faults of the engine;
    everything that the tested code can cause is a status of the report.
    """
    entries = list(tree)
    plan = runner.plan(box.root, {entry.path: entry.data for entry in entries if entry.mode != SYMLINK}, request)
    lay_tree(box, entries)
    box.put(FileEntry(path, REGULAR, data) for path, data in plan.files.items())
    printed = ReportOnOutput(f"{box.root}/{plan.report_path}")
    # A shell goes on with a script that is gone, and the tests cannot read in it how a report begins.
    script = b'rm -f "$0"\n' + preparation_script(preparation, end=printed.script)
    box.put([FileEntry(_SCRIPT.encode(), REGULAR, script)])
    with while_running or nullcontext():
        outcome = box.run(
            ("/bin/sh", f"{box.root}/{_SCRIPT}", *plan.command),
            env={**plan.env, **env},
            cwd=f"{box.root}/{REPOSITORY_FOLDER}",
        )
    found = printed.found_in(outcome.stdout)
    if found is not None:
        outcome = replace(outcome, stdout=found.output)
    return SuiteRun(_read(box, runner, plan, outcome, found), outcome)


def lay_tree(box: Box, entries: Iterable[FileEntry]) -> None:
    """Put the files of a repository, by their paths from its top, into its folder in `box`."""
    folder = REPOSITORY_FOLDER.encode()
    # A change may delete every file, and the run then fails in an empty folder.
    box.put([FileEntry(folder, DIRECTORY)])
    box.put(FileEntry(folder + b"/" + entry.path, entry.mode, entry.data) for entry in entries)


def _read(box: Box, runner: Runner, plan: TestPlan, outcome: Outcome, printed: PrintedReport | None) -> SuiteReport:
    if outcome.timed_out:
        return SuiteReport(RunStatus.TIMEOUT, detail=f"stopped after {outcome.duration_s:.0f} s")
    if outcome.out_of_memory:
        return SuiteReport(RunStatus.OUT_OF_MEMORY, detail="the container ran out of its memory")
    if outcome.exit_code == PREPARATION_FAILED:
        return SuiteReport(RunStatus.BUILD_FAILED, detail="a command that prepares the tree failed")
    try:
        report = box.read_file(plan.report_path, REPORT_BYTES) if printed is None else printed.report
        return runner.read(plan, report, outcome.exit_code)
    except (OutputTooLarge, UnsafeOutput) as error:
        return SuiteReport(RunStatus.DAMAGED_REPORT, detail=str(error))
