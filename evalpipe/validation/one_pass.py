"""Decides what one pass says of a candidate: the truth table of docs/validation.md. Pure: reports in, a finding out."""

from collections.abc import Collection, Mapping

from evalpipe.runners import RunStatus, SuiteReport, TestOutcome
from evalpipe.validation.finding import PassFinding, TwoSides, ValidationClass, count
from evalpipe.validation.missing_names import missing_names
from evalpipe.validation.own_tests import OwnTests, is_inside
from evalpipe.validation.reports import failed, passed

_BROKEN_RUNS: Mapping[RunStatus, ValidationClass] = {
    RunStatus.TIMEOUT: ValidationClass.TIMEOUT,
    RunStatus.OUT_OF_MEMORY: ValidationClass.ENVIRONMENT_FAILED,
    RunStatus.NO_REPORT: ValidationClass.NO_REPORT,
    RunStatus.DAMAGED_REPORT: ValidationClass.NO_REPORT,
}
INCOMPLETE = frozenset(_BROKEN_RUNS.values())
"""Classes of a pass in which a side was not run to its end, so that nothing can be said of single tests."""


def judge_pass(sides: TwoSides, test_files: Collection[bytes]) -> PassFinding:
    """Classify a candidate by one pass.

    Fail-to-pass: ran and failed before, passed after. Pass-to-pass: passed on both. A test that is absent before
    (its module does not import) is neither, and neither is an id that more than one test had. `test_files` are the
    change's test files, which tell a test that was meant to show the change from one that fails for reasons of
    its own.
    """
    own = OwnTests(test_files, {*sides.before.tests, *sides.after.tests})
    for side, report in (("before", sides.before), ("after", sides.after)):
        if report.status in _BROKEN_RUNS:
            return PassFinding(_BROKEN_RUNS[report.status], f"{side}: {report.detail}")
        if report.status is RunStatus.COMPLETED and not report.canary_failed:
            return PassFinding(
                ValidationClass.NO_REPORT,
                f"{side}: the test that must fail did not, so something turns failures into passes",
            )
    if sides.after.status is RunStatus.BUILD_FAILED:
        return _after_fails(sides, own, f"after the change nothing builds: {_words(sides.after)}")
    if sides.before.status is RunStatus.BUILD_FAILED:
        return _compile_only(sides, own, passed(sides.after), f"before, nothing builds: {_words(sides.before)}")
    return _by_tests(sides, own)


def worth_a_comparison(sides: TwoSides, test_files: Collection[bytes]) -> bool:
    """Whether the after side should be run once more with the network: the change's own tests fail after it."""
    return judge_pass(sides, test_files).validation_class is ValidationClass.AFTER_FAILS


def _by_tests(sides: TwoSides, own: OwnTests) -> PassFinding:
    before, after = sides.before, sides.after
    ran_on_both = passed(after).intersection(before.tests) - before.duplicates - after.duplicates
    fail_to_pass = ran_on_both & failed(before)
    pass_to_pass = ran_on_both & passed(before)
    if fail_to_pass:
        evidence = f"fail to pass: {count(fail_to_pass)}, for example {min(fail_to_pass)}"
        return PassFinding(ValidationClass.VALID, evidence, fail_to_pass, pass_to_pass)
    failing = own.among(failed(after)) - passed(before)
    failing |= {file for node in after.uncollected for file in own.files_in(node)}
    if failing:
        evidence = f"the change's own tests fail after it too: {count(failing)}, for example {min(failing)}"
        return _after_fails(sides, own, evidence, pass_to_pass)
    absent = passed(after).difference(before.tests, after.duplicates)
    hidden = {test_id: node for test_id in absent for node in before.uncollected if is_inside(test_id, node)}
    if hidden:
        first = min(hidden)
        evidence = (
            f"absent before, because {hidden[first] or 'the suite'} is not collected there: {count(hidden)}, for "
            f"example {first}"
        )
        return _compile_only(sides, own, frozenset(hidden), evidence, pass_to_pass)
    evidence = f"no test that passes after the change failed before it{_of_no_use(sides, own, absent)}"
    return PassFinding(ValidationClass.NO_SIGNAL, evidence, pass_to_pass=pass_to_pass)


def _of_no_use(sides: TwoSides, own: OwnTests, absent: frozenset[str]) -> str:
    """The tests that might have shown the change, and why they do not."""
    after = sides.after
    skipped = {test_id for test_id, result in after.tests.items() if result.outcome is TestOutcome.SKIPPED}
    kinds = {
        "absent before": absent,
        "skipped after it": own.among(skipped),
        "with an id of several tests": own.among(sides.before.duplicates | after.duplicates),
    }
    return "".join(f"; {why}: {count(tests)}, for example {min(tests)}" for why, tests in kinds.items() if tests)


def _after_fails(
    sides: TwoSides, own: OwnTests, evidence: str, pass_to_pass: frozenset[str] = frozenset()
) -> PassFinding:
    """`needs_network` when tests of the change fail without and pass with it, else `after_fails`."""
    compared = sides.with_network
    if compared is not None and compared.status is RunStatus.COMPLETED and compared.canary_failed:
        # What is skipped without the network, and passes with it, does not need it.
        unharmed = frozenset(sides.after.tests) - failed(sides.after)
        needing = own.among(passed(compared) - unharmed - compared.duplicates)
        if needing:
            return PassFinding(
                ValidationClass.NEEDS_NETWORK,
                f"pass after the change with the network only: {count(needing)}, for example {min(needing)}",
                pass_to_pass=pass_to_pass,
                need_network=needing,
            )
    return PassFinding(ValidationClass.AFTER_FAILS, evidence, pass_to_pass=pass_to_pass)


def _compile_only(
    sides: TwoSides,
    own: OwnTests,
    absent: frozenset[str],
    evidence: str,
    pass_to_pass: frozenset[str] = frozenset(),
) -> PassFinding:
    missing = missing_names([sides.before.detail, *sides.before.uncollected.values()])
    if missing:
        evidence += f"; missing there: {', '.join(missing[:5])}" + (", …" if len(missing) > 5 else "")
    # Where nothing builds, the tests of other files are absent too, and say nothing of the change.
    return PassFinding(
        ValidationClass.COMPILE_ONLY, evidence, own.among(absent) or absent, pass_to_pass, missing_names=missing
    )


def _words(report: SuiteReport) -> str:
    """What the build itself said, in one line for each part that does not build."""
    parts = [" ".join(message.split())[:200] for message in report.uncollected.values()]
    return "; ".join([report.detail.strip()[:400], *parts[:3]]).strip("; ")
