"""Reads what the scripts of the cargo runner leave: libtest's log file of each test program, rustdoc's text.

A documentation test is named by cargo after its line, which moves with every change above it: its id has the number
among the tests of its item instead.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalpipe.runners.joined_files import NotJoined, read_joined
from evalpipe.runners.report import RunStatus, SuiteReport, TestOutcome, TestResult, storable_text
from evalpipe.runners.results import UNPROVEN, Results, shortened, worse

_OUTCOMES = {"ok": TestOutcome.PASSED, "ignored": TestOutcome.SKIPPED, "FAILED": TestOutcome.FAILED}
_LIBRARIES = frozenset({"lib", "rlib", "dylib", "cdylib", "staticlib", "proc-macro"})
_DOC_TEST = re.compile(
    r"test (?P<item>.+?) \(line (?P<line>\d+)\)(?: - (?:compile fail|compile|should panic))? \.\.\. "
    r"(?P<word>ok|FAILED|ignored)(?:,.*)?"
)
_DOC_BLOCK = re.compile(r"^running \d+ tests?\n((?:test .*\n)+)", re.MULTILINE)
_FAILURES = re.compile(r"^failures:\n.*?^test result: ", re.MULTILINE | re.DOTALL)
_CAPTURED = re.compile(r"^---- (?P<name>.+?) stdout ----$\n", re.MULTILINE)
_CAPTURED_END = re.compile(r"\n(?:\n\nfailures:\n|---- .+? stdout ----\n)")
_NO_COMMAND = 127
# What `cargo test --workspace` leaves out without a word is no failure when it is asked for by its name.
_LEFT_OUT = re.compile("believes it's in a workspace when it's not|requires the features:")

_Files = dict[str, bytes]


@dataclass(slots=True)
class _Part:
    """The tests of one test program, or of the documentation of one package."""

    prefix: str
    results: list[TestResult] = field(default_factory=list)
    canary: TestOutcome | None = None

    def add(self, name: str, outcome: TestOutcome, message: str, canary: str) -> None:
        if name == canary or name.endswith(f"::{canary}"):
            self.canary = outcome
        else:
            self.results.append(TestResult(f"{self.prefix}::{name}", outcome, message=message))


def read_report(report: bytes | None, canary: str, token: str) -> SuiteReport:
    """What a run says by its report (None: it left none). Never raises on content."""
    if report is None:
        return SuiteReport(RunStatus.NO_REPORT, detail="the test run left no report")
    try:
        calls = _by_call(read_joined(report, token).files)
        return _suite_report(calls, canary)
    except NotJoined as error:
        return SuiteReport(RunStatus.NO_REPORT, detail=str(error))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        detail = f"the report cannot be read: {storable_text(repr(error)[:500])}"
        return SuiteReport(RunStatus.DAMAGED_REPORT, detail=detail)


def _by_call(files: Iterable[tuple[str, bytes]]) -> list[dict[str, _Files]]:
    """For each call of cargo, in order, the files of what it ran by folder; its own have the empty name."""
    calls: defaultdict[int, defaultdict[str, _Files]] = defaultdict(lambda: defaultdict(dict))
    for path, content in files:
        number, _, rest = path.partition("/")
        folder, _, name = rest.rpartition("/")
        calls[int(number)][folder][name] = content.rstrip(b"\n")
    return [dict(calls[number]) for number in sorted(calls)]


def _suite_report(calls: list[dict[str, _Files]], canary: str) -> SuiteReport:
    parts: list[_Part] = []
    uncollected: dict[str, str] = {}
    programs: dict[str, str] = {}
    errors: dict[str, str] = {}
    for call in calls:
        own = call[""]
        label, status = _text(own["label"]), int(own["status"])
        if status >= _NO_COMMAND:
            detail = f"cargo ended with exit status {status}: {shortened(_text(own['errors']))}"
            return SuiteReport(RunStatus.NO_REPORT, detail=detail)
        _read_messages(own["messages"], programs, errors)
        if label == "build":
            continue
        ran = [folder for folder in call if folder]
        for folder in sorted(ran):
            parts.extend(_program(call[folder], label, programs, canary, uncollected))
        if label != "all" and not ran and status and not _LEFT_OUT.search(_text(own["errors"])):
            uncollected[label] = shortened(errors.get(label) or _text(own["errors"]))
    if not parts and not uncollected and calls and int(calls[-1][""]["status"]):
        uncollected["."] = shortened(_text(calls[-1][""]["errors"]))
    return _joined(parts, uncollected)


def _joined(parts: list[_Part], uncollected: dict[str, str]) -> SuiteReport:
    results = Results()
    for part in parts:
        for result in part.results:
            if result.outcome is TestOutcome.PASSED and part.canary is not TestOutcome.FAILED:
                uncollected[part.prefix] = UNPROVEN
            else:
                results.add(result)
    canaries = {part.canary for part in parts}
    if uncollected and not results.tests and canaries <= {None}:
        return SuiteReport(RunStatus.BUILD_FAILED, uncollected=uncollected, detail="no target with tests builds")
    return SuiteReport(
        RunStatus.COMPLETED,
        tests=results.tests,
        uncollected=uncollected,
        duplicates=results.duplicates,
        canary_failed=TestOutcome.FAILED in canaries and canaries <= {None, TestOutcome.FAILED},
    )


def _program(
    files: _Files, label: str, programs: Mapping[str, str], canary: str, uncollected: dict[str, str]
) -> Iterator[_Part]:
    package = _text(files["package"])
    if "program" not in files:
        yield _documentation(package, _text(files["output"]), canary)
        return
    # Called for one target, cargo runs no other; otherwise its messages say whose program it is.
    prefix = label if label != "all" else programs.get(_text(files["program"]), f"{package}::{_text(files['program'])}")
    if "no-harness" in files:
        uncollected[prefix] = "its tests are not run by libtest (harness = false), so there is no report to read"
        return
    if "status" not in files:
        raise NotJoined("the test run ended before a test program did")
    part = _Part(prefix)
    output = _text(files["output"])
    captured = _captured(output)
    names = [line.removesuffix(": test") for line in _text(files["list"]).split("\n") if line.endswith(": test")]
    outcomes = _logged(_text(files["log"]), names) if "log" in files else _printed(output, names)
    for name in names:
        outcome = outcomes.get(name, TestOutcome.ERROR)
        message = captured.get(name, "")
        if outcome is TestOutcome.ERROR:
            end = f"the program ended with exit status {_text(files['status'])} before this test did"
            message = f"{end}\n{shortened(output)}"
        part.add(name, outcome, shortened(message) if outcome is not TestOutcome.PASSED else "", canary)
    yield part


def _logged(log: str, names: list[str]) -> dict[str, TestOutcome]:
    """The outcomes of libtest's log file: a word, perhaps a reason of several lines, and the name at the end."""
    known = set(names)
    outcomes: dict[str, TestOutcome] = {}
    entry = ""
    for line in log.split("\n"):
        entry = entry or line
        name = line.rpartition(" ")[2]
        if name in known:
            word = re.split(r"[ :]", entry, maxsplit=1)[0]
            outcome = _OUTCOMES.get(word, TestOutcome.FAILED)
            # A name that comes twice is none that can be believed.
            outcomes[name] = outcome if outcomes.get(name, outcome) is outcome else TestOutcome.FAILED
            entry = ""
    return outcomes


