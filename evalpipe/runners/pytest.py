"""The pytest runner: how it is started. It needs no plugin in the team's repository; its own lies beside the tree."""

import json
import os
import secrets
from dataclasses import dataclass
from importlib import resources

from evalpipe.runners.plan import WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan
from evalpipe.runners.pytest_report import read_report
from evalpipe.runners.report import SuiteReport

_PROGRAM = "evalpipe_report.py"


@dataclass(frozen=True, slots=True)
class PytestRunner:
    """Runs pytest. `arguments` are added to the command, for example a marker expression."""

    python: str = "python3"
    arguments: tuple[str, ...] = ()
    name: str = "pytest"
    can_shuffle: bool = True

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`."""
        token = secrets.token_hex(8)
        canary = f"evalpipe_canary_{token}"
        report_path = f"out/{token}.jsonl"
        settings = {"report": f"{root}/{report_path}", "canary": canary, "shuffle_seed": request.shuffle_seed}
        program = resources.files("evalpipe.runners").joinpath("inside", _PROGRAM).read_bytes()
        return TestPlan(
            command=(
                *(self.python, "-B", f"{root}/runner/{_PROGRAM}"),
                # Settings of the repository may stop at the first failure or at a module that does not
                # import; each would hide the other tests. The cache would be written into the tree.
                *("--maxfail=0", "--continue-on-collection-errors", "-o", f"cache_dir={root}/out/cache"),
                *self.arguments,
                *map(os.fsdecode, request.test_files or ()),
            ),
            env={"PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            files={f"runner/{_PROGRAM}".encode(): program, b"runner/settings.json": json.dumps(settings).encode()},
            report_path=report_path,
            canary=f"::{canary}",
        )

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """Read the JSON lines that `evalpipe_report.py` wrote, which hold the exit status too; see `read_report`."""
        return read_report(report, plan.canary)
