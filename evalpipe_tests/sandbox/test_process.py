"""What only the process sandbox owes, and the choice between the sandboxes."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import evalpipe
from evalpipe.sandbox import (
    REGULAR,
    DiskFull,
    EngineFault,
    EngineUnavailable,
    FileEntry,
    Limits,
    ProcessSandbox,
    TreeLimits,
    UnsafeOutput,
    choose_sandbox,
)
from evalpipe.sandbox.errors import host_faults

LIMITS = Limits(timeout_s=30)


def test_the_environment_is_a_virtual_environment_whose_programs_come_first(
    process_sandbox: ProcessSandbox, tmp_path: Path
) -> None:
    tool = tmp_path / "venv" / "bin" / "ls"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho the tool of the environment\n")
    tool.chmod(0o755)
    with process_sandbox.open(str(tmp_path / "venv"), LIMITS, {}) as box:
        assert box.run(["ls"], env={}, cwd=".").stdout == b"the tool of the environment\n"


def test_home_and_temporary_directory_are_the_boxs_own(process_sandbox: ProcessSandbox) -> None:
    with process_sandbox.open("", LIMITS, {}) as box:
        outcome = box.run(["sh", "-c", 'echo "$HOME"; dirname "$(mktemp)"'], env={}, cwd=".")
        home, temporary = outcome.stdout.decode().split()
        assert home == temporary == str(Path(box.root).parent / "tmp")
    assert not Path(home).exists()


def test_a_root_that_became_a_link_is_not_followed(process_sandbox: ProcessSandbox) -> None:
    with process_sandbox.open("", LIMITS, {}) as box:
        box.run(["sh", "-c", 'rm -r "$PWD" && ln -s /etc "$PWD"'], env={}, cwd=".")
        with pytest.raises(UnsafeOutput):
            box.read_file("passwd", 100_000)
        with pytest.raises(UnsafeOutput):
            next(box.read_tree(".", TreeLimits(10**9, 10**9, 10**9)))
    assert Path("/etc/passwd").exists()


def test_the_memory_limit_leaves_room_to_reserve(process_sandbox: ProcessSandbox) -> None:
    """Runtimes reserve address space that they never use; that must not count."""
    script = "import mmap; mmap.mmap(-1, 8 * 1024**3, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0)"
    with process_sandbox.open("", Limits(timeout_s=30, memory_bytes=256 * 1024**2), {}) as box:
        assert box.run(["python3", "-c", script], env={}, cwd=".").exit_code == 0


def test_a_launcher_that_is_killed_is_no_outcome(process_sandbox: ProcessSandbox) -> None:
    script = "kill -KILL $(ps -o ppid= -p $(ps -o ppid= -p $$))"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ProcessSandbox, "_works", lambda sandbox, **isolation: False)
        bare = ProcessSandbox("bare", process_sandbox.boxes.parent)
    with bare.open("", LIMITS, {}) as box, pytest.raises(EngineFault, match="launcher"):
        box.run(["sh", "-c", script.replace("$(ps -o ppid= -p $$)", "$$")], env={}, cwd=".")


def test_the_owners_death_ends_the_command(process_sandbox: ProcessSandbox) -> None:
    code = f"""
import pathlib
from evalpipe.sandbox import *
sandbox = ProcessSandbox("test", pathlib.Path({str(process_sandbox.boxes.parent)!r}))
with sandbox.open("", Limits(timeout_s=60), {{}}) as box:
    box.run(["sh", "-c", "echo $$ > pid; exec sleep 61.25"], env={{}}, cwd=".")
