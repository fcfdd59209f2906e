"""The cargo runner: `cargo test` of every workspace, with a canary in each program that cargo makes of its tests."""

import os
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from evalpipe.runners.cargo_project import CargoPackage, CargoTarget, CargoWorkspace, workspaces
from evalpipe.runners.cargo_report import read_report
from evalpipe.runners.cargo_scripts import MAIN, RUN_PROGRAM, RUSTDOC
from evalpipe.runners.cargo_selection import canaries, chosen_targets, selection, single_calls, without_harness
from evalpipe.runners.plan import WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan, new_report_path
from evalpipe.runners.report import SuiteReport


@dataclass(frozen=True, slots=True)
class CargoRunner:
    """Runs cargo test. `arguments` are added to the command, for example `--all-features`; those for the test programs
    come after `--`.
    """

    arguments: tuple[str, ...] = ()
    name: str = "cargo"
    can_shuffle: bool = False

    def plan(self, root: str, tree: SuiteTree, request: SuiteRequest = WHOLE_SUITE) -> TestPlan:
        """See `Runner.plan`. A chosen file stands for its target, or for its package where it is none by itself."""
        token, canary = secrets.token_hex(16), f"t_{secrets.token_hex(8)}"
        report_path = new_report_path("report")
        found = workspaces(tree)
        return TestPlan(
            command=("/bin/sh", f"{root}/runner/cargo.sh", f"{root}/runner", f"{root}/{report_path}", token),
            env={"LC_ALL": "C.UTF-8", "TZ": "UTC", "CARGO_NET_OFFLINE": "true", "CARGO_TERM_COLOR": "never"},
            files={
                b"runner/cargo.sh": self._script(found, request),
                b"runner/program.sh": RUN_PROGRAM.encode(),
                b"runner/rustdoc.sh": RUSTDOC.encode(),
                b"runner/no-harness": without_harness(found),
                **canaries(canary, tree, found),
            },
            report_path=report_path,
            canary=canary,
            key=token,
        )

    def read(self, plan: TestPlan, report: bytes | None, exit_code: int | None) -> SuiteReport:
        """See `cargo_report.read_report`; what the script's own exit code says, the report says too."""
        return read_report(report, plan.canary, plan.key)

    def _script(self, found: Sequence[CargoWorkspace], request: SuiteRequest) -> bytes:
        parts = [MAIN]
        for workspace in found or [CargoWorkspace(b"", ())]:
            chosen = None if request.test_files is None else chosen_targets(workspace, request.test_files)
            if chosen is None or chosen:
                parts.append(self._calls(workspace, chosen))
        return os.fsencode("\n".join([*parts, 'join >"$report"', ""]))

    def _calls(
        self, workspace: CargoWorkspace, chosen: Sequence[tuple[CargoPackage, CargoTarget | None]] | None
    ) -> str:
        """Shell commands: one call for all, or, where something does not build, one for each target."""
        options = ["--workspace"] if chosen is None else selection(chosen)
        common = ["--no-fail-fast", *options, *self.arguments]
        wanted = [(package, None) for package in workspace.packages] if chosen is None else chosen
        singly = [
            shlex.join(["call", label, "--no-fail-fast", "--manifest-path", manifest, *option, *self.arguments])
            for package, target in wanted
            for label, manifest, option in single_calls(package, target)
        ]
        return "\n".join(
            [
                f"cd {shlex.quote('./' + os.fsdecode(workspace.folder))} || exit",
                f"if {shlex.join(['call', 'build', '--no-run', '--message-format=json', *common])}; then",
                f"    {shlex.join(['call', 'all', *common])}",
                "else",
                *(f"    {line}" for line in singly or ["true"]),
                "fi",
                'cd "$top" || exit',
            ]
        )
