"""The doctor's look at prices: which agents' cost will be known, and which limits of cost can be held."""

from pathlib import Path

import pytest

from evalpipe.config import Workspace, find_workspace
from evalpipe.config.doctor import Finding
from evalpipe.stages.price_check import look_at_prices

_AGENT = 'adapter: codex\nmodel: {model}\nmodel_version: "1"\nscaffold_version: "1"\nprovider: house\n'
_PROVIDER = "base_url: https://models.example\nforms: [openai_responses]\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    for folder in ("repos", "agents", "sweeps", "providers"):
        (tmp_path / "data" / folder).mkdir(parents=True)
    (tmp_path / "workspace.yaml").write_text("load_from: []\n")
    (tmp_path / "data/agents/empty.yaml").write_text("adapter: empty\n")
    sweep = "task_set: t\nagents: [coder, empty]\nsamples: 1\ndecision: Which?\n"
    (tmp_path / "data/sweeps/q.yaml").write_text(sweep)
    return find_workspace(tmp_path)


def found(workspace: Workspace, model: str, agent: str = "", provider: str = "") -> Finding:
    (workspace.agents_dir / "coder.yaml").write_text(_AGENT.format(model=model) + agent)
    (workspace.providers_dir / "house.yaml").write_text(_PROVIDER + provider)
    (finding,) = look_at_prices(workspace)
    return finding


def test_a_model_with_a_price_is_in_order(workspace: Workspace) -> None:
    assert found(workspace, "gpt-5", provider="price_list: openai\n").ok


@pytest.mark.parametrize("provider", ["", "price_list: openai\n", "price_list: nobody\n"])
def test_a_model_without_a_price_is_noted_with_the_file_to_correct(workspace: Workspace, provider: str) -> None:
    finding = found(workspace, "house-model", provider=provider)
    assert (finding.ok, finding.required) == (False, False)
    assert "its cost stays open" in finding.detail
    assert "data/providers/house.yaml" in finding.remedy


def test_a_limit_that_cannot_be_held_is_told_before_the_run_refuses(workspace: Workspace) -> None:
    finding = found(workspace, "house-model", "max_cost_usd: 1.0\n", "price_list: openai\n")
    assert "`max_cost_usd` cannot be held" in finding.detail
    assert "max_turns" in finding.remedy


def test_agents_that_nothing_live_asks_for_are_passed_over(workspace: Workspace) -> None:
    assert found(workspace, "house-model")
    sweep = workspace.sweeps_dir / "q.yaml"
    sweep.write_text(sweep.read_text() + "archived: true\n")
    assert list(look_at_prices(workspace)) == []
