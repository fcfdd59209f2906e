"""The runner of node's own tests: how it is started. Its reporter lies beside the tree."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from evalpipe.runners.javascript import Box, canaries_in, chosen_files, javascript_plan, read_javascript
from evalpipe.runners.javascript_canary import Canary
from evalpipe.runners.plan import WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan
from evalpipe.runners.report import SuiteReport

_REPORTER = "evalpipe_node.mjs"
_PATTERN = "--test-name-pattern"


@dataclass(frozen=True, slots=True)
class NodeRunner:
    """Runs `node --test` of Node 20 or newer, with `arguments` of its command line: options, files and folders."""

    arguments: tuple[str, ...] = ()
    name: str = "node"
    can_shuffle: bool = False

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`."""
        box = Box(root)

        def write(canary: Canary) -> Sequence[str]:
            imported = canary.imported("{ test }", "node:test")
            return [imported, f'test("{box.canary}", () => {{', '  throw new Error("on purpose");', "});"]

        canaries = canaries_in(tree, box, request, self.arguments, write)
        has_pattern = any(argument.partition("=")[0] == _PATTERN for argument in self.arguments)
        options = [f"{_PATTERN}={box.canary}"] if has_pattern else []
        reporter = [f"--test-reporter={box.reporter(_REPORTER)}", "--test-reporter-destination=stdout"]
        chosen = chosen_files(tree, request)
        files = [] if chosen is None else [*chosen, *canaries]
        if any(argument.encode() in tree for argument in self.arguments):
            files += [path for path in canaries if path not in files]
        return javascript_plan(
            box,
            _REPORTER,
            "node",
            ["--test", *reporter, *options, *self.arguments, *map(os.fsdecode, files)],
            canaries,
            workers_option="--test-concurrency",
        )

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """Read the report of `evalpipe_node.mjs`."""
        return read_javascript(plan, report)