def _printed(output: str, names: list[str]) -> dict[str, TestOutcome]:
    """The outcomes by what libtest prints, for one that knows no log file: the last word for each name."""
    outcomes = {}
    for name in names:
        pattern = rf"test {re.escape(name)}(?: - should panic)? \.\.\. (ok|FAILED|ignored)(?:,.*)?$"
        words = re.findall(pattern, output, re.MULTILINE)
        if words:
            outcomes[name] = _OUTCOMES[words[-1]] if len(set(words)) == 1 else TestOutcome.FAILED
    return outcomes


def _documentation(package: str, output: str, canary: str) -> _Part:
    part = _Part(f"{package}::doc")
    captured = _captured(output)
    # What a test printed is shown among the failures, and may look like results.
    blocks = _DOC_BLOCK.finditer(_FAILURES.sub("", output + "\n"))
    lines = (line for block in blocks for line in block[1].splitlines())
    outcomes: dict[tuple[int, str], TestOutcome] = {}
    for line in lines:
        if found := _DOC_TEST.fullmatch(line):
            place = (int(found["line"]), found["item"])
            outcomes[place] = worse(_OUTCOMES[found["word"]], outcomes.get(place, TestOutcome.PASSED))
    numbers: Counter[str] = Counter()
    for (number, item), outcome in sorted(outcomes.items()):
        numbers[item] += 1
        name = canary if item.endswith(f" - {canary}") else f"{item} ({numbers[item]})"
        part.add(name, outcome, shortened(captured.get(f"{item} (line {number})", "")), canary)
    return part


def _captured(output: str) -> dict[str, str]:
    """What libtest shows of each test that failed."""
    found = {}
    for match in _CAPTURED.finditer(output):
        end = _CAPTURED_END.search(output, match.end() - 1)
        found[match["name"]] = output[match.end() : end.start() if end else len(output)].strip("\n")
    return found


def _read_messages(content: bytes, programs: dict[str, str], errors: dict[str, str]) -> None:
    """Add to `programs` the target of each test program, and to `errors` what each target's compiler said."""
    for line in content.split(b"\n"):
        try:
            message: Any = json.loads(line)
            target, package = message["target"], _package_name(message)
            kind = "lib" if target["kind"][0] in _LIBRARIES else f"{target['kind'][0]}/{target['name']}"
            prefix = storable_text(f"{package}::{kind}")
            if message["reason"] == "compiler-message":
                errors[prefix] = storable_text(errors.get(prefix, "") + message["message"]["rendered"])
            elif message["profile"]["test"]:
                programs[storable_text(message["executable"])] = prefix
        except (ValueError, TypeError, KeyError, IndexError):
            continue  # cut in the box, or of a cargo that says it otherwise: its target keeps the program's path


def _package_name(message: Any) -> str:
    """The package's name out of its id, `path+file:///p#name@1.0.0`, `...name#1.0.0` or `name 1.0.0 (...)`."""
    package_id = str(message["package_id"])
    if " " in package_id:
        return package_id.split(" ", 1)[0]
    place, _, version = package_id.rpartition("#")
    return version.rpartition("@")[0] if "@" in version else place.rstrip("/").rpartition("/")[2]


def _text(content: bytes) -> str:
    return content.decode("utf-8", "backslashreplace")
