from hypothesis import given
from hypothesis import strategies as st

from evalpipe.tasks.leak_lint import Answer, LeakKind, answer_of, leaks

COMMIT = "3f8a1c0de4b7" + "0" * 28
GOLD = b"""\
diff --git a/src/shop/prices.py b/src/shop/prices.py
--- a/src/shop/prices.py
+++ b/src/shop/prices.py
@@ -10,3 +10,4 @@ class PriceTable:
 def unchanged_context(value):
-    return total
+    if total_in_cents > 10_000 and kind == "bulk order":
+        raise LimitExceeded(f"at most {limit}", 4711)
"""
TEST = b"""\
diff --git a/tests/test prices.py b/tests/test prices.py
--- a/tests/test prices.py\t
+++ b/tests/test prices.py\t
@@ -1 +1,3 @@
+def test_limit():
+    assert message() == 'over the limit'
"""
ANSWER = answer_of(COMMIT, 12, GOLD, TEST)


def kinds(text: str) -> list[tuple[LeakKind, str]]:
    return [(leak.kind, leak.named) for leak in leaks(text, ANSWER)]


def test_the_names_of_a_change_are_read_from_its_patches() -> None:
    assert ANSWER.files == {"src/shop/prices.py", "tests/test prices.py"}
    assert ANSWER.functions == {"PriceTable", "test_limit"}
    assert {"total_in_cents", "LimitExceeded", "kind"} <= ANSWER.identifiers
    assert "unchanged_context" not in ANSWER.identifiers
    assert ANSWER.literals >= {"bulk order", "over the limit", "4711"}
    assert "bulk" not in ANSWER.identifiers


def test_a_text_that_names_a_symptom_is_clean() -> None:
    assert kinds("The total of a large order is wrong: the value should be limited, as the kind of order asks.") == []


def test_each_kind_of_name_is_found_as_the_text_has_it() -> None:
    assert kinds("See 3F8A1C0 and 3f8a1c0de4.") == [(LeakKind.COMMIT, "3F8A1C0"), (LeakKind.COMMIT, "3f8a1c0de4")]
    assert kinds("Done in #12, not #123 or #1.") == [(LeakKind.NUMBER, "#12")]
    assert kinds("https://forge.example.com/shop/pull/12") == [(LeakKind.NUMBER, "/pull/12")]
    assert kinds("group/project!12") == [(LeakKind.NUMBER, "!12")]
    assert kinds("Look at src/shop/prices.py.") == [(LeakKind.FILE, "src/shop/prices.py")]
    assert kinds("prices.py is wrong") == [(LeakKind.FILE, "prices.py")]
    assert kinds("see test prices.py") == [(LeakKind.FILE, "prices.py"), (LeakKind.FILE, "test prices.py")]
    assert kinds("PriceTable is wrong") == [(LeakKind.FUNCTION, "PriceTable")]
    assert kinds("it should raise LimitExceeded") == [(LeakKind.IDENTIFIER, "LimitExceeded")]
    assert kinds("use total_in_cents") == [(LeakKind.IDENTIFIER, "total_in_cents")]
    assert kinds("it says “over the limit”") == [(LeakKind.LITERAL, "over the limit")]
    assert kinds("the limit is 4711 pieces") == [(LeakKind.LITERAL, "4711")]


def test_a_plain_word_counts_only_where_it_is_marked_as_code() -> None:
    assert kinds("its kind and total") == []
    assert kinds("its `kind`") == [(LeakKind.IDENTIFIER, "kind")]
    assert kinds("call message() for it") == [(LeakKind.IDENTIFIER, "message")]


def test_numbers_and_hashes_of_other_changes_are_no_leak() -> None:
    assert kinds("Since #13, commit abcdef0 and 3f8a1c1, 12 orders fail, see issues/12.") == []


@given(st.text())
def test_no_text_breaks_the_linter_and_nothing_leaks_from_an_empty_change(text: str) -> None:
    assert leaks(text, ANSWER) == leaks(text, ANSWER)
    assert leaks(text, Answer("", None, *(frozenset[str](),) * 4)) == []


@given(st.binary(), st.sampled_from([b"", b"+++ b/", b"@@ -1 +1 @@ def ", b"+", b'+"']))
def test_any_bytes_are_a_patch_to_read(data: bytes, start: bytes) -> None:
    assert answer_of(COMMIT, None, start + data).commit == COMMIT


@given(st.sampled_from(sorted(ANSWER.identifiers | ANSWER.functions)))
def test_every_name_of_the_change_is_found_between_backticks(name: str) -> None:
    assert name in {leak.named for leak in leaks(f"Something about `{name}` is wrong.", ANSWER)}
