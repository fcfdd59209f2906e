"""What every sandbox owes its callers, checked on each kind with real processes, and what only Docker
owes.
"""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from evalpipe.sandbox import (
    DIRECTORY,
    EXECUTABLE,
    REGULAR,
    SYMLINK,
    Box,
    DockerSandbox,
    FileEntry,
    ImageMissing,
    Interrupted,
    Limits,
    Outcome,
    OutputTooLarge,
    ProcessSandbox,
    Sandbox,
    TreeLimits,
    UnsafeOutput,
    owner_id,
)

LIMITS = Limits(timeout_s=60)
TREE = TreeLimits(total_bytes=10_000_000, file_bytes=1_000_000, entries=1_000)
ODD_NAMES = [
    b"with blank",
    b"quotes'\"",
    b"new\nline",
    b"caf\xe9 not UTF-8",
    "grün".encode(),
    b"-dash",
    b"back\\slash",
    b"*?[a]",
    b"deep/\xff\xfe/er",
    b"long/" + b"n" * 200,
]


@dataclass(frozen=True)
class Place:
    """A sandbox and an environment that it knows."""

    sandbox: Sandbox
    environment: str

    def run(
        self, *command: str, files: list[FileEntry] | None = None, limits: Limits = LIMITS, env: Mapping[str, str] = {}
    ) -> Outcome:
        with self.sandbox.open(self.environment, limits, {"purpose": "test"}) as box:
            box.put(files or [])
            return box.run(command, env=env, cwd=".")

    def leftovers(self) -> int:
        """Boxes of this instance that still exist in any form."""
        if isinstance(self.sandbox, DockerSandbox):
            wanted: dict[str, str | list[str] | bool] = {"label": f"evalpipe.instance={self.sandbox.instance}"}
            client = self.sandbox.client
            return len(client.containers.list(all=True, filters=wanted)) + len(client.volumes.list(filters=wanted))
        assert isinstance(self.sandbox, ProcessSandbox)
        return len(list(self.sandbox.boxes.iterdir()))


