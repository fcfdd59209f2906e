"""Runs as a program of its own: isolates one command as far as the kernel allows, and buries all its
children.

Started by `process_box` with one JSON argument (`Order`) and the command. It stands alone, imports nothing of
the package, and answers on a pipe: `fault: …` when it could not start, else `exit: N` once nothing runs any
more, or `stopped` when SIGTERM made it so. SIGUSR1 is passed on to the command as SIGTERM. A program's own
threads make `preexec_fn` unsafe; that is why this is a process.

With a process-ID namespace the kernel kills everything in it together with its first process. Without one
this process adopts orphans (`PR_SET_CHILD_SUBREAPER`) and kills its children until there are none.
"""

import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import sys
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

# Numbers from linux/prctl.h, linux/sched.h, linux/mount.h and linux/sockios.h, the same on every
# architecture.
_PR_SET_PDEATHSIG, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 24, 36, 38
_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWUSER = 0x20000, 0x4000000, 0x10000000
_CLONE_NEWPID, _CLONE_NEWNET = 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE = 0x2, 0x4, 0x8, 0x4000, 0x40000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_HIGHEST_CAPABILITY = 63
_NOT_FOUND_EXIT, _NOT_EXECUTABLE_EXIT = 127, 126

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Order:
    """What `process_box` asks for. `parent` is its process; when that is gone, so is the reason to run."""

    parent: int
    status_fd: int
    cut_network: bool
    own_process_ids: bool
    hostname: str | None
    memory_bytes: int
    file_bytes: int
    pids: int


class Fault(Exception):
    """The command could not be isolated as ordered."""


def main() -> NoReturn:
    """Carry out the order in `sys.argv`."""
    order = Order(**json.loads(sys.argv[1]))
    os.set_inheritable(order.status_fd, False)
    try:
        result = Launcher(order, sys.argv[2:]).run()
    except (Fault, OSError) as error:
        result = f"fault: {error}"
    os.write(order.status_fd, result.encode())
    sys.exit(0)


class Launcher:
    """Holds the one child of this process, for the signal handler to find."""

    def __init__(self, order: Order, command: list[str]) -> None:
        self._order, self._command = order, command
        self._child = 0
        self._stopped = False

    def run(self) -> str:
        """Run the command to its end; returns the answer for the pipe."""
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGUSR1, self._ask_to_end)
        isolate(self._order)
        # Only now, because a change of rights resets the first.
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        if os.getppid() != self._order.parent:
            raise Fault("the process that asked for this is gone")
        self._child = os.fork()
        if self._child == 0:
            for number in (signal.SIGTERM, signal.SIGUSR1):
                signal.signal(number, signal.SIG_DFL)
            if self._order.own_process_ids:
                be_init(self._order, self._command)
            execute(self._order, self._command)
        if self._stopped:
            self._kill_child()
        status = wait_for(self._child)
        kill_children()
        if self._stopped:
            return "stopped"
        if self._order.own_process_ids and os.WIFSIGNALED(status):
            return f"fault: the first process of the box was killed by signal {os.WTERMSIG(status)}"
        return f"exit: {exit_code(status)}"

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopped = True
        self._kill_child()

    def _ask_to_end(self, number: int, frame: FrameType | None) -> None:
        if self._child:
            os.kill(self._child, signal.SIGTERM)

    def _kill_child(self) -> None:
        if self._child:
            os.kill(self._child, signal.SIGKILL)


def isolate(order: Order) -> None:
    """Leave the host's name spaces, as far as ordered. Raises Fault."""
    flags = (_CLONE_NEWNET if order.cut_network else 0) | (_CLONE_NEWPID | _CLONE_NEWNS if order.own_process_ids else 0)
    flags |= _CLONE_NEWUTS if order.hostname is not None else 0
    if not flags:
        return
    uid, gid = os.geteuid(), os.getegid()
    _call("unshare", flags | (0 if uid == 0 else _CLONE_NEWUSER))
    if uid != 0:
        # Mapped to itself: a program that finds itself root behaves in other ways than the tests expect.
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
                file.write(text)
        # In a user name space of its own the limit counts just this box, elsewhere all processes of the user.
        resource.setrlimit(resource.RLIMIT_NPROC, (order.pids, order.pids))
    if order.hostname is not None:
        socket.sethostname(order.hostname)
    if order.cut_network:
        _raise_loopback()


def be_init(order: Order, command: list[str]) -> NoReturn:
    """Be the first process of the name space: see the right /proc, start the command, collect the dead."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
        _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
        child = os.fork()
    except (Fault, OSError) as error:
        os.write(order.status_fd, f"fault: {error}\n".encode())
        os._exit(_NOT_EXECUTABLE_EXIT)
    if child == 0:
        execute(order, command)
    # The kernel keeps from the first process of a name space what it does not handle.
    signal.signal(signal.SIGTERM, lambda number, frame: os.kill(child, number))
    os._exit(exit_code(wait_for(child)))


def execute(order: Order, command: list[str]) -> NoReturn:
    """Become the command, with its limits and without rights."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (order.file_bytes, order.file_bytes))
    # Of the address space only what is private and writable: runtimes reserve far more than they use.
    resource.setrlimit(resource.RLIMIT_DATA, (order.memory_bytes, order.memory_bytes))
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    for capability in range(_HIGHEST_CAPABILITY + 1):
        # Refused without the right to, or above the kernel's highest; the program then has none to lose.
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot run {command[0]}: {error.strerror}\n".encode())
        missing = isinstance(error, FileNotFoundError | NotADirectoryError)
        os._exit(_NOT_FOUND_EXIT if missing else _NOT_EXECUTABLE_EXIT)


def wait_for(child: int) -> int:
    """Collect whatever dies until this child does; returns its wait status."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def kill_children() -> None:
    """Kill all children, and those that are handed on to this process by their death, until there are
    none.
    """
    while True:
        for child in _children():
            os.kill(child, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def exit_code(status: int) -> int:
    """A wait status as a shell shows it: 128 + N for signal N."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _children() -> list[int]:
    mine, found = str(os.getpid()).encode(), []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                    stat = file.read()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if stat[stat.rindex(b")") + 2 :].split()[1] == mine:
                found.append(int(name))
    return found


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(control, _SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | _IFF_UP))


def _mount(source: str, target: str, kind: str | None, flags: int) -> None:
    encoded = None if kind is None else kind.encode()
    _call("mount", source.encode(), target.encode(), encoded, ctypes.c_ulong(flags), None)


def _prctl(option: int, value: int) -> None:
    _call("prctl", option, ctypes.c_ulong(value), 0, 0, 0)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        raise Fault(f"{name}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main()
