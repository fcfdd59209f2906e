"""The pytest runner. It needs no plugin in the team's repository: its own goes in beside the tree."""

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from evalpipe.runners.plan import TestPlan
from evalpipe.runners.report import RunStatus, SuiteReport, TestOutcome, TestResult

_PLUGIN = "evalpipe_report"
_INTERNAL_ERROR, _USAGE_ERROR = 3, 4  # pytest.ExitCode


@dataclass(frozen=True, slots=True)
class PytestRunner:
    """Runs `python -m pytest`. `arguments` are added to the command, for example a marker expression."""

    python: str = "python3"
    arguments: tuple[str, ...] = ()
    name: str = "pytest"

    def plan(self, root: str, test_files: Sequence[str] | None = None) -> TestPlan:
        """Plan a run of the suite (or of `test_files`) of the tree below `root`."""
        token = secrets.token_hex(8)
        canary = f"evalpipe_canary_{token}"
        report_path = f"out/{token}.jsonl"
        settings = {"report": f"{root}/{report_path}", "canary": canary}
        plugin = resources.files("evalpipe.runners").joinpath("inside", f"{_PLUGIN}.py").read_bytes()
        return TestPlan(
            command=(
                *(self.python, "-B", "-m", "pytest", "-p", _PLUGIN, "-q", "--color=no"),
                # Settings of the repository may stop at the first failure or at a module that does not
                # import; each would hide the other tests. The cache would be written into the tree.
                *("--maxfail=0", "--continue-on-collection-errors", "-o", f"cache_dir={root}/out/cache"),
                *self.arguments,
                *(test_files or ()),
            ),
            env={
                "PYTHONPATH": f"{root}/runner",
                "EVALPIPE_SETTINGS": f"{root}/runner/settings.json",
                "PYTHONDONTWRITEBYTECODE": "1",
                "LC_ALL": "C.UTF-8",
                "TZ": "UTC",
            },
            files={
                f"runner/{_PLUGIN}.py": plugin,
                "runner/settings.json": json.dumps(settings).encode(),
            },
            report_path=report_path,
            canary_id=f"::{canary}",
        )

    def read(self, plan: TestPlan, report: bytes | None) -> SuiteReport:
        """Read the plugin's JSON lines; see `SuiteReport`."""
        if not report:
            return SuiteReport(RunStatus.NO_REPORT, detail="the test run left no report")
        try:
            records = [_record(line) for line in report.split(b"\n") if line]
            return _assemble(records, plan.canary_id)
        except (ValueError, KeyError, TypeError) as error:
            return SuiteReport(RunStatus.DAMAGED_REPORT, detail=f"the report cannot be read: {error!r}")


def _record(line: bytes) -> dict[str, Any]:
    record = json.loads(line)
    if not isinstance(record, dict):
        raise TypeError("a line of the report is not an object")
    return record


def _assemble(records: Iterable[dict[str, Any]], canary_id: str) -> SuiteReport:
    phases: dict[str, list[dict[str, Any]]] = {}
    uncollected: dict[str, str] = {}
    collected: list[str] = []
    ends: list[int] = []
    for record in records:
        if ends:
            raise ValueError("the report goes on after its end")
        match record["kind"]:
            case "phase":
                phases.setdefault(str(record["id"]), []).append(record)
            case "uncollected":
                uncollected[str(record["id"])] = str(record["message"])
            case "collected":
                collected.extend(str(test_id) for test_id in record["ids"])
            case "end":
                ends.append(int(record["exit_status"]))
            case other:
                raise ValueError(f"unknown record {other!r}")
    if not ends:
        return SuiteReport(RunStatus.NO_REPORT, detail="the test run ended before its report was complete")
    if ends[0] in (_INTERNAL_ERROR, _USAGE_ERROR):
        return SuiteReport(
            RunStatus.NO_REPORT,
            uncollected=uncollected,
            detail=f"pytest ended with an internal or usage error (exit status {ends[0]})",
        )
    canary = _result(canary_id, phases.pop(canary_id, []))
    duplicates = frozenset(test_id for test_id, count in Counter(collected).items() if count > 1)
    return SuiteReport(
        RunStatus.COMPLETED,
        tests={test_id: _result(test_id, found) for test_id, found in phases.items()},
        uncollected=uncollected,
        duplicates=duplicates,
        canary_failed=canary.outcome is TestOutcome.FAILED,
    )


def _result(test_id: str, phases: Sequence[dict[str, Any]]) -> TestResult:
    """Join the phases of a test: the worst one decides, and a pass needs a call that passed."""
    seconds = sum(float(phase["seconds"]) for phase in phases)
    worst = max(phases, key=_badness, default=None)
    if worst is None:
        return TestResult(test_id, TestOutcome.ERROR, 0.0, "the test did not run")
    if worst["outcome"] == "failed":
        outcome = TestOutcome.FAILED if worst["when"] == "call" else TestOutcome.ERROR
    elif worst["outcome"] == "skipped" and not worst["subtest"]:
        outcome = TestOutcome.XFAILED if worst["xfail"] else TestOutcome.SKIPPED
    elif worst["xfail"]:
        outcome = TestOutcome.XPASSED
    elif any(phase["when"] == "call" and not phase["subtest"] for phase in phases):
        outcome = TestOutcome.PASSED
    else:
        outcome = TestOutcome.ERROR
    return TestResult(test_id, outcome, seconds, str(worst["message"]))


def _badness(phase: dict[str, Any]) -> int:
    if phase["outcome"] == "failed":
        return 4 if phase["when"] == "call" else 3
    if phase["outcome"] == "skipped" and not phase["subtest"]:
        return 2
    return 1 if phase["xfail"] else 0
