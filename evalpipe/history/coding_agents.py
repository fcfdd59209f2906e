"""Whether a coding agent had a hand in a change, as its author or by a trailer that the agent's tool wrote."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_NAMES: Final = (
    r"claude|anthropic|copilot|(?:openai )?codex|cursor(?:\s?agent)?|devin(?:-ai|\sai)?|aider|gemini(?:[- ]cli"
    r"|[- ]code[- ]assist)?|(?:google-labs-)?jules|openhands|amp|cline|windsurf|sweep(?:-ai)?|roo(?:\s?code)?|kiro"
    r"|junie|opencode|qwen-?coder|qwen code|swe-agent|goose|factory[- ]droid|warp|crush|auggie|augment code"
    r"|amazon[- ]q(?:[- ]developer)?"
)
# Some agents have the given names of people.
_NO_SURNAME: Final = r"(?!\s+(?!(?:code|opus|sonnet|haiku|ai|agent|assistant|bot|cli|pro|flash)\b)[^\W\d]+\s*<)"
_ADDRESSES: Final = (
    r"noreply@anthropic\.com|copilot@users\.noreply|cursoragent@|@openhands\.dev|devin-ai|@aider\.chat|amp@ampcode\.com"
    r"|agent@warp\.dev|factory-droid\[bot\]|noreply@openai\.com|google-labs-jules"
)
_TRAILER: Final = re.compile(
    rf"(?im)^\W*(?:co-(?:authored|developed)-by:\s*(?:github[- ])?(?:{_NAMES})\b{_NO_SURNAME}"
    rf"|co-(?:authored|developed)-by:.*(?:{_ADDRESSES})"
    rf"|(?:generated|created|made|written|assisted)[- ](?:with|by):?\s*\[?(?:github )?(?:{_NAMES})\b{_NO_SURNAME}"
    r"|(?:amp-thread-id|claude-session|codex-session):)"
)
_AUTHOR: Final = re.compile(
    r"(?i)\A(?:claude(?: code)?|copilot(?:-swe-agent)?|openai codex|codex|chatgpt-codex-connector|cursor(?: agent)?"
    r"|devin-ai-integration|openhands(?:[- ](?:agent|bot))?|amazon-q-developer|roomote"
    r"|google-labs-jules|aider|gemini-cli|factory-droid|sweep-ai|codegen-sh)(?:\[bot\])?\Z|\(aider\)\Z"
)
# A word of each alternative of _TRAILER, since most messages hold none of them.
_WORDS: Final = ("-by:", "generated", "created", "made", "written", "assisted", "amp-thread", "-session:")


def shows_coding_agent(author: str, message: str) -> bool:
    """Whether the author or a trailer ("Co-authored-by", "Generated with") names a coding agent."""
    if _is_agent(author):
        return True
    # A trailer does not stand in the subject.
    if "\n\n" not in message:
        return False
    lowered = message.lower()
    for word in _WORDS:
        if word in lowered:
            return _TRAILER.search(message) is not None
    return False


@lru_cache(maxsize=4096)
def _is_agent(author: str) -> bool:
    return _AUTHOR.search(author) is not None
