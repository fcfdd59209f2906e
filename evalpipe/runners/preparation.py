"""What an image lays into a tree before anything runs there: for the tests, and for an agent that wants to run them."""

import shlex
from collections.abc import Sequence

INSTALLED_FOLDER = "/opt/evalpipe/installed"
"""In an image: what the installation of the project wrote into its tree, such as a version module."""

PREPARE_SCRIPT = "/opt/evalpipe/prepare"
"""In an image: a script that lays what its tools have to write beside the tree, such as a filled compiler cache."""

LAYS_FILES = "evalpipe.lays_files"
"""The label by which an image says whether it has either: `yes` or `no`."""

HAS_FILES_TO_LAY = f"[ -d {INSTALLED_FOLDER} ] || [ -f {PREPARE_SCRIPT} ]"
"""A script that fails in images with neither."""

PREPARATION_FAILED = 97
"""Exit code of the run when a command that prepares the tree failed."""


def preparation_script(commands: Sequence[str], listing: str | None = None, end: str = 'exec "$@"\n') -> bytes:
    """A shell script that prepares the tree in the working directory, and then becomes the command in its arguments.

    `commands` are the team's own. `listing` is a file for the names of all that is in the tree then, each with a NUL at
    its end; it is written only where the image has laid something. `end` is what the script does with its arguments.
    """
    failed = f"|| exit {PREPARATION_FAILED}"
    # What the tree has itself is newer than what the installation wrote.
    lines = [f"[ ! -d {INSTALLED_FOLDER} ] || cp -Rn {INSTALLED_FOLDER}/. . {failed}"]
    lines += [f"[ ! -f {PREPARE_SCRIPT} ] || /bin/sh -e {PREPARE_SCRIPT} {failed}"]
    lines += [f"/bin/sh -ec {shlex.quote(command)} {failed}" for command in commands]
    if listing is not None:
        found = f"find . -path ./.git -prune -o '(' -type f -o -type l ')' -print0 > {shlex.quote(listing)}"
        lines += [f"if {HAS_FILES_TO_LAY}; then {found} {failed}; fi"]
    return "\n".join([*lines, end]).encode()
