"""Reads JUnit XML, the report of many tools. Each writes its own dialect, so ids are made by the runner that reads it.

The tested code can write there too: a document type, which can make a small file large, is refused, and what no XML
may hold (control characters, bytes that are not UTF-8), which tools write all the same, becomes visible escapes.
"""

import codecs
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from evalpipe.runners.report import TestOutcome, storable_text
from evalpipe.runners.results import MESSAGE_CHARACTERS, shortened, worse

_MAX_DEPTH = 100
_MAX_CASES = 500_000
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REFERENCE = re.compile(r"&#(?:[0-9]{1,9}|x[0-9a-fA-F]{1,8});")
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

# What an element below a test case says of it. Surefire writes `flaky...` for a test that passed when it was run
# again: it failed once, whatever came after.
_ELEMENTS: Mapping[str, TestOutcome] = {
    "failure": TestOutcome.FAILED,
    "error": TestOutcome.ERROR,
    "skipped": TestOutcome.SKIPPED,
    "disabled": TestOutcome.SKIPPED,
    "flakyFailure": TestOutcome.FAILED,
    "flakyError": TestOutcome.FAILED,
    "rerunFailure": TestOutcome.FAILED,
    "rerunError": TestOutcome.FAILED,
}
# What the attributes `status` and `result` of a test case say; other values leave it to the elements.
_WORDS: Mapping[str, TestOutcome] = {
    **dict.fromkeys(("fail", "failed", "failure", "broken"), TestOutcome.FAILED),
    **dict.fromkeys(("error", "errored"), TestOutcome.ERROR),
    **dict.fromkeys(("skipped", "ignored", "disabled", "suppressed", "notrun", "pending"), TestOutcome.SKIPPED),
}


class DamagedXml(ValueError):
    """This is not JUnit XML; the text says why."""


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """One `testcase`. `suites` are the names of the suites around it, the outermost first.

    `file` is its own or its nearest suite's attribute, `kind` the `type` of its failure (an exception, as a rule).
    """

    suites: tuple[str, ...]
    classname: str
    name: str
    file: str
    outcome: TestOutcome
    seconds: float
    kind: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class JUnitReport:
    """The cases of one file in its order, and the failures that belong to a suite and to none of its cases."""

    cases: list[JUnitCase]
    suite_failures: Mapping[tuple[str, ...], str]


def read_junit_xml(content: bytes) -> JUnitReport:
    """Read one file. Raises DamagedXml when it is none, or not a whole one."""
    reader = _Reader()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.doctype
    try:
        parser.Parse(_well_formed(content), True)
    except expat.ExpatError as error:
        raise DamagedXml(f"not XML: {error}") from error
    return JUnitReport(reader.cases, reader.suite_failures)


def _well_formed(content: bytes) -> bytes:
    encoding = "utf-8"
    for mark, name in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            content, encoding = content[len(mark) :], name
            break
    else:
        declared = _DECLARED.match(content[:200])
        if declared and _is_text_encoding(declared[1].decode()):
            encoding = declared[1].decode()
    try:
        text = content.decode(encoding, "backslashreplace")
    except UnicodeError as error:  # `idna` and its like decode no bytes at will
        raise DamagedXml(f"it is not written in {encoding}, as it says") from error
    return _REFERENCE.sub(_allowed_reference, _NOT_IN_XML.sub(_escaped, text)).encode("utf-8")


def _is_text_encoding(name: str) -> bool:
    try:
        # Others than those based on ASCII would not have let the declaration be read, and codecs that are no
        # character sets (`zip`, `rot13`) are no text encodings.
        return "<?xml".encode(name) == b"<?xml"
    except (LookupError, UnicodeError):
        return False


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _allowed_reference(match: re.Match[str]) -> str:
    """A reference to a character that XML cannot hold, as its escape; expat would refuse the file."""
    digits = match.group()[2:-1]
    code = int(digits[1:], 16) if digits[0] == "x" else int(digits)
    if code > 0x10FFFF:
        return f"\\U{code:x}"
    return _escaped(found) if (found := _NOT_IN_XML.match(chr(code))) else match.group()


@dataclass(slots=True)
class _Open:
    """A test case that has begun, with the worst that its elements said so far."""

    attributes: Mapping[str, str]
    outcome: TestOutcome
    kind: str = ""
    message: str = ""


