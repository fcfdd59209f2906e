"""Reads TAP, the Test Anything Protocol: versions 12, 13 and 14 (testanything.org).

What stands between its lines is the output of the tests, and is passed over. So a forged line can get in; the plan,
which says how many tests there are, and the numbers, which may not come twice, tell that something is wrong.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from evalpipe.runners.report import TestOutcome, storable_text
from evalpipe.runners.results import shortened, worse

_VERSION = re.compile(r"TAP version \d+\s*\Z", re.IGNORECASE)
_PLAN = re.compile(r"1\.\.(\d{1,9})(?:\s+#.*|\s*)\Z")
_POINT = re.compile(r"(not )?ok(?= |\Z)(?: +(\d{1,9})(?!\S))?(?: -(?= |\Z))?(?: |\Z)?(.*)\Z")
_BAIL_OUT = re.compile(r"Bail out!\s*(.*)\Z", re.IGNORECASE)
_DIRECTIVE = re.compile(r"#\s*(?:(todo)\b|(skip)\S*)", re.IGNORECASE)
# Some tools write how long a test took behind its description: it is another one each time.
_TIME = re.compile(r"\s+#\s*time=([\d.]+)(m?s)\s*\Z")
_DURATION = re.compile(r"\s*duration_ms:\s*([\d.]+)\s*\Z")
_INDENT = 4
_MAX_DEPTH = 50


class DamagedTap(ValueError):
    """This is not TAP, or what it says cannot all be true; the text says why."""


class UnfinishedTap(ValueError):
    """The run ended before its end, or says so itself; the text says why."""


@dataclass(frozen=True, slots=True)
class TapTest:
    """One test point. `titles` are the descriptions of the test points that it is a sub-test of, and its own."""

    titles: tuple[str, ...]
    outcome: TestOutcome
    seconds: float = 0.0
    message: str = ""


@dataclass(slots=True)
class _Document:
    """A stream, or the sub-tests of one test point."""

    plan: int | None = None
    points: int = 0
    numbers: set[int] = field(default_factory=set)
    tests: list[TapTest] = field(default_factory=list)

    def add_plan(self, count: int) -> None:
        if self.plan is not None:
            raise DamagedTap("it has a second plan; streams of several programs need a `TAP version` line each")
        self.plan = count

    def add_point(self, number: int, test: TapTest, children: "_Document | None") -> None:
        self.points += 1
        if number in self.numbers:
            raise DamagedTap(f"test number {number} comes twice")
        self.numbers.add(number)
        if children is not None:
            self.tests += [replace(child, titles=(*test.titles, *child.titles)) for child in children.tests]
            fault = children.fault()
            if fault:
                test = replace(test, outcome=worse(test.outcome, TestOutcome.ERROR), message=f"its sub-tests: {fault}")
        self.tests.append(test)

    def fault(self) -> str:
        """What is wrong with the number of its tests; empty when nothing is."""
        if self.plan is None:
            return "there is no plan"
        return "" if self.plan == self.points else f"the plan says {self.plan} tests, and there are {self.points}"


def read_tap(content: bytes) -> list[TapTest]:
    """The test points of one or more streams, sub-tests before the point that they are of.

    A stream after the first begins with its version. Raises DamagedTap and UnfinishedTap.
    """
    reader = _Reader()
    lines = content.decode("utf-8", "backslashreplace").split("\n")
    for line in lines:
        reader.read(line.removesuffix("\r"))
    return reader.finish()


@dataclass(slots=True)
class _Reader:
    tests: list[TapTest] = field(default_factory=list)
    # The stream, and within it the sub-tests whose own test point has not come yet.
    open: list[_Document] = field(default_factory=lambda: [_Document()])
    # Where the last test point is kept, whether its line was the last one, and what is said of it so far.
    last: _Document | None = None
    is_fresh: bool = False
    about: list[str] = field(default_factory=list)
    in_yaml: bool = False

    def read(self, line: str) -> None:
        text = line.lstrip(" ")
        was_fresh, self.is_fresh = self.is_fresh, False
        if self.in_yaml:
            self.in_yaml = text.rstrip() != "..."
            if self.in_yaml:
                self.about.append(line)
        elif was_fresh and text.rstrip() == "---":
            self.in_yaml = True
        elif text.startswith("#"):
            self.about.append(text)
        else:
            level, rest = divmod(len(line) - len(text), _INDENT)
            if rest == 0 and level <= _MAX_DEPTH:
                self._read_at(level, text)

    def _read_at(self, level: int, text: str) -> None:
        if bail_out := _BAIL_OUT.match(text):
            raise UnfinishedTap(f"the run bailed out: {shortened(storable_text(bail_out[1]))}")
        if level == 0 and _VERSION.match(text):
            self._next_stream()
        elif plan := _PLAN.match(text):
            self._require_closed(level + 1)
            self._document(level).add_plan(int(plan[1]))
        elif point := _POINT.match(text):
            self._tell()
            self._require_closed(level + 2)
            children = self.open[level + 1] if len(self.open) > level + 1 else None
            del self.open[level + 1 :]
            self.last = self._document(level)
            number = int(point[2]) if point[2] else self.last.points + 1
            self.last.add_point(number, _test(bool(point[1]), point[3], number), children)
            self.is_fresh = True

    def _require_closed(self, level: int) -> None:
        if len(self.open) > level:
            raise DamagedTap("the test point of some sub-tests is missing")

    def _document(self, level: int) -> _Document:
        while len(self.open) <= level:
            self.open.append(_Document())
        return self.open[level]

    def _next_stream(self) -> None:
        if self.open[0].points or self.open[0].plan is not None:
            self.tests += self._end_of_stream()
            self.open = [_Document()]

    def _end_of_stream(self) -> list[TapTest]:
        self._tell()
        if self.in_yaml:
            raise UnfinishedTap("what it says of its last test has no end")
        if len(self.open) > 1:
            raise UnfinishedTap("the test point of the last sub-tests is missing")
        document = self.open[0]
        if document.plan is not None and document.points > document.plan:
            raise DamagedTap(document.fault())
        if fault := document.fault():
            raise UnfinishedTap(fault)
        return document.tests

    def finish(self) -> list[TapTest]:
        return self.tests + self._end_of_stream()

    def _tell(self) -> None:
        """Give the last test point what was said of it."""
        if self.last is not None and self.about:
            test = self.last.tests[-1]
            durations = (_DURATION.match(line) for line in self.about)
            seconds = next((_number(found[1]) / 1000 for found in durations if found), test.seconds)
            message = "\n".join(filter(None, (test.message, *self.about)))
            if test.outcome is TestOutcome.PASSED:
                message = test.message
            self.last.tests[-1] = replace(test, seconds=seconds, message=shortened(storable_text(message)))
        self.last, self.about = None, []


def _test(failed: bool, text: str, number: int) -> TapTest:
    seconds = 0.0
    if time := _TIME.search(text):
        text = text[: time.start()]
        seconds = _number(time[1]) / (1000 if time[2] == "ms" else 1)
    outcome = TestOutcome.FAILED if failed else TestOutcome.PASSED
    for position in _hashes(text):
        directive = _DIRECTIVE.match(text, position)
        if directive:
            text = text[:position].rstrip()
            expected = TestOutcome.XFAILED if failed else TestOutcome.XPASSED
            outcome = TestOutcome.SKIPPED if directive[2] else expected
            break
    title = storable_text(re.sub(r"\\([\\#])", r"\1", text))
    return TapTest((title or str(number),), outcome, seconds)


def _hashes(text: str) -> Iterator[int]:
    """Where a directive may begin: at a `#` after a blank, or at the very first, that is not escaped."""
    for found in re.finditer(r"\\.|#", text):
        if found[0] == "#" and (found.start() == 0 or text[found.start() - 1] in " \t"):
            yield found.start()


def _number(digits: str) -> float:
    try:
        number = float(digits)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0
