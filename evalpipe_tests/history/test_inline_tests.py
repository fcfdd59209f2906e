from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.history.decision import MiningReason
from evalpipe.history.inline_tests import inline_tests_changed, may_hold_inline_tests
from evalpipe_tests.history.builder import Builder
from evalpipe_tests.history.mining import mined, only

CODE = b"pub fn wind(x: u8) -> u8 {\n    x + 1\n}\n"
TESTS = b"""
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn winds() {
        assert_eq!(wind(1), 2);
    }
}
"""


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        (CODE, CODE + TESTS, True),
        (b"", CODE + TESTS, True),
        (CODE + TESTS, CODE + TESTS.replace(b"wind(1), 2", b"wind(2), 3"), True),
        (CODE + TESTS, CODE.replace(b"+ 1", b"+ 2") + TESTS, False),
        (CODE + TESTS, CODE, False),
        (CODE + TESTS, b"", False),
        (CODE + TESTS, CODE + b"\n\n" + TESTS, False),
        (CODE, CODE + b"\n#[cfg(test)]\nmod tests;\n", False),
        (CODE, CODE + b"\n#[cfg(test)]\nuse std::io;\n", False),
        (CODE, CODE + b"// a latest test\nfn attest() {}\n", False),
        (CODE, CODE + b"#[test]\nfn winds() {\n    assert!(true);\n}\n", True),
        (CODE, CODE + b"#[tokio::test]\nasync fn winds() {\n    one().await;\n}\n", True),
        (CODE, CODE + b'#[test]\n#[should_panic(expected = "a; b")]\nfn winds() {\n    wind(255);\n}\n', True),
        (CODE, CODE + b"#[cfg(all(test, unix))]\nmod tests {\n    fn helper() {}\n}\n", True),
        (CODE, CODE + b"#[cfg(test)]\n#[allow(dead_code)]\n// Helpers.\nmod tests {\n    fn helper() {}\n}\n", True),
        # What follows a test module is no test.
        (CODE + TESTS, CODE + TESTS + b"pub fn unwind() {\n}\n", False),
    ],
)
def test_changes_of_test_code(old: bytes, new: bytes, changed: bool) -> None:
    assert inline_tests_changed(old, new) is changed


def test_only_rust_holds_tests_inside() -> None:
    assert may_hold_inline_tests(b"src/a.rs")
    assert not may_hold_inline_tests(b"src/a.py")


@given(
    st.binary(max_size=60), st.lists(st.sampled_from([CODE, TESTS, b"#[cfg(test)]", b"{", b"}\n", b";"]), max_size=5)
)
def test_any_content_can_be_asked(noise: bytes, parts: list[bytes]) -> None:
    content = noise.join(parts)
    assert not inline_tests_changed(content, content)
    assert not inline_tests_changed(content, noise.replace(b"#", b""))


def test_change_whose_only_tests_are_inside_is_a_candidate(clock: Builder) -> None:
    clock.commit({b"src/lib.rs": CODE, b"src/other.rs": CODE}, "Add")
    clock.commit({b"src/lib.rs": CODE.replace(b"+ 1", b"+ 2") + TESTS, b"src/other.rs": CODE + b"\n"}, "Repair")
    clock.commit({b"src/lib.rs": CODE.replace(b"+ 1", b"+ 3") + TESTS}, "Source alone")
    clock.commit({b"src/lib.rs": None}, "Away")
    added, repair, source, away = mined(clock)
    assert (added.reason, added.inline_tests, added.lines_added) == (MiningReason.no_tests, (), None)
    assert (repair.reason, repair.inline_tests) == (MiningReason.kept, (b"src/lib.rs",))
    assert repair.source_files == (b"src/lib.rs", b"src/other.rs")
    assert (repair.test_files, repair.lines_added) == ((), 12)
    assert [source.reason, away.reason] == [MiningReason.no_tests] * 2


def test_tests_inside_stand_beside_test_files(clock: Builder) -> None:
    clock.commit({b"src/lib.rs": CODE + TESTS, b"tests/it.rs": b"1"}, "Repair")
    assert (only(clock).inline_tests, only(clock).test_files) == ((b"src/lib.rs",), (b"tests/it.rs",))
