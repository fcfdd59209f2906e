"""What a change asks for beyond its base, for tools that keep versions side by side: they fetch once more for it.

The manifests that the change alters are laid over a copy of the base's tree, and the tool is asked to fetch what that
copy wants. Nothing else of the change is there, and the copy is gone before the image is made.
"""

import os
import shlex
from collections.abc import Collection, Mapping

from evalpipe.environments.recipe import Project

_LAID = "/tmp/evalpipe-change"
_COPY = "/tmp/evalpipe-with-change"


def altered_files(project: Project, deciding: Collection[bytes]) -> dict[bytes, bytes]:
    """Those of `deciding`, paths of the change's tree, that the change adds or alters, with their content there."""
    if project.change is None:
        return {}
    return {path: project.change.read(path) for path in sorted(set(deciding).intersection(project.change.altered))}


def laid_files(altered: Mapping[bytes, bytes]) -> dict[str, bytes]:
    """The files of a recipe from which `fetching_again` makes the copy."""
    return {f"{_LAID}/{os.fsdecode(path)}": data for path, data in altered.items()}


def fetching_again(script: str) -> str:
    """A step that runs `script` at the top of the copy. It fails when the script does, and its first line says why."""
    return "\n".join(
        [
            "# what the change asks for beyond its base",
            f"echo {shlex.quote('evalpipe: fetching what the change asks for beyond its base')}",
            f"cp -R . {_COPY}",
            f"cp -R {_LAID}/. {_COPY}",
            "(",
            f"cd {_COPY}",
            script,
            ")",
        ]
    )
