"""An environment has what the change asks for beyond its base, and is that of the base when it asks for nothing."""

import datetime as dt
import json
from collections.abc import Mapping

import pytest

from evalpipe.environments.recipe import Project, Recipe
from evalpipe.environments.templates import TEMPLATES
from evalpipe_tests.environments.templates.memory_tree import MemoryChange, MemoryTree

_TREES: dict[str, dict[str, str]] = {
    "python": {
        "pyproject.toml": '[project]\nname = "shop"\ndependencies = ["attrs>=22"]\n'
        '[build-system]\nrequires = ["flit_core"]\n[dependency-groups]\ntests = ["pytest"]\ndocs = ["sphinx"]\n',
        "shop.py": "",
    },
    "go": {"go.mod": "module shop\n", "go.sum": "", "shop_test.go": "package shop\n"},
    "rust": {"Cargo.toml": '[package]\nname = "shop"\nversion = "1.0.0"\n', "src/lib.rs": ""},
    "node": {"package.json": '{"name": "shop", "version": "1.0.0", "devDependencies": {"mocha": "^10"}}', "a.js": ""},
    "maven": {"pom.xml": "<project><groupId>a</groupId><artifactId>b</artifactId><version>1</version></project>"},
    "gradle": {"build.gradle": "", "src/A.java": ""},
}


def _recipe(template: str, changed: Mapping[str, str | None] | None) -> Recipe:
    base = _TREES[template]
    change = None if changed is None else MemoryChange(base, changed)
    return TEMPLATES[template].recipe(Project(MemoryTree(base), dt.date(2024, 5, 1), None, change=change))


@pytest.mark.parametrize(
    ("template", "changed"),
    [
        *((template, {"notes.toml": "x", "shop.py": "x", "a.js": "x", "src/A.java": "x"}) for template in _TREES),
        ("python", {"pyproject.toml": _TREES["python"]["pyproject.toml"] + "[tool.ruff]\nline-length = 99\n"}),
        ("python", {"pyproject.toml": _TREES["python"]["pyproject.toml"].replace("sphinx", "sphinx>=7")}),
        ("python", {"pyproject.toml": _TREES["python"]["pyproject.toml"].replace('"attrs>=22"', "")}),
        ("rust", {"Cargo.toml": '[package]\nname = "shop"\nversion = "1.1.0"\nrust-version = "1.70"\n'}),
        ("rust", {"fuzz/Cargo.toml": '[package]\nname = "fuzz"\n[workspace]\n[dependencies]\nx = "1"\n'}),
        ("node", {"package.json": '{"name": "shop", "version": "1.1.0", "devDependencies": {"mocha": "^10"}}'}),
        ("node", {"package.json": '{"name": "shop", "scripts": {"test": "mocha"}}'}),
        ("go", {"testdata/go.mod": "module x\n"}),
        ("gradle", {"src/test/resources/build.gradle": "x"}),
    ],
)
def test_change_that_asks_for_nothing_more_shares_the_environment(
    template: str, changed: Mapping[str, str | None]
) -> None:
    assert _recipe(template, changed) == _recipe(template, None)


@pytest.mark.parametrize(
    ("template", "path", "text"),
    [
        ("go", "go.mod", "module shop\nrequire example.com/a v1.0.0\n"),
        ("go", "tools/go.mod", "module tools\n"),
        ("rust", "Cargo.toml", '[package]\nname = "shop"\n[dependencies]\nserde = "1"\n'),
        ("rust", "Cargo.lock", "version = 3\n"),
        ("maven", "pom.xml", "<project><dependencies/></project>"),
        ("gradle", "build.gradle", "dependencies {}"),
    ],
)
def test_tools_that_keep_versions_side_by_side_fetch_once_more(template: str, path: str, text: str) -> None:
    plain, more = _recipe(template, None), _recipe(template, {path: text})
    added = [step for step in more.steps if step not in plain.steps]
    assert len(added) == 1
    assert added[0].startswith("# what the change asks for beyond its base\n")
    assert {name: data for name, data in more.files.items() if name not in plain.files} == {
        f"/tmp/evalpipe-change/{path}": text.encode()
    }
    # What decides is still read from the base's tree: no source of the change is ever there.
    assert more.decided_by == plain.decided_by


