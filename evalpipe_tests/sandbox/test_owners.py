"""Owners: alive, dead, another process with the same number, another host."""

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from evalpipe.sandbox.owners import _start_from_ps, is_leftover, owner_id, process_start, process_started_at

NOBODY: frozenset[str] = frozenset()


def test_this_process_owns_what_it_opened() -> None:
    assert owner_id() == owner_id()
    assert not is_leftover(owner_id(), NOBODY)


def test_a_dead_owner_left_its_boxes() -> None:
    with subprocess.Popen(["sleep", "50"]) as process:
        owner = f"{socket.gethostname()}:{process.pid}:{process_start(process.pid)}"
        assert not is_leftover(owner, NOBODY)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        # A zombie until it is waited for.
        assert is_leftover(owner, NOBODY)
    assert process_start(process.pid) is None
    assert is_leftover(owner, NOBODY)
    assert not is_leftover(owner, frozenset({owner}))


def test_another_process_with_the_same_number_is_not_the_owner() -> None:
    assert is_leftover(f"{socket.gethostname()}:{os.getpid()}:1", NOBODY)


def test_owners_of_other_hosts_must_be_named() -> None:
    assert is_leftover("elsewhere:1:1", NOBODY)
    assert not is_leftover("elsewhere:1:1", frozenset({"elsewhere:1:1"}))


def test_a_label_that_nobody_wrote_is_nobodys() -> None:
    assert is_leftover(f"{socket.gethostname()}:x", NOBODY)


def test_the_start_of_a_process_has_a_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "50"]) as process:
        assert abs((process_started_at(process.pid) or 0) - time.time()) < 5
        monkeypatch.setattr("evalpipe.sandbox.owners._PROC", tmp_path)  # as where there is no /proc
        assert abs((process_started_at(process.pid) or 0) - time.time()) < 5
        process.kill()
    assert process_started_at(process.pid) is None


def test_ps_tells_starts_apart_from_deaths() -> None:
    assert _start_from_ps(os.getpid())
    assert _start_from_ps(os.getpid()) == _start_from_ps(os.getpid())
    with subprocess.Popen(["true"]) as process:
        pass
    assert _start_from_ps(process.pid) is None
