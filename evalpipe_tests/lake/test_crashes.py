"""What a kill, a full disk or a second process can do to the lake: nothing that a reader sees."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalpipe.lake import BlobStore, DiskFullError, Lake, write_atomically
from evalpipe_tests.lake.rows import verdict

WRITER = """
    import sys, itertools
    from pathlib import Path
    from evalpipe.lake import Lake
    from evalpipe_tests.lake.rows import verdict
    lake = Lake(Path(sys.argv[1]))
    for number in itertools.count():
        lake.write("verdicts", [verdict(str(number), detail=str(number) * 50)] * 200, "aa", "key")
        if number == 0:
            print("ready", flush=True)
"""


def _start(program: str, *arguments: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def _wait_for_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline().strip()


@pytest.mark.slow
def test_a_reader_beside_a_writer_that_is_killed_sees_whole_partitions_only(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    chance = random.Random(1)
    for _ in range(6):
        writer = _start(WRITER, tmp_path)
        try:
            assert _wait_for_line(writer) == b"ready"
            until = time.monotonic() + chance.uniform(0.01, 0.2)
            while time.monotonic() < until:
                _assert_whole(lake)
        finally:
            writer.kill()
            writer.wait()
        _assert_whole(lake)


def test_a_writer_that_is_killed_at_any_system_call_leaves_the_old_file_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    seen = set()
    for step in range(12):
        write_atomically(path, b"old")
        child = os.fork()
        if child == 0:
            _die_at_system_call(step)
            write_atomically(path, b"new" * 100_000)
            os._exit(0)
        os.waitpid(child, 0)
        content = path.read_bytes()
        assert content in (b"old", b"new" * 100_000)
        seen.add(content)
    assert len(seen) == 2


def _die_at_system_call(step: int) -> None:
    """Let the process kill itself at the step-th of its calls that open, write, flush, rename or close."""
    calls = iter(range(step + 1))

    def hook(name: str, arguments: object) -> None:
        if name in ("open", "os.rename", "os.mkdir", "os.listdir") and next(calls, None) == step:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    real = os.fsync

    def fsync(descriptor: int) -> None:
        hook("open", ())
        real(descriptor)

    setattr(os, "fsync", fsync)  # noqa: B010  # in the child only: fsync has no audit event


def _assert_whole(lake: Lake) -> None:
    rows = lake.rows("verdicts", "aa", "key")
    assert len(rows) == 200
    assert len({row["verdict_key"] for row in rows}) == 1
    assert rows[0]["detail"] == rows[0]["verdict_key"] * 50
    assert lake.read("verdicts").num_rows == 200


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB; where mounting is not allowed, the test is skipped."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k,nr_inodes=40", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this user cannot mount a file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_is_named_and_leaves_the_old_file(tiny_disk: Path) -> None:
    path = tiny_disk / "file"
    write_atomically(path, b"old" * 1000)
    with pytest.raises(DiskFullError, match=f"no room to write {path}: free some space"):
        write_atomically(path, b"n" * 300_000)
    assert path.read_bytes() == b"old" * 1000
    assert [file.name for file in tiny_disk.iterdir()] == ["file"]
    write_atomically(path, b"new" * 1000)
    assert path.read_bytes() == b"new" * 1000


def test_a_disk_full_for_folders_and_locks_is_named_too(tiny_disk: Path) -> None:
    lake = Lake(tiny_disk / "lake")
    lake.write("verdicts", [verdict("a")], "aa")
    for number in range(40):
        try:
            (tiny_disk / f"filler{number}").touch()
        except OSError:
            break
    with pytest.raises(DiskFullError):
        lake.write("verdicts", [verdict("b")], "new", "key")
    with pytest.raises(DiskFullError), lake.locked("verdicts", "aa"):
        pass
    with pytest.raises(DiskFullError):
        lake.blobs.put(b"data")
    assert lake.rows("verdicts", "aa")[0]["verdict_key"] == "a"


def test_a_limit_on_file_sizes_is_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(DiskFullError):
            write_atomically(path, b"n" * 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


HOLDER = """
    import sys, time
    from pathlib import Path
    from evalpipe.lake import Lake
    with Lake(Path(sys.argv[1])).locked("agent_runs", "sweep", "task"):
        print("locked", flush=True)
        time.sleep(60)
"""


def test_a_lock_keeps_another_process_out_until_that_one_is_killed(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    holder = _start(HOLDER, tmp_path)
    entered = threading.Event()

    def enter() -> None:
        with lake.locked("agent_runs", "sweep", "task"):
            entered.set()

    waiter = threading.Thread(target=enter)
    try:
        assert _wait_for_line(holder) == b"locked"
        waiter.start()
        assert not entered.wait(0.3)
        with lake.locked("agent_runs", "sweep", "other-task"):
            pass  # another partition is free meanwhile
    finally:
        holder.kill()
        holder.wait()
    assert entered.wait(10)
    waiter.join()


def test_a_lock_keeps_another_thread_out_and_goes_with_an_error(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        with lake.locked("agent_runs", "task"):
            inside += 1
            most = max(most, inside)
            time.sleep(0.01)
            inside -= 1

    with pytest.raises(RuntimeError), lake.locked("agent_runs", "task"):
        raise RuntimeError
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_child_process_does_not_inherit_a_lock(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    with lake.locked("agent_runs", "task"):
        child = subprocess.Popen(["sleep", "30"], close_fds=False)
    try:
        with lake.locked("agent_runs", "task"):
            assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_two_writers_of_one_blob_leave_one_whole_blob(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    data = b"x" * 1_000_000
    threads = [threading.Thread(target=store.put, args=(data,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
    assert store.get(store.put(data)) == data
