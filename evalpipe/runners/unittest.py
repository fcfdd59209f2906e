"""The unittest runner: how it is started. A program beside the tree discovers and runs the tests."""

import json
import os
import secrets
from dataclasses import dataclass
from importlib import resources

from evalpipe.runners.json_lines import read_json_lines
from evalpipe.runners.plan import WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan, new_report_path
from evalpipe.runners.report import SuiteReport
from evalpipe.runners.seal import new_key

_PROGRAM, _SEAL = "evalpipe_unittest.py", "evalpipe_seal.py"


@dataclass(frozen=True, slots=True)
class UnittestRunner:
    """Runs what `python -m unittest discover` finds. `arguments` are its own: `-s`, `-t`, `-p`, `-k`."""

    python: str = "python3"
    arguments: tuple[str, ...] = ()
    name: str = "unittest"
    can_shuffle: bool = True

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`."""
        # A name like any other, so that it cannot be let through by its looks.
        canary = f"test_{secrets.token_hex(8)}"
        report_path = new_report_path("jsonl")
        key = new_key()
        settings = {
            "report": f"{root}/{report_path}",
            "key": key,
            "canary": canary,
            "shuffle_seed": request.shuffle_seed,
            "test_files": None if request.test_files is None else [os.fsdecode(path) for path in request.test_files],
        }
        inside = resources.files("evalpipe.runners").joinpath("inside")
        files = {f"runner/{name}".encode(): inside.joinpath(name).read_bytes() for name in (_PROGRAM, _SEAL)}
        return TestPlan(
            command=(self.python, "-B", f"{root}/runner/{_PROGRAM}", *self.arguments),
            env={"PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            files={**files, b"runner/settings.json": json.dumps(settings).encode()},
            report_path=report_path,
            canary=canary,
            key=key,
        )

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """Read the JSON lines that `evalpipe_unittest.py` wrote, of which the last says that the run is complete."""
        return read_json_lines(report, plan.canary, plan.key)
