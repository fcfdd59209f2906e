"""Runs a suite in a box. Validation and grading both run tests through this function, and no other way."""

from collections.abc import Iterable
from dataclasses import dataclass

from evalpipe.runners.plan import REPOSITORY_FOLDER, Runner
from evalpipe.runners.report import RunStatus, SuiteReport
from evalpipe.sandbox import DIRECTORY, REGULAR, Box, FileEntry, Outcome, OutputTooLarge, UnsafeOutput

REPORT_BYTES = 64 * 1024 * 1024
"""A report of 100,000 tests takes about 40 MB; anything above this is not one."""


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """What the suite reported, and how its process ended."""

    report: SuiteReport
    outcome: Outcome


def run_suite(box: Box, runner: Runner, tree: Iterable[FileEntry]) -> SuiteRun:
    """Lay `tree` into `box`, run the whole suite there once and read its report after the box has stopped.

    `tree` holds paths relative to the top of the repository. Raises SandboxError for faults of the engine;
    everything that the tested code can cause is a status of the report.
    """
    plan = runner.plan(box.root)
    folder = REPOSITORY_FOLDER.encode()
    # A change may delete every file, and the run then fails in an empty folder.
    box.put([FileEntry(folder, DIRECTORY), FileEntry(b"out", DIRECTORY)])
    box.put(FileEntry(folder + b"/" + entry.path, entry.mode, entry.data) for entry in tree)
    box.put(FileEntry(path.encode(), REGULAR, data) for path, data in plan.files.items())
    outcome = box.run(plan.command, env=plan.env, cwd=f"{box.root}/{REPOSITORY_FOLDER}")
    if outcome.timed_out:
        report = SuiteReport(RunStatus.TIMEOUT, detail=f"stopped after {outcome.duration_s:.0f} s")
    elif outcome.out_of_memory:
        report = SuiteReport(RunStatus.OUT_OF_MEMORY, detail="the container ran out of its memory")
    else:
        try:
            report = runner.read(plan, box.read_file(plan.report_path, REPORT_BYTES))
        except (OutputTooLarge, UnsafeOutput) as error:
            report = SuiteReport(RunStatus.DAMAGED_REPORT, detail=str(error))
    return SuiteRun(report, outcome)
