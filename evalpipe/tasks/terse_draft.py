"""A first terse text by rule: the title of the issue without what only its tracker needs. A person edits it."""

import re

MOST_CHARACTERS = 300
"""A longer first line is a body without a title."""

# `fix(parser): …`, `[Bug] …`, `BUG: …`: which kind of change it is, and where.
_KIND = re.compile(
    r"^(?:\[[^\]\n]{1,30}\]\s*|(?:fix|feat|bug|bugfix|perf|refactor|chore|docs?|tests?|build|ci|style|enh|regression|"
    r"feature request)(?:\([^)\n]{1,40}\))?!?:\s+)+",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\s*[(\[]?(?:(?:fix(?:es|ed)?|close[sd]?|resolve[sd]?|see|refs?)\s+)?(?:[\w.-]+/[\w.-]+)?[#!]\d+[)\]]?",
    re.IGNORECASE,
)
_LINK = re.compile(r"\s*<?https?://\S+>?")


def terse_draft(problem_text: str) -> str:
    """One sentence from the first line of `problem_text`; empty when the line says nothing by itself."""
    line = next((line.strip() for line in problem_text.splitlines() if line.strip()), "")
    if len(line) > MOST_CHARACTERS:
        return ""
    line = _LINK.sub("", _NUMBER.sub("", line.lstrip("# ")))
    said = _KIND.sub("", line).strip(" \t:-;,")
    if len(said.split()) < 2:  # a word is a topic, and no symptom
        return ""
    sentence = said[0].upper() + said[1:]
    return f"{sentence}{'' if sentence[-1] in '.!?…' else '.'}\n"
