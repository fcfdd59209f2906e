from hypothesis import given
from hypothesis import strategies as st

from evalpipe.tasks.acceptance import asserted_literals, unknowable


def patch(*added: str, context: str = "") -> bytes:
    lines = ["diff --git a/tests/t.py b/tests/t.py", "--- a/tests/t.py", "+++ b/tests/t.py", "@@ -1 +1 @@"]
    return "\n".join([*lines, f" {context}", *(f"+{line}" for line in added), ""]).encode()


def test_what_assertions_compare_with_is_found_in_every_language() -> None:
    lines = {
        'assert str(error.value) == "no such account"': ["no such account"],
        "assert run('--check').exit_code == 17": ["--check", "17"],
        'with pytest.raises(ValueError, match="at most"):': ["at most"],
        "self.assertEqual(name(), 'EVAL_HOME')": ["EVAL_HOME"],
        "expect(parse(input)).toBe('parsed: 42')": ["parsed: 42"],
        'assert_eq!(render(3), "three");': ["three"],
        'require.Equal(t, "three", render(3))': ["three"],
        'if got != want { t.Errorf("got %q, want %q", got, "x-y-z") }': ["got %q, want %q", "x-y-z"],
        'assertEquals("three", render(3));': ["three"],
        'value = "not asserted"': [],
        "assert x": [],
        "assert total == 7": [],
    }
    assert {line: asserted_literals(patch(line)) for line in lines} == lines


def test_an_assertion_over_several_lines_is_followed_to_its_end() -> None:
    lines = ["assert call(", '    "first part"', "    ) == [", '    "second part",', "]", 'later = "not asserted"']
    assert asserted_literals(patch(*lines)) == ["first part", "second part"]


def test_only_added_lines_count_and_escapes_are_read() -> None:
    assert asserted_literals(patch(context='assert x == "old words"')) == []
    assert asserted_literals(patch(r'assert x == "two\nlines" and y == "\"quoted\""')) == ["two\nlines", '"quoted"']
    assert asserted_literals(b"+assert x == 'header'\n") == []


def test_what_the_prompt_or_the_tree_has_is_knowable() -> None:
    literals = ["no such account", "at most", "two\nlines", "17", "EVAL_HOME"]
    files = [b"x = 'at most'\n", b'y = "two\\nlines"\n']
    assert unknowable(literals, "It should say “no such account”.", files) == ["17", "EVAL_HOME"]
    assert unknowable(literals, "", []) == literals
    assert unknowable([], "", files) == []


@given(st.binary())
def test_any_bytes_are_a_patch_to_read(data: bytes) -> None:
    assert isinstance(asserted_literals(patch() + b"+assert " + data), list)


@given(st.lists(st.text(min_size=1), unique=True))
def test_nothing_that_the_prompt_has_is_asked_for_again(literals: list[str]) -> None:
    assert unknowable(literals, "\n".join(literals), []) == []
