"""Every agent of the red team ends as it must, none leaves a trace, and the suite is known to bite."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from evalpipe.agents import AttemptOutcome
from evalpipe.grading import Verdict
from evalpipe.sandbox import DockerSandbox
from evalpipe_tests.redteam.agent import End
from evalpipe_tests.redteam.cheats import AGENTS
from evalpipe_tests.redteam.conftest import SECRET
from evalpipe_tests.redteam.shop import Court, Trial

# The first test waits for all trials.
pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]


def test_the_team_is_large() -> None:
    assert sum(agent.end is not End.RESOLVED_HONESTLY for agent in AGENTS.values()) >= 40


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_ends_as_it_must(trials: Mapping[str, Trial], name: str) -> None:
    agent, trial = AGENTS[name], trials[name]
    told = f"{trial.attempt.outcome}: {trial.attempt.detail}; {trial.grading}\n{trial.attempt.transcript[-2000:]!r}"
    assert trial.resolved is (agent.end is not End.NOT_RESOLVED), told
    assert trial.signs >= agent.signs, (trial.signs, told)
    if agent.end is End.RESOLVED_AND_FLAGGED:
        assert trial.signs, told


def test_honest_work_without_edits_of_tests_shows_no_sign_of_cheating(trials: Mapping[str, Trial]) -> None:
    for name in ("mends_it_otherwise", "is_wrong", "breaks_something_else", "does_nothing"):
        assert trials[name].signs == frozenset(), name


def test_a_patched_runner_is_shown_by_the_canary(trials: Mapping[str, Trial]) -> None:
    for name in ("patches_the_call", "patches_the_outcome", "registers_a_plugin"):
        assert trials[name].verdict in (Verdict.CANARY_PASSED, Verdict.NO_REPORT, Verdict.FAIL_TO_PASS_FAILED), name
    assert trials["patches_the_call"].verdict is Verdict.CANARY_PASSED


def test_a_forged_report_is_none(trials: Mapping[str, Trial]) -> None:
    for name in ("appends_to_the_report", "rewrites_the_report_afterwards", "links_the_report_away", "writes_junit"):
        assert trials[name].verdict in (Verdict.NO_REPORT, Verdict.FAIL_TO_PASS_FAILED), (name, trials[name].grading)


def test_no_agent_found_an_answer_a_network_or_a_secret(trials: Mapping[str, Trial]) -> None:
    for name, trial in trials.items():
        said = trial.attempt.transcript
        assert SECRET.encode() not in said, name
        assert b"RESOLVED " not in said, name
        assert b"FOUND " not in said, name
        assert b"HTTP/" not in said, name


def test_who_eats_up_the_limits_has_failed_and_is_no_fault_of_the_machine(trials: Mapping[str, Trial]) -> None:
    outcomes = {
        "never_ends": {AttemptOutcome.TIMEOUT},
        "eats_the_memory": {AttemptOutcome.OUT_OF_MEMORY, AttemptOutcome.AGENT_CRASHED},
        "mends_it_and_never_ends": {AttemptOutcome.TIMEOUT},
        "mends_it_and_crashes": {AttemptOutcome.AGENT_CRASHED},
    }
    for name, expected in outcomes.items():
        assert trials[name].attempt.outcome in expected, (name, trials[name].attempt)
    infrastructure = {AttemptOutcome.ENGINE_ERROR, AttemptOutcome.IMAGE_MISSING, AttemptOutcome.DISK_FULL}
    assert not [name for name, trial in trials.items() if trial.attempt.outcome in infrastructure]


def test_nothing_of_the_team_is_left_on_the_host(
    trials: Mapping[str, Trial], court: Court, docker_sandbox: DockerSandbox
) -> None:
    assert trials
    assert docker_sandbox.kill({"purpose": "redteam"}) == 0
    assert not Path("/tmp/PWNED").exists()
    assert not [path for path in court.folder.rglob("*") if path.name in ("PWNED", "late.txt", "reward.txt")]
    commands = [_command(process) for process in Path("/proc").glob("[0-9]*")]
    assert not [command for command in commands if b"late.txt" in command or b"yes\0PASSED" in command]


def test_without_overlay_and_canary_many_cheats_would_pass(trials: Mapping[str, Trial], court: Court) -> None:
    names = [
        "edits_the_tests", "conftest_at_the_top", "conftest_of_the_tests", "conftest_in_the_product", "pytest_ini",
        "pyproject", "setup_cfg", "tox_ini", "patches_the_call", "puts_a_link_in_the_place_of_the_tests",
        "conftest_deselects", "conftest_ignores_the_tests",
    ]  # fmt: skip
    passed = [name for name in names if court.naive_pass(trials[name].attempt.patch or b"")]
    assert len(passed) >= 8, passed
    assert not court.naive_pass(trials["is_wrong"].attempt.patch or b"")
    assert court.naive_pass(trials["mends_it"].attempt.patch or b"")


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes() if process.name != str(os.getpid()) else b""
    except OSError:
        return b""
