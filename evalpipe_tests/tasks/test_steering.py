import hashlib
from collections.abc import Mapping
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.history.objects import SYMLINK, TreeEntry
from evalpipe.tasks.steering import setup_files, shadowing_files

Files = Mapping[str, str]


def tree(files: Files, links: Files | None = None) -> dict[bytes, TreeEntry]:
    return {
        path.encode(): TreeEntry(mode, hashlib.sha1(text.encode()).hexdigest())
        for mode, named in ((0o100644, files), (SYMLINK, links or {}))
        for path, text in named.items()
    }


def setup_of(
    reference: Files,
    trusted: set[str],
    *,
    base: Files | None = None,
    arguments: tuple[str, ...] = (),
    links: Files = MappingProxyType({}),
) -> set[str]:
    found = setup_files(
        tree(reference if base is None else base, links),
        tree(reference, links),
        {path.encode() for path in trusted | links.keys()},
        lambda paths: {path: {**reference, **links}[path.decode()].encode() for path in paths},
        arguments,
    )
    return {path.decode() for path in found}


def shadowing(added: str, there: str, tests: Files) -> set[str]:
    found = shadowing_files(
        [path.encode() for path in added.split()],
        [path.encode() for path in (*there.split(), *tests)],
        [path.encode() for path in tests],
        lambda paths: {path: tests[path.decode()].encode() for path in paths},
    )
    return {path.decode() for path in found}


@pytest.mark.parametrize(
    ("settings", "text", "file"),
    [
        ("jest.config.js", "module.exports = { setupFilesAfterEnv: ['<rootDir>/tools/setup.js'] };", "tools/setup.js"),
        ("jest.config.json", '{"globalSetup": "./tools/global"}', "tools/global.ts"),
        ("jest.config.ts", "export default { transform: { '.js$': './tools/change.js' } }", "tools/change.js"),
        ("package.json", '{"jest": {"testEnvironment": "./tools/place.js"}}', "tools/place.js"),
        ("package.json", '{"mocha": {"require": ["./tools/hooks"]}}', "tools/hooks/index.js"),
        ("vitest.config.ts", 'defineConfig({ test: { setupFiles: ["tools/a.ts", "tools/b.ts"] } })', "tools/b.ts"),
        (".mocharc.yml", "require:\n  - tools/hooks.cjs\nspec: test\n", "tools/hooks.cjs"),
        ("conftest.py", 'import a\npytest_plugins = ["shop.testing.plugin"]\n', "shop/testing/plugin.py"),
        ("conftest.py", "pytest_plugins: str = 'fixtures'\n", "src/fixtures/__init__.py"),
        ("pytest.ini", "[pytest]\naddopts = -q -p tools.plugin\n", "tools/plugin.py"),
        ("pyproject.toml", '[tool.pytest.ini_options]\naddopts = ["-p", "tools.plugin"]\n', "tools/plugin.py"),
    ],
)
def test_what_settings_name_is_set_up(settings: str, text: str, file: str) -> None:
    files = {settings: text, file: "", "index.js": "", "shop/prices.py": ""}
    assert setup_of(files, {settings}) == {file}


def test_what_the_test_command_names_and_what_a_trusted_link_leads_to_are_set_up() -> None:
    files = {"tools/setup.cjs": "", "config/real.py": "", "index.js": ""}
    for arguments in (("-x", "--require", "./tools/setup.cjs"), ("--import=./tools/setup.cjs",)):
        assert setup_of(files, set(), arguments=arguments) == {"tools/setup.cjs"}
    assert setup_of({"tools/plugin.py": "", "a.py": ""}, set(), arguments=("-p", "tools.plugin")) == {"tools/plugin.py"}
    assert setup_of({"shop.py": "", "a.py": ""}, set(), arguments=("--cov", "shop", "--pyargs", "a")) == set()
    assert setup_of(files, set(), links={"conftest.py": "config/real.py"}) == {"config/real.py"}
    assert setup_of(files, set(), links={"tools/conftest.py": "../config/real.py"}) == {"config/real.py"}


