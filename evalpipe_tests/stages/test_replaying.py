from evalpipe.stages.replaying import is_same_work


def patch(blob: str, line: str) -> bytes:
    header = f"diff --git a/x.py b/x.py\nindex {'0' * 40}..{blob * 40} 100644\n--- a/x.py\n+++ b/x.py\n@@ -0,0 +1 @@\n"
    return f"{header}+{line}\n".encode()


def test_the_key_of_an_attempt_in_a_file_makes_no_other_work() -> None:
    kept = patch("a", f"KEY = 'sk-evalpipe-{'1' * 48}'")
    assert is_same_work(patch("b", f"KEY = 'sk-evalpipe-{'2' * 48}'"), kept)
    assert is_same_work(patch("b", "KEY = '[redacted]'"), patch("c", "KEY = '[redacted]'"))


def test_another_line_is_other_work() -> None:
    assert not is_same_work(patch("a", "x = 1"), patch("a", "x = 2"))
    assert not is_same_work(patch("a", f"index {'1' * 40}..{'2' * 40}"), patch("a", f"index {'1' * 40}..{'3' * 40}"))
