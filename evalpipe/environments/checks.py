"""Checks of an image before it is used: what would hand an agent the answer must not be in it.

A released copy of the project itself has the change, and so has a git repository that holds the change's commit, such
as a dependency's clone of the project. Other repositories may lie in an image: they do no harm.
"""

import shlex
from collections.abc import Collection, Sequence

from evalpipe.environments.build_container import BuildContainer, StepFailed
from evalpipe.environments.recipe import TREE_FOLDER
from evalpipe.sandbox.paths import as_text

_INDEX_BYTES = 1024**3
_LISTING = "find / -xdev \\( -path '*/objects/pack/*.idx' -o -path '*/objects/[0-9a-f][0-9a-f]/*' \\) -type f -print0"


def forbidden_paths_script(patterns: Sequence[str]) -> str:
    """A script for `Recipe.check` that fails, and names them, when files match any of `patterns` outside of the tree.

    Patterns are those of `find -path`: `*` spans folders too. Links are not followed.
    """
    wanted = " -o ".join(f"-path {shlex.quote(pattern)}" for pattern in patterns)
    return (
        f"found=$(find / -xdev -path {TREE_FOLDER} -prune -o \\( {wanted} \\) -print)\n"
        'if [ -n "$found" ]; then echo "$found" | head -n 20; exit 1; fi'
    )


def released_copies(container: BuildContainer, script: str) -> str:
    """What a recipe's own check says of released copies of the project; empty when it finds none."""
    output = bytearray()
    try:
        container.run(f"exec 2>&1\n{script}", folder=TREE_FOLDER, capture=output.extend)
    except StepFailed:
        said = output.decode(errors="replace").strip()
        return f"a released copy of the project is in the image:\n{said}"
    return ""


def newer_commits(container: BuildContainer, commits: Collection[str]) -> str:
    """Where git objects lie that have one of these commits (full ids); empty when there are none."""
    if not commits:
        return ""
    listing = bytearray()
    container.run(_LISTING, capture=listing.extend)
    ids = {bytes.fromhex(commit) for commit in commits}
    for path in bytes(listing).split(b"\0")[:-1]:
        name = as_text(path)
        if path.endswith(b".idx"):
            # An index has the ids of its pack as they are: https://git-scm.com/docs/gitformat-pack
            index = container.read(name, _INDEX_BYTES) or b""
            found = any(commit in index for commit in ids)
        else:
            folder, _, rest = path.rpartition(b"/")
            found = as_text(folder[-2:] + rest) in commits
        if found:
            return f"a git repository in the image has commits that are newer than the base: {name}"
    return ""
