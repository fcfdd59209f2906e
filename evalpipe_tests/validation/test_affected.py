"""Which test files a change can reach, by what each language imports."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.history import FileKind, PathRules
from evalpipe.validation.affected import affected_test_files, in_whole_suite_sample
from evalpipe.validation.imports import Imports

RULES = PathRules()


def affected(tree: dict[str, str], *changed: str) -> set[str] | None:
    found = affected_test_files(
        {path.encode(): text.encode() for path, text in tree.items()},
        [path.encode() for path in changed],
        lambda path: RULES.kind_of(path) is FileKind.test,
    )
    return None if found is None else {path.decode() for path in found}


T = "def test_it(): pass\n"
PYTHON = {
    "src/shop/__init__.py": "from .till import Till\n",
    "src/shop/till.py": "from shop import money\n",
    "src/shop/money.py": "",
    "src/shop/label.py": "",
    "tests/conftest.py": "",
    "tests/helper.py": "import shop.label\n",
    "tests/test_till.py": "import shop.till\n" + T,
    "tests/test_money.py": "from shop import money\n" + T,
    "tests/test_names.py": "from shop import Till\n" + T,
    "tests/test_helped.py": "from tests.helper import x\n" + T,
    "tests/sub/test_label.py": T,
    "tests/test_other.py": "import os, re\n" + T,
    "tests/data/prices.csv": "1;2\n",
}


def test_python_finds_importers_of_every_form() -> None:
    assert affected(PYTHON, "src/shop/till.py") == {"tests/test_till.py", "tests/test_names.py"}
    assert affected(PYTHON, "src/shop/money.py") == {"tests/test_money.py"}
    lazy = {**PYTHON, "tests/test_other.py": "def test_it():\n    import shop.money\n"}
    assert affected(lazy, "src/shop/money.py") == {"tests/test_money.py", "tests/test_other.py"}


def test_a_helper_among_the_tests_hands_on_what_it_imports() -> None:
    assert affected(PYTHON, "src/shop/label.py") == {"tests/test_helped.py"}
    assert affected(PYTHON, "tests/helper.py") == {"tests/test_helped.py"}


def test_relative_imports_are_followed() -> None:
    tree = {
        "shop/__init__.py": "",
        "shop/till.py": "",
        "shop/tests/__init__.py": "",
        "shop/tests/test_a.py": "from ..till import x\n" + T,
        "shop/tests/test_b.py": "from .. import till\n" + T,
        "shop/tests/test_c.py": "from .test_a import *\n" + T,
        "shop/tests/test_d.py": T,
    }
    assert affected(tree, "shop/till.py") == {"shop/tests/test_a.py", "shop/tests/test_b.py"}
    assert affected(tree, "shop/tests/test_a.py") == {"shop/tests/test_a.py", "shop/tests/test_c.py"}


def test_a_conftest_reaches_all_that_is_below_it() -> None:
    below = {path for path in PYTHON if path.startswith("tests/") and path.rpartition("/")[2].startswith("test_")}
    assert affected(PYTHON, "tests/conftest.py") == below
    fixture = {**PYTHON, "tests/sub/conftest.py": "import shop.money\n"}
    assert affected(fixture, "src/shop/money.py") == {"tests/test_money.py", "tests/sub/test_label.py"}


def test_data_of_tests_reaches_those_that_lie_above_it() -> None:
    assert affected(PYTHON, "tests/data/prices.csv") == affected(PYTHON, "tests/conftest.py") - {  # type: ignore[operator]
        "tests/sub/test_label.py"
    }


def test_the_changes_own_tests_are_always_in() -> None:
    assert affected(PYTHON, "src/shop/money.py", "tests/test_other.py", "README.md") == {
        "tests/test_money.py",
        "tests/test_other.py",
    }


@pytest.mark.parametrize(
    "changed", ["pyproject.toml", "requirements.txt", "package.json", "go.mod", "src/shop/schema.sql", "Makefile"]
)
def test_what_no_import_shows_wants_the_whole_suite(changed: str) -> None:
    assert affected(PYTHON, "src/shop/till.py", changed) is None


def test_a_change_that_reaches_no_test_wants_the_whole_suite() -> None:
    assert affected({"a.py": "", "tests/test_b.py": T}, "a.py") is None


def test_a_file_that_does_not_parse_imports_nothing() -> None:
    tree = {**PYTHON, "tests/test_other.py": "print 'old'\nimport shop.money\ndef test_it(): pass\n"}
    assert affected(tree, "src/shop/money.py") == {"tests/test_money.py"}


JS = {
    "src/index.ts": "export * from './till';\nexport { money } from './money.js';\n",
    "src/till.ts": "",
    "src/money.ts": "",
    "src/label.tsx": "",
    "src/till.test.ts": "it('x', () => {})",
    "test/money.spec.js": "const m = require('../src/money'); test('x', () => {})",
    "test/all.test.js": "import { till } from '../src';\ndescribe('x', () => {})",
    "test/late.test.js": "test('x', async () => { await import('../src/label') })",
    "test/mocked.test.js": "jest.mock('../src/label'); test('x', () => {})",
    "test/other.test.js": "import fs from 'fs'; test('x', () => {})",
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("src/till.ts", {"src/till.test.ts", "test/all.test.js"}),
        ("src/money.ts", {"test/money.spec.js", "test/all.test.js"}),
        ("src/label.tsx", {"test/late.test.js", "test/mocked.test.js"}),
        ("src/index.ts", {"test/all.test.js"}),
    ],
)
def test_javascript_finds_importers_of_every_form(changed: str, expected: set[str]) -> None:
    assert affected(JS, changed) == expected


GO = {
    "go.mod": "module example.com/shop\n\ngo 1.21\n",
    "till/till.go": "package till\n",
    "till/till_test.go": "package till\n",
    "drawer/drawer.go": 'package drawer\nimport (\n\t"fmt"\n\tt "example.com/shop/till"\n)\n',
    "drawer/drawer_test.go": "package drawer\n",
    "label/label_test.go": 'package label\nimport "testing"\n',
    "cmd/main.go": 'package main\nimport "example.com/shop/drawer"\n',
    "cmd/main_test.go": "package main\n",
}


def test_go_runs_the_package_and_those_that_import_it() -> None:
    assert affected(GO, "till/till.go") == {"till/till_test.go", "drawer/drawer_test.go"}
    assert affected(GO, "drawer/drawer.go") == {"drawer/drawer_test.go", "cmd/main_test.go"}


def test_rust_runs_the_whole_crate() -> None:
    tree = {
        "Cargo.toml": "[workspace]\n",
        "crates/till/Cargo.toml": "",
        "crates/till/src/lib.rs": "#[cfg(test)]\nmod tests {}\n",
        "crates/till/src/money.rs": "",
        "crates/till/tests/opens.rs": "#[test]\nfn opens() {}\n",
        "crates/label/Cargo.toml": "",
        "crates/label/tests/prints.rs": "#[test]\nfn prints() {}\n",
    }
    assert affected(tree, "crates/till/src/money.rs") == {"crates/till/tests/opens.rs"}


def test_java_runs_the_package_and_those_that_import_the_class() -> None:
    tree = {
        "src/main/java/com/acme/till/Till.java": "package com.acme.till;\n",
        "src/test/java/com/acme/till/DrawerTest.java": "package com.acme.till;\n@Test void x();\n",
        "src/test/java/com/acme/AllTest.java": "package com.acme;\nimport com.acme.till.*;\n@Test Till t;\n",
        "src/test/java/com/acme/NoneTest.java": "package com.acme;\nimport com.acme.till.*;\n@Test Other t;\n",
        "src/test/java/com/acme/InTest.java": "package com.acme;\nimport static com.acme.till.Till.open;\n@Test Z z;\n",
        "src/test/java/com/acme/OtherTest.java": "package com.acme;\nimport com.acme.label.Label;\n@Test void x();\n",
    }
    assert affected(tree, "src/main/java/com/acme/till/Till.java") == {
        "src/test/java/com/acme/till/DrawerTest.java",
        "src/test/java/com/acme/AllTest.java",
        "src/test/java/com/acme/InTest.java",
    }


@given(
    st.dictionaries(st.sampled_from(["a.py", "b.ts", "c.go", "D.java", "e/f.py"]), st.text(max_size=200), max_size=5)
)
def test_no_text_is_too_odd(tree: dict[str, str]) -> None:
    imports = Imports({path: text.encode("utf-8", "replace") for path, text in tree.items()})
    for path in tree:
        assert imports.of(path) <= tree.keys() - {path}


def test_a_tenth_of_the_candidates_runs_the_whole_suite() -> None:
    sample = [f"shop-{number}" for number in range(2000) if in_whole_suite_sample(f"shop-{number}")]
    assert 150 < len(sample) < 250
    assert sample == [f"shop-{number}" for number in range(2000) if in_whole_suite_sample(f"shop-{number}")]
