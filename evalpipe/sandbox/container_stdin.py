"""Files that a container lays itself, from a tar archive on its standard input.

The engine's own way (`PUT archive`) starts a program of the engine for each archive, and mounts the container's files
for it: 0.09 s of a processor, more than the start of a small container. What is laid so needs GNU tar in the image and
a root that its user may write to; images that evalpipe built say by a label that they have both.
"""

import os
import re
import secrets
from collections.abc import Iterable, Sequence
from functools import partial
from typing import IO

from evalpipe.sandbox.attachment import Attachment
from evalpipe.sandbox.box import Outcome
from evalpipe.sandbox.errors import DiskFull, EngineFault

FILLS_ITSELF = "evalpipe.fills_itself"
"""The label of images in which this works."""
HAS_GNU_TAR = "tar --version 2> /dev/null | grep -q 'GNU tar'"
"""A script that fails in images without it."""

_NAME = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_FAILED_EXIT = 125
_CHUNK = 1 << 20
# The token is read and not passed on, so that no command can say that it was not laid. What the shell adds to the
# environment goes again. The input has no end of its own, as the output comes on the same connection.
_SCRIPT = f"""read -r token size
head -c "$size" | tar -xpf - -C "$0" || {{ echo "$token" >&2; exit {_FAILED_EXIT}; }}
cd "$1" || {{ echo "$token" >&2; exit {_FAILED_EXIT}; }}
shift
unset PWD OLDPWD
exec "$@" < /dev/null"""


def passes_a_shell(environment: Iterable[str]) -> bool:
    """Whether all of an environment (`NAME=value`) is what a command below a shell gets too: shells drop odd names."""
    return all(_NAME.fullmatch(entry.partition("=")[0]) for entry in environment)


class StdinArchive:
    """The archive of one container: its command is `wrapped`, and `send` comes after its start."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(16).encode()

    def wrapped(self, command: Sequence[str], root: str, directory: str) -> list[str]:
        """The command that lays the archive at `root` and then is `command` in `directory`."""
        return ["/bin/sh", "-c", _SCRIPT, root, directory, *command]

    def send(self, attachment: Attachment, archive: IO[bytes]) -> None:
        """Send the archive. A container that has ended meanwhile takes no more, and says why."""
        size = archive.seek(0, os.SEEK_END)
        archive.seek(0)
        attachment.send([b"%s %d\n" % (self._token, size)])
        attachment.send(iter(partial(archive.read, _CHUNK), b""))

    def require_laid(self, outcome: Outcome) -> None:
        """Raise DiskFull or EngineFault when the command never began, because its files could not be laid."""
        if outcome.exit_code != _FAILED_EXIT or self._token not in outcome.stderr:
            return
        said = outcome.stderr.replace(self._token, b"").decode(errors="replace").strip()[-500:]
        if "no space left on device" in said.lower():
            raise DiskFull(f"cannot lay the files of a box: the engine's disk is full; free some space ({said})")
        raise EngineFault(f"cannot lay the files of a box: {said}")
