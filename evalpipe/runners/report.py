"""What a test run says: one outcome for each exact test id, and whether the report can be believed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class TestOutcome(StrEnum):
    """Outcome of one test. Only `passed` ever counts as a pass."""

    __test__ = False  # pytest would try to collect the name

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"


class RunStatus(StrEnum):
    """How a run of the suite ended, whatever its tests said.

    `build_failed`: the tree does not build, so that no test of it could run; `uncollected` then says what does not.
    Where only a part does not build, the run is `completed` and that part is in `uncollected`.
    """

    COMPLETED = "completed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    BUILD_FAILED = "build_failed"
    NO_REPORT = "no_report"
    DAMAGED_REPORT = "damaged_report"


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test of one run. `seconds` is the wall time of its phases, `message` its failure, shortened."""

    __test__ = False

    test_id: str
    outcome: TestOutcome
    seconds: float = 0.0
    message: str = ""


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """The outcome of a whole run.

    `tests` maps each exact id to its result; an id that stood for more than one test, or whose test ran more
    than once, is in `duplicates` as well. `uncollected` maps files that could not be imported or collected to
    their error. `canary_failed` is true only when the test that must fail did fail. All text is storable text.
    """

    status: RunStatus
    tests: Mapping[str, TestResult] = field(default_factory=dict)
    uncollected: Mapping[str, str] = field(default_factory=dict)
    duplicates: frozenset[str] = frozenset()
    canary_failed: bool = False
    detail: str = ""


_SURROGATE = re.compile("[\ud800-\udfff]")


def storable_text(text: str) -> str:
    r"""Return `text` with lone surrogates as escapes; neither Parquet nor UTF-8 can hold them. Other text is unchanged.

    A path that is not UTF-8 comes out as `bytes.decode("utf-8", "backslashreplace")` gives it (`\xff`), so that a
    test id can be compared with the path of its file. Every text of a report goes through here when it is read,
    and so do the ids that duplicates are counted by: two ids that become one are seen.
    """
    return _SURROGATE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    # 0xDC80 to 0xDCFF stand for undecodable bytes (PEP 383).
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"
