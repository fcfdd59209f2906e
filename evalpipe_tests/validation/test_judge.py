"""What two passes say together: agreement, quarantine, flakiness, and when a finding is provisional."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.runners import RunStatus, SuiteReport
from evalpipe.validation import QuarantineCause, StressFinding, TwoSides, ValidationClass, judge
from evalpipe_tests.validation.reports import OWN, full, passes, report, sides

CHANCE = (QuarantineCause.CHANCE,)


def test_before_any_pass_it_is_pending() -> None:
    found = judge({}, OWN)
    assert found.validation_class is ValidationClass.PENDING
    assert found.evidence == "no pass has run yet"


def test_a_first_pass_that_looks_valid_is_pending() -> None:
    found = judge({"first": sides({"own::t": "FP"})}, OWN)
    assert found.validation_class is ValidationClass.PENDING
    assert (
        found.evidence == "fail to pass: 1 test, for example tests/test_own.py::t, in the first pass; a second is due"
    )
    assert not found.fail_to_pass
    assert found.provisional


@pytest.mark.parametrize(
    ("tests", "expected"),
    [({"own::t": "FF"}, ValidationClass.AFTER_FAILS), ({"own::t": "PP"}, ValidationClass.NO_SIGNAL)],
)
def test_a_class_that_no_second_pass_can_better_stands_after_the_first(
    tests: dict[str, str], expected: ValidationClass
) -> None:
    assert judge({"first": sides(tests)}, OWN).validation_class is expected


def test_two_passes_that_agree_on_two_days_make_a_task() -> None:
    found = judge(passes({"own::b": "FP FP", "own::a": "EP EP", "own::p": "PP PP", "other::f": "FF FF"}), OWN)
    assert found.validation_class is ValidationClass.VALID
    assert found.fail_to_pass == (full("own::a"), full("own::b"))
    assert found.pass_to_pass == (full("own::p"),)
    assert found.quarantined == {}
    assert not found.provisional


def test_two_passes_on_one_day_are_provisional() -> None:
    found = judge(passes({"own::t": "FP FP"}, days=("2026-10-01", "2026-10-01")), OWN)
    assert found.validation_class is ValidationClass.VALID
    assert found.provisional


@pytest.mark.parametrize("wavering", ["PP PF", "PP FP", "FP PP", "FP FF", "PP P-", "-P PP", "PP SP", "FF PP", "SP FP"])
def test_an_unrelated_test_that_wavers_only_leaves_pass_to_pass(wavering: str) -> None:
    found = judge(passes({"own::t": "FP FP", "own::p": "PP PP", "other::w": wavering}), OWN)
    assert found.validation_class is ValidationClass.VALID
    assert found.fail_to_pass == (full("own::t"),)
    assert found.pass_to_pass == (full("own::p"),)
    assert found.quarantined == {"other::w": CHANCE}


def test_an_unrelated_test_that_wavers_makes_no_task_of_a_change_without_signal() -> None:
    found = judge(passes({"own::p": "PP PP", "other::w": "FP PP"}), OWN)
    assert found.validation_class is ValidationClass.NO_SIGNAL
    assert found.quarantined == {"other::w": CHANCE}


@pytest.mark.parametrize("wavering", ["FP FF", "FF FP", "EP FF", "FP FS", "FP F-"])
def test_a_test_of_the_change_that_passes_after_it_by_chance_is_flaky(wavering: str) -> None:
    found = judge(passes({"own::w": wavering, "own::t": "FP FP"}), OWN)
    assert found.validation_class is ValidationClass.FLAKY
    assert found.evidence == "fail to pass in one pass only: 1 test, for example tests/test_own.py::w"
    assert found.quarantined == {full("own::w"): CHANCE}
    assert not found.fail_to_pass


@pytest.mark.parametrize("wavering", ["FP PP", "PF FP", "SP FP"])
def test_a_test_beside_the_fix_that_wavers_on_the_old_code_is_quarantined(wavering: str) -> None:
    found = judge(passes({"own::w": wavering, "own::t": "FP FP"}), OWN)
    assert found.validation_class is ValidationClass.VALID
    assert found.fail_to_pass == (full("own::t"),)
    assert found.quarantined == {full("own::w"): CHANCE}


def test_a_change_whose_only_signal_wavers_on_the_old_code_is_flaky() -> None:
    found = judge(passes({"own::w": "FP PP", "own::p": "PP PP"}), OWN)
    assert found.validation_class is ValidationClass.FLAKY
    assert found.quarantined == {full("own::w"): CHANCE}


def test_failing_in_two_ways_before_is_no_wavering() -> None:
    found = judge(passes({"own::t": "FP EP"}), OWN)
    assert found.validation_class is ValidationClass.VALID
    assert found.fail_to_pass == (full("own::t"),)


def test_an_id_that_was_doubled_in_one_pass_is_quarantined() -> None:
    both = passes({"own::t": "FP FP", "other::d": "PP PP"})
    doubled = replace(both["second"].after, duplicates=frozenset({"other::d"}))
    found = judge(both | {"second": replace(both["second"], after=doubled)}, OWN)
    assert found.fail_to_pass == (full("own::t"),)
    assert found.pass_to_pass == ()
    assert found.quarantined == {"other::d": CHANCE}


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_pass_that_did_not_complete_beside_one_that_did(side: str) -> None:
    both = passes({"own::t": "FP FP"})
    late = SuiteReport(RunStatus.TIMEOUT, detail="stopped after 60 s")
    second = replace(both["second"], before=late) if side == "before" else replace(both["second"], after=late)
    found = judge(both | {"second": second}, OWN)
    assert found.validation_class is ValidationClass.FLAKY
    assert found.evidence == (
        "one pass says valid (fail to pass: 1 test, for example tests/test_own.py::t), the other timeout "
        f"({side}: stopped after 60 s)"
    )
    assert found.quarantined == {}


def test_two_passes_that_ran_out_of_time_are_a_timeout() -> None:
    late = SuiteReport(RunStatus.TIMEOUT, detail="stopped after 60 s")
    pass_ = TwoSides(late, late, "2026-10-01")
    found = judge({"first": pass_, "second": replace(pass_, day="2026-10-02")}, OWN)
    assert found.validation_class is ValidationClass.TIMEOUT
    assert found.evidence == "before: stopped after 60 s"


def test_the_network_was_away_in_one_pass_only() -> None:
    both = passes({"own::net": "-F -F"})
    online = replace(both["first"], with_network=report({"own::net": "P"}))
    offline = replace(both["second"], with_network=report({"own::net": "F"}))
    for one, other in ((online, offline), (offline, online)):
        found = judge({"first": one, "second": other}, OWN)
        assert found.validation_class is ValidationClass.NEEDS_NETWORK
        assert found.need_network == (full("own::net"),)


def test_what_compile_only_tests_miss_comes_through() -> None:
    before = report({}, uncollected={"tests/test_own.py": "ImportError: cannot import name 'till' from 'shop'"})
    both = {one: replace(sides({"own::t": "-P"}, one), before=before) for one in ("2026-10-01", "2026-10-02")}
    found = judge(both, OWN)
    assert found.validation_class is ValidationClass.COMPILE_ONLY
    assert (found.fail_to_pass, found.missing_names) == ((full("own::t"),), ("till",))


def stressed(**causes: str) -> StressFinding:
    """What stress changed: tests of the change by their short names, with one cause each."""
    return StressFinding({full(f"own::{test}"): frozenset({QuarantineCause(cause)}) for test, cause in causes.items()})


TWO_SIGNALS = passes({"own::t": "FP FP", "own::bomb": "FP FP", "own::p": "PP PP", "own::q": "PP PP"})


def test_what_stress_changes_leaves_both_lists_with_its_cause() -> None:
    found = judge(TWO_SIGNALS, OWN, stress=stressed(bomb="clock", q="order"), stress_wanted=True)
    assert found.validation_class is ValidationClass.VALID
    assert found.fail_to_pass == (full("own::t"),)
    assert found.pass_to_pass == (full("own::p"),)
    assert found.quarantined == {
        full("own::bomb"): (QuarantineCause.CLOCK,),
        full("own::q"): (QuarantineCause.ORDER,),
    }
    assert found.evidence.endswith(
        "under stress 2 tests changed: tests/test_own.py::bomb (clock), tests/test_own.py::q (order)"
    )


def test_a_candidate_whose_every_signal_changes_under_stress_falls() -> None:
    found = judge(TWO_SIGNALS, OWN, stress=stressed(bomb="clock", t="locale"), stress_wanted=True)
    assert found.validation_class is ValidationClass.FLAKY
    assert not found.fail_to_pass
    assert found.evidence.startswith("no test that fails before and passes after holds under stress; ")
    assert set(found.quarantined) == {full("own::bomb"), full("own::t")}


def test_a_test_that_wavers_by_itself_is_not_put_down_to_stress() -> None:
    both = passes({"own::t": "FP FP", "own::w": "PP PF"})
    found = judge(both, OWN, stress=stressed(w="order"), stress_wanted=True)
    assert found.quarantined == {full("own::w"): CHANCE}


def test_without_the_stress_pass_that_is_wanted_it_is_pending() -> None:
    found = judge(TWO_SIGNALS, OWN, stress_wanted=True)
    assert found.validation_class is ValidationClass.PENDING
    assert found.evidence.endswith("in both passes; the stress pass is due")
    assert judge(TWO_SIGNALS, OWN).validation_class is ValidationClass.VALID


def test_stress_does_not_stand_for_the_second_day() -> None:
    found = judge({"first": TWO_SIGNALS["first"]}, OWN, stress=stressed(), stress_wanted=True)
    assert found.validation_class is ValidationClass.PENDING
    assert found.evidence.endswith("in the first pass; a second is due")


def test_a_class_that_stress_cannot_change_does_not_wait_for_it() -> None:
    found = judge(passes({"own::p": "PP PP"}), OWN, stress_wanted=True)
    assert found.validation_class is ValidationClass.NO_SIGNAL


def test_what_could_not_be_changed_is_told() -> None:
    told = StressFinding({}, ("clock not moved: no libfaketime in the image",))
    found = judge(TWO_SIGNALS, OWN, stress=told, stress_wanted=True)
    assert found.validation_class is ValidationClass.VALID
    assert found.evidence.endswith("; clock not moved: no libfaketime in the image")


LETTERS = st.sampled_from(["P", "F", "E", "S", "x", "X", "-"])
PAIRS = st.builds("{}{} {}{}".format, LETTERS, LETTERS, LETTERS, LETTERS)
TESTS = st.dictionaries(st.sampled_from(["own::a", "own::b", "own::c", "other::a", "other::b"]), PAIRS)


@given(TESTS)
def test_what_is_listed_ended_the_same_way_twice(tests: dict[str, str]) -> None:
    found = judge(passes(tests), OWN)
    fail_to_pass, pass_to_pass = set(found.fail_to_pass), set(found.pass_to_pass)
    assert not fail_to_pass & pass_to_pass
    assert not (fail_to_pass | pass_to_pass) & set(found.quarantined)
    letters = {full(test): pairs for test, pairs in tests.items()}
    assert all(letters[test].replace("E", "F") == "FP FP" for test in fail_to_pass)
    assert all(letters[test] == "PP PP" for test in pass_to_pass)
    assert (found.validation_class is ValidationClass.VALID) == bool(fail_to_pass)
    assert list(found.fail_to_pass) == sorted(fail_to_pass)


@given(TESTS, PAIRS)
def test_an_unrelated_test_that_wavers_changes_neither_class_nor_fail_to_pass(
    tests: dict[str, str], pairs: str
) -> None:
    one = judge(passes(tests), OWN)
    unrelated = pairs if pairs.replace("E", "F")[:2] != pairs.replace("E", "F")[3:] else "PF FP"
    other = judge(passes({**tests, "unrelated::w": unrelated}), OWN)
    assert other.fail_to_pass == one.fail_to_pass
    assert other.pass_to_pass == one.pass_to_pass
    assert other.validation_class is one.validation_class
    assert set(other.quarantined) == {*one.quarantined, "unrelated::w"}


@given(TESTS)
def test_neither_the_order_of_the_passes_nor_of_the_tests_matters(tests: dict[str, str]) -> None:
    both = passes(tests)
    turned = dict(reversed(passes(dict(reversed(tests.items()))).items()))
    assert judge(both, OWN) == judge(turned, OWN)


@given(TESTS, st.sampled_from(["2026-10-01", "2026-10-02"]), st.sampled_from(["2026-10-01", "2026-10-02"]))
def test_provisional_if_and_only_if_the_days_are_equal(tests: dict[str, str], first: str, second: str) -> None:
    found = judge(passes(tests, days=(first, second)), OWN)
    assert found.provisional == (first == second)
