"""Which settings each program has, and that the others are refused by their names before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from evalpipe.agents.adapter import ProgramSettings, SettingRefused
from evalpipe.agents.aider import Aider
from evalpipe.agents.claude_code import ClaudeCode
from evalpipe.agents.codex import Codex
from evalpipe.agents.gemini_cli import GeminiCli
from evalpipe.agents.mini_swe_agent import MiniSweAgent
from evalpipe.agents.opencode import Opencode

SETTINGS: dict[str, Any] = {"temperature": 0.0, "context_limit": 1000, "tools": ("bash",)}
HAS: dict[Callable[[ProgramSettings], object], set[str]] = {
    ClaudeCode: {"tools"},
    Codex: {"context_limit"},
    GeminiCli: {"temperature", "tools"},
    Opencode: {"temperature", "context_limit", "tools"},
    Aider: {"temperature"},
    MiniSweAgent: {"temperature"},
}


@pytest.mark.parametrize("make", HAS)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_that_a_program_has_not_is_refused_by_its_name(
    make: Callable[[ProgramSettings], object], name: str
) -> None:
    settings = ProgramSettings("m", **{name: SETTINGS[name]})
    if name in HAS[make]:
        make(settings)
    else:
        with pytest.raises(SettingRefused, match=f"leave {name} out"):
            make(settings)
