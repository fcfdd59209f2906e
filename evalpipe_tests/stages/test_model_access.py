"""Attempts of an agent with a model: what they use is known and bounded, and no key is left anywhere."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from evalpipe.config import AgentConfig, ConfigError
from evalpipe.gateway import ProviderError
from evalpipe.reports import scoreboard_text
from evalpipe.sandbox import ProcessSandbox
from evalpipe.stages.agent_programs import adapter_for, installed_program
from evalpipe.stages.attempts import run_sample
from evalpipe.stages.gradings import grade_sample
from evalpipe.stages.images import EnvironmentNotReady
from evalpipe.stages.model_access import (
    ModelAccess,
    calls_folder,
    open_model_access,
    sweep_budget,
    usage_of_interrupted,
)
from evalpipe.stages.reporting import gather_results
from evalpipe.stages.sweeps import AgentSweep, SampleKey, open_agent_sweep
from evalpipe_tests.asking_agent import KEY_VARIABLE, REAL_KEY, working_once, write_asking_agent
from evalpipe_tests.model_replies import Fail, Say
from evalpipe_tests.model_server import ModelServer
from evalpipe_tests.stages.sweeping import first_key, part_of, rows_of
from evalpipe_tests.stages.workspaces import TestBench
from evalpipe_tests.told_secrets import files_that_tell

MEND = "sed -i 's/return 11/return 12/' clock.py"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, REAL_KEY)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """Lets each attempt make two calls: one mends the clock, and one ends it."""
    with ModelServer(working_once(MEND)) as found:
        yield found


def add_model_agent(bench: TestBench, url: str, more: str = "", sweep: str = "") -> None:
    """Put the asking agent into the sweep `spring`, alone; `sweep` are lines of that."""
    write_asking_agent(bench.workspace.root, url, more)
    bench.rewrite("data/sweeps/spring.yaml", "agents: [reference, empty]", "agents: [asking]")
    bench.rewrite("data/sweeps/spring.yaml", "task_set: q", f"{sweep}task_set: q")


def attempt(bench: TestBench, part: AgentSweep, key: SampleKey, access: ModelAccess | None) -> dict[str, Any]:
    adapter = adapter_for(bench, part.agent, part.task_set)
    return run_sample(bench, part, adapter, key, "run-1", {"run": "run-1"}, access)[0]


def attempt_alone(bench: TestBench, key: SampleKey) -> dict[str, Any]:
    """One attempt with a gateway of its own, as a run of its own makes it."""
    part = part_of(bench, "asking")
    with open_model_access(bench, bench.sweep, part.agent) as access:
        return attempt(bench, part, key, access)


@pytest.mark.slow
def test_an_attempt_is_paid_once_and_says_what_it_used(frozen: TestBench, server: ModelServer) -> None:
    add_model_agent(frozen, server.url)
    row = attempt_alone(frozen, first_key(frozen))
    assert (row["outcome"], row["outcome_detail"]) == ("finished", "")
    assert b"+    return 12" in frozen.lake.blobs.get(row["patch_sha256"])
    assert (row["model_calls"], row["input_tokens"], row["cached_input_tokens"]) == (2, 200, 60)
    assert (row["output_tokens"], row["reasoning_tokens"], row["usage_warnings"]) == (14, 4, [])
    assert 0 < row["cost_usd"] < 0.01
    assert attempt_alone(frozen, first_key(frozen)) == rows_of(frozen, part_of(frozen, "asking"), first_key(frozen))[0]
    assert len(server.seen) == 2
    assert {seen.headers["Authorization"] for seen in server.seen} == {f"Bearer {REAL_KEY}"}


@pytest.mark.slow
def test_no_key_is_anywhere_in_the_workspace_though_every_body_is_kept(frozen: TestBench) -> None:
    # A provider that repeats the key in its answers, and an agent that writes down all that it has.
    tells = f"env > stolen; cat /proc/[0-9]*/environ > others; echo {REAL_KEY} | tee said | gzip > packed; {MEND}"
    tells = f"{tells}; echo {REAL_KEY}"
    with ModelServer([Say(tells), Say("done")]) as server:
        add_model_agent(frozen, server.url, sweep="record_bodies: true\n")
        row = attempt_alone(frozen, first_key(frozen))
    assert row["outcome"] == "finished", row
    assert files_that_tell(frozen.workspace.root, REAL_KEY) == []
    for column in ("transcript_sha256", "trajectory_sha256", "patch_sha256"):
        assert b"[redacted]" in frozen.lake.blobs.get(row[column]), column
    folder = calls_folder(frozen, part_of(frozen, "asking").place(first_key(frozen)), 1)
    assert sorted(path.name for path in folder.iterdir()) == [
        "00001.reply.gz",
        "00001.request.gz",
        "00002.reply.gz",
        "00002.request.gz",
        "calls.jsonl",
    ]
    assert b"[redacted]" in gzip.decompress((folder / "00001.reply.gz").read_bytes())


@pytest.mark.slow
def test_no_key_is_risked_where_agents_see_the_processes_of_the_host(
    frozen: TestBench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ProcessSandbox, "_works", lambda sandbox, **isolation: False)
    monkeypatch.setattr(frozen, "sandbox", ProcessSandbox(frozen.instance, frozen.workspace.state_dir))
    add_model_agent(frozen, server.url)
    with pytest.raises(ProviderError, match=f"can read {KEY_VARIABLE} .* use Docker"):
        attempt_alone(frozen, first_key(frozen))
    assert server.seen == []


@pytest.mark.slow
def test_turns_are_capped_and_the_work_until_then_counts(frozen: TestBench) -> None:
    with ModelServer([Say(MEND)]) as server:
        add_model_agent(frozen, server.url)
        row = attempt_alone(frozen, first_key(frozen))
    assert (row["outcome"], row["model_calls"]) == ("turn_limit", 5)
    assert row["patch_bytes"] > 0


@pytest.mark.slow
def test_a_provider_that_fails_is_asked_again_in_another_attempt_and_each_is_kept(frozen: TestBench) -> None:
    with ModelServer([Fail(500), Say(MEND), Say("done")]) as server:
        add_model_agent(frozen, server.url)
        first = attempt_alone(frozen, first_key(frozen))
        assert (first["outcome"], first["model_calls"], first["cost_usd"]) == ("provider_error", 0, 0.0)
        second = attempt_alone(frozen, first_key(frozen))
    assert (second["outcome"], second["attempt"]) == ("finished", 2)
    rows = rows_of(frozen, part_of(frozen, "asking"), first_key(frozen))
    assert [row["outcome"] for row in rows] == ["provider_error", "finished"]


@pytest.mark.slow
def test_a_budget_stops_before_an_attempt_that_it_cannot_cover_and_settles_those_it_did(
    frozen: TestBench, server: ModelServer
) -> None:
    add_model_agent(frozen, server.url, "max_cost_usd: 0.6\n", "budget_usd: 1.0\n")
    one, other = first_key(frozen), first_key(frozen, 2)
    part = part_of(frozen, "asking")
    with open_model_access(frozen, frozen.sweep, part.agent) as access:
        # While another attempt holds its worst case, the rest of the budget is too small.
        assert access is not None
        assert access.budget is not None
        assert access.budget.reserve("another", Decimal("0.6"))
        stopped = attempt(frozen, part, one, access)
        assert (stopped["outcome"], stopped.get("model_calls"), len(server.seen)) == ("budget_stop", None, 0)
        assert "has not the 0.6 that an attempt of asking may cost" in stopped["outcome_detail"]
        assert grade_sample(frozen, part, one, {})[0]["verdict"] == "not_graded"
        results = gather_results(frozen, frozen.sweep, {"asking": part.agent})
        assert (results.graded.num_rows, results.budget_stops) == (0, {"asking": 1})
        assert "asking: 1 sample not begun, because the sweep's budget was used up" in scoreboard_text(results)
        access.budget.settle("another", Decimal("0.3"))
        rows = [attempt(frozen, part, key, access) for key in (one, other)]
    assert [(row["outcome"], row["attempt"]) for row in rows] == [("finished", 1)] * 2
    assert [row["outcome"] for row in rows_of(frozen, part, one)] == ["finished"]
    budget = sweep_budget(frozen, frozen.sweep)
    assert budget is not None
    assert budget.unsettled() == []
    left = budget.left_usd()
    assert Decimal("0.69") < left < Decimal("0.7")
    # Another machine, or this one after the file was lost, goes on with what the attempts themselves say.
    (frozen.lake.root / "budgets" / "spring.sqlite").unlink()
    with open_model_access(frozen, frozen.sweep, part.agent) as access:
        assert access is not None
        assert access.budget is not None
        assert access.budget.left_usd() == left + Decimal("0.3")


def test_a_model_without_a_price_is_refused_where_cost_is_limited(frozen: TestBench, server: ModelServer) -> None:
    add_model_agent(frozen, server.url, "max_cost_usd: 0.6\n", "budget_usd: 1.0\n")
    frozen.rewrite("data/agents/asking.yaml", "model: gpt-5\n", "model: house-model\n")
    with (
        pytest.raises(ProviderError, match="the price of model house-model is not known"),
        open_model_access(frozen, frozen.sweep, frozen.agent("asking")),
    ):
        pass
    # A price list that changed in between: what was set aside for the attempt is free again.
    with open_model_access(frozen, frozen.sweep.model_copy(update={"budget_usd": 1.0}), _unlimited(frozen)) as access:
        assert access is not None
        access = replace(access, agent=frozen.agent("asking"))
        with pytest.raises(ProviderError), access.attempt("one", frozen.workspace.root / "calls"):
            pass
        assert access.budget is not None
        assert access.budget.left_usd() == 1
    assert server.seen == []


def _unlimited(bench: TestBench) -> AgentConfig:
    return bench.agent("asking").model_copy(update={"max_cost_usd": None})


@pytest.mark.slow
def test_an_attempt_that_was_cut_off_is_settled_from_its_journal(frozen: TestBench, server: ModelServer) -> None:
    add_model_agent(frozen, server.url, "max_cost_usd: 0.6\n", "budget_usd: 2.0\n")
    key, part = first_key(frozen), part_of(frozen, "asking")
    done = attempt_alone(frozen, key)
    # As a killed evalpipe leaves it: the row says interrupted, the journal is whole, the money is still set aside.
    used = ("model_calls", "input_tokens", "output_tokens", "cost_usd", "ended_at", "attempt_seconds")
    cut = done | dict.fromkeys(used) | {"outcome": "interrupted"}
    frozen.lake.write("agent_runs", [cut], *part.place(key))
    (frozen.lake.root / "budgets" / "spring.sqlite").unlink()
    budget = sweep_budget(frozen, frozen.sweep)
    assert budget is not None
    assert budget.reserve(done["attempt_id"], Decimal("0.6"))
    again = attempt_alone(frozen, key)
    assert (again["outcome"], again["attempt"]) == ("finished", 2)
    first = rows_of(frozen, part, key)[0]
    assert (first["outcome"], first["model_calls"], first["input_tokens"]) == ("interrupted", 2, 200)
    assert first["cost_usd"] == done["cost_usd"]
    assert budget.unsettled() == []
    assert budget.left_usd() > Decimal("1.99")
    # Killed before its first call, an attempt has cost nothing.
    other = first_key(frozen, 2)
    row = attempt_alone(frozen, other)
    (calls_folder(frozen, part.place(other), 1) / "calls.jsonl").unlink()
    frozen.lake.write("agent_runs", [row | dict.fromkeys(used) | {"outcome": "interrupted"}], *part.place(other))
    assert attempt_alone(frozen, other)["attempt"] == 2
    assert rows_of(frozen, part, other)[0]["cost_usd"] == 0
    # What it cost on another machine, that machine alone can tell.
    elsewhere = frozen.lake.root / "calls" / "elsewhere"
    assert usage_of_interrupted(frozen, frozen.sweep, cut, elsewhere) == cut


def test_what_an_agent_lacks_is_said_before_anything_is_begun(
    frozen: TestBench, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_model_agent(frozen, server.url)
    monkeypatch.delenv(KEY_VARIABLE)
    with (
        pytest.raises(ProviderError, match=f"local: set {KEY_VARIABLE}"),
        open_model_access(frozen, frozen.sweep, frozen.agent("asking")),
    ):
        pass
    frozen.rewrite("data/agents/asking.yaml", "provider: local", "provider: other")
    with (
        pytest.raises(ConfigError, match=r"there is no other\.yaml"),
        open_model_access(frozen, frozen.sweep, frozen.agent("asking")),
    ):
        pass
    # Reports of what was run do not need it.
    assert open_agent_sweep(frozen, frozen.sweep, frozen.agent("asking"), "run-1").manifests
    assert (server.seen, frozen.boxes) == ([], 0)


def test_a_program_needs_docker(frozen: TestBench, server: ModelServer) -> None:
    add_model_agent(frozen, server.url)
    path = frozen.workspace.root / "data/agents/claude.yaml"
    path.write_text(
        'adapter: claude-code\nprovider: local\nmodel: m\nmodel_version: "1"\nscaffold_version: "2.1.197"\n'
    )
    part = part_of(frozen, "asking")
    with pytest.raises(EnvironmentNotReady, match="installed in an image, which needs Docker"):
        installed_program(frozen, frozen.agent("claude"), part.task_set.tasks.values())


def test_the_manifest_says_who_served_the_model_and_what_an_attempt_could_use(
    frozen: TestBench, server: ModelServer
) -> None:
    add_model_agent(frozen, server.url, "max_cost_usd: 0.5\nmax_tokens: 9000\n")
    part = part_of(frozen, "asking")
    (manifest,) = part.manifests.values()
    agent = manifest["agent"]
    assert (agent["provider"], agent["max_turns"], agent["max_tokens"], agent["max_cost_usd"]) == (
        "local",
        5,
        9000,
        0.5,
    )
    assert agent["command"][0] == "python3"
    assert manifest["provider_url"] == server.url
    assert manifest["environment"]["silence_s"] == 600
    (control,) = open_agent_sweep(frozen, frozen.sweep, frozen.agent("empty"), "run-1").manifests.values()
    assert not {"provider", "command", "max_cost_usd", "variables"} & control["agent"].keys()
    assert "silence_s" not in control["environment"]


def test_the_key_of_attempts_does_not_move_between_versions(frozen: TestBench) -> None:
    part = part_of(frozen, "empty")
    (manifest,) = part.manifests.values()
    assert json.dumps(sorted(manifest["agent"])) == json.dumps(
        [
            "adapter",
            "context_limit",
            "max_turns",
            "model",
            "model_version",
            "name",
            "retry_policy",
            "scaffold",
            "scaffold_version",
            "temperature",
            "tools",
        ]
    )
