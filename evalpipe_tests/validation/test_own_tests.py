"""Which tests are a change's own, for ids as each runner makes them."""

from __future__ import annotations

import pytest

from evalpipe.validation.own_tests import OwnTests

CASES = [
    # The change's test files, own tests, tests of others.
    (
        ["tests/test_a.py"],
        ["tests/test_a.py::t", "tests/test_a.py::T::t[a::b]"],
        ["tests/test_ab.py::t", "test_a.py::t"],
    ),
    (["src/till.test.ts"], ["src/till.test.ts::till > opens"], ["src/other.test.ts::till > opens"]),
    (
        ["till/x_test.go"],
        ["example.com/shop/till::TestX/a b"],
        ["example.com/shop/till/drawer::TestX", "e.com/untill::T"],
    ),
    (["x_test.go"], ["example.com/shop::TestX"], ["example.com/shop/till::TestX"]),
    (
        ["app/src/test/java/com/acme/TillTest.java"],
        ["com.acme.TillTest::opens(int)[1]", "com.acme.TillTest$Closed::opens", "app::com.acme.TillTest::opens"],
        ["com.acme.TillTestCase::opens", "com.other.TillTest::opens"],
    ),
    (["src/test/kotlin/TillTest.kt"], ["TillTest::opens"], ["com.acme.TillTest::opens"]),
    (["tests/till.rs"], ["shop::test/till::opens"], ["shop::test/drawer::opens", "shop::lib::till::tests::opens"]),
    (["crates/shop/tests/till/main.rs"], ["shop::test/till::inner::opens"], ["shop::bin/till::opens"]),
    (["src/till.rs"], ["shop::lib::till::tests::opens"], ["shop::lib::drawer::tests::opens", "shop::test/till::opens"]),
    (["src/till/mod.rs"], ["shop::lib::till::tests::opens"], ["shop::lib::tests::opens"]),
    (["src/lib.rs"], ["shop::lib::tests::opens"], ["shop::test/x::opens"]),
    (["README.md"], [], ["README.md.txt::t", "t"]),
]


@pytest.mark.parametrize(("files", "own", "foreign"), CASES, ids=lambda case: case[0] if case else "none")
def test_own_tests_are_told_from_those_of_others(files: list[str], own: list[str], foreign: list[str]) -> None:
    tests = OwnTests([file.encode() for file in files], [*own, *foreign])
    assert tests.among([*own, *foreign]) == set(own)


@pytest.mark.parametrize(
    ("file", "node"),
    [
        ("tests/test_a.py", "tests/test_a.py"),
        ("tests/test_a.py", "tests"),
        ("tests/test_a.py", ""),
        ("tests/test_a.py", "tests/test_a.py::T"),
        ("till/x_test.go", "example.com/shop/till"),
        ("tests/till.rs", "shop::test/till"),
        ("tests/till.rs", "."),
        ("src/till.rs", "shop::lib"),
    ],
)
def test_own_files_are_found_in_what_was_not_collected(file: str, node: str) -> None:
    assert OwnTests([file.encode()]).files_in(node) == {file}


@pytest.mark.parametrize(
    ("file", "node"),
    [
        ("tests/test_a.py", "tests/test_b.py"),
        ("till/x_test.go", "example.com/shop/drawer"),
        ("tests/till.rs", "shop::test/drawer"),
    ],
)
def test_own_files_are_not_found_elsewhere(file: str, node: str) -> None:
    assert OwnTests([file.encode()]).files_in(node) == frozenset()
