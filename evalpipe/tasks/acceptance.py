"""Acceptance criteria: what the tests compare with and nobody could know who has only the problem text and the code.

An error's exact words, an exit code, the name of a variable. A task whose prompt withholds them measures luck. They are
proposed to the author of a task set, who accepts or drops each; accepted ones go into the prompt.
"""

import re
from collections.abc import Iterable, Iterator

LITERAL_CHARACTERS = 3
"""Shorter strings are separators and keys that every test has."""

_STRING = re.compile(r"""(?<![\w])[rbuf]{0,2}(["'`])((?:\\.|(?!\1)[^\\\n])+)\1""", re.IGNORECASE)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_NUMBER = re.compile(r"(?<![\w.])-?\d{2,}(?:\.\d+)?(?![\w.])")
_ASSERTION = re.compile(
    r"\bassert|\bexpect\b|\bshould\b|\braises\b|\bmatch\s*=|\bthrows?\b|\brequire\.|\bwant\b|\bexpected\b|"
    r"\b(?:Equal|Contains|Error|Fatal)f?\(|\bassert_\w+!|\bpanic\b",
    re.IGNORECASE,
)


def asserted_literals(test_patch: bytes) -> list[str]:
    """Strings and numbers on the added lines of `test_patch` that assert something, each once, in their order.

    Strings are without their quotes and escapes; a line that goes on after its assertion is followed to the closing
    bracket.
    """
    found: dict[str, None] = {}
    for line in _assertions(test_patch):
        for _quote, content in _STRING.findall(line):
            text = _unescaped(content)
            if len(text.strip()) >= LITERAL_CHARACTERS:
                found.setdefault(text)
        for number in _NUMBER.findall(_STRING.sub("", line)):
            found.setdefault(number)
    return list(found)


def unknowable(literals: Iterable[str], prompt: str, files: Iterable[bytes]) -> list[str]:
    """Those of `literals` that neither `prompt` nor any of `files`, the contents of the parent's tree, contains."""
    open_questions = {literal: _as_written(literal) for literal in literals if literal not in prompt}
    for content in files:
        if not open_questions:
            break
        for literal in [name for name, forms in open_questions.items() if any(form in content for form in forms)]:
            del open_questions[literal]
    return list(open_questions)


def _assertions(test_patch: bytes) -> Iterator[str]:
    depth = 0
    inside = False
    for raw in test_patch.split(b"\n"):
        if raw.startswith(b"diff --git "):
            inside, depth = False, 0
        elif raw.startswith(b"@@ "):
            inside, depth = True, 0
        elif inside and raw.startswith(b"+"):
            line = raw[1:].decode(errors="replace")
            bare = _STRING.sub("", line)
            if depth > 0 or _ASSERTION.search(bare):
                yield line
                depth = max(0, depth + sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}")))


def _unescaped(content: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), content)


def _as_written(literal: str) -> tuple[bytes, ...]:
    """The ways in which source code has a literal: as it is, and with its escapes."""
    escaped = literal.encode("unicode_escape")
    return literal.encode(errors="replace"), escaped, escaped.replace(b'"', b'\\"'), escaped.replace(b"'", b"\\'")
