"""Rust tests that stand in the file they test: which lines of a file are test code.

Rust's convention is a module `#[cfg(test)] mod tests { … }` at the end of a source file; single functions may be marked
`#[test]` too. A block ends at the closing brace with the indentation of its beginning, as rustfmt writes it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

_BEGINS: Final = re.compile(
    rb"#\[(?:cfg\((?:all\()?test\b[^\n]*|(?:\w+::)*(?:test|rstest|test_case|proptest)\b[^\n]*)\]"
    # Further attributes and comments of the same item.
    rb"(?:\s*\n[ \t]*(?:#\[[^\n]*\]|//[^\n]*))*"
)


def may_hold_inline_tests(path: bytes) -> bool:
    """Whether a source file at this path is one of a language whose tests stand inside sources."""
    return path.endswith(b".rs")


def inline_tests_changed(old: bytes, new: bytes) -> bool:
    """Whether the new content has test code that the old one had not."""
    if b"test" not in new:
        return False
    return bool(Counter(_test_lines(new)) - Counter(_test_lines(old)))


def _test_lines(content: bytes) -> Iterator[bytes]:
    """The lines of test blocks, without blank ones."""
    place = 0
    while begins := _BEGINS.search(content, place):
        line = content.rfind(b"\n", 0, begins.start()) + 1
        indentation = content[line : begins.start()]
        if indentation.strip(b" \t"):
            place = begins.start() + 1
            continue
        end = _end_of_block(content, begins.end(), indentation)
        yield from (one for one in content[line:end].split(b"\n") if one.strip())
        place = max(end, begins.end())


def _end_of_block(content: bytes, attributes_end: int, indentation: bytes) -> int:
    """Where the item behind its attributes ends; 0 when its contents are elsewhere, as of `mod tests;`."""
    opens = content.find(b"{", attributes_end)
    closes = content.find(b";", attributes_end)
    if opens < 0 or 0 <= closes < opens:
        return 0
    brace = content.find(b"\n" + indentation + b"}", opens)
    return len(content) if brace < 0 else brace
