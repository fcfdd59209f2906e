"""Decides what a candidate is worth from all its passes. Pure: passes in, one class and its evidence out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from evalpipe.validation.finding import (
    PassFinding,
    QuarantineCause,
    StressFinding,
    TwoSides,
    ValidationClass,
    ValidationFinding,
    count,
)
from evalpipe.validation.one_pass import INCOMPLETE, judge_pass
from evalpipe.validation.own_tests import OwnTests
from evalpipe.validation.reports import differing, failed, without

_NETWORK_OR_NOT = {ValidationClass.AFTER_FAILS, ValidationClass.NEEDS_NETWORK}


def judge(
    passes: Mapping[str, TwoSides],
    test_files: Collection[bytes],
    *,
    stress: StressFinding | None = None,
    stress_wanted: bool = False,
) -> ValidationFinding:
    """Classify a candidate by its passes, keyed `first` and `second`, and by what the stress pass showed.

    A test whose outcome on either side differs between the passes is quarantined, and the candidate is judged by
    the others. It is flaky when one of its own tests fails before and passes after the change only by chance, when
    no other signal is left than one that came in one pass only, or when the passes differ in more than tests. With
    one pass only, a class that cannot change any more stands, and what looks valid is pending; so it is while a
    stress pass is wanted and has not run. Tests that stress changed are quarantined too, and a candidate falls when
    they are all that failed before and passed after. Provisional unless the passes lie on different days.
    """
    findings = [judge_pass(sides, test_files) for sides in passes.values()]
    if not findings:
        return ValidationFinding(ValidationClass.PENDING, "no pass has run yet")
    provisional = len({sides.day for sides in passes.values()}) < 2
    wavering: frozenset[str] = frozenset()
    if not any(finding.validation_class in INCOMPLETE for finding in findings):
        wavering = _wavering(list(passes.values()))
        stable = [judge_pass(_sides_without(sides, wavering), test_files) for sides in passes.values()]
        by_chance = _signals_by_chance(passes.values(), findings, wavering, test_files)
        if by_chance.after_too or (by_chance.at_all and not stable[0].fail_to_pass):
            example = min(by_chance.after_too or by_chance.at_all)
            evidence = f"fail to pass in one pass only: {count(by_chance.at_all)}, for example {example}"
            return ValidationFinding(
                ValidationClass.FLAKY, evidence, quarantined=_by_chance(wavering), provisional=provisional
            )
        findings = stable
    agreed = _agreed(findings)
    if isinstance(agreed, str):
        return ValidationFinding(
            ValidationClass.FLAKY, agreed, quarantined=_by_chance(wavering), provisional=provisional
        )
    found = replace(agreed, quarantined=_by_chance(wavering), provisional=provisional)
    if found.validation_class is not ValidationClass.VALID:
        return found
    if len(findings) < 2:
        return ValidationFinding(ValidationClass.PENDING, f"{found.evidence}, in the first pass; a second is due")
    if stress is None:
        waits = f"{found.evidence}, in both passes; the stress pass is due"
        return ValidationFinding(ValidationClass.PENDING, waits) if stress_wanted else found
    return _under_stress(found, stress)


def _agreed(findings: Sequence[PassFinding]) -> ValidationFinding | str:
    """What the passes agree on, or in which they differ."""
    classes = {finding.validation_class for finding in findings}
    found = findings[0]
    if classes == _NETWORK_OR_NOT:
        # The network itself was away in one of the passes; that it helped once is enough.
        found = next(one for one in findings if one.validation_class is ValidationClass.NEEDS_NETWORK)
    elif len(classes) > 1:
        other = next(one for one in findings if one.validation_class is not found.validation_class)
        return (
            f"one pass says {found.validation_class} ({found.evidence}), the other "
            f"{other.validation_class} ({other.evidence})"
        )
    return ValidationFinding(
        found.validation_class,
        found.evidence,
        # What is not quarantined ended the same way in every pass, so any of them can give the lists.
        fail_to_pass=tuple(sorted(found.fail_to_pass)),
        pass_to_pass=tuple(sorted(frozenset.intersection(*(finding.pass_to_pass for finding in findings)))),
        need_network=tuple(sorted(found.need_network)),
        missing_names=found.missing_names,
    )


def _under_stress(found: ValidationFinding, stress: StressFinding) -> ValidationFinding:
    """A valid finding without the tests that stress changed."""
    quarantined = {test: tuple(sorted(causes)) for test, causes in stress.causes.items()} | dict(found.quarantined)
    changed = stress.causes.keys() - found.quarantined.keys()
    # Of every other test it does not matter how it ends.
    touched = sorted(changed & {*found.fail_to_pass, *found.pass_to_pass})
    shown = [f"{test} ({', '.join(quarantined[test])})" for test in touched[:3]]
    told = [f"under stress {count(touched)} changed: {', '.join(shown)}" + (", …" if touched[3:] else "")]
    evidence = "; ".join([found.evidence, *(told if touched else []), *stress.notes])
    fail_to_pass = tuple(test for test in found.fail_to_pass if test not in changed)
    if not fail_to_pass:
        return ValidationFinding(
            ValidationClass.FLAKY,
            f"no test that fails before and passes after holds under stress; {evidence}",
            quarantined=quarantined,
            provisional=found.provisional,
        )
    return replace(
        found,
        evidence=evidence,
        fail_to_pass=fail_to_pass,
        pass_to_pass=tuple(test for test in found.pass_to_pass if test not in changed),
        quarantined=quarantined,
    )


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
    wavering: frozenset[str],
    test_files: Collection[bytes],
) -> _SignalsByChance:
    signals: frozenset[str] = frozenset()
    for finding in findings:
        if finding.validation_class is ValidationClass.VALID:
            signals |= finding.fail_to_pass
    own = OwnTests(test_files, [test for one in passes for side in (one.before, one.after) for test in side.tests])
    at_all = own.among(signals & wavering)
    return _SignalsByChance(at_all, at_all.intersection(*(failed(one.before) for one in passes)))


def _wavering(passes: Sequence[TwoSides]) -> frozenset[str]:
    """Tests that ended in more than one way on a side."""
    return differing([one.before for one in passes]) | differing([one.after for one in passes])


def _by_chance(wavering: frozenset[str]) -> dict[str, tuple[QuarantineCause, ...]]:
    return dict.fromkeys(sorted(wavering), (QuarantineCause.CHANCE,))


def _sides_without(sides: TwoSides, test_ids: frozenset[str]) -> TwoSides:
    """The same pass as if these tests had not been in it."""
    compared = sides.with_network
    return TwoSides(
        without(sides.before, test_ids),
        without(sides.after, test_ids),
        sides.day,
        None if compared is None else without(compared, test_ids),
    )
