"""What every sandbox leaves behind, however a run ends: nothing."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from evalpipe.sandbox import REGULAR, DockerSandbox, FileEntry, Interrupted, ProcessSandbox, Sandbox, owner_id
from evalpipe_tests.conformance.sandboxes.places import LIMITS, Place

# Each takes a fraction of a second, and all of them together too long for `make check`.
pytestmark = pytest.mark.slow


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