def test_new_crate_gets_sources_that_cargo_accepts() -> None:
    changed = {
        "Cargo.toml": '[package]\nname = "shop"\n[workspace]\nmembers = ["till"]\n',
        "till/Cargo.toml": '[package]\nname = "till"\n',
        "till/src/lib.rs": "secret",
    }
    recipe = _recipe("rust", changed)
    assert any(": > till/src/lib.rs" in step for step in recipe.steps)
    assert b"secret" not in recipe.files.values()


def test_vendored_go_brings_its_dependencies_itself() -> None:
    changed = {"go.mod": "module shop\nrequire example.com/a v1.0.0\n", "vendor/modules.txt": "# a\n"}
    assert _recipe("go", changed) == _recipe("go", None)


def test_node_gets_the_manifest_of_the_change_with_what_only_the_base_asks_for() -> None:
    manifest = {"name": "shop", "dependencies": {"mocha": "^11", "qs": "^6"}, "devDependencies": {"sinon": "1"}}
    recipe = _recipe("node", {"package.json": json.dumps(manifest), "package-lock.json": "{}"})
    assert json.loads(recipe.files["/work/repo/package.json"]) == manifest
    assert recipe.files["/work/repo/package-lock.json"] == b"{}"
    assert any("npm ci" in step for step in recipe.steps)
    assert recipe.decided_by == (b"package.json",)
    gone = _recipe("node", {"package.json": '{"name": "shop", "dependencies": {"qs": "^6"}}'})
    assert json.loads(gone.files["/work/repo/package.json"]) == {
        "name": "shop",
        "dependencies": {"qs": "^6"},
        "devDependencies": {"mocha": "^10"},
    }


@pytest.mark.parametrize(
    ("changed", "added"),
    [
        (('"attrs>=22"', '"attrs>=22", "idna"'), ["idna"]),
        (('"attrs>=22"', '"attrs>=23"'), ["attrs>=23"]),
        (('["pytest"]', '["pytest", "shop-helpers"]'), ["shop-helpers"]),
        (('["pytest"]', '["pytest", "shop", "x @ git+https://example.com/x"]'), []),
    ],
)
def test_python_adds_the_requirements_that_only_the_change_has(changed: tuple[str, str], added: list[str]) -> None:
    manifest = _TREES["python"]["pyproject.toml"].replace(*changed)
    recipe = _recipe("python", {"pyproject.toml": manifest, "uv.lock": '[[package]]\nname="idna"\nversion="3.1"\n'})
    data = recipe.files.get("/opt/evalpipe/python/added.txt", b"")
    assert data.decode().splitlines() == added
    assert any("added.txt" in step for step in recipe.steps) == bool(added)
    if added:
        assert recipe.files["/opt/evalpipe/python/added_locked.txt"] == b"idna==3.1\n"


@pytest.mark.parametrize(
    ("base", "change", "added"),
    [
        ({"setup.py": "setup(name='a')"}, {"setup.py": "setup(name='a', install_requires=['b'])"}, "b\n"),
        ({"setup.cfg": "[metadata]\nname = a\n"}, {"setup.cfg": "[options]\ninstall_requires =\n  b>1\n"}, "b>1\n"),
        (
            {"setup.py": "setup(name='a')", "requirements.txt": "b\n"},
            {"requirements.txt": "b\nc\n"},
            "c\n",
        ),
        (
            {"setup.py": "setup(name='a', extras_require={'test': ['b']})"},
            {"setup.py": "setup(name='a', extras_require={'test': ['b', 'c'], 'docs': ['d']})"},
            "c\n",
        ),
        (
            {"pyproject.toml": "[tool.poetry]\nname='a'\n[tool.poetry.dependencies]\nb='^1'\n[build-system]\n"},
            {"pyproject.toml": "[tool.poetry]\nname='a'\n[tool.poetry.dependencies]\nb='^1'\nc='^2'\n[build-system]\n"},
            "c<3,>=2\n",
        ),
    ],
)
def test_requirements_are_seen_wherever_a_project_writes_them(
    base: dict[str, str], change: dict[str, str | None], added: str
) -> None:
    tree = {"setup.py": "", "a.py": "", **base}
    project = Project(MemoryTree(tree), dt.date(2024, 5, 1), None, change=MemoryChange(tree, change))
    recipe = TEMPLATES["python"].recipe(project)
    assert recipe.files["/opt/evalpipe/python/added.txt"].decode() == added
