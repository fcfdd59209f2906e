from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalpipe.history.coding_agents import shows_coding_agent


@pytest.mark.parametrize(
    ("author", "message"),
    [
        ("Ada", "x\n\nCo-authored-by: Claude <noreply@anthropic.com>"),
        ("Ada", "x\n\nCo-Authored-By: Claude Opus 4.6 <noreply@anthropic.com>"),
        ("Ada", "x\n\n🤖 Generated with [Claude Code](https://claude.com/claude-code)"),
        ("Ada", "x\n\nCo-authored-by: Copilot <175728472+Copilot@users.noreply.github.com>"),
        ("Ada", "x\n\nCo-authored-by: Cursor <cursoragent@cursor.com>"),
        ("Ada", "x\n\nMade-with: Cursor"),
        ("Ada", "x\n\nCo-authored-by: aider (gpt-5) <noreply@aider.chat>"),
        ("Ada", "x\n\nCo-developed-by: Gemini CLI <gemini-cli@example.org>"),
        ("Ada", "x\n\nAssisted-by: Claude Code"),
        ("Ada", "x\n\nGenerated-by: GitHub Copilot"),
        ("Ada", "x\n\nGenerated with OpenAI Codex"),
        ("Ada", "x\n\nAmp-Thread-ID: https://ampcode.com/threads/T-1\nCo-authored-by: Amp <amp@ampcode.com>"),
        ("Ada", "x\n\nCo-authored-by: Jules <j+google-labs-jules[bot]@users.noreply.github.com>"),
        ("Ada", "x\n\nCo-authored-by: Claude Sonnet <claude@example.org>"),
        ("Ada", "x\n\nCo-authored-by: github-copilot[bot] <c@example.org>"),
        ("Ada", "x\n\nCo-authored-by: amazon-q-developer[bot] <q@example.org>"),
        ("Ada (aider)", "x"),
        ("cursor[bot]", "x"),
        ("openhands-agent", "x"),
        ("devin-ai-integration[bot]", "x"),
        ("copilot-swe-agent[bot]", "x"),
    ],
)
def test_coding_agents_are_seen(author: str, message: str) -> None:
    assert shows_coding_agent(author, message)


@pytest.mark.parametrize(
    ("author", "message"),
    [
        ("Ada", "Move the cursor\n\nCo-authored-by: Grace <g@example.org>"),
        ("Claude Shannon", "x\n\nSigned-off-by: Claude Shannon <c@example.org>"),
        ("dependabot[bot]", "Bump gemini from 1 to 2"),
        ("Ada", "Parser generated with bison"),
        ("Ada", "x\n\nCo-authored-by: Devina <d@example.org>"),
        ("Ada", "Generated with Claude"),
        ("Ada", "x\n\nCo-authored-by: Claude Monet <c@example.org>"),
        ("Ada", "x\n\nCo-authored-by: Devin  O <d@example.org>"),
        ("Ada", "x\n\nAssisted-by: Jules Verne <j@example.org>"),
        ("Ada", "x\n\nWe should have it made by hand, with a copilot at the side"),
    ],
)
def test_people_are_no_coding_agents(author: str, message: str) -> None:
    assert not shows_coding_agent(author, message)


@given(st.text(max_size=200))
def test_any_text_can_be_asked(text: str) -> None:
    assert shows_coding_agent(text, f"x\n\n{text}\nCo-authored-by: Claude <noreply@anthropic.com>")
    assert not shows_coding_agent("Ada", text.replace("\n", " "))
