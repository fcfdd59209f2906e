"""What no command in a sandbox gets past: its limits, the network, the rights that it has not."""

import socket
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from evalpipe.sandbox import REGULAR, FileEntry, Limits, ProcessSandbox
from evalpipe_tests.conformance.sandboxes.places import LIMITS, Place, python

pytestmark = pytest.mark.slow


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


def test_a_command_whose_time_is_up_may_write_down_what_it_has(place: Place) -> None:
    limits = Limits(timeout_s=1, grace_s=20)
    heard = place.run("sh", "-c", "trap 'echo saved; exit 3' TERM; while :; do sleep 0.1; done", limits=limits)
    assert heard.timed_out
    assert heard.exit_code is None
    assert heard.stdout == b"saved\n"
    assert heard.duration_s < 15
    limits = Limits(timeout_s=1, grace_s=1)
    deaf = place.run("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done", limits=limits)
    assert deaf.timed_out
    assert 2 <= deaf.duration_s < 15


@dataclass
class SilenceWatch:
    """Ends what has written nothing for two seconds, once it has begun to."""

    seen: list[tuple[float, float]] = field(default_factory=list)
    heard: bytes = b""

    def saw(self, output: bytes) -> None:
        self.heard += output

    def is_over(self, elapsed_s: float, silent_s: float) -> bool:
        self.seen.append((elapsed_s, silent_s))
        return bool(self.heard) and silent_s > 2


def test_a_watch_ends_what_is_silent_and_not_what_writes(place: Place) -> None:
    watch = SilenceWatch()
    with place.sandbox.open(place.environment, LIMITS, {}) as box:
        script = "for i in 1 2 3 4 5 6 7 8; do echo $i; echo no >&2; sleep 0.5; done; sleep 100"
        outcome = box.run(["sh", "-c", script], env={}, cwd=".", watch=watch)
    assert outcome.timed_out
    assert outcome.exit_code is None
    assert outcome.stdout.endswith(b"8\n")
    assert watch.heard == outcome.stdout
    assert 4 < outcome.duration_s < 20
    assert all(silent <= elapsed for elapsed, silent in watch.seen)
    assert len(watch.seen) >= 3


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
