"""The Jest runner: how it is started. It needs nothing in the team's repository; its reporter lies beside the tree."""

import os
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

_REPORTER, _GLOBALS = "evalpipe_jest.cjs", "@jest/globals"
# Settings of the repository may stop early, wait, or fail for other reasons than a test.
_OVERRULED = (
    *("--ci", "--bail=0", "--watch=false", "--watchAll=false", "--notify=false", "--verbose=false"),
    *("--coverage=false", "--watchman=false", "--forceExit"),
)
_WORKERS = ("-i", "--runInBand", "-w", "--maxWorkers")


@dataclass(frozen=True, slots=True)
class JestRunner:
    """Runs Jest 27 or newer, with `arguments` of its command line. Another order needs 29.5 or newer."""

    arguments: tuple[str, ...] = ()
    name: str = "jest"
    can_shuffle: bool = True

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`."""
        box = Box(root)

        def write(canary: Canary) -> Sequence[str]:
            imported = [canary.imported("{ test }", _GLOBALS)] if _GLOBALS in canary.names else []
            return [*imported, f'test("{box.canary}", () => {{', '  throw new Error("on purpose");', "});"]

        canaries = canaries_in(tree, box, request, self.arguments, write, [_GLOBALS])
        arguments = let_canary_through(self.arguments, ("-t", "--testNamePattern"), box.canary)
        # From what its cache holds of an earlier run, Jest decides to run the tests in its own process.
        cache = f"--cacheDirectory={root}/cache/jest"
        arguments += [*_OVERRULED, cache, f"--reporters={box.reporter(_REPORTER)}"]
        if request.shuffle_seed is not None:
            arguments += ["--randomize", f"--seed={_seed(request.shuffle_seed)}"]
        chosen = chosen_files(tree, request)
        if chosen is not None:
            arguments += ["--runTestsByPath", *map(os.fsdecode, [*chosen, *canaries])]
        has_limit = any(argument.partition("=")[0] in _WORKERS for argument in self.arguments)
        return javascript_plan(
            box,
            _REPORTER,
            "jest",
            arguments,
            canaries,
            workers_option="" if has_limit else "--maxWorkers",
            env=_modules_of_node(tree),
        )

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """Read the report of `evalpipe_jest.cjs`."""
        return read_javascript(plan, report)


def _seed(seed: int) -> int:
    """Jest takes 32 bits, with a sign."""
    return (seed + 2**31) % 2**32 - 2**31


def _modules_of_node(tree: SuiteTree) -> dict[str, str]:
    """The flag that Jest needs for modules of node's own kind, where a script of the repository gives it."""
    flag = "--experimental-vm-modules"
    wants = any(flag.encode() in data for path, data in tree.items() if path.rpartition(b"/")[2] == b"package.json")
    return {"NODE_OPTIONS": flag} if wants else {}
