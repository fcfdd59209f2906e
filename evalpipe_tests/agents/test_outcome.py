"""The outcome that evidence decides on: what the program refused its agent, beside what the gateway saw."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evalpipe.agents import OUTCOME_RULES, AttemptOutcome
from evalpipe.agents.outcome import classify
from evalpipe.agents.transcripts.last_word import LastWord
from evalpipe.gateway.evidence import Call, CallResult, Evidence
from evalpipe.gateway.usage import TokenUsage
from evalpipe.gateway.wire import WireForm
from evalpipe.sandbox import Outcome

ENDED = Outcome(0, False, False, 1.0, b"", b"", False, False)
_OK = Call(1, WireForm.OPENAI_CHAT, "/v1/chat/completions", True, 0.0, 1.0, CallResult.OK, 200, "m", TokenUsage(1))


def _evidence(*results: CallResult) -> Evidence:
    return Evidence((_OK, *(replace(_OK, number=number, result=result) for number, result in enumerate(results, 2))))


@pytest.mark.parametrize(
    "ended",
    [ENDED, replace(ENDED, exit_code=1), replace(ENDED, exit_code=None, timed_out=True)],
    ids=["ended", "crashed", "hung"],
)
@pytest.mark.parametrize("evidence", [_evidence(), _evidence(CallResult.REFUSED_CALLS)], ids=["all_ok", "turns_used"])
def test_refused_tools_and_no_patch_are_a_fault_of_the_configuration(ended: Outcome, evidence: Evidence) -> None:
    outcome, detail = classify(ended, evidence, b"", ("Bash", "Edit"))
    assert outcome is AttemptOutcome.PERMISSION_DENIED
    assert "Bash, Edit" in detail
    rule = OUTCOME_RULES[outcome]
    assert (rule.counts, rule.run_again) == (False, False)


def test_an_agent_that_found_another_way_is_graded() -> None:
    assert classify(ENDED, _evidence(), b"diff", ("WebFetch",))[0] is AttemptOutcome.FINISHED


def test_work_that_cannot_be_read_is_no_empty_patch() -> None:
    assert classify(ENDED, _evidence(), None, ("Bash",))[0] is AttemptOutcome.FINISHED


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (CallResult.RATE_LIMITED, AttemptOutcome.PROVIDER_RATE_LIMIT),
        (CallResult.AUTH_ERROR, AttemptOutcome.AUTH_ERROR),
        (CallResult.DROPPED, AttemptOutcome.PROVIDER_ERROR),
    ],
)
def test_a_fault_of_the_provider_comes_first_and_is_run_again(result: CallResult, outcome: AttemptOutcome) -> None:
    assert classify(ENDED, _evidence(result), b"", ("Bash",))[0] is outcome


def test_an_agent_that_broke_off_every_call_until_its_turns_were_used_had_no_answer() -> None:
    left = replace(_OK, result=CallResult.AGENT_LEFT, usage=None)
    evidence = Evidence((left, replace(left, number=2, result=CallResult.REFUSED_CALLS)))
    outcome, detail = classify(ENDED, evidence, b"diff")
    assert outcome is AttemptOutcome.NO_MODEL_CALL
    assert "agent_left" in detail


def test_an_agent_that_used_up_its_memory_has_failed_whatever_was_refused() -> None:
    ended = replace(ENDED, exit_code=137, out_of_memory=True)
    assert classify(ended, _evidence(), b"", ("Bash",))[0] is AttemptOutcome.OUT_OF_MEMORY


def test_without_a_refusal_an_agent_that_did_nothing_has_failed() -> None:
    assert classify(ENDED, _evidence(), b"")[0] is AttemptOutcome.EMPTY_PATCH


@pytest.mark.parametrize(
    ("said", "patch", "outcome"),
    [
        (None, b"diff", AttemptOutcome.TIMEOUT),
        (LastWord.DONE, b"diff", AttemptOutcome.FINISHED),
        (LastWord.DONE, b"", AttemptOutcome.EMPTY_PATCH),
        (LastWord.FAILED, b"diff", AttemptOutcome.AGENT_CRASHED),
    ],
)
def test_a_program_that_was_stopped_after_its_last_event_ended_as_it_said(
    said: LastWord | None, patch: bytes, outcome: AttemptOutcome
) -> None:
    stopped = replace(ENDED, exit_code=None, timed_out=True)
    assert classify(stopped, _evidence(), patch, (), said)[0] is outcome
    limited = classify(stopped, _evidence(CallResult.RATE_LIMITED), patch, (), said)
    assert limited[0] is AttemptOutcome.PROVIDER_RATE_LIMIT


def test_every_outcome_has_its_rule_and_none_counts_and_is_run_again() -> None:
    assert OUTCOME_RULES.keys() == set(AttemptOutcome)
    assert not any(rule.counts and rule.run_again for rule in OUTCOME_RULES.values())
    neither = {outcome for outcome, rule in OUTCOME_RULES.items() if not (rule.counts or rule.run_again)}
    assert neither == {AttemptOutcome.PERMISSION_DENIED}
