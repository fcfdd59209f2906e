"""The pytest runner: how it is started. It needs no plugin in the team's repository; its own lies beside the tree."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from evalpipe.runners.plan import TestPlan
from evalpipe.runners.pytest_report import read_report
from evalpipe.runners.report import SuiteReport

_PROGRAM = "evalpipe_report.py"


@dataclass(frozen=True, slots=True)
class PytestRunner:
    """Runs pytest. `arguments` are added to the command, for example a marker expression."""

    python: str = "python3"
    arguments: tuple[str, ...] = ()
    name: str = "pytest"

    def plan(self, root: str, test_files: Sequence[str] | None = None) -> TestPlan:
        """Plan a run of the suite (or of `test_files`) of the tree below `root`."""
        token = secrets.token_hex(8)
        canary = f"evalpipe_canary_{token}"
        report_path = f"out/{token}.jsonl"
        settings = {"report": f"{root}/{report_path}", "canary": canary}
        return TestPlan(
            command=(
                *(self.python, "-B", f"{root}/runner/{_PROGRAM}"),
                # Settings of the repository may stop at the first failure or at a module that does not
                # import; each would hide the other tests. The cache would be written into the tree.
                *("--maxfail=0", "--continue-on-collection-errors", "-o", f"cache_dir={root}/out/cache"),
                *self.arguments,
                *(test_files or ()),
            ),
            env={"PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            files={
                f"runner/{_PROGRAM}": resources.files("evalpipe.runners").joinpath("inside", _PROGRAM).read_bytes(),
                "runner/settings.json": json.dumps(settings).encode(),
            },
            report_path=report_path,
            canary_id=f"::{canary}",
        )

    def read(self, plan: TestPlan, report: bytes | None) -> SuiteReport:
        """Read the JSON lines that `evalpipe_report.py` wrote; see `read_report`."""
        return read_report(report, plan.canary_id)
