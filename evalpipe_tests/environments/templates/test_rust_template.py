import datetime as dt

import pytest

from evalpipe.environments.recipe import NoRecipe, Project, Recipe
from evalpipe.environments.templates.cargo_manifests import cargo_workspaces
from evalpipe.environments.templates.rust import RustTemplate
from evalpipe_tests.environments.templates.memory_tree import MemoryTree

_PACKAGE = '[package]\nname = "{}"\nversion = "1.0.0"\n'


def _recipe(files: dict[str, str]) -> Recipe:
    return RustTemplate().recipe(Project(MemoryTree(files), dt.date(2024, 5, 1), None))


def test_a_workspace_is_its_members_and_what_they_point_to() -> None:
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["crates/*", "cli"]\nexclude = ["crates/old"]\n'
        '[workspace.dependencies]\nshared = { path = "lib/shared" }\n[patch.crates-io]\nfork = { path = "fork" }\n',
        "crates/a/Cargo.toml": _PACKAGE.format("a") + '[dev-dependencies]\nhelper = { path = "../../tests/helper" }\n',
        "crates/old/Cargo.toml": _PACKAGE.format("old"),
        "crates/a/tests/case/Cargo.toml": _PACKAGE.format("fixture"),
        "cli/Cargo.toml": _PACKAGE.format("the-cli") + '[target."cfg(unix)".dependencies]\nu = { path = "../u" }\n',
        "lib/shared/Cargo.toml": _PACKAGE.format("shared"),
        "tests/helper/Cargo.toml": _PACKAGE.format("helper"),
        "fork/Cargo.toml": _PACKAGE.format("fork"),
        "u/Cargo.toml": _PACKAGE.format("u"),
        "fuzz/Cargo.toml": _PACKAGE.format("fuzz"),
        "Cargo.lock": "",
        "fuzz/Cargo.lock": "",
        ".cargo/config.toml": "",
        "rust-toolchain.toml": "",
    }
    (workspace,) = cargo_workspaces(MemoryTree(files))
    assert list(workspace.versions) == ["a", "fork", "helper", "shared", "the-cli", "u"]
    recipe = _recipe(files)
    assert set(recipe.decided_by) == {
        path.encode()
        for path in files
        if path not in ("crates/old/Cargo.toml", "crates/a/tests/case/Cargo.toml", "fuzz/Cargo.toml", "fuzz/Cargo.lock")
    }
    assert recipe.keeps == ()


def test_where_the_top_is_no_crate_each_outermost_one_is_built() -> None:
    files = {"rust/Cargo.toml": _PACKAGE.format("a"), "ffi/Cargo.toml": _PACKAGE.format("b"), "rust/x/Cargo.toml": ""}
    assert [workspace.folder for workspace in cargo_workspaces(MemoryTree(files))] == [b"ffi", b"rust"]
    recipe = _recipe(files)
    assert "cd ./ffi\n" in recipe.steps[0]
    assert "cd ./rust\n" in recipe.steps[0]
    assert recipe.keeps == ("ffi/Cargo.lock", "rust/Cargo.lock")


def test_the_day_matters_only_where_there_is_no_lock() -> None:
    locked = _recipe({"Cargo.toml": _PACKAGE.format("a"), "Cargo.lock": ""})
    assert "2024" not in "".join(locked.steps)
    unlocked = _recipe({"Cargo.toml": _PACKAGE.format("a")})
    assert "lock_as_of 2024-05-01" in unlocked.steps[0]
    assert unlocked.keeps == ("Cargo.lock",)


def test_all_that_is_compiled_of_the_projects_own_crates_is_removed() -> None:
    steps = _recipe({"Cargo.toml": _PACKAGE.format("own-crate"), "Cargo.lock": ""}).steps
    assert steps[1].index("cargo test") < steps[1].index("\nremove_own own-crate\n")


@pytest.mark.parametrize("files", [{"src/lib.rs": ""}, {"Cargo.toml": "[package\n"}])
def test_no_recipe_without_a_manifest_that_can_be_read(files: dict[str, str]) -> None:
    with pytest.raises(NoRecipe, match=r"Cargo\.toml"):
        _recipe(files)
