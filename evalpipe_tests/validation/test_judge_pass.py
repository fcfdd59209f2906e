"""What one pass says: every class with its evidence, and what never becomes fail-to-pass."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.runners import RunStatus, SuiteReport
from evalpipe.validation import TwoSides, ValidationClass, judge_pass, worth_a_comparison
from evalpipe_tests.validation.reports import OUTCOMES, OWN, full, report, sides


def test_a_test_that_failed_before_and_passes_after_makes_a_task() -> None:
    found = judge_pass(sides({"own::new": "FP", "own::error": "EP", "own::old": "PP", "other::gone": "P-"}), OWN)
    assert found.validation_class is ValidationClass.VALID
    assert found.evidence == "fail to pass: 2 tests, for example tests/test_own.py::error"
    assert found.fail_to_pass == {full("own::new"), full("own::error")}
    assert found.pass_to_pass == {full("own::old")}


@pytest.mark.parametrize("before", ["-", "S", "x", "X", "P"])
def test_only_a_test_that_ran_and_failed_before_is_fail_to_pass(before: str) -> None:
    found = judge_pass(sides({"own::t": f"{before}P"}), OWN)
    assert found.fail_to_pass == frozenset()
    assert found.validation_class is ValidationClass.NO_SIGNAL
    assert found.pass_to_pass == ({full("own::t")} if before == "P" else frozenset())


@pytest.mark.parametrize("after", ["-", "S", "x", "X", "F", "E"])
def test_only_passed_counts_after(after: str) -> None:
    found = judge_pass(sides({"own::t": f"F{after}", "own::u": f"P{after}"}), OWN)
    assert not found.fail_to_pass
    assert not found.pass_to_pass


@pytest.mark.parametrize("unclear", ["before", "after"])
def test_an_id_of_more_than_one_test_is_in_neither_list(unclear: str) -> None:
    tests = {"own::f": "FP", "own::p": "PP", "own::clear": "FP"}
    found = sides(tests)
    duplicates = frozenset({full("own::f"), full("own::p")})
    doubled = replace(getattr(found, unclear), duplicates=duplicates)
    assert judge_pass(replace(found, **{unclear: doubled}), OWN).fail_to_pass == {full("own::clear")}
    assert judge_pass(replace(found, **{unclear: doubled}), OWN).pass_to_pass == frozenset()


@pytest.mark.parametrize(
    ("node", "test"),
    [
        ("tests/test_own.py", "own::t"),
        ("tests", "own::t"),
        ("tests/__init__.py", "own::t"),
        ("", "own::t"),
        ("tests/test_own.py::TestX", "own::TestX::t"),
    ],
)
def test_tests_of_what_is_not_collected_before_are_compile_only(node: str, test: str) -> None:
    before = report({}, uncollected={node: "E   ImportError: cannot import name 'gas_mark' from 'units'"})
    found = judge_pass(TwoSides(before, report({test: "P", "other::late": "P"}), "2026-10-01"), OWN)
    assert found.validation_class is ValidationClass.COMPILE_ONLY
    assert found.missing_names == ("gas_mark",)
    if node:
        assert found.evidence == (
            f"absent before, because {node} is not collected there: 1 test, for example {full(test)}; "
            f"missing there: gas_mark"
        )
    assert found.fail_to_pass == {full(test)}


def test_another_file_that_is_not_collected_hides_nothing() -> None:
    before = report({"own::t": "P"}, uncollected={"tests/test_own": "ImportError", "tests/test_ow": "x"})
    found = judge_pass(TwoSides(before, report({"own::t": "P", "own::late": "P"}), "2026-10-01"), OWN)
    assert found.validation_class is ValidationClass.NO_SIGNAL
    assert found.evidence == (
        "no test that passes after the change failed before it; absent before: 1 test, for example "
        "tests/test_own.py::late"
    )


def test_a_module_that_does_not_import_before_does_not_hide_a_signal_elsewhere() -> None:
    before = report({"own::f": "F"}, uncollected={"tests/test_new.py": "ImportError"})
    after = report({"own::f": "P", "tests/test_new.py::t": "P"})
    found = judge_pass(TwoSides(before, after, "2026-10-01"), (*OWN, b"tests/test_new.py"))
    assert found.validation_class is ValidationClass.VALID
    assert found.fail_to_pass == {full("own::f")}


def test_nothing_to_tell_the_sides_apart_is_no_signal() -> None:
    found = judge_pass(sides({"own::t": "PP", "other::broken": "FF"}), OWN)
    assert found.validation_class is ValidationClass.NO_SIGNAL
    assert found.evidence == "no test that passes after the change failed before it"
    assert found.pass_to_pass == {full("own::t")}


def test_no_signal_says_which_tests_of_the_change_were_skipped_or_share_an_id() -> None:
    after = report({"own::a": "S", "own::b": "S", "own::same": "P", "other::c": "S"}, duplicates=["own::same"])
    found = judge_pass(TwoSides(report({"own::same": "F"}), after, "2026-10-01"), OWN)
    assert found.validation_class is ValidationClass.NO_SIGNAL
    assert found.evidence.endswith(
        "; skipped after it: 2 tests, for example tests/test_own.py::a"
        "; with an id of several tests: 1 test, for example tests/test_own.py::same"
    )


@pytest.mark.parametrize("before", ["-", "F", "E", "S"])
def test_own_tests_that_fail_after_too(before: str) -> None:
    found = judge_pass(sides({"own::b": f"{before}F", "own::a": f"{before}E"}), OWN)
    assert found.validation_class is ValidationClass.AFTER_FAILS
    assert found.evidence == "the change's own tests fail after it too: 2 tests, for example tests/test_own.py::a"


@pytest.mark.parametrize("node", ["tests/test_own.py", "tests", "", "tests/test_own.py::TestX"])
def test_an_own_file_that_is_not_collected_after(node: str) -> None:
    after = report({"other::t": "P"}, uncollected={node: "SyntaxError"})
    found = judge_pass(TwoSides(report({"other::t": "P"}), after, "2026-10-01"), OWN)
    assert found.validation_class is ValidationClass.AFTER_FAILS
    assert found.evidence.endswith("1 test, for example tests/test_own.py")


def test_a_foreign_file_that_is_not_collected_after_says_nothing() -> None:
    after = report({"own::t": "P"}, uncollected={"tests/other.py": "SyntaxError"})
    found = judge_pass(TwoSides(report({"own::t": "P"}), after, "2026-10-01"), OWN)
    assert found.validation_class is ValidationClass.NO_SIGNAL


def compared(without: SuiteReport, with_network: SuiteReport) -> TwoSides:
    """A pass whose after side ended in one way without the network and in another with it."""
    return TwoSides(without, without, "2026-10-01", with_network)


def test_own_tests_that_pass_with_the_network_only_need_it() -> None:
    without = report({"own::net": "F", "own::web": "E", "own::broken": "F", "own::t": "P"})
    found = judge_pass(compared(without, report({"own::net": "P", "own::web": "P", "own::broken": "F"})), OWN)
    assert found.validation_class is ValidationClass.NEEDS_NETWORK
    assert found.need_network == {full("own::net"), full("own::web")}
    assert found.evidence == (
        "pass after the change with the network only: 2 tests, for example tests/test_own.py::net"
    )


@pytest.mark.parametrize("with_network", ["F", "E", "S", "-", "x"])
def test_own_tests_that_do_not_pass_with_the_network_either_do_not_need_it(with_network: str) -> None:
    found = judge_pass(compared(report({"own::net": "F"}), report({"own::net": with_network})), OWN)
    assert found.validation_class is ValidationClass.AFTER_FAILS
    assert not found.need_network


@pytest.mark.parametrize("status", [RunStatus.TIMEOUT, RunStatus.NO_REPORT, RunStatus.BUILD_FAILED])
def test_a_run_with_the_network_that_did_not_complete_shows_nothing(status: RunStatus) -> None:
    found = judge_pass(compared(report({"own::net": "F"}), replace(report({"own::net": "P"}), status=status)), OWN)
    assert found.validation_class is ValidationClass.AFTER_FAILS


def test_passes_with_the_network_beside_a_canary_that_did_not_fail_show_nothing() -> None:
    forged = replace(report({"own::net": "P"}), canary_failed=False)
    assert judge_pass(compared(report({"own::net": "F"}), forged), OWN).validation_class is ValidationClass.AFTER_FAILS


def test_an_own_module_that_wants_a_network_to_be_imported() -> None:
    without = report({}, uncollected={"tests/test_own.py": "OSError"})
    found = judge_pass(compared(without, report({"own::t": "P", "other::t": "P"})), OWN)
    assert found.validation_class is ValidationClass.NEEDS_NETWORK
    assert found.need_network == {full("own::t")}


def test_a_build_that_wants_the_network_is_no_failure_of_the_change() -> None:
    after = SuiteReport(RunStatus.BUILD_FAILED, detail="cannot fetch left-pad")
    found = judge_pass(compared(after, report({"own::t": "P"})), OWN)
    assert found.validation_class is ValidationClass.NEEDS_NETWORK
    alone = judge_pass(TwoSides(report({"own::t": "F"}), after, "2026-10-01"), OWN)
    assert (alone.validation_class, alone.evidence) == (
        ValidationClass.AFTER_FAILS,
        "after the change nothing builds: cannot fetch left-pad",
    )


def test_a_test_that_is_skipped_without_the_network_is_no_matter() -> None:
    without = report({"own::broken": "F", "own::online": "S"})
    found = judge_pass(compared(without, report({"own::broken": "F", "own::online": "P"})), OWN)
    assert found.validation_class is ValidationClass.AFTER_FAILS


def test_a_foreign_test_that_wants_a_network_says_nothing_about_the_change() -> None:
    after = report({"own::t": "P", "other::net": "F"})
    found = judge_pass(TwoSides(report({"own::t": "F", "other::net": "F"}), after, "2026-10-01"), OWN)
    assert found.validation_class is ValidationClass.VALID
    assert not found.pass_to_pass


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ({"own::t": "FF"}, True),
        ({"own::t": "-F"}, True),
        ({"own::t": "FP", "own::net": "-F"}, False),
        ({"own::t": "PP"}, False),
        ({"other::t": "FF"}, False),
    ],
)
def test_a_comparison_is_worth_its_run_only_when_it_can_change_the_class(tests: dict[str, str], expected: bool) -> None:
    assert worth_a_comparison(sides(tests), OWN) is expected


def test_what_does_not_build_before_is_compile_only_and_names_what_it_misses() -> None:
    before = SuiteReport(
        RunStatus.BUILD_FAILED,
        detail="cargo could not compile shop",
        uncollected={"tests/till.rs": "error[E0432]: unresolved import `shop::Till`"},
    )
    found = judge_pass(TwoSides(before, report({"own::t": "P", "other::old": "P"}), "2026-10-01"), OWN)
    assert found.validation_class is ValidationClass.COMPILE_ONLY
    assert found.evidence.startswith("before, nothing builds: cargo could not compile shop; error[E0432]")
    assert found.evidence.endswith("; missing there: Till")
    assert found.missing_names == ("Till",)
    assert found.fail_to_pass == {full("own::t")}


def test_where_no_test_is_known_as_the_changes_own_all_that_were_absent_count() -> None:
    before = SuiteReport(RunStatus.BUILD_FAILED, detail="x")
    found = judge_pass(TwoSides(before, report({"shop::tests::t": "P"}), "2026-10-01"), (b"src/lib.rs",))
    assert found.fail_to_pass == {"shop::tests::t"}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (RunStatus.TIMEOUT, ValidationClass.TIMEOUT),
        (RunStatus.OUT_OF_MEMORY, ValidationClass.ENVIRONMENT_FAILED),
        (RunStatus.NO_REPORT, ValidationClass.NO_REPORT),
        (RunStatus.DAMAGED_REPORT, ValidationClass.NO_REPORT),
    ],
)
@pytest.mark.parametrize("side", ["before", "after"])
def test_a_run_that_did_not_complete_decides_the_class(status: RunStatus, expected: ValidationClass, side: str) -> None:
    bad = SuiteReport(status, detail="what happened", canary_failed=True)
    good = sides({"own::t": "FP"})
    found = judge_pass(replace(good, before=bad) if side == "before" else replace(good, after=bad), OWN)
    assert found.validation_class is expected
    assert found.evidence == f"{side}: what happened"
    assert not found.fail_to_pass
    assert not found.pass_to_pass


@pytest.mark.parametrize("side", ["before", "after"])
def test_passes_beside_a_canary_that_did_not_fail_count_for_nothing(side: str) -> None:
    good = sides({"own::t": "FP", "own::u": "PP"})
    found = judge_pass(replace(good, **{side: replace(getattr(good, side), canary_failed=False)}), OWN)
    assert found.validation_class is ValidationClass.NO_REPORT
    assert found.evidence == f"{side}: the test that must fail did not, so something turns failures into passes"
    assert not found.fail_to_pass
    assert not found.pass_to_pass


def test_a_file_whose_name_is_not_utf8_is_known_by_its_escaped_name() -> None:
    test = r"tests/test_\xff.py::t"
    found = judge_pass(sides({test: "FF"}), (b"tests/test_\xff.py",))
    assert found.validation_class is ValidationClass.AFTER_FAILS


IDS = st.sampled_from(["own::a", "own::b", "own::c[x y]", "other::a", "other::b"])
TESTS = st.dictionaries(IDS, st.text(alphabet=[*OUTCOMES, "-"], min_size=2, max_size=2))
UNCOLLECTED = st.dictionaries(st.sampled_from(["tests/test_own.py", "other", ""]), st.just("ImportError"))


@given(TESTS, st.frozensets(IDS), UNCOLLECTED, UNCOLLECTED)
def test_the_lists_hold_what_they_promise(
    tests: dict[str, str], duplicates: frozenset[str], missing_before: dict[str, str], missing_after: dict[str, str]
) -> None:
    before = report({t: x[0] for t, x in tests.items()}, uncollected=missing_before, duplicates=duplicates)
    after = report({t: x[1] for t, x in tests.items()}, uncollected=missing_after)
    found = judge_pass(TwoSides(before, after, "2026-10-01"), OWN)
    signals = {full(t) for t, x in tests.items() if x in ("FP", "EP") and t not in duplicates}
    assert (found.validation_class is ValidationClass.VALID) == bool(signals)
    if found.validation_class is ValidationClass.COMPILE_ONLY:
        assert found.fail_to_pass
        assert found.fail_to_pass <= {full(t) for t, x in tests.items() if x == "-P"}
    else:
        assert found.fail_to_pass == signals
    assert found.pass_to_pass == {full(t) for t, x in tests.items() if x == "PP" and t not in duplicates}
    assert found.evidence


@given(TESTS, UNCOLLECTED, UNCOLLECTED, st.randoms(use_true_random=False))
def test_the_order_of_tests_changes_nothing(
    tests: dict[str, str], missing_before: dict[str, str], missing_after: dict[str, str], random: object
) -> None:
    turned = dict(reversed(tests.items()))
    one, other = (
        TwoSides(
            report({t: x[0] for t, x in some.items()}, uncollected=missing_before),
            report({t: x[1] for t, x in some.items()}, uncollected=missing_after),
            "2026-10-01",
        )
        for some in (tests, turned)
    )
    assert judge_pass(one, OWN) == judge_pass(other, OWN)
