"""Decides what a candidate is worth from what its runs showed. Pure: reports in, one class and its evidence out."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from evalpipe.runners import RunStatus, SuiteReport, TestOutcome


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
    RunStatus.BUILD_FAILED: ValidationClass.AFTER_FAILS,
    RunStatus.NO_REPORT: ValidationClass.NO_REPORT,
    RunStatus.DAMAGED_REPORT: ValidationClass.NO_REPORT,
}
_INCOMPLETE = frozenset({ValidationClass.TIMEOUT, ValidationClass.ENVIRONMENT_FAILED, ValidationClass.NO_REPORT})
# Errors of the C library's resolver and of connect(2) in a box that has only loopback.
_NO_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable|"
    r"No address associated with hostname|nodename nor servname provided|getaddrinfo (?:failed|ENOTFOUND|EAI_AGAIN)|"
    r"dial tcp: lookup .* (?:no such host|server misbehaving)|UnknownHostException"
)


def judge_pass(sides: TwoSides, test_files: Collection[bytes]) -> PassFinding:
    """Classify a candidate by one pass.

    Fail-to-pass: ran and failed before, passed after. Pass-to-pass: passed on both. A test that is absent before
    (its module does not import) is neither, and neither is an id that more than one test had. `test_files` are the
    change's test files, which tell a test that was meant to show the change from one that fails for reasons of
    its own.
    """
    unbuilt = sides.before.status is RunStatus.BUILD_FAILED
    for side, report in (("before", sides.before), ("after", sides.after)):
        if side == "before" and unbuilt:
            continue
        if report.status is not RunStatus.COMPLETED:
            return PassFinding(_BAD_RUNS[report.status], f"{side}: {report.detail}")
        if not report.canary_failed:
            return PassFinding(
                ValidationClass.NO_REPORT,
                f"{side}: the test that must fail did not, so something turns failures into passes",
            )
    if unbuilt:
        return PassFinding(ValidationClass.COMPILE_ONLY, f"before, nothing builds: {sides.before.detail}")
    before = sides.before.tests
    ran_on_both = (_passed(sides.after) & before.keys()) - sides.before.duplicates - sides.after.duplicates
    fail_to_pass = frozenset(test_id for test_id in ran_on_both if before[test_id].outcome in _FAILED)
    pass_to_pass = frozenset(test_id for test_id in ran_on_both if before[test_id].outcome is TestOutcome.PASSED)
    if fail_to_pass:
        evidence = f"fail to pass: {_count(fail_to_pass)}, for example {min(fail_to_pass)}"
        return PassFinding(ValidationClass.VALID, evidence, fail_to_pass, pass_to_pass)
    validation_class, evidence = _without_signal(sides, _names(test_files))
    return PassFinding(validation_class, evidence, frozenset(), pass_to_pass)


def judge(passes: Mapping[str, TwoSides], test_files: Collection[bytes]) -> ValidationFinding:
    """Classify a candidate by its passes, keyed `first` and `second`.

    A test whose outcome on either side differs between the passes is quarantined, and the candidate is judged by
    the others. It is flaky when one of its own tests fails before and passes after the change only by chance, when
    no other signal is left than one that came in one pass only, or when the passes differ in more than tests. With
    one pass only, a class that cannot change any more stands, and what looks valid is pending. Provisional unless
    the passes lie on different days.
    """
    findings = [judge_pass(sides, test_files) for sides in passes.values()]
    if not findings:
        return ValidationFinding(ValidationClass.PENDING, "no pass has run yet")
    provisional = len({sides.day for sides in passes.values()}) < 2
    quarantined: frozenset[str] = frozenset()
    if not any(finding.validation_class in _INCOMPLETE for finding in findings):
        quarantined = _wavering(passes.values())
        stable = [judge_pass(_without(sides, quarantined), test_files) for sides in passes.values()]
        by_chance = _signals_by_chance(passes.values(), findings, quarantined, _names(test_files))
        if by_chance.after_too or (by_chance.at_all and not stable[0].fail_to_pass):
            example = min(by_chance.after_too or by_chance.at_all)
            return ValidationFinding(
                ValidationClass.FLAKY,
                f"fail to pass in one pass only: {_count(by_chance.at_all)}, for example {example}",
                quarantined=tuple(sorted(quarantined)),
                provisional=provisional,
            )
        findings = stable
    found = findings[0]
    unlike = next((other for other in findings if other.validation_class is not found.validation_class), None)
    if unlike:
        return ValidationFinding(
            ValidationClass.FLAKY,
            f"one pass says {found.validation_class} ({found.evidence}), the other "
            f"{unlike.validation_class} ({unlike.evidence})",
            quarantined=tuple(sorted(quarantined)),
            provisional=provisional,
        )
    if found.validation_class is ValidationClass.VALID and len(findings) < 2:
        return ValidationFinding(ValidationClass.PENDING, f"{found.evidence}, in the first pass; a second is due")
    return ValidationFinding(
        found.validation_class,
        found.evidence,
        # What is not quarantined ended the same way in every pass, so any of them can give the lists.
        fail_to_pass=tuple(sorted(found.fail_to_pass)),
        pass_to_pass=tuple(sorted(frozenset.intersection(*(finding.pass_to_pass for finding in findings)))),
        quarantined=tuple(sorted(quarantined)),
        provisional=provisional,
    )


def _without_signal(sides: TwoSides, own_files: frozenset[str]) -> tuple[ValidationClass, str]:
    before, after = sides.before, sides.after
    passed_before, passed_after = _passed(before), _passed(after)
    failing = {
        test_id: result.message
        for test_id, result in after.tests.items()
        if result.outcome in _FAILED and test_id not in passed_before and _file_of(test_id) in own_files
    }
    for node_id, message in after.uncollected.items():
        failing |= {file: message for file in own_files if _file_of(node_id) == file or _is_inside(file, node_id)}
    no_network = [test_id for test_id, message in failing.items() if _NO_NETWORK.search(message)]
    if no_network:
        return (
            ValidationClass.NEEDS_NETWORK,
            f"fail after the change for want of a network: {_count(no_network)}, for example {min(no_network)}",
        )
    if failing:
        return (
            ValidationClass.AFTER_FAILS,
            f"the change's own tests fail after it too: {_count(failing)}, for example {min(failing)}",
        )
    absent = passed_after - before.tests.keys()
    hidden = {test_id: node for test_id in absent for node in before.uncollected if _is_inside(test_id, node)}
    if hidden:
        node = hidden[min(hidden)]
        return (
            ValidationClass.COMPILE_ONLY,
            f"absent before, because {node or 'the suite'} is not collected there: {_count(hidden)}, for example "
            f"{min(hidden)}",
        )
    absence = f"; absent before: {_count(absent)}, for example {min(absent)}" if absent else ""
    return ValidationClass.NO_SIGNAL, f"no test that passes after the change failed before it{absence}"


@dataclass(frozen=True, slots=True)
class _SignalsByChance:
    """Own tests of the change that went from fail to pass in one pass and not in the other.

    `after_too`: those that failed before in every pass, so that it is the change itself that lets them waver. The
    others waver on the old code, as a test of something else in the same file may, or one of the fault that is mended.
    """

    at_all: frozenset[str]
    after_too: frozenset[str]


def _signals_by_chance(
    passes: Collection[TwoSides],
    findings: Collection[PassFinding],
    quarantined: frozenset[str],
    own_files: frozenset[str],
) -> _SignalsByChance:
    signals = frozenset().union(*(finding.fail_to_pass for finding in findings))
    at_all = frozenset(test_id for test_id in signals & quarantined if _file_of(test_id) in own_files)
    failed_before = [{test for test, result in one.before.tests.items() if result.outcome in _FAILED} for one in passes]
    return _SignalsByChance(at_all, at_all.intersection(*failed_before))


def _wavering(passes: Collection[TwoSides]) -> frozenset[str]:
    """Tests that ended in more than one way on a side; failing and stopping with an error are one way."""
    wavering: set[str] = set()
    for reports in ([one.before for one in passes], [one.after for one in passes]):
        endings = [
            {
                (
                    test_id,
                    TestOutcome.FAILED if result.outcome in _FAILED else result.outcome,
                    test_id in found.duplicates,
                )
                for test_id, result in found.tests.items()
            }
            for found in reports
        ]
        wavering |= {test_id for test_id, _, _ in endings[0].union(*endings) - endings[0].intersection(*endings)}
    return frozenset(wavering)


def _without(sides: TwoSides, test_ids: frozenset[str]) -> TwoSides:
    """The same pass as if these tests had not been in it."""
    before, after = (
        replace(report, tests={test_id: found for test_id, found in report.tests.items() if test_id not in test_ids})
        for report in (sides.before, sides.after)
    )
    return TwoSides(before, after, sides.day)


def _passed(report: SuiteReport) -> frozenset[str]:
    return frozenset(test_id for test_id, result in report.tests.items() if result.outcome is TestOutcome.PASSED)


def _names(paths: Collection[bytes]) -> frozenset[str]:
    # As `runners.report.storable_text` shows a path that is not UTF-8.
    return frozenset(path.decode("utf-8", "backslashreplace") for path in paths)


def _file_of(test_id: str) -> str:
    return test_id.partition("::")[0]


def _is_inside(test_id: str, node_id: str) -> bool:
    """Whether a file or test lies in a node that could not be collected: a class, a file, or a folder and its conftest.

    pytest names the whole suite "" and, before version 8, a package by its `__init__.py`.
    """
    node_id = node_id.removesuffix("/__init__.py")
    return not node_id or test_id.startswith((f"{node_id}::", f"{node_id}/"))


def _count(tests: Collection[str]) -> str:
    return "1 test" if len(tests) == 1 else f"{len(tests)} tests"
