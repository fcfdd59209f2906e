"""The unittest runner: how it is started. A program beside the tree discovers and runs the tests."""

import json
import os
import secrets
from dataclasses import dataclass
from importlib import resources

from evalpipe.runners.json_lines import read_json_lines
from evalpipe.runners.plan import WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan
from evalpipe.runners.report import SuiteReport

_PROGRAM = "evalpipe_unittest.py"


@dataclass(frozen=True, slots=True)
class UnittestRunner:
    """Runs what `python -m unittest discover` finds. `arguments` are its own: `-s`, `-t`, `-p`, `-k`."""

    python: str = "python3"
    arguments: tuple[str, ...] = ()
    name: str = "unittest"
    can_shuffle: bool = True

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`."""
        token = secrets.token_hex(8)
        canary = f"evalpipe_canary_{token}"
        report_path = f"out/{token}.jsonl"
        settings = {
            "report": f"{root}/{report_path}",
            "canary": canary,
            "shuffle_seed": request.shuffle_seed,
            "test_files": None if request.test_files is None else [os.fsdecode(path) for path in request.test_files],
        }
        program = resources.files("evalpipe.runners").joinpath("inside", _PROGRAM).read_bytes()
        return TestPlan(
            command=(self.python, "-B", f"{root}/runner/{_PROGRAM}", *self.arguments),
            env={"PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            files={f"runner/{_PROGRAM}".encode(): program, b"runner/settings.json": json.dumps(settings).encode()},
            report_path=report_path,
            canary=canary,
        )

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """Read the JSON lines that `evalpipe_unittest.py` wrote, of which the last says that the run is complete."""
        return read_json_lines(report, plan.canary)
