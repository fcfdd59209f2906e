"""Checks that an image has no copy of the project itself from after the base commit, whatever brought it.

A library is often among the dependencies of its own test tools, in some older release. That is harmless, and a build
cannot do without. A release that is newer than the base commit may hold the change that an agent is asked for.
"""

import shlex
from collections.abc import Mapping

from evalpipe.environments.recipe import PACKAGES_FILE


def newer_copies_script(versions: Mapping[str, str], release: str | None) -> str:
    """A script for `Recipe.check` that fails, and names them, when PACKAGES_FILE lists copies newer than the base.

    `versions` are those that the manifests of the base commit give the project's own packages, by name; `release` is
    the newest release that the base descends from. What is newer than both is newer than the base.
    """
    cases = "\n".join(
        f"        {shlex.quote(name)}) limits={shlex.quote(' '.join(filter(None, [*version.split(), release])))} ;;"
        for name, version in sorted(versions.items())
    )
    if not cases:
        return ""
    # As `sort -V` has it, what follows a tilde comes before the version itself, and so does a pre-release.
    return f"""[ -f {PACKAGES_FILE} ]
newest() {{ printf '%s\\n' "$@" | sed 's/-/~/' | sort -V | tail -n 1; }}
found=$(sed 's/==/ /' < {PACKAGES_FILE} | while read -r name version; do
    case $name in
{cases}
        *) continue ;;
    esac
    [ "$(newest "$version" $limits)" = "$(newest $limits)" ] || echo "$name $version is newer than the base: $limits"
done)
if [ -n "$found" ]; then echo "$found"; exit 1; fi"""
