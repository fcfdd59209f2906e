"""What an attempt costs beside its container. Run by `make bench`; needs a Docker engine and its base image.

A hundred attempts of the agent that does nothing, one after another, as a sweep makes them (instance, box, patch,
ledger), and in turns with them the bare container calls: create, fill, start, wait, read, remove. Counted are the
requests to the engine, the wall time, and the processor's time of this process and of the git that it starts.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import tarfile
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

import docker
from docker.types import Mount
from requests import Response

from benchmarks.sweep import make_idle
from evalpipe.environments import DockerEnvironmentBuilder
from evalpipe.sandbox import DockerSandbox
from evalpipe.stages.agent_programs import adapter_for
from evalpipe.stages.attempts import run_sample
from evalpipe.stages.bench import Workbench
from evalpipe.stages.sweeps import open_agent_sweep, record_manifests, sample_keys

ATTEMPTS: Final = 100


class Spent(NamedTuple):
    """Seconds on the clock and of processors."""

    wall: float
    cpu: float


def main() -> None:
    """Print both ways, per attempt."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    with TemporaryDirectory() as folder:
        tiny = make_idle(Path(folder) / "workspace", "docker")
        os.environ |= tiny.variables
        bench = Workbench(tiny.workspace)
        sandbox = bench.sandbox
        assert isinstance(sandbox, DockerSandbox)
        assert isinstance(bench.builder, DockerEnvironmentBuilder)
        requests = _counted(sandbox, bench.builder)
        part = open_agent_sweep(bench, bench.workspace.load_sweep("idle"), bench.workspace.load_agent("empty"), "bench")
        record_manifests(bench, part, {})
        adapter = adapter_for(bench, part.agent, part.task_set)
        keys = list(sample_keys(part.sweep, part.task_set))
        run_sample(bench, part, adapter, keys[0], "bench", {})  # makes the instances, looks at the image
        run_sample(bench, part, adapter, keys[1], "bench", {})
        image = next(iter(part.task_set.tasks.values())).environment.image_digest
        container, tree = docker.from_env(), _tar()
        requests.clear()
        ours, bare = Spent(0, 0), Spent(0, 0)
        for key in keys[2 : 2 + ATTEMPTS]:
            ours = _sum(ours, _timed(partial(run_sample, bench, part, adapter, key, "bench", {})))
            bare = _sum(bare, _timed(partial(_bare, container, image, tree)))
    made = sum(requests.values())
    print(f"{ATTEMPTS} attempts, load {os.getloadavg()[0]:.1f}: each")
    for name, spent, asked in (("attempts", ours, made / ATTEMPTS), ("bare calls", bare, 8)):
        print(f"  {name:12} {spent.wall / ATTEMPTS:.3f} s wall, {spent.cpu / ATTEMPTS:.4f} s CPU, {asked:.1f} requests")
    beyond = Spent(ours.wall - bare.wall, ours.cpu - bare.cpu)
    print(f"  {'beyond them':12} {beyond.wall / ATTEMPTS:.3f} s wall, {beyond.cpu / ATTEMPTS:.4f} s CPU")
    for request, count in sorted(requests.items(), key=lambda item: -item[1]):
        print(f"    {count / ATTEMPTS:5.2f} {request}")


def _counted(sandbox: DockerSandbox, builder: DockerEnvironmentBuilder) -> Counter[str]:
    """Counts the requests of a sandbox and of what looks for its images from now on, by method and kind."""
    requests: Counter[str] = Counter()

    def count(response: Response, **options: object) -> None:
        parts = str(response.request.path_url).split("?")[0].split("/")
        requests[f"{response.request.method} {'/'.join(part for part in parts[2:] if len(part) < 30)}"] += 1

    for client in (sandbox.client, builder._engine.client):
        client.api.hooks["response"].append(count)
    return requests


def _bare(client: docker.DockerClient, image: str, tree: bytes) -> None:
    api = client.api
    mount = [Mount("/work", None, type="volume")]
    host = api.create_host_config(network_mode="none", read_only=True, mounts=mount)
    made = api.create_container(image, command=["sh", "-c", "echo changed nothing"], user="1000:1000", host_config=host)
    api.put_archive(made["Id"], "/work", tree)
    output = api.attach(made["Id"], stream=True)
    api.start(made["Id"])
    for _ in output:
        pass
    api.wait(made["Id"])
    stream, _ = api.get_archive(made["Id"], "/work")
    for _ in stream:
        pass
    api.remove_container(made["Id"], force=True, v=True)


def _tar() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as file:
        for number in range(20):
            entry = tarfile.TarInfo(f"file{number}")
            entry.size = 1000
            file.addfile(entry, io.BytesIO(b"x" * 1000))
    return made.getvalue()


def _timed(work: Callable[[], object]) -> Spent:
    wall, cpu = time.perf_counter(), _cpu()
    work()
    return Spent(time.perf_counter() - wall, _cpu() - cpu)


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _sum(one: Spent, other: Spent) -> Spent:
    return Spent(one.wall + other.wall, one.cpu + other.cpu)


if __name__ == "__main__":
    main()
