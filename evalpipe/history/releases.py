"""The release that a commit descends from, by its tags: what a build backend would ask git for."""

from __future__ import annotations

import re
from typing import Final

from evalpipe.history.objects import ObjectReader, checked_id

_TRIES: Final = 20
# As in `1.2`, `v1.2.3rc1`, `pkg-1.2.0`, `pkg/v1.2.0`, `pkg@1.2.0-beta.2`; a name such as `1.2.x` is that of a line.
_VERSION: Final = re.compile(
    r"(?i)(?:.*[-_/@])?v?(?P<version>\d+(?:\.\d+)+"
    r"(?:[-._+]?(?:a|b|c|rc|alpha|beta|pre|preview|dev|post|m|cr|final|release|ga)[-._]?\d*(?:\.\d+)*)?)\Z"
)


def release_before(repository: ObjectReader, commit: str) -> str | None:
    """The version of the nearest tag that `commit` descends from and that reads as a version; None for none.

    Nearest is what `git describe` finds: the tag with the fewest commits between. Tags that do not read as a version
    are passed over, up to twenty of them.
    """
    passed: list[str] = []
    for _ in range(_TRIES):
        # Names that git allows for a tag hold nothing that it would read as a pattern.
        exclusions = [f"--exclude={name}" for name in passed]
        found = repository.command.attempt(
            "describe", "--tags", "--abbrev=0", "--match=*[0-9].[0-9]*", *exclusions, checked_id(commit)
        )
        if found.status != 0:
            return None
        name = found.stdout.decode("utf-8", "replace").strip()
        version = version_in(name)
        if version is not None:
            return version
        passed.append(name)
    return None


def version_in(tag: str) -> str | None:
    """The version that the name of a tag ends with, without a prefix; None when it does not read as one."""
    match = _VERSION.match(tag)
    return match["version"] if match else None
