"""What only the Docker sandbox owes: the hardening of its containers, and calm when the engine misbehaves."""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker.errors import DockerException

from evalpipe.sandbox import (
    REGULAR,
    DockerSandbox,
    EngineFault,
    EngineUnavailable,
    FileEntry,
    Interrupted,
    Limits,
    Outcome,
    docker_available,
    owner_id,
)

pytestmark = pytest.mark.docker

LIMITS = Limits(timeout_s=60)


def shell(sandbox: DockerSandbox, image: str, script: str, limits: Limits = LIMITS) -> Outcome:
    with sandbox.open(image, limits, {}) as box:
        return box.run(["sh", "-c", script], env={}, cwd=".")


@pytest.fixture
def running(docker_sandbox: DockerSandbox, base_image: str) -> Iterator[str]:
    """The id of a container that sleeps in a box."""
    ended: list[str] = []

    def sleep() -> None:
        with docker_sandbox.open(base_image, LIMITS, {"purpose": "inspect"}) as box:
            try:
                box.run(["sleep", "50"], env={}, cwd=".")
            except Interrupted as error:
                ended.append(str(error))

    thread = threading.Thread(target=sleep)
    thread.start()
    filters: dict[str, str | list[str] | bool] = {"label": "evalpipe.purpose=inspect", "status": "running"}
    while not (found := docker_sandbox.client.containers.list(filters=filters)):
        time.sleep(0.05)
    yield str(found[0].id)
    docker_sandbox.kill({"purpose": "inspect"})
    thread.join(20)
    assert len(ended) == 1


