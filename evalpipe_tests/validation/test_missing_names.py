"""Names that are missing, by the messages of real tools."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.validation.missing_names import missing_names

MESSAGES = [
    ("E   ImportError: cannot import name 'gas_mark' from 'larder.units' (/work/repo/larder/units.py)", ["gas_mark"]),
    ("E   ModuleNotFoundError: No module named 'larder.freezer'", ["freezer"]),
    ("E   AttributeError: module 'larder.tags' has no attribute 'suggest'", ["suggest"]),
    ("AttributeError: partially initialized module 'a.b' has no attribute 'c' (most likely due to a circular", ["c"]),
    ("AttributeError: type object 'Till' has no attribute 'open'", ["open"]),
    ("E   NameError: name 'Receipt' is not defined", ["Receipt"]),
    ("./till_test.go:9:7: undefined: NewTill\n./till_test.go:12:2: undefined: shop.Close", ["Close", "NewTill"]),
    ("./a_test.go:5:4: t.Sum undefined (type *Till has no field or method Sum)", ["Sum"]),
    ("./a_test.go:5:12: unknown field Owner in struct literal of type Till", ["Owner"]),
    ('a.go:3:8: package shop/till is not in std (/usr/lib/go/src/shop/till)"', ["till"]),
    ("a_test.go:4:2: no required module provides package example.com/shop/till; to add it:", ["till"]),
    ("error[E0425]: cannot find function `total` in this scope\n --> tests/t.rs:3:5", ["total"]),
    ("error[E0412]: cannot find type `Till` in crate `shop`", ["Till"]),
    ("error[E0422]: cannot find struct, variant or union type `Till` in this scope", ["Till"]),
    ("error[E0432]: unresolved import `shop::till::Till`\n --> tests/t.rs:1:5", ["Till"]),
    ("error[E0433]: failed to resolve: could not find `till` in `shop`", ["till"]),
    ("error[E0433]: failed to resolve: use of undeclared type `Till`", ["Till"]),
    ("error[E0433]: failed to resolve: use of undeclared crate or module `till`", ["till"]),
    ("error[E0599]: no method named `sum` found for struct `Till` in the current scope", ["sum"]),
    ("error[E0599]: no function or associated item named `new` found for struct `Till`", ["new"]),
    ("error[E0609]: no field `owner` on type `Till`", ["owner"]),
    ("error[E0560]: struct `Till` has no field named `owner`", ["owner"]),
    (
        "[ERROR] /r/src/test/java/TillTest.java:[9,9] cannot find symbol\n[ERROR]   symbol:   method close(int)\n"
        "[ERROR]   location: class Till",
        ["close"],
    ),
    ("TillTest.java:3: error: cannot find symbol\n    new Till();\n  symbol:   class Till\n", ["Till"]),
    ("TillTest.java:1: error: package com.acme.till does not exist\nimport com.acme.till.Till;", ["till"]),
    ("e: file:///r/TillTest.kt:5:13 Unresolved reference 'close'.", ["close"]),
    ("e: TillTest.kt: (5, 13): Unresolved reference: close", ["close"]),
    ("till.test.ts(1,10): error TS2305: Module '\"./till\"' has no exported member 'Till'.", ["Till"]),
    ("error TS2724: '\"./till\"' has no exported member named 'closeAll'. Did you mean 'close'?", ["closeAll"]),
    ("error TS2339: Property 'close' does not exist on type 'Till'.", ["close"]),
    ("error TS2304: Cannot find name 'Till'.", ["Till"]),
    ("Cannot find module '../src/till.js' from 'test/till.test.js'", ["till"]),
    ("error TS2307: Cannot find module './till' or its corresponding type declarations.", ["till"]),
    ("SyntaxError: The requested module './till.mjs' does not provide an export named 'close'", ["close"]),
    ('Error: Failed to resolve import "./till" from "test/till.test.ts". Does the file exist?', ["till"]),
]


@pytest.mark.parametrize(("message", "names"), MESSAGES)
def test_each_tools_wording_gives_the_name(message: str, names: list[str]) -> None:
    assert list(missing_names([message])) == names


@pytest.mark.parametrize(
    "message",
    ["", "AssertionError: assert 'Till' == 'till'", "SyntaxError: invalid syntax", "KeyError: 'close'", "undefined"],
)
def test_other_failures_name_nothing(message: str) -> None:
    assert missing_names([message]) == ()


def test_names_of_several_messages_are_each_given_once() -> None:
    assert missing_names([message for message, _ in MESSAGES[:2]] * 2) == ("freezer", "gas_mark")


@given(st.lists(st.text(max_size=200), max_size=3))
def test_no_text_is_too_odd_and_no_name_is_empty(messages: list[str]) -> None:
    assert all(missing_names(messages))
