"""The plan of a stress pass, and the causes that its runs show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evalpipe.runners import PytestRunner, RunStatus, SuiteReport
from evalpipe.sandbox import DockerSandbox, Limits, ProcessSandbox
from evalpipe.validation import (
    BoxFacts,
    QuarantineCause,
    RunName,
    Suite,
    look_into_box,
    needs_separate_runs,
    separate_runs,
    stress_finding,
    stress_plan,
)
from evalpipe.validation.box_facts import other_locale, read_facts
from evalpipe_tests.validation.reports import full, report

FULL_BOX = BoxFacts(
    "/lib/faketime.so", False, ("C", "C.utf8", "de_DE.utf8", "POSIX"), has_zones=True, has_own_name=True
)
NORMAL = report({"own::t": "P", "own::u": "P", "other::f": "F"})


def changed(*tests: str) -> SuiteReport:
    """The normal run, but that these tests fail."""
    return report({"own::t": "P", "own::u": "P", "other::f": "F", **dict.fromkeys(tests, "F")})


# The plan


def test_one_run_has_all_of_it_and_one_the_clock_a_year_on() -> None:
    combined, year = stress_plan(FULL_BOX, "pytest", can_shuffle=True).first
    assert combined.name is RunName.STRESSED
    assert combined.shuffle_seed is not None
    assert combined.hostname == "elsewhere"
    assert combined.env["LC_ALL"] == combined.env["LANG"] == "de_DE.utf8"
    assert combined.env["TZ"] == "Pacific/Chatham"
    assert combined.env["FAKETIME"] == "+35d"
    assert combined.env["LD_PRELOAD"] == "/lib/faketime.so"
    assert combined.env["PYTHONHASHSEED"].isdigit()
    assert combined.changed == (
        "shuffled order",
        "clock 35 days ahead",
        "locale de_DE.utf8",
        "time zone Pacific/Chatham",
        "hostname elsewhere",
    )
    assert combined.not_changed == ()
    assert (year.name, year.env["FAKETIME"], year.shuffle_seed, year.hostname) == (
        RunName.YEAR_LATER,
        "+365d",
        None,
        None,
    )


def test_separate_runs_change_one_thing_each_and_together_all() -> None:
    plan = stress_plan(FULL_BOX, "pytest", can_shuffle=True)
    assert [one.name for one in plan.separate] == [
        RunName.OTHER_ORDER,
        RunName.CLOCK_AHEAD,
        RunName.OTHER_LOCALE,
        RunName.OTHER_TIME_ZONE,
        RunName.OTHER_HOSTNAME,
    ]
    assert {key: value for one in plan.separate for key, value in one.env.items()} == plan.first[0].env
    assert all(len(one.changed) == 1 for one in plan.separate)


def test_what_a_box_cannot_is_left_out_and_told() -> None:
    (combined,) = stress_plan(BoxFacts(), "mocha", can_shuffle=False).first
    assert combined.not_changed == (
        "order not changed: mocha cannot shuffle",
        "clock not moved: no libfaketime in the image",
        "hostname not changed: this sandbox cannot",
    )
    assert combined.env == {"LC_ALL": "C", "LANG": "C", "TZ": "Pacific/Chatham"}


def test_a_box_without_tables_of_zones_gets_a_zone_that_needs_none() -> None:
    (combined,) = stress_plan(BoxFacts(), "pytest", can_shuffle=True).first
    assert combined.env["TZ"] == "<+1345>-13:45"


def test_the_clock_of_go_is_not_moved_by_a_library() -> None:
    (combined,) = stress_plan(FULL_BOX, "go", can_shuffle=True).first
    assert combined.not_changed == ("clock not moved: go does not ask the C library for the time",)
    assert "LD_PRELOAD" not in combined.env


def test_a_clock_that_stops_the_tool_is_not_moved() -> None:
    facts = read_facts(b"name elsewhere\nzones\nstopped\n")
    assert (facts.faketime, facts.clock_stops_tool) == (None, True)
    (combined,) = stress_plan(facts, "cargo", can_shuffle=True).first
    assert combined.not_changed == ("clock not moved: what cargo needs does not run with libfaketime",)


def test_the_clock_alone_is_not_tried_when_a_year_kept_the_suite_from_its_end() -> None:
    plan = stress_plan(FULL_BOX, "pytest", can_shuffle=True)
    hung = SuiteReport(RunStatus.TIMEOUT, detail="stopped")
    names = [one.name for one in separate_runs(plan, {RunName.STRESSED: hung, RunName.YEAR_LATER: hung})]
    assert RunName.CLOCK_AHEAD not in names
    assert len(names) == len(plan.separate) - 1
    assert separate_runs(plan, {RunName.STRESSED: hung, RunName.YEAR_LATER: NORMAL}) == list(plan.separate)


# The box


def test_facts_are_read_from_what_the_box_prints() -> None:
    output = b"name elsewhere\nzones\nfaketime /usr/lib/x/libfaketimeMT.so.1\nlocale C\nlocale fr_FR.utf8\n\xff\n"
    assert read_facts(output) == BoxFacts("/usr/lib/x/libfaketimeMT.so.1", False, ("C", "fr_FR.utf8"), True, True)
    assert read_facts(b"name box\n") == BoxFacts()


@pytest.mark.parametrize(
    ("locales", "expected"),
    [
        ((), "C"),
        (("C", "C.UTF-8", "C.utf8", "POSIX", "en_US.utf8"), "C"),
        (("C", "de_DE", "fr_FR.UTF-8"), "fr_FR.UTF-8"),
        (("ja_JP.utf8", "de_DE.utf8", "tr_TR.utf8"), "tr_TR.utf8"),
        (("ja_JP.utf8", "de_DE.utf8"), "de_DE.utf8"),
        (("C", "ja_JP.utf8"), "ja_JP.utf8"),
        (("C", "de_DE"), "de_DE"),
    ],
)
def test_the_locale_is_the_strangest_that_the_box_has(locales: tuple[str, ...], expected: str) -> None:
    assert other_locale(locales) == expected


def test_a_process_box_is_looked_into(process_sandbox: ProcessSandbox) -> None:
    facts = look_into_box(process_sandbox, Suite("", Limits(timeout_s=60), PytestRunner()), {})
    assert facts.has_own_name == ("own process IDs" in process_sandbox.describe().isolation)
    assert facts.locales


@pytest.mark.docker
def test_a_container_is_looked_into(docker_sandbox: DockerSandbox, base_image: str) -> None:
    facts = look_into_box(docker_sandbox, Suite(base_image, Limits(timeout_s=60), PytestRunner()), {})
    assert facts.has_own_name
    assert facts.faketime is not None
    assert facts.faketime.endswith("libfaketimeMT.so.1")


# The causes


def test_nothing_changed_needs_no_more_runs_and_quarantines_nothing() -> None:
    reports = {RunName.STRESSED: NORMAL, RunName.YEAR_LATER: NORMAL}
    assert not needs_separate_runs(NORMAL, reports)
    found = stress_finding(NORMAL, reports, ["clock not moved: x"])
    assert (found.causes, found.notes) == ({}, ("clock not moved: x",))


def test_what_a_year_changes_is_a_time_bomb_and_explains_the_combined_run() -> None:
    reports = {RunName.STRESSED: changed("own::t"), RunName.YEAR_LATER: changed("own::t", "own::u")}
    assert not needs_separate_runs(NORMAL, reports)
    clock = frozenset({QuarantineCause.CLOCK})
    assert stress_finding(NORMAL, reports, []).causes == {full("own::t"): clock, full("own::u"): clock}


def test_what_the_combined_run_alone_changes_is_looked_for_in_its_parts() -> None:
    reports = {RunName.STRESSED: changed("own::t", "own::u"), RunName.YEAR_LATER: changed("own::t")}
    assert needs_separate_runs(NORMAL, reports)
    reports |= {RunName.OTHER_ORDER: changed("own::u"), RunName.OTHER_LOCALE: NORMAL}
    assert stress_finding(NORMAL, reports, []).causes == {
        full("own::t"): {QuarantineCause.CLOCK},
        full("own::u"): {QuarantineCause.ORDER},
    }


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        (RunName.OTHER_ORDER, QuarantineCause.ORDER),
        (RunName.CLOCK_AHEAD, QuarantineCause.CLOCK),
        (RunName.OTHER_LOCALE, QuarantineCause.LOCALE),
        (RunName.OTHER_TIME_ZONE, QuarantineCause.TIME_ZONE),
        (RunName.OTHER_HOSTNAME, QuarantineCause.HOSTNAME),
    ],
)
def test_each_part_has_its_cause(name: RunName, cause: QuarantineCause) -> None:
    found = stress_finding(NORMAL, {RunName.STRESSED: changed("own::t"), name: changed("own::t")}, [])
    assert found.causes == {full("own::t"): {cause}}


def test_what_no_part_changes_alone_has_an_unknown_cause() -> None:
    found = stress_finding(NORMAL, {RunName.STRESSED: changed("own::t"), RunName.OTHER_ORDER: NORMAL}, [])
    assert found.causes == {full("own::t"): {QuarantineCause.UNKNOWN}}


def test_a_test_may_have_several_causes() -> None:
    reports = {name: changed("own::t") for name in (RunName.STRESSED, RunName.OTHER_ORDER, RunName.OTHER_LOCALE)}
    assert stress_finding(NORMAL, reports, []).causes == {
        full("own::t"): {QuarantineCause.ORDER, QuarantineCause.LOCALE}
    }


def test_an_id_that_holds_the_date_is_changed_by_the_clock() -> None:
    normal, later = report({"own::t[2026-05-01]": "P"}), report({"own::t[2027-05-01]": "P"})
    found = stress_finding(normal, {RunName.YEAR_LATER: later}, [])
    assert set(found.causes) == {full("own::t[2026-05-01]"), full("own::t[2027-05-01]")}


@pytest.mark.parametrize("status", [RunStatus.TIMEOUT, RunStatus.OUT_OF_MEMORY, RunStatus.NO_REPORT])
def test_a_run_that_broke_says_nothing_of_tests_and_is_told(status: RunStatus) -> None:
    reports = {RunName.STRESSED: SuiteReport(status, detail="x"), RunName.YEAR_LATER: NORMAL}
    assert needs_separate_runs(NORMAL, reports)
    found = stress_finding(NORMAL, reports, [])
    assert found.causes == {}
    assert found.notes == (f"under stress (stressed) the suite did not run to its end: {status}",)


def test_a_run_whose_canary_did_not_fail_says_nothing() -> None:
    forged = replace(changed("own::t"), canary_failed=False)
    assert needs_separate_runs(NORMAL, {RunName.STRESSED: forged})
    assert stress_finding(NORMAL, {RunName.STRESSED: forged}, []).causes == {}
