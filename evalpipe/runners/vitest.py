"""The Vitest runner: how it is started. It needs nothing in the repository; its reporter lies beside the tree."""

from collections.abc import Sequence
from dataclasses import dataclass

from evalpipe.runners.javascript import (
    Box,
    canaries_in,
    chosen_files,
    javascript_plan,
    let_canary_through,
    read_javascript,
)
from evalpipe.runners.javascript_canary import Canary
from evalpipe.runners.plan import WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan
from evalpipe.runners.report import SuiteReport

_REPORTER = "evalpipe_vitest.mjs"
# Settings of the repository may stop early, wait, or fail for other reasons than a test. What tests print goes straight
# to the output: sent to Vitest's own process line by line, 50 MB take minutes and gigabytes.
_OVERRULED = (
    *("--run", "--bail=0", "--coverage.enabled=false", "--allowOnly", "--no-update"),
    "--disable-console-intercept",
)


@dataclass(frozen=True, slots=True)
class VitestRunner:
    """Runs Vitest 1 or newer, with `arguments` of its command line."""

    arguments: tuple[str, ...] = ()
    name: str = "vitest"
    can_shuffle: bool = True

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`."""
        box = Box(root)

        def write(canary: Canary) -> Sequence[str]:
            # Vitest compiles every file as a module, whatever its ending says.
            imported = 'import { test } from "vitest";'
            return [imported, f'test("{box.canary}", () => {{', '  throw new Error("on purpose");', "});"]

        canaries = canaries_in(tree, box, request, self.arguments, write)
        arguments = let_canary_through(self.arguments, ("-t", "--testNamePattern"), box.canary)
        arguments += [*_OVERRULED, f"--reporter={box.reporter(_REPORTER)}"]
        if request.shuffle_seed is not None:
            arguments += ["--sequence.shuffle", f"--sequence.seed={request.shuffle_seed}"]
        chosen = chosen_files(tree, request)
        if chosen is not None:
            arguments += [box.in_tree(path) for path in [*chosen, *canaries]]
        return javascript_plan(box, _REPORTER, "vitest", arguments, canaries, workers_option="--maxWorkers")

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """Read the report of `evalpipe_vitest.mjs`."""
        return read_javascript(plan, report)
