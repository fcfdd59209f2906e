from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from evalpipe.config import AgentConfig, ProviderConfig, digest
from evalpipe.config.doctor import examine_machine
from evalpipe_tests.config.builders import SWEEP, make_workspace

PROVIDER = "base_url: https://models.example\nforms: [anthropic_messages]\nkey_variable: SHOP_MODEL_KEY\n"
AGENT = 'adapter: claude-code\nmodel: m\nmodel_version: "1"\nscaffold_version: "2.1"\nprovider: shop\n'
OF_COMMAND: dict[str, Any] = {
    "name": "a",
    "adapter": "command",
    "model": "m",
    "model_version": "1",
    "scaffold": "ours",
    "scaffold_version": "3",
    "command": ["ours", "--go"],
}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"base_url": "models.example"}, "is no address"),
        ({"base_url": "https://user:pass@models.example"}, "is no address"),
        ({"base_url": "https://models.example?key=x"}, "is no address"),
        ({"forms": []}, "is empty"),
        ({"forms": ["soap"]}, "anthropic_messages"),
        ({"key_variable": "sk-ant-0815"}, "is no name of a variable"),
        ({"concurrency": 0}, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_a_provider_is_refused_without_showing_what_may_be_a_key(
    fields: dict[str, Any], message: str
) -> None:
    good = {"name": "shop", "base_url": "https://models.example", "forms": ["openai_chat"]}
    assert ProviderConfig.model_validate(good).concurrency == 4
    with pytest.raises(ValidationError, match=message) as caught:
        ProviderConfig.model_validate({**good, **fields})
    assert "pass@" not in str(caught.value)
    assert "sk-ant-0815" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"command": []}, "needs the program and its arguments"),
        ({"provider": "shop"}, "a command that calls a model has a provider and a forwarder"),
        ({"forwarder": "node"}, "a command that calls a model has a provider and a forwarder"),
        ({"max_cost_usd": 1.0}, "needs a provider"),
        ({"adapter": "codex", "provider": "shop"}, "belongs to `adapter: command`"),
        ({"adapter": "codex", "command": []}, "name the file of data/providers"),
        ({"adapter": "empty", "command": [], "provider": "shop"}, "calls no model"),
    ],
)
def test_the_fields_of_an_agent_must_belong_to_its_adapter(fields: dict[str, Any], message: str) -> None:
    assert AgentConfig.model_validate(OF_COMMAND).command == ("ours", "--go")
    with pytest.raises(ValidationError, match=message):
        AgentConfig.model_validate({**OF_COMMAND, **fields})


def test_a_field_that_came_later_changes_the_digest_only_where_it_is_used() -> None:
    scripted = {**OF_COMMAND, "adapter": "scripted", "script": "x.json"}
    del scripted["command"]
    plain = AgentConfig.model_validate(scripted)
    assert "provider" not in plain.model_dump()
    assert "variables" not in plain.model_dump()
    one, other = (AgentConfig.model_validate({**OF_COMMAND, "command": [name]}) for name in ("a", "b"))
    assert digest(one) != digest(other)


def test_a_program_is_its_own_scaffold_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    (workspace.agents_dir / "claude.yaml").write_text(AGENT)
    (workspace.agents_dir / "fork.yaml").write_text(f"{AGENT}scaffold: our-fork\n")
    agents = workspace.load_agents()
    assert agents.problems == []
    assert [agent.scaffold for agent in agents.items.values()] == ["claude-code", "our-fork"]


def test_an_agent_must_have_a_provider_that_is_there_and_speaks_as_its_program_does(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    (workspace.agents_dir / "claude.yaml").write_text(AGENT)
    assert [str(problem) for problem in workspace.check_references()] == [
        "data/agents/claude.yaml:5: provider: there is no provider 'shop' in data/providers; write "
        "data/providers/shop.yaml"
    ]
    workspace.providers_dir.mkdir()
    (workspace.providers_dir / "shop.yaml").write_text(PROVIDER.replace("anthropic_messages", "gemini"))
    assert "claude-code speaks anthropic_messages, and shop has gemini" in str(workspace.check_references()[0])
    (workspace.providers_dir / "shop.yaml").write_text("forms: 3\n")
    assert "'shop' has errors of its own in data/providers/shop.yaml" in str(workspace.check_references()[0])
    (workspace.providers_dir / "shop.yaml").write_text(PROVIDER)
    assert workspace.check_references() == []
    assert workspace.load_provider("shop").key_variable == "SHOP_MODEL_KEY"


def test_a_budget_needs_the_worst_case_of_each_agent_that_costs(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path)
    workspace.providers_dir.mkdir()
    (workspace.providers_dir / "shop.yaml").write_text(PROVIDER)
    (workspace.agents_dir / "claude.yaml").write_text(AGENT)
    (workspace.agents_dir / "empty.yaml").write_text("adapter: empty\n")
    (workspace.sweeps_dir / "q.yaml").write_text(
        SWEEP.replace("[empty, reference]", "[empty, claude]") + "budget_usd: 5.0\n"
    )
    assert [str(problem) for problem in workspace.check_references()] == [
        "data/sweeps/q.yaml:5: budget_usd: agent 'claude' needs max_cost_usd, what one attempt may cost: the budget "
        "reserves that much"
    ]
    (workspace.agents_dir / "claude.yaml").write_text(f"{AGENT}max_cost_usd: 0.5\n")
    assert workspace.check_references() == []


def test_the_doctor_names_a_key_that_is_missing_and_never_shows_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = make_workspace(tmp_path)
    workspace.providers_dir.mkdir()
    (workspace.providers_dir / "shop.yaml").write_text(PROVIDER)
    (workspace.providers_dir / "unused.yaml").write_text(PROVIDER.replace("SHOP_MODEL_KEY", "OTHER_KEY"))
    (workspace.agents_dir / "claude.yaml").write_text(AGENT)
    (workspace.sweeps_dir / "q.yaml").write_text(SWEEP.replace("[empty, reference]", "[claude]"))
    monkeypatch.delenv("SHOP_MODEL_KEY", raising=False)
    (missing,) = [one for one in examine_machine(workspace) if one.name.startswith("key of")]
    assert (missing.name, missing.ok, missing.required) == ("key of shop", False, False)
    assert missing.detail == "SHOP_MODEL_KEY is not set"
    monkeypatch.setenv("SHOP_MODEL_KEY", "sk-canary-4711")
    findings = examine_machine(workspace)
    assert [one.ok for one in findings if one.name == "key of shop"] == [True]
    assert "sk-canary-4711" not in str(findings)
