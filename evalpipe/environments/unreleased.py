"""Tells from the output of a build whether something was asked for that had not been released by its day."""

import re

# What uv, pip, npm, pnpm, yarn and Cargo say when no release fits.
_MESSAGES = re.compile(
    r"No solution found when resolving"
    r"|Could not find a version that satisfies the requirement"
    r"|No matching distribution found"
    r"|ETARGET|No matching version found for|ERR_PNPM_NO_MATCHING_VERSION"
    r"|Couldn't find any versions for|No candidates found"
    r"|no matching package named|failed to select a version for"
)


def was_not_released_yet(log: str) -> bool:
    """Whether a later day might help. A tool that found no release for another reason says the same."""
    return _MESSAGES.search(log) is not None
