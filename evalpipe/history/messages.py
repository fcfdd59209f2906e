"""What commit messages say: the number of a pull request, a title, what was merged, reverted or released, and by whom.

Pure text in, values out. Each form is one that a forge or git itself writes; free prose is left to `issues`.
"""

from __future__ import annotations

import re
from typing import Final

# Where the number of the pull request stands, one form per line: on the subject, unless it says (?m).
_NUMBERS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"\AMerge pull request #(\d+) (?:from|in) ",  # GitHub; Bitbucket Server says "in PROJECT/repo from"
        r"\AMerge pull request '.*' \(#(\d+)\) from ",  # Gitea, Forgejo
        r"\AMerged in \S+ \(pull request #(\d+)\)",  # Bitbucket Cloud
        r"\APull request #(\d+): ",  # Bitbucket Server, squashed
        r"\AMerged PR (\d+): ",  # Azure DevOps
        r"\A(?:Auto merge of|Merge) #(\d+)\b",  # bors and homu
        r"\A[^\n]*\(#(\d+)\)[ \t]*(?:\n|\Z)",  # GitHub, squashed
        r"(?m)^See merge request (?:[\w.][\w./-]*)?!(\d+)[ \t]*$",  # GitLab, merged or squashed
    )
)

_MERGED_BRANCH: Final = (
    re.compile(r"\AMerge (?:remote-tracking )?branch(?:es)? '(?:(?:origin|upstream)/)?([^']+)'"),
    re.compile(r"\AMerged? (?:in )?branch ([^\s']+) into "),
)

_BOILERPLATE: Final = re.compile(
    r"\A(?:Merge(?:d)? (?:pull request|branch|branches|remote-tracking branch|in|tag)\b|Merge #\d|Auto merge of #)"
)
_TITLE_AFTER_FORM: Final = re.compile(r"\A(?:Merged PR \d+: |Pull request #\d+: )")
_NUMBER_AT_END: Final = re.compile(r"\s*\(#\d+\)\s*\Z")
_GITEA_TITLE: Final = re.compile(r"\AMerge pull request '(.*)' \(#\d+\) from ")

_TRAILER: Final = re.compile(
    r"(?i)\A(?:co-authored-by|signed-off-by|reviewed-by|acked-by|tested-by|change-id|reviewed-on|see merge request"
    r"|differential revision|approved-by|related work items|merge-request|cc|\(cherry picked from commit)\b"
)

_REVERTED_COMMIT: Final = re.compile(r"(?m)^\W*This reverts (?:merge )?commits?:?\s+\W*([0-9a-f]{7,64})\b")
_REVERTED_NUMBER: Final = re.compile(r"(?m)^Reverts (?:[\w.-]+/[\w./-]+)?[#!](\d+)\b")
_REVERT_TITLE: Final = re.compile(r'(?i)\A(?:revert|reapply)(?:ed|s)?[: ]\W*"|\Arevert:')

_VERSION: Final = r"v?\d+\.\d+(?:\.\d+)*(?:[-.+]?(?:alpha|beta|rc|dev|post|pre|a|b|snapshot)[-.]?\d*)?"
_RELEASE: Final = re.compile(
    rf"""(?ix) \A (?:(?:chore|build|ci|release|misc)(?:\([\w/.-]*\))?!?:\s*)?
    (?: (?:cut|publish|tag|prepar(?:e|ing|ation)|start|finish|make|new)?\s*(?:for|of|the)?\s*(?:the\s)?
        (?:new\s)?releas(?:e|ing)(?:\s(?:of|for|version))?\s+(?:[\w-]+\s+)?{_VERSION}\b.*
      | {_VERSION}(?:\s+(?:\w+\s+)?release!?)?
      | (?:bump|update|set|increase|increment)s?\s+(?:the\s+)?(?:[\w-]+\s+)?versions?(?:\s+(?:number|string))?
        (?:\s+(?:to|from|for)\b.*|:\s*{_VERSION}.*)?
      | version\s+(?:bump|{_VERSION})
      | bump(?:ed|s)?\s+(?:to\s+)?{_VERSION}.*
      | prepar(?:e|ing)\s+(?:for\s+)?(?:the\s+)?(?:next\s+)?release(?:\s+{_VERSION}.*)?
      | prepar(?:e|ing)\s+(?:for\s+)?{_VERSION}(?:\s+release)?
      | (?:back\s+to|begin|start(?:\s+of)?)\s+(?:the\s+)?(?:next\s+)?development(?:\s+(?:of|on|for)?\s*{_VERSION})?
    ) \Z"""
)

