"""Which files that the installation of a project wrote into its tree stay for the tests, and how they are moved."""

import shlex
from collections.abc import Collection, Sequence

from evalpipe.history.objects import folders_above
from evalpipe.history.paths import compiled_globs
from evalpipe.sandbox.paths import as_bytes, as_text


def kept_paths(found: Collection[bytes], tree: Collection[bytes], keeps: Sequence[str]) -> list[bytes]:
    """What of `found` the tree does not have and `keeps` names: whole folders where they are all new, else files.

    All paths are from the top of the tree; `found` are the files and links that lie there after the last step.
    """
    if not keeps:
        return []
    pattern = compiled_globs(keeps)
    wanted = {path for path in found if path not in tree and pattern.match(path)}
    # A folder with anything in it that is not wanted cannot be moved as one.
    mixed = {folder for path in {*found, *tree} - wanted for folder in folders_above(path)}
    kept = set()
    for path in wanted:
        whole = [folder for folder in folders_above(path) if folder not in mixed]
        kept.add(whole[-1] if whole else path)
    return sorted(kept)


def moving_script(paths: Sequence[bytes], target: str) -> bytes:
    """A shell script that moves `paths` of the current folder below the folder `target`, with the folders above."""
    folders = sorted({path.rpartition(b"/")[0] for path in paths})
    lines = [f"mkdir -p {shlex.quote(target)}/{shlex.quote(as_text(folder))}" for folder in folders]
    lines += [f"mv ./{shlex.quote(as_text(path))} {shlex.quote(target)}/{shlex.quote(as_text(path))}" for path in paths]
    # Tests run as somebody else than the builder, and some backends close their folders to others.
    lines += [f"chmod -R a+rX {shlex.quote(target)}"] if paths else []
    return as_bytes("\n".join([*lines, ""]))
