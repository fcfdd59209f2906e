"""Docker under the pipeline: a killed process leaves containers that the next start reaps, and an engine may die."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import docker
import pyarrow.parquet as pq
import pytest
from docker.models.containers import Container

from evalpipe.sandbox import DockerSandbox, Limits
from evalpipe.stages.bench import Workbench
from evalpipe.tasks import load_task_set
from evalpipe_tests.pipeline.daemon import running
from evalpipe_tests.pipeline.workspaces import (
    TinyWorkspace,
    finish,
    killed_at_the_end,
    make_workspace,
    repository_yaml,
    wait_until,
)

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(590)]

ATTEMPTS = ["small", "reference", "agent_runs"]


def _slow(name: str, program: str, seconds: float) -> str:
    """A shell command that puts a slow `name` before a program of the image."""
    script = f'#!/bin/sh\\nsleep {seconds}\\nexec {program} "$@"\\n'
    place = f"/usr/local/bin/{name}"
    return f"printf '{script}' > {place} && chmod +x {place}"


def _in_docker(root: Path, base_image: str, host: str) -> TinyWorkspace:
    """A workspace whose suites take two seconds, and whose agents three."""
    variables = {"EVALPIPE_SANDBOX": "auto", "EVALPIPE_BASE_IMAGE": base_image, "DOCKER_HOST": host}
    tiny = make_workspace(root, variables)
    setup = [_slow("slow-python", "python3", 2), _slow("xargs", "/usr/bin/xargs", 3)]
    tiny.write("data/repos/shop.yaml", repository_yaml(setup, "slow-python"))
    tiny.succeed("mine")
    return tiny


def _containers(client: docker.DockerClient, tiny: TinyWorkspace) -> list[Container]:
    mine = f"evalpipe.instance={Workbench(tiny.workspace).instance}"
    return list(client.containers.list(all=True, filters={"label": mine}, ignore_removed=True))


class Engine:
    """A Docker engine of this test's own, which can die."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.host = f"unix://{folder}/docker.sock"

    def start(self) -> None:
        # A containerd that was killed and not waited for yet passes for a living one by its number.
        for name in ("pid", "docker.sock", "exec/containerd/containerd.pid"):
            (self._folder / name).unlink(missing_ok=True)
        places = ["--data-root", f"{self._folder}/data", "--exec-root", f"{self._folder}/exec"]
        alone = ["--bridge=none", "--iptables=false", "--ip-forward=false", "--pidfile", f"{self._folder}/pid"]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                ["dockerd", *alone, *places, "-H", self.host], stdout=log, stderr=log, start_new_session=True
            )
        wait_until(self._answers, "the engine answers", 60)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()[-3000:]
        with contextlib.suppress(docker.errors.DockerException), contextlib.closing(self.client()) as client:
            return bool(client.ping())
        return False

    def client(self) -> docker.DockerClient:
        return docker.DockerClient(self.host)

    def die(self) -> None:
        """Kill the engine, and the containerd that it started: the next engine would wait for that one."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        containerd = int((self._folder / "exec/containerd/containerd.pid").read_text())
        with contextlib.suppress(ProcessLookupError):
            os.kill(containerd, signal.SIGKILL)

    def stop(self) -> None:
        """End the engine and all that it runs."""
        if self._process is None or self._process.poll() is not None:
            self.start()  # an engine that died left its containers running; only a living one ends them
        assert self._process is not None
        with contextlib.closing(self.client()) as client:
            for container in client.containers.list(all=True, ignore_removed=True):
                container.remove(force=True)
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        # What was mounted when it died stays so.
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in sorted((one for one in mounts if one.startswith(f"{self._folder}/")), reverse=True):
            subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def engine(docker_sandbox: DockerSandbox, base_image: str) -> Iterator[Engine]:
    if shutil.which("dockerd") is None or os.geteuid() != 0:
        if os.environ.get("EVALPIPE_REQUIRE_DOCKER") == "1":
            pytest.fail("a private engine needs dockerd and root", pytrace=False)
        pytest.skip("a private engine needs dockerd and root")
    folder = Path(tempfile.mkdtemp(prefix="evalpipe-engine-"))  # short, because a socket's path is
    private = Engine(folder)
    try:
        private.start()
        image = docker_sandbox.client.images.get(base_image)
        with contextlib.closing(private.client()) as client:
            client.images.load(b"".join(image.save()))
        yield private
    finally:
        private.stop()
        shutil.rmtree(folder)


def test_an_engine_that_dies_while_candidates_are_validated(tmp_path: Path, base_image: str, engine: Engine) -> None:
    """And then under a process that is killed, and in a backfill: one test, because the way to a sweep is long."""
    tiny = _in_docker(tmp_path / "workspace", base_image, engine.host)
    passes = tiny.lake / "validation_runs"

    def one_is_done_and_another_runs() -> bool:
        with contextlib.closing(engine.client()) as client:
            running = [one for one in _containers(client, tiny) if one.status == "running"]
        return bool(list(passes.rglob("first.parquet"))) and bool(running)

    with killed_at_the_end(tiny.start("validate", "--same-day")) as process:
        wait_until(one_is_done_and_another_runs, "a candidate is done and another runs", 120)
        engine.die()
        started = time.monotonic()
        died = finish(process, timeout_s=60)
    assert time.monotonic() - started < 40
    assert (died.code, died.out) == (1, "")
    assert "no Docker engine answers" in died.err, died.err
    assert "Traceback" not in died.err
    kept = {path: path.read_bytes() for path in passes.rglob("*.parquet")}
    assert 1 <= len(kept) < 6

    without = tiny.run("validate", "--same-day")
    assert (without.code, without.out) == (1, "")
    assert "start it" in without.err

    engine.start()
    tiny.succeed("validate", "--same-day")
    assert {path: path.read_bytes() for path in kept} == kept
    assert len(list(passes.rglob("*.parquet"))) == 6
    with contextlib.closing(engine.client()) as client:
        assert _containers(client, tiny) == []
    tiny.succeed("freeze", "tiny", "--provisional")
    tiny.succeed("run", "small", "--agent", "empty")
    _a_killed_process_leaves_containers_that_the_next_start_reaps_and_no_others(tiny, engine, base_image)
    _an_engine_that_dies_in_a_backfill(tiny, engine)


def _a_killed_process_leaves_containers_that_the_next_start_reaps_and_no_others(
    tiny: TinyWorkspace, engine: Engine, base_image: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", engine.host)
        another = DockerSandbox("another")
    with (
        contextlib.closing(another.client) as client,
        another.open(base_image, Limits(timeout_s=60), {"purpose": "stranger"}) as stranger,
    ):
        stranger.run(["true"], env={}, cwd=".")
        others: dict[str, str | list[str] | bool] = {"label": "evalpipe.purpose=stranger"}
        (kept,) = client.containers.list(all=True, filters=others)
        with killed_at_the_end(tiny.start("run", "small", "--agent", "half")) as process:
            wait_until(lambda: any(one.status == "running" for one in _containers(client, tiny)), "one runs", 120)
            process.kill()
            process.wait()
        assert _containers(client, tiny)
        tiny.succeed("run", "small", "--agent", "half")
        assert _containers(client, tiny) == []
        assert client.containers.list(all=True, filters=others) == [kept]


def _an_engine_that_dies_in_a_backfill(tiny: TinyWorkspace, engine: Engine) -> None:
    """No attempt of a sample that had not begun is used up, none is lost, and only those in flight are made again."""
    ledger = tiny.lake / "agent_runs" / "small" / "reference"
    tasks = load_task_set(tiny.workspace.task_sets_dir / "tiny").tasks
    every = [f"original-{number}|{task}" for number in (1, 2) for task in tasks]

    def begun() -> int:
        return len(list(ledger.rglob("*.parquet")))

    with running(tiny) as ui:
        asked = ui.backfill(ATTEMPTS, every)
        wait_until(lambda: begun() >= 1, "an attempt is begun", 120)
        engine.die()
        assert ui.wait(asked, 120)["status"] == "COMPLETED_FAILED"
        in_flight = begun()
        assert in_flight <= 1 + (os.cpu_count() or 1)
        engine.start()
        assert ui.wait(ui.backfill(ATTEMPTS, every), 120)["status"] == "COMPLETED_SUCCESS"
        assert ui.partitions(ATTEMPTS) == (4, 4, 0)
    outcomes = [pq.read_table(path)["outcome"].to_pylist() for path in ledger.rglob("*.parquet")]
    assert [found[-1] for found in outcomes] == ["finished"] * 4
    assert sum(len(found) > 1 for found in outcomes) <= in_flight
    assert max(map(len, outcomes)) <= 2