def test_the_container_is_as_hard_as_the_policy_says(docker_sandbox: DockerSandbox, running: str) -> None:
    found = docker_sandbox.client.api.inspect_container(running)
    host = found["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert "no-new-privileges" in host["SecurityOpt"]
    assert host["ReadonlyRootfs"] is True
    assert host["Privileged"] is False
    assert host["IpcMode"] == "private"
    assert host["PidMode"] == ""
    assert host["UsernsMode"] == ""
    assert not host["Binds"]
    assert not host["Devices"]
    assert host["PidsLimit"] == LIMITS.pids
    assert host["Memory"] == host["MemorySwap"] == LIMITS.memory_bytes
    assert host["NanoCpus"] == 1_000_000_000
    assert {limit["Name"] for limit in host["Ulimits"]} == {"nofile", "core", "fsize"}
    assert found["Config"]["User"] == "1000:1000"
    assert [(mount["Type"], mount["Destination"]) for mount in found["Mounts"]] == [("volume", "/work")]
    labels = found["Config"]["Labels"]
    assert labels["evalpipe.managed"] == "1"
    assert labels["evalpipe.instance"] == docker_sandbox.instance
    assert labels["evalpipe.owner"] == owner_id()


def test_inside_there_is_no_root_and_no_place_to_write(docker_sandbox: DockerSandbox, base_image: str) -> None:
    script = """
        id -u
        for place in / /usr /etc /var/tmp /root /home; do touch $place/x 2>/dev/null && echo "can write $place"; done
        touch x /tmp/x || echo "cannot write the box"
        ls /sys/class/net
    """
    assert shell(docker_sandbox, base_image, script).stdout.split() == [b"1000", b"lo"]


def test_a_program_made_in_tmp_runs(docker_sandbox: DockerSandbox, base_image: str) -> None:
    script = "printf '#!/bin/sh\\necho ran\\n' > /tmp/p && chmod +x /tmp/p && /tmp/p"
    assert shell(docker_sandbox, base_image, script).stdout == b"ran\n"


@pytest.mark.slow
def test_a_fork_bomb_is_bounded_and_leaves_the_engine_well(docker_sandbox: DockerSandbox, base_image: str) -> None:
    script = "f() { f | f & }; f; sleep 60"
    started = time.monotonic()
    shell(docker_sandbox, base_image, script, Limits(timeout_s=3, pids=64))
    assert time.monotonic() - started < 20
    assert shell(docker_sandbox, base_image, "echo well").stdout == b"well\n"


def test_variables_of_the_image_arrive_and_its_entry_point_command_and_home_do_not_count(
    docker_sandbox: DockerSandbox, base_image: str
) -> None:
    client = docker_sandbox.client
    maker = client.containers.create(base_image, "true")
    try:
        changes = (
            'ENTRYPOINT ["/bin/false"]\nCMD ["x"]\nENV PATH=/image/bin:/usr/bin:/bin TOOL_HOME=/opt/tool A=0 HOME=/x'
        )
        image = maker.commit(changes=changes.splitlines()).id
    finally:
        maker.remove()
    try:
        with docker_sandbox.open(str(image), LIMITS, {}) as box:
            outcome = box.run(["env"], env={"A": "1"}, cwd=".")
    finally:
        client.images.remove(str(image))
    assert sorted(outcome.stdout.decode().split()) == [
        "A=1",
        "HOME=/tmp",
        "PATH=/image/bin:/usr/bin:/bin",
        "TOOL_HOME=/opt/tool",
    ]


def test_files_that_the_image_has_at_the_root_are_there(docker_sandbox: DockerSandbox, base_image: str) -> None:
    client = docker_sandbox.client
    maker = client.containers.create(base_image, ["sh", "-c", "mkdir -p /work && echo built > /work/product"])
    try:
        maker.start()
        maker.wait()
        image = str(maker.commit().id)
    finally:
        maker.remove()
    try:
        with docker_sandbox.open(image, LIMITS, {}) as box:
            box.put([FileEntry(b"source", REGULAR, b"s")])
            outcome = box.run(["sh", "-c", "cat product; touch new; ls"], env={}, cwd=".")
    finally:
        client.images.remove(image)
    assert outcome.stdout == b"built\nnew\nproduct\nsource\n", outcome.stderr


def test_a_container_that_somebody_removes_is_an_interruption(docker_sandbox: DockerSandbox, running: str) -> None:
    # Without its volume, which the box then removes. The fixture asserts that its run ended with Interrupted.
    docker_sandbox.client.containers.get(running).remove(force=True)


def test_nothing_is_left_by_all_of_the_above(docker_sandbox: DockerSandbox) -> None:
    filters: dict[str, str | list[str] | bool] = {"label": f"evalpipe.instance={docker_sandbox.instance}"}
    assert docker_sandbox.client.containers.list(all=True, filters=filters) == []
    assert docker_sandbox.client.volumes.list(filters=filters) == []


def test_a_limit_that_the_engine_refuses_is_its_fault_and_named(docker_sandbox: DockerSandbox, base_image: str) -> None:
    with pytest.raises(EngineFault, match=r"Range of CPUs"):
        shell(docker_sandbox, base_image, "true", Limits(timeout_s=5, cpus=4096))
    assert not docker_sandbox.client.containers.list(all=True, filters={"label": f"evalpipe.owner={owner_id()}"})


def test_without_init_program_a_missing_command_is_the_programs_failure(
    base_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = DockerSandbox(f"no-init-{os.getpid()}")
    monkeypatch.setattr(sandbox._engine, "has_init", False)
    for command, exit_code in (("no-such-program", 127), ("./data", 126)):
        with sandbox.open(base_image, LIMITS, {}) as box:
            box.put([FileEntry(b"data", REGULAR, b"x")])
            outcome = box.run([command], env={}, cwd=".")
        assert outcome.exit_code == exit_code
        assert outcome.stderr
    assert shell(sandbox, base_image, "exit 4").exit_code == 4
    sandbox.client.close()


@pytest.mark.slow
def test_no_connection_is_leaked(docker_sandbox: DockerSandbox, base_image: str) -> None:
    shell(docker_sandbox, base_image, "echo warm")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        shell(docker_sandbox, base_image, "echo x; sleep 9", Limits(timeout_s=0.3))
        with docker_sandbox.open(base_image, LIMITS, {}) as box:
            box.run(["sh", "-c", "echo x > x"], env={}, cwd=".")
            assert box.read_file("x", 10) == b"x\n"
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


def test_no_engine_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(EngineUnavailable, match=r"/nowhere/docker\.sock"):
        DockerSandbox("x")
    assert docker_available() is None


class PrivateEngine:
    """A second engine that a test may kill, with one tiny image in it."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.host = directory, f"unix://{directory}/docker.sock"
        self.start()

    def start(self) -> None:
        (self.directory / "pid").unlink(missing_ok=True)
        with (self.directory / "log").open("ab") as log:
            places = {"--data-root": "data", "--exec-root": "exec", "--pidfile": "pid"}
            self.process = subprocess.Popen(
                [
                    *("dockerd", "--bridge=none", "--iptables=false", "--ip-forward=false", "-H", self.host),
                    *(f"{option}={self.directory / name}" for option, name in places.items()),
                ],
                stdout=log,
                stderr=log,
            )
        for _ in range(200):
            if docker_available() is not None:
                return
            time.sleep(0.1)
        pytest.fail((self.directory / "log").read_text()[-2000:])

    def import_image(self) -> str:
        """An image with nothing but `sleep` and what it is linked with."""
        root = self.directory / "root"
        linked = subprocess.run(["ldd", "/bin/sleep"], capture_output=True, text=True, check=True).stdout
        for name in ["/bin/sleep", *(word for word in linked.split() if word.startswith("/"))]:
            target = root / name.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, target)
        for name in ("proc", "sys", "dev", "tmp", "etc"):
            (root / name).mkdir(exist_ok=True)
        archive = self.directory / "root.tar"
        subprocess.run(["tar", "-C", root, "-cf", archive, "."], check=True)
        sandbox = DockerSandbox("import")
        answer = sandbox.client.api.import_image_from_file(str(archive), repository="tiny", tag="1")
        sandbox.client.close()
        return str(json.loads(answer.splitlines()[-1])["status"])


@pytest.fixture
def private_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateEngine]:
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("a private engine needs root and dockerd")
    # Sockets have short names.
    directory = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip())
    monkeypatch.setenv("DOCKER_HOST", f"unix://{directory}/docker.sock")
    engine = PrivateEngine(directory)
    yield engine
    engine.process.send_signal(signal.SIGCONT)
    engine.process.terminate()
    engine.process.wait(30)
    # An engine that was killed leaves mounts behind.
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    for mount in reversed([mount for mount in mounts if mount.startswith(f"{directory}/")]):
        subprocess.run(["umount", mount], check=True)
    shutil.rmtree(directory)


def run_until_error(sandbox: DockerSandbox, image: str) -> tuple[threading.Thread, list[Exception]]:
    errors: list[Exception] = []

    def run() -> None:
        try:
            with sandbox.open(image, Limits(timeout_s=300), {}) as box:
                box.run(["/bin/sleep", "290"], env={}, cwd=".")
        except (EngineFault, Interrupted, DockerException) as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not sandbox.client.containers.list():
        time.sleep(0.05)
    return thread, errors


@pytest.mark.slow
def test_an_engine_that_dies_or_hangs_in_the_middle_is_unavailable(private_engine: PrivateEngine) -> None:
    image = private_engine.import_image()
    sandbox = DockerSandbox("private")

    thread, errors = run_until_error(sandbox, image)
    private_engine.process.kill()
    private_engine.process.wait()
    thread.join(30)
    assert [type(error) for error in errors] == [EngineUnavailable]
    assert private_engine.host in str(errors[0])

    # The container survived its engine; the next engine knows it, and the sandbox finds it by its labels.
    # The next engine must not take the old one's dying containerd for its own.
    time.sleep(2)
    private_engine.start()
    assert sandbox.reap([]) == 0
    assert sandbox.kill({}) == 1

    thread, errors = run_until_error(sandbox, image)
    private_engine.process.send_signal(signal.SIGSTOP)
    thread.join(90)
    assert [type(error) for error in errors] == [EngineUnavailable]
    private_engine.process.send_signal(signal.SIGCONT)
    assert sandbox.kill({}) == 1
    sandbox.client.close()
