"""Attempts side by side: fewer after a rate limit, slowly more in quiet times."""

import subprocess
import sys
import threading
from pathlib import Path

from evalpipe.gateway import CallResult, Gateway, WireForm
from evalpipe.gateway.concurrency import AdaptiveLimit, place_among_processes
from evalpipe_tests.gateway.asking import ask, provider
from evalpipe_tests.model_replies import Fail
from evalpipe_tests.model_server import ModelServer


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_the_limit_is_halved_once_for_one_burst_and_raised_by_one_for_each_quiet_minute() -> None:
    clock = Clock()
    limit = AdaptiveLimit(8, settle_s=20, raise_s=60, clock=clock)
    for _ in range(5):
        limit.report(CallResult.RATE_LIMITED)
    assert limit.limit == 4
    clock.now += 30
    limit.report(CallResult.RATE_LIMITED)
    assert limit.limit == 2
    clock.now += 59
    assert limit.limit == 2
    clock.now += 1
    assert limit.limit == 3
    clock.now += 3600
    assert limit.limit == 8


def test_it_never_falls_below_one_and_other_faults_do_not_lower_it() -> None:
    clock = Clock()
    limit = AdaptiveLimit(2, clock=clock)
    for result in (CallResult.OK, CallResult.PROVIDER_ERROR, CallResult.USAGE_LIMIT, CallResult.SILENT):
        limit.report(result)
    assert limit.limit == 2
    for _ in range(4):
        clock.now += 30
        limit.report(CallResult.RATE_LIMITED)
    assert limit.limit == 1


def test_no_more_run_side_by_side_than_the_limit() -> None:
    limit = AdaptiveLimit(2)
    both, third = threading.Barrier(3), threading.Event()
    leave = threading.Event()

    def hold() -> None:
        with limit.slot():
            both.wait(5)
            leave.wait(5)

    def late() -> None:
        with limit.slot():
            third.set()

    holders = [threading.Thread(target=hold) for _ in range(2)]
    for thread in holders:
        thread.start()
    both.wait(5)
    waiting = threading.Thread(target=late)
    waiting.start()
    assert not third.wait(0.1)
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


def test_processes_share_the_places_of_a_provider_and_a_killed_one_holds_none(tmp_path: Path) -> None:
    holding = (
        "import sys, time; from pathlib import Path; from evalpipe.gateway.concurrency import place_among_processes\n"
        f"with place_among_processes(Path({str(tmp_path)!r}), 2): print('held', flush=True); time.sleep(60)"
    )
    others = [subprocess.Popen([sys.executable, "-c", holding], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for other in others:
            assert other.stdout is not None
            assert other.stdout.readline() == b"held\n"
        got = threading.Event()

        def wait_for_one() -> None:
            with place_among_processes(tmp_path, 2):
                got.set()

        waiting = threading.Thread(target=wait_for_one)
        waiting.start()
        assert not got.wait(0.6)
        others[0].kill()
        assert got.wait(10)
        waiting.join()
    finally:
        for other in others:
            other.kill()
            other.wait()
            assert other.stdout is not None
            other.stdout.close()