"""
    with subprocess.Popen([sys.executable, "-c", code]) as owner:
        while not list(process_sandbox.boxes.glob("*/work/pid")):
            assert owner.poll() is None
        owner.kill()
    for _ in range(100):
        found = subprocess.run(["pgrep", "-f", "^sleep 61.25$"], check=False, capture_output=True)
        if not found.stdout:
            break
        subprocess.run(["sleep", "0.05"], check=True)
    assert found.stdout == b""
    assert process_sandbox.reap([]) == 1
    assert not list(process_sandbox.boxes.iterdir())


OTHER = 12345
AS_ANOTHER_USER = """
import pathlib, sys
from evalpipe.sandbox import *
sandbox = ProcessSandbox("test", pathlib.Path(sys.argv[1]))
print(sandbox.describe().isolation)
with sandbox.open("", Limits(timeout_s=30), {}) as box:
    outcome = box.run(["sh", "-c", "id -u; mkdir d; echo x > d/f; chmod 000 d/f d"], env={}, cwd=".")
    print(outcome)
    print(list(box.read_tree(".", TreeLimits(10, 10, 10))))
print(list(sandbox.boxes.iterdir()))
"""


def as_another_user(interpreter: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(Path(evalpipe.__path__[0]).parent), *sys.path])
    return subprocess.run(
        ["env", interpreter, *arguments],
        env={"PYTHONPATH": paths, "PATH": os.defpath},
        cwd="/",
        user=OTHER,
        group=OTHER,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else; anybody else tests it anyway")
def test_it_works_without_root() -> None:
    # The interpreter of the suite may lie where others cannot read it.
    for interpreter in (sys.executable, "/usr/bin/python3"):
        if Path(interpreter).exists() and as_another_user(interpreter, "-c", "import evalpipe.sandbox").returncode == 0:
            break
    else:
        pytest.skip("another user has no Python that could run this")
    with tempfile.TemporaryDirectory() as state:
        os.chown(state, OTHER, OTHER)
        found = as_another_user(interpreter, "-c", AS_ANOTHER_USER, state)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert f"user {OTHER}" in lines[0]
    assert "exit_code=0" in lines[1]
    assert f"stdout=b'{OTHER}\\n'" in lines[1]
    assert "b'd/f'" in lines[2]
    assert lines[3] == "[]"


def test_disk_full_is_told_from_other_faults() -> None:
    with pytest.raises(DiskFull, match="cannot write: the disk is full"), host_faults("write"):
        raise OSError(28, "No space left on device")
    with pytest.raises(EngineFault, match="cannot write"), host_faults("write"):
        raise OSError(5, "Input/output error")


@pytest.mark.skipif(not Path("/dev/full").exists() or os.geteuid() != 0, reason="needs to mount a small disk")
def test_a_full_disk_is_named_while_files_are_put(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=False).returncode != 0:
        pytest.skip("this machine does not let root mount")
    try:
        sandbox = ProcessSandbox("test", small)
        with sandbox.open("", LIMITS, {}) as box, pytest.raises(DiskFull):
            box.put([FileEntry(b"big", REGULAR, bytes(2_000_000))])
    finally:
        subprocess.run(["umount", small], check=True)


def test_auto_takes_processes_when_no_engine_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr("docker.utils.utils.DEFAULT_UNIX_SOCKET", "http+unix:///nowhere/docker.sock")
    assert choose_sandbox("auto", instance="x", state_dir=tmp_path).name == "process"


def test_an_engine_that_is_named_and_does_not_answer_is_no_reason_for_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(EngineUnavailable, match=r"nowhere/docker.sock.*EVALPIPE_SANDBOX=process"):
        choose_sandbox("auto", instance="x", state_dir=tmp_path)
    assert choose_sandbox("process", instance="x", state_dir=tmp_path).name == "process"
    with pytest.raises(EngineUnavailable):
        choose_sandbox("docker", instance="x", state_dir=tmp_path)


@pytest.mark.docker
@pytest.mark.usefixtures("docker_sandbox")
def test_auto_takes_docker_when_an_engine_answers(tmp_path: Path) -> None:
    assert choose_sandbox("auto", instance="x", state_dir=tmp_path).name == "docker"


def test_limits_that_make_no_sense_are_refused() -> None:
    for bad in ({"timeout_s": 0}, {"timeout_s": 1, "memory_bytes": 0}, {"timeout_s": 1, "output_bytes": -1}):
        with pytest.raises(ValueError, match="positive"):
            Limits(**bad)