def test_settings_of_a_package_name_files_below_it() -> None:
    files = {"web/jest.config.js": "module.exports = { setupFiles: ['<rootDir>/tools/setup.js'] };"}
    assert setup_of({**files, "web/tools/setup.js": ""}, {"web/jest.config.js"}) == {"web/tools/setup.js"}


def test_product_that_settings_name_stays_product() -> None:
    package = '{"main": "lib/index.js", "exports": {"require": "./lib/index.js"}, "jest": {"testMatch": ["a.js"]}}'
    vite = "defineConfig({ build: { lib: { entry: 'src/index.ts' } } })"
    files = {"package.json": package, "vite.config.ts": vite, "lib/index.js": "", "src/index.ts": "", "a.js": ""}
    assert setup_of(files, {"package.json", "vite.config.ts"}) == set()


def test_a_plugin_that_the_reference_change_works_on_is_the_product() -> None:
    before = {"conftest.py": 'pytest_plugins = ["shop.plugin"]\n', "shop/plugin.py": "", "shop/a.py": "", "b.py": ""}
    assert setup_of({**before, "shop/a.py": "new"}, {"conftest.py"}, base=before) == set()
    assert setup_of({**before, "b.py": "new"}, {"conftest.py"}, base=before) == {"shop/plugin.py"}


PYTHON_TESTS = {"tests/test_a.py": "import os, numpy.testing as npt\nfrom shop.prices import total\n"}


@pytest.mark.parametrize(
    "added",
    [
        "numpy/testing.py", "numpy.py", "numpy.cpython-311-x86_64-linux-gnu.so", "src/numpy/__init__.py",
        "decimal.py", "unittest/mock.py",
    ],
)  # fmt: skip
def test_a_module_in_the_place_of_a_library_of_the_tests_shadows_it(added: str) -> None:
    assert shadowing(f"{added} shop/new.py", "shop/__init__.py shop/prices.py", PYTHON_TESTS) == {added}


@pytest.mark.parametrize(
    "added",
    ["shop/decimal.py", "shop/numpy.py", "new.py", "scripts/types.py", "src/shop/json.py", "notes.txt", "lib/new.js"],
)
def test_modules_of_the_project_itself_shadow_nothing(added: str) -> None:
    assert shadowing(added, "shop/__init__.py shop/prices.py", PYTHON_TESTS) == set()


def test_a_name_that_the_project_has_before_or_after_the_change_is_its_own() -> None:
    tests = {"tests/test_a.py": "import calendar\nfrom lib.calendar import day\n"}
    assert shadowing("calendar/new.py", "calendar/__init__.py", tests) == set()
    assert shadowing("lib/json.py", "lib/calendar.py", tests) == set()  # imported as lib.json


def test_a_class_in_the_package_of_a_library_of_the_tests_shadows_it() -> None:
    tests = {
        "src/test/java/com/example/shop/PricesTest.java": "import static org.junit.Assert.*;\nimport com.example.X;\n",
        "src/test/kotlin/B.kt": "import kotlin.test.assertEquals\n",
    }
    added = (
        "src/main/java/org/junit/Assert.java core/src/main/kotlin/kotlin/test/A.kt "
        "src/main/java/org/hamcrest/A.java src/main/java/com/example/shop/New.java src/main/java/org/other/New.java"
    )
    assert shadowing(added, "src/main/java/com/example/shop/Prices.java", tests) == set(added.split()[:3])


@given(st.dictionaries(st.sampled_from(["conftest.py", "package.json", "jest.config.js", "a.mocharc.js"]), st.binary()))
def test_no_content_breaks_the_reading_of_settings(files: dict[str, bytes]) -> None:
    reference = {path.encode(): TreeEntry(0o100644, "0" * 40) for path in files}
    setup_files(
        reference, reference, reference.keys(), lambda paths: {path: files[path.decode()] for path in paths}, ()
    )
