"""Who owns a box: a process, named so that a later process with the same number is not taken for it."""

import datetime as dt
import os
import socket
import subprocess
from pathlib import Path

_PROC = Path("/proc")


def owner_id() -> str:
    """The owner label of this process: `host:pid:start`."""
    return f"{socket.gethostname()}:{os.getpid()}:{process_start(os.getpid())}"


def process_start(pid: int) -> str | None:
    """When a process started, as the host writes it; None if it does not run (a zombie does not)."""
    if not (_PROC / "self").exists():
        return _start_from_ps(pid)
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The second field is the program's name in parentheses, and may itself hold blanks and parentheses; the
    # state is the third, the start in clock ticks since boot the 22nd: proc(5).
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def process_started_at(pid: int) -> float | None:
    """The same in seconds since 1970, to a second or two."""
    start = process_start(pid)
    if start is None:
        return None
    if not start.isdigit():
        return dt.datetime.strptime(start, "%a-%b-%d-%H:%M:%S-%Y").astimezone().timestamp()
    # The time of boot, proc(5).
    (boot,) = (line.split()[1] for line in (_PROC / "stat").read_text().splitlines() if line.startswith("btime "))
    return int(boot) + int(start) / os.sysconf("SC_CLK_TCK")


def _start_from_ps(pid: int) -> str | None:
    """The same where there is no /proc, as on macOS: there the engine runs elsewhere, its owner here."""
    found = subprocess.run(
        ["ps", "-o", "state=", "-o", "lstart=", "-p", str(pid)],
        env={"PATH": os.defpath, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    state, *start = found.stdout.split() or ["Z"]
    return None if state.startswith("Z") else "-".join(start)


def is_leftover(owner: str, alive_owners: frozenset[str]) -> bool:
    """Whether a box of this owner is left over; see `Sandbox.reap` for the rule."""
    if owner in alive_owners:
        return False
    host, _, process = owner.partition(":")
    if host != socket.gethostname():
        return True
    pid, _, start = process.partition(":")
    return not (pid.isdigit() and process_start(int(pid)) == start)