@pytest.fixture(params=[pytest.param("docker", marks=pytest.mark.docker), "process", "bare process"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Each kind of sandbox; a bare process is one on a kernel that grants no name spaces."""
    if request.param == "docker":
        return Place(request.getfixturevalue("docker_sandbox"), request.getfixturevalue("base_image"))
    if request.param == "bare process":
        monkeypatch.setattr(ProcessSandbox, "_works", lambda sandbox, **isolation: False)
    return Place(request.getfixturevalue("process_sandbox"), "")


def python(*lines: str) -> tuple[str, ...]:
    return ("python3", "-c", "\n".join(lines))


# Running


def test_exit_code_and_streams_are_told_apart(place: Place) -> None:
    outcome = place.run("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (outcome.exit_code, outcome.stdout, outcome.stderr) == (3, b"out\n", b"err\n")
    assert not any((outcome.timed_out, outcome.out_of_memory, outcome.stdout_truncated, outcome.stderr_truncated))
    assert 0 < outcome.duration_s < 30


def test_a_signal_shows_as_128_and_its_number(place: Place) -> None:
    assert place.run("sh", "-c", "kill -SEGV $$").exit_code == 128 + 11


@pytest.mark.parametrize(("command", "exit_code"), [("no-such-program", 127), ("./data", 126)])
def test_a_command_that_cannot_be_run_is_the_programs_failure(place: Place, command: str, exit_code: int) -> None:
    outcome = place.run(command, files=[FileEntry(b"data", REGULAR, b"x")])
    assert outcome.exit_code == exit_code
    assert outcome.stderr


def test_standard_input_is_empty(place: Place) -> None:
    assert place.run("cat").exit_code == 0


def test_a_box_runs_once_and_is_read_only_afterwards(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        with pytest.raises(RuntimeError):
            box.read_file("x", 1)
        box.run(["true"], env={}, cwd=".")
        with pytest.raises(RuntimeError):
            box.run(["true"], env={}, cwd=".")
        with pytest.raises(RuntimeError):
            box.put([])


def test_a_box_that_never_runs_leaves_nothing(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put([FileEntry(b"x", REGULAR)])
    assert place.leftovers() == 0


def test_an_environment_that_is_gone_is_named(place: Place) -> None:
    missing = "sha256:" + "0" * 64 if place.sandbox.name == "docker" else "/nowhere/venv"
    with pytest.raises(ImageMissing, match=missing.removeprefix("sha256:")), place.sandbox.open(missing, LIMITS, {}):
        pass


# The environment and the working directory


def test_no_variable_of_the_host_is_visible(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALPIPE_TEST_SECRET", "hunter2")
    outcome = place.run("env", "-0", env={"GIVEN": "1"})
    names = {entry.partition("=")[0] for entry in outcome.stdout.decode().split("\0") if entry}
    assert {"GIVEN", "HOME", "PATH"} <= names
    assert names <= {"GIVEN", "HOME", "PATH", "TMPDIR", "LANG"}


def test_given_variables_arrive_as_they_are(place: Place) -> None:
    value = "a=b 'c' \"d\"\n$HOME ü"
    outcome = place.run(*python("import os, sys; sys.stdout.buffer.write(os.environb[b'V'])"), env={"V": value})
    assert outcome.stdout == value.encode()


def test_home_and_tmp_can_be_written(place: Place) -> None:
    outcome = place.run("sh", "-c", "touch $HOME/x && mktemp >/dev/null && echo done")
    assert outcome.stdout == b"done\n", outcome.stderr


@pytest.mark.parametrize("absolute", [False, True])
def test_the_working_directory_is_below_the_root(place: Place, absolute: bool) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put([FileEntry(b"sub/dir", DIRECTORY)])
        outcome = box.run(["pwd"], env={}, cwd=f"{box.root}/sub/dir" if absolute else "sub/dir")
        assert outcome.stdout.decode().strip() == f"{box.root}/sub/dir"


def test_a_working_directory_that_was_not_put_is_refused(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box, pytest.raises(ValueError, match="nowhere"):
        box.run(["pwd"], env={}, cwd="nowhere")


# Files


def test_odd_names_and_bytes_survive_both_ways(place: Place) -> None:
    files = {name: FileEntry(name, REGULAR, b"\0\r\n\xff" + name) for name in ODD_NAMES}
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put(files.values())
        outcome = box.run(python("import os", "print(sum(len(f) for _, _, f in os.walk(b'.')))"), env={}, cwd=".")
        assert outcome.stdout.strip() == str(len(files)).encode()
        assert {entry.path: entry for entry in box.read_tree(".", TREE)} == files
        for name, entry in files.items():
            assert box.read_file(name.decode("utf-8", "surrogateescape"), 10_000) == entry.data


def test_modes_and_links_survive_both_ways(place: Place) -> None:
    files = [
        FileEntry(b"plain", REGULAR, b"x"),
        FileEntry(b"tool", EXECUTABLE, b"#!/bin/sh\necho ran\n"),
        FileEntry(b"link", SYMLINK, b"plain"),
        FileEntry(b"dangling", SYMLINK, b"/no/\xffwhere\n"),
    ]
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put(files)
        assert box.run(["./tool"], env={}, cwd=".").stdout == b"ran\n"
        assert sorted(box.read_tree(".", TREE), key=lambda entry: files.index(entry)) == files


def test_later_entries_replace_earlier_ones_of_any_kind(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put([FileEntry(b"tests", SYMLINK, b"/etc"), FileEntry(b"a/b", REGULAR, b"1"), FileEntry(b"c", REGULAR)])
        box.put([FileEntry(b"tests/x", REGULAR, b"2"), FileEntry(b"a", REGULAR, b"3"), FileEntry(b"c", EXECUTABLE)])
        box.put([FileEntry(b"a/again", REGULAR, b"4")])
        box.run(["true"], env={}, cwd=".")
        assert {(entry.path, entry.mode, entry.data) for entry in box.read_tree(".", TREE)} == {
            (b"tests/x", REGULAR, b"2"),
            (b"a/again", REGULAR, b"4"),
            (b"c", EXECUTABLE, b""),
        }
    assert not Path("/etc/x").exists()


@pytest.mark.parametrize("path", [b"", b"/etc/x", b"../x", b"a/../../x", b"./x", b"a//b", b"a\0b"])
def test_a_path_that_is_not_plainly_inside_is_refused(place: Place, path: bytes) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box, pytest.raises(ValueError, match="path"):
        box.put([FileEntry(path, REGULAR)])


def test_the_program_may_change_every_file_and_directory(place: Place) -> None:
    script = "echo 2 > top && rm deep/er/old && echo new > deep/er/new && mkdir own && echo o > own/file"
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put([FileEntry(b"top", REGULAR, b"1"), FileEntry(b"deep/er/old", REGULAR)])
        outcome = box.run(["sh", "-c", script], env={}, cwd=".")
        assert outcome.exit_code == 0, outcome.stderr
        assert {entry.path: entry.data for entry in box.read_tree(".", TREE)} == {
            b"top": b"2\n",
            b"deep/er/new": b"new\n",
            b"own/file": b"o\n",
        }


HOSTILE = """
mkfifo pipe
ln -s /etc/passwd link
ln -s /etc linkdir
ln -s . loop
mkdir dir; echo inside > dir/file; ln dir/file hard; ln dir/file dir/hard
printf odd > "$(printf 'odd\\377')"; ln "$(printf 'odd\\377')" "$(printf 'odd\\377hard')"
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")'
head -c 5000 /dev/zero > large
mkdir locked; echo hidden > locked/file; chmod 000 locked/file locked
"""


@pytest.fixture
def hostile(place: Place) -> Iterator[Box]:
    """A box in which a program left everything that could lead a careless reader astray."""
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        outcome = box.run(["sh", "-ec", HOSTILE], env={}, cwd=".")
        assert outcome.exit_code == 0, outcome.stderr
        yield box


@pytest.mark.parametrize("path", ["link", "linkdir/passwd", "dir", "pipe", "socket", ".", "dir/file/below"])
def test_read_file_hands_out_regular_files_only(hostile: Box, path: str) -> None:
    with pytest.raises(UnsafeOutput):
        hostile.read_file(path, 10_000)


def test_read_file_bounds_what_it_reads(hostile: Box) -> None:
    assert hostile.read_file("large", 5000) == bytes(5000)
    with pytest.raises(OutputTooLarge, match="large"):
        hostile.read_file("large", 4999)


@pytest.mark.parametrize("path", ["absent", "dir/absent", "absent/file"])
def test_read_file_of_what_is_not_there_is_none(hostile: Box, path: str) -> None:
    assert hostile.read_file(path, 1) is None


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "dir/../../x"])
def test_reading_outside_the_root_is_refused(hostile: Box, path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        hostile.read_file(path, 10_000)


def test_read_tree_hands_out_files_and_links_and_follows_none(hostile: Box) -> None:
    entries = {entry.path: entry for entry in hostile.read_tree(".", TREE)}
    links = {path: entry.data for path, entry in entries.items() if entry.mode == SYMLINK}
    assert links == {b"link": b"/etc/passwd", b"linkdir": b"/etc", b"loop": b"."}
    files = {path: entry.data for path, entry in entries.items() if entry.mode == REGULAR}
    assert files == {
        b"dir/file": b"inside\n",
        b"dir/hard": b"inside\n",
        b"hard": b"inside\n",
        b"odd\xff": b"odd",
        b"odd\xffhard": b"odd",
        b"large": bytes(5000),
        b"locked/file": b"hidden\n",
    }


def test_hard_links_with_odd_names_can_be_read_alone(hostile: Box) -> None:
    assert hostile.read_file("odd\udcffhard", 100) == b"odd"
    assert hostile.read_file("odd\udcff", 100) == b"odd"


def test_read_tree_of_a_directory_has_paths_relative_to_it(hostile: Box) -> None:
    assert {entry.path for entry in hostile.read_tree("dir", TREE)} == {b"file", b"hard"}
    assert list(hostile.read_tree("absent", TREE)) == []


@pytest.mark.parametrize("path", ["large", "linkdir", "linkdir/ssl"])
def test_read_tree_wants_a_directory(hostile: Box, path: str) -> None:
    with pytest.raises(UnsafeOutput):
        list(hostile.read_tree(path, TREE))


@pytest.mark.parametrize(
    "limits", [TreeLimits(5000, 10_000, 100), TreeLimits(100_000, 4999, 100), TreeLimits(100_000, 10_000, 5)]
)
def test_read_tree_keeps_its_limits(hostile: Box, limits: TreeLimits) -> None:
    with pytest.raises(OutputTooLarge):
        list(hostile.read_tree(".", limits))


def test_a_program_that_removes_everything_leaves_an_empty_tree(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        box.put([FileEntry(b"d/f", REGULAR)])
        box.run(["sh", "-c", 'rm -rf "$PWD"'], env={}, cwd=".")
        assert list(box.read_tree(".", TREE)) == []
        assert box.read_file("d/f", 1) is None


def test_a_file_of_gigabytes_of_nothing_is_refused_unread(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        assert box.run(["truncate", "-s", "3G", "sparse"], env={}, cwd=".").exit_code == 0
        started = time.monotonic()
        with pytest.raises(OutputTooLarge):
            box.read_file("sparse", 1_000_000)
        with pytest.raises(OutputTooLarge):
            list(box.read_tree(".", TREE))
        assert time.monotonic() - started < 2


# Limits


@pytest.mark.slow
def test_the_deadline_ends_background_children_too(place: Place) -> None:
    script = """
        trap '' TERM HUP
        (trap '' TERM HUP; while :; do echo x; echo x >> grows; sleep 0.05; done) &
        (setsid sh -c 'while :; do echo y >> grows; sleep 0.05; done' &)
        sleep 100
    """
    limits = Limits(timeout_s=1.5)
    with place.sandbox.open(place.environment, limits, {}) as box:
        started = time.monotonic()
        outcome = box.run(["sh", "-c", script], env={}, cwd=".")
        assert time.monotonic() - started < 10
        assert outcome.timed_out
        assert outcome.exit_code is None
        assert outcome.stdout.startswith(b"x\n")
        before = box.read_file("grows", 1_000_000)
        time.sleep(0.3)
        assert before == box.read_file("grows", 1_000_000)


def test_daemons_end_with_the_command(place: Place) -> None:
    script = "(setsid sh -c 'while :; do echo y >> grows; sleep 0.02; done' &); sleep 0.3; exit 5"
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        started = time.monotonic()
        outcome = box.run(["sh", "-c", script], env={}, cwd=".")
        assert outcome.exit_code == 5
        assert time.monotonic() - started < 10
        before = box.read_file("grows", 1_000_000)
        assert before
        time.sleep(0.2)
        assert before == box.read_file("grows", 1_000_000)


def test_memory_is_limited(place: Place) -> None:
    limits = Limits(timeout_s=30, memory_bytes=128 * 1024**2)
    outcome = place.run(*python("x = bytearray(400 * 1024**2)", "print(len(x))"), limits=limits)
    assert outcome.exit_code not in (0, None)
    assert outcome.stdout == b""
    # A process's own limit proves nothing about why it ended.
    assert outcome.out_of_memory is (place.sandbox.name == "docker")


def test_a_program_that_survives_a_killed_child_is_not_out_of_memory(place: Place) -> None:
    limits = Limits(timeout_s=30, memory_bytes=128 * 1024**2)
    outcome = place.run("sh", "-c", "python3 -c 'bytearray(400 * 1024**2)'; exit 0", limits=limits)
    assert (outcome.exit_code, outcome.out_of_memory) == (0, False)


def test_much_output_is_bounded_and_quick(place: Place) -> None:
    limits = Limits(timeout_s=60, output_bytes=1000)
    script = "head -c 50000000 /dev/zero; printf end; head -c 50000000 /dev/zero >&2; printf END >&2"
    tracemalloc.start()
    started = time.monotonic()
    outcome = place.run("sh", "-c", script, limits=limits)
    duration, (_, peak) = time.monotonic() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert outcome.stdout == bytes(997) + b"end"
    assert outcome.stderr == bytes(997) + b"END"
    assert outcome.stdout_truncated
    assert outcome.stderr_truncated
    assert peak < 5_000_000
    assert duration < 10


def test_a_flood_on_one_stream_does_not_cost_the_other(place: Place) -> None:
    outcome = place.run("sh", "-c", "echo important; head -c 30000000 /dev/zero >&2")
    assert outcome.stdout == b"important\n"
    assert not outcome.stdout_truncated


def test_the_host_network_is_out_of_reach(place: Place) -> None:
    if isinstance(place.sandbox, ProcessSandbox) and not place.sandbox.cuts_network:
        assert "WITH the host's network" in place.sandbox.describe().isolation
        pytest.skip("this kernel does not let the process sandbox cut the network")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        connect = f"socket.create_connection(('127.0.0.1', {port}), timeout=5)"
        outcome = place.run(*python("import socket", connect))
    assert outcome.exit_code == 1
    assert b"ConnectionRefusedError" in outcome.stderr


def test_a_box_with_the_network_reaches_what_the_machine_reaches(place: Place) -> None:
    # To a documentation address (RFC 5737): to connect a datagram socket takes a route, and sends nothing.
    connect = python("import socket", "socket.socket(type=socket.SOCK_DGRAM).connect(('198.51.100.7', 9))")
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        if probe.connect_ex(("198.51.100.7", 9)) != 0:
            pytest.skip("this machine has no network itself")
    with place.sandbox.open(place.environment, LIMITS, {}, network=True) as box:
        outcome = box.run(connect, env={}, cwd=".")
    assert outcome.exit_code == 0, outcome.stderr
    cut_off = place.run(*connect)
    if not isinstance(place.sandbox, ProcessSandbox) or place.sandbox.cuts_network:
        assert b"Network is unreachable" in cut_off.stderr


@pytest.mark.parametrize("network", [False, True])
def test_a_box_has_the_hostname_that_it_was_given(place: Place, network: bool) -> None:
    own_name = place.run("uname", "-n").stdout.decode().strip()
    with place.sandbox.open(place.environment, LIMITS, {}, network=network, hostname="elsewhere") as box:
        found = box.run(["uname", "-n"], env={}, cwd=".").stdout.decode().strip()
    if isinstance(place.sandbox, ProcessSandbox):
        assert own_name == socket.gethostname()
        assert found == ("elsewhere" if "own process IDs" in place.sandbox.describe().isolation else own_name)
    else:
        assert (own_name, found) == ("box", "elsewhere")
    assert place.run("uname", "-n").stdout.decode().strip() == own_name


def test_loopback_inside_the_box_works(place: Place) -> None:
    talk = "c = socket.create_connection(s.getsockname(), 5); s.accept()[0].send(b'hi'); print(c.recv(2))"
    outcome = place.run(*python("import socket", "s = socket.create_server(('127.0.0.1', 0))", talk))
    assert outcome.stdout == b"b'hi'\n", outcome.stderr


def test_no_rights_are_left(place: Place) -> None:
    outcome = place.run("cat", "/proc/self/status")
    status = dict(line.split(":\t", 1) for line in outcome.stdout.decode().splitlines() if ":\t" in line)
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    assert status["NoNewPrivs"] == "1"


@pytest.mark.slow
def test_eight_boxes_side_by_side_do_not_mix(place: Place) -> None:
    def one(number: int) -> bytes:
        with place.sandbox.open(place.environment, LIMITS, {"task": str(number)}) as box:
            box.put([FileEntry(b"number", REGULAR, str(number).encode())])
            outcome = box.run(["sh", "-c", "sleep 0.2; cat number; cat number > out"], env={}, cwd=".")
            assert outcome.exit_code == 0
            return outcome.stdout + (box.read_file("out", 10) or b"")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(16))) == [str(number).encode() * 2 for number in range(16)]
    assert place.leftovers() == 0


# Cleaning up


@pytest.mark.parametrize("script", ["exit 0", "exit 1", "mkdir -p a/b && chmod 000 a"])
def test_nothing_is_left_after_a_run(place: Place, script: str) -> None:
    place.run("sh", "-c", script, files=[FileEntry(b"d/f", REGULAR)])
    assert place.leftovers() == 0


def test_nothing_is_left_after_a_very_deep_tree(place: Place) -> None:
    dig = "import os\nfor _ in range(1500):\n    os.mkdir('d'); os.chdir('d')"
    assert place.run("python3", "-c", dig).exit_code == 0
    assert place.leftovers() == 0


def test_nothing_is_left_after_an_exception_in_the_with_block(place: Place) -> None:
    def stop_in_the_middle() -> None:
        with place.sandbox.open(place.environment, LIMITS, {}) as box:
            box.run(["true"], env={}, cwd=".")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_in_the_middle()
    assert place.leftovers() == 0


@pytest.mark.slow
def test_an_exception_of_a_signal_handler_ends_the_run(place: Place) -> None:
    """This is how Dagster cancels: its handler raises in the main thread."""

    class Cancelled(BaseException):
        pass

    def cancel(number: int, frame: object) -> None:
        raise Cancelled

    seconds = f"61.{time.monotonic_ns() % 1_000_000}"
    before = signal.signal(signal.SIGUSR1, cancel)
    timer = threading.Timer(1.2, os.kill, (os.getpid(), signal.SIGUSR1))
    timer.start()
    started = time.monotonic()
    try:
        with pytest.raises(Cancelled):
            place.run("sh", "-c", f"sleep {seconds} & sleep {seconds}")
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert time.monotonic() - started < 10
    assert place.leftovers() == 0
    assert subprocess.run(["pgrep", "-f", seconds], check=False, capture_output=True).stdout == b""


@pytest.mark.slow
def test_kill_ends_a_run_by_its_labels_and_no_other(place: Place) -> None:
    results: dict[str, str] = {}

    def run(label: str, seconds: float) -> None:
        with place.sandbox.open(place.environment, LIMITS, {"run": label, "task": "t"}) as box:
            try:
                results[label] = str(box.run(["sleep", str(seconds)], env={}, cwd=".").exit_code)
            except Interrupted:
                results[label] = "interrupted"

    threads = [threading.Thread(target=run, args=("doomed", 50)), threading.Thread(target=run, args=("other", 3))]
    for thread in threads:
        thread.start()
    time.sleep(1)
    started = time.monotonic()
    assert place.sandbox.kill({"run": "doomed"}) == 1
    threads[0].join(10)
    assert time.monotonic() - started < 5
    threads[1].join(30)
    assert results == {"doomed": "interrupted", "other": "0"}
    assert place.sandbox.kill({"run": "doomed"}) == 0


def test_a_box_killed_before_it_runs_does_not_run(place: Place) -> None:
    with place.sandbox.open(place.environment, LIMITS, {"run": "early"}) as box:
        assert place.sandbox.kill({"run": "early"}) == 1
        with pytest.raises(Interrupted):
            box.run(["true"], env={}, cwd=".")


def start_owner(place: Place, instance: str) -> subprocess.Popen[bytes]:
    """Another process that opens a box in `instance`, and says so when its command runs."""
    if isinstance(place.sandbox, ProcessSandbox):
        make = f"ProcessSandbox({instance!r}, pathlib.Path({str(place.sandbox.boxes.parent)!r}))"
    else:
        make = f"DockerSandbox({instance!r})"
    code = f"""
        import pathlib, threading, time
        from evalpipe.sandbox import *
        sandbox = {make}
        with sandbox.open({place.environment!r}, Limits(timeout_s=60), {{"run": "theirs"}}) as box:
            def say():
                time.sleep(1.5)
                print("running", flush=True)
            threading.Thread(target=say, daemon=True).start()
            try:
                box.run(["sh", "-c", "setsid sleep 61 & sleep 61"], env={{}}, cwd=".")
            except Interrupted:
                print("interrupted", flush=True)
    """
    owner = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"running\n"
    return owner


def own_instance(place: Place) -> str:
    assert isinstance(place.sandbox, DockerSandbox | ProcessSandbox)
    return place.sandbox.instance


@pytest.mark.slow
def test_kill_reaches_the_boxes_of_other_processes(place: Place) -> None:
    with start_owner(place, own_instance(place)) as owner:
        assert place.sandbox.kill({"run": "theirs"}) == 1
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"interrupted\n"
        assert owner.wait(20) == 0
    assert place.leftovers() == 0


@pytest.mark.slow
def test_reap_removes_only_what_dead_owners_left_in_its_own_instance(place: Place) -> None:
    foreign = f"{own_instance(place)}-foreign"
    with start_owner(place, own_instance(place)) as dead, start_owner(place, foreign) as dead_elsewhere:
        dead.kill()
        dead_elsewhere.kill()
    with start_owner(place, own_instance(place)) as alive:
        assert place.sandbox.reap([]) == 1
        assert place.sandbox.reap([owner_id()]) == 0
        assert place.sandbox.kill({"run": "theirs"}) == 1
        assert alive.wait(20) == 0
    if isinstance(place.sandbox, ProcessSandbox):
        elsewhere: Sandbox = ProcessSandbox(foreign, place.sandbox.boxes.parent)
    else:
        elsewhere = DockerSandbox(foreign)
    assert elsewhere.reap([]) == 1
    if isinstance(elsewhere, DockerSandbox):
        elsewhere.client.close()
    assert place.leftovers() == 0


def test_facts_describe_the_machine(place: Place) -> None:
    facts = place.sandbox.describe()
    assert facts.name == place.sandbox.name
    assert facts.cpus >= 1
    assert facts.memory_bytes > 2**28
    assert "capabilities" in facts.isolation
