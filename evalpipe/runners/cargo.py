"""The cargo runner: `cargo test` of a workspace, with a canary in every program that cargo makes of its tests.

The canary is appended to the first file of each target, not a target of its own: it costs no compilation, and stands
in the same program as the tests that it proves. Documentation tests get one of their own kind.
"""

import os
import secrets
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evalpipe.runners.cargo_project import CargoPackage, CargoTarget, CargoWorkspace, under, workspaces
from evalpipe.runners.cargo_report import read_report
from evalpipe.runners.cargo_scripts import MAIN, RUN_PROGRAM, RUSTDOC
from evalpipe.runners.plan import REPOSITORY_FOLDER, WHOLE_SUITE, SuiteRequest, SuiteTree, TestPlan
from evalpipe.runners.report import SuiteReport

_CANARY = """
#[cfg(test)]
#[test]
fn {name}() {{
    panic!("fails on purpose")
}}
"""
_DOC_CANARY = """
/// ```
/// panic!("fails on purpose");
/// ```
#[cfg(doctest)]
#[allow(dead_code, non_camel_case_types)]
pub struct {name};
"""


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
        report_path = f"out/{secrets.token_hex(8)}.report"
        found = workspaces(tree)
        return TestPlan(
            command=("/bin/sh", f"{root}/runner/cargo.sh", f"{root}/runner", f"{root}/{report_path}", token),
            env={"LC_ALL": "C.UTF-8", "TZ": "UTC", "CARGO_NET_OFFLINE": "true", "CARGO_TERM_COLOR": "never"},
            files={
                b"runner/cargo.sh": self._script(found, request),
                b"runner/program.sh": RUN_PROGRAM.encode(),
                b"runner/rustdoc.sh": RUSTDOC.encode(),
                b"runner/no-harness": _without_harness(found),
                **_canaries(canary, tree, found),
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
            chosen = None if request.test_files is None else _chosen(workspace, request.test_files)
            if chosen is None or chosen:
                parts.append(self._calls(workspace, chosen))
        return os.fsencode("\n".join([*parts, 'join >"$report"', ""]))

    def _calls(
        self, workspace: CargoWorkspace, chosen: Sequence[tuple[CargoPackage, CargoTarget | None]] | None
    ) -> str:
        """Shell commands: one call for all, or, where something does not build, one for each target."""
        selection = ["--workspace"] if chosen is None else _selection(chosen)
        common = ["--no-fail-fast", *selection, *self.arguments]
        wanted = [(package, None) for package in workspace.packages] if chosen is None else chosen
        singly = [
            shlex.join(["call", label, "--no-fail-fast", "--manifest-path", manifest, *option, *self.arguments])
            for package, target in wanted
            for label, manifest, option in _single_calls(package, target)
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


def _single_calls(package: CargoPackage, wanted: CargoTarget | None) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    """For each target of a package its label, the manifest and the option; then its documentation tests."""
    manifest = f"./{os.fsdecode(under(package.folder, b'Cargo.toml'))}"
    for target in package.targets if wanted is None else (wanted,):
        yield f"{package.name}::{target.label}", manifest, target.option
    if wanted is None and any(target.kind == "lib" for target in package.targets):
        yield f"{package.name}::doc", manifest, ("--doc",)


def _chosen(workspace: CargoWorkspace, files: Iterable[bytes]) -> list[tuple[CargoPackage, CargoTarget | None]]:
    """Targets whose first file was chosen, or whole packages (no target) where another of their files was."""
    found: dict[tuple[str, str], tuple[CargoPackage, CargoTarget | None]] = {}
    for path in files:
        owners = [
            package for package in workspace.packages if not package.folder or path.startswith(package.folder + b"/")
        ]
        if owners:
            package = max(owners, key=lambda owner: len(owner.folder))
            target = next((target for target in package.targets if target.root == path and target.kind == "test"), None)
            found[package.name, target.label if target else ""] = package, target
    return [
        (package, target)
        for (name, _), (package, target) in sorted(found.items(), key=lambda item: item[0])
        if target is None or (name, "") not in found
    ]


def _selection(chosen: Sequence[tuple[CargoPackage, CargoTarget | None]]) -> list[str]:
    options = [word for package in dict.fromkeys(package.name for package, _ in chosen) for word in ("-p", package)]
    targets = [target for _, target in chosen]
    # With an option for one target, cargo leaves out all that has none.
    if None not in targets:
        options += [word for target in targets if target is not None for word in target.option]
    return options


def _without_harness(found: Iterable[CargoWorkspace]) -> bytes:
    """A line for each target that libtest does not run: package, and name as in its program's."""
    lines = [
        f"{package.name}/{target.name.replace('-', '_')}\n"
        for workspace in found
        for package in workspace.packages
        for target in package.targets
        if not target.harness
    ]
    return os.fsencode("".join(lines))


def _canaries(name: str, tree: SuiteTree, found: Iterable[CargoWorkspace]) -> dict[bytes, bytes]:
    """The first files of the targets with a test at their end that fails."""
    files: dict[bytes, bytes] = {}
    for workspace in found:
        for package in workspace.packages:
            for target in package.targets:
                canary = _CANARY.format(name=name)
                if target.kind == "lib" and _has_documented_code(tree, package):
                    canary += _DOC_CANARY.format(name=name)
                if target.harness:
                    files[under(REPOSITORY_FOLDER.encode(), target.root)] = tree[target.root] + canary.encode()
    return files


def _has_documented_code(tree: SuiteTree, package: CargoPackage) -> bool:
    sources = under(package.folder, b"src/")
    return any(
        b"```" in content for path, content in tree.items() if path.startswith(sources) and path.endswith(b".rs")
    )
