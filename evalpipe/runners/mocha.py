"""The Mocha runner: how it is started. It needs nothing in the team's repository; its reporter lies beside the tree."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from evalpipe.runners.javascript import Box, canaries_in, chosen_files, javascript_plan, read_javascript
from evalpipe.runners.javascript_canary import Canary
from evalpipe.runners.plan import WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan
from evalpipe.runners.report import SuiteReport

_REPORTER = "evalpipe_mocha.cjs"
# Settings of the repository may stop early, wait, or run files in workers where the reporter does not see them.
_OVERRULED = (
    *("--no-bail", "--no-parallel", "--no-watch", "--no-forbid-only", "--no-forbid-pending", "--no-dry-run"),
    "--exit",
)


@dataclass(frozen=True, slots=True)
class MochaRunner:
    """Runs Mocha 8 or newer, with `arguments` of its command line."""

    arguments: tuple[str, ...] = ()
    name: str = "mocha"
    can_shuffle: bool = False

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`."""
        box = Box(root)

        def write(canary: Canary) -> Sequence[str]:
            imported = [canary.imported("{ describe, it }", "mocha")] if "mocha" in canary.names else []
            group, test = ("describe", "it") if imported else (_either("describe", "suite"), _either("it", "test"))
            return [
                *imported,
                f'{group}("{box.canary}", () => {{',
                f'  {test}("{box.canary}", () => {{ throw new Error("on purpose"); }});',
                "});",
            ]

        canaries = dict(list(canaries_in(tree, box, request, self.arguments, write, ["mocha"]).items())[:1])
        chosen = chosen_files(tree, request)
        reporter = box.reporter(_REPORTER)
        return javascript_plan(
            box,
            _REPORTER,
            "mocha",
            [*self.arguments, *_OVERRULED, "--require", reporter, "--reporter", reporter],
            canaries,
            settings={
                "canary_file": os.fsdecode(next(iter(canaries))),
                "test_files": None if chosen is None else [os.fsdecode(path) for path in chosen],
            },
        )

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """Read the report of `evalpipe_mocha.cjs`."""
        return read_javascript(plan, report)


def _either(behaviour: str, test: str) -> str:
    """The function of the one interface that there is: of behaviour-driven tests or of test-driven ones."""
    return f'(typeof {behaviour} === "function" ? {behaviour} : {test})'
