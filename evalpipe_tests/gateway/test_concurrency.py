"""Attempts side by side: fewer after a rate limit, slowly more in quiet times."""

import subprocess
import sys
import threading
from pathlib import Path

from evalpipe.gateway import CallResult, Gateway, WireForm
from evalpipe.gateway.concurrency import ProviderPlaces
from evalpipe_tests.gateway.asking import ask, provider
from evalpipe_tests.model_replies import Fail
from evalpipe_tests.model_server import ModelServer


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_limit_is_halved_once_for_one_burst_and_raised_by_one_for_each_quiet_minute(tmp_path: Path) -> None:
    clock = Clock()
    places = ProviderPlaces(tmp_path, 8, settle_s=20, raise_s=60, clock=clock)
    for _ in range(5):
        places.report(CallResult.RATE_LIMITED)
    assert places.limit == 4
    clock.now += 30
    places.report(CallResult.RATE_LIMITED)
    assert places.limit == 2
    clock.now += 59
    assert places.limit == 2
    clock.now += 1
    assert places.limit == 3
    clock.now += 3600
    assert places.limit == 8
    places.report(CallResult.RATE_LIMITED)
    assert places.limit == 4


def test_it_never_falls_below_one_and_other_faults_do_not_lower_it(tmp_path: Path) -> None:
    clock = Clock()
    places = ProviderPlaces(tmp_path, 2, clock=clock)
    for result in (CallResult.OK, CallResult.PROVIDER_ERROR, CallResult.USAGE_LIMIT, CallResult.SILENT):
        places.report(result)
    assert places.limit == 2
    for _ in range(4):
        clock.now += 30
        places.report(CallResult.RATE_LIMITED)
    assert places.limit == 1


def test_a_clock_that_was_set_back_and_a_lower_ceiling_leave_a_limit_that_holds(tmp_path: Path) -> None:
    clock = Clock()
    ProviderPlaces(tmp_path, 8, clock=clock).report(CallResult.RATE_LIMITED)
    clock.now -= 500
    lower = ProviderPlaces(tmp_path, 3, clock=clock)
    assert lower.limit == 3
    lower.report(CallResult.RATE_LIMITED)
    clock.now += 30
    lower.report(CallResult.RATE_LIMITED)
    assert lower.limit == 1


def test_no_more_run_side_by_side_than_the_limit(tmp_path: Path) -> None:
    places = ProviderPlaces(tmp_path, 2)
    both, third = threading.Barrier(3), threading.Event()
    leave = threading.Event()

    def hold() -> None:
        with places.slot():
            both.wait(5)
            leave.wait(5)

    def late() -> None:
        with places.slot():
            third.set()

    holders = [threading.Thread(target=hold) for _ in range(2)]
    for thread in holders:
        thread.start()
    both.wait(5)
    waiting = threading.Thread(target=late)
    waiting.start()
    assert not third.wait(0.3)
    leave.set()
    assert third.wait(5)
    for thread in (*holders, waiting):
        thread.join()


def test_a_rate_limit_at_one_provider_lowers_its_own_limit_and_no_other() -> None:
    form = WireForm.ANTHROPIC_MESSAGES
    with ModelServer([Fail(429)]) as server:
        providers = [provider(server.url, form, concurrency=4), provider(server.url, form, name="other", concurrency=4)]
        with Gateway(providers) as gateway:
            with gateway.open_attempt("a", "test") as attempt:
                ask(attempt, form)
            assert (gateway.concurrency("test"), gateway.concurrency("other")) == (2, 4)


def test_what_one_process_learns_of_a_provider_holds_for_all_and_a_killed_one_holds_no_place(tmp_path: Path) -> None:
    holding = (
        "import sys, time; from pathlib import Path; from evalpipe.gateway.concurrency import ProviderPlaces\n"
        "from evalpipe.gateway import CallResult\n"
        f"places = ProviderPlaces(Path({str(tmp_path)!r}), 4)\n"
        "with places.slot():\n"
        "    print('held', flush=True); sys.stdin.readline(); places.report(CallResult.RATE_LIMITED)\n"
        "    print('limited', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", holding]
    others = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for other in others:
            _hears(other, b"held\n")
        places = ProviderPlaces(tmp_path, 4)
        with places.slot():
            pass
        assert others[0].stdin is not None
        others[0].stdin.write(b"\n")
        others[0].stdin.flush()
        _hears(others[0], b"limited\n")
        assert places.limit == 2
        got = threading.Event()

        def wait_for_one() -> None:
            with places.slot():
                got.set()

        waiting = threading.Thread(target=wait_for_one)
        waiting.start()
        assert not got.wait(0.6)
        others[1].kill()
        assert got.wait(10)
        waiting.join()
    finally:
        for other in others:
            other.kill()
            other.communicate()


def _hears(other: subprocess.Popen[bytes], line: bytes) -> None:
    assert other.stdout is not None
    assert other.stdout.readline() == line
