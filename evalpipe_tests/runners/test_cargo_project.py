"""Packages and targets as cargo finds them: compared with `cargo metadata` where the machine has cargo."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from evalpipe.runners.cargo_project import CargoWorkspace, workspaces

FILES = {
    "Cargo.toml": """
        [workspace]
        members = ["crates/*", "deep/**/inner", "./tools/one"]
        exclude = ["crates/left-out"]
        [package]
        name = "top-app"
        edition = "2021"
        [dependencies]
        by-path = { path = "by-path" }
        [target.'cfg(unix)'.dev-dependencies]
        for-unix = { path = "for-unix" }
        [[bin]]
        name = "named"
        path = "src/other.rs"
        [[test]]
        name = "no-harness"
        harness = false
        [[test]]
        name = "elsewhere"
        path = "checks/it.rs"
        [[test]]
        name = "not-run"
        test = false
    """,
    "src/main.rs": "",
    "src/lib.rs": "",
    "src/other.rs": "",
    "src/bin/tool.rs": "",
    "src/bin/big/main.rs": "",
    "src/bin/big/part.rs": "",
    "tests/plain.rs": "",
    "tests/no-harness.rs": "",
    "tests/not-run.rs": "",
    "tests/folder/main.rs": "",
    "tests/common/mod.rs": "",
    "checks/it.rs": "",
    "crates/a/Cargo.toml": '[package]\nname = "a"\n[lib]\nname = "a_lib"\npath = "lib.rs"\n',
    "crates/a/lib.rs": "",
    "crates/left-out/Cargo.toml": '[package]\nname = "left-out"\n',
    "crates/left-out/src/lib.rs": "",
    "deep/x/y/inner/Cargo.toml": '[package]\nname = "inner"\nautobins = false\nautotests = false\n',
    "deep/x/y/inner/src/main.rs": "",
    "deep/x/y/inner/src/lib.rs": "",
    "deep/x/y/inner/tests/t.rs": "",
    "tools/one/Cargo.toml": '[package]\nname = "one"\n[[bin]]\nname = "one"\ntest = false\n',
    "tools/one/src/main.rs": "",
    "tools/one/src/bin/unseen.rs": "",
    "by-path/Cargo.toml": '[package]\nname = "by-path"\n',
    "by-path/src/lib.rs": "",
    "for-unix/Cargo.toml": '[package]\nname = "for-unix"\n',
    "for-unix/src/lib.rs": "",
    "tests/fixture/Cargo.toml": '[package]\nname = "fixture"\n',
    "tests/fixture/src/lib.rs": "",
}


def tree(files: dict[str, str]) -> dict[bytes, bytes]:
    return {path.encode(): content.replace("        ", "").encode() for path, content in files.items()}


def listed(workspace: CargoWorkspace) -> dict[str, set[str]]:
    return {package.name: {target.label for target in package.targets} for package in workspace.packages}


EXPECTED = {
    "top-app": {
        *("lib", "bin/top-app", "bin/named", "bin/tool", "bin/big"),
        *("test/plain", "test/no-harness", "test/folder", "test/elsewhere"),
    },
    "a": {"lib"},
    "inner": {"lib"},
    "one": set(),
    "by-path": {"lib"},
    "for-unix": {"lib"},
}


def test_members_and_targets() -> None:
    (workspace,) = workspaces(tree(FILES))
    assert workspace.folder == b""
    assert listed(workspace) == EXPECTED
    targets = {target.name: target for package in workspace.packages for target in package.targets}
    assert not targets["no-harness"].harness
    assert targets["elsewhere"].root == b"checks/it.rs"
    assert targets["a_lib"].option == ("--lib",)
    assert targets["big"].option == ("--bin", "big")


@pytest.mark.skipif(shutil.which("cargo") is None, reason="this machine has no cargo")
def test_cargo_says_the_same(tmp_path: Path) -> None:
    for path, content in tree(FILES).items():
        file = tmp_path / path.decode()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    command = ["cargo", "metadata", "--no-deps", "--offline", "--format-version", "1"]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    found: dict[str, set[str]] = {}
    for package in json.loads(answer.stdout)["packages"]:
        tested = [target for target in package["targets"] if target["test"]]
        found[package["name"]] = {
            "lib" if target["kind"] == ["lib"] else f"{target['kind'][0]}/{target['name']}" for target in tested
        }
    assert found == EXPECTED


def test_where_the_top_has_no_manifest_those_nearest_count() -> None:
    files = {
        "rust/Cargo.toml": '[package]\nname = "r"\n',
        "rust/src/lib.rs": "",
        "rust/fuzz/Cargo.toml": '[package]\nname = "fuzz"\n[workspace]\n',
        "rusty/Cargo.toml": '[workspace]\nmembers = ["x"]\n',
        "rusty/x/Cargo.toml": '[package]\nname = "x"\n',
        "rusty/x/tests/t.rs": "",
    }
    assert [(found.folder, listed(found)) for found in workspaces(tree(files))] == [
        (b"rust", {"r": {"lib"}}),
        (b"rusty", {"x": {"test/t"}}),
    ]


@pytest.mark.parametrize(
    "manifest",
    [
        "",
        "not TOML [",
        "\xff",
        "package = 3\nworkspace = 4\ntarget = 5\n",
        '[package]\nname = 3\n[workspace]\nmembers = "x"\n',
    ],
)
def test_what_cargo_could_not_read_either_has_no_packages(manifest: str) -> None:
    found = workspaces({b"Cargo.toml": manifest.encode("latin-1"), b"src/lib.rs": b""})
    assert [workspace.packages for workspace in found] == [()]
