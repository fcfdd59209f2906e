import datetime as dt

import pytest

from evalpipe.environments.recipe import NoRecipe, Project, Recipe
from evalpipe.environments.templates.go import GoModule, GoTemplate, go_modules
from evalpipe_tests.environments.templates.memory_tree import MemoryTree


def _recipe(files: dict[str, str], setup: tuple[str, ...] = ()) -> Recipe:
    return GoTemplate().recipe(Project(MemoryTree(files), dt.date(2024, 5, 1), None, setup=setup))


def test_a_module_in_each_of_two_folders_is_fetched_and_both_decide() -> None:
    files = {f"{name}/{file}": "" for name in ("api", "the server") for file in ("go.mod", "go.sum", "x_test.go")}
    recipe = _recipe(files)
    assert recipe.decided_by == (b"api/go.mod", b"api/go.sum", b"the server/go.mod", b"the server/go.sum")
    fetch, compiling = recipe.steps
    assert "cd ./api\n" in fetch
    assert "cd './the server'\n" in fetch
    assert fetch.count("go mod download") == 2
    assert compiling.count("go test") == 2


def test_modules_that_go_leaves_out_are_nobodys() -> None:
    files = ["go.mod", "_asm/go.mod", "internal/testdata/case/go.mod", ".hidden/go.mod", "vendor/x/go.mod", "a/go.mod"]
    assert [module.folder for module in go_modules(MemoryTree(dict.fromkeys(files, "")))] == [b"", b"a"]


def test_a_module_without_tests_may_fail() -> None:
    fetch = _recipe({"go.mod": "", "x_test.go": "", "tools/go.mod": "", "tools/main.go": ""}).steps[0]
    top, tools = fetch.split("cd ./tools")
    assert "has no tests" not in top
    assert "has no tests" in tools


def test_a_workspace_holds_for_the_modules_that_it_names() -> None:
    work = 'go 1.22\n\nuse (\n\t./a // the first\n\t"./b"\n)\nuse ./deep/c\nuse ../elsewhere\n'
    files = {"go.work": work, "go.work.sum": "", "vendor/modules.txt": ""}
    files |= {f"{folder}/go.mod": "" for folder in ("a", "b", "deep/c", "d")}
    modules = go_modules(MemoryTree(files))
    vendor = b"vendor/modules.txt"
    assert modules == [
        GoModule(b"a", False, True, vendor),
        GoModule(b"b", False, True, vendor),
        GoModule(b"d", False, False, None),
        GoModule(b"deep/c", False, True, vendor),
    ]
    recipe = _recipe(files)
    assert recipe.steps[0].count("export GOWORK=off") == 1
    assert {b"go.work", b"go.work.sum", vendor} < set(recipe.decided_by)


def test_what_is_vendored_is_not_downloaded() -> None:
    recipe = _recipe({"go.mod": "", "a_test.go": "", "vendor/modules.txt": "", "vendor/x/x.go": ""})
    assert "download" not in recipe.steps[0]
    assert "mod=mod" not in recipe.steps[0]
    assert recipe.decided_by == (b"go.mod", b"vendor/modules.txt")


def test_the_network_is_refused_only_when_all_is_there() -> None:
    recipe = _recipe({"go.mod": ""})
    assert "GOPROXY" not in recipe.env
    assert "GOPROXY=off" not in recipe.steps[0]
    assert "GOPROXY=off" in recipe.steps[1]
    assert recipe.env["GOTOOLCHAIN"] == "local"


def test_setup_comes_first_because_it_brings_what_is_compiled_against() -> None:
    assert _recipe({"go.mod": ""}, setup=("apt-get install -y libpcap-dev",)).steps[0].startswith("apt-get")


def test_a_tree_without_modules_has_no_recipe() -> None:
    with pytest.raises(NoRecipe, match=r"no go\.mod"):
        _recipe({"main.go": "", "testdata/go.mod": ""})
