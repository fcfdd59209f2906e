"""Who owns a box: a process, named so that a later process with the same number is not taken for it."""

import os
import socket
from pathlib import Path


def owner_id(pid: int | None = None) -> str:
    """The owner label of a process (default: this one): `host:pid:start`, start in clock ticks since boot.

    Raises ProcessLookupError when there is no such process.
    """
    number = os.getpid() if pid is None else pid
    start = process_start(number)
    if start is None:
        raise ProcessLookupError(f"there is no process {number}")
    return f"{socket.gethostname()}:{number}:{start}"


def process_start(pid: int) -> int | None:
    """Start time of a process in clock ticks since boot (field 22 of proc(5) stat); None if it does not
    run.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses, and may itself hold blanks and parentheses.
    fields = stat[stat.rindex(b")") + 2 :].split()
    state, start = fields[0], fields[19]
    return None if state in (b"Z", b"X") else int(start)


def is_leftover(owner: str, alive_owners: frozenset[str]) -> bool:
    """Whether a box of this owner is left over; see `Sandbox.reap` for the rule."""
    host, _, process = owner.partition(":")
    if owner in alive_owners:
        return False
    if host != socket.gethostname():
        return True
    pid, _, start = process.partition(":")
    return not (pid.isdigit() and str(process_start(int(pid))) == start)