_AGENT_NAMES: Final = (
    r"claude|anthropic|copilot|codex|cursor(?:\s?agent)?|devin(?:-ai)?|aider|gemini(?:-cli)?|jules|openhands|amp|cline"
    r"|windsurf|sweep(?:-ai)?|roo(?:\s?code)?|kiro|junie|opencode|qwen-?coder|swe-agent"
)
_AGENT_TRAILER: Final = re.compile(
    rf"(?im)^\W*(?:co-authored-by:\s*(?:{_AGENT_NAMES})\b"
    rf"|co-authored-by:.*(?:noreply@anthropic\.com|copilot@users\.noreply|cursoragent@|@openhands\.dev|devin-ai)"
    rf"|(?:generated|created|made|written|assisted)[- ](?:with|by):?\s*\[?(?:{_AGENT_NAMES})\b)"
)
_AGENT_AUTHOR: Final = re.compile(
    r"(?i)\A(?:claude(?: code)?|copilot(?:-swe-agent)?|openai codex|codex|cursor agent|devin-ai-integration|openhands"
    r"|google-labs-jules|aider)(?:\[bot\])?\Z|\(aider\)\Z"
)


def subject_of(message: str) -> str:
    """The first line."""
    return message.lstrip("\n").partition("\n")[0].strip()


def pull_request_number(message: str) -> int | None:
    """The number of the pull or merge request that the message was made for, in any form of the known forges."""
    for pattern in _NUMBERS:
        found = pattern.findall(message)
        if found:
            # In GitLab's form the message's own reference is the last one; an earlier one was quoted.
            return int(found[-1])
    return None


def title_of(message: str) -> str:
    """What the change is called: the pull request's title where the message has it, otherwise the subject."""
    subject = subject_of(message)
    gitea = _GITEA_TITLE.match(subject)
    if gitea:
        return gitea.group(1)
    if _BOILERPLATE.match(subject):
        own_words = (line.strip() for line in message.lstrip("\n").split("\n")[1:])
        title = next((line for line in own_words if line and not _TRAILER.match(line)), subject)
        return _NUMBER_AT_END.sub("", title)
    return _NUMBER_AT_END.sub("", _TITLE_AFTER_FORM.sub("", subject))


def description_of(message: str) -> str:
    """The message without what forges and git put around it; empty when nothing else is in it."""
    lines = message.strip("\n").split("\n")
    if _BOILERPLATE.match(lines[0]):
        lines = lines[1:]
    else:
        lines[0] = _NUMBER_AT_END.sub("", _TITLE_AFTER_FORM.sub("", lines[0]))
    return "\n".join(line.rstrip() for line in lines if not _TRAILER.match(line)).strip()


def merged_branch(message: str) -> str | None:
    """The branch that git's or a forge's merge subject names, without a remote's usual name before it."""
    subject = subject_of(message)
    for pattern in _MERGED_BRANCH:
        found = pattern.match(subject)
        if found:
            return found.group(1)
    return None


def reverted_commit(message: str) -> str | None:
    """The (possibly shortened) id after git's own "This reverts commit"."""
    found = _REVERTED_COMMIT.search(message)
    return found.group(1) if found else None


def reverted_number(message: str) -> int | None:
    """The pull request that a forge's "Reverts owner/repo#N" names."""
    found = _REVERTED_NUMBER.search(message)
    return int(found.group(1)) if found else None


def is_revert_title(title: str) -> bool:
    """Whether a title is one that git or a forge gives to a revert or to the revert of a revert."""
    return _REVERT_TITLE.search(title) is not None


def is_release_title(title: str) -> bool:
    """Whether a title says nothing but that a version was released or bumped."""
    return _RELEASE.match(title) is not None


def shows_coding_agent(author: str, message: str) -> bool:
    """Whether the author or a trailer ("Co-authored-by", "Generated with") names a coding agent."""
    return _AGENT_AUTHOR.search(author) is not None or _AGENT_TRAILER.search(message) is not None
