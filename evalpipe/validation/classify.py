"""Decides what a candidate is worth from what its runs showed. Pure: reports in, one class and its evidence out."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evalpipe.runners import RunStatus, SuiteReport, TestOutcome, TestResult


class ValidationClass(StrEnum):
    """What a candidate is; only `valid` becomes a task by itself."""

    VALID = "valid"
    COMPILE_ONLY = "compile_only"
    NO_SIGNAL = "no_signal"
    AFTER_FAILS = "after_fails"
    FLAKY = "flaky"
    NEEDS_NETWORK = "needs_network"
    ENVIRONMENT_FAILED = "environment_failed"
    TIMEOUT = "timeout"
    NO_REPORT = "no_report"
    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class TwoSides:
    """One validation pass: the reports of both sides and the day (UTC, ISO) on which it ran."""

    before: SuiteReport
    after: SuiteReport
    day: str


@dataclass(frozen=True, slots=True)
class PassFinding:
    """What one pass alone says."""

    validation_class: ValidationClass
    evidence: str
    fail_to_pass: frozenset[str] = frozenset()
    pass_to_pass: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ValidationFinding:
    """What both passes say together. `quarantined` names the tests that wavered between them."""

    validation_class: ValidationClass
    evidence: str
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    quarantined: tuple[str, ...] = ()
    provisional: bool = True


_FAILED = frozenset({TestOutcome.FAILED, TestOutcome.ERROR})
_BAD_RUNS: Mapping[RunStatus, ValidationClass] = {
    RunStatus.TIMEOUT: ValidationClass.TIMEOUT,
    RunStatus.OUT_OF_MEMORY: ValidationClass.ENVIRONMENT_FAILED,
    RunStatus.NO_REPORT: ValidationClass.NO_REPORT,
    RunStatus.DAMAGED_REPORT: ValidationClass.NO_REPORT,
}
# Errors of the C library's resolver and of connect(2) in a box that has only loopback.
_NO_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable|"
    r"No address associated with hostname|nodename nor servname provided|getaddrinfo (?:failed|ENOTFOUND|EAI_AGAIN)|"
    r"dial tcp: lookup .* (?:no such host|server misbehaving)|UnknownHostException"
)


def judge_pass(sides: TwoSides, test_files: Sequence[bytes]) -> PassFinding:
    """Classify a candidate by one pass.

    Fail-to-pass: ran and failed before, passed after. Pass-to-pass: passed on both. A test that is absent before
    (its module does not import) is neither. `test_files` are the change's test files, which tell a test that was
    meant to show the change from one that fails for reasons of its own.
    """
    for side, report in (("before", sides.before), ("after", sides.after)):
        if report.status is not RunStatus.COMPLETED:
            return PassFinding(_BAD_RUNS[report.status], f"{side}: {report.detail}")
        if not report.canary_failed:
            return PassFinding(
                ValidationClass.NO_REPORT,
                f"{side}: the test that must fail did not, so something turns failures into passes",
            )
    before, after = sides.before.tests, sides.after.tests
    unclear = sides.before.duplicates | sides.after.duplicates
    passed_after = {
        test_id for test_id, result in after.items() if result.outcome is TestOutcome.PASSED and test_id not in unclear
    }
    fail_to_pass = frozenset(
        test_id for test_id in passed_after if test_id in before and before[test_id].outcome in _FAILED
    )
    pass_to_pass = frozenset(
        test_id for test_id in passed_after if test_id in before and before[test_id].outcome is TestOutcome.PASSED
    )
    if fail_to_pass:
        return PassFinding(
            ValidationClass.VALID,
            f"{len(fail_to_pass)} tests go from fail to pass",
            fail_to_pass,
            pass_to_pass,
        )
    validation_class, evidence = _without_signal(sides, _names(test_files))
    return PassFinding(validation_class, evidence, frozenset(), pass_to_pass)


def judge(passes: Mapping[str, TwoSides], test_files: Sequence[bytes]) -> ValidationFinding:
    """Classify a candidate by its passes, keyed `first` and `second`.

    With one pass only, a class that cannot change any more stands, and what looks valid is pending. A test whose
    role differs between the passes is quarantined; when it is one of the fail-to-pass tests of either pass, the
    candidate is flaky. Provisional unless the two passes lie on different days.
    """
    findings = [judge_pass(sides, test_files) for sides in passes.values()]
    if not findings:
        return ValidationFinding(ValidationClass.PENDING, "no pass has run yet")
    wavering = _wavering(list(passes.values()))
    touched = sorted(wavering & frozenset().union(*(finding.fail_to_pass for finding in findings)))
    if touched:
        return ValidationFinding(
            ValidationClass.FLAKY,
            f"{len(touched)} fail-to-pass tests did not end the same way twice, for example {touched[0]}",
            quarantined=tuple(sorted(wavering)),
        )
    unlike = [finding for finding in findings if finding.validation_class is not findings[0].validation_class]
    if unlike:
        return ValidationFinding(
            ValidationClass.FLAKY,
            f"one pass says {findings[0].validation_class} ({findings[0].evidence}), the other "
            f"{unlike[0].validation_class} ({unlike[0].evidence})",
            quarantined=tuple(sorted(wavering)),
        )
    found = findings[0]
    if found.validation_class is ValidationClass.VALID and len(findings) < 2:
        return ValidationFinding(ValidationClass.PENDING, f"{found.evidence} in the first pass; a second is due")
    stable = frozenset.intersection(*(finding.pass_to_pass for finding in findings))
    return ValidationFinding(
        found.validation_class,
        found.evidence,
        fail_to_pass=tuple(sorted(found.fail_to_pass)),
        pass_to_pass=tuple(sorted(stable)),
        quarantined=tuple(sorted(wavering)),
        provisional=len({sides.day for sides in passes.values()}) < 2,
    )


def _without_signal(sides: TwoSides, files: frozenset[str]) -> tuple[ValidationClass, str]:
    before, after = sides.before.tests, sides.after.tests
    still_failing = {
        test_id: result
        for test_id, result in after.items()
        if result.outcome in _FAILED and test_id not in _passed(before) and _file_of(test_id) in files
    }
    no_network = [test_id for test_id, result in still_failing.items() if _NO_NETWORK.search(result.message)]
    if no_network:
        return (
            ValidationClass.NEEDS_NETWORK,
            f"{len(no_network)} tests fail after the change for want of a network, for example {no_network[0]}",
        )
    broken = sorted(files & set(sides.after.uncollected))
    if still_failing or broken:
        example = next(iter(still_failing), None) or broken[0]
        return (
            ValidationClass.AFTER_FAILS,
            f"{len(still_failing) + len(broken)} of the change's own tests fail after it too, for example {example}",
        )
    hidden = [
        test_id for test_id in _passed(after) if test_id not in before and _file_of(test_id) in sides.before.uncollected
    ]
    if hidden:
        return (
            ValidationClass.COMPILE_ONLY,
            f"{len(hidden)} tests are absent before, because {_file_of(hidden[0])} does not import there",
        )
    return ValidationClass.NO_SIGNAL, "every test of the change ends the same way before and after it"


def _wavering(passes: Sequence[TwoSides]) -> frozenset[str]:
    """Tests whose outcome on either side differs between the passes."""
    wavering: set[str] = set()
    for reports in ([one.before for one in passes], [one.after for one in passes]):
        outcomes = [{test_id: result.outcome for test_id, result in report.tests.items()} for report in reports]
        for test_id in set().union(*outcomes):
            if len({found.get(test_id) for found in outcomes}) > 1:
                wavering.add(test_id)
    return frozenset(wavering)


def _passed(tests: Mapping[str, TestResult]) -> list[str]:
    return [test_id for test_id, result in tests.items() if result.outcome is TestOutcome.PASSED]


def _names(paths: Sequence[bytes]) -> frozenset[str]:
    return frozenset(path.decode("utf-8", "backslashreplace") for path in paths)


def _file_of(test_id: str) -> str:
    return test_id.partition("::")[0]