@dataclass(slots=True)
class _Suite:
    name: str
    file: str


@dataclass(slots=True)
class _Reader:
    cases: list[JUnitCase] = field(default_factory=list)
    suite_failures: dict[tuple[str, ...], str] = field(default_factory=dict)
    path: list[str] = field(default_factory=list)
    suites: list[_Suite] = field(default_factory=list)
    case: _Open | None = None
    element: Mapping[str, str] | None = None
    pieces: list[str] = field(default_factory=list)
    length: int = 0

    def doctype(self, *_: object) -> None:
        raise DamagedXml("it has a document type, which no JUnit XML needs")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.path and name not in ("testsuites", "testsuite"):
            raise DamagedXml(f"its outermost element is {storable_text(name[:50])!r}, and not testsuites or testsuite")
        if len(self.path) == _MAX_DEPTH:
            raise DamagedXml("its elements are nested too deeply")
        parent = self.path[-1] if self.path else ""
        self.path.append(name)
        if name == "testsuite":
            file = attributes.get("file") or (self.suites[-1].file if self.suites else "")
            self.suites.append(_Suite(attributes.get("name", ""), file))
        elif name == "testcase":
            if self.case is not None:
                raise DamagedXml("a test case lies in another")
            self.case = _Open(attributes, _by_attributes(attributes))
        elif name in _ELEMENTS and parent in ("testcase", "testsuite"):
            self.element, self.pieces, self.length = attributes, [], 0

    def text(self, text: str) -> None:
        # The middle of a long text is of no use; only its beginning is kept, and as much of its end.
        if self.element is None:
            return
        self.pieces.append(text)
        self.length += len(text)
        if self.length > 20 * MESSAGE_CHARACTERS:
            self.pieces = [shortened("".join(self.pieces))]
            self.length = len(self.pieces[0])

    def end(self, name: str) -> None:
        self.path.pop()
        parent = self.path[-1] if self.path else ""
        if name == "testsuite":
            self.suites.pop()
        elif name == "testcase":
            assert self.case is not None
            if len(self.cases) == _MAX_CASES:
                raise DamagedXml(f"it has more than {_MAX_CASES:,} test cases")
            self.cases.append(self._closed(self.case))
            self.case = None
        elif name in _ELEMENTS and parent in ("testcase", "testsuite"):
            self._told(name, parent)

    def _told(self, name: str, parent: str) -> None:
        assert self.element is not None
        kind = self.element.get("type", "")
        message = _message(self.element.get("message", ""), "".join(self.pieces))
        self.element = None
        outcome = _ELEMENTS[name]
        if outcome is TestOutcome.SKIPPED and kind == "pytest.xfail":
            outcome = TestOutcome.XFAILED
        if parent == "testsuite" or self.case is None:
            if outcome in (TestOutcome.FAILED, TestOutcome.ERROR):
                self.suite_failures.setdefault(tuple(suite.name for suite in self.suites), message)
        elif worse(outcome, self.case.outcome) is outcome:
            if not (self.case.message and outcome is self.case.outcome):
                self.case.kind, self.case.message = kind, message
            self.case.outcome = outcome

    def _closed(self, case: _Open) -> JUnitCase:
        attributes = case.attributes
        return JUnitCase(
            suites=tuple(suite.name for suite in self.suites),
            classname=attributes.get("classname", ""),
            name=attributes.get("name", ""),
            file=attributes.get("file") or (self.suites[-1].file if self.suites else ""),
            outcome=case.outcome,
            seconds=_seconds(attributes.get("time", "")),
            kind=case.kind,
            message=case.message,
        )


def _by_attributes(attributes: Mapping[str, str]) -> TestOutcome:
    outcome = TestOutcome.PASSED
    for name in ("status", "result"):
        told = _WORDS.get(attributes.get(name, "").lower())
        if told is not None:
            outcome = worse(told, outcome)
    return outcome


def _message(summary: str, text: str) -> str:
    """The text of a failure; its `message` attribute goes before where the text does not have it."""
    text = text.strip("\n")
    if summary and summary not in text:
        text = f"{summary}\n{text}" if text.strip() else summary
    return shortened(text)


def _seconds(text: str) -> float:
    try:
        # Surefire groups the digits of a thousand seconds.
        seconds = float(text.replace(",", ""))
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
