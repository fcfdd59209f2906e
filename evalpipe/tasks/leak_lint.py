"""Says whether a problem text tells the answer: what it names of the reference change that it need not name.

Pure: a text and the reference change's patches in, findings out. A terse text with a finding is refused; an original,
which somebody wrote for people, is flagged with it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

HASH_DIGITS = 7
"""Git shows at least so many digits of a commit."""

LITERAL_CHARACTERS = 4
"""Shorter strings are separators and format letters."""


class LeakKind(StrEnum):
    """What of the reference change a text names."""

    COMMIT = "commit"
    NUMBER = "number"
    FILE = "file"
    FUNCTION = "function"
    IDENTIFIER = "identifier"
    LITERAL = "literal"


NAMES = (LeakKind.FUNCTION, LeakKind.IDENTIFIER)
"""What a task may have to name: an interface that its tests use, and that nobody could guess."""


@dataclass(frozen=True, slots=True)
class Leak:
    """One thing that a text names, as the text has it."""

    kind: LeakKind
    named: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the reference change is made of, as names that a text could give away."""

    commit: str
    number: int | None
    files: frozenset[str]
    functions: frozenset[str]
    identifiers: frozenset[str]
    literals: frozenset[str]


_WORD = re.compile(r"[^\W\d]\w*")
_STRING = re.compile(r"""(["'`])((?:\\.|(?!\1)[^\\\n])+)\1""")
_NUMBER_LITERAL = re.compile(r"(?<![\w.])\d{3,}(?![\w.])")
_HUNK = re.compile(rb"^@@ [^@]* @@(.*)$")
_DECLARED = re.compile(r"(?:\b(?:def|class|func|fn|function|interface|trait|struct|enum|module|type)\s+)([^\W\d]\w*)")
_CALLED = re.compile(r"([^\W\d]\w*)\s*\(")
_NAMED_FILE = re.compile(rb"^(?:---|\+\+\+) [ab]/(.*?)\t?$")
_HEX = re.compile(rf"\b[0-9a-f]{{{HASH_DIGITS},64}}\b", re.IGNORECASE)
_QUOTED = re.compile(r"`([^`\n]+)`")
# What looks like code in a sentence: snake_case, camelCase, CamelCase, or with a digit inside.
_CODE_WORD = re.compile(r"\b(?:[^\W\d]\w*_\w+|_\w+|[^\W\d_]*[^\W\d_A-Z][A-Z]\w*|[^\W\d_]+\d\w*)\b")


def answer_of(commit: str, number: int | None, *patches: bytes) -> Answer:
    """The names in `patches`, the diffs that make up the reference change (product and tests)."""
    files: set[str] = set()
    functions: set[str] = set()
    identifiers: set[str] = set()
    literals: set[str] = set()
    for patch in patches:
        for line in patch.split(b"\n"):
            named = _NAMED_FILE.match(line)
            hunk = _HUNK.match(line)
            if named:
                files.add(named[1].decode(errors="replace"))
            elif hunk:
                functions.update(_declarations(hunk[1].decode(errors="replace")))
            elif line[:1] in (b"+", b"-"):
                text = line[1:].decode(errors="replace")
                functions.update(_declarations(text))
                literals.update(_literals(text))
                identifiers.update(_WORD.findall(_STRING.sub("", text)))
    return Answer(commit, number, frozenset(files), frozenset(functions), frozenset(identifiers), frozenset(literals))


def leaks(text: str, answer: Answer) -> list[Leak]:
    """What `text` names of `answer`, each thing once, in a fixed order of kinds and then of names.

    A name of one plain word (`value`) counts only where the text marks it as code, by backticks or as a call,
    because every sentence has such words.
    """
    found = {*_ids(text, answer), *_files(text, answer), *_names(text, answer)}
    found |= {Leak(LeakKind.LITERAL, literal) for literal in answer.literals if _contains(text, literal)}
    order = list(LeakKind)
    return sorted(found, key=lambda leak: (order.index(leak.kind), leak.named))


def _ids(text: str, answer: Answer) -> Iterator[Leak]:
    for digits in _HEX.findall(text):
        if answer.commit.startswith(digits.lower()):
            yield Leak(LeakKind.COMMIT, digits)
    if answer.number is not None:
        for form in (rf"[#!]{answer.number}\b", rf"/(?:pull|merge_requests|pull-requests)/{answer.number}\b"):
            for named in re.findall(form, text):
                yield Leak(LeakKind.NUMBER, named)


def _files(text: str, answer: Answer) -> Iterator[Leak]:
    for path in answer.files:
        for form in (path, PurePosixPath(path).name):
            if re.search(rf"(?<![\w/.-]){re.escape(form)}(?![\w/-])", text):
                yield Leak(LeakKind.FILE, form)
                break


def _names(text: str, answer: Answer) -> Iterator[Leak]:
    marked = {*_CODE_WORD.findall(text), *_CALLED.findall(text)}
    for quoted in _QUOTED.findall(text):
        marked.update(_WORD.findall(quoted))
    for name in marked:
        if name in answer.functions:
            yield Leak(LeakKind.FUNCTION, name)
        elif name in answer.identifiers:
            yield Leak(LeakKind.IDENTIFIER, name)


def _declarations(line: str) -> Iterator[str]:
    yield from _DECLARED.findall(line)


def _literals(line: str) -> Iterator[str]:
    for _quote, content in _STRING.findall(line):
        if len(content.strip()) >= LITERAL_CHARACTERS:
            yield content.strip()
    yield from _NUMBER_LITERAL.findall(_STRING.sub("", line))


def _contains(text: str, literal: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(literal)}(?!\w)", text) is not None
