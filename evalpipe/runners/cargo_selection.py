"""Which targets of a Cargo project are run, by which options, and the canaries in them.

The canary is appended to the first file of each target, not a target of its own: it costs no compilation, and stands
in the same program as the tests that it proves. Documentation tests get one of their own kind.
"""

import os
from collections.abc import Iterable, Sequence

from evalpipe.runners.cargo_project import CargoPackage, CargoTarget, CargoWorkspace, under
from evalpipe.runners.plan import REPOSITORY_FOLDER, SuiteTree

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


def single_calls(package: CargoPackage, wanted: CargoTarget | None) -> Iterable[tuple[str, str, tuple[str, ...]]]:
    """For each target of a package its label, the manifest and the option; then its documentation tests."""
    manifest = f"./{os.fsdecode(under(package.folder, b'Cargo.toml'))}"
    for target in package.targets if wanted is None else (wanted,):
        yield f"{package.name}::{target.label}", manifest, target.option
    if wanted is None and any(target.kind == "lib" for target in package.targets):
        yield f"{package.name}::doc", manifest, ("--doc",)


def chosen_targets(workspace: CargoWorkspace, files: Iterable[bytes]) -> list[tuple[CargoPackage, CargoTarget | None]]:
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


def selection(chosen: Sequence[tuple[CargoPackage, CargoTarget | None]]) -> list[str]:
    options = [word for package in dict.fromkeys(package.name for package, _ in chosen) for word in ("-p", package)]
    targets = [target for _, target in chosen]
    # With an option for one target, cargo leaves out all that has none.
    if None not in targets:
        options += [word for target in targets if target is not None for word in target.option]
    return options


def without_harness(found: Iterable[CargoWorkspace]) -> bytes:
    """A line for each target that libtest does not run: package, and name as in its program's."""
    lines = [
        f"{package.name}/{target.name.replace('-', '_')}\n"
        for workspace in found
        for package in workspace.packages
        for target in package.targets
        if not target.harness
    ]
    return os.fsencode("".join(lines))


def canaries(name: str, tree: SuiteTree, found: Iterable[CargoWorkspace]) -> dict[bytes, bytes]:
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
