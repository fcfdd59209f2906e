"""The pytest runner: how it is started. It needs no plugin in the team's repository; its own lies beside the tree."""

import json
import os
import secrets
from dataclasses import dataclass
from importlib import resources
from string import ascii_lowercase

from evalpipe.runners.plan import WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan, new_report_path
from evalpipe.runners.pytest_report import read_report
from evalpipe.runners.report import SuiteReport
from evalpipe.runners.seal import new_key

_PROGRAM, _SEAL = "evalpipe_report.py", "evalpipe_seal.py"


@dataclass(frozen=True, slots=True)
class PytestRunner:
    """Runs pytest. `arguments` are added to the command, for example a marker expression."""

    python: str = "python3"
    arguments: tuple[str, ...] = ()
    name: str = "pytest"
    can_shuffle: bool = True

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`."""
        # A name like any other, so that it cannot be let through by its looks.
        canary = "test_" + "".join(secrets.choice(ascii_lowercase) for _ in range(12))
        report_path = new_report_path("jsonl")
        key = new_key()
        settings = {
            "report": f"{root}/{report_path}",
            "key": key,
            "canary": canary,
            "shuffle_seed": request.shuffle_seed,
        }
        inside = resources.files("evalpipe.runners").joinpath("inside")
        files = {f"runner/{name}".encode(): inside.joinpath(name).read_bytes() for name in (_PROGRAM, _SEAL)}
        return TestPlan(
            command=(
                *(self.python, "-B", f"{root}/runner/{_PROGRAM}"),
                # Settings of the repository may stop at the first failure or at a module that does not
                # import; each would hide the other tests. The cache would be written into the tree.
                *("--maxfail=0", "--continue-on-collection-errors", "-o", f"cache_dir={root}/cache/pytest"),
                *self.arguments,
                *self._chosen(request),
            ),
            env={"PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "TZ": "UTC"},
            files={**files, b"runner/settings.json": json.dumps(settings).encode()},
            report_path=report_path,
            canary=canary,
            key=key,
        )

    def _chosen(self, request: SuiteRequest) -> list[str]:
        if request.test_files is None:
            return []
        # Without it the folder of the files may become the root, from which pytest makes its ids.
        return ["--rootdir=.", *map(os.fsdecode, request.test_files)]

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """Read the JSON lines that `evalpipe_report.py` wrote, which hold the exit status too; see `read_report`."""
        return read_report(report, plan.canary, plan.key)
